"""What QMD is given, keeps and loses: copies of conversations, the secrets in them, and text that was forgotten."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest
from tests.support.transcript_files import line

from plainmind import Memory

pytestmark = pytest.mark.timeout(60)
SECRET = "correct-horse-battery-staple-41"


@pytest.fixture
def memory_with(tmp_path, workspace, program):
    opened = []

    def make(*, agent="main", sessions=True, **settings):
        qmd = {"command": str(program.path), "update": {"debounceMs": 0}, **settings.pop("qmd", {})}
        if sessions:
            qmd["sessions"] = {"enabled": True, **qmd.get("sessions", {})}
        settings = {"backend": "qmd", "agentId": agent, "limits": {"timeoutMs": 30_000}, **settings}
        memory = Memory(workspace, tmp_path / "home", {**settings, "qmd": qmd})
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


def talk(tmp_path, name, *said, agent="main"):
    folder = tmp_path / f"home/agents/{agent}/sessions"
    folder.mkdir(parents=True, exist_ok=True)
    head = json.dumps({"type": "session", "id": name}).encode() + b"\n"
    path = folder / f"{name}.jsonl"
    path.write_bytes(head + b"".join(line("user", text) for text in said))
    return path


def files_with(folder, text):
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".jsonl")
    return {path.name for path in paths if text.encode() in path.read_bytes()}


def engine_of(tmp_path, agent="main"):
    return tmp_path / f"home/agents/{agent}/qmd"


def test_a_secret_that_is_configured_later_is_in_no_copy_and_no_index(memory_with, tmp_path):
    talk(tmp_path, "abc", f"the falcon says {SECRET}")
    with memory_with() as memory:
        memory.sync()
    assert files_with(engine_of(tmp_path), SECRET) == {"abc.md", "index.sqlite"}
    index = next(engine_of(tmp_path).rglob("index.sqlite"))
    index.with_name("index.sqlite-wal").write_text(f"old pages with {SECRET}")

    memory = memory_with(remote={"apiKey": SECRET})
    memory.sync()

    assert files_with(engine_of(tmp_path), SECRET) == set()
    (hit,) = memory.search("falcon").hits
    assert SECRET not in hit.snippet


def test_a_secret_that_is_not_known_any_more_does_not_make_copies_anew(memory_with, tmp_path):
    talk(tmp_path, "abc", "the falcon nests at skagen")
    with memory_with(remote={"apiKey": SECRET}) as memory:
        memory.sync()
    (copy,) = engine_of(tmp_path).rglob("abc.md")
    before = copy.stat().st_mtime_ns

    memory_with().sync()

    assert copy.stat().st_mtime_ns == before


def test_programs_that_know_different_secrets_do_not_make_each_others_copies_anew(memory_with, tmp_path):
    talk(tmp_path, "abc", "the falcon nests at skagen")
    knowing, other = memory_with(remote={"apiKey": SECRET}), memory_with()
    knowing.sync()
    (copy,) = engine_of(tmp_path).rglob("abc.md")
    before = copy.stat().st_mtime_ns
    for memory in (other, knowing, other, knowing):
        memory.sync()

    assert copy.stat().st_mtime_ns == before


def test_copies_that_older_rules_let_through_are_made_anew(memory_with, tmp_path):
    talk(tmp_path, "abc", "the falcon nests at skagen")
    memory_with().sync()
    (copy,) = engine_of(tmp_path).rglob("abc.md")
    (record,) = engine_of(tmp_path).rglob("record.json")
    copy.write_text("the falcon nests at a secret place")
    facts = json.loads(record.read_text())
    record.write_text(json.dumps({**facts, "reading": "@1.0"}))

    memory_with().sync()

    assert files_with(engine_of(tmp_path), "a secret place") == set()


def test_no_secret_is_written_down_to_know_it_again(memory_with, tmp_path):
    talk(tmp_path, "abc", "hello")
    memory_with(remote={"apiKey": SECRET}).sync()

    (record,) = engine_of(tmp_path).rglob("record.json")
    assert json.loads(record.read_text())["reading"]
    assert SECRET not in record.read_text()


def test_agents_that_export_to_one_place_do_not_get_each_others_conversations(memory_with, tmp_path):
    talk(tmp_path, "abc", "the falcon of main")
    talk(tmp_path, "abc", "the falcon of other", agent="other")
    exports = {"sessions": {"exportDir": str(tmp_path / "exports")}}
    first, second = memory_with(qmd=exports), memory_with(agent="other", qmd=exports)
    for memory in (first, second, first):
        memory.sync()

    assert [hit.snippet for hit in first.search("falcon").hits] == ["User: the falcon of main"]
    assert [hit.snippet for hit in second.search("falcon").hits] == ["User: the falcon of other"]
    assert len(list((tmp_path / "exports").rglob("abc.md"))) == 2


@pytest.mark.parametrize("then", ["elsewhere", "off"])
def test_copies_do_not_stay_where_nobody_looks_any_more(memory_with, tmp_path, then):
    talk(tmp_path, "abc", "the falcon nests at skagen")
    with memory_with(qmd={"sessions": {"exportDir": str(tmp_path / "first")}}) as memory:
        memory.sync()
    assert files_with(tmp_path / "first", "falcon")

    settings = {"qmd": {"sessions": {"exportDir": str(tmp_path / "second")}}} if then == "elsewhere" else {}
    memory_with(sessions=then == "elsewhere", **settings).sync()

    assert files_with(tmp_path / "first", "falcon") == set()
    assert bool(files_with(tmp_path, "falcon")) == (then == "elsewhere")


def test_a_conversation_that_is_deleted_leaves_no_copy_in_a_place_of_its_own(
    memory_with, tmp_path, workspace
):
    talk(tmp_path, "abc", "the falcon nests at skagen")
    registry = tmp_path / "home/agents/main/sessions/sessions.json"
    registry.write_text(json.dumps({"agent:main:main": {"sessionId": "abc"}}))
    with memory_with(qmd={"sessions": {"exportDir": str(tmp_path / "exports")}}) as memory:
        memory.sync()
    assert files_with(tmp_path / "exports", "falcon")

    with Memory(workspace, tmp_path / "home") as without_the_engine:
        without_the_engine.delete_session("abc")

    assert files_with(tmp_path, "falcon nests") == set()


def test_an_index_is_made_anew_when_somebody_died_while_forgetting(memory_with, tmp_path, workspace):
    memory = memory_with()
    memory.sync()
    index = next(engine_of(tmp_path).rglob("index.sqlite"))
    index.with_name("index.sqlite-wal").write_text("old pages with coffee")
    (workspace / "MEMORY.md").write_text("# Ada\n")
    with memory.notes.erasures.run_alone():
        pass  # and nobody came to the engine

    memory.sync()

    assert files_with(engine_of(tmp_path), "coffee") == set()


def test_what_is_forgotten_while_the_engine_reads_does_not_come_back(memory_with, tmp_path, program):
    memory = memory_with()
    memory.search("coffee")
    program.does("linger", when="update")
    syncing = threading.Thread(target=memory.sync)
    syncing.start()
    wait_for((program.folder / "lingers").exists)
    elsewhere = memory_with(sync={"onSearch": False})

    elsewhere.forget("strong coffee")

    (program.folder / "go").touch()
    syncing.join()
    assert files_with(engine_of(tmp_path), "strong coffee") == set()


def wait_for(condition, seconds=30.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_what_it_keeps_of_conversations_that_are_too_old_is_dropped(memory_with, tmp_path, program):
    memory = memory_with()
    path = talk(tmp_path, "abc", "the falcon nests at skagen")
    memory.sync()
    assert "cleanup" not in program.verbs
    month_ago = time.time() - 40 * 86_400
    os.utime(path, (month_ago, month_ago))

    memory.sync()
    memory.sync()

    assert program.verbs.count("cleanup") == 1


def test_an_engine_that_cannot_drop_anything_begins_anew(memory_with, tmp_path, program):
    memory = memory_with()
    path = talk(tmp_path, "abc", "the falcon nests at skagen")
    memory.sync()
    path.unlink()
    program.does("refuse", when="cleanup")

    memory.sync()

    assert not list(engine_of(tmp_path).rglob("index.sqlite"))
    program.does("")
    assert memory.search("coffee").provider == "qmd"


def test_old_conversations_do_not_make_it_look_behind(memory_with, tmp_path):
    path = talk(tmp_path, "old", "the falcon nests at skagen")
    month_ago = time.time() - 40 * 86_400
    os.utime(path, (month_ago, month_ago))
    with memory_with() as memory:
        memory.sync()

    assert memory_with().status()["engine"]["behind"] is False


def test_a_conversation_in_parts_is_cited_by_its_own_lines(memory_with, tmp_path):
    said = [f"message {number} {'word ' * 400}" for number in range(300)]
    talk(tmp_path, "long", *said[:250], f"the falcon nests at skagen {'word ' * 20}", *said[250:])
    memory = memory_with()

    (hit,) = memory.search("falcon skagen").hits

    assert len(list(engine_of(tmp_path).rglob("long*.md"))) > 2
    assert (hit.path, hit.start_line, hit.end_line) == ("sessions/long.jsonl", 252, 252)
    assert hit.snippet.startswith("User: the falcon nests")


def test_conversations_that_are_searched_elsewhere_and_not_given_to_it_are_named(memory_with):
    result = memory_with(sessions=False, sources=["memory", "sessions"]).search("coffee")

    assert result.provider == "qmd"
    assert "does not know your conversations" in " ".join(result.degraded)
    assert memory_with(sessions=False).search("coffee").degraded == ()
