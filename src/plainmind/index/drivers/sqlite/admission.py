"""What of a segment a filter lets through, so that the arithmetic sees nothing of the rest.

A chunk that is not admitted looks as if it were no more: its length is 0 and its vector absent.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import apsw

from plainmind.index.drivers.sqlite.texts import storable

NOTHING = b""  # is hidden

_SCOPE = "SELECT id FROM scopes WHERE name = ?"


def scope_numbers(db: apsw.Connection, scopes: Iterable[str]) -> frozenset[int]:
    """The numbers of scopes; those that no file has ever had are left out."""
    found = [db.execute(_SCOPE, (storable(scope),)).fetchone() for scope in scopes]
    return frozenset(row[0] for row in found if row is not None)


def hidden_positions(audience: bytes, admitted: frozenset[int]) -> bytes | None:
    """A byte for each position, 255 for one that is hidden; NOTHING when none is, None when all are.

    `audience` has the number of a scope, uint32, for each position.
    """
    scopes = array("I", audience)
    present = set(scopes)
    if present <= admitted:
        return NOTHING
    if present.isdisjoint(admitted):
        return None
    return bytes([0 if scope in admitted else 255 for scope in scopes])


def lengths_without(lengths: memoryview, hidden: bytes) -> memoryview:
    """Lengths, uint16 by position, with 0 for what is hidden."""
    doubled = bytearray(2 * len(hidden))
    doubled[0::2] = doubled[1::2] = hidden
    mask = int.from_bytes(doubled, "little")
    kept = int.from_bytes(lengths.tobytes(), "little") & ~mask
    return memoryview(kept.to_bytes(len(doubled), "little")).cast("H")


def absent_with(flags: bytes, hidden: bytes) -> bytes:
    """Flags of absences, a byte for each position, with what is hidden among them."""
    either = int.from_bytes(flags, "little") | int.from_bytes(hidden, "little")
    return either.to_bytes(len(flags), "little")
