"""Appending: whole, once, in the right file, whatever people do with it meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.faulty_system import FaultySystem

from plainmind.base.errors import LockTimeout, PathNotAllowed, StorageFailure
from plainmind.files import append as module
from plainmind.files.append import Appended, Tail, append, new_id, time_of
from plainmind.files.system import SYSTEM, System, hold_lock, lock_path_for

RECORD = b"- the gateway moved <!-- m:01J -->\n"


@pytest.fixture
def note(tmp_path: Path) -> Path:
    return tmp_path / "workspace" / "memory" / "2026-11-15.md"


def add(
    path: Path,
    record: bytes = RECORD,
    record_id: str = "m:01J",
    tail: Tail = Tail.MARKDOWN,
    system: System = SYSTEM,
    **options: object,
) -> Appended:
    state = path.parents[2] / "state"
    return append(
        str(path), record, state_dir=str(state), record_id=record_id, tail=tail, system=system, **options
    )  # type: ignore[arg-type]


def test_a_new_file_gets_its_header_and_private_modes(note: Path) -> None:
    appended = add(note, header=b"# Monday\n")

    assert note.read_bytes() == b"# Monday\n" + RECORD
    assert appended == Appended(offset=9, created=True)
    assert note.stat().st_mode & 0o777 == 0o600
    assert note.parent.stat().st_mode & 0o777 == 0o700


def test_an_empty_file_gets_its_header_and_keeps_its_mode(note: Path) -> None:
    note.parent.mkdir(parents=True)
    note.touch(0o640)

    assert not add(note, header=b"# Monday\n", separator=b"\n").created

    assert note.read_bytes() == b"# Monday\n" + RECORD
    assert note.stat().st_mode & 0o777 == 0o640


def test_a_last_line_without_newline_gets_one_and_the_separator_goes_between(note: Path) -> None:
    note.parent.mkdir(parents=True)
    note.write_bytes(b"a person's line")

    appended = add(note, header=b"# not again\n", separator=b"\n")

    assert note.read_bytes() == b"a person's line\n\n" + RECORD
    assert appended.offset == note.read_bytes().index(RECORD)


def test_the_same_id_again_changes_nothing_and_says_where_the_record_stands(note: Path) -> None:
    first = add(note, header=b"# Monday\n")
    add(note, b"- more <!-- m:01K -->\n", "m:01K")
    before = note.read_bytes()

    again = add(note)

    assert note.read_bytes() == before
    assert again == Appended(first.offset, created=False, already_there=True)


def test_a_note_that_a_person_has_changed_is_not_written_again(note: Path) -> None:
    add(note)
    note.write_bytes(b"- the gateway stays after all <!-- m:01J -->\n")

    assert add(note).already_there

    assert note.read_bytes() == b"- the gateway stays after all <!-- m:01J -->\n"


def test_a_limited_look_back_does_not_see_what_is_further_up(note: Path) -> None:
    add(note)
    add(note, b"- " + b"x" * 100 + b" m:01K\n", "m:01K")

    assert add(note, look_back_bytes=200).already_there
    assert not add(note, look_back_bytes=50).already_there
    assert not add(note, look_back_bytes=0).already_there


def test_the_torn_copy_of_a_killed_writer_is_completed(note: Path) -> None:
    note.parent.mkdir(parents=True)
    note.write_bytes(b"# Monday\n" + RECORD[:-2])

    appended = add(note)

    assert note.read_bytes() == b"# Monday\n" + RECORD
    assert appended == Appended(9, created=False, already_there=True)


def test_a_torn_jsonl_line_is_put_aside_and_cut(note: Path) -> None:
    note.parent.mkdir(parents=True)
    torn = b'{"id":"2","text":"' + b"long " * 30_000
    note.write_bytes(b'{"id":"1"}\n' + torn)

    appended = add(note, b'{"id":"3"}\n', '"3"', Tail.JSONL)

    assert note.read_bytes() == b'{"id":"1"}\n{"id":"3"}\n'
    assert appended.offset == 11
    (aside,) = note.parent.glob("*.torn-*")
    assert aside.read_bytes() == torn
    assert aside.stat().st_mode & 0o777 == 0o600


def test_a_file_of_one_torn_jsonl_line_starts_anew_with_its_header(note: Path) -> None:
    note.parent.mkdir(parents=True)
    note.write_bytes(b'{"id":"2')

    add(note, b'{"id":"3"}\n', '"3"', Tail.JSONL, header=b'{"v":1}\n')

    assert note.read_bytes() == b'{"v":1}\n{"id":"3"}\n'


def test_a_whole_jsonl_line_without_newline_gets_one(note: Path) -> None:
    note.parent.mkdir(parents=True)
    note.write_bytes(b'{"id":"1"}\n{"id":"2"}')

    add(note, b'{"id":"3"}\n', '"3"', Tail.JSONL)

    assert note.read_bytes() == b'{"id":"1"}\n{"id":"2"}\n{"id":"3"}\n'


@pytest.mark.parametrize(
    ("record", "record_id", "tail"),
    [
        (b"no newline m:01J", "m:01J", Tail.MARKDOWN),
        (b"no id\n", "m:01J", Tail.MARKDOWN),
        (b"empty id\n", "", Tail.MARKDOWN),
        (b'{"id":\n"1"}\n', '"1"', Tail.JSONL),
    ],
)
def test_a_record_that_could_not_be_kept_whole_is_a_mistake_of_the_caller(
    note: Path, record: bytes, record_id: str, tail: Tail
) -> None:
    with pytest.raises(ValueError, match="record"):
        add(note, record, record_id, tail)
    assert not note.exists()


def test_links_folders_and_pipes_are_refused(note: Path) -> None:
    note.parent.mkdir(parents=True)
    elsewhere = note.with_name("elsewhere.md")
    elsewhere.write_bytes(b"mine\n")

    def refused(match: str) -> None:
        with pytest.raises(PathNotAllowed, match=match) as caught:
            add(note)
        assert caught.value.hint
        if note.is_dir():
            note.rmdir()
        else:
            note.unlink()

    note.symlink_to(elsewhere)
    refused("could not append")
    os.link(elsewhere, note)
    refused("hard links")
    os.mkfifo(note)
    refused("not a plain file")
    note.mkdir()
    refused("could not append")
    assert elsewhere.read_bytes() == b"mine\n"


def test_who_waits_too_long_learns_who_has_the_lock(note: Path) -> None:
    lock = lock_path_for(str(note.parents[2] / "state"), str(note))
    with hold_lock(lock, operation="a long sync"), pytest.raises(LockTimeout, match="a long sync"):
        add(note, timeout_s=0.02)


def test_threads_lose_nothing(note: Path) -> None:
    def write(thread: int) -> None:
        for number in range(20):
            add(note, f"- {thread}/{number} m:{thread}-{number}.\n".encode(), f"m:{thread}-{number}.")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = note.read_bytes().splitlines()
    assert len(lines) == len(set(lines)) == 80


def saves_by_rename(file: Path, text: bytes) -> None:
    beside = file.with_name("beside")
    beside.write_bytes(text)
    os.replace(beside, file)


def write_long_ago(file: Path, text: bytes) -> None:
    """Write a file that nobody could be saving just now."""
    file.write_bytes(text)
    os.utime(file, (1_700_000_000, 1_700_000_000))


SAVES: dict[str, Callable[[Path, bytes], None]] = {
    "by rename": saves_by_rename,
    "in place": lambda file, text: (file.write_bytes(text), None)[1],
}


@pytest.mark.parametrize("how", SAVES)
@pytest.mark.parametrize("loaded", ["just now", "before the append"])
@pytest.mark.parametrize("look_back", [None, 0], ids=["retry", "first try"])
def test_a_save_at_any_moment_of_an_append_loses_neither_text(
    note: Path, how: str, loaded: str, look_back: int | None
) -> None:
    """For every call of an append: an editor saves right before it, the newest text or an older one."""
    old = b"# Monday\n- a note\n"
    quiet = FaultySystem()
    add(note)  # makes the lock file too: from now on every append makes the same calls
    write_long_ago(note, old)
    add(note, system=quiet, look_back_bytes=look_back)
    # After its last look at the name, or at its bytes in the file, an append cannot notice any more.
    last_look = max(
        n for n, call in enumerate(quiet.calls, 1) if call == ("stat" if how == "by rename" else "pread")
    )
    moments = last_look if loaded == "before the append" else len(quiet.calls)

    for moment in range(1, moments + 1):
        write_long_ago(note, old)

        def save(_: str, number: int, moment: int = moment) -> None:
            if number == moment:
                SAVES[how](note, b"a person's line\n" + (note.read_bytes() if loaded == "just now" else old))

        add(note, system=FaultySystem(before=save), look_back_bytes=look_back)

        text = note.read_bytes()
        assert text.count(RECORD) == 1, quiet.calls[moment - 1]
        assert text.startswith(b"a person's line\n" + old), quiet.calls[moment - 1]


def test_a_file_deleted_during_an_append_is_made_again(note: Path) -> None:
    def delete(name: str, _: int) -> None:
        if name == "fdatasync":
            note.unlink()
            system._before = None

    system = FaultySystem(before=delete)

    assert add(note, header=b"# Monday\n", system=system).created

    assert note.read_bytes() == b"# Monday\n" + RECORD


def test_a_file_that_somebody_else_makes_first_is_used(note: Path) -> None:
    def make(name: str, number: int) -> None:
        if name == "mkdir" and not note.parent.exists():
            note.parent.mkdir(parents=True)
            note.write_bytes(b"theirs\n")

    assert not add(note, system=FaultySystem(before=make)).created

    assert note.read_bytes() == b"theirs\n" + RECORD


def test_a_file_that_appears_between_two_looks_is_used(note: Path) -> None:
    note.parent.mkdir(parents=True)
    opened: list[int] = []

    def make(name: str, _: int) -> None:
        if name == "open":
            opened.append(1)
            if len(opened) == 4:  # the lock (its folder is made between two tries), then the note twice
                note.write_bytes(b"theirs\n")

    add(note, system=FaultySystem(before=make))

    assert note.read_bytes() == b"theirs\n" + RECORD


def test_a_file_that_is_replaced_for_ever_is_given_up_with_an_error(note: Path) -> None:
    note.parent.mkdir(parents=True)
    note.write_bytes(b"old\n")

    def save(name: str, _: int) -> None:
        if name == "fdatasync":
            saves_by_rename(note, b"old\n")

    with pytest.raises(StorageFailure, match="keeps replacing the file"):
        add(note, system=FaultySystem(before=save), timeout_s=0.05)
    assert note.read_bytes() == b"old\n"


def test_bytes_that_others_wrote_behind_a_short_write_are_not_cut_off(note: Path) -> None:
    note.parent.mkdir(parents=True)
    note.write_bytes(b"old\n")

    def write_behind(name: str, _: int) -> None:
        if name == "position":
            with note.open("ab") as file:
                file.write(b"theirs\n")

    # The first write signs the lock file.
    system = FaultySystem(fail_at=2, short=True, before=write_behind)
    with pytest.raises(StorageFailure, match="took only") as caught:
        add(note, system=system)

    assert "a part of the text is still" in str(caught.value.hint)
    assert note.read_bytes().endswith(b"theirs\n")


def test_paths_without_a_folder_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    append("note.md", RECORD, state_dir="state", record_id="m:01J", tail=Tail.MARKDOWN)
    assert (tmp_path / "note.md").read_bytes() == RECORD


def test_a_retry_finds_its_record_however_much_others_wrote_since(note: Path) -> None:
    add(note)
    with note.open("ab") as file:
        file.write(b"- another note\n" * 200_000)

    assert add(note).already_there


def test_the_bytes_are_synced_then_the_name_then_both_are_looked_at(note: Path) -> None:
    system = FaultySystem()
    add(note, system=system)

    after_the_record = system.calls[len(system.calls) - system.calls[::-1].index("write") :]
    assert after_the_record == [
        *("position", "fdatasync", "fsync_folder", "stat", "fstat", "pread"),
        *("fstat", "close", "pwrite", "flock", "close"),
    ]


ALPHABET = set("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


@pytest.fixture(autouse=True, scope="module")
def _ids_of_other_tests_are_of_today() -> Iterator[None]:
    yield
    module._start_anew()  # else they count on from the year 10889


def test_an_id_is_26_characters_that_cannot_be_misread() -> None:
    assert len(new_id()) == 26
    assert set(new_id()) <= ALPHABET


@given(st.lists(st.floats(-1e12, 1e13), min_size=2, max_size=30))
def test_ids_rise_whatever_the_clock_does(times: list[float]) -> None:
    ids = [new_id(lambda at=at: at) for at in times]  # type: ignore[misc]
    assert ids == sorted(set(ids))


def test_ids_rise_within_one_millisecond_and_with_bad_luck() -> None:
    ids = [new_id(lambda: 1e9, lambda count: b"\xff" * count) for _ in range(1000)]
    assert ids == sorted(set(ids))


def test_threads_never_get_the_same_id() -> None:
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.extend([new_id() for _ in range(500)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 2000


def test_an_id_tells_when_it_was_given() -> None:
    before = time.time()
    given = time_of(new_id())
    assert before - 0.001 <= given
    with pytest.raises(ValueError, match="invalid literal"):
        time_of("not an id!")


def test_a_forked_child_does_not_give_its_parents_next_ids() -> None:
    stopped = 1e13  # the latest possible time: both processes can only count on
    new_id(lambda: stopped)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, new_id(lambda: stopped).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 26).decode()
    os.close(read)
    os.close(write)
    assert theirs != new_id(lambda: stopped)
