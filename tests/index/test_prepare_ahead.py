"""Batches for a provider that is waited for: the next are on their way while one is written."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing

from tests.support.hashing_embedder import HashingEmbedder

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import Document, FileState, Vector
from plainmind.index import sync_process
from plainmind.index.chunks import Preparation
from plainmind.index.plan import ChunkingSettings
from plainmind.index.sync_process import ReadFile, batches, preparer_for

TEXTS = [f"file {number} " + "word " * 30_000 for number in range(12)]
FILES = [
    ReadFile(
        FileState(f"{number}.md", "memory", "h", 1, 1, 1), Document(f"{number}.md", "memory", text), None, 0
    )
    for number, text in enumerate(TEXTS)
]
SIZE = sum(map(len, TEXTS))


def prepare_files(files, here, *, total_bytes):
    """Prepare files as a sync does, and give what is done as soon as it is."""
    with closing(preparer_for(here, total_bytes=total_bytes, tell=print)) as preparer:
        for batch in batches(files, here):
            yield from preparer.add(batch)
        yield from preparer.finish()


class Waiting(HashingEmbedder):
    """Tells how many calls were there at once."""

    def __init__(self, *, failing: str = "nothing", alone: bool = False) -> None:
        super().__init__()
        self.failing = failing
        self.turn = threading.Lock()
        self.now = self.most = 0
        self.together = threading.Event()
        if alone:
            self.together.set()

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        with self.turn:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == 2:
                self.together.set()
        self.together.wait(60)
        with self.turn:
            self.now -= 1
        if any(self.failing in text for text in texts):
            raise EmbeddingError("away")
        return super().embed_documents(texts)


def test_the_next_batch_is_asked_for_while_the_first_is_under_way_and_order_is_kept() -> None:
    embedder = Waiting()
    ready = [*prepare_files(FILES, Preparation(ChunkingSettings(), embedder), total_bytes=SIZE)]

    assert [file.state.path for batch, _ in ready for file in batch] == [file.state.path for file in FILES]
    assert len(ready) > 3
    assert embedder.most == 2
    for batch, made in ready:
        for file, chunks in zip(batch, made.documents, strict=True):
            assert {each.chunk.path for each in chunks} == {file.state.path}


def test_a_batch_that_fails_says_so_and_the_others_do_not() -> None:
    preparation = Preparation(ChunkingSettings(), Waiting(failing="file 7 "))
    ready = [*prepare_files(FILES, preparation, total_bytes=SIZE)]
    failed = [batch for batch, made in ready if made.failure is not None]

    assert len(failed) == 1
    assert "7.md" in {file.state.path for file in failed[0]}


def test_whoever_gives_up_leaves_no_thread_behind() -> None:
    ready = prepare_files(FILES, Preparation(ChunkingSettings(), Waiting()), total_bytes=SIZE)
    next(ready)
    ready.close()

    for thread in threading.enumerate():
        if thread.name.startswith("plainmind-prepare"):
            thread.join(60)
            assert not thread.is_alive()


def test_a_little_is_prepared_without_threads() -> None:
    embedder = Waiting(alone=True)
    few = prepare_files(FILES[:3], Preparation(ChunkingSettings(), embedder), total_bytes=1000)
    assert len([*few]) >= 1
    assert embedder.most == 1
    assert sync_process.REMOTE_CHARACTERS > 1000
