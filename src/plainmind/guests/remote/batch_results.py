"""From the output file of a job to vectors: each one matched by the hash of its text, and checked at the door."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, NoReturn

from plainmind.base.errors import BadVector
from plainmind.base.model import Vector
from plainmind.embed.gate import checked
from plainmind.guests.remote.batch_endpoint import Line
from plainmind.guests.remote.failures import AnswerUnreadable

_VECTORS_AT_ONCE = 400
_BYTES_A_NUMBER = 26  # `-1.2345678901234567e-10, ` and some
_BYTES_AROUND_IT = 4096


@dataclass(slots=True)
class Tally:
    """What an output file held."""

    good: int = 0
    bad: int = 0  # lines without a vector that may be stored
    foreign: int = 0  # answers to what this job did not ask
    tokens: int = 0
    disputed: set[str] = field(default_factory=set)  # texts with two different answers: neither is kept


def largest_output(items: int, dims: int) -> int:
    """How many bytes an honest output file can have."""
    return items * (dims * _BYTES_A_NUMBER + _BYTES_AROUND_IT) + _BYTES_AROUND_IT


def vectors_in(
    file: IO[bytes], read: Callable[[Any], Line], *, wanted: Collection[str], dims: int, tally: Tally
) -> Iterator[dict[str, Vector]]:
    """Give portions of checked vectors by hash; a bad line costs only itself."""
    seen: dict[str, bytes] = {}
    portion: dict[str, Vector] = {}
    for row in file:
        if not row.strip():
            continue
        answer = _checked(row, read, wanted, dims, tally)
        if answer is None:
            continue
        name, vector = answer
        mark = hashlib.blake2b(vector.tobytes(), digest_size=16).digest()
        if seen.setdefault(name, mark) != mark:
            tally.disputed.add(name)
            continue
        portion[name] = vector
        if len(portion) >= _VECTORS_AT_ONCE:
            yield portion
            portion = {}
    if portion:
        yield portion
    tally.good = len(seen.keys() - tally.disputed)


def first_code(file: IO[bytes]) -> str:
    """The code on the first line of an error file. Its message is left out: those like to quote the text."""
    try:
        payload = json.loads(file.readline(65_536))
    except ValueError:
        return ""
    holders = [payload] if isinstance(payload, dict) else []
    holders += [value for holder in holders for value in holder.values() if isinstance(value, dict)]
    codes = [holder.get(name) for holder in holders for name in ("code", "status_code")]
    return next((str(code) for code in codes if isinstance(code, str | int)), "")


def _checked(
    row: bytes, read: Callable[[Any], Line], wanted: Collection[str], dims: int, tally: Tally
) -> tuple[str, Vector] | None:
    try:
        line = read(json.loads(row, parse_constant=_refuse))
        if line.hash not in wanted:
            tally.foreign += 1
            return None
        (vector,) = checked([line.values], expected_count=1, expected_dims=dims)
    except (ValueError, RecursionError, AnswerUnreadable, BadVector):
        tally.bad += 1
        return None
    tally.tokens += line.tokens
    return line.hash, vector


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
