"""The same commands, side by side with the implementation that Anthropic ships: the same words and the same files."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from plainmind.files.history import History
from plainmind.files.system import Erasures
from plainmind.guests.integrations.memory_tool import MemoryTool
from plainmind.notes.memory_files import MemoryFiles
from plainmind.notes.workspace import Workspace

FILES = ["a.md", "b.md", "dir/a.md", "dir/sub/c.md", "dir/sub/deep/d.md", "a.md/inner.md", "other/../b.md"]
FOLDERS = ["", "dir", "dir/sub", "new/folder", "dir/sub/.."]

file_paths = st.sampled_from([f"/memories/{name}" for name in FILES])
folder_paths = st.sampled_from([f"/memories/{name}".rstrip("/") for name in FOLDERS])
strange_paths = st.sampled_from(["/etc/passwd", "/memories/../x.md", "memories/a.md", "/memories/../../etc"])
any_paths = st.one_of(file_paths, folder_paths, strange_paths)
words = st.lists(st.sampled_from(["tea", "oat milk", "", "日本", "tea tea", "# Head"]), max_size=4).map(
    "\n".join
)
texts = st.one_of(words, words.map(lambda text: text + "\n"), words.map(lambda text: "\n" + text + "\n\n"))

commands = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": any_paths}),
    st.fixed_dictionaries(
        {
            "command": st.just("view"),
            "path": file_paths,
            "view_range": st.lists(st.integers(-1, 6), min_size=1, max_size=3),
        }
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": file_paths, "file_text": texts}),
    st.fixed_dictionaries(
        {
            "command": st.just("str_replace"),
            "path": st.one_of(file_paths, any_paths),
            "old_str": st.sampled_from(["tea", "oat milk", "milk\ntea", "", "coffee", "# Head\n"]),
            "new_str": st.sampled_from(["", "coffee", "two\nlines", "\n"]),
        }
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": st.one_of(file_paths, any_paths),
            "insert_line": st.integers(-1, 5),
            "insert_text": texts,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": any_paths}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": file_paths, "new_path": file_paths}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": folder_paths, "new_path": folder_paths}),
)


class Both:
    """Two memories that get the same commands."""

    def __init__(self, folder: Path) -> None:
        from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

        from plainmind.guests.integrations.memory_tool_sdk import PlainmindMemoryTool

        self.reference = BetaLocalFilesystemMemoryTool(str(folder / "reference"))
        self.root = folder / "reference" / "memories"
        self.ours_root = folder / "workspace" / "memory"
        self.ours_root.mkdir(parents=True)
        files = MemoryFiles(
            Workspace(str(folder / "workspace")),
            History(str(folder / "state" / "history")),
            erasures=Erasures(str(folder / "state")),
            state_dir=str(folder / "state"),
        )
        self.ours = PlainmindMemoryTool(MemoryTool(files))

    def call(self, command: dict[str, Any]) -> tuple[Any, Any]:
        folders = set(self.root.rglob("*"))
        theirs = _answer(self.reference, command)
        if theirs[0] != "ok":
            # It makes the folders above a new name before it finds that the command cannot be carried out.
            for made in sorted(set(self.root.rglob("*")) - folders, reverse=True):
                made.rmdir()
        return theirs, _answer(self.ours, command)


def _answer(tool: Any, command: dict[str, Any]) -> tuple[str, str]:
    from anthropic.lib.tools import ToolError

    try:
        return "ok", re.sub(r"(?m)^\S+(?=\t/memories(?:$|\S*/$))", "SIZE", tool.call(command))
    except ToolError as error:
        return "refused", str(error)
    except OSError as error:
        return "broken", type(error).__name__


def tree(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")
    }


@pytest.mark.slow
@pytest.mark.timeout(60)
@given(st.lists(commands, min_size=3, max_size=14))
@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_sequence_of_commands_gets_the_same_answers_and_leaves_the_same_files(
    sequence: list[dict[str, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        both = Both(Path(folder))
        for command in sequence:
            theirs, ours = both.call(command)
            if theirs[0] == "broken":
                # Where it lets an error of the system out, we refuse in words of our own.
                assert ours[0] == "refused", command
            else:
                assert ours == theirs, command
            assert tree(both.ours_root) == tree(both.root), command


def test_the_sequences_succeed_often_enough_to_mean_something(tmp_path: Path) -> None:
    both = Both(tmp_path)
    sequence: list[dict[str, Any]] = [
        {"command": "create", "path": "/memories/dir/a.md", "file_text": "tea\nmilk\ntea\n"},
        {"command": "str_replace", "path": "/memories/dir/a.md", "old_str": "tea", "new_str": "coffee"},
        {"command": "str_replace", "path": "/memories/dir/a.md", "old_str": "milk\ntea", "new_str": "cream"},
        {"command": "insert", "path": "/memories/dir/a.md", "insert_line": 1, "insert_text": "sugar\n"},
        {"command": "view", "path": "/memories/dir/a.md"},
        {"command": "view", "path": "/memories"},
        {"command": "rename", "old_path": "/memories/dir", "new_path": "/memories/new/folder"},
        {"command": "delete", "path": "/memories/new"},
        {"command": "view", "path": "/memories/new"},
    ]

    answers = [both.call(command) for command in sequence]

    assert [ours for _, ours in answers] == [theirs for theirs, _ in answers]
    assert [ours[0] for _, ours in answers] == [
        "ok", "refused", "ok", "ok", "ok", "ok", "ok", "ok", "refused",
    ]  # fmt: skip


def test_the_tool_runner_of_the_package_knows_it_as_the_memory_tool(tmp_path: Path) -> None:
    tool = Both(tmp_path).ours

    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    assert tool.name == "memory"
    with pytest.raises(NotImplementedError):
        tool.clear_all_memory()
