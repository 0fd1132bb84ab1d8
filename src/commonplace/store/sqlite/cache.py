"""What a process has read of one generation, kept between searches within one budget of bytes.

Ids are never used again, so what belongs to an id stays right as long as the generation lives. What belongs to a
segment is kept under the revision at which it last changed: an edit makes nothing else be read again.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import apsw

from commonplace.model import Chunk, FileState, Source
from commonplace.store.signs import signs_width
from commonplace.store.sqlite.arithmetic.parts import Absences
from commonplace.store.sqlite.connection import one_row
from commonplace.store.sqlite.overview import Overview, read_files, read_overview
from commonplace.store.sqlite.postings import Postings, read_postings
from commonplace.store.sqlite.rough import RoughVectors
from commonplace.store.sqlite.segments import Segment, read_absences, read_lengths, read_signs
from commonplace.store.sqlite.texts import StoredChunk, unsqueezed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

# What may be kept beside the signs, which every search looks through, and in all.
BESIDE_SIGNS = 40_000_000
BESIDE_ROUGH_VECTORS = 14_000_000
MOST_BYTES = 64_000_000
_OVERHEAD = 200  # of an entry: its key, its value's header, its place in a dictionary
_CHUNK_OVERHEAD = 500
_INFLATED = 3  # times its stored size is a text that was read, and what it was read from, at most

_REVISION = "SELECT value, contents FROM revision"
_CHUNKS = """SELECT c.id, f.path, f.source, c.ordinal, c.start_line, c.end_line, c.text, c.context, c.day
               FROM chunks c JOIN files f ON f.id = c.file_id
              WHERE c.id IN (SELECT value FROM json_each(?))"""
_VECTORS = "SELECT id, vector FROM vectors WHERE id IN (SELECT value FROM json_each(?))"
_ABSENT = object()


class RecentlyUsed:
    """Values within a budget of bytes: what was not asked for longest goes first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        # By last use. A plain dictionary, too, has an order, but finding its first key again and again is slow.
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable, default: Any = None) -> Any:
        """What is kept under a key."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return default
            self._entries.move_to_end(key)
        return entry[0]

    def get_all(self, keys: Iterable[Hashable]) -> tuple[dict[Any, Any], list[Any]]:
        """What is kept under many keys, and the keys under which there is nothing."""
        found, missing = {}, []
        get, move_to_end = self._entries.get, self._entries.move_to_end
        with self._lock:
            for key in keys:
                entry = get(key)
                if entry is None:
                    missing.append(key)
                else:
                    move_to_end(key)
                    found[key] = entry[0]
        return found, missing

    def put(self, key: Hashable, found: Any, size: int) -> None:
        """Keep something of about this many bytes."""
        self.put_all({key: (found, size)})

    def put_all(self, entries: Mapping[Any, tuple[Any, int]]) -> None:
        """Keep many things, each with about how many bytes it has."""
        with self._lock:
            for key, entry in entries.items():
                replaced = self._entries.pop(key, None)
                self._entries[key] = entry
                self._size += entry[1] - (replaced[1] if replaced else 0)
            while self._size > self.most_bytes:
                _, (_, size) = self._entries.popitem(last=False)
                self._size -= size


class GenerationCache:
    """Shared by the readers of one generation."""

    def __init__(self) -> None:
        self._kept = RecentlyUsed(BESIDE_SIGNS)
        self._rough = RoughVectors()
        self._overview: Overview | None = None
        self._files: tuple[int, Mapping[tuple[Source, str], FileState]] | None = None

    def overview(self, db: apsw.Connection) -> Overview:
        """What the index holds, in numbers, as the view of this connection sees it."""
        revision, contents = one_row(db, _REVISION)  # the first read fixes what the view sees
        known = self._overview
        if known is not None and known.contents == contents:
            found = known if known.revision == revision else known.at(revision)
        else:
            found = read_overview(db, revision, contents)
            signs = found.chunk_count * signs_width(found.dims)
            self._kept.most_bytes = min(MOST_BYTES, BESIDE_SIGNS + signs)
            self._rough.keep(found.first_ids)
        self._overview = found
        return found

    def files(self, db: apsw.Connection, revision: int) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file."""
        known = self._files
        if known is None or known[0] != revision:
            self._files = known = (revision, read_files(db))
        return known[1]

    def lengths(self, db: apsw.Connection, segment: Segment) -> memoryview:
        """The lengths of a segment's chunks."""
        key = ("lengths", segment.first_id, segment.revision)
        return self._once(key, lambda: memoryview(read_lengths(db, segment)).cast("H"), 2 * segment.used)

    def absences(self, db: apsw.Connection, segment: Segment) -> Absences:
        """Which of a segment's chunks have no vector."""
        key = ("absent", segment.first_id, segment.revision)
        return self._once(key, lambda: Absences(read_absences(db, segment)), segment.used)

    def signs(self, db: apsw.Connection, segment: Segment, dims: int) -> bytes:
        """The signs of a segment's vectors."""
        key = ("signs", segment.first_id, segment.posted)
        return self._once(key, lambda: read_signs(db, segment, dims=dims), segment.used * signs_width(dims))

    def postings(self, db: apsw.Connection, segment: Segment, term: str) -> Postings | None:
        """The postings of a term in a segment."""
        key = ("postings", term, segment.first_id, segment.posted)
        found: Postings | None = self._kept.get(key, _ABSENT)
        if found is _ABSENT:
            found = read_postings(db, segment.first_id, term)
            self._kept.put(key, found, _OVERHEAD + len(term) + (found.size if found else 0))
        return found

    def count(self, segment: Segment, term: str, counted: Callable[[], int]) -> int:
        """In how many chunks of a segment a term stands."""
        return self._once(("count", term, segment.first_id, segment.revision), counted, len(term))

    def chunks(self, db: apsw.Connection, ids: Sequence[int]) -> Mapping[int, Chunk]:
        """Chunks by id."""
        known, missing = self._kept.get_all([("chunk", id_) for id_ in ids])
        found: dict[int, Chunk] = {id_: chunk for (_, id_), chunk in known.items()}
        if missing:
            fetched: dict[Hashable, tuple[Chunk, int]] = {}
            for id_, path, source, ordinal, first, last, text, context, day in db.execute(
                _CHUNKS, (json.dumps([id_ for _, id_ in missing]),)
            ):
                found[id_] = chunk = StoredChunk(
                    path, source, ordinal, first, last, text, unsqueezed(context), day
                )
                fetched["chunk", id_] = chunk, _CHUNK_OVERHEAD + _INFLATED * len(text)
            self._kept.put_all(fetched)
        return found

    def rough_vectors(self, segments: Sequence[Segment], dims: int) -> RoughVectors | None:
        """Rough copies of all vectors of some segments, once that is the cheaper way to search them."""
        if not self._rough.are_worth_it(segments, dims):
            return None
        # They take the room of the signs, which are not read any more, and of vectors read one by one.
        room = BESIDE_SIGNS - self._rough.bytes_with(segments, dims)
        self._kept.most_bytes = max(BESIDE_ROUGH_VECTORS, room)
        return self._rough

    def compared(self, count: int) -> None:
        """Note that a search had to read so many vectors."""
        self._rough.compared(count)

    def vectors(self, db: apsw.Connection, ids: Sequence[int]) -> Mapping[int, bytes]:
        """Packed vectors by id; chunks without one are left out."""
        found: dict[int, bytes]
        found, missing = self._kept.get_all(ids)
        if missing:
            fetched: dict[int, bytes] = dict(db.execute(_VECTORS, (json.dumps(missing),)))
            self._kept.put_all({id_: (vector, _OVERHEAD + len(vector)) for id_, vector in fetched.items()})
            found |= fetched
        return found

    def _once(self, key: Hashable, read: Callable[[], T], size: int) -> T:
        found: T | None = self._kept.get(key)
        if found is None:
            found = read()
            self._kept.put(key, found, _OVERHEAD + size)
        return found
