"""A question in, cited lines out: asks the index by word and by meaning, then reads the best chunks closely."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice

from commonplace.embedding.protocol import Embedder
from commonplace.errors import EmbeddingError
from commonplace.model import (
    Candidate,
    Chunk,
    Mode,
    SearchFilter,
    SearchHit,
    SearchResult,
    Source,
    Vector,
)
from commonplace.search.calibration import calibrated
from commonplace.search.query import ParsedQuery, names_day, parse, term_weights
from commonplace.search.relevance import Weights, signals_of, speaker_of, standing_out
from commonplace.search.settings import SearchSettings
from commonplace.search.snippets import ScoredUnit, Snippet, grow_snippets
from commonplace.search.units import read
from commonplace.store.protocol import IndexReader, IndexStore
from commonplace.text.day_terms import terms_of_span
from commonplace.text.terms import document_terms

# A question that names days is about them: worth as much as a third of its words.
DAY_BONUS = 0.15
# A line spoken by somebody whom the question names is more likely the answer than one that only mentions them.
SPEAKER_BONUS = 0.08
# In transcripts, what people said about themselves counts more than what an assistant made of it.
ASKED_BONUS = 0.25
# How much of the weight of meaning is left where a small model knows the script only roughly.
SPACELESS_SHARE = 2 / 3
# How far the chunks around the best ones are read, to fill up snippets at the edge of a chunk.
MARGIN_LINES = 12
CHUNKS_WITH_MARGIN = 6
# How many snippets are weighed against each other where an exact token, or diversity, can change their order.
REORDERED = 50


@dataclass(frozen=True, slots=True)
class Ranked:
    """A chunk that is worth reading line by line."""

    chunk: Chunk
    keywords: float
    meaning: float


class SearchEngine:
    """Finds lines in one index with one embedder."""

    def __init__(self, store: IndexStore, embedder: Embedder, settings: SearchSettings) -> None:
        self._store = store
        self._embedder = embedder
        self._settings = settings

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
            ranked, weights = self._ranked(reader, query, vector, where, clock)
            if wanted <= settings.read_closely:
                ranked = ranked[: settings.read_closely]
            files = self._read_closely(reader, query, ranked, weights, today)
            clock.lap("read")
        # More than wanted only where the order can still change: then always as many, whatever is wanted.
        pool = max(wanted, REORDERED) if query.exact or settings.diversity.enabled else wanted
        snippets = list(islice(grow_snippets(files, budget=snippet_chars or settings.snippet_chars), pool))
        hits = self._hits(query, snippets, explain=explain, today=today)
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
    ) -> tuple[list[Ranked], Mapping[str, float]]:
        """The chunks worth reading closely, best first, and what each term of the question weighs."""
        settings = self._settings
        weights = term_weights(query.terms, reader.term_statistics(query.terms))
        found: dict[int, Candidate] = {}
        if settings.use_keywords:
            for terms in _lookups(query):
                found |= _by_id(reader.keyword_candidates(terms, where=where, limit=settings.proposals))
        clock.lap("keywords")
        if vector is not None:
            found |= _by_id(reader.vector_candidates(vector, where=where, limit=settings.proposals))
        ids = list(found)
        keywords = reader.keyword_scores(query.terms, ids) if settings.use_keywords else [0.0] * len(ids)
        meaning = reader.similarities(vector, ids) if vector is not None else [0.0] * len(ids)
        if query.is_spaceless:
            meaning = standing_out(meaning)
        clock.lap("vectors")
        mixed = self._mixed(query, with_vectors=vector is not None)
        ranked = [
            Ranked(found[id_].chunk, keywords=by_word, meaning=max(0.0, by_meaning))
            for id_, by_word, by_meaning in zip(ids, keywords, meaning, strict=True)
        ]
        ranked.sort(key=lambda chunk: (-_chunk_score(chunk, mixed, query), _place(chunk.chunk)))
        return ranked, weights

    def _mixed(self, query: ParsedQuery, *, with_vectors: bool) -> Weights:
        """The weights of the signals that this question can consult."""
        keywords = self._settings.use_keywords
        if query.is_spaceless and keywords and with_vectors:
            # What stands out is added to what the words say: it is too little to count for a share of the whole.
            words = self._settings.weights.scaled(with_vectors=False, with_keywords=True)
            return replace(words, meaning=self._settings.weights.meaning * SPACELESS_SHARE)
        return self._settings.weights.scaled(with_vectors=with_vectors, with_keywords=keywords)

    def _read_closely(
        self,
        reader: IndexReader,
        query: ParsedQuery,
        ranked: Sequence[Ranked],
        term_weights: Mapping[str, float],
        today: date,
    ) -> list[list[ScoredUnit]]:
        """Every line of the ranked chunks with its score, by file in reading order."""
        settings = self._settings
        # What depends on other chunks looks at the same ones however many are read.
        foremost = settings.read_closely
        weights = self._mixed(query, with_vectors=any(item.meaning for item in ranked[:foremost]))
        by_place = {_place(item.chunk): item.keywords for item in ranked[:foremost]}
        weighed = [
            signals_of(
                *read(item.chunk),
                term_weights=term_weights,
                window_chars=settings.snippet_chars,
                keywords=item.keywords,
                neighbours=_best_beside(item.chunk, by_place),
                meaning=item.meaning,
            )
            for item in ranked
        ]
        weights = weights.leaning(
            max((signal.coverage for signals in weighed[:foremost] for signal in signals), default=0.0)
        )
        lines: dict[tuple[Source, str], dict[tuple[int, int], ScoredUnit]] = {}
        for item, signals in zip(ranked, weighed, strict=True):
            chunk = item.chunk
            factor = settings.recency.factor(chunk.day, today=today, asked_for_recent=query.asks_for_recent)
            of_chunk = _bonus_of_chunk(query, chunk)
            file = lines.setdefault((chunk.source, chunk.path), {})
            for unit, signal in zip(read(chunk)[0], signals, strict=True):
                speaks = query.named and query.names(speaker_of(unit.text))
                bonus = of_chunk + (SPEAKER_BONUS if speaks else 0.0)
                score = (signal.mixed(weights) + bonus) * factor if unit.text.strip() else None
                file[unit.line, unit.piece] = ScoredUnit(
                    chunk.source, chunk.path, unit, score, signal, chunk.day
                )
        for item in ranked[:CHUNKS_WITH_MARGIN]:
            if item.chunk.source == "sessions":
                continue  # a message is whole by itself, and a dozen around it may be a hundred pages
            self._add_margin(reader, item.chunk, lines[item.chunk.source, item.chunk.path])
        return [[file[key] for key in sorted(file)] for file in lines.values()]

    def _add_margin(self, reader: IndexReader, chunk: Chunk, file: dict[tuple[int, int], ScoredUnit]) -> None:
        """Add the lines around a chunk as filling, where they are not known already."""
        around = reader.chunks_between(
            chunk.source, chunk.path, max(1, chunk.start_line - MARGIN_LINES), chunk.end_line + MARGIN_LINES
        )
        for neighbour in around:
            for unit in read(neighbour)[0]:
                filling = ScoredUnit(chunk.source, chunk.path, unit, None)
                file.setdefault((unit.line, unit.piece), filling)

    def _hits(
        self, query: ParsedQuery, snippets: Iterable[Snippet], *, explain: bool, today: date
    ) -> list[SearchHit]:
        hits = []
        for snippet in snippets:
            best = snippet.best
            assert best.score is not None
            assert best.signals is not None
            exact = bool(query.exact) and not query.exact.isdisjoint(document_terms(snippet.text))
            score = calibrated(snippet.score, has_exact_token=exact)
            hit = SearchHit(
                path=best.path,
                start_line=snippet.start_line,
                end_line=snippet.end_line,
                score=score,
                snippet=snippet.text,
                source=best.source,
                explanation=self._explanation(query, best, score, exact=exact, today=today)
                if explain
                else None,
            )
            hits.append((hit, score, frozenset(snippet.text.split())))
        hits.sort(key=lambda scored: -scored[1])  # an exact token may have lifted one over those before it
        return self._settings.diversity.reorder(hits)

    def _explanation(
        self, query: ParsedQuery, best: ScoredUnit, score: float, *, exact: bool, today: date
    ) -> Mapping[str, object]:
        signals = best.signals
        assert signals is not None
        return {
            "score": round(score, 4),
            "raw": round(best.score or 0.0, 4),
            "coverage": round(signals.coverage, 4),
            "nearby": round(signals.nearby, 4),
            "passage": round(signals.passage, 4),
            "keywords": round(signals.keywords, 4),
            "neighbours": round(signals.neighbours, 4),
            "meaning": round(signals.meaning, 4),
            "speaker": query.names(speaker_of(best.unit.text)),
            "recency": round(
                self._settings.recency.factor(best.day, today=today, asked_for_recent=query.asks_for_recent),
                4,
            ),
            "namedDay": names_day(query, best.day),
            "exactToken": exact,
            "matched": list(signals.matched),
            "bestLine": best.unit.line,
        }


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


def _lookups(query: ParsedQuery) -> list[tuple[str, ...]]:
    """The keyword lookups of a question: its words, and its words on the days that it names."""
    lookups = [query.terms] if query.terms else []
    days = tuple(term for span in query.days for term in terms_of_span(span))
    if days:
        lookups.append(query.terms + days)
    return lookups


def _by_id(candidates: Sequence[Candidate]) -> dict[int, Candidate]:
    return {candidate.id: candidate for candidate in candidates}


def _chunk_score(item: Ranked, weights: Weights, query: ParsedQuery) -> float:
    """What a chunk is worth before it is read: its words count for the lines in it too."""
    words = 1.0 - weights.meaning
    return words * item.keywords + weights.meaning * item.meaning + _bonus_of_chunk(query, item.chunk)


def _bonus_of_chunk(query: ParsedQuery, chunk: Chunk) -> float:
    named = DAY_BONUS if names_day(query, chunk.day) else 0.0
    asked = ASKED_BONUS if chunk.source == "sessions" and chunk.text.startswith("User:") else 0.0
    return named + asked


def _best_beside(chunk: Chunk, keywords: Mapping[tuple[str, str, int], float]) -> float:
    """BM25 of the better of the chunks before and after, as far as they were proposed too."""
    source, path, ordinal = _place(chunk)
    return max(keywords.get((source, path, ordinal + step), 0.0) for step in (-1, 1))


def _place(chunk: Chunk) -> tuple[str, str, int]:
    return chunk.source, chunk.path, chunk.ordinal
