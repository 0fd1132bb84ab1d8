"""A bar on the terminal for work that takes long; what is quick shows nothing."""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Callable
from types import TracebackType

from plainmind.base.model import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self, TextIO

DELAY_S = 0.3
REDRAW_S = 0.05
BAR_CELLS = 20


class ProgressBar:
    """Draws itself over one line and leaves nothing behind."""

    def __init__(
        self, stream: TextIO, label: str, *, now: Callable[[], float] = time.monotonic, columns: int = 0
    ) -> None:
        self._stream = stream
        self._label = label
        self._now = now
        self._columns = columns or _columns_of(stream)
        self._next_drawing = now() + DELAY_S
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._write("\r\x1b[K")

    def __call__(self, progress: Progress) -> None:
        """Take note of how far the work has come."""
        if self._now() < self._next_drawing:
            return
        self._next_drawing = self._now() + REDRAW_S
        self._drawn = True
        self._write("\r" + line_of(progress, self._label, self._columns) + "\x1b[K")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def line_of(progress: Progress, label: str, columns: int) -> str:
    """`indexing ━━━━━──── 12/40 memory/2026-02-10.md`, not wider than the terminal."""
    filled = BAR_CELLS * min(progress.completed, progress.total) // max(1, progress.total)
    bar = "━" * filled + "─" * (BAR_CELLS - filled)
    return clip(f"{label} {bar} {progress.completed:,}/{progress.total:,} {progress.label}", columns - 1)


def clip(text: str, cells: int) -> str:
    """Cut a text at a number of cells; Chinese and Japanese characters take two, control characters go."""
    width = 0
    kept: list[str] = []
    for sign in text:
        if not sign.isprintable():
            continue
        width += 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        if width > cells:
            break
        kept.append(sign)
    return "".join(kept)


def _columns_of(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
