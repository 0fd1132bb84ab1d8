"""Values on their way to the server and back: any text at all, names and numbers, vectors, long lists of ids."""

from __future__ import annotations

import hashlib
import json
import struct
from array import array

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from plainmind.base.lazy import pattern
from plainmind.base.model import Source
from plainmind.base.value import value
from plainmind.index.vectors import BYTES_PER_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# A private character of the last plane: it stands before what is spelled out, and spells itself out too.
_MARK = "\U0010fffd"
_UNSTORABLE = pattern("[\x00\ud800-\udfff\U0010fffd]")
_SPELLED = pattern("\U0010fffd([0-9a-f]{4})")
_OWN = "ffff"  # spells the mark
_KEY_CHARACTERS = 200  # an index takes no longer keys
_HEADER = struct.Struct(">HH")  # the number of dimensions, and nothing
_LIST = struct.Struct(">iiIii")  # one dimension, no NULL, of int8, so many, counted from one


def to_stored(text: str) -> str:
    """The form in which a text is stored: nearly always itself.

    PostgreSQL takes no NUL and no lone surrogate: those few are spelled out.
    """
    if "\x00" not in text and _MARK not in text:
        try:
            text.encode()
        except UnicodeEncodeError:
            pass
        else:
            return text
    return _UNSTORABLE.sub(
        lambda found: _MARK + (_OWN if found[0] == _MARK else f"{ord(found[0]):04x}"), text
    )


def from_stored(stored: str) -> str:
    """The text that was stored."""
    if _MARK not in stored:
        return stored
    return _SPELLED.sub(lambda found: _MARK if found[1] == _OWN else chr(int(found[1], 16)), stored)


def file_name(source: Source, path: str) -> bytes:
    """By what a file is found: its path may be too long for an index."""
    return hashlib.sha256(json.dumps([source, path]).encode()).digest()


def term_key(term: str) -> str:
    """By what a term is found: itself, unless it is too long for an index."""
    if len(term) <= _KEY_CHARACTERS:
        return term
    # No term has a control character in it, so that none looks like the key of another.
    return "\x01" + hashlib.sha256(term.encode()).hexdigest()


def signed_64(number: int) -> int:
    """Fit an unsigned 64-bit number, an inode, into a signed one; `unsigned_64` undoes it."""
    return number - 2**64 if number >= 2**63 else number


def unsigned_64(number: int) -> int:
    """Undo `signed_64`."""
    return number + 2**64 if number < 0 else number


@value
class HalfVector:
    """A packed vector on its way to the server."""

    packed: bytes


@value
class Ids:
    """Many ids on their way to the server: a list of numbers would take ten times as long."""

    numbers: array[int]  # int64


class _IdsDumper(Dumper):
    format = Format.BINARY
    oid = 1016  # of an array of int8

    def dump(self, obj: Ids) -> Buffer:
        count = len(obj.numbers)
        numbers = array("q", obj.numbers)
        numbers.byteswap()
        packed = numbers.tobytes()
        out = bytearray(12 * count)  # of each: how many bytes it has, in four, then those
        out[3::12] = bytes((8,)) * count
        for place in range(8):
            out[4 + place :: 12] = packed[place::8]
        return _LIST.pack(1, 0, 20, count, 1) + out


def register(db: psycopg.Connection[Any], halfvec: int, halfvecs: int) -> None:
    """Let a connection send and read vectors: `halfvec` is their type on this server, `halfvecs` that of arrays."""

    class HalfVectorDumper(Dumper):
        format = Format.BINARY
        oid = halfvec

        def dump(self, obj: HalfVector) -> Buffer:
            return _HEADER.pack(len(obj.packed) // BYTES_PER_NUMBER, 0) + _swap_bytes(obj.packed)

    TypeInfo("halfvec", halfvec, halfvecs).register(db)
    db.adapters.register_dumper(HalfVector, HalfVectorDumper)
    db.adapters.register_dumper(Ids, _IdsDumper)
    db.adapters.register_loader(halfvec, _HalfVectorLoader)


class _HalfVectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return _swap_bytes(bytes(data)[_HEADER.size :])


def _swap_bytes(numbers: bytes) -> bytes:
    """Change between the byte order of the machine, which is little-endian, and that of the network."""
    swapped = array("H", numbers)
    swapped.byteswap()
    return swapped.tobytes()
