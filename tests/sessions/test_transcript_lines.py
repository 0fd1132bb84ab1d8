"""Transcripts become one line a message, whatever stands in the file, however often somebody stops and goes on."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, timedelta, timezone

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.transcript_files import line, message, text

from plainmind.base.value import replace
from plainmind.files import jsonl
from plainmind.notes.discovery import AS_IT_IS, Reading
from plainmind.notes.source import START, Extent, Mark, begins_alike, ends_alike, extent_of
from plainmind.sessions.transcripts import LineReader


def read(raw, begin=START, characters=None, zone=UTC, redact=lambda text: text):
    """All pieces of a transcript."""
    reader = LineReader(redact=redact, zone=zone)
    with tempfile.TemporaryFile() as file:
        file.write(raw)
        file.flush()
        return list(reader.pieces(file.fileno(), stop=len(raw), begin=begin, characters=characters))


def read_at_once(raw, **how):
    (piece,) = read(raw, **how)
    return piece


def test_messages_become_lines_that_lead_back_to_the_file():
    raw = (
        json.dumps({"type": "session", "id": "x"}).encode()
        + b"\n"
        + line("user", "where is\n\n the  gateway?")
        + line("system", "be brief")
        + line("assistant", [text("In the"), {"type": "image"}, text("cellar.")])
    )

    lines = read_at_once(raw)

    assert lines.texts == ("User: where is the gateway?", "Assistant: In the cellar.")
    assert lines.numbers == (2, 4)
    assert (lines.end.offset, lines.end.lines, lines.rest) == (len(raw), 4, "")


def test_lines_that_cannot_be_read_are_counted_and_cost_no_other():
    deep = b"[" * 100_000
    raw = b"\n".join([b"{broken", b"12", b"\xff\xfe", deep, message("user", "hello"), b""])

    lines = read_at_once(raw)

    assert (lines.texts, lines.numbers) == (("User: hello",), (5,))
    assert (lines.unreadable.damaged, lines.unreadable.too_long) == (4, 0)


def test_a_line_too_long_to_be_read_is_passed_over(monkeypatch):
    monkeypatch.setattr("plainmind.sessions.transcripts.forwards", _short_lines)
    raw = line("user", "before") + b"x" * 5_000 + b"\n" + line("user", "after")

    lines = read_at_once(raw)

    assert (lines.texts, lines.numbers) == (("User: before", "User: after"), (1, 3))
    assert (lines.unreadable.too_long, lines.end.lines) == (1, 3)


def _short_lines(fd, **where):
    return jsonl.forwards(fd, max_line_bytes=1_000, **where)


def test_a_half_written_last_line_waits():
    first, second = line("user", "first"), message("assistant", "second")

    half = read_at_once(first + second[:-4])
    whole = read_at_once(first + second)

    assert (half.texts, half.rest, half.unreadable.damaged) == (("User: first",), "", 0)
    assert (whole.texts, bool(whole.rest)) == (("User: first", "Assistant: second"), True)
    # It is read again when it has its newline, or has become another line.
    assert half.end.offset == whole.end.offset == len(first)


@pytest.mark.parametrize(
    "line",
    [
        message("user", "  \n "),
        message("user", None),
        message("user", [{"type": "tool_use", "input": {}}, "text"]),
        message(["user"], "text"),
        json.dumps({"type": "message", "message": "text"}).encode(),
        json.dumps({"type": "compaction", "message": {"role": "user", "content": "text"}}).encode(),
    ],
)
def test_what_nobody_said_is_left_out(line):
    lines = read_at_once(line + b"\n")

    assert (lines.texts, lines.unreadable.damaged) == ((), 0)


def test_characters_that_no_database_takes_are_replaced():
    lines = read_at_once(b'{"type":"message","message":{"role":"user","content":"a\\u0000b \\ud800 c"}}')

    assert lines.texts == ("User: ab ? c",)


def test_a_message_belongs_to_the_day_on_which_it_was_said_where_the_user_is():
    raw = (
        line("user", "late", timestamp="2026-02-10T23:30:00Z")
        + line("user", "later", timestamp=1_770_768_000_000)
        + line("user", "whenever")
        + line("user", "at the end of time", timestamp=253_402_300_799_000)
    )

    assert read_at_once(raw, zone=UTC).days == ("2026-02-10", "2026-02-11", None, "9999-12-31")
    assert read_at_once(raw, zone=timezone(timedelta(hours=2))).days == (
        "2026-02-11",
        "2026-02-11",
        None,
        None,
    )


def test_secrets_are_hidden_while_a_message_still_has_its_lines():
    def redact(text):
        return text.replace("BEGIN\nsecret\nEND", "[hidden]")

    lines = read_at_once(line("user", "key: BEGIN\nsecret\nEND, keep it"), redact=redact)

    assert lines.texts == ("User: key: [hidden], keep it",)


def test_a_long_transcript_comes_in_pieces_of_whole_messages():
    raw = b"".join(line("user", f"message {number} " + "x" * 100) for number in range(50))

    pieces = read(raw, characters=1_000)

    assert len(pieces) > 3
    assert [piece.is_last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert sum((piece.texts for piece in pieces), ()) == read_at_once(raw).texts
    assert pieces[-1].end == read_at_once(raw).end


def entries():
    words = st.text(max_size=40)
    said = st.builds(line, st.sampled_from(["user", "assistant", "toolResult"]), words)
    noise = st.one_of(st.binary(max_size=30), st.just(b'{"type":"message","mess'), st.just(b""))
    return st.lists(st.one_of(said, noise.map(lambda data: data.replace(b"\n", b"") + b"\n")), max_size=20)


@settings(deadline=None)
@given(entries(), st.binary(max_size=60), st.lists(st.integers(0, 2_000), max_size=5), st.integers(1, 200))
@example([line("user", "one")], message("user", "two"), [10, 40], 1)
def test_reading_on_from_any_place_gives_what_reading_at_once_gives(lines, rest, cuts, characters):
    raw = b"".join(lines) + rest
    at_once = read_at_once(raw)

    texts, numbers, begin = (), (), START
    for cut in sorted({min(cut, len(raw)) for cut in cuts}):
        for piece in read(raw[:cut], begin=begin, characters=characters):
            finished = [number <= piece.end.lines for number in piece.numbers]
            texts += tuple(text for text, done in zip(piece.texts, finished, strict=True) if done)
            numbers += tuple(number for number, done in zip(piece.numbers, finished, strict=True) if done)
            begin = piece.end
    last = read_at_once(raw, begin=begin)

    assert (texts + last.texts, numbers + last.numbers) == (at_once.texts, at_once.numbers)
    assert (last.end, last.rest) == (at_once.end, at_once.rest)


@settings(deadline=None)
@given(st.lists(st.text()), st.binary())
def test_no_bytes_make_it_raise_or_lose_a_good_line(texts, rest):
    raw = b"".join(line("user", text) for text in texts) + rest

    lines = read_at_once(raw)

    spoken = [said for text in texts if (said := " ".join(text.replace("\0", "").split()))]
    expected = [f"User: {said}".encode("utf-8", "replace").decode() for said in spoken]
    assert list(lines.texts[: len(expected)]) == expected
    assert len(lines.texts) == len(lines.numbers) == len(lines.days)


@settings(deadline=None)
@given(st.binary(max_size=200), st.binary(min_size=1, max_size=50))
def test_good_lines_around_any_damage_are_found(damage, other):
    damage = damage.replace(b"\n", b" ")
    raw = line("user", "before") + damage + b"\n" + other.replace(b"\n", b" ") + b"\n" + line("user", "after")

    lines = read_at_once(raw)

    assert (lines.texts[0], lines.numbers[0]) == ("User: before", 1)
    assert (lines.texts[-1], lines.numbers[-1]) == ("User: after", 4)


# ── marks ──


def marks():
    hexes = st.text("0123456789abcdef", min_size=32, max_size=32)
    return st.builds(Mark, *[st.integers(0, 2**60)] * 3, hexes, hexes) | st.just(START)


@settings(deadline=None)
@given(marks(), marks(), st.sampled_from(["", "0a" * 16]))
def test_an_extent_is_read_back_as_it_was_written(whole, words, rest):
    for reading in (AS_IT_IS, Reading(2, 1_700_000_000_000)):
        extent = Extent(whole, words, rest, reading)

        assert extent_of(str(extent)) == extent


@settings(deadline=None)
@given(st.text())
@example("0" * 64)
@example("1/2/3/a")
def test_another_hash_is_no_extent(written):
    found = extent_of(written)

    assert found is None or str(found) == written or "/" in written


@pytest.mark.parametrize("changed", [0, 5_000, 9_000])
def test_all_bytes_before_a_mark_can_be_compared_and_the_last_ones_quickly(changed):
    raw = b"".join(line("user", f"{number:>90}") for number in range(100))
    mark = read_at_once(raw).end
    other = bytearray(raw + line("user", "more"))
    other[changed] ^= 1

    with tempfile.TemporaryFile() as file:
        file.write(raw + line("user", "more"))
        file.flush()
        assert ends_alike(file.fileno(), mark)
        assert begins_alike(file.fileno(), mark)
        os.pwrite(file.fileno(), bytes(other), 0)
        assert not begins_alike(file.fileno(), mark)
        assert ends_alike(file.fileno(), mark) == (changed < mark.offset - 4_096)


def test_a_file_that_became_shorter_is_another_one():
    raw = line("user", "first") + line("user", "second")
    mark = read_at_once(raw).end
    with tempfile.TemporaryFile() as file:
        file.write(raw[:-10])
        file.flush()

        assert not ends_alike(file.fileno(), mark)
        assert not begins_alike(file.fileno(), mark)


def test_a_mark_does_not_depend_on_how_often_somebody_stopped():
    lines = [line("user", "x" * size) for size in (10, 5_000, 1, 70_000, 3)]
    mark, so_far = START, b""
    for each in lines:
        so_far += each
        mark = replace(read_at_once(so_far, begin=mark).end, chunks=0)

    assert mark == read_at_once(b"".join(lines)).end
