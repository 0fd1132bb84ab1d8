"""A sync that is not thorough believes the system when it says that nothing has changed."""

import os
import sys

import pytest
from tests.index.conftest import make_desk
from tests.support.hashing_embedder import HashingEmbedder

from plainmind.base.errors import EmbeddingError
from plainmind.index.plan import ChunkingSettings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells at once")


class Looks:
    """Counts looks at everything, and files that were read."""

    def __init__(self, desk, monkeypatch):
        source = desk.indexer._sources[0]
        self.everywhere, self.read = 0, []
        discover, read = source.discover, source.read

        def counting():
            self.everywhere += 1
            return discover()

        def noting(file):
            self.read.append(file.path)
            return read(file)

        monkeypatch.setattr(source, "discover", counting)
        monkeypatch.setattr(source, "read", noting)

    def since(self):
        seen = self.everywhere, self.read
        self.everywhere, self.read = 0, []
        return seen


@pytest.fixture
def looks(desk, monkeypatch):
    for path in ("MEMORY.md", "memory/a.md", "memory/work/b.md"):
        desk.write(path, f"text of {path}")
    desk.indexer.sync()
    looks = Looks(desk, monkeypatch)
    for _ in range(2):
        desk.indexer.sync(thorough=False)
    looks.since()
    yield looks
    desk.indexer._sources[0].close()


def test_when_nothing_happened_nothing_is_looked_at(desk, looks):
    for _ in range(3):
        assert desk.indexer.sync(thorough=False).unchanged == 3
    assert looks.since() == (0, [])


def test_a_thorough_sync_always_looks(desk, looks):
    desk.indexer.sync()

    assert looks.since() == (1, [])


def test_of_an_edited_file_only_that_file_is_looked_at(desk, looks):
    for number in range(3):
        desk.write("memory/a.md", f"edited {number}")
        report = desk.indexer.sync(thorough=False)
        assert (report.indexed, report.unchanged) == (("memory/a.md",), 2)
        assert desk.indexed_text("memory/a.md") == f"edited {number}"
    assert looks.since() == (0, ["memory/a.md"] * 3)
    assert desk.indexer.sync(thorough=False).unchanged == 3
    assert looks.since() == (0, [])


def test_an_edit_that_changes_nothing_is_only_noted(desk, looks):
    os.utime(desk.folder / "memory/a.md", ns=(1, 1))
    report = desk.indexer.sync(thorough=False)

    assert (report.indexed, report.unchanged) == ((), 3)
    assert looks.since() == (0, ["memory/a.md"])
    desk.indexer.sync(thorough=False)
    assert looks.since() == (0, [])


def test_an_edit_that_leaves_size_and_time_as_they_were_is_found(desk, looks):
    file = desk.folder / "memory/a.md"
    os.utime(file, ns=(1, 1))
    desk.indexer.sync(thorough=False)
    before = file.stat()
    file.write_text("TEXT of memory/a.md")
    os.utime(file, ns=(1, 1))
    after = file.stat()
    assert (before.st_size, before.st_mtime_ns, before.st_ino) == (after.st_size, 1, after.st_ino)

    assert desk.indexer.sync(thorough=False).indexed == ("memory/a.md",)
    assert desk.indexed_text("memory/a.md") == "TEXT of memory/a.md"


def test_new_and_deleted_files_are_found_by_a_look_at_everything(desk, looks):
    desk.write("memory/c.md", "new")
    assert desk.indexer.sync(thorough=False).indexed == ("memory/c.md",)
    (desk.folder / "memory/c.md").unlink()
    assert desk.indexer.sync(thorough=False).removed == ("memory/c.md",)
    desk.write("memory/new/d.md", "new")
    assert desk.indexer.sync(thorough=False).indexed == ("memory/new/d.md",)
    assert looks.since()[0] == 3


def test_a_file_that_became_a_link_leaves_the_index(desk, looks):
    (desk.folder / "memory/a.md").unlink()
    (desk.folder / "memory/a.md").symlink_to("work/b.md")

    assert desk.indexer.sync(thorough=False).removed == ("memory/a.md",)


def test_when_somebody_else_has_written_to_the_index_everything_is_looked_at(desk, looks):
    desk.store.remove_file("memory", "memory/a.md")

    assert desk.indexer.sync(thorough=False).indexed == ("memory/a.md",)
    assert looks.since()[0] == 1


def test_when_somebody_else_writes_during_a_sync_the_next_one_looks_at_everything(desk, looks, monkeypatch):
    replace_file = desk.store.replace_file

    def and_more(*arguments, **options):
        desk.store.remove_file("memory", "MEMORY.md")
        return replace_file(*arguments, **options)

    desk.write("memory/a.md", "edited")
    monkeypatch.setattr(desk.store, "replace_file", and_more)
    desk.indexer.sync(thorough=False)
    monkeypatch.setattr(desk.store, "replace_file", replace_file)

    assert desk.indexer.sync(thorough=False).indexed == ("MEMORY.md",)


def test_other_settings_rebuild_the_index_though_no_file_has_changed(desk, looks):
    desk.indexer._chunking = ChunkingSettings(tokens=100)

    assert desk.indexer.sync(thorough=False).rebuilt is not None


def test_what_could_not_be_read_is_tried_again(desk, looks, monkeypatch):
    (desk.folder / "memory/a.md").write_bytes(b"x" * 100)
    source = desk.indexer._sources[0]
    monkeypatch.setattr(source, "max_file_bytes", 50)
    report = desk.indexer.sync(thorough=False)

    assert report.removed == ("memory/a.md",)
    assert [failure.path for failure in report.skipped] == ["memory/a.md"]


def test_after_a_failed_provider_every_search_tries_again(tmp_path):
    class Failing(HashingEmbedder):
        calls = 0

        def embed_documents(self, texts):
            self.calls += 1
            raise EmbeddingError("the provider is down")

    folder = tmp_path / "workspace"
    folder.mkdir()
    embedder = Failing()
    desk = make_desk(tmp_path, folder, embedder=embedder)
    desk.write("MEMORY.md", "the gateway")
    for _ in range(4):
        assert desk.indexer.sync(thorough=False).degraded

    assert embedder.calls == 4
    desk.indexer._sources[0].close()


def test_chunks_that_stay_as_they_are_are_not_embedded_again(desk, looks):
    sections = [f"# Part {number}\n\nwords of part {number}\n" for number in range(20)]
    desk.write("memory/a.md", "".join(sections))
    desk.indexer.sync(thorough=False)
    desk.embedder.embedded.clear()
    sections[7] = "# Part 7\n\nother words\n"
    desk.write("memory/a.md", "".join(sections))
    desk.indexer.sync(thorough=False)

    assert desk.embedder.embedded == ["Part 7\n# Part 7\n\nother words"]
