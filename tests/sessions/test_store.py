"""The registry and the files of a store: fields survive, keys are found, what is put away or deleted is so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plainmind.base.errors import ConflictError, LockTimeout, NotFound, PathNotAllowed, PlainmindError
from plainmind.files.system import hold_lock, lock_path_for
from plainmind.sessions.store import Session, SessionStore

HELLO = {"role": "user", "content": "hello"}
ANSWER = {"role": "assistant", "content": "yes", "usage": {"input": 100, "output": 20, "totalTokens": 130}}


def registry(store: SessionStore) -> Path:
    folder = Path(store.folder)
    return next(path for path in (folder / "sessions.json", folder / "registry.json5") if path.exists())


def entries(store: SessionStore) -> dict[str, dict[str, object]]:
    return json.loads(registry(store).read_text())


def test_a_new_session_is_in_the_registry_with_its_fields(store: SessionStore) -> None:
    session = store.create("agent:main:main", channel="telegram", modelOverride="m")

    entry = entries(store)["agent:main:main"]
    assert entry["sessionId"] == session.id
    assert Path(store.folder, str(entry["sessionFile"])) == Path(session.path)
    assert (entry["channel"], entry["modelOverride"]) == ("telegram", "m")


def test_the_files_are_where_each_format_has_them(tmp_path: Path) -> None:
    plain = SessionStore(tmp_path / "a").create("k", id="one")
    readable = SessionStore(tmp_path / "b", format="json5")

    assert plain.path == str(tmp_path / "a/one.jsonl")
    assert readable.create("k", id="one").path == str(tmp_path / "b/chats/one.json5")
    assert readable.create("g", groupId="g1", chatType="group").path == str(tmp_path / "b/groups/g1.json5")
    assert (tmp_path / "a/sessions.json").exists()
    assert (tmp_path / "b/registry.json5").exists()
    assert SessionStore(tmp_path / "b").create("another").format == "json5"


def test_files_are_private(store: SessionStore) -> None:
    session = store.create("k")
    for path in (session.path, registry(store)):
        assert os.stat(path).st_mode & 0o777 == 0o600


def test_sessions_are_opened_by_key_and_by_id(store: SessionStore) -> None:
    session = store.create("k", id="one")
    session.append(HELLO)
    for name in ("k", "one"):
        opened = store.open(name)
        assert (opened.key, opened.id, list(opened.messages())) == ("k", "one", [HELLO])
    with pytest.raises(NotFound, match="nobody"):
        store.open("nobody")


def test_a_key_or_an_id_is_given_once(store: SessionStore) -> None:
    store.create("k", id="one")
    with pytest.raises(ConflictError, match="`k`"):
        store.create("k")
    with pytest.raises(ConflictError, match="`one`"):
        store.create("other", id="one")
    assert store.open_or_create("k").id == "one"
    assert store.open_or_create("new").key == "new"


@pytest.mark.parametrize("wrong", ["", "../up", "a/b", "a.b", "x" * 65, "a\nb"])
def test_an_id_that_is_no_file_name_is_refused(store: SessionStore, wrong: str) -> None:
    with pytest.raises(PlainmindError, match="session id"):
        store.create("k", id=wrong)


@pytest.mark.parametrize("wrong", ["", "a\nb", "x" * 600])
def test_a_key_that_cannot_be_typed_is_refused(store: SessionStore, wrong: str) -> None:
    with pytest.raises(PlainmindError, match="session key"):
        store.create(wrong)


def test_an_update_leaves_all_other_fields_alone(store: SessionStore) -> None:
    store.create("k", label="old", thinkingLevel="low")
    written = entries(store)
    written["k"]["ofTomorrow"] = {"deep": [1, None, "x"]}
    written["other"] = {"sessionId": "else", "x": 1}
    written["$schema"] = "not a session"
    registry(store).write_text(json.dumps(written))

    store.update("k", label="new", thinkingLevel=None, sendPolicy="deny")

    entry = entries(store)["k"]
    assert (entry["label"], entry["sendPolicy"], entry["ofTomorrow"]) == (
        "new",
        "deny",
        {"deep": [1, None, "x"]},
    )
    assert "thinkingLevel" not in entry
    assert entries(store)["other"] == {"sessionId": "else", "x": 1}
    assert entries(store)["$schema"] == "not a session"
    assert store.open("k").entry()["label"] == "new"


def test_which_transcript_a_key_has_is_not_updated(store: SessionStore) -> None:
    store.create("k")
    with pytest.raises(PlainmindError, match="sessionFile"):
        store.update("k", sessionFile="/etc/passwd")
    with pytest.raises(PlainmindError, match="sessionId"):
        store.create("j", sessionId="x")
    with pytest.raises(NotFound):
        store.update("nobody", label="x")


def test_the_registry_may_be_json5(store: SessionStore) -> None:
    session = store.create("k")
    file = os.path.relpath(session.path, store.folder)
    registry(store).write_text(
        f"// written by hand\n{{'k': {{sessionId: '{session.id}', sessionFile: '{file}', label: 'mine',}},}}"
    )
    assert store.open("k").id == session.id
    store.update("k", channel="irc")

    assert (entries(store)["k"]["label"], entries(store)["k"]["channel"]) == ("mine", "irc")
    kept = registry(store).with_name(f"{registry(store).name}.bak")
    assert "written by hand" in kept.read_text()


def test_the_list_has_the_newest_first(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    for number, key in enumerate(["a", "b", "c"]):
        session = store.create(key)
        os.utime(session.path, (2_000_000_000 + number, 2_000_000_000 + number))
    os.utime(store.open("a").path, (2_000_000_010, 2_000_000_010))

    rows = store.list()
    assert [row.key for row in rows] == ["a", "c", "b"]
    assert rows[0].updated_ms == 2_000_000_010_000
    assert rows[0].size_bytes == os.path.getsize(rows[0].path)


def test_counters_are_counted_without_writing_the_registry_for_each_message(store: SessionStore) -> None:
    session = store.create("k")
    before = registry(store).stat()
    for _ in range(3):
        session.append(HELLO)
        session.append(ANSWER)

    assert registry(store).stat().st_mtime_ns == before.st_mtime_ns
    entry = session.entry()
    assert (entry["inputTokens"], entry["outputTokens"], entry["totalTokens"]) == (300, 60, 130)
    assert entry["updatedAt"] >= before.st_mtime_ns // 1_000_000


def test_counters_are_never_doubled(store: SessionStore) -> None:
    session = store.create("k")
    session.append(ANSWER)
    session.close()
    session.close()
    store.update("k", label="x")
    session.append(ANSWER)
    SessionStore(store.folder).open("k").close()

    assert entries(store)["k"]["inputTokens"] == 200
    assert session.entry()["inputTokens"] == 200


def test_compactions_are_counted_and_empty_the_context(store: SessionStore) -> None:
    session = store.create("k")
    session.append(ANSWER)
    session.compact("summary", tokens_after=30)
    assert next(e for e in session.entries() if e["type"] == "compaction")["tokensBefore"] == 130

    entry = entries(store)["k"]
    assert (entry["compactionCount"], entry["totalTokens"], entry["inputTokens"]) == (1, 30, 100)
    session.reset()
    assert entries(store)["k"]["totalTokens"] == 0


def test_counters_that_a_caller_sets_are_his(store: SessionStore) -> None:
    session = store.create("k")
    session.append(ANSWER)
    store.update("k", inputTokens=7)
    session.append(ANSWER)

    assert session.entry()["inputTokens"] == 107


def test_counters_of_another_program_are_left_alone(store: SessionStore) -> None:
    session = store.create("k")
    written = entries(store)
    written["k"] = {"sessionId": session.id, "sessionFile": written["k"]["sessionFile"], "inputTokens": 5}
    registry(store).write_text(json.dumps(written))
    session.append(ANSWER)
    session.close()

    assert entries(store)["k"]["inputTokens"] == 5


def test_an_archive_frees_the_key_and_stays_readable(store: SessionStore) -> None:
    session = store.create("k", label="mine")
    session.append(HELLO)
    path = store.archive("k")

    assert os.path.exists(path)
    assert ".reset." in path
    assert store.list() == []
    (name,) = store.archives()
    archived = store.open(name)
    assert list(archived.messages()) == [HELLO]
    *_, last = archived.entries()
    assert (last["data"]["sessionKey"], last["data"]["entry"]["label"]) == ("k", "mine")
    assert store.create("k").id != session.id
    with pytest.raises(NotFound, match="archived"):
        session.append(HELLO)


def test_archives_made_at_the_same_moment_do_not_replace_each_other(tmp_path: Path, written_as: str) -> None:
    store = SessionStore(tmp_path, format=written_as, clock=lambda: 2_000_000_000.0)
    for text in ("one", "two"):
        store.create("k", id="same").append({"role": "user", "content": text})
        store.archive("k")

    texts = {next(store.open(name).messages())["content"] for name in store.archives()}
    assert texts == {"one", "two"}


def test_nothing_is_left_of_a_deleted_session(store: SessionStore) -> None:
    canary = "quagga-in-the-canary-mine"
    session = store.create("k", label=canary)
    session.append({"role": "user", "content": canary})
    Path(f"{session.path}.torn-1").write_text(canary)
    store.create("other")
    store.delete("k")

    left = [path for path in Path(store.folder).rglob("*") if path.is_file()]
    assert [path for path in left if canary.encode() in path.read_bytes()] == []
    assert [row.key for row in store.list()] == ["other"]
    with pytest.raises(NotFound):
        store.delete("k")


def test_an_archive_is_deleted_by_its_name(store: SessionStore) -> None:
    store.create("k").append(HELLO)
    store.archive("k")
    (name,) = store.archives()
    store.delete(name)

    assert store.archives() == ()
    with pytest.raises(NotFound):
        store.open(name)


def test_a_transcript_that_two_keys_share_goes_with_the_last(store: SessionStore) -> None:
    session = store.create("k")
    session.append(HELLO)
    written = entries(store)
    written["second"] = written["k"]
    registry(store).write_text(json.dumps(written))

    store.delete("k")
    assert list(store.open("second").messages()) == [HELLO]
    store.delete("second")
    assert not os.path.exists(session.path)


@pytest.mark.parametrize(
    "file",
    ["../outside.jsonl", "/etc/passwd", "chats/../../x.jsonl", "sub/x.jsonl", ".hidden.jsonl", "a\nb.jsonl"],
)
def test_a_registry_cannot_lead_out_of_its_folder(tmp_path: Path, file: str) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (tmp_path / "outside.jsonl").write_text("secret")
    (folder / "sessions.json").write_text(json.dumps({"k": {"sessionId": "x", "sessionFile": file}}))
    store = SessionStore(folder)

    try:
        opened = store.open("k")
        assert Path(opened.path).parent in {folder, folder / "chats"}
        with pytest.raises(NotFound):
            list(opened.entries())
    except PathNotAllowed:
        pass


def test_an_absolute_path_from_another_home_is_found_by_its_name(tmp_path: Path) -> None:
    session = SessionStore(tmp_path).create("k", id="one")
    session.append(HELLO)
    elsewhere = {
        "k": {"sessionId": "one", "sessionFile": "/home/else/.openclaw/agents/main/sessions/one.jsonl"}
    }
    (tmp_path / "sessions.json").write_text(json.dumps(elsewhere))

    assert list(SessionStore(tmp_path).open("k").messages()) == [HELLO]


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions")
    session = store.create("k", id="one")
    target = tmp_path / "target.jsonl"
    os.rename(session.path, target)
    os.symlink(target, session.path)
    before = target.read_bytes()

    with pytest.raises(PathNotAllowed):
        session.append(HELLO)
    with pytest.raises(PathNotAllowed):
        list(session.entries())
    assert target.read_bytes() == before


def test_whoever_waits_in_vain_is_told_who_holds_the_lock(store: SessionStore) -> None:
    hasty = SessionStore(store.folder, timeout_s=0.05)
    session = store.create("k")
    state = os.path.join(store.folder, ".plainmind")
    for path, act in (
        (os.path.join(store.folder, "sessions.json"), lambda: hasty.update("k", label="x")),
        (session.path, lambda: hasty.open("k").append(HELLO)),
    ):
        with (
            hold_lock(lock_path_for(state, path), operation="a long nap"),
            pytest.raises(LockTimeout, match=rf"process {os.getpid()} \(`a long nap`\)"),
        ):
            act()
    assert list(session.messages()) == []


def test_a_compaction_that_is_written_is_not_called_failed_because_the_registry_is_busy(
    store: SessionStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.create("k").append(ANSWER)
    session = SessionStore(store.folder, timeout_s=0.05).open("k")
    lock = lock_path_for(
        os.path.join(store.folder, ".plainmind"), os.path.join(store.folder, "sessions.json")
    )
    with hold_lock(lock, operation="a long nap"):
        session.compact("summary")

    assert session.context().summary == "summary"
    assert "a long nap" in caplog.text
    assert session.entry()["compactionCount"] == 1


CREATES = """
import sys
from plainmind.sessions.store import SessionStore
store = SessionStore(sys.argv[1], format=sys.argv[2])
for number in range(5):
    store.create(f"{sys.argv[3]}:{number}")
    store.update("shared", **{f"{sys.argv[3]}:{number}": number})
store.open_or_create("together").append({"role": "user", "content": sys.argv[3]})
"""


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_processes_that_change_the_registry_at_once_lose_no_change(
    store: SessionStore, written_as: str
) -> None:
    store.create("shared")
    processes = [
        subprocess.Popen([sys.executable, "-c", CREATES, store.folder, written_as, str(name)])
        for name in range(6)
    ]
    assert [process.wait() for process in processes] == [0] * 6

    expected = {f"{name}:{number}" for name in range(6) for number in range(5)}
    assert {row.key for row in store.list()} == expected | {"shared", "together"}
    assert expected <= store.open("shared").entry().keys()
    assert sorted(message["content"] for message in store.open("together").messages()) == list("012345")


def test_a_session_may_be_used_after_a_fork(tmp_path: Path) -> None:
    session = SessionStore(tmp_path).create("k")
    session.append(HELLO)
    child = os.fork()
    if child == 0:
        try:
            session.append({"role": "user", "content": "child"})
            os._exit(0)
        finally:
            os._exit(1)
    session.append({"role": "user", "content": "parent"})
    assert os.waitpid(child, 0)[1] == 0

    found = list(Session(session._store, "k", session.id, session.transcript).entries())
    assert {entry["message"]["content"] for entry in found} == {"hello", "child", "parent"}
    assert len({entry["id"] for entry in found}) == 3


def test_the_store_makes_nothing_until_it_is_used(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "not" / "yet")
    assert store.list() == []
    assert not (tmp_path / "not").exists()
    started = time.time()
    store.create("k")
    assert store.list()[0].updated_ms >= int(started * 1000) - 1000


def test_an_unknown_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlainmindError, match="xml"):
        SessionStore(tmp_path, format="xml")
    with pytest.raises(PlainmindError, match="xml"):
        SessionStore(tmp_path).convert("xml")


def test_a_file_that_is_in_the_way_is_not_written_over(store: SessionStore) -> None:
    session = store.create("k", id="one")
    written = entries(store)
    del written["k"]
    registry(store).write_text(json.dumps(written))
    before = Path(session.path).read_bytes()

    with pytest.raises(ConflictError, match="exists already"):
        store.create("k", id="one")
    assert Path(session.path).read_bytes() == before


def test_a_transcript_that_the_registry_does_not_know_is_opened_by_its_id(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    store.create("k")
    (tmp_path / "loose.jsonl").write_text('{"type":"message","message":{"role":"user","content":"hello"}}\n')
    session = store.open("loose")

    assert (session.key, session.id, list(session.messages())) == (None, "loose", [HELLO])
    session.append(HELLO)
    assert len(list(session.messages())) == 2
    assert session.entry()["sessionFile"] == "loose.jsonl"
    session.close()
    os.unlink(session.path)
    with pytest.raises(NotFound):
        session.append(HELLO)


def test_a_fork_under_a_key_that_is_taken_leaves_no_file_behind(store: SessionStore) -> None:
    store.create("k").append(HELLO)
    store.create("taken")
    files = {path for path in Path(store.folder).rglob("*.json*") if path.is_file()}
    with pytest.raises(ConflictError):
        store.fork("k", "taken")
    assert {path for path in Path(store.folder).rglob("*.json*") if path.is_file()} == files


def test_a_field_that_json_cannot_say_changes_nothing(store: SessionStore) -> None:
    store.create("k", label="old")
    before = registry(store).read_bytes()
    with pytest.raises(PlainmindError, match="JSON"):
        store.update("k", label={1, 2})
    assert registry(store).read_bytes() == before
    store.update("k", label="half a \ud800 character")
    assert store.open("k").entry()["label"] == "half a \ud800 character"


def test_the_working_folder_of_a_session_is_in_its_header(store: SessionStore) -> None:
    assert store.create("k", cwd="/work").transcript.header()["cwd"] == "/work"


def test_a_transcript_that_was_replaced_by_a_shorter_one_is_counted_anew(store: SessionStore) -> None:
    session = store.create("k")
    beginning = Path(session.path).read_bytes()
    session.extend([ANSWER] * 5)
    session.close()
    Path(session.path).write_bytes(beginning)
    session.append(ANSWER)

    assert session.entry()["inputTokens"] == 100


def test_counters_of_a_transcript_that_is_missing_stay_as_they_were(store: SessionStore) -> None:
    session = store.create("k")
    session.append(ANSWER)
    session.close()
    os.unlink(session.path)

    assert store.entry("k")["inputTokens"] == 100
    assert store.list()[0].size_bytes == 0
    assert os.path.exists(store.archive("k")) is False
    assert store.list() == []


def test_a_registry_that_cannot_be_one_is_left_alone(tmp_path: Path) -> None:
    with open(tmp_path / "sessions.json", "wb") as file:
        file.seek(300 << 20)
        file.write(b"x")
    with pytest.raises(PlainmindError, match="no registry needs"):
        SessionStore(tmp_path).list()
    assert os.path.getsize(tmp_path / "sessions.json") == (300 << 20) + 1
