"""Notes as files to create, rewrite, rename and delete: only notes, only in their folder, always with a way back."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Thread

import pytest

from plainmind.base.errors import ConflictError, NotFound, PathNotAllowed, WorkspaceError
from plainmind.files.append import Tail, append
from plainmind.files.history import History
from plainmind.files.system import Erasures
from plainmind.notes.memory_files import Entry, MemoryFiles
from plainmind.notes.workspace import Workspace


class Desk:
    """A workspace on disk, and the files of one of its folders."""

    def __init__(self, folder: Path, within: str = "memory") -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.history = History(str(folder / "state" / "history"))
        self.files = MemoryFiles(
            Workspace(str(self.workspace)),
            self.history,
            erasures=Erasures(str(folder / "state")),
            state_dir=str(folder / "state"),
            folder=within,
        )

    def put(self, path: str, text: str = "a note\n") -> Path:
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def operations(self, path: str) -> list[str]:
        return [version.operation for version in reversed(self.history.versions(path))]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_created_note_lies_in_the_folder_and_is_discovered(desk: Desk) -> None:
    desk.files.create("projects/pelican.md", "# Pelican\n")

    assert (desk.workspace / "memory/projects/pelican.md").read_text() == "# Pelican\n"
    assert [found.path for found in Workspace(str(desk.workspace)).discover().files] == [
        "memory/projects/pelican.md"
    ]


def test_the_curated_memory_is_a_file_of_the_folder(desk: Desk) -> None:
    desk.put("MEMORY.md", "# Memory\n")
    desk.put("memory/2026-11-15.md")

    assert [entry.name for entry in desk.files.entries()] == ["2026-11-15.md", "MEMORY.md"]
    assert desk.files.read("MEMORY.md").text == "# Memory\n"
    assert desk.files.citation_of("MEMORY.md") == "MEMORY.md"
    assert desk.files.citation_of("2026-11-15.md") == "memory/2026-11-15.md"


def test_the_curated_memory_has_one_name_whatever_its_case(desk: Desk) -> None:
    desk.put("memory.md", "# Memory\n")

    assert desk.files.read("MEMORY.md").text == "# Memory\n"
    with pytest.raises(ConflictError):
        desk.files.create("MEMORY.md", "another\n")


def test_the_folder_of_others_knows_nothing_of_the_curated_memory(tmp_path: Path) -> None:
    desk = Desk(tmp_path, within="memory/shared-with/group-7")
    desk.put("MEMORY.md", "private\n")
    desk.put("memory/private.md", "private\n")
    desk.put("memory/shared-with/group-7/plans.md")

    assert [entry.name for entry in desk.files.entries()] == ["plans.md"]
    assert desk.files.is_folder("MEMORY.md") is None
    for name in ("MEMORY.md", "../../private.md", "../group-8/x.md"):
        with pytest.raises((NotFound, PathNotAllowed)):
            desk.files.read(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("note.txt", "Markdown files"),
        (".hidden.md", "hidden files"),
        (".git/note.md", "hidden files"),
        ("a/../../../escape.md", "a part"),
        ("/etc/passwd.md", "absolute"),
        ("a\\b.md", "backslash"),
        ("line\nbreak.md", "control character"),
        ("x.sync-conflict-1.md", "sync conflict"),
        ("a/" * 70 + "deep.md", "folders deep"),
        ("n" * 300 + ".md", "longer than 255"),
    ],
)
def test_a_name_that_would_never_be_found_again_is_refused(desk: Desk, name: str, reason: str) -> None:
    with pytest.raises(PathNotAllowed, match=reason):
        desk.files.create(name, "text")

    assert list(desk.workspace.rglob("*")) == []


def test_what_is_not_a_note_is_not_to_be_seen(desk: Desk, tmp_path: Path) -> None:
    desk.put("memory/note.md")
    desk.put("memory/picture.png")
    desk.put("memory/.obsidian/settings.md")
    desk.put("README.md")
    (tmp_path / "secret.md").write_text("secret\n")
    (desk.workspace / "memory/link.md").symlink_to(tmp_path / "secret.md")
    (desk.workspace / "memory/folder").symlink_to(tmp_path)
    os.link(tmp_path / "secret.md", desk.workspace / "memory/twin.md")

    assert desk.files.entries() == (Entry("note.md", 7, is_folder=False),)
    for name in ("picture.png", "link.md", "twin.md", "folder", "folder/secret.md", ".obsidian"):
        assert desk.files.is_folder(name) is None, name


def test_nothing_is_written_through_a_link(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    desk.put("memory/note.md")
    (desk.workspace / "memory/folder").symlink_to(outside)

    with pytest.raises(PathNotAllowed):
        desk.files.create("folder/note.md", "text")
    with pytest.raises(PathNotAllowed):
        desk.files.rename("note.md", "folder/note.md")

    assert list(outside.iterdir()) == []
    assert desk.files.read("note.md").text == "a note\n"


def test_a_rewrite_is_refused_when_the_file_is_another_by_now(desk: Desk) -> None:
    file = desk.put("memory/note.md")
    read = desk.files.read("note.md")
    file.write_text("by hand\n")

    with pytest.raises(ConflictError):
        desk.files.rewrite("note.md", "by the tool\n", base_hash=read.hash, reason="insert")

    assert file.read_text() == "by hand\n"


def test_bytes_that_are_no_text_stay_as_they_are(desk: Desk) -> None:
    file = desk.put("memory/note.md")
    file.write_bytes(b"caf\xe9 at nine\r\n")
    read = desk.files.read("note.md")

    desk.files.rewrite("note.md", read.text.replace("nine", "ten"), base_hash=read.hash, reason="str_replace")

    assert file.read_bytes() == b"caf\xe9 at ten\r\n"


def test_a_deleted_folder_goes_with_all_its_notes_and_each_is_kept(desk: Desk) -> None:
    desk.put("memory/work/a.md", "one\n")
    desk.put("memory/work/deep/b.md", "two\n")
    (desk.workspace / "memory/work/empty").mkdir()

    assert sorted(desk.files.delete("work")) == ["memory/work/a.md", "memory/work/deep/b.md"]

    assert not (desk.workspace / "memory/work").exists()
    assert desk.operations("memory/work/deep/b.md") == ["before delete", "delete"]


def test_a_folder_that_holds_more_than_notes_stays_whole(desk: Desk) -> None:
    desk.put("memory/work/a.md")
    desk.put("memory/work/deep/scan.pdf")

    for act in (lambda: desk.files.delete("work"), lambda: desk.files.rename("work", "archive")):
        with pytest.raises(PathNotAllowed, match=r"also holds `scan\.pdf`"):
            act()

    assert (desk.workspace / "memory/work/a.md").exists()
    assert not (desk.workspace / "memory/archive").exists()


def test_a_renamed_folder_has_everything_under_its_new_name(desk: Desk) -> None:
    desk.put("memory/work/a.md", "one\n")
    desk.put("memory/work/deep/b.md", "two\n")
    (desk.workspace / "memory/work/empty").mkdir()

    gone = desk.files.rename("work", "archive/2026")

    assert sorted(gone) == ["memory/work/a.md", "memory/work/deep/b.md"]
    assert not (desk.workspace / "memory/work").exists()
    assert [entry.name for entry in desk.files.entries("archive/2026")] == [
        "a.md",
        "deep",
        "deep/b.md",
        "empty",
    ]
    assert desk.operations("memory/archive/2026/a.md") == ["rename"]


def test_nothing_is_moved_into_itself_or_over_another(desk: Desk) -> None:
    desk.put("memory/work/a.md", "one\n")
    desk.put("memory/b.md", "two\n")

    with pytest.raises(PathNotAllowed, match="into itself"):
        desk.files.rename("work", "work/inner")
    with pytest.raises(ConflictError):
        desk.files.rename("b.md", "work/a.md")

    assert desk.files.read("work/a.md").text == "one\n"


def test_what_is_not_there_cannot_be_read_renamed_or_deleted(desk: Desk) -> None:
    for act in (
        lambda: desk.files.read("gone.md"),
        lambda: desk.files.delete("gone.md"),
        lambda: desk.files.rename("gone.md", "new.md"),
    ):
        with pytest.raises(NotFound):
            act()


def test_a_note_that_would_be_too_large_to_be_read_is_not_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.files = MemoryFiles(
        Workspace(str(desk.workspace), max_file_bytes=100),
        desk.history,
        erasures=Erasures(str(tmp_path / "state")),
        state_dir=str(tmp_path / "state"),
    )

    with pytest.raises(PathNotAllowed, match="the limit is 100"):
        desk.files.create("note.md", "x" * 101)


def test_a_workspace_that_is_gone_is_no_empty_memory(desk: Desk) -> None:
    desk.workspace.rmdir()

    with pytest.raises(WorkspaceError, match="does not exist"):
        desk.files.is_folder("")
    with pytest.raises(WorkspaceError, match="does not exist"):
        desk.files.create("note.md", "text")


def test_what_is_added_to_a_file_while_it_is_renamed_is_not_lost(desk: Desk) -> None:
    state, log = str(desk.workspace.parent / "state"), desk.put("memory/log.md", "# log\n")
    wanted: list[str] = []
    moves = 0

    def write() -> None:
        while moves < 20:
            wanted.append(f"note-{len(wanted)}.")
            note = wanted[-1]
            append(str(log), f"{note}\n".encode(), state_dir=state, record_id=note, tail=Tail.MARKDOWN)
            time.sleep(0.003)  # or nobody else gets the lock

    writer = Thread(target=write)
    writer.start()
    while moves < 20 and writer.is_alive():
        if log.exists():
            desk.files.rename("log.md", f"moved/{moves}.md")
            moves += 1
    writer.join()

    there = "".join(file.read_text() for file in (desk.workspace / "memory").rglob("*.md"))
    assert [note for note in wanted if there.count(note) != 1] == []
    assert moves == 20
