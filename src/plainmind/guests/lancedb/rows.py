"""What a table holds: rows of four kinds, so that one version of one table is one state of an index.

    kind     owner              ordinal           id        body
    FILE     number of the file chunks it has     0         its state, as JSON
    CHUNK    number of its file its place there   its own   context and day as JSON, a line end, the text
    SEGMENT  number of it       buckets it has    its first ids of its chunks, int64
    BUCKET   number of segment  which bucket      0         postings: `words.py`

Bodies are plain bytes: what was erased can be looked for with grep. Numbers are little-endian.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import Chunk, FileState, Source
from plainmind.base.value import asdict, value
from plainmind.guests.lancedb.library import arrow
from plainmind.index.kernels import BYTES_PER_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE, CHUNK, SEGMENT, BUCKET = range(4)
# Else LanceDB packs bodies where there are many of different sizes, and nobody could look for text in its files.
_PLAIN = {"lance-encoding:compression": "none"}
NUMBERS = ("kind", "owner", "ordinal", "id", "first", "last", "length", "audience")

Audience = tuple[Source, str]  # a source and a scope: who sees one row of these sees all of them


@value
class Row:
    """One row; what a kind has no use for is 0."""

    kind: int
    owner: int
    ordinal: int
    body: bytes
    id: int = 0
    first: int = 0  # the lines of a chunk
    last: int = 0
    length: int = 0  # how many terms a chunk has, as they count
    audience: int = 0
    vector: bytes | None = None  # float16


@value
class KnownFile:
    """A file in a table."""

    owner: int
    state: FileState
    chunks: int
    audience: int


def schema(dims: int) -> Any:
    """The columns of a table for vectors of so many numbers."""
    pa = arrow()
    kinds = {"kind": pa.int8(), "ordinal": pa.int32(), "length": pa.int32(), "audience": pa.int32()}
    columns = [pa.field(name, kinds.get(name, pa.int64()), nullable=False) for name in NUMBERS]
    columns.append(pa.field("body", pa.large_binary(), nullable=False, metadata=_PLAIN))
    columns.append(pa.field("vector", pa.list_(pa.float16(), max(dims, 1))))
    return pa.schema(columns)


def table_of(rows: Sequence[Row], dims: int) -> Any:
    """Rows as LanceDB takes them."""
    pa = arrow()
    made = schema(dims)
    columns = {
        name: pa.array([getattr(row, name) for row in rows], made.field(name).type) for name in NUMBERS
    }
    columns["body"] = pa.array([row.body for row in rows], pa.large_binary())
    columns["vector"] = _vectors([row.vector for row in rows], max(dims, 1))
    return pa.table(columns, schema=made)


def _vectors(vectors: Sequence[bytes | None], dims: int) -> Any:
    import numpy as np

    pa = arrow()
    nothing = bytes(dims * BYTES_PER_NUMBER)
    numbers = np.frombuffer(b"".join(each or nothing for each in vectors), dtype=np.float16)
    absent = pa.array([each is None for each in vectors], pa.bool_())
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers), dims, mask=absent)


def matrix_of(part: Any) -> tuple[Any, Any]:
    """Part of a column of vectors: the numbers, a row each, and which rows have any."""
    import numpy as np

    width = part.type.list_size
    numbers = part.values.slice(part.offset * width, len(part) * width).to_numpy(zero_copy_only=False)
    return numbers.astype(np.float16).reshape(-1, width), part.is_valid().to_numpy(zero_copy_only=False)


def vectors_of(column: Any) -> list[bytes | None]:
    """The packed vectors of a column, as they were put in."""
    found: list[bytes | None] = []
    for part in column.chunks:
        rows, are_there = matrix_of(part)
        found += [
            row.tobytes() if there else None for row, there in zip(rows, are_there.tolist(), strict=True)
        ]
    return found


def file_row(file: KnownFile) -> Row:
    """The row of a file."""
    body = json.dumps(asdict(file.state)).encode("ascii")
    return Row(FILE, file.owner, file.chunks, body, audience=file.audience)


def state_of(body: bytes) -> FileState:
    """The state of the file that a row is of."""
    try:
        return FileState(**json.loads(body))
    except (ValueError, TypeError) as error:
        raise _damaged() from error


def chunk_body(chunk: Chunk) -> bytes:
    """What of a chunk is not in columns of its own."""
    facts = json.dumps([chunk.context, chunk.day]).encode("ascii")
    return facts + b"\n" + chunk.text.encode("utf-8", "surrogatepass")


def chunk_of(file: FileState, ordinal: int, first: int, last: int, body: bytes) -> Chunk:
    """The chunk that a row is of."""
    facts, _, text = body.partition(b"\n")
    try:
        context, day = json.loads(facts)
        read = text.decode("utf-8", "surrogatepass")
    except (ValueError, TypeError) as error:
        raise _damaged() from error
    return Chunk(file.path, file.source, ordinal, first, last, read, context, day)


def among(column: str, numbers: Iterable[int]) -> str:
    """A condition: a column has one of some numbers. Nothing but numbers ever comes into a condition."""
    return f"{column} IN ({', '.join(str(int(number)) for number in numbers)})"


def _damaged() -> IndexCorrupt:
    return IndexCorrupt("rows of the index are damaged", hint="run `plainmind sync`: it is built anew")
