"""Simpler recipes behind the same questions, so that every figure has something to be compared with."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date

from plainmind.base.model import Document, split_lines
from plainmind.base.value import value
from plainmind.embed.builtin import BuiltinEmbedder
from plainmind.guests.evaluation.runner import SESSIONS, Asking, Opener, Searcher
from plainmind.guests.evaluation.scoring import Shown
from plainmind.notes.workspace import Workspace
from plainmind.sessions.transcripts import Transcripts
from plainmind.text.chunking import chunk_lines

SNIPPET_CHARS = 700
_WORD = re.compile(r"\w+")

# Of the widespread recipe: chunks by lines, all words or none, fixed weights, a hard threshold.
CHUNK_TOKENS, OVERLAP_TOKENS = 400, 80
VECTOR_WEIGHT, TEXT_WEIGHT = 0.7, 0.3
MIN_SCORE = 0.35
HALF_LIFE_DAYS = 30
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9_]+")
_CREATE = "CREATE VIRTUAL TABLE chunks USING fts5(text)"
_INSERT = "INSERT INTO chunks(rowid, text) VALUES (?, ?)"
_MATCHING = "SELECT rowid FROM chunks WHERE chunks MATCH ? ORDER BY bm25(chunks) LIMIT ?"


def documents_in(folder: str) -> list[Document]:
    """Read everything that the memory would index."""
    memory, sessions = Workspace(folder), Transcripts(os.path.join(folder, SESSIONS))
    return [source.read(found)[0] for source in (memory, sessions) for found in source.discover().files]


@value
class _Chunk:
    document: Document
    first: int  # line of the document's text
    text: str

    def shown(self, chars: int, score: float) -> Shown:
        """The first characters of a chunk, and the lines that they belong to."""
        snippet = self.text[:chars].rstrip("\n")
        last = self.first + snippet.count("\n")
        lines = self.document.line_map
        cited = (self.first, last) if lines is None else (lines[self.first - 1], lines[last - 1])
        return Shown(self.document.path, *cited, len(snippet), score)


class SeedRecipe:
    """Hybrid search as it is usually built: 0.7 × cosine + 0.3 for a chunk that has all the words.

    Every match counts 1.0, because FTS5's rank is negative and `1 / (1 + max(0, rank))` does not see it.
    """

    notes: Sequence[str] = ()

    def __init__(self, documents: Sequence[Document], asking: Asking, *, decays: bool) -> None:
        import apsw
        import numpy as np

        self._np = np
        self._asking = asking
        self._decays = decays
        self._chunks = [
            _Chunk(document, passage.start_line, passage.text)
            for document in documents
            for passage in chunk_lines(document.text, CHUNK_TOKENS, OVERLAP_TOKENS)
        ]
        self._embedder = BuiltinEmbedder()
        dims = self._embedder.identity.dims
        vectors = self._embedder.embed_documents([chunk.text for chunk in self._chunks])
        self._vectors = np.array([vector or np.zeros(dims) for vector in vectors], dtype=np.float32)
        self._words = apsw.Connection(":memory:")
        self._words.execute(_CREATE)
        with self._words:
            self._words.executemany(_INSERT, ((at, chunk.text) for at, chunk in enumerate(self._chunks)))

    def ask(self, text: str, *, today: date) -> list[Shown]:
        """Add both sides up, drop what is below the threshold."""
        candidates = min(200, max(1, 4 * self._asking.max_results))
        scores = self._by_meaning(text, candidates)
        for at in self._by_words(text, candidates):
            scores[at] = scores.get(at, 0.0) + TEXT_WEIGHT
        if self._decays:
            scores = {at: score * self._freshness(at, today) for at, score in scores.items()}
        least = MIN_SCORE if self._asking.min_score is None else self._asking.min_score
        best = sorted((at for at in scores if scores[at] >= least), key=lambda at: (-scores[at], at))
        chars = self._asking.snippet_chars or SNIPPET_CHARS
        return [self._chunks[at].shown(chars, scores[at]) for at in best[: self._asking.max_results]]

    def close(self) -> None:
        """Let go of the model and the index."""
        self._embedder.close()
        self._words.close()

    def _by_meaning(self, text: str, limit: int) -> dict[int, float]:
        if not text.strip() or not self._chunks:
            return {}
        cosines = self._vectors @ self._np.asarray(self._embedder.embed_query(text), dtype=self._np.float32)
        nearest = self._np.argsort(-cosines, kind="stable")[:limit]
        return {int(at): VECTOR_WEIGHT * float(cosines[at]) for at in nearest}

    def _by_words(self, text: str, limit: int) -> list[int]:
        tokens = _ASCII_TOKEN.findall(text)
        if not tokens:
            return []
        every = " AND ".join(f'"{token}"' for token in tokens)
        return [at for (at,) in self._words.execute(_MATCHING, (every, limit))]

    def _freshness(self, at: int, today: date) -> float:
        day = self._chunks[at].document.day
        if day is None:
            return 1.0
        age = max(0, (today - date.fromisoformat(day)).days)
        return math.exp(-math.log(2) / HALF_LIFE_DAYS * age)


class WordOverlap:
    """Single lines, those with most of the question's words first."""

    notes: Sequence[str] = ()

    def __init__(self, documents: Sequence[Document], asking: Asking) -> None:
        self._asking = asking
        self._lines = [
            (document, number, line, _words_of(line))
            for document in documents
            for number, line in enumerate(split_lines(document.text), 1)
            if line.strip()
        ]

    def ask(self, text: str, *, today: date) -> list[Shown]:  # noqa: ARG002 (words know no day)
        """Count words; of equals the first one read comes first."""
        wanted = _words_of(text)
        counts = [len(wanted & words) for _, _, _, words in self._lines]
        best = sorted((at for at, count in enumerate(counts) if count), key=lambda at: (-counts[at], at))
        return [self._shown(at, counts[at] / len(wanted)) for at in best[: self._asking.max_results]]

    def close(self) -> None:
        """Nothing to let go of."""

    def _shown(self, at: int, score: float) -> Shown:
        document, number, line, _ = self._lines[at]
        cited = number if document.line_map is None else document.line_map[number - 1]
        chars = min(len(line), self._asking.snippet_chars or SNIPPET_CHARS)
        return Shown(document.path, cited, cited, chars, score)


def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _opening(recipe: Callable[[Sequence[Document], Asking], SeedRecipe | WordOverlap]) -> Opener:
    @contextmanager
    def opened(folder: str, asking: Asking) -> Iterator[Searcher]:
        searcher = recipe(documents_in(folder), asking)
        try:
            yield searcher
        finally:
            searcher.close()

    return opened


BASELINES: Mapping[str, Opener] = {
    "seed": _opening(lambda documents, asking: SeedRecipe(documents, asking, decays=False)),
    "seed-decay": _opening(lambda documents, asking: SeedRecipe(documents, asking, decays=True)),
    "grep": _opening(WordOverlap),
}
