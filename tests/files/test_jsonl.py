"""Lines of JSONL files: every byte in exactly one line, from both ends, however long and however damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from plainmind.base.errors import NotFound, PathNotAllowed
from plainmind.files import jsonl
from plainmind.files.jsonl import (
    RawLine,
    add_line,
    backwards,
    end_of_last_line,
    forwards,
    lines_holding,
    open_plain_file,
    start_of_line,
)

CONTENTS = st.lists(
    st.sampled_from([b"\n", b"a", b"{}", b"\r\n", b"\0", b"\xff", b"longer than a block"])
).map(b"".join)


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "_BLOCK_BYTES", 5)


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(data)
    return path


def expected(data: bytes) -> list[RawLine]:
    *whole, rest = data.split(b"\n")
    lines = []
    start = 0
    for number, line in enumerate(whole, 1):
        lines.append(RawLine(number, start, start + len(line) + 1, line))
        start += len(line) + 1
    if rest:
        lines.append(RawLine(len(lines) + 1, start, len(data), rest, is_complete=False))
    return lines


def unnumbered(lines: list[RawLine]) -> list[tuple[object, ...]]:
    return [(line.start, line.end, line.data, line.is_complete, line.is_too_long) for line in lines]


@pytest.mark.usefixtures("tiny_blocks")
@given(data=CONTENTS)
@settings(max_examples=examples(150))
def test_reading_forwards_gives_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    with open_plain_file(str(written(tmp_path_factory.getbasetemp(), data))) as fd:
        assert list(forwards(fd)) == expected(data)


@pytest.mark.usefixtures("tiny_blocks")
@given(data=CONTENTS)
@settings(max_examples=examples(150))
def test_reading_backwards_gives_the_same_lines_in_reverse(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    with open_plain_file(str(written(tmp_path_factory.getbasetemp(), data))) as fd:
        assert unnumbered(list(backwards(fd))[::-1]) == unnumbered(expected(data))


@pytest.mark.usefixtures("tiny_blocks")
@given(data=CONTENTS, choice=st.integers(min_value=0))
def test_reading_from_the_end_of_any_line_goes_on_where_it_stopped(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, choice: int
) -> None:
    lines = expected(data)
    ends = [0, *(line.end for line in lines)]
    at = choice % len(ends)
    with open_plain_file(str(written(tmp_path_factory.getbasetemp(), data))) as fd:
        assert list(forwards(fd, start=ends[at], number=at + 1)) == lines[at:]
        assert list(forwards(fd, stop=ends[at])) == lines[:at]
        assert unnumbered(list(backwards(fd, end=ends[at]))[::-1]) == unnumbered(lines[:at])


@pytest.mark.usefixtures("tiny_blocks")
@given(data=CONTENTS)
def test_the_last_line_ends_behind_the_last_newline(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    with open_plain_file(str(written(tmp_path_factory.getbasetemp(), data))) as fd:
        assert end_of_last_line(fd, len(data)) == data.rfind(b"\n") + 1


@pytest.mark.usefixtures("tiny_blocks")
@given(data=CONTENTS, wanted=st.sampled_from([b"a", b"{}", b"block", b"longer than a", b"\xff"]))
def test_the_lines_that_hold_some_bytes_are_found_and_no_others(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, wanted: bytes
) -> None:
    with open_plain_file(str(written(tmp_path_factory.getbasetemp(), data))) as fd:
        found = list(lines_holding(fd, wanted, stop=len(data)))
    assert unnumbered(found) == unnumbered([line for line in expected(data) if wanted in line.data])


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize("reading", [forwards, backwards])
def test_a_line_that_is_too_long_is_left_out_and_its_neighbours_are_not(tmp_path: Path, reading) -> None:
    data = b"one\n" + b"x" * 40 + b"\ntwo\n"
    with open_plain_file(str(written(tmp_path, data))) as fd:
        found = sorted(reading(fd, max_line_bytes=12), key=lambda line: line.start)

    assert [(line.data, line.is_too_long) for line in found] == [
        (b"one", False),
        (b"", True),
        (b"two", False),
    ]
    assert [(line.start, line.end) for line in found] == [(0, 4), (4, 45), (45, 49)]


def test_a_line_that_comes_while_reading_is_read_as_well(tmp_path: Path) -> None:
    path = written(tmp_path, b"one\n")
    with open_plain_file(str(path)) as fd:
        reading = forwards(fd)
        assert next(reading).data == b"one"
        with path.open("ab") as file:
            file.write(b"two\n")
        assert [line.data for line in reading] == [b"two"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"), open_plain_file(str(tmp_path / "nowhere.jsonl")):
        pass


def test_a_folder_or_a_symlink_is_not_read(tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(written(tmp_path, b"{}\n"))
    for path in (tmp_path, link):
        with pytest.raises(PathNotAllowed), open_plain_file(str(path)):
            pass


SEES_A_LONG_LINE = """
import sys
sys.path.insert(0, sys.argv[2])
from plainmind.files.jsonl import backwards, forwards, open_plain_file
from tests.support.peak_memory import peak_memory
before = peak_memory()
with open_plain_file(sys.argv[1]) as fd:
    for lines in (list(forwards(fd)), list(backwards(fd))[::-1]):
        assert [(len(line.data), line.is_too_long) for line in lines] == [(2, False), (0, True), (2, False)]
print(peak_memory() - before)
"""


@pytest.mark.slow
def test_a_line_of_200_mb_is_passed_over_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(b"{}\n")
        file.seek(200_000_000, os.SEEK_CUR)  # a hole: NULs that take no room on the disk
        file.write(b"\n{}\n")
    run = subprocess.run(
        [sys.executable, "-c", SEES_A_LONG_LINE, path, Path(__file__).parents[2]],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert int(run.stdout) < 64 << 20


def test_a_line_is_added_whole_after_one_that_was_torn(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "lines.jsonl"
    add_line(str(path), b'{"a":1}')
    with path.open("ab") as file:
        file.write(b'{"b":')
    add_line(str(path), b'{"c":3}')
    assert path.read_bytes() == b'{"a":1}\n{"b":\n{"c":3}\n'


@given(CONTENTS, st.integers(1, 12))
@settings(deadline=None)
def test_a_line_is_found_by_its_number(data: bytes, number: int) -> None:
    import tempfile

    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "_BLOCK_BYTES", 5)
        file.write(data)
        file.flush()
        starts = {line.number: line.start for line in forwards(file.fileno())}
        found = start_of_line(file.fileno(), number, stop=len(data))

    behind_the_last = data.endswith(b"\n") and number == data.count(b"\n") + 1
    expected = len(data) if behind_the_last else starts.get(number, 0 if number == 1 else None)
    assert found == expected
