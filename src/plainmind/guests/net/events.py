"""Server-sent events: bytes as they come in, events as they are complete."""

from __future__ import annotations

from collections.abc import Iterator

from plainmind.base.value import value

LARGEST_EVENT = 32 * 1024 * 1024


class EventTooLarge(Exception):
    """An event that has no end."""


@value
class ServerEvent:
    """One event: its name, `message` when it has none, and its data."""

    name: str
    data: str


class EventReader:
    """Cuts a stream into events. Bytes may be cut anywhere, also inside of a character or a line end."""

    def __init__(self) -> None:
        self._rest = b""
        self._after_return = False  # the last piece ended with CR: an LF that follows belongs to it
        self._is_first = True
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Give the events that are complete now. Raises EventTooLarge."""
        for line in self._lines(piece):
            event = self._take(line)
            if event is not None:
                yield event

    def finish(self) -> Iterator[ServerEvent]:
        """Give the last event, of a stream that ends without the blank line after it."""
        if self._rest:
            self._take(self._rest.decode("utf-8", "replace"))
            self._rest = b""
        event = self._take("")
        if event is not None:
            yield event

    def _lines(self, piece: bytes) -> Iterator[str]:
        if self._after_return and piece.startswith(b"\n"):
            piece, self._after_return = piece[1:], False
        if piece:
            self._after_return = piece.endswith(b"\r")
        if b"\n" not in piece and b"\r" not in piece:
            self._rest += piece
            self._check_size(len(self._rest))
            return
        # Only whole lines are decoded: a character is never cut.
        *whole, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")

    def _take(self, line: str) -> ServerEvent | None:
        if self._is_first:
            line, self._is_first = line.removeprefix("\ufeff"), False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
            self._check_size(self._size)
        elif name == "event":
            self._name = value
        return None  # comments, which keep a connection alive, and fields that we have no use for

    def _dispatch(self) -> ServerEvent | None:
        name, data = self._name or "message", self._data
        self._name, self._data, self._size = "", [], 0
        return ServerEvent(name, "\n".join(data)) if data else None

    def _check_size(self, size: int) -> None:
        if size > LARGEST_EVENT:
            raise EventTooLarge
