"""Questions, names, folders and programs that nobody expects: the engine goes on, and says what it leaves out."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time

import pytest

from plainmind import Memory

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def memory_with(tmp_path, workspace, program):
    opened = []

    def make(**qmd):
        settings = {
            "backend": "qmd",
            "qmd": {"command": str(program.path), "update": {"debounceMs": 0}, **qmd},
            "limits": {"timeoutMs": 30_000},
        }
        memory = Memory(workspace, tmp_path / "home", settings)
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


@pytest.mark.parametrize(
    "question", ["coffee\x00", "coffee \ud800", "coffee " * 40_000, "\x00", "\udfff", "coffee\x1b[2J"]
)
def test_a_question_that_no_program_can_be_given_is_no_failure_of_the_engine(memory_with, question):
    memory = memory_with()

    assert memory.search(question).fallback is None
    assert memory.status()["engine"]["healthy"]


def test_models_that_are_shared_are_shared_more_than_once(memory_with, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache/qmd/models").mkdir(parents=True)
    memory = memory_with()

    for _ in range(2):
        assert memory.sync().degraded == ()

    (link,) = (tmp_path / "home").rglob("xdg-cache/qmd/models")
    assert link.readlink() == tmp_path / "cache/qmd/models"


def test_what_it_says_cannot_write_on_a_terminal(memory_with, program):
    program.does("colour")

    reason = memory_with().search("coffee").fallback["reason"]

    assert "it is broken" in reason
    assert reason.isprintable()


def test_a_program_that_has_moved_is_found_again(memory_with, program, tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/first:{tmp_path}/second:/usr/bin:/bin")
    shutil.copy(program.path, tmp_path / "first/qmd")
    memory = memory_with(command="qmd")
    assert memory.search("coffee").provider == "qmd"
    shutil.move(tmp_path / "first/qmd", tmp_path / "second/qmd")

    assert "cannot be started" in memory.search("coffee").fallback["reason"]

    assert memory.sync().degraded == ()
    assert memory.search("coffee").provider == "qmd"


@pytest.mark.parametrize("name", ["sessions-main", "memory-root-main", "__proto__", "-c"])
def test_a_folder_may_be_called_like_a_collection_of_ours(memory_with, tmp_path, name):
    docs = tmp_path / name
    docs.mkdir()
    (docs / "birds.md").write_text("the falcon nests at skagen\n")
    memory = memory_with(paths=[str(docs)], sessions={"enabled": True})

    result = memory.search("falcon")

    assert [hit.path for hit in result.hits] == [f"qmd/{name}/birds.md"]
    assert result.provider == "qmd"


def test_files_that_it_never_reads_are_counted_aloud(memory_with, workspace, tmp_path):
    for path in ("memory/build/a.md", "memory/x/vendor/y/b.md"):
        (workspace / path).parent.mkdir(parents=True)
        (workspace / path).write_text("the falcon nests at skagen\n")
    docs = tmp_path / "dist"  # it does read a folder that it is told of by name
    docs.mkdir()
    (docs / "c.md").write_text("a falcon\n")

    memory = memory_with(paths=[str(docs)])

    (said,) = memory.search("coffee").degraded
    assert said.startswith("qmd does not read 2 files, because of what a folder is called")
    assert memory.sync().degraded == (said,)
    assert memory.status()["engine"]["leftOut"] == 2


def test_a_folder_with_settings_for_it_in_the_workspace_is_not_where_it_stands(
    memory_with, workspace, program, monkeypatch
):
    monkeypatch.setenv("QMD_TRUST_LOCAL_CONFIG", "1")
    (workspace / ".qmd").mkdir()
    (workspace / ".qmd/index.yml").write_text("collections: {}\n")

    memory_with().search("coffee")

    for call in program.calls:
        assert not call["cwd"].startswith(str(workspace))
        assert call["argv"][1:3] == ["--index", "index"]
        assert "QMD_TRUST_LOCAL_CONFIG" not in call["env"]


def test_who_asks_while_another_process_tells_it_what_to_index_does_not_take_it_for_broken(
    memory_with, program
):
    first, second = memory_with(), memory_with()
    program.does("linger", when="update")
    syncing = threading.Thread(target=first.sync)
    syncing.start()
    wait_for((program.folder / "lingers").exists)

    result = second.search("coffee")

    assert (result.provider, result.hits[0].path) == ("builtin", "MEMORY.md")
    assert "another process" in result.fallback["reason"]
    assert second.status()["engine"]["healthy"]
    (program.folder / "go").touch()
    syncing.join()
    assert second.search("coffee").provider == "qmd"


def wait_for(condition, seconds=30.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_many_processes_with_one_home_are_all_answered(memory_with, program, tmp_path, workspace):
    settings = json.dumps(
        {
            "backend": "qmd",
            "qmd": {"command": str(program.path), "update": {"debounceMs": 0}},
            "limits": {"timeoutMs": 30_000},
        }
    )
    command = [sys.executable, "-c", ASKING, str(workspace), str(tmp_path / "home"), settings]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(4)]

    told = [json.loads(process.communicate(timeout=50)[0]) for process in processes]

    assert [answer["paths"] for answers in told for answer in answers] == [["MEMORY.md"]] * 12
    assert all(answers[-1]["healthy"] for answers in told)
    assert any(answer["provider"] == "qmd" for answers in told for answer in answers)
    assert program.all_gone_within()


ASKING = """
import json, sys
from plainmind import Memory
told = []
with Memory(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])) as memory:
    for _ in range(3):
        result = memory.search("coffee")
        healthy = memory.status()["engine"]["healthy"]
        told.append({"paths": [hit.path for hit in result.hits], "provider": result.provider, "healthy": healthy})
print(json.dumps(told))
"""


def test_how_long_it_may_take_can_be_set(memory_with):
    memory = memory_with(update={"commandTimeoutMs": 1000, "updateTimeoutMs": 2000, "embedTimeoutMs": 3000})

    options = memory.index.backend._first._options

    assert (options.command_timeout_s, options.update_timeout_s, options.embed_timeout_s) == (1, 2, 3)
