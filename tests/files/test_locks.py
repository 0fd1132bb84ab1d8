"""Locks between threads and processes, and what becomes of them at fork, kill and deletion."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
import unicodedata
from pathlib import Path

import pytest
from tests.support.faulty_system import FaultySystem

from plainmind.base.errors import LockTimeout, PathNotAllowed, PlainmindError, StorageFailure, WorkspaceError
from plainmind.files import system
from plainmind.files.system import hold_lock, lock_path_for, try_lock

HOLDER = """
import sys, time
from plainmind.files.system import hold_lock
with hold_lock(sys.argv[1], operation="sync of everything"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def lock(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "locks" / "one.lock")


def is_free(lock: str) -> bool:
    held = try_lock(lock, operation="look")
    if held is None:
        return False
    held.release()
    return True


def test_a_lock_is_held_during_its_block_and_free_after_it(lock: str) -> None:
    with hold_lock(lock, operation="write"):
        assert not is_free(lock)
    assert is_free(lock)


def test_a_lock_is_free_after_an_error_in_its_block(lock: str) -> None:
    with pytest.raises(ZeroDivisionError), hold_lock(lock, operation="write"):
        _ = 1 / 0
    assert is_free(lock)


def test_the_lock_file_is_private_and_stays(lock: str) -> None:
    with hold_lock(lock, operation="write"):
        pass
    assert os.stat(lock).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(lock)).st_mode & 0o777 == 0o700


def test_releasing_twice_does_no_harm(lock: str) -> None:
    with try_lock(lock, operation="write") as held:  # type: ignore[union-attr]
        held.release()
        reused = os.open("/dev/null", os.O_RDONLY)
        held.release()
    os.fstat(reused)
    os.close(reused)
    assert is_free(lock)


def test_readers_share_and_keep_writers_out(lock: str) -> None:
    with hold_lock(lock, operation="read", shared=True):
        assert not is_free(lock)
        with hold_lock(lock, operation="read too", shared=True):
            pass
        with pytest.raises(LockTimeout, match="another process holds it"):
            hold_lock(lock, operation="write", timeout_s=0).__enter__()
    assert is_free(lock)


def test_threads_take_turns(lock: str) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(20):
            with hold_lock(lock, operation="work"):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0002)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert max(most) == 1
    assert len(most) == 80


def test_a_process_that_waits_in_vain_names_the_holder_and_kill_frees_the_lock(lock: str) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, lock], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        with pytest.raises(LockTimeout, match=rf"process {holder.pid} \(`sync of everything`\)") as caught:
            hold_lock(lock, operation="write", timeout_s=0.05).__enter__()
        assert caught.value.hint
        holder.send_signal(signal.SIGKILL)
        holder.wait()

    assert is_free(lock)


@pytest.mark.parametrize("signed", [b"", b"no json", b'{"pid": 1}', b"[]"])
def test_a_holder_that_did_not_sign_is_another_process(lock: str, signed: bytes) -> None:
    with hold_lock(lock, operation="write"):
        Path(lock).write_bytes(signed)
        with pytest.raises(LockTimeout, match="another process"):
            hold_lock(lock, operation="write", timeout_s=0).__enter__()


def test_the_signature_of_a_dead_or_foreign_process_is_judged(
    lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = {"pid": os.getpid(), "boot": system._boot_id(), "operation": "write"}
    with hold_lock(lock, operation="write"):
        Path(lock).write_text(json.dumps(signed | {"boot": "another"}))
        assert system._holder(lock) == "another process"
        Path(lock).write_text(json.dumps(signed))
        assert system._holder(lock) == f"process {os.getpid()} (`write`)"

        def not_ours(pid: int, sign: int) -> None:
            raise PermissionError

        def gone(pid: int, sign: int) -> None:
            raise ProcessLookupError

        monkeypatch.setattr(os, "kill", not_ours)
        assert system._holder(lock) == f"process {os.getpid()} (`write`)"
        monkeypatch.setattr(os, "kill", gone)
        assert system._holder(lock) == "another process"


@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_neither_keeps_nor_frees_its_parents_lock(lock: str) -> None:
    ready, done = os.pipe(), os.pipe()
    held = try_lock(lock, operation="parent")
    assert held is not None
    child = os.fork()
    if child == 0:
        held.release()
        os.write(ready[1], b"r")
        os.read(done[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        assert not is_free(lock), "the child freed it"
        held.release()
        assert is_free(lock), "the child kept it"
    finally:
        os.write(done[1], b"d")
        os.waitpid(child, 0)
        for fd in (*ready, *done):
            os.close(fd)


def test_a_lock_that_nobody_refers_to_is_let_go(lock: str) -> None:
    def descriptors() -> int:
        return len(os.listdir("/dev/fd"))

    before = descriptors()
    held = try_lock(lock, operation="forgotten")
    assert (held is not None, is_free(lock), descriptors()) == (True, False, before + 1)

    del held

    assert (is_free(lock), descriptors()) == (True, before)


def test_a_lock_that_is_let_go_as_garbage_while_another_is_opened_keeps_nobody_waiting(lock: str) -> None:
    forgotten = [try_lock(lock, operation="forgotten")]

    def collect(name: str, _: int) -> None:
        if name == "open":
            forgotten.clear()

    held = try_lock(lock + "2", operation="write", system=FaultySystem(before=collect))

    assert (held is not None, forgotten, is_free(lock), is_free(lock + "2")) == (True, [], True, False)


def test_a_forked_child_frees_no_lock_of_its_parent_when_it_forgets_it(lock: str) -> None:
    held = [try_lock(lock, operation="parent")]
    child = os.fork()
    if child == 0:
        other = os.open(os.devnull, os.O_RDONLY)  # which may have the number that the lock had
        held.clear()
        os._exit(0 if os.fstat(other) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not is_free(lock), "the child freed it"
    assert held


def test_a_lock_file_that_was_deleted_keeps_nobody_in_the_dark(lock: str) -> None:
    def delete_once(name: str, _: int) -> None:
        if name == "flock" and os.path.exists(lock) and system.calls.count("flock") == 1:
            os.unlink(lock)

    system = FaultySystem(before=delete_once)
    with hold_lock(lock, operation="write", system=system):
        assert not is_free(lock)

    system = FaultySystem(before=delete_once)
    held = try_lock(lock, operation="write", system=system)
    assert held is not None
    assert not is_free(lock)
    held.release()


def test_a_lock_file_that_was_exchanged_is_opened_anew(lock: str) -> None:
    def exchange_once(name: str, _: int) -> None:
        if name == "flock" and system.calls.count("flock") == 1:
            os.unlink(lock)
            Path(lock).touch()

    system = FaultySystem(before=exchange_once)
    with hold_lock(lock, operation="write", system=system):
        assert not is_free(lock)


def test_a_symlink_in_the_place_of_a_lock_is_refused(lock: str, tmp_path: Path) -> None:
    os.makedirs(os.path.dirname(lock))
    os.symlink(tmp_path / "precious", lock)

    with pytest.raises(PathNotAllowed):
        try_lock(lock, operation="write")
    assert not (tmp_path / "precious").exists()


@pytest.mark.parametrize("call", ["open", "flock", "stat", "fstat"])
def test_a_failing_call_is_reported_and_leaves_no_descriptor(lock: str, call: str) -> None:
    assert is_free(lock)
    descriptors = len(os.listdir("/dev/fd"))

    with pytest.raises(StorageFailure, match="could not lock"):
        try_lock(lock, operation="w", system=FaultySystem(fail_at=1, code=errno.EIO, only=frozenset({call})))

    assert len(os.listdir("/dev/fd")) == descriptors
    assert is_free(lock)


@pytest.mark.parametrize("call", ["write", "close"])
def test_a_full_disk_keeps_nobody_from_locking(lock: str, call: str) -> None:
    system = FaultySystem(fail_at=1, code=errno.ENOSPC, only=frozenset({call}))
    with hold_lock(lock, operation="write", system=system):
        assert not is_free(lock)
    assert is_free(lock)


def test_readers_can_lock_what_they_may_only_read(lock: str) -> None:
    assert is_free(lock)
    read_only = FaultySystem(fail_at=1, code=errno.EROFS, only=frozenset({"open"}))
    with hold_lock(lock, operation="read", shared=True, system=read_only):
        assert not is_free(lock)


def test_a_missing_lock_on_a_read_only_disk_is_an_error(lock: str) -> None:
    read_only = FaultySystem(fail_at=1, code=errno.EROFS, only=frozenset({"open"}))
    with pytest.raises(StorageFailure):
        hold_lock(lock, operation="read", shared=True, system=read_only).__enter__()
    read_only = FaultySystem(fail_at=1, code=errno.EROFS, only=frozenset({"open"}))
    with pytest.raises(WorkspaceError):
        hold_lock(lock, operation="write", system=read_only).__enter__()


def test_a_file_system_that_cannot_lock_is_named_as_the_cause(lock: str) -> None:
    system = FaultySystem(fail_at=1, code=errno.ENOLCK, only=frozenset({"flock"}))
    with pytest.raises(PlainmindError) as caught:
        try_lock(lock, operation="write", system=system)
    assert "cannot lock" in str(caught.value.hint)


def test_every_spelling_of_a_path_has_one_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory").mkdir()
    monkeypatch.chdir(tmp_path)
    name = "Crème.md"

    spellings = {
        lock_path_for("/state", spelling)
        for spelling in (
            f"memory/{name}",
            f"{tmp_path}/memory/{name}",
            f"memory/../memory/{name}",
            f"memory/{unicodedata.normalize('NFD', name)}",
            f"memory/{name.upper()}",
        )
    }

    assert len(spellings) == 1
    assert lock_path_for("/state", "memory/other.md") not in spellings
    (lock,) = spellings
    assert os.path.dirname(lock) == "/state/locks"
    assert len(os.path.basename(lock)) == 32 + len(".lock")


def test_systems_without_boot_ids_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_there(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", nothing_there)
    assert system._boot_id.__wrapped__() == ""
