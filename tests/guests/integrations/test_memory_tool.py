"""Claude's memory tool: six commands worded as the model knows them, on notes that can always be brought back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plainmind.agent.tools import ToolAnswer
from plainmind.base.errors import StorageFailure
from plainmind.files.history import History
from plainmind.files.system import Erasures
from plainmind.guests.integrations.memory_tool import MemoryTool
from plainmind.notes.memory_files import Content, MemoryFiles
from plainmind.notes.workspace import Workspace


class Desk:
    """A workspace and the tool on it."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        (self.workspace / "memory").mkdir(parents=True)
        self.history = History(str(folder / "state" / "history"))
        self.changes: list[tuple[str, ...]] = []
        files = MemoryFiles(
            Workspace(str(self.workspace)),
            self.history,
            erasures=Erasures(str(folder / "state")),
            state_dir=str(folder / "state"),
        )
        self.tool = MemoryTool(files, changed=lambda gone: self.changes.append(tuple(gone)))

    def call(self, command: str, **arguments: Any) -> ToolAnswer:
        return self.tool.call({"command": command, **arguments})

    def said(self, command: str, **arguments: Any) -> str:
        answer = self.call(command, **arguments)
        assert not answer.is_error, answer.text
        return answer.text

    def refused(self, command: str, **arguments: Any) -> str:
        answer = self.call(command, **arguments)
        assert answer.is_error, answer.text
        return answer.text

    def put(self, path: str, text: str) -> Path:
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_folder_is_listed_two_levels_deep_with_sizes(desk: Desk) -> None:
    desk.put("MEMORY.md", "x" * 1536)
    desk.put("memory/2026-11-15.md", "")
    desk.put("memory/work/plan.md", "x" * 2048)
    desk.put("memory/work/deep/far.md", "x")
    desk.put("memory/.hidden.md", "x")

    header, top, *rows = desk.said("view", path="/memories").split("\n")

    assert header == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
    )
    assert top.endswith("\t/memories")
    assert [row for row in rows if not row.endswith("/")] == [
        "0B\t/memories/2026-11-15.md",
        "1.5K\t/memories/MEMORY.md",
        "2K\t/memories/work/plan.md",
    ]
    assert [row.split("\t")[1] for row in rows if row.endswith("/")] == [
        "/memories/work/",
        "/memories/work/deep/",
    ]


def test_a_file_is_shown_with_numbered_lines(desk: Desk) -> None:
    desk.put("memory/note.md", "one\ntwo\nthree\n")

    assert desk.said("view", path="/memories/note.md") == (
        "Here's the content of /memories/note.md with line numbers:\n"
        "     1\tone\n     2\ttwo\n     3\tthree\n     4\t"
    )
    assert desk.said("view", path="/memories/note.md", view_range=[2, -1]).endswith(
        ":\n     2\ttwo\n     3\tthree\n     4\t"
    )


def test_a_file_that_would_fill_a_context_window_is_viewed_in_parts(desk: Desk) -> None:
    desk.put("memory/long.md", "words and words\n" * 20_000)

    assert "Please give a view_range" in desk.refused("view", path="/memories/long.md")
    assert desk.said("view", path="/memories/long.md", view_range=[19_999, 20_000]).count("\n") == 2


def test_every_change_can_be_undone(desk: Desk) -> None:
    desk.said("create", path="/memories/note.md", file_text="first\n")
    desk.said("str_replace", path="/memories/note.md", old_str="first", new_str="second")
    desk.said("insert", path="/memories/note.md", insert_line=1, insert_text="third")
    desk.said("rename", old_path="/memories/note.md", new_path="/memories/other.md")
    desk.said("delete", path="/memories/other.md")

    told = [(version.path, version.operation) for version in reversed(desk.history.versions())]
    assert told == [
        ("memory/note.md", "create"),
        ("memory/note.md", "str_replace"),
        ("memory/note.md", "insert"),
        ("memory/other.md", "rename"),
        ("memory/note.md", "rename"),
        ("memory/other.md", "delete"),
    ]
    contents = {desk.history.read(version.id) for version in desk.history.versions() if version.available}
    assert contents == {b"first\n", b"second\n", b"second\nthird\n"}


def test_a_search_is_told_of_every_change_and_of_no_look(desk: Desk) -> None:
    desk.said("view", path="/memories")
    desk.said("create", path="/memories/work/note.md", file_text="first\n")
    desk.refused("create", path="/memories/work/note.md", file_text="again\n")
    desk.said("rename", old_path="/memories/work", new_path="/memories/play")
    desk.said("delete", path="/memories/play")

    assert desk.changes == [(), ("memory/work/note.md",), ("memory/play/note.md",)]


def test_a_note_that_cannot_be_indexed_yet_is_still_saved(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_gone: object) -> None:
        raise StorageFailure("the index is on a full disk")

    tool = MemoryTool(desk.tool._files, changed=fail)

    answer = tool.call({"command": "create", "path": "/memories/note.md", "file_text": "first\n"})

    assert answer.text == "File created successfully at: /memories/note.md"
    assert "the index is on a full disk" in caplog.text


class Racing(MemoryFiles):
    """Files to which something happens between two looks."""

    def __init__(self, desk: Desk, meanwhile: Callable[[], object]) -> None:
        state = str(desk.workspace.with_name("state"))
        workspace = Workspace(str(desk.workspace))
        super().__init__(workspace, desk.history, erasures=Erasures(state), state_dir=state)
        self._meanwhile = meanwhile

    def is_folder(self, name: str) -> bool | None:
        answer = super().is_folder(name)
        self._meanwhile()
        return answer


def test_a_file_that_goes_while_it_is_viewed_is_said_to_be_gone(desk: Desk) -> None:
    file = desk.put("memory/note.md", "x")
    tool = MemoryTool(Racing(desk, lambda: file.unlink(missing_ok=True)))

    assert tool.call({"command": "view", "path": "/memories/note.md"}).text == (
        "The file /memories/note.md no longer exists (may have been deleted or renamed concurrently)."
    )
    desk.put("memory/note.md", "x")
    assert "does not exist" in tool.call({"command": "delete", "path": "/memories/note.md"}).text


def test_a_file_that_somebody_else_creates_first_is_not_overwritten(desk: Desk) -> None:
    file = desk.workspace / "memory" / "note.md"
    desk.put("memory/old.md", "old")
    tool = MemoryTool(Racing(desk, lambda: file.write_text("by hand")))

    created = tool.call({"command": "create", "path": "/memories/note.md", "file_text": "by Claude"})
    file.unlink()
    renamed = tool.call(
        {"command": "rename", "old_path": "/memories/old.md", "new_path": "/memories/note.md"}
    )

    assert created.text == "File /memories/note.md already exists"
    assert renamed.text == "The destination /memories/note.md already exists"
    assert file.read_text() == "by hand"
    assert desk.said("view", path="/memories/old.md").endswith("\told")


def test_a_file_that_changes_while_it_is_edited_is_not_overwritten(desk: Desk) -> None:
    file = desk.put("memory/note.md", "tea\n")

    class Edited(MemoryFiles):
        def read(self, name: str) -> Content:
            content = super().read(name)
            file.write_text("tea, by hand\n")
            return content

    files = desk.tool._files
    assert files is not None
    files.__class__ = Edited

    answer = desk.call("str_replace", path="/memories/note.md", old_str="tea", new_str="coffee")

    assert answer.text == (
        "The file /memories/note.md was changed meanwhile; nothing was overwritten. View it again."
    )
    assert file.read_text() == "tea, by hand\n"


def test_a_disk_that_refuses_is_reported_without_its_paths(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise StorageFailure(f"{desk.workspace} is full")

    answer = MemoryTool(desk.tool._files, changing=refuse).call(
        {"command": "create", "path": "/memories/note.md", "file_text": "x"}
    )

    assert answer.is_error
    assert str(desk.workspace) not in answer.text
    assert "is full" in caplog.text


def test_a_text_that_stands_very_often_is_not_listed_to_the_end(desk: Desk) -> None:
    desk.put("memory/note.md", "tea\n" * 500)

    text = desk.refused("str_replace", path="/memories/note.md", old_str="tea", new_str="coffee")

    assert ", 99, 100, …. Please ensure it is unique" in text


def test_lines_end_as_they_do_in_the_file(desk: Desk) -> None:
    file = desk.put("memory/note.md", "one\r\ntwo\r\nthree")

    desk.said("str_replace", path="/memories/note.md", old_str="one\ntwo", new_str="1\n2")
    desk.said("insert", path="/memories/note.md", insert_line=3, insert_text="four\nfive\n")

    assert file.read_bytes() == b"1\r\n2\r\nthree\r\nfour\r\nfive\r\n"


@pytest.mark.parametrize("path", ["/etc/passwd", "memories/a.md", "/memoriesx/a.md", "", "~/a.md"])
def test_a_path_elsewhere_is_refused(desk: Desk, path: str) -> None:
    assert desk.refused("view", path=path) == f"Path must start with /memories, got: {path}"


@pytest.mark.parametrize(
    "path", ["/memories/..", "/memories/../MEMORY.md", "/memories/a/../../x.md", "/memories/./../x.md"]
)
def test_a_path_that_leads_out_is_refused(desk: Desk, path: str) -> None:
    desk.put("MEMORY.md", "x")

    assert desk.refused("view", path=path) == f"Path {path} would escape /memories directory"
    assert "would escape" in desk.refused("create", path=path, file_text="x")
    assert "would escape" in desk.refused("rename", old_path="/memories/MEMORY.md", new_path=path)


@pytest.mark.parametrize(
    "given",
    [
        "not json",
        "[]",
        "[" * 100_000,
        {},
        {"command": "format"},
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "view", "path": None},
        {"command": "create", "path": "/memories/a.md"},
        {"command": "create", "path": "/memories/a.md", "file_text": ["x"]},
        {"command": "insert", "path": "/memories/a.md", "insert_line": "1", "insert_text": "x"},
        {"command": "insert", "path": "/memories/a.md", "insert_line": True, "insert_text": "x"},
        {"command": "rename", "old_path": "/memories/a.md"},
        {"command": "create", "path": "/memories/a\x00.md", "file_text": "x"},
        {"command": "create", "path": "/memories/a.txt", "file_text": "x"},
        {"command": "create", "path": "/memories/.a.md", "file_text": "x"},
        {"command": "create", "path": "/memories", "file_text": "x"},
        {"command": "delete", "path": "/memories/"},
        {"command": "delete", "path": "/memories/work/.."},
        {"command": "rename", "old_path": "/memories", "new_path": "/memories/a"},
    ],
    ids=lambda given: json.dumps(given)[:50],
)
def test_a_mistake_of_the_model_is_an_answer_and_changes_nothing(desk: Desk, given: Any) -> None:
    desk.put("memory/work/note.md", "x")

    answer = desk.tool.call(given)

    assert answer.is_error
    assert answer.text
    assert str(desk.workspace) not in answer.text
    assert [path.name for path in desk.workspace.rglob("*.*")] == ["note.md"]
    assert desk.changes == []


def test_text_that_no_encoding_knows_does_not_reach_the_model(desk: Desk) -> None:
    desk.put("memory/note.md", "").write_bytes(b"caf\xe9\n")

    desk.said("view", path="/memories/note.md").encode()


def test_where_there_are_no_files_every_command_says_why() -> None:
    tool = MemoryTool(None, refusal="The memory cannot be used here.")

    answer = tool.call({"command": "view", "path": "/memories"})

    assert answer == ToolAnswer(
        {"status": "error", "error": "The memory cannot be used here."},
        "The memory cannot be used here.",
        is_error=True,
    )
