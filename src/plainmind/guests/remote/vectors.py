"""Vectors out of a provider's JSON, matched with their texts; whether they are good is `gate.checked`'s business."""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

from plainmind.base.errors import BadVector
from plainmind.guests.remote.failures import AnswerUnreadable

_NUMBERS = {float, int}
_MOST_TOKENS = 1_000_000_000


def field_of(payload: object, name: str) -> Any:
    """Take a field of a JSON object. Raises AnswerUnreadable without repeating any of it."""
    if not isinstance(payload, dict) or name not in payload:
        raise AnswerUnreadable(
            f"the answer has no `{name}`",
            hint="check `remote.baseUrl`: is it the address of an embeddings API?",
        )
    return payload[name]


def in_order(rows: object, count: int) -> list[Any]:
    """Put rows where their `index` says; without any index they are in order. Raises BadVector.

    A vector under the wrong text is never noticed later, so a doubt about the order is an error.
    """
    if not isinstance(rows, list) or len(rows) != count:
        came = len(rows) if isinstance(rows, list) else 0
        raise BadVector(f"{count} vectors were expected and {came} came")
    by_place = {row.get("index"): row for row in rows if isinstance(row, dict)}
    if set(by_place) <= {None}:
        return rows
    if not all(type(place) is int for place in by_place) or set(by_place) != set(range(count)):
        raise BadVector("the vectors are not numbered so that each text has one")
    return [by_place[place] for place in range(count)]


def numbers(value: object) -> Sequence[float]:
    """Read a list of numbers, or base64 of little-endian float32. Raises BadVector."""
    if isinstance(value, str):
        return _unpacked(value)
    # Python counts true and false among the numbers; no vector has any.
    if not isinstance(value, list) or not set(map(type, value)) <= _NUMBERS:
        raise BadVector("a vector is not a list of numbers")
    return value


def _unpacked(text: str) -> array[float]:
    values = array("f")
    try:
        values.frombytes(b64decode(text, validate=True))
    except ValueError:
        raise BadVector("a vector is neither a list of numbers nor base64 of them") from None
    if sys.byteorder == "big":
        values.byteswap()
    return values


def tokens_in(usage: object, *names: str) -> int | None:
    """How many tokens the provider counted, when it says so in a way to be believed."""
    for name in names:
        count = usage.get(name) if isinstance(usage, dict) else None
        if type(count) is int and 0 <= count <= _MOST_TOKENS:
            return count
    return None
