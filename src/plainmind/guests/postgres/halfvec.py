"""Vectors and long lists of ids on the wire: our packed numbers in, the same bytes out."""

from __future__ import annotations

import struct
from array import array

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from plainmind.base.value import value
from plainmind.guests.postgres.failures import no_vectors
from plainmind.index.kernels import BYTES_PER_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HEADER = struct.Struct(">HH")  # the number of dimensions, and nothing
_LIST = struct.Struct(">iiIii")  # one dimension, no NULL, of int8, so many, counted from one
# The server, too, must notice soon that a host is gone: until then its locks keep the others waiting.
_TYPE = """SELECT t.oid, t.typarray, pg_backend_pid(),
                  set_config('tcp_keepalives_idle', '15', false), set_config('tcp_keepalives_interval', '5', false),
                  set_config('tcp_keepalives_count', '3', false)
             FROM pg_type t JOIN pg_extension e ON e.extnamespace = t.typnamespace
            WHERE t.typname = 'halfvec' AND e.extname = 'vector'"""


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


def register(db: psycopg.Connection[Any]) -> bool:
    """Let a connection send and read vectors; says whether it leads to a server process without a pooler between."""
    row = db.execute(_TYPE, prepare=False).fetchone()
    if row is None:
        raise no_vectors()
    halfvec, array_of_them, process, *_ = row

    class HalfVectorDumper(Dumper):
        format = Format.BINARY
        oid = halfvec

        def dump(self, obj: HalfVector) -> Buffer:
            return _HEADER.pack(len(obj.packed) // BYTES_PER_NUMBER, 0) + _swapped(obj.packed)

    TypeInfo("halfvec", halfvec, array_of_them).register(db)
    db.adapters.register_dumper(HalfVector, HalfVectorDumper)
    db.adapters.register_dumper(Ids, _IdsDumper)
    db.adapters.register_loader(halfvec, _HalfVectorLoader)
    return bool(process == db.info.backend_pid)


class _HalfVectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return _swapped(bytes(data)[_HEADER.size :])


def _swapped(numbers: bytes) -> bytes:
    """Change between the byte order of the machine, which is little-endian, and that of the network."""
    swapped = array("H", numbers)
    swapped.byteswap()
    return swapped.tobytes()
