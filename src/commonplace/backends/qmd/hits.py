"""Which answers of QMD become hits: of files that there are, that may be seen, and that still say so."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from commonplace.backends.protocol import Question
from commonplace.backends.qmd.answers import Answer
from commonplace.backends.qmd.collections import Collection, folded
from commonplace.backends.qmd.placing import EXPORT_HEADER_LINES, placed
from commonplace.backends.qmd.territory import Territory
from commonplace.errors import CommonplaceError
from commonplace.model import EVERY_SCOPE, Document, SearchHit
from commonplace.sources.discovery import FoundFile
from commonplace.value import replace


def hits_of(
    answers: Iterable[Answer],
    asked: Sequence[Collection],
    question: Question,
    territory: Territory,
) -> list[SearchHit]:
    """The best hits, best first, each place once."""
    by_name = {collection.name: collection for collection in asked}
    hits: list[SearchHit] = []
    seen: set[tuple[str, int, int]] = set()
    for answer in sorted(answers, key=lambda answer: -answer.score):
        collection = by_name.get(answer.collection)
        if collection is None or answer.score < (question.min_score or 0.0):
            continue
        hit = _hit(answer, collection, question, territory)
        if hit is None or (hit.path, hit.start_line, hit.end_line) in seen:
            continue
        seen.add((hit.path, hit.start_line, hit.end_line))
        hits.append(hit)
        if len(hits) == question.max_results:
            break
    return hits


def _hit(
    answer: Answer, collection: Collection, question: Question, territory: Territory
) -> SearchHit | None:
    found = _file(answer, collection, territory)
    if found is None or not _may_be_seen(found, question):
        return None
    try:
        document = _document(found, collection, territory)
    except CommonplaceError:
        return None  # gone, or not to be read: its text cannot be vouched for
    offset = EXPORT_HEADER_LINES if collection.source == "sessions" else 0
    hit = placed(answer, document, offset=offset, snippet_chars=question.snippet_chars)
    if hit is None or not question.explain:
        return hit
    return replace(hit, explanation=_explanation(answer, hit, question.query))


def _explanation(answer: Answer, hit: SearchHit, query: str) -> dict[str, object]:
    """As much as can be told: its score, and which terms of the question are in the lines."""
    from commonplace.text.terms import document_terms, query_terms

    matched = set(query_terms(query).terms) & set(document_terms(hit.snippet))
    return {"qmd": answer.score, "collection": answer.collection, "matched": sorted(matched)}


def _file(answer: Answer, collection: Collection, territory: Territory) -> FoundFile | None:
    """The file that is meant, among those that we have found ourselves: a path of QMD's is never opened."""
    if collection.source == "sessions":
        return territory.copied.get(os.path.join(collection.folder, answer.path))
    cited = collection.cited + answer.path
    exact = territory.files.get(cited)
    if exact is not None:
        return exact
    wanted = folded(cited)
    alike = [file for path, file in territory.files.items() if folded(path) == wanted]
    return alike[0] if len(alike) == 1 else None


def _may_be_seen(found: FoundFile, question: Question) -> bool:
    return question.scopes == EVERY_SCOPE or found.scope in question.scopes


def _document(found: FoundFile, collection: Collection, territory: Territory) -> Document:
    if collection.source == "sessions" and territory.transcripts is not None:
        return territory.transcripts.read(found)[0]
    return territory.workspace.read(found)[0]
