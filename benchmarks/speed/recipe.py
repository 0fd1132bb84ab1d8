"""The widespread recipe at its own SQL: JSON embeddings, a distance for every row, FTS5 beside it, a weighted sum."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from importlib import util
from typing import Any

import apsw

from plainmind.base.model import Progress, ProgressCallback, sha256_text
from plainmind.base.value import value
from speed.corpus import Corpus, Matrix, Question
from speed.timing import Stopwatch

MODEL = "synthetic"
MAX_RESULTS, CANDIDATES, MIN_SCORE = 6, 24, 0.35
VECTOR_WEIGHT, TEXT_WEIGHT = 0.7, 0.3
_TOKEN = re.compile(r"[A-Za-z0-9_]+")

_CHUNKS = """CREATE TABLE chunks (
               id TEXT PRIMARY KEY, path TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'memory',
               start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, hash TEXT NOT NULL, model TEXT NOT NULL,
               text TEXT NOT NULL, embedding TEXT NOT NULL, updated_at INTEGER NOT NULL)"""
_BY_PATH = "CREATE INDEX idx_chunks_path ON chunks(path)"
_BY_SOURCE = "CREATE INDEX idx_chunks_source ON chunks(source)"
_WORDS = """CREATE VIRTUAL TABLE chunks_fts USING fts5(
              text, id UNINDEXED, path UNINDEXED, source UNINDEXED, model UNINDEXED,
              start_line UNINDEXED, end_line UNINDEXED)"""
_VECTORS = "CREATE VIRTUAL TABLE chunks_vec USING vec0(id TEXT PRIMARY KEY, embedding FLOAT[{dims}])"
_INSERT_CHUNK = "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_WORDS = "INSERT INTO chunks_fts VALUES (?, ?, ?, ?, ?, ?, ?)"
_INSERT_VECTOR = "INSERT INTO chunks_vec VALUES (?, ?)"
_NEAREST = """SELECT c.id, c.path, c.start_line, c.end_line, c.text, c.source,
                     vec_distance_cosine(v.embedding, ?) AS dist
                FROM chunks_vec v JOIN chunks c ON c.id = v.id
               WHERE c.model = ? AND c.source IN ('memory')
               ORDER BY dist ASC LIMIT ?"""
_MATCHING = """SELECT id, path, source, start_line, end_line, text, bm25(chunks_fts) AS rank
                 FROM chunks_fts
                WHERE chunks_fts MATCH ? AND model = ? AND source IN ('memory')
                ORDER BY rank ASC LIMIT ?"""
# The recipe leaves SQLite as it comes. With these its searches are faster: the comparison is not one of caches.
# Nor is it one of builds, so that nothing is journaled or flushed while it is filled.
_TUNED = (
    "PRAGMA cache_size = -65536",
    "PRAGMA mmap_size = 4294967296",
    "PRAGMA journal_mode = OFF",
    "PRAGMA synchronous = OFF",
)


@value
class Found:
    """A result of the recipe."""

    path: str
    start_line: int
    score: float


def extension_path() -> str | None:
    """Where sqlite-vec is, if it is installed. It is not imported: that would import numpy into every search."""
    spec = util.find_spec("sqlite_vec")
    return (
        os.path.join(spec.submodule_search_locations[0], "vec0")
        if spec and spec.submodule_search_locations
        else None
    )


class Reference:
    """An index of the recipe in one file, and its search."""

    def __init__(self, file: str, dims: int) -> None:
        extension = extension_path()
        assert extension is not None, "ask `extension_path` first"
        self._file = file
        self._db = apsw.Connection(file)
        self._db.enable_load_extension(True)  # noqa: FBT003 (APSW takes it by position)
        self._db.load_extension(extension)
        for pragma in _TUNED:
            self._db.execute(pragma).fetchall()
        for statement in (_CHUNKS, _BY_PATH, _BY_SOURCE, _WORDS, _VECTORS.replace("{dims}", str(int(dims)))):
            self._db.execute(statement)

    def fill(self, corpus: Corpus, *, progress: ProgressCallback | None = None) -> float:
        """Write every chunk three times, as the recipe does, in one transaction; the seconds that it took."""
        making, whole = Stopwatch(), Stopwatch()
        with whole, self._db:
            for number in range(corpus.files):
                if progress is not None:
                    progress(Progress(number * corpus.chunks_per_file, corpus.chunks))
                with making:
                    file, vectors = corpus.file(number), corpus.vectors(number)
                for chunk, vector in zip(file.chunks, vectors, strict=True):
                    digest = sha256_text(chunk.text)
                    lines = (chunk.start_line, chunk.end_line)
                    place = f"{chunk.source}:{chunk.path}:{chunk.start_line}:{chunk.end_line}"
                    name = sha256_text(f"{place}:{digest}:{MODEL}")
                    embedding = json.dumps(vector.tolist())
                    row = (name, chunk.path, chunk.source, *lines, digest, MODEL, chunk.text, embedding, 0)
                    self._db.execute(_INSERT_CHUNK, row)
                    self._db.execute(_INSERT_VECTOR, (name, vector.tobytes()))
                    words = (chunk.text, name, chunk.path, chunk.source, MODEL, *lines)
                    self._db.execute(_INSERT_WORDS, words)
        return whole.seconds - making.seconds

    def search(self, question: Question, *, any_word: bool = False) -> list[Found]:
        """Ask both sides and add them up, without what is below the threshold."""
        merged: dict[str, tuple[str, int, float]] = {}
        for name, path, line, _, _, _, distance in self.by_meaning(question.vector):
            merged[name] = (path, line, VECTOR_WEIGHT * (1 - distance))
        for name, path, _, line, _, _, rank in self.by_words(question.text, any_word=any_word):
            score = merged[name][2] if name in merged else 0.0
            merged[name] = (path, line, score + TEXT_WEIGHT / (1 + max(0.0, rank)))
        best = sorted(merged.values(), key=lambda found: -found[2])
        return [Found(*found) for found in best if found[2] >= MIN_SCORE][:MAX_RESULTS]

    def by_meaning(self, vector: Matrix) -> Sequence[Any]:
        """The nearest chunks, by the distance of every single one."""
        return self._db.execute(_NEAREST, (vector.tobytes(), MODEL, CANDIDATES)).fetchall()

    def by_words(self, text: str, *, any_word: bool = False) -> Sequence[Any]:
        """The chunks that have every word of a question, or any."""
        tokens = [f'"{token}"' for token in _TOKEN.findall(text)]
        if not tokens:
            return []
        matching = (" OR " if any_word else " AND ").join(tokens)
        return self._db.execute(_MATCHING, (matching, MODEL, CANDIDATES)).fetchall()

    def size(self) -> int:
        """Bytes on disk."""
        return os.path.getsize(self._file)

    def close(self) -> None:
        """Let go of the file and remove it: at a hundred thousand chunks it is a gigabyte."""
        self._db.close()
        os.remove(self._file)
