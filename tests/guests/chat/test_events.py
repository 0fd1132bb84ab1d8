"""Server-sent events, cut into pieces anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.guests.chat import dialects
from plainmind.guests.chat.dialects import EventReader, EventTooLarge, ServerEvent


def read(*pieces: bytes) -> list[ServerEvent]:
    reader = EventReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    return [*events, *reader.finish()]


def test_an_event_has_a_name_and_data():
    assert read(b"event: ping\ndata: {}\n\n") == [ServerEvent("ping", "{}")]
    assert read(b"data: a\n\ndata:b\n\n") == [ServerEvent("message", "a"), ServerEvent("message", "b")]


def test_lines_of_data_are_joined_and_comments_are_passed_over():
    assert read(b": keep-alive\n\ndata: a\n: and on\nid: 7\nretry: 10\ndata: b\n\n") == [
        ServerEvent("message", "a\nb")
    ]


def test_every_line_end_is_understood_also_in_two_pieces():
    wanted = [ServerEvent("x", "a"), ServerEvent("message", "b")]
    for end in (b"\n", b"\r\n", b"\r"):
        assert read(end.join([b"event: x", b"data: a", b"", b"data: b", b"", b""])) == wanted
    assert read(b"event: x\r", b"\ndata: a\r", b"\n\r", b"\ndata: b\r\n", b"\r\n") == wanted
    assert read(*(bytes([byte]) for byte in b"event: x\r\ndata: a\r\n\ndata: b\n\n")) == wanted


def test_a_stream_that_ends_without_its_last_blank_line_gives_its_last_event():
    assert read(b"data: [DONE]") == [ServerEvent("message", "[DONE]")]
    assert read(b"data: [DONE]\n") == [ServerEvent("message", "[DONE]")]


def test_a_byte_order_mark_at_the_beginning_is_no_part_of_the_name():
    assert read(b"\xef\xbb\xbfdata: a\n\n") == [ServerEvent("message", "a")]


def test_bytes_that_are_no_text_do_not_stop_the_stream():
    assert read(b"data: \xff\n\n") == [ServerEvent("message", "\ufffd")]


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 40, b"x" * 70])
def test_an_event_without_end_is_given_up(monkeypatch, piece):
    monkeypatch.setattr(dialects, "LARGEST_EVENT", 100)
    reader = EventReader()

    def read_on() -> None:
        for _ in range(5):
            list(reader.feed(piece + (b"\n" if piece.startswith(b"data") else b"")))

    with pytest.raises(EventTooLarge):
        read_on()


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), max_size=6
    ),
    st.data(),
)
def test_where_the_stream_is_cut_makes_no_difference(texts, data):
    stream = "".join(f"data:  {text}\r\n\r\n" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    assert read(*pieces) == read(stream)
    assert [event.data for event in read(stream)] == [f" {text}" for text in texts]
