"""Vectors on the wire: our packed float16 numbers in, the same bytes out."""

from __future__ import annotations

import struct
from array import array

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from commonplace.errors import ConfigError
from commonplace.store.kernels import BYTES_PER_NUMBER
from commonplace.value import value

_HEADER = struct.Struct(">HH")  # the number of dimensions, and nothing
_TYPE = "SELECT t.oid, t.typarray FROM pg_type t JOIN pg_extension e ON e.extnamespace = t.typnamespace"
_OID = f"{_TYPE} WHERE t.typname = 'halfvec' AND e.extname = 'vector'"


@value
class HalfVector:
    """A packed vector on its way to the server."""

    packed: bytes


def register(db: psycopg.Connection) -> None:
    """Let a connection send and read vectors."""
    row = db.execute(_OID).fetchone()
    if row is None:
        raise ConfigError(
            "this PostgreSQL has no vectors of half precision",
            key="store.dsn",
            hint="install pgvector 0.8 or newer",
        )
    halfvec, array_of_them = row

    class HalfVectorDumper(Dumper):
        format = Format.BINARY
        oid = halfvec

        def dump(self, obj: HalfVector) -> Buffer:
            return _HEADER.pack(len(obj.packed) // BYTES_PER_NUMBER, 0) + _swapped(obj.packed)

    TypeInfo("halfvec", halfvec, array_of_them).register(db)
    db.adapters.register_dumper(HalfVector, HalfVectorDumper)
    db.adapters.register_loader(halfvec, _HalfVectorLoader)


class _HalfVectorLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return _swapped(bytes(data)[_HEADER.size :])


def _swapped(numbers: bytes) -> bytes:
    """Change between the byte order of the machine, which is little-endian, and that of the network."""
    swapped = array("H", numbers)
    swapped.byteswap()
    return swapped.tobytes()
