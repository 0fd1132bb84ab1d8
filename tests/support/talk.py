"""One conversation on disk, and the index of its folder."""

from __future__ import annotations

from tests.index.conftest import Clock
from tests.support.hashing_embedder import HashingEmbedder
from tests.support.transcript_files import line

from plainmind.files.system import Erasures
from plainmind.index.drivers.memory import MemoryStore
from plainmind.index.plan import ChunkingSettings, Conditions
from plainmind.index.sync import Disappearances, Indexer
from plainmind.sessions.transcripts import Transcripts

PATH = "sessions/a.jsonl"


class Remote(HashingEmbedder):
    """An embedder on another machine, which can be made to fail."""

    sends_text_to = "https://example.org"
    error = None

    def embed_documents(self, texts):
        if self.error is not None:
            raise self.error
        return super().embed_documents(texts)


class Talk:
    """One conversation, and the index of its folder."""

    def __init__(
        self, tmp_path, *, embedder=None, store=None, piece_characters=250_000, scopes=None, documents=None
    ):
        self.folder = tmp_path / "sessions"
        self.folder.mkdir(exist_ok=True)
        self.file = self.folder / "a.jsonl"
        self.state = tmp_path / "state"
        self.store = store or MemoryStore()
        self.embedder = embedder or HashingEmbedder()
        self.clock = Clock()
        self.scopes = {} if scopes is None else scopes
        self.source = Transcripts(
            str(self.folder),
            scopes=lambda: self.scopes,
            documents=documents,
            piece_characters=piece_characters,
        )
        self.indexer = Indexer(
            [self.source],
            self.store,
            self.embedder,
            ChunkingSettings(),
            Disappearances(str(self.state)),
            erasures=Erasures(str(self.state)),
            clock=self.clock,
        )

    def say(self, *texts):
        with self.file.open("ab") as file:
            for text in texts:
                file.write(line("user", text))

    def sync(self, **conditions):
        return self.indexer.sync(conditions=Conditions(**conditions))

    def chunks(self, path=PATH):
        with self.store.reading() as reader:
            return reader.chunks_between("sessions", path, 1, 10**9)

    def said(self):
        return [chunk.text.removeprefix("User: ") for chunk in self.chunks()]

    def hash(self):
        with self.store.reading() as reader:
            return reader.files()["sessions", PATH].hash

    def embedded(self):
        texts = [text.removeprefix("User: ") for text in self.embedder.embedded]
        self.embedder.embedded.clear()
        return texts

    def digest_of_rebuild(self, tmp_path):
        """What the index would be, made at once."""
        fresh = Talk(tmp_path, embedder=HashingEmbedder(), scopes=self.scopes)
        fresh.indexer.sync(force=True)
        return fresh.store.digest()
