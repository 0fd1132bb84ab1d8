import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import split_lines
from plainmind.notes.workspace import decode


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"\xef\xbb\xbf# Title\n", "# Title\n"),
        (b"a\xef\xbb\xbfb", "a\ufeffb"),
        (b"a\r\nb\rc\nd", "a\nb\nc\nd"),
        (b"a\r\r\nb", "a\n\nb"),
        (b"a\n\rb", "a\n\nb"),
        (b"a\0b\0", "ab"),
        (b"a\r\0\nb", "a\n\nb"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"caf\xe9 ok", "caf\ufffd ok"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xc0\xaf", "\ufffd\ufffd"),
        (b"cut \xe6\x97", "cut \ufffd"),
        ("日本語 \U0001f600 שלום".encode(), "日本語 \U0001f600 שלום"),
        ("a\u2028b\x0bc\x0cd\x85e\x1cf".encode(), "a\u2028b\x0bc\x0cd\x85e\x1cf"),
        ("e\u0301 é".encode(), "e\u0301 é"),
    ],
)
def test_bytes_become_text(raw, text):
    assert decode(raw) == text


@given(st.binary())
def test_any_bytes_become_text_that_can_be_stored(raw):
    text = decode(raw)

    assert "\0" not in text
    assert "\r" not in text
    assert text.encode("utf-8").decode("utf-8") == text


@given(st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"x", b"\xff", "\u2028".encode(), b"\x0c"])))
def test_line_ends_are_what_the_whole_project_counts_as_line_ends(pieces):
    raw = b"".join(pieces)

    assert split_lines(decode(raw)) == split_lines(raw.decode("utf-8", "replace"))


@given(st.lists(st.sampled_from([b"\r", b"\n", b"\0", b"x", b"\xff", b"\xe6\x97", b"\xef\xbb\xbf"])))
def test_lines_of_the_text_are_lines_of_the_bytes(pieces):
    raw = b"".join(pieces)
    raw_lines = split_lines(raw.removeprefix(b"\xef\xbb\xbf").decode("latin-1"))
    cleaned = [line.encode("latin-1").decode("utf-8", "replace").replace("\0", "") for line in raw_lines]

    lines = split_lines(decode(raw))

    # A last line of nothing but NUL characters is no line any more; every other one keeps its number.
    assert cleaned in (lines, [*lines, ""])
