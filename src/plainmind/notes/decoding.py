"""Bytes of a note as text, the same way for the index and for a reader, so that line numbers agree."""

from __future__ import annotations

import codecs


def decode(raw: bytes) -> str:
    r"""Read UTF-8, whatever arrives: total, and free of what a database or a terminal chokes on.

    A byte order mark is dropped, an invalid byte becomes U+FFFD, NUL characters disappear, and each of
    `\r\n`, `\r` and `\n` ends one line and is given as `\n`. Nothing else ends a line.
    """
    text = raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    # After the line ends, so that lines of the text are lines of the bytes.
    return text.replace("\0", "") if "\0" in text else text
