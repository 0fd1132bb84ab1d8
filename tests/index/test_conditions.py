"""A sync under conditions: what may replace an index, who hears of it before it costs, and what stays private."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.index.conftest import make_desk
from tests.support.hashing_embedder import HashingEmbedder

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.embed.succession import Withheld
from plainmind.files.system import Erasures
from plainmind.index.drivers.memory import MemoryStore
from plainmind.index.plan import WITHOUT_VECTORS, ChunkingSettings, Conditions, RebuildGivenUp
from plainmind.index.sync import Disappearances, Indexer
from plainmind.notes.workspace import Workspace
from plainmind.sessions.transcripts import Transcripts

WHOLE, NEVER = Conditions("whole"), Conditions("never")


class Other(HashingEmbedder):
    """Another model, of a provider that may fail."""

    identity = EmbedderIdentity("other", "model", dims=64)

    def __init__(self, *, fails: bool = False, host: str | None = None) -> None:
        super().__init__()
        self.fails = fails
        self.sends_text_to = host  # type: ignore[assignment]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        if self.fails:
            raise EmbeddingError("the other one is away")
        return super().embed_documents(texts)


def with_embedder(desk, embedder, tmp_path: Path, chunking: ChunkingSettings | None = None):
    return make_desk(tmp_path, desk.folder, desk.store, chunking, embedder)


def made_with(desk) -> str:
    with desk.store.reading() as reader:
        return reader.fingerprint().embedder.provider


def test_a_whole_rebuild_that_fails_leaves_the_old_index(desk, tmp_path) -> None:
    desk.write("MEMORY.md", "the old text")
    desk.indexer.sync()
    other = with_embedder(desk, Other(fails=True), tmp_path)

    with pytest.raises(RebuildGivenUp, match="the other one is away"):
        other.indexer.sync(conditions=WHOLE)
    assert made_with(desk) == "hashing"
    assert other.indexer.sync().degraded == ("embedding: the other one is away",)
    assert made_with(desk) == "other", "without the condition it is replaced all the same"


def test_a_whole_rebuild_is_only_asked_of_what_replaces_something(desk, tmp_path) -> None:
    desk.write("MEMORY.md", "some text")
    report = with_embedder(desk, Other(fails=True), tmp_path).indexer.sync(conditions=WHOLE)

    assert report.indexed == ("MEMORY.md",)
    assert report.degraded


def test_an_index_that_is_kept_takes_in_what_is_new_as_it_was_made(desk, tmp_path) -> None:
    desk.write("MEMORY.md", "the old text")
    desk.indexer.sync()
    other = with_embedder(desk, HashingEmbedder(), tmp_path, ChunkingSettings(tokens=100))
    desk.write("memory/new.md", "a new text")
    report = other.indexer.sync(conditions=NEVER)

    assert (report.rebuilt, report.indexed) == (None, ("memory/new.md",))
    assert other.indexer.sync(conditions=NEVER, thorough=False).unchanged == 2
    assert other.indexer.rebuild_reason() is not None
    assert other.indexer.sync().rebuilt is not None


def test_where_vectors_are_withheld_a_file_goes_in_without_them_once(desk, tmp_path) -> None:
    desk.write("MEMORY.md", "the old text")
    desk.indexer.sync()
    silent = Withheld(desk.embedder.identity, EmbeddingError("not today"))
    withheld = with_embedder(desk, silent, tmp_path)
    desk.write("MEMORY.md", "the new text")

    first, second = (withheld.indexer.sync(conditions=NEVER) for _ in range(2))
    assert (first.indexed, first.degraded) == (("MEMORY.md",), ("embedding: not today",))
    assert (second.indexed, second.unchanged) == ((), 1)
    with desk.store.reading() as reader:
        assert reader.files()["memory", "MEMORY.md"].hash.startswith(WITHOUT_VECTORS)
    assert desk.indexer.sync().indexed == ("MEMORY.md",)
    assert desk.indexer.sync().unchanged == 1


class Listener:
    """Hears what is about to be embedded."""

    def __init__(self, refusal: str | None = None) -> None:
        self.refusal = refusal
        self.heard: list[tuple[int, list[str]]] = []

    def __call__(self, size: int, texts: Callable[[], Iterator[str]]) -> str | None:
        self.heard.append((size, list(texts())))
        return self.refusal


def test_whoever_listens_hears_what_is_about_to_be_embedded_and_nothing_else(desk) -> None:
    listener = Listener()
    desk.write("MEMORY.md", "# Head\n\nthe text")
    desk.indexer.sync(conditions=Conditions(before_embedding=listener))
    desk.indexer.sync(conditions=Conditions(before_embedding=listener))

    assert listener.heard == [(len("# Head\n\nthe text"), ["Head\n# Head\n\nthe text"])]
    assert desk.embedder.embedded == listener.heard[0][1]


def test_what_is_refused_is_not_embedded_and_waits(desk) -> None:
    listener = Listener("too dear")
    desk.write("MEMORY.md", "the text")
    refused = desk.indexer.sync(conditions=Conditions(before_embedding=listener))
    again = desk.indexer.sync(conditions=Conditions(before_embedding=listener))

    assert refused.degraded == ("embedding: too dear",)
    assert again.indexed == ()
    assert desk.embedder.embedded == []
    assert desk.indexer.sync().indexed == ("MEMORY.md",)
    assert desk.embedder.embedded == ["the text"]


def test_a_refusal_gives_a_whole_rebuild_up(desk, tmp_path) -> None:
    desk.write("MEMORY.md", "the text")
    desk.indexer.sync()
    other = with_embedder(desk, Other(), tmp_path)

    with pytest.raises(RebuildGivenUp, match="too dear"):
        other.indexer.sync(conditions=Conditions("whole", Listener("too dear")))
    assert other.embedder.embedded == []


def test_vectors_of_an_embedder_that_has_changed_are_not_remembered(desk) -> None:
    desk.write("MEMORY.md", "the text")
    desk.indexer.sync()
    desk.embedder.identity = EmbedderIdentity("hashing", "another", dims=64)
    desk.indexer.sync()

    assert desk.embedder.embedded == ["the text"] * 2


@pytest.mark.parametrize("host", [None, "api.example"])
def test_a_private_source_is_embedded_only_where_it_stays_here(tmp_path: Path, host: str | None) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("a note")
    (tmp_path / "sessions").mkdir()
    message = {"type": "message", "message": {"role": "user", "content": "a secret"}}
    (tmp_path / "sessions" / "one.jsonl").write_text(json.dumps(message) + "\n")
    embedder, store = Other(host=host), MemoryStore()
    indexer = Indexer(
        [Workspace(str(tmp_path / "notes")), Transcripts(str(tmp_path / "sessions"))],
        store,
        embedder,
        ChunkingSettings(),
        Disappearances(str(tmp_path / "state")),
        erasures=Erasures(str(tmp_path / "state")),
        private=frozenset({"sessions"}),
    )
    report = indexer.sync()

    assert len(report.indexed) == 2
    assert report.degraded == ()
    assert any("secret" in text for text in embedder.embedded) == (host is None)
    assert indexer.withheld == ([] if host is None else ["sessions"])
    assert ("sessions by words" in indexer.fingerprint.chunking) == (host is not None)
