"""A question in, cited lines out: asks the index by word and by meaning, then reads the best chunks closely."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import islice

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import (
    Mode,
    SearchFilter,
    SearchHit,
    SearchResult,
    Source,
    Vector,
)
from plainmind.index.proposals import expect_vector, known_term_counts, proposals_of
from plainmind.search.asked import Asked
from plainmind.search.calibration import calibrated
from plainmind.search.close_reading import read_closely
from plainmind.search.known_files import KnownFile
from plainmind.search.query import ParsedQuery, parse, term_weights
from plainmind.search.ranking import RankedChunk, in_question, ranked_chunks
from plainmind.search.relevance import Judge, Weights, standing_out
from plainmind.search.settings import SearchSettings
from plainmind.search.shelf import Shelf
from plainmind.search.snippets import Snippet, grow_snippets
from plainmind.text.day_terms import terms_of_span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.embed.protocol import Embedder
    from plainmind.index.protocol import IndexReader, IndexStore
    from plainmind.search.explanation import Explanations

# How many of the best chunks may have snippets that are filled up with what stands around them.
CHUNKS_WITH_MARGIN = 6
# How many snippets are weighed against each other where an exact token, or diversity, can change their order.
REORDERED = 50


class SearchEngine:
    """Finds lines in one index with one embedder."""

    def __init__(self, store: IndexStore, embedder: Embedder, settings: SearchSettings) -> None:
        self._store = store
        self._embedder = embedder
        self._settings = settings
        self._shelf = Shelf()
        self._mixes: dict[tuple[bool, bool], Weights] = {}

    def search(
        self,
        text: str,
        *,
        where: SearchFilter,
        today: date,
        max_results: int | None = None,
        min_score: float | None = None,
        snippet_chars: int | None = None,
        explain: bool = False,
    ) -> SearchResult:
        """Answer a question; what could not be consulted is in `degraded`."""
        settings = self._settings
        clock = Stopwatch(time.perf_counter)
        wanted = max_results or settings.max_results
        query = parse(text, today=today)
        vector, degraded = self._embedded(query)
        clock.lap("embed")
        with self._store.reading() as reader:
            vector, degraded = self._comparable(reader, vector, degraded)
            everything = wanted > settings.read_closely
            ranked, weights = self._ranked(reader, query, vector, where, clock, everything=everything)
            asked, files = self._read_closely(reader, query, ranked, weights, today)
            clock.lap("read")
            # More than wanted only where the order can still change: then always as many, whatever is wanted.
            pool = max(wanted, REORDERED) if query.exact or settings.diversity.enabled else wanted
            snippets = list(
                islice(grow_snippets(files, budget=snippet_chars or settings.snippet_chars), pool)
            )
        hits = self._hits(query, snippets, self._explained(query, asked, today) if explain else None)
        floor = settings.min_score if min_score is None else min_score
        kept = [hit for hit in hits if hit.score >= floor][:wanted]
        clock.lap("rank")
        identity = self._embedder.identity
        return SearchResult(
            query=query.text,
            hits=tuple(kept),
            provider=identity.provider,
            model=identity.model,
            mode=self._mode(vector),
            degraded=degraded,
            timings=clock.milliseconds(),
        )

    def _embedded(self, query: ParsedQuery) -> tuple[Vector | None, tuple[str, ...]]:
        if query.is_empty or not self._settings.use_vectors or not self._embedder.identity.dims:
            return None, ()
        try:
            return self._embedder.embed_query(query.text), ()
        except EmbeddingError as error:
            # Keywords alone still answer most questions: serve those, and say so.
            return None, (f"vector search: {error}",)

    def _comparable(
        self, reader: IndexReader, vector: Vector | None, degraded: tuple[str, ...]
    ) -> tuple[Vector | None, tuple[str, ...]]:
        """Let go of the vector when this view is of an index that another embedder has made."""
        made = reader.fingerprint()
        if vector is None or made is None or made.embedder == self._embedder.identity:
            return vector, degraded
        who = f"{made.embedder.provider} {made.embedder.model}".strip()
        return None, (
            *degraded,
            f"vector search: the index was made with {who}, and only its vectors compare",
        )

    def _mode(self, vector: Vector | None) -> Mode:
        if vector is None:
            return "keyword"
        return "hybrid" if self._settings.use_keywords else "vector"

    def _ranked(
        self,
        reader: IndexReader,
        query: ParsedQuery,
        vector: Vector | None,
        where: SearchFilter,
        clock: Stopwatch,
        *,
        everything: bool,
    ) -> tuple[list[RankedChunk], Mapping[str, float]]:
        """The chunks worth reading closely, best first, and what each term of the question weighs."""
        settings = self._settings
        weights = term_weights(query.terms, reader.term_statistics(query.terms, where=where))
        proposals = proposals_of(reader)
        if vector is not None:
            expect_vector(proposals, vector, where=where, limit=settings.proposals)
        found: dict[int, None] = {}
        if settings.use_keywords:
            for terms in _lookups(query, reader, where):
                found |= dict.fromkeys(proposals.by_words(terms, where=where, limit=settings.proposals))
        clock.lap("keywords")
        if vector is not None:
            found |= dict.fromkeys(proposals.by_vector(vector, where=where, limit=settings.proposals))
        ids = list(found)
        keywords = [0.0] * len(ids)
        if settings.use_keywords:
            keywords = reader.keyword_scores(query.terms, ids, where=where)
        meaning = reader.similarities(vector, ids) if vector is not None else [0.0] * len(ids)
        if query.is_spaceless:
            meaning = standing_out(meaning)
        clock.lap("vectors")
        mixed = self._mixed(query, with_vectors=vector is not None)
        foremost = settings.read_closely
        if not everything:
            kept = in_question(
                query, where, keywords, meaning, meaning_weight=mixed.meaning, foremost=foremost
            )
            ids, keywords, meaning = (
                [ids[at] for at in kept],
                [keywords[at] for at in kept],
                [meaning[at] for at in kept],
            )
        ranked = ranked_chunks(
            query,
            dict(zip(ids, proposals.chunks(ids), strict=True)),
            keywords,
            meaning,
            meaning_weight=mixed.meaning,
            foremost=foremost,
            everything=everything,
        )
        counts = known_term_counts(reader, query.terms, [item.id for item in ranked])
        for item, of_item in zip(ranked, counts, strict=True):
            item.term_counts = of_item
        return ranked, weights

    def _mixed(self, query: ParsedQuery, *, with_vectors: bool) -> Weights:
        """The weights of the signals that this question can consult."""
        key = query.is_spaceless, with_vectors
        if key not in self._mixes:
            self._mixes[key] = self._settings.mixed(
                is_spaceless=query.is_spaceless, with_vectors=with_vectors
            )
        return self._mixes[key]

    def _read_closely(
        self,
        reader: IndexReader,
        query: ParsedQuery,
        ranked: Sequence[RankedChunk],
        term_weights: Mapping[str, float],
        today: date,
    ) -> tuple[Asked, list[KnownFile]]:
        """The words of the question, and the files of the ranked chunks, ready to be read."""
        settings = self._settings
        asked = Asked(term_weights)
        foremost = settings.read_closely
        weights = self._mixed(query, with_vectors=any(item.meaning for item in ranked[:foremost]))
        recent = query.asks_for_recent
        read = read_closely(
            ranked,
            self._shelf,
            Judge(asked, weights, window_chars=settings.snippet_chars),
            weights,
            foremost=foremost,
            named=query.named,
            age_factor=lambda day: settings.recency.factor(day, today=today, asked_for_recent=recent),
        )

        files: dict[tuple[Source, str], KnownFile] = {}
        for number, item in enumerate(read):
            chunk = item.ranked.chunk
            key = chunk.source, chunk.path
            if key not in files:
                files[key] = KnownFile(partial(reader.chunks_between, *key))
            # A message is whole by itself, and a dozen around it may be a hundred pages.
            files[key].add(item, with_margin=number < CHUNKS_WITH_MARGIN and chunk.source != "sessions")
        return asked, list(files.values())

    def _explained(self, query: ParsedQuery, asked: Asked, today: date) -> Explanations:
        from plainmind.search.explanation import Explanations

        return Explanations(query, asked, self._settings.recency, today)

    def _hits(
        self,
        query: ParsedQuery,
        snippets: Iterable[Snippet],
        explained: Explanations | None,
    ) -> list[SearchHit]:
        hits = []
        for snippet in snippets:
            best, unit = snippet.best
            exact = query.has_exact_token(snippet.text)
            score = calibrated(snippet.score, has_exact_token=exact)
            hit = SearchHit(
                path=best.ranked.chunk.path,
                start_line=snippet.start_line,
                end_line=snippet.end_line,
                score=score,
                snippet=snippet.text,
                source=best.ranked.chunk.source,
                explanation=explained.of(best, unit, score, exact=exact) if explained else None,
            )
            hits.append(hit)
        hits.sort(key=lambda hit: -hit.score)  # an exact token may have lifted one over those before it
        if not self._settings.diversity.enabled:
            return hits
        return self._settings.diversity.reorder(
            [(hit, hit.score, frozenset(hit.snippet.split())) for hit in hits]
        )


class Stopwatch:
    """Laps of one search, in milliseconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._started = self._last = now()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Note the time since the last lap."""
        now = self._now()
        self._laps[name] = round((now - self._last) * 1000, 3)
        self._last = now

    def milliseconds(self) -> Mapping[str, float]:
        """All laps, and the total."""
        return {**self._laps, "total": round((self._last - self._started) * 1000, 3)}


def _lookups(query: ParsedQuery, reader: IndexReader, where: SearchFilter) -> list[tuple[str, ...]]:
    """The keyword lookups of a question: its words, and its words on the days that it names."""
    lookups = [query.terms] if query.terms else []
    days = tuple(term for span in query.days for term in terms_of_span(span))
    # Where nothing is of any of these days, a second look would find what the first has found.
    if days and any(reader.term_statistics(days, where=where).chunks_with.values()):
        lookups.append(query.terms + days)
    return lookups
