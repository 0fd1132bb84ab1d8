"""Finding a record in bytes that others have written too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plainmind.files import append
from plainmind.files.append import Found, find_record, is_whole_json

RECORD = b"- <!-- m:01J --> first line\n  second line\n"
ID = b"m:01J"


def found_in(data: bytes, begin: int = 0) -> Found | None:
    return find_record(lambda start, end: data[start:end], begin, len(data), RECORD, ID)


def test_a_whole_record_is_found_where_it_stands() -> None:
    assert found_in(b"# Monday\n" + RECORD + b"- more\n") == Found(9)


def test_a_record_that_is_not_there_is_not_found() -> None:
    assert found_in(b"# Monday\n- m:01K\n") is None


def test_a_record_torn_at_the_end_of_the_file_is_found_with_what_it_lacks() -> None:
    assert found_in(b"# Monday\n" + RECORD[:-6]) == Found(9, missing=b" line\n")


def test_a_record_torn_further_up_does_not_count() -> None:
    assert found_in(b"# Monday\n" + RECORD[:-6] + b"\n- the next writer's note\n") is None


def test_a_whole_record_after_its_own_torn_copy_is_found() -> None:
    torn = RECORD[:-6] + b"\n"
    assert found_in(torn + RECORD) == Found(len(torn))


def test_a_record_whose_end_a_person_changed_is_still_that_record() -> None:
    assert found_in(b"x\n" + RECORD.replace(b"second", b"changed")) == Found(2)


def test_a_record_whose_beginning_a_person_changed_is_found_at_its_line() -> None:
    assert found_in(b"x\n* changed <!-- m:01J --> first line\n") == Found(2)
    assert found_in(b"m:01J") == Found(0)


def test_of_two_edited_copies_the_first_is_given() -> None:
    changed_end = RECORD.replace(b"second", b"changed")
    assert found_in(b"* m:01J\n" + changed_end) == Found(0)
    assert found_in(changed_end + changed_end) == Found(0)
    assert found_in(changed_end + b"* m:01J\n") == Found(0)


def test_only_what_begins_behind_the_given_offset_is_looked_at() -> None:
    assert found_in(RECORD + b"- more\n", begin=len(RECORD)) is None


def test_an_id_across_two_blocks_is_found(monkeypatch) -> None:
    monkeypatch.setattr(append, "_SEARCH_BYTES", 8)
    for padding in range(20):
        assert found_in(b"." * padding + b"\n" + RECORD) == Found(padding + 1)


@given(before=st.binary(max_size=50), cut=st.integers(1, len(RECORD)), after=st.binary(max_size=50))
def test_what_is_found_is_whole_or_can_be_completed_or_was_changed(
    before: bytes, cut: int, after: bytes
) -> None:
    data = before + RECORD[:cut] + after
    found = found_in(data)
    if found is not None and found.missing:
        assert data[found.start :] + found.missing == RECORD
    if cut == len(RECORD):
        assert found is not None
        assert data[found.start :].startswith(RECORD)
    if found is None:
        assert RECORD not in data


def test_only_a_whole_object_or_list_counts_as_a_json_line() -> None:
    assert is_whole_json(b'{"a": 1}')
    assert is_whole_json(b"[1]")
    assert not is_whole_json(b'{"a": 1')
    assert not is_whole_json(b"12")  # perhaps of 123
    assert not is_whole_json(b"\x00\x00")
    assert not is_whole_json(b"\xff")
    assert not is_whole_json(b"[" * 100_000)
