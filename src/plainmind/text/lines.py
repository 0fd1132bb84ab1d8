"""The one definition of a line that every line number in the project relies on."""

from __future__ import annotations


def split_lines(text: str) -> list[str]:
    r"""Split at \n, \r\n and \r only; a final line break ends the last line and starts no other.

    `str.splitlines` also splits at form feeds, U+2028 and others, which editors do not count as lines.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines
