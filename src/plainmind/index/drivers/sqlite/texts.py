"""The text of a chunk as it is stored: deflated, where that makes it smaller."""

from __future__ import annotations

import zlib

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import Chunk, Source

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
        raise IndexCorrupt("a text of the index is damaged", hint="run `plainmind sync --force`") from error


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class StoredChunk(Chunk):
    """A chunk as the index gives it: its text is inflated when somebody reads it.

    A search is given some ninety chunks and reads the best third of them; inflating is half the cost of fetching one.
    """

    __slots__ = ("_stored",)
    _stored: str | bytes

    def __init__(  # noqa: PLR0917 (the fields of a chunk, in their order)
        self,
        path: str,
        source: Source,
        ordinal: int,
        start_line: int,
        end_line: int,
        text: str | bytes,
        context: str = "",
        day: str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "path", path)
        put(self, "source", source)
        put(self, "ordinal", ordinal)
        put(self, "start_line", start_line)
        put(self, "end_line", end_line)
        put(self, "_stored", text)
        put(self, "context", context)
        put(self, "day", day)

    @property
    def text(self) -> str:
        """The text itself."""
        stored = self._stored
        if isinstance(stored, bytes):
            stored = unsqueezed(stored)
            object.__setattr__(self, "_stored", stored)
        return stored

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chunk):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Chunk.__match_args__)

    __hash__ = Chunk.__hash__

    def __reduce__(self) -> tuple[type[Chunk], tuple[object, ...]]:
        return Chunk, tuple(getattr(self, name) for name in Chunk.__match_args__)
