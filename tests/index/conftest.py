from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.hashing_embedder import HashingEmbedder

from plainmind.files.system import Erasures
from plainmind.index.drivers.memory import MemoryStore
from plainmind.index.plan import ChunkingSettings
from plainmind.index.sync import Disappearances, Indexer
from plainmind.notes.workspace import Workspace


class Clock:
    """A clock that stands still until it is moved; far enough ahead that no file looks freshly written."""

    def __init__(self) -> None:
        self.now = 4_000_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Desk:
    """A workspace, its index, and the indexer between them."""

    folder: Path
    store: MemoryStore
    embedder: HashingEmbedder
    clock: Clock
    indexer: Indexer

    def write(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def indexed_text(self, path: str) -> str:
        with self.store.reading() as reader:
            return "\n".join(chunk.text for chunk in reader.chunks_between("memory", path, 1, 10**6))

    def indexed_paths(self) -> set[str]:
        with self.store.reading() as reader:
            return {path for _, path in reader.files()}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return make_desk(tmp_path, folder)


def make_desk(tmp_path: Path, folder: Path, store=None, chunking=None, embedder=None) -> Desk:
    store = store or MemoryStore()
    embedder = embedder or HashingEmbedder()
    clock = Clock()
    indexer = Indexer(
        [Workspace(str(folder))],
        store,
        embedder,
        chunking or ChunkingSettings(),
        Disappearances(str(tmp_path / "state")),
        erasures=Erasures(str(tmp_path / "state")),
        clock=clock,
    )
    return Desk(folder, store, embedder, clock, indexer)
