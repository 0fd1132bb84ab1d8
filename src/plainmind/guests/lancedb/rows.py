"""What a table holds: rows of four kinds, so that one version of one table is one state of an index.

    kind     owner              ordinal           id        body
    FILE     number of the file chunks it has     0         its state, as JSON
    CHUNK    number of its file its place there   its own   context and day as JSON, a line end, the text
    SEGMENT  number of it       buckets it has    its first ids of its chunks, int64
    BUCKET   number of segment  which bucket      0         postings, as `in_buckets` packs them

Bodies are plain bytes: what was erased can be looked for with grep. Numbers are little-endian.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import Chunk, FileState, Source
from plainmind.base.value import asdict, value
from plainmind.guests.lancedb.library import arrow
from plainmind.index.bm25 import Postings
from plainmind.index.vectors import BYTES_PER_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


FILE, CHUNK, SEGMENT, BUCKET = range(4)
# Else LanceDB packs bodies where there are many of different sizes, and text could not be looked for in its files.
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
class FileRow:
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
    columns = {name: pa.array(list(map(attrgetter(name), rows)), made.field(name).type) for name in NUMBERS}
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


def file_row(file: FileRow) -> Row:
    """The row of a file."""
    body = json.dumps(asdict(file.state)).encode("ascii")
    return Row(FILE, file.owner, file.chunks, body, audience=file.audience)


def state_of(body: bytes) -> FileState:
    """The state of the file that a row is of."""
    try:
        return FileState(**json.loads(body))
    except (ValueError, TypeError) as error:
        raise _rows_damage() from error


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
        raise _rows_damage() from error
    return Chunk(file.path, file.source, ordinal, first, last, read, context, day)


def among(column: str, numbers: Iterable[int]) -> str:
    """A condition: a column has one of some numbers. Nothing but numbers ever comes into a condition."""
    return f"{column} IN ({', '.join(str(int(number)) for number in numbers)})"


def _rows_damage() -> IndexCorrupt:
    return IndexCorrupt("rows of the index are damaged", hint="run `plainmind sync`: it is built anew")


MOST_POSITIONS = 65_535  # of a segment: positions, and how many chunks have a term, are 16 bits
_BUCKET_BYTES = 65_536
_MOST_BUCKETS = 4_096
# Merging reads and writes again what it merges, so that few segments are left to look into.
MOST_SEGMENTS = 12


def bucket_of(term: str, buckets: int) -> int:
    """In which of so many buckets a term is."""
    return zlib.crc32(term.encode()) % buckets


def in_buckets(by_term: Mapping[str, tuple[bytes, bytes]]) -> list[bytes]:
    """Pack positions and counts of terms; terms without postings are left out."""
    living = {term: postings for term, postings in by_term.items() if postings[1]}
    total = sum(3 * len(counts) + len(term) + 3 for term, (_, counts) in living.items())
    buckets = min(_MOST_BUCKETS, total // _BUCKET_BYTES + 1)
    parts: list[list[str]] = [[] for _ in range(buckets)]
    for term in sorted(living):
        parts[bucket_of(term, buckets)].append(term)
    return [_bucket_body(part, living) for part in parts]


def _bucket_body(terms: Sequence[str], by_term: Mapping[str, tuple[bytes, bytes]]) -> bytes:
    names = "\n".join(terms).encode()
    numbers = array("H", [len(by_term[term][1]) for term in terms]).tobytes()
    positions = b"".join(by_term[term][0] for term in terms)
    counts = b"".join(by_term[term][1] for term in terms)
    return b"".join((struct.pack("<I", len(names)), names, _little(numbers), _little(positions), counts))


class Bucket:
    """Some terms of a segment with their postings."""

    __slots__ = ("_counts", "_places", "_positions", "size")

    def __init__(self, body: bytes) -> None:
        self.size = len(body) + 200
        try:
            (length,) = struct.unpack_from("<I", body)
            names = body[4 : 4 + length].decode()
        except (struct.error, UnicodeDecodeError) as error:
            raise _postings_damage() from error
        terms = names.split("\n") if names else []
        at = 4 + length + 2 * len(terms)
        numbers = array("H", _little(body[4 + length : at]))
        total = sum(numbers)
        if len(numbers) != len(terms) or len(body) != at + 3 * total:
            raise _postings_damage()
        self._positions = _little(body[at : at + 2 * total])
        self._counts = body[at + 2 * total :]
        firsts = accumulate(numbers, initial=0)
        self._places = dict(zip(terms, zip(firsts, numbers, strict=False), strict=True))

    def get(self, term: str) -> Postings | None:
        """The postings of a term."""
        place = self._places.get(term)
        if place is None:
            return None
        first, number = place
        last = first + number
        return Postings(self._positions[2 * first : 2 * last], self._counts[first:last])

    def items(self) -> Iterator[tuple[str, Postings]]:
        """Every term with its postings."""
        for term in self._places:
            postings = self.get(term)
            if postings is not None:
                yield term, postings

    def move(self, places: Any) -> Iterator[tuple[str, bytes, bytes]]:
        """Every term with its postings at other positions; `places` says which, -1 for those that are gone."""
        import numpy as np

        were = np.frombuffer(self._positions, dtype=np.uint16)
        if len(were) and int(were.max()) >= len(places):
            raise _postings_damage()
        positions = places[were]
        living = positions >= 0
        kept = positions[living].astype(np.uint16).tobytes()
        counts = np.frombuffer(self._counts, dtype=np.uint8)[living].tobytes()
        before = [0, *np.cumsum(living).tolist()]  # how many of so many live
        for term, (first, number) in self._places.items():
            start, end = before[first], before[first + number]
            if end > start:
                yield term, kept[2 * start : 2 * end], counts[start:end]


def merge_from(sizes: Sequence[int]) -> int | None:
    """From which segment on all should become one; None while there are few enough to look into.

    The newest go together with all before them that are not much larger than what has come together so far: so a
    chunk is merged again only when its segment doubles, however many changes there are.
    """
    small = sum(1 for size in sizes if size < MOST_POSITIONS // 2)
    if small <= MOST_SEGMENTS:
        return None
    first, total = len(sizes), 0
    for size in reversed(sizes):
        if total + size > MOST_POSITIONS or (first < len(sizes) - 1 and size > 2 * total):
            break
        first, total = first - 1, total + size
    return first if len(sizes) - first > 1 else None


def runs_of(sizes: Iterable[int]) -> list[int]:
    """How many segments, one after another, fit into each of as few as possible."""
    runs: list[int] = []
    room = 0
    for size in sizes:
        if size > room or not runs:
            runs.append(0)
            room = MOST_POSITIONS
        runs[-1] += 1
        room -= size
    return runs


def _little(numbers: bytes) -> bytes:
    if sys.byteorder == "little":
        return numbers
    swapped = array("H", numbers)
    swapped.byteswap()
    return swapped.tobytes()


def _postings_damage() -> IndexCorrupt:
    return IndexCorrupt("postings of the index are damaged", hint="run `plainmind sync --force`")
