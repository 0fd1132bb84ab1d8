"""An index of a synthetic corpus, beside the files that it is the index of, so that a sync finds nothing to do."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from plainmind.base.model import EmbeddedChunk, FileState, IndexFingerprint, Progress, ProgressCallback
from plainmind.guests.evaluation.speed.corpus import Corpus, SyntheticFile
from plainmind.guests.evaluation.speed.timing import Bulk, Stopwatch
from plainmind.guests.evaluation.speed.vectors import Matrix
from plainmind.index.chunks import terms_of
from plainmind.index.protocol import IndexStore
from plainmind.text.hashing import sha256_text

_LONG_AGO_NS = 1_700_000_000_000_000_000


@dataclass(frozen=True, slots=True)
class Filled:
    """What was put in, and how long the store took for it; inventing the text and finding its terms is apart."""

    text_bytes: int
    store: Bulk
    making_seconds: float


def write_files(corpus: Corpus, workspace: str, *, progress: ProgressCallback | None = None) -> int:
    """Write a corpus as a workspace; how many bytes that were."""
    return sum(
        _written(workspace, _reported(corpus, number, progress)).size for number in range(corpus.files)
    )


def fill(
    corpus: Corpus,
    store: IndexStore,
    fingerprint: IndexFingerprint,
    *,
    workspace: str | None = None,
    progress: ProgressCallback | None = None,
) -> Filled:
    """Make an index of the corpus with its own vectors; with a workspace, write the files there too."""
    text_bytes = 0
    whole, making = Stopwatch(), Stopwatch()
    with whole, store.rebuild(fingerprint, reason="a corpus to measure") as building:
        for number in range(corpus.files):
            with making:
                file = _reported(corpus, number, progress)
                state = _state(file, None) if workspace is None else _written(workspace, file)
                chunks = _embedded(file, corpus.vectors(number))
            text_bytes += state.size
            building.replace_file(state, chunks)
    return Filled(
        text_bytes,
        Bulk(corpus.chunks, whole.seconds - making.seconds, whole.cpu_seconds - making.cpu_seconds),
        making.seconds,
    )


def _reported(corpus: Corpus, number: int, progress: ProgressCallback | None) -> SyntheticFile:
    if progress is not None:
        progress(Progress(number * corpus.chunks_per_file, corpus.chunks))
    return corpus.file(number)


def _embedded(file: SyntheticFile, vectors: Matrix) -> Sequence[EmbeddedChunk]:
    return [
        EmbeddedChunk(chunk, array("f", vector.tobytes()), terms_of(chunk))
        for chunk, vector in zip(file.chunks, vectors, strict=True)
    ]


def _written(workspace: str, file: SyntheticFile) -> FileState:
    """Write a file as if long ago: one that is only seconds old would be read again at the next sync."""
    path = os.path.join(workspace, file.path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as opened:
        opened.write(file.text.encode())
    os.utime(path, ns=(_LONG_AGO_NS, _LONG_AGO_NS))
    return _state(file, os.stat(path))


def _state(file: SyntheticFile, status: os.stat_result | None) -> FileState:
    return FileState(
        path=file.path,
        source="memory",
        hash=sha256_text(file.text),
        size=len(file.text.encode()),
        mtime_ns=status.st_mtime_ns if status else _LONG_AGO_NS,
        inode=status.st_ino if status else 0,
    )
