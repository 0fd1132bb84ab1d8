import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import FileState
from plainmind.files.safe_open import Root
from plainmind.index.plan import (
    Disappearance,
    looks_the_same,
    mtime_to_record,
    plan_removal,
    plan_sync,
)
from plainmind.notes.discovery import Discovery, FoundFile, Reading
from plainmind.notes.workspace import Workspace

ROOT = Root("/")


def found(path, size=10, mtime_ns=1, inode=1):
    return FoundFile(path, size, mtime_ns, inode, 1, ROOT, path)


def state(path, size=10, mtime_ns=1, inode=1):
    return FileState(path, "memory", "hash", size, mtime_ns, inode)


def known(*states):
    return {(known_state.source, known_state.path): known_state for known_state in states}


def test_a_new_file_is_read_and_an_unchanged_one_is_not():
    plan = plan_sync(Discovery((found("new.md"), found("old.md")), ()), known(state("old.md")), "memory")

    assert [file.path for file in plan.to_read] == ["new.md"]
    assert plan.unchanged == 1


def test_another_size_time_or_inode_means_reading_again():
    assert looks_the_same(found("a.md"), state("a.md"))
    assert not looks_the_same(found("a.md", size=11), state("a.md"))
    assert not looks_the_same(found("a.md", mtime_ns=2), state("a.md"))
    assert not looks_the_same(found("a.md", inode=2), state("a.md"))
    assert not looks_the_same(found("a.md"), None)


def test_a_file_that_is_gone_is_missing_unless_its_folder_could_not_be_seen():
    nothing = Discovery((), (), unseen=("memory/locked",))
    plan = plan_sync(nothing, known(state("memory/locked/a.md"), state("memory/b.md")), "memory")

    assert plan.missing == ("memory/b.md",)
    assert plan.hidden == ("memory/locked/a.md",)


def test_files_of_another_source_are_not_missed():
    sessions = FileState("sessions/a.jsonl", "sessions", "hash", 1, 1, 1)

    assert plan_sync(Discovery((), ()), known(sessions), "memory").missing == ()


def test_the_time_of_a_file_written_just_now_is_not_trusted():
    assert mtime_to_record(10_000_000_000, read_at_ns=11_000_000_000) == -10_000_000_000
    assert mtime_to_record(10_000_000_000, read_at_ns=13_000_000_000) == 10_000_000_000


def removal(missing, known_count=100, seen_before=None, at=1000.0, confirmed=False):
    return plan_removal(missing, known_count=known_count, seen_before=seen_before, at=at, confirmed=confirmed)


def test_a_few_deleted_files_leave_at_once():
    assert removal(["a", "b"]).now == ("a", "b")


def test_many_files_at_once_are_kept_for_a_minute():
    gone = [str(number) for number in range(30)]
    first = removal(gone)
    too_soon = removal(gone, seen_before=first.remember, at=1030.0)
    later = removal(gone, seen_before=first.remember, at=1060.0)

    assert first.now == ()
    assert first.withheld == tuple(gone)
    assert too_soon.now == ()
    assert too_soon.remember == first.remember
    assert later.now == tuple(gone)
    assert later.remember is None


def test_the_only_file_is_kept_for_a_minute_too():
    assert removal(["a"], known_count=1).withheld == ("a",)


def test_what_went_missing_later_gets_a_minute_of_its_own():
    gone = [str(number) for number in range(30)]
    later = removal([*gone, "new"], seen_before=Disappearance(frozenset(gone), 900.0), at=1000.0)

    assert later.now == tuple(gone)
    assert later.withheld == ("new",)
    assert later.remember == Disappearance(frozenset({"new"}), 1000.0)


def test_a_clock_that_jumped_back_starts_the_minute_anew():
    gone = [str(number) for number in range(30)]
    plan = removal(gone, seen_before=Disappearance(frozenset(gone), 5000.0), at=1000.0)

    assert plan.now == ()
    assert plan.remember.seen_at == 1000.0


def test_a_person_may_confirm():
    assert removal([str(number) for number in range(30)], confirmed=True).now


@given(st.sets(st.text(max_size=5), max_size=40), st.integers(0, 40), st.booleans())
def test_every_missing_file_is_either_dropped_or_kept(missing, more, confirmed):
    plan = removal(sorted(missing), known_count=len(missing) + more, confirmed=confirmed)

    assert {*plan.now, *plan.withheld} == missing
    assert not {*plan.now} & {*plan.withheld}


def test_files_that_went_missing_later_get_a_minute_of_their_own():
    half, all_of_them = [f"{n}.md" for n in range(5)], [f"{n}.md" for n in range(10)]
    first = plan_removal(half, known_count=10, seen_before=None, at=1000.0, confirmed=False)
    second = plan_removal(all_of_them, known_count=10, seen_before=first.remember, at=1059.0, confirmed=False)
    third = plan_removal(all_of_them, known_count=10, seen_before=second.remember, at=1061.0, confirmed=False)

    assert third.now == ()
    assert set(third.withheld) == set(all_of_them)


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def state_of(found):
    return FileState(found.path, "memory", "hash", found.size, found.mtime_ns, found.inode)


@pytest.mark.parametrize(
    ("made", "reading", "is_same"),
    [
        ("", Reading(), True),
        ("", Reading(2, 0), False),
        ("@2.7", Reading(2, 7), True),
        ("@3.9", Reading(2, 7), True),  # by a newer version, with secrets that we do not know
        ("@2.7", Reading(2, 8), False),
        ("@1.7", Reading(2, 7), False),
        ("@2.", Reading(2, 0), False),
    ],
)
def test_a_file_is_read_anew_when_its_copy_may_show_a_secret_that_is_known_by_now(made, reading, is_same):
    file = replace(found("a.jsonl"), reading=reading)

    assert looks_the_same(file, replace(state("a.jsonl"), hash=f"hash{made}")) is is_same


def test_a_real_file_is_changed_when_its_size_time_or_inode_differ(tmp_path):
    path = write(tmp_path / "memory" / "a.md", "text\n")
    os.utime(path, ns=(10**18, 10**18))
    workspace = Workspace(str(tmp_path))
    (before,) = workspace.discover().files
    known_state = state_of(before)

    assert looks_the_same(before, known_state)
    path.write_text("longer text\n")
    os.utime(path, ns=(10**18, 10**18))
    assert not looks_the_same(workspace.discover().files[0], known_state)
    path.write_text("text\n")
    assert not looks_the_same(workspace.discover().files[0], known_state)
    path.rename(tmp_path / "aside")
    write(path, "text\n")
    os.utime(path, ns=(10**18, 10**18))
    assert not looks_the_same(workspace.discover().files[0], known_state)


def test_a_real_file_written_just_before_it_was_read_is_read_again(tmp_path):
    path = write(tmp_path / "memory" / "a.md", "one\n")
    workspace = Workspace(str(tmp_path))
    (found_file,) = workspace.discover().files
    written = found_file.mtime_ns
    path.write_text("two\n")  # the same length, and within one tick of a coarse clock
    os.utime(path, ns=(written, written))
    (now,) = workspace.discover().files

    def known_when_read_at(moment):
        return replace(state_of(found_file), mtime_ns=mtime_to_record(written, read_at_ns=moment))

    assert not looks_the_same(now, known_when_read_at(written + 1_900_000_000))
    assert not looks_the_same(now, known_when_read_at(written - 5_000_000_000))  # a clock that ran ahead
    assert looks_the_same(now, known_when_read_at(written + 2_100_000_000))


def test_what_is_surely_gone_goes_at_once_and_the_rest_waits_for_a_second_look():
    gone = [f"{number:02}.md" for number in range(60)]

    removal = plan_removal(
        gone,
        known_count=60,
        seen_before=None,
        at=1000.0,
        confirmed=False,
        is_surely_gone=lambda path: path < "10",
    )

    assert removal.now == tuple(gone[:10])
    assert removal.withheld == tuple(gone[10:])
    assert removal.remember is not None
    assert removal.remember.paths == frozenset(gone[10:])
