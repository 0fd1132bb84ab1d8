"""Originals that are one JSON document: read whole, up to a size, and copied message by message."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from plainmind.files.jsonl import open_plain_file
from plainmind.files.system import SYSTEM, read_range
from plainmind.guests.importers.lines import UNREADABLE, Translate
from plainmind.guests.importers.protocol import About, Piece, Place

MOST_BYTES = 1 << 29
_DECODER = json.JSONDecoder(strict=False, parse_constant=str)


@value
class ListedConversation:
    """A conversation whose messages stand in a list; what was read before is read again and recognised."""

    path: str
    about: About
    items: Sequence[object]
    translate: Translate

    def still_has(self, place: Place) -> bool:
        """Only of the beginning one can be sure: a list may have changed anywhere."""
        return place == Place()

    def pieces(self, after: Place) -> Iterator[Piece]:  # noqa: ARG002 (always the beginning)
        """Translate all messages."""
        for number, item in enumerate(self.items, 1):
            if not isinstance(item, dict):
                yield Piece(number, Place(), damage=UNREADABLE)
                continue
            raw = json.dumps(item, sort_keys=True, separators=(",", ":")).encode()
            yield Piece(number, Place(), self.translate(item, raw, number))


def read_document(path: str) -> object:
    """Read a JSON document. Raises PlainmindError when it is none, or too large."""
    with open_plain_file(path) as fd:
        size = SYSTEM.fstat(fd).st_size
        if size > MOST_BYTES:
            raise PlainmindError(
                f"{path} has {size / 1e6:,.0f} MB, and a JSON document is read whole",
                hint=f"split it into parts of at most {MOST_BYTES >> 20} MB",
            )
        data = read_range(SYSTEM, fd, 0, size)
    try:
        return _DECODER.decode(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise PlainmindError(
            f"{path} is not a JSON document: {error}", hint="it may be damaged, or still being written"
        ) from error
