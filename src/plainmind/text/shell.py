"""A text as a word of a command line, so that a command which is shown can be typed as it stands."""

from __future__ import annotations

from plainmind.base.pattern import pattern

_PLAIN = pattern(r"[\w@%+=:,./-]+")


def shell_word(text: str) -> str:
    """Quote a text where a shell would take it for more than one word, or for something else than its letters."""
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"
