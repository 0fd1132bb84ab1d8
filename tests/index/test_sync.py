import threading

import pytest
from tests.index.conftest import make_desk
from tests.support.hashing_embedder import HashingEmbedder

from plainmind.base.errors import ConflictError, EmbeddingError, LockTimeout, WorkspaceError
from plainmind.base.model import EVERY_SCOPE, EmbedderIdentity, SearchFilter
from plainmind.files.system import Erasures
from plainmind.index.drivers.memory import MemoryStore
from plainmind.index.drivers.sqlite import SqliteStore
from plainmind.index.plan import WITHOUT_VECTORS, ChunkingSettings
from plainmind.index.protocol import keyword_candidates

EVERYTHING = SearchFilter(frozenset({"memory", "sessions"}), EVERY_SCOPE)


def test_the_first_sync_indexes_everything_and_says_why(desk):
    desk.write("MEMORY.md", "the gateway runs on a Mac Studio")
    report = desk.indexer.sync()

    assert report.indexed == ("MEMORY.md",)
    assert report.rebuilt == "there is no index yet"
    assert desk.indexed_text("MEMORY.md") == "the gateway runs on a Mac Studio"


def test_a_second_sync_reads_nothing(desk):
    desk.write("MEMORY.md", "text")
    desk.indexer.sync()
    desk.embedder.embedded.clear()
    report = desk.indexer.sync()

    assert (report.indexed, report.unchanged, report.rebuilt) == ((), 1, None)
    assert desk.embedder.embedded == []


def test_an_edited_file_replaces_its_old_text(desk):
    desk.write("MEMORY.md", "old words")
    desk.indexer.sync()
    desk.write("MEMORY.md", "new words, and more of them")
    report = desk.indexer.sync()

    assert report.indexed == ("MEMORY.md",)
    assert "old" not in desk.indexed_text("MEMORY.md")


def test_an_edit_that_leaves_size_and_time_alone_is_seen_when_the_file_was_fresh(desk):
    import os

    desk.write("MEMORY.md", "aaaa")
    target = desk.folder / "MEMORY.md"
    desk.clock.now = target.stat().st_mtime + 1.0
    desk.indexer.sync()
    before = target.stat()
    target.write_text("bbbb")
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert desk.indexer.sync().indexed == ("MEMORY.md",)
    assert desk.indexed_text("MEMORY.md") == "bbbb"


def test_a_new_time_without_a_new_text_is_only_noted(desk):
    desk.write("MEMORY.md", "same")
    desk.indexer.sync()
    desk.write("MEMORY.md", "same")
    report = desk.indexer.sync()

    assert (report.indexed, report.unchanged) == ((), 1)


def test_a_deleted_file_leaves_the_index(desk):
    desk.write("MEMORY.md", "stays")
    desk.write("memory/a.md", "goes")
    desk.indexer.sync()
    (desk.folder / "memory" / "a.md").unlink()

    assert desk.indexer.sync().removed == ("memory/a.md",)
    assert desk.indexed_paths() == {"MEMORY.md"}


def test_an_unmounted_workspace_loses_nothing_until_it_stays_away(desk, tmp_path):
    for number in range(10):
        desk.write(f"memory/{number}.md", f"note {number}")
    desk.indexer.sync()
    desk.folder.rename(tmp_path / "elsewhere")

    report = desk.indexer.sync()
    assert len(report.withheld) == 10
    assert len(desk.indexed_paths()) == 10

    desk.folder.mkdir()
    desk.indexer.sync()
    desk.clock.now += 30
    assert desk.indexer.sync().removed == ()
    desk.clock.now += 31
    assert len(desk.indexer.sync().removed) == 10


def test_a_rebuild_waits_for_an_unmounted_workspace(desk, tmp_path):
    desk.write("MEMORY.md", "precious")
    desk.indexer.sync()
    desk.folder.rename(tmp_path / "elsewhere")
    other = make_desk(tmp_path, desk.folder, desk.store, ChunkingSettings(tokens=100))
    report = other.indexer.sync()

    assert report.rebuilt is None
    assert any("not there" in note for note in report.degraded)
    assert desk.indexed_paths() == {"MEMORY.md"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"chunking": ChunkingSettings(tokens=100)}, "chunking"),
        ({"embedder": "other"}, "embedding model"),
    ],
)
def test_another_way_to_make_the_index_rebuilds_it_with_the_reason(desk, tmp_path, change, reason):
    desk.write("MEMORY.md", "text")
    desk.indexer.sync()
    if "embedder" in change:
        embedder = HashingEmbedder()
        embedder.identity = EmbedderIdentity("hashing", "another-model", dims=64)
        change = {"embedder": embedder}
    report = make_desk(tmp_path, desk.folder, desk.store, **change).indexer.sync()

    assert reason in report.rebuilt
    assert report.indexed == ("MEMORY.md",)


def test_force_makes_the_index_anew(desk):
    desk.write("MEMORY.md", "text")
    desk.indexer.sync()

    assert desk.indexer.sync(force=True).rebuilt == "asked for"


def test_one_bad_file_is_reported_and_the_others_are_indexed(desk, monkeypatch):
    desk.write("MEMORY.md", "good")
    desk.write("memory/bad.md", "bad")
    source = desk.indexer._sources[0]
    read = source.read

    def refusing(file):
        if file.path == "memory/bad.md":
            from plainmind.base.errors import WorkspaceError

            raise WorkspaceError("cannot be read")
        return read(file)

    monkeypatch.setattr(source, "read", refusing)
    report = desk.indexer.sync()

    assert report.indexed == ("MEMORY.md",)
    assert [(failure.path, failure.reason) for failure in report.failed] == [
        ("memory/bad.md", "cannot be read")
    ]


class FailingEmbedder(HashingEmbedder):
    fails = True

    def embed_documents(self, texts):
        if self.fails:
            raise EmbeddingError("the provider is down")
        return super().embed_documents(texts)


def test_without_vectors_keywords_still_answer_and_the_next_sync_tries_again(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    embedder = FailingEmbedder()
    desk = make_desk(tmp_path, folder, embedder=embedder)
    desk.write("MEMORY.md", "the gateway")

    report = desk.indexer.sync()
    assert report.degraded == ("embedding: the provider is down",)
    with desk.store.reading() as reader:
        assert reader.files()["memory", "MEMORY.md"].hash.startswith(WITHOUT_VECTORS)
        assert keyword_candidates(reader, ["gateway"], where=EVERYTHING, limit=5)

    embedder.fails = False
    assert desk.indexer.sync().indexed == ("MEMORY.md",)
    assert desk.indexer.sync().unchanged == 1


def test_texts_that_stand_twice_are_embedded_once(desk):
    desk.write("memory/a.md", "the same note")
    desk.write("memory/b.md", "the same note")
    desk.indexer.sync()

    assert desk.embedder.embedded.count("the same note") == 1


def test_progress_counts_every_file(desk):
    for number in range(3):
        desk.write(f"memory/{number}.md", "text")
    seen = []
    desk.indexer.sync(progress=seen.append)

    assert [(step.completed, step.total) for step in seen] == [(1, 3), (2, 3), (3, 3)]


def test_a_file_that_somebody_else_indexed_meanwhile_is_read_again(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    store = MemoryStore()

    class Meanwhile(HashingEmbedder):
        """While this one embeds, another process indexes a newer text."""

        def embed_documents(self, texts):
            if "first" in texts and store.digest():
                (folder / "MEMORY.md").write_text("second, and longer")
                make_desk(tmp_path, folder, store).indexer.sync()
            return super().embed_documents(texts)

    make_desk(tmp_path, folder, store).indexer.sync()
    desk = make_desk(tmp_path, folder, store, embedder=Meanwhile())
    desk.write("MEMORY.md", "first")
    desk.indexer.sync()

    assert desk.indexed_text("MEMORY.md") == "second, and longer"


def test_text_that_was_erased_while_it_was_embedded_does_not_come_back(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()

    class Meanwhile(HashingEmbedder):
        def embed_documents(self, texts):
            if "secret\nharmless" in texts:
                with Erasures(str(tmp_path / "state")).run_alone():
                    (folder / "MEMORY.md").write_text("harmless")
            return super().embed_documents(texts)

    desk = make_desk(tmp_path, folder, embedder=Meanwhile())
    desk.indexer.sync()
    desk.write("MEMORY.md", "secret\nharmless")
    desk.indexer.sync()

    assert desk.indexed_text("MEMORY.md") == "harmless"


def test_text_that_was_read_while_it_was_being_erased_does_not_come_back(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    begun, read = threading.Event(), threading.Event()

    def erase():
        with Erasures(str(tmp_path / "state")).run_alone():
            begun.set()
            read.wait(60)
            (folder / "MEMORY.md").write_text("harmless")

    class Meanwhile(HashingEmbedder):
        def embed_documents(self, texts):
            if "secret\nharmless" in texts:
                read.set()
                eraser.join()
            return super().embed_documents(texts)

    desk = make_desk(tmp_path, folder, embedder=Meanwhile())
    desk.indexer.sync()
    desk.write("MEMORY.md", "secret\nharmless")
    eraser = threading.Thread(target=erase)
    eraser.start()
    begun.wait(60)
    desk.indexer.sync()

    assert desk.indexed_text("MEMORY.md") == "harmless"


def test_a_rebuild_by_another_process_is_not_mixed_with(desk, monkeypatch):
    desk.write("MEMORY.md", "text")
    desk.indexer.sync()
    desk.write("MEMORY.md", "text again")

    def refuse(*_args, **_options):
        raise ConflictError("the index was made with another model")

    monkeypatch.setattr(desk.store, "replace_file", refuse)

    assert any("another model" in note for note in desk.indexer.sync().degraded)


def test_an_index_kept_up_step_by_step_equals_one_made_at_once(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    store = SqliteStore(str(tmp_path / "index"))
    desk = make_desk(tmp_path, folder, store)
    for step in range(6):
        desk.write(f"memory/{step % 3}.md", f"# Part {step}\n\n" + f"words of step {step}\n" * (step + 1))
        desk.indexer.sync()
    stepwise = store.digest()
    desk.indexer.sync(force=True)

    assert store.digest() == stepwise
    store.close()


def test_the_same_files_give_the_same_digest_in_another_store(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    one, other = make_desk(tmp_path, folder), make_desk(tmp_path, folder, MemoryStore())
    one.write("MEMORY.md", "text")
    one.indexer.sync()
    other.indexer.sync()

    assert one.store.digest() == other.store.digest()


def test_a_provider_that_failed_is_not_asked_again_while_everybody_waits_for_the_rebuild(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()

    class Counting(HashingEmbedder):
        calls = 0

        def embed_documents(self, texts):
            self.calls += 1
            raise EmbeddingError("the provider is down")

    embedder = Counting()
    desk = make_desk(tmp_path, folder, embedder=embedder)
    desk.write("MEMORY.md", "the gateway")
    desk.indexer.sync()

    assert embedder.calls == 1
    desk.indexer.sync()
    assert embedder.calls == 2


def test_an_index_that_cannot_be_written_to_is_not_blamed_on_the_files(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()

    class Locked(MemoryStore):
        def touch_file(self, file):
            raise LockTimeout("another process writes")

    desk = make_desk(tmp_path, folder, Locked())
    desk.write("MEMORY.md", "same")
    desk.indexer.sync()
    desk.write("MEMORY.md", "same")

    with pytest.raises(LockTimeout):
        desk.indexer.sync()


def test_a_file_that_fails_at_first_and_is_caught_up_with_is_told_as_indexed(desk, monkeypatch):
    desk.write("MEMORY.md", "good")
    source = desk.indexer._sources[0]
    read, refused = source.read, []

    def refusing_once(file):
        if not refused:
            refused.append(file)
            raise WorkspaceError("cannot be read")
        return read(file)

    monkeypatch.setattr(source, "read", refusing_once)
    report = desk.indexer.sync()

    assert (report.indexed, report.failed) == (("MEMORY.md",), ())


def test_a_file_that_others_keep_indexing_is_no_failure(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    store = MemoryStore()
    make_desk(tmp_path, folder, store).indexer.sync()

    class Meanwhile(HashingEmbedder):
        """Each time this one embeds, another process appends to the file and indexes it."""

        def embed_documents(self, texts):
            with (folder / "MEMORY.md").open("a") as file:
                file.write(f"another note {len(self.embedded)}\n")
            make_desk(tmp_path, folder, store).indexer.sync()
            return super().embed_documents(texts)

    desk = make_desk(tmp_path, folder, store, embedder=Meanwhile())
    desk.write("MEMORY.md", "my own note\n")
    report = desk.indexer.sync()

    assert report.failed == ()
    assert "my own note" in desk.indexed_text("MEMORY.md")


def test_text_that_keeps_being_erased_is_told(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()

    class Meanwhile(HashingEmbedder):
        def embed_documents(self, texts):
            with Erasures(str(tmp_path / "state")).run_alone():
                (folder / "MEMORY.md").write_text(f"a note, less {len(self.embedded)} words")
            return super().embed_documents(texts)

    store = MemoryStore()
    make_desk(tmp_path, folder, store).indexer.sync()
    desk = make_desk(tmp_path, folder, store, embedder=Meanwhile())
    desk.write("MEMORY.md", "a note")
    report = desk.indexer.sync()

    assert [failure.path for failure in report.failed] == ["MEMORY.md"]
    assert "erased" in report.failed[0].reason
