"""Adding, compacting, deleting and archiving at the same time: each does what it says, whoever else is at work."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from plainmind.base.errors import NotFound
from plainmind.sessions.store import SessionStore


def in_threads(*tasks: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001 (raised again below)
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=[task]) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_what_is_said_during_a_compaction_stays_in_the_context(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    session = store.create("k")
    session.append({"role": "user", "content": "zero"})
    texts: list[str] = []

    def talk() -> None:
        for number in range(40):
            session.append({"role": "user", "content": f"{number}"})
            texts.append(f"{number}")

    def compact() -> None:
        other = store.open("k")
        for number in range(6):
            last = other.tail(1)[0]["id"]
            other.compact(f"summary {number}", through=last)

    in_threads(talk, compact)
    entries = list(session.entries())
    context = session.context()
    assert [entry["message"]["content"] for entry in entries if entry["type"] == "message"] == [
        "zero",
        *texts,
    ]
    *_, last = (entry for entry in entries if entry["type"] == "compaction")
    assert context.summary == last["summary"] == "summary 5"
    ids = [entry["id"] for entry in entries]
    first = ids.index(last["firstKeptEntryId"])
    kept = [entry["id"] for entry in entries[first:] if entry["type"] == "message"]
    assert [entry["id"] for entry in context.entries] == kept
    # What a summary covers and what stays make up everything: nothing falls between the two.
    assert entries[first]["type"] in {"message", "compaction"}


def test_a_session_deleted_while_others_add_stays_deleted(tmp_path: Path) -> None:
    for round_number in range(5):
        store = SessionStore(tmp_path / str(round_number))
        session = store.create("k")
        refused: list[str] = []
        writing = threading.Event()

        def write(session=session, refused=refused, writing=writing) -> None:
            try:
                for number in range(10_000):
                    session.append({"role": "user", "content": f"{number}"})
                    writing.set()
            except NotFound as error:
                refused.append(str(error))

        def delete(store=store, writing=writing) -> None:
            assert writing.wait(60)
            store.delete("k")

        in_threads(write, write, delete)
        assert len(refused) == 2
        assert not Path(session.path).exists()
        assert store.list() == []


def test_all_that_was_acknowledged_before_an_archive_is_in_it(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    session = store.create("k")
    acknowledged: list[str] = []
    writing = threading.Event()

    def write() -> None:
        try:
            for number in range(10_000):
                acknowledged.append(session.append({"role": "user", "content": f"{number}"}))
                writing.set()
        except NotFound:
            return

    def archive() -> None:
        assert writing.wait(60)
        store.archive("k")

    in_threads(write, archive)
    (name,) = store.archives()
    found = [entry["id"] for entry in store.open(name).entries() if entry["type"] == "message"]
    assert found[: len(acknowledged)] == acknowledged
    assert len(found) - len(acknowledged) <= 1  # written, but not acknowledged before it was put away


def test_forks_made_while_others_add_are_whole_beginnings(tmp_path: Path) -> None:
    store = SessionStore(tmp_path)
    session = store.create("k")

    def write() -> None:
        for number in range(60):
            session.append({"role": "user", "content": f"{number}"})

    def fork() -> None:
        for number in range(5):
            store.fork("k", f"fork {number}")

    in_threads(write, fork)
    for number in range(5):
        said = [message["content"] for message in store.open(f"fork {number}").messages()]
        assert said == [str(each) for each in range(len(said))]


FORKING = """
import os, sys, threading, warnings
from plainmind.files.system import System
from plainmind.sessions.store import SessionStore

warnings.simplefilter("ignore")  # newer Pythons warn of what is tried here
entered, may_go_on = threading.Event(), threading.Event()

class Slow(System):
    def fdatasync(self, fd):
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            may_go_on.wait()

session = SessionStore(sys.argv[1], system=Slow()).create("k")
writer = threading.Thread(target=session.append, args=[{"role": "user", "content": "parent"}])
writer.start()
entered.wait()
child = os.fork()
if child == 0:
    session.append({"role": "user", "content": "child"})
    os._exit(0)
status = os.waitpid(child, 0)[1]
may_go_on.set()
writer.join()
print(status, *sorted(message["content"] for message in session.messages()))
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_process_forked_while_a_thread_appends_can_append_too(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORKING, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )

    assert ended.stdout.split() == ["0", "child", "parent"]
