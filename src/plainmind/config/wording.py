"""Words for what was found in a configuration, safe to print and without secrets."""

from __future__ import annotations

from collections.abc import Mapping


def printable(text: str, limit: int = 80) -> str:
    """Cut the text short and make it safe to print on any terminal."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in short)


def printable_path(path: str) -> str:
    """Make a path safe to print, at its full length."""
    return printable(path, limit=4096)


def describe_found(value: object, *, secret: bool) -> str:
    """Say what kind of value it is, and the value itself when it is short and no secret."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number" if secret or abs(value) > 1e15 else f"the number {value}"
    if isinstance(value, str):
        return _describe_text(value, secret=secret)
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else "something else"


def _describe_text(text: str, *, secret: bool) -> str:
    if not text:
        return "an empty text"
    # ascii() keeps what is not printable off the terminal
    short = repr(text) if text.isprintable() else ascii(text)
    return "text" if secret or len(text) > 60 else f"the text {short}"
