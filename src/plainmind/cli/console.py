"""Where a command prints: the answer to stdout, everything else to stderr, JSON for programs; numbers in words."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import date
    from typing import Any, TextIO

    from plainmind.base.model import ProgressCallback


SCHEMA_VERSION = 1

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "path": "36"}
# Escape sequences in a note must not reach the terminal of its reader.
_CONTROL = pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class OutputLost(PlainmindError):
    """Something was done that could not be told: the output is full, or gone."""


class Console:
    """Prints for one command."""

    def __init__(self, *, json: bool = False, quiet: bool = False, color: bool = True) -> None:
        self.json = json
        self.quiet = quiet
        self._out_color = color and can_color(sys.stdout)
        self._err_color = color and can_color(sys.stderr)

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads the answer as it comes."""
        return is_terminal(sys.stdout)

    @property
    def has_colors(self) -> bool:
        """Whether the answer is printed with colours."""
        return self._out_color

    def answer(self, text: str = "") -> None:
        """Print a part of the answer."""
        print(text)

    def result(self, fields: Mapping[str, Any], *, lines: bool = False) -> None:
        """Print the answer as one JSON object; with `lines` on one line, for a stream of them."""
        import json

        answer = {"schema_version": SCHEMA_VERSION, **fields}
        print(json.dumps(answer, ensure_ascii=False, indent=None if lines else 2), flush=lines)

    def say(self, text: str) -> None:
        """Print something for people only: what happened, what to do next."""
        if not self.quiet and not self.json:
            print(text)

    def note(self, text: str) -> None:
        """Print something worth knowing beside the answer."""
        if not self.quiet:
            print(f"{self._on_err('note:', 'yellow')} {visible(text)}", file=sys.stderr)

    def hint(self, text: str) -> None:
        """Print what could be done next."""
        if not self.quiet:
            print(f"{self._on_err('hint:', 'bold')} {visible(text)}", file=sys.stderr)

    def error(self, kind: str, message: str, hint: str | None) -> None:
        """Print why a command failed: one line, and one that says what to do."""
        if self.json:
            self.result({"error": {"type": kind, "message": message, "hint": hint}})
            return
        print(f"{self._on_err('error:', 'red')} {visible(message)}", file=sys.stderr)
        if hint:
            print(f"{self._on_err('hint:', 'bold')} {visible(hint)}", file=sys.stderr)

    def ask(self, question: str) -> bool:
        """Whether the person at the terminal says yes; anything else is a no."""
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in {"y", "yes"}

    def may_remove(self, what: str, question: str, *, hint: str = "--yes removes it without asking") -> bool:
        """Whether the person at the terminal lets something go for good. PlainmindError when nobody is there."""
        if self.json or not is_terminal(sys.stdin):
            raise PlainmindError(
                f"nobody is there to ask whether {what} may go; nothing was removed", hint=hint
            )
        return self.ask(f"Remove {question} for good?")

    def style(self, text: str, style: str) -> str:
        """Colour a part of the answer, where colours are wanted."""
        return _in_style(text, style) if self._out_color else text

    def printable(self, text: str) -> str:
        """Make text of a note fit to be shown: on a terminal without control characters, else as it is."""
        return visible(text) if self.is_terminal else text

    def progress(self, label: str) -> AbstractContextManager[ProgressCallback | None]:
        """Show a bar while something takes long, if there is a person to see it."""
        if self.json or self.quiet or not is_terminal(sys.stderr):
            from contextlib import nullcontext

            return nullcontext()
        from plainmind.cli.progress import ProgressBar

        return ProgressBar(sys.stderr, label)

    def _on_err(self, text: str, style: str) -> str:
        return _in_style(text, style) if self._err_color else text


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream ends at a terminal; a closed one does not."""
    try:
        return stream.isatty()
    except ValueError:
        return False


def can_color(stream: TextIO) -> bool:
    """Whether colours are welcome there."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def visible(text: str) -> str:
    """Replace control characters other than line ends and tabs."""
    if text.isprintable():  # as nearly every line is: the pattern takes half a millisecond to compile
        return text
    return _CONTROL.sub("�", text)


def _in_style(text: str, style: str) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def columns() -> int:
    """How wide an answer may be: what COLUMNS says, or the terminal, or 80."""
    return _size("COLUMNS", 0, 80)


def rows() -> int:
    """How many lines fit the screen: what LINES says, or the terminal, or 24."""
    return _size("LINES", 1, 24)


def _size(name: str, position: int, otherwise: int) -> int:
    wanted = os.environ.get(name, "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    try:
        return os.get_terminal_size()[position] or otherwise
    except OSError:  # no terminal
        return otherwise


def cells(text: str) -> int:
    """How many columns a text takes on a terminal: two for a wide letter, none for what goes onto another."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def fitting(text: str, width: int) -> str:
    """A text, or its beginning and `…`, in at most so many columns."""
    if cells(text) <= width:
        return text
    end = min(len(text), width)
    while end and cells(text[:end]) > width - 1:
        end -= 1
    return text[:end].rstrip() + "…"


def wrapped(line: str, width: int) -> list[str]:
    """A line in parts that fit: broken at spaces, between wide letters, or anywhere; all but the first are indented."""
    indent = " " * min(len(line) - len(line.lstrip(" -*+>")), width // 2)
    parts = []
    while cells(line) > width:
        end = min(len(line), width)
        while cells(line[:end]) > width:
            end -= 1
        space = line.rfind(" ", len(indent) + 1, end + 1)
        if space > end // 2 or line[:end].isascii():
            end = space if space > len(indent) else end
        parts.append(line[:end].rstrip())
        line = indent + line[end:].lstrip()
    return [*parts, line]


_UNITS = ("kB", "MB", "GB", "TB")


def plural(number: int, one: str, many: str | None = None) -> str:
    """`1 file`, `2 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size_in_words(count: int) -> str:
    """`812 bytes`, `1.2 kB`, `34 MB`."""
    if count < 1000:
        return plural(count, "byte")
    amount, unit = count / 1000, _UNITS[0]
    for larger in _UNITS[1:]:
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"


def duration_in_words(seconds: float) -> str:
    """`8 ms`, `1.4 s`, `3 min 20 s`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def age_in_words(day: str, today: date) -> str:
    """`today`, `yesterday`, `12 days old`, `2 years old`; empty when it is no day."""
    from datetime import date

    try:
        days = (today - date.fromisoformat(day)).days
    except ValueError:
        return ""
    if days < 0:
        return "in " + ("1 day" if days == -1 else f"{-days} days")
    if days < 2:
        return ("today", "yesterday")[days]
    if days < 60:
        return f"{days} days old"
    months = round(days / 30.44)
    return f"{months} months old" if months < 24 else f"{days // 365} years old"


def first_few(names: list[str]) -> str:
    """`a, b, c …`: the first three of a list."""
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
