"""Which answers of QMD become hits: of files that there are, that may be seen, and that still say so."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.model import EVERY_SCOPE, Document, SearchHit
from plainmind.base.value import replace
from plainmind.guests.qmd.answers import Answer
from plainmind.guests.qmd.collections import Collection, folded
from plainmind.guests.qmd.placing import EXPORT_HEADER_LINES, placed
from plainmind.guests.qmd.process import TookTooLong
from plainmind.guests.qmd.territory import Look, Territory
from plainmind.memory.backend import Question
from plainmind.notes.discovery import FoundFile


class Hits:
    """Makes hits for one question, of what there was at one look."""

    def __init__(self, question: Question, territory: Territory, look: Look, deadline: float) -> None:
        self._question = question
        self._territory = territory
        self._look = look
        self._deadline = deadline
        self._conversations = {path: found for path, found in look.copied.items() if self._may_be_seen(found)}
        self._folded: dict[str, list[FoundFile]] | None = None

    def of(self, answers: Iterable[Answer], asked: Sequence[Collection]) -> tuple[SearchHit, ...]:
        """The best hits, best first, each place once. Raises TookTooLong when there was no time for any."""
        by_name = {collection.name: collection for collection in asked}
        hits: dict[tuple[str, int, int], SearchHit] = {}
        for answer in sorted(answers, key=lambda answer: -answer.score):
            collection = by_name.get(answer.collection)
            if collection is None or answer.score < (self._question.min_score or 0.0):
                continue
            hit = self._hit(answer, collection)
            if hit is not None:
                hits.setdefault((hit.path, hit.start_line, hit.end_line), hit)
            if len(hits) == self._question.max_results:
                break
            if time.monotonic() > self._deadline:
                if not hits:
                    raise TookTooLong("there was no time left to read the files that it found")
                break
        return tuple(hits.values())

    def _hit(self, answer: Answer, collection: Collection) -> SearchHit | None:
        try:
            document = self._document(answer, collection)
        except PlainmindError:
            return None  # gone, or not to be read: its text cannot be vouched for
        if document is None:
            return None
        offset = EXPORT_HEADER_LINES if collection.source == "sessions" else 0
        hit = placed(answer, document, offset=offset, snippet_chars=self._question.snippet_chars)
        if hit is None or not self._question.explain:
            return hit
        return replace(hit, explanation=_explanation(answer, hit, self._question.query))

    def _document(self, answer: Answer, collection: Collection) -> Document | None:
        """The text that is meant, of a file that we have found ourselves: a path of QMD's is never opened."""
        if collection.source == "sessions":
            return self._territory.piece(os.path.join(collection.folder, answer.path), self._conversations)
        found = self._file(collection.cited + answer.path)
        return self._territory.workspace.read(found)[0] if found and self._may_be_seen(found) else None

    def _file(self, cited: str) -> FoundFile | None:
        exact = self._look.files.get(cited)
        if exact is not None:
            return exact
        if self._folded is None:
            self._folded = {}
            for path, file in self._look.files.items():
                self._folded.setdefault(folded(path), []).append(file)
        alike = self._folded.get(folded(cited), [])
        return alike[0] if len(alike) == 1 else None

    def _may_be_seen(self, found: FoundFile) -> bool:
        scopes = self._question.scopes
        return scopes == EVERY_SCOPE or found.scope in scopes


def _explanation(answer: Answer, hit: SearchHit, query: str) -> dict[str, object]:
    """As much as can be told: its score, and which terms of the question are in the lines."""
    from plainmind.text.terms import document_terms, query_terms

    matched = set(query_terms(query).terms) & set(document_terms(hit.snippet))
    return {"qmd": answer.score, "collection": answer.collection, "matched": sorted(matched)}
