import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from plainmind.base.model import split_lines
from plainmind.notes.workspace import decode, encoding_of, is_text


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
        (b"\xff\xfe", ""),
        (b"caf\xe9 ok", "café ok"),
        (b"na\xefve caf\xe9 \x96 5 \x80", "naïve café – 5 €"),
        ("Grüße aus Köln\n".encode("latin-1"), "Grüße aus Köln\n"),
        ("Grüße aus Köln\n".encode()[:-3] + b"\xff\n", "Grüße aus Kö\ufffd\n"),
        ("Grüße\r\naus Köln\n".encode("utf-16"), "Grüße\naus Köln\n"),
        ("Grüße\naus Köln\n".encode("utf-16-le"), "Grüße\naus Köln\n"),
        ("Grüße\naus Köln\n".encode("utf-16-be"), "Grüße\naus Köln\n"),
        ("\ufeff会议记录 2026\n打印机在二楼\n".encode("utf-16-be"), "会议记录 2026\n打印机在二楼\n"),
        ("会议记录 2026\n打印机在二楼\n".encode("utf-16-le"), "会议记录 2026\n打印机在二楼\n"),
        ("odd".encode("utf-16") + b"x", "odd\ufffd"),
        (b"plain text with one\0 zero in it", "plain text with one zero in it"),
        (
            "Привет, мир, и ещё слово".encode("cp1251"),
            "\ufffd" * 6 + ", " + "\ufffd" * 3 + ", \ufffd " + "\ufffd" * 3 + " " + "\ufffd" * 5,
        ),
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

    assert len(split_lines(decode(raw))) == len(split_lines(raw.decode("utf-8", "replace")))


@given(st.lists(st.sampled_from([b"\r", b"\n", b"\0", b"x", b"\xff", b"\xe6\x97", b"\xef\xbb\xbf"])))
def test_lines_of_the_text_are_lines_of_the_bytes(pieces):
    raw = b"".join(pieces)
    assume(encoding_of(raw) == "utf-8")
    raw_lines = split_lines(raw.removeprefix(b"\xef\xbb\xbf").decode("latin-1"))
    cleaned = [line.encode("latin-1").decode("utf-8", "replace").replace("\0", "") for line in raw_lines]

    lines = split_lines(decode(raw))

    # A last line of nothing but NUL characters is no line any more; every other one keeps its number.
    assert cleaned in (lines, [*lines, ""])


@given(st.lists(st.sampled_from(["café", "Straße", "señor", "plain", "\n", "naïve", "Ärger", "À", "50 €"])))
def test_a_text_in_an_older_encoding_is_read_as_what_it_is(more):
    words = f"plain words come first\n{' '.join(more)}"

    assert decode(words.encode("cp1252")) == words
    assert decode(words.encode("utf-16-le")) == words
    assert decode(words.encode("utf-16-be")) == words


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"# A note\n\twith a tab\f\r\n",
        "Grüße aus Köln\n".encode("latin-1"),
        "笔记：网关在柏林。\n".encode("gbk"),
        "Привет, как дела?\n".encode("koi8-r"),
        "日本語のメモ\n".encode("iso2022_jp"),
        "UTF-16 of one line\n".encode("utf-16"),
        "UTF-16 without a mark\n".encode("utf-16-le"),
        b"a note that a crash has left with zeros" + bytes(4_000),
        b"N\bNA\bAM\bME\bE\n\x1b[1mbold\x1b[0m\n",
        b"bell\x07 title\x07\n",
        b"one stray \x02 in a note as long as this one, which nobody would call a program for it\n",
    ],
)
def test_a_text_is_one_in_whatever_encoding(raw):
    assert is_text(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"PK\x03\x04zip\0\0\0\x01\x02\x03 hello",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x90\0\0\x01,\x08\x02\0\0\0",
        zlib.compress(repr(range(5_000)).encode() + repr([n * n for n in range(5_000)]).encode()),
        Path(sys.executable).resolve().read_bytes()[:100_000],
    ],
)
def test_pictures_programs_and_archives_are_no_text(raw):
    assert not is_text(raw)
