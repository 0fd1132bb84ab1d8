"""Any text at all in a database that takes no NUL and no lone surrogate: those few are spelled out."""

from __future__ import annotations

from plainmind.base.pattern import pattern

# A private character of the last plane: it stands before what is spelled out, and spells itself out too.
_MARK = "\U0010fffd"
_UNSTORABLE = pattern("[\x00\ud800-\udfff\U0010fffd]")
_SPELLED = pattern("\U0010fffd([0-9a-f]{4})")
_OWN = "ffff"  # spells the mark


def storable(text: str) -> str:
    """The form in which a text is stored: nearly always itself."""
    if "\x00" not in text and _MARK not in text:
        try:
            text.encode()
        except UnicodeEncodeError:
            pass
        else:
            return text
    return _UNSTORABLE.sub(
        lambda found: _MARK + (_OWN if found[0] == _MARK else f"{ord(found[0]):04x}"), text
    )


def restored(stored: str) -> str:
    """The text that was stored."""
    if _MARK not in stored:
        return stored
    return _SPELLED.sub(lambda found: _MARK if found[1] == _OWN else chr(int(found[1], 16)), stored)
