"""What the value of a setting may be: each kind checks, normalises, and reads itself from text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping

from plainmind.base.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeGuard

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_DURATION = pattern(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)")
_SECONDS_IN = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class Unfit(Exception):
    """A value is not of its kind; the message says what is expected, never what was found."""


class Kind:
    """One kind of value. `expected` completes the sentence "this must be …"."""

    expected = "a value"
    optional = False  # whether null is a value: the setting is then explicitly unset

    def read(self, value: Any) -> Any:
        """Turn a JSON value into the value of the setting, moved into its range. Raises Unfit."""
        return None if value is None and self.optional else self._read(value)

    def from_text(self, text: str) -> Any:
        """Read what an environment variable or a command line holds. Raises Unfit."""
        return self._from_text(text.strip())

    def to_json(self, value: Any) -> Any:
        """Say the value of the setting as it would stand in a file."""
        return None if value is None else self._to_json(value)

    def _read(self, value: Any) -> Any:
        raise NotImplementedError

    def _from_text(self, text: str) -> Any:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Unfit(self.expected) from error
        return self.read(value)

    def _to_json(self, value: Any) -> Any:
        return value


class Flag(Kind):
    """True or false."""

    expected = "true or false"

    def _read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise Unfit(self.expected)
        return value

    def _from_text(self, text: str) -> bool:
        if text.lower() not in _TRUE | _FALSE:
            raise Unfit(self.expected)
        return text.lower() in _TRUE


class Number(Kind):
    """A finite number, moved to the nearest one in its range."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        self.expected = f"a number from {low:,.12g} to {high:,.12g}"

    def _read(self, value: Any) -> float:
        if not _is_finite_number(value):
            raise Unfit(self.expected)
        return float(min(max(value, self.low), self.high))


class Whole(Kind):
    """A whole number, moved to the nearest one in its range."""

    def __init__(self, low: int, high: int, *, optional: bool = False) -> None:
        self.low, self.high = low, high
        self.optional = optional
        self.expected = f"a whole number from {low:,} to {high:,}"

    def _read(self, value: Any) -> int:
        if not _is_finite_number(value) or value != int(value):
            raise Unfit(self.expected)
        return min(max(int(value), self.low), self.high)


class Text(Kind):
    """Text that can stand in a file; `shape` narrows it."""

    def __init__(self, expected: str = "text", *, shape: str | None = None, optional: bool = False) -> None:
        self.expected = expected
        self.optional = optional
        self._shape = shape

    def _read(self, value: Any) -> str:
        if not is_clean_text(value) or (self._shape is not None and not re.fullmatch(self._shape, value)):
            raise Unfit(self.expected)
        return value

    def _from_text(self, text: str) -> str:
        return self._read(text)


class OneOf(Kind):
    """One of a few words, or the name of an installed plug-in of the entry-point group `plugins`."""

    def __init__(self, *names: str, plugins: str | None = None) -> None:
        self.names = names
        self._plugins = plugins
        self.expected = f"one of {', '.join(names)}"

    def _read(self, value: Any) -> str:
        if not isinstance(value, str) or not (value in self.names or self._is_plugin(value)):
            raise Unfit(self.expected)
        return value

    def _from_text(self, text: str) -> str:
        return self._read(text)

    def _is_plugin(self, name: str) -> bool:
        if self._plugins is None:
            return False
        from importlib.metadata import entry_points

        return name in entry_points(group=self._plugins).names


class SomeOf(Kind):
    """A list of some of a few words, each once, in the order given."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.expected = f"a list with one or more of {', '.join(names)}"

    def _read(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise Unfit(self.expected)
        if not all(isinstance(name, str) and name in self.names for name in value):
            raise Unfit(self.expected)
        return tuple(dict.fromkeys(value))

    def _from_text(self, text: str) -> Any:
        if text.startswith("["):
            return super()._from_text(text)
        return self._read([name.strip() for name in text.split(",")])

    def _to_json(self, value: tuple[str, ...]) -> list[str]:
        return list(value)


class Duration(Kind):
    """A length of time such as "90s", "5m" or "1h", kept as seconds."""

    expected = 'a duration such as "90s", "5m" or "1h"'

    def _read(self, value: Any) -> float:
        match = _DURATION.fullmatch(value.strip().lower()) if isinstance(value, str) else None
        if match is None:
            raise Unfit(self.expected)
        return min(float(match[1]) * _SECONDS_IN[match[2]], 365 * 86_400.0)

    def _from_text(self, text: str) -> float:
        return self._read(text)

    def _to_json(self, value: float) -> str:
        for unit, seconds in _SECONDS_IN.items():
            if value >= seconds and value % seconds == 0:
                return f"{value / seconds:.0f}{unit}"
        return f"{value * 1000:.0f}ms"


class TextTable(Kind):
    """An object whose values are text of one line each: HTTP headers."""

    expected = "an object of one-line texts"

    def _read(self, value: Any) -> dict[str, str]:
        if not isinstance(value, Mapping):
            raise Unfit(self.expected)
        for part in (*value.keys(), *value.values()):
            # A line break in a header would smuggle in another header.
            if not is_clean_text(part) or "\n" in part or "\r" in part:
                raise Unfit(self.expected)
        return dict(value)

    def _to_json(self, value: Mapping[str, str]) -> dict[str, str]:
        return dict(value)


def is_clean_text(value: object) -> TypeGuard[str]:
    """Whether it is text, not empty, that can become UTF-8 or a path: no NUL, no half surrogate pair."""
    if not isinstance(value, str) or not value or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_finite_number(value: object) -> TypeGuard[int | float]:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
