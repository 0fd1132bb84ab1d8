"""What was typed in earlier chats, for the arrow keys: a file that only its owner reads."""

from __future__ import annotations

import os

from plainmind.base.errors import PlainmindError
from plainmind.files.atomic import write_atomically

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

_MOST_LINES = 1000
_MOST_BYTES = 4_000_000


class TypedLines:
    """The lines of earlier chats. Where there is no `readline`, nothing is kept."""

    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, "chat-history")
        self._readline = _readline()
        self._lines = self._read() if self._readline is not None else []

    def load(self) -> None:
        """Give them to the arrow keys."""
        if self._readline is None:
            return
        self._readline.set_auto_history(False)
        self._readline.clear_history()
        for line in self._lines:
            self._readline.add_history(line)

    def add(self, line: str) -> None:
        """Keep a line; one that begins with a space is not meant to be kept."""
        if self._readline is None or not line.strip() or line.startswith(" ") or line in self._lines[-1:]:
            return
        self._readline.add_history(line)
        self._lines = [*self._lines, line][-_MOST_LINES:]
        try:
            write_atomically(
                self._path, "".join(f"{each}\n" for each in self._lines).encode("utf-8", "replace")
            )
        except PlainmindError as error:
            import logging

            logging.getLogger(__name__).warning("what was typed is not kept: %s", error)

    def _read(self) -> list[str]:
        try:
            with open(self._path, "rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()[-_MOST_LINES:]
        except OSError:
            return []  # none yet, or not ours to read: then there is nothing to scroll through


def _readline() -> ModuleType | None:
    try:
        import readline
    except ImportError:  # some builds of Python come without
        return None
    return readline
