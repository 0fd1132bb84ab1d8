"""Every call of an append and a replace fails in every way: no lie, no byte lost, a retry succeeds."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.descriptors import open_in
from tests.support.faulty_system import FAULTS, FaultySystem

from plainmind.base.errors import ConflictError, PlainmindError, StorageFailure, WorkspaceError
from plainmind.base.model import sha256_bytes
from plainmind.files.append import Appended, Tail, append
from plainmind.files.atomic import write_atomically
from plainmind.files.history import History
from plainmind.files.replace import replace

each_fault = pytest.mark.parametrize("fault", FAULTS)

RECORD = b"- the gateway moved to Hetzner <!-- m:01JTEST -->\n"
LINE = b'{"id":"01JTEST","text":"the gateway moved"}\n'
BEGINNINGS = {
    "missing": (Tail.MARKDOWN, None),
    "whole lines": (Tail.MARKDOWN, b"# Monday\n\n- a note\n"),
    "no newline at the end": (Tail.MARKDOWN, b"# Monday\n\n- a human's last line"),
    "torn copy of the record": (Tail.MARKDOWN, b"# Monday\n" + RECORD[:-3]),
    "missing JSONL": (Tail.JSONL, None),
    "torn JSONL": (Tail.JSONL, b'{"id":"1"}\n{"id":"2","te'),
    "JSONL without newline": (Tail.JSONL, b'{"id":"1"}\n{"id":"2"}'),
}


def systems_failing_ever_later(
    fault: str, finished: Callable[[FaultySystem], bool]
) -> Iterator[FaultySystem]:
    for n in range(1, 200):
        system = FAULTS[fault](n)
        yield system
        if finished(system):
            return
    pytest.fail("200 calls and still not one run without a fault")


def never_failed(system: FaultySystem) -> bool:
    return system.failed is None


def succeeds(act: Callable[[], object], system: FaultySystem) -> bool:
    """Whether the caller was told of success; a failure must be one of our own errors, with a hint."""
    failure: PlainmindError | None = None
    try:
        act()
    except PlainmindError as error:
        failure = error
    assert failure is None or (failure.hint and not isinstance(failure, ConflictError)), system.failed
    return failure is None


def append_record(folder: Path, tail: Tail, system: FaultySystem) -> Appended:
    record = RECORD if tail is Tail.MARKDOWN else LINE
    return append(
        str(folder / "memory" / "2026-11-15.md"),
        record,
        state_dir=str(folder / "state"),
        record_id="01JTEST",
        tail=tail,
        header=b"" if tail is Tail.JSONL else b"# 2026-11-15\n",
        system=system,
    )


def bytes_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


@each_fault
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_failed_append_is_reported_changes_nothing_and_succeeds_later(
    tmp_path: Path, fault: str, beginning: str
) -> None:
    tail, before = BEGINNINGS[beginning]
    record = RECORD if tail is Tail.MARKDOWN else LINE
    for number, system in enumerate(systems_failing_ever_later(fault, never_failed)):
        folder = tmp_path / str(number)
        file = folder / "memory" / "2026-11-15.md"
        if before is not None:
            file.parent.mkdir(parents=True)
            file.write_bytes(before)

        acknowledged = succeeds(lambda: append_record(folder, tail, system), system)  # noqa: B023
        after = bytes_of(file)

        assert open_in(folder) == [], system.failed
        if acknowledged:
            assert after is not None
            assert after.count(record) == 1, system.failed
        elif fault != "disk dies":
            assert_as_before(file, before, after, tail, system.failed)
        assert (after or b"").startswith(kept_prefix(before, tail)), system.failed

        append_record(folder, tail, FaultySystem())
        final = file.read_bytes()
        assert final.count(record) == 1, system.failed
        assert final.count(b"01JTEST") == 1, system.failed
        assert final.startswith(kept_prefix(before, tail)), system.failed


def kept_prefix(before: bytes | None, tail: Tail) -> bytes:
    """What must never go: all of a person's file, the whole lines of ours."""
    if before is None:
        return b""
    return before if tail is Tail.MARKDOWN else before[: before.rfind(b"\n") + 1]


def assert_as_before(
    file: Path, before: bytes | None, after: bytes | None, tail: Tail, failed: str | None
) -> None:
    if after == before:
        return
    # A torn line may have been put aside already; then it is beside the file, whole.
    assert tail is Tail.JSONL, failed
    assert before is not None
    assert after == kept_prefix(before, tail), failed
    (aside,) = file.parent.glob("*.torn-*")
    assert aside.read_bytes() == before[len(after) :], failed


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (errno.ENOSPC, StorageFailure, "free some space; nothing was written"),
        (errno.EROFS, WorkspaceError, "make it writable for this user; nothing was written"),
        (errno.EMFILE, StorageFailure, "close some programs or raise `ulimit -n`; nothing was written"),
    ],
)
def test_a_refused_write_says_what_to_do(
    tmp_path: Path, code: int, kind: type[PlainmindError], advice: str
) -> None:
    # The first write signs the lock file, which may fail without consequence; the second is the record.
    system = FaultySystem(fail_at=2, code=code, only=frozenset({"write"}))

    with pytest.raises(kind, match="could not append to") as caught:
        append_record(tmp_path, Tail.MARKDOWN, system)

    assert caught.value.hint == advice


def test_a_failed_sync_that_cannot_be_undone_says_what_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "memory" / "2026-11-15.md"
    file.parent.mkdir()
    file.write_bytes(b"- before\n")

    class NoSyncNoCut(FaultySystem):
        def perform(self, name: str, *arguments: object) -> object:
            if name == "fdatasync" or (name == "ftruncate" and arguments[1]):
                raise OSError(errno.EIO, "")
            return super().perform(name, *arguments)

    with pytest.raises(StorageFailure) as caught:
        append_record(tmp_path, Tail.MARKDOWN, NoSyncNoCut())

    assert "may not survive a power cut: it is not acknowledged" in str(caught.value.hint)
    assert file.read_bytes() == b"- before\n" + RECORD


OLD = b"# Memory\n\n" + b"- one of many facts\n" * 20
NEW = OLD.replace(b"many", b"more")


def replace_file(folder: Path, system: FaultySystem, base: bytes | None = OLD) -> None:
    replace(
        str(folder / "MEMORY.md"),
        NEW,
        base_hash=None if base is None else sha256_bytes(base),
        state_dir=str(folder / "state"),
        history=History(str(folder / "state" / "history"), system=system),
        reason="edit",
        system=system,
    )


@each_fault
@pytest.mark.parametrize("base", [OLD, None], ids=["existing", "new"])
def test_a_failed_replace_leaves_the_old_bytes_or_the_new_and_succeeds_later(
    tmp_path: Path, fault: str, base: bytes | None
) -> None:
    for number, system in enumerate(systems_failing_ever_later(fault, never_failed)):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = folder / "MEMORY.md"
        if base is not None:
            file.write_bytes(base)
            file.chmod(0o640)

        acknowledged = succeeds(lambda: replace_file(folder, system, base), system)  # noqa: B023
        after = bytes_of(file)

        assert open_in(folder) == [], system.failed
        assert after in ((NEW,) if acknowledged else (base, NEW)), system.failed
        replace_file(folder, FaultySystem(), base)
        assert file.read_bytes() == NEW, system.failed
        assert sorted(os.listdir(folder)) == ["MEMORY.md", "state"], system.failed
        if base is not None:
            assert file.stat().st_mode & 0o777 == 0o640, system.failed
            history = History(str(folder / "state" / "history"))
            kept = [history.read(version.id) for version in history.versions() if version.available]
            assert base in kept, system.failed


@each_fault
def test_a_failed_atomic_write_leaves_one_whole_file_and_no_temporary(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "CURRENT"
    for system in systems_failing_ever_later(fault, never_failed):
        file.write_bytes(b"gen-1")

        acknowledged = succeeds(lambda: write_atomically(str(file), b"gen-2", system=system), system)  # noqa: B023

        assert file.read_bytes() in ((b"gen-2",) if acknowledged else (b"gen-1", b"gen-2")), system.failed
        leftovers = [name for name in os.listdir(tmp_path) if name != "CURRENT"]
        if fault != "disk dies":
            assert leftovers == [], system.failed
        for name in leftovers:
            (tmp_path / name).unlink()


def test_the_faults_do_happen(tmp_path: Path) -> None:
    quiet = FaultySystem()
    append_record(tmp_path, Tail.MARKDOWN, quiet)
    replace_file(tmp_path, quiet, base=None)

    assert {"open", "write", "fdatasync", "fsync", "fsync_folder", "replace", "flock", "stat"} <= set(
        quiet.calls
    )
