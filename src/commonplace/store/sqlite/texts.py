"""The text of a chunk as it is stored: deflated, where that makes it smaller."""

from __future__ import annotations

import zlib

from commonplace.errors import IndexCorrupt

_RAW = -15  # no header and no checksum: SQLite's own pages have none either
_LEVEL = 6


def squeezed(text: str) -> str | bytes:
    """What to store for a text."""
    plain = text.encode("utf-8", "surrogatepass")
    small = zlib.compress(plain, _LEVEL, _RAW)
    # Lone surrogates have no place in a text of SQLite.
    return small if len(small) < len(plain) or not _is_storable(text) else text


def storable(text: str) -> str | bytes:
    """What to store for a text that is too short to be worth squeezing."""
    return text if _is_storable(text) else squeezed(text)


def unsqueezed(stored: str | bytes) -> str:
    """The text that was stored."""
    if isinstance(stored, str):
        return stored
    try:
        return zlib.decompress(stored, _RAW).decode("utf-8", "surrogatepass")
    except (zlib.error, UnicodeDecodeError) as error:
        raise IndexCorrupt("a text of the index is damaged", hint="run `commonplace sync --force`") from error


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
