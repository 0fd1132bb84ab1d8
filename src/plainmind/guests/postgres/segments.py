"""Segments: runs of chunks of one source and scope, with their ids, lengths and postings packed together.

Ids ascend within a segment, and from one segment of a source and scope to the next. So an id is found by bisection, and
a segment can be packed anew, or together with its neighbour, without touching any chunk.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import Source
from plainmind.guests.postgres.session import Tables
from plainmind.guests.postgres.view import (
    ALL_SEGMENTS,
    MOST,
    SEGMENT_COLUMNS,
    Segment,
    position_of,
    segment_of_row,
)
from plainmind.guests.postgres.wire import term_key, to_stored
from plainmind.index.bm25 import Collected, Postings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.postgres.connections import Connection

# New segments for single files take a quarter of what their source and scope have, within these bounds.
_LEAST_CAPACITY = 512
_MOST_CAPACITY = 8_192
_MERGED = 4_096  # neighbours that have no more chunks together become one when one of them is packed anew
_ROWS_AT_ONCE = 5_000

_OF = f"SELECT {SEGMENT_COLUMNS} FROM {{segments}} WHERE source = %s AND scope = %s ORDER BY first_id"  # noqa: S608
_INSERT = """INSERT INTO {segments} (source, scope, first_id, capacity, used, living, terms, revision, posted)
             VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING number"""
_INSERT_POSITIONS = "INSERT INTO {positions} (segment, scope, ids, lengths) VALUES (%s, %s, %s, %s)"
_GROW = """UPDATE {segments} SET used = used + %s, living = living + %s, terms = terms + %s,
                                 revision = %s, posted = %s
            WHERE number = %s"""
_APPEND_POSITIONS = "UPDATE {positions} SET ids = ids || %s, lengths = lengths || %s WHERE segment = %s"
_BURY = "UPDATE {segments} SET living = living - %s, terms = terms - %s, revision = %s WHERE number = %s"
_SET_LENGTHS = "UPDATE {positions} SET lengths = %s WHERE segment = %s"
_POSITIONS = "SELECT ids, lengths FROM {positions} WHERE segment = %s"
_ALL_POSTINGS = "SELECT term, whole, positions, counts FROM {postings} WHERE segment = %s"
_APPEND_POSTINGS = """INSERT INTO {postings} AS p (segment, term, whole, scope, positions, counts)
                      SELECT %s, term, whole, %s, positions, counts
                        FROM unnest(%s::text[], %s::text[], %b::bytea[], %b::bytea[])
                          AS new (term, whole, positions, counts)
                          ON CONFLICT (segment, term)
                          DO UPDATE SET positions = p.positions || excluded.positions,
                                        counts    = p.counts    || excluded.counts"""
_DELETE = (
    "DELETE FROM {postings} WHERE segment = ANY(%s)",
    "DELETE FROM {positions} WHERE segment = ANY(%s)",
    "DELETE FROM {segments} WHERE number = ANY(%s)",
)
_LIVING = "SELECT id FROM {chunks} WHERE id = ANY(%s)"


class Packed:
    """What a run of chunks adds to a segment."""

    def __init__(self) -> None:
        self.ids = array("q")
        self.lengths = array("H")
        self.postings = Collected()

    def add(self, id_: int, length: int, counted: Mapping[str, int], *, behind: int = 0) -> None:
        """Add one chunk; `behind` so many that the segment has already."""
        self.postings.add(behind + len(self.ids), counted)
        self.ids.append(id_)
        self.lengths.append(length)

    def add_living(
        self,
        ids: Sequence[int],
        lengths: Sequence[int],
        postings: Iterable[tuple[str, Postings]],
        living: frozenset[int],
    ) -> None:
        """Add those of the chunks of a segment that live, behind what is here."""
        moved = {}
        for position, (id_, length) in enumerate(zip(ids, lengths, strict=True)):
            if id_ in living:
                moved[position] = len(self.ids)
                self.ids.append(id_)
                self.lengths.append(length)
        for term, own in postings:
            pairs = zip(own.positions, own.counts, strict=True)
            self.postings.add_postings(term, [(moved[old], count) for old, count in pairs if old in moved])

    def only(self, living: frozenset[int]) -> Packed:
        """The same without chunks that do not live any more."""
        if len(living) == len(self.ids):
            return self
        kept = Packed()
        postings = ((term, Postings(*own)) for term, own in self.postings.by_term().items() if own[1])
        kept.add_living(self.ids, self.lengths, postings, living)
        return kept


class Segments:
    """The segments of a generation, inside a transaction."""

    def __init__(self, db: Connection, tables: Tables) -> None:
        self.db = db
        self.tables = tables

    def all(self) -> list[Segment]:
        """Every segment, those of one source and scope in the order of their ids."""
        return [segment_of_row(row) for row in self.db.execute(self.tables(ALL_SEGMENTS))]

    def of(self, source: Source, scope: str) -> list[Segment]:
        """The segments of one source and scope, in the order of their ids."""
        return [segment_of_row(row) for row in self.db.execute(self.tables(_OF), (source, to_stored(scope)))]

    def positions(self, segment: Segment) -> tuple[array[int], array[int]]:
        """The ids and lengths of a segment."""
        row = self.db.execute(self.tables(_POSITIONS), (segment.number,)).fetchone()
        if row is None or len(row[0]) != 8 * segment.used or len(row[1]) != 2 * segment.used:
            raise IndexCorrupt("a segment of the index is damaged", hint="run `plainmind sync --force`")
        return array("q", row[0]), array("H", row[1])

    def postings(self, segment: Segment) -> Iterator[tuple[str, Postings]]:
        """Every term of a segment."""
        for term, whole, positions, counts in self.db.execute(self.tables(_ALL_POSTINGS), (segment.number,)):
            yield (term if whole is None else whole), Postings(positions, counts)

    def living(self, ids: Iterable[int]) -> frozenset[int]:
        """Those of some ids that are chunks."""
        return frozenset(id_ for (id_,) in self.db.execute(self.tables(_LIVING), (list(ids),)))

    def append(self, segment: Segment, new: Packed, *, revision: int) -> None:
        """Put chunks behind those that a segment has."""
        self.db.execute(
            self.tables(_APPEND_POSITIONS), (new.ids.tobytes(), new.lengths.tobytes(), segment.number)
        )
        count, terms = len(new.ids), sum(new.lengths)
        self.db.execute(self.tables(_GROW), (count, count, terms, revision, revision, segment.number))
        self._write_postings(segment.number, segment.scope, new.postings)

    def insert(self, source: Source, scope: str, new: Packed, *, capacity: int, revision: int) -> None:
        """Make a segment of chunks."""
        stored, count = to_stored(scope), len(new.ids)
        row = self.db.execute(
            self.tables(_INSERT),
            (source, stored, new.ids[0], capacity, count, count, sum(new.lengths), revision, revision),
        ).fetchone()
        number = int(row[0]) if row else 0
        self.db.execute(
            self.tables(_INSERT_POSITIONS), (number, stored, new.ids.tobytes(), new.lengths.tobytes())
        )
        self._write_postings(number, scope, new.postings)

    def bury(self, segments: Sequence[Segment], ids: Iterable[int], *, revision: int) -> list[int]:
        """Make holes of some chunks; returns the numbers of the segments that had them.

        An id that no segment has is left alone: a build that still packs its segment will notice.
        """
        touched = []
        firsts = [each.first_id for each in segments]
        for at, own in groupby(sorted(ids), key=lambda id_: bisect_right(firsts, id_)):
            if at == 0:
                continue
            segment = segments[at - 1]
            known, lengths = self.positions(segment)
            positions = [position for id_ in own if (position := position_of(known, id_)) is not None]
            terms = sum(lengths[position] for position in positions)
            for position in positions:
                lengths[position] = 0
            if positions:
                self.db.execute(self.tables(_SET_LENGTHS), (lengths.tobytes(), segment.number))
                self.db.execute(self.tables(_BURY), (len(positions), terms, revision, segment.number))
                touched.append(segment.number)
        return touched

    def tidy(self, source: Source, scope: str, numbers: Iterable[int], *, revision: int) -> None:
        """Pack those of some segments anew that are mostly holes, each with its neighbour where both are small."""
        wanted = frozenset(numbers)
        segments = self.of(source, scope)
        taken: set[int] = set()
        for at, each in enumerate(segments):
            if each.number in wanted and each.number not in taken and 2 * each.living < each.used:
                run = [each]
                before = segments[at - 1] if at else None
                if before and before.number not in taken and before.living + each.living <= _MERGED:
                    run = [before, each]
                taken.update(one.number for one in run)
                self.pack_anew(run, revision=revision)

    def pack_anew(self, run: Sequence[Segment], *, revision: int) -> None:
        """Put the living chunks of neighbours into one new segment, and delete the old ones."""
        new = Packed()
        for segment in run:
            ids, lengths = self.positions(segment)
            # A chunk without any term has a length of 0, as a hole has: the chunks themselves tell them apart.
            new.add_living(ids, lengths, self.postings(segment), self.living(ids))
        for statement in _DELETE:
            self.db.execute(self.tables(statement), ([each.number for each in run],))
        if new.ids:
            last = run[-1]
            capacity = min(max(last.capacity, len(new.ids)), MOST)
            self.insert(last.source, last.scope, new, capacity=capacity, revision=revision)

    def _write_postings(self, segment: int, scope: str, new: Collected) -> None:
        rows = iter(sorted((term_key(term), term, *own) for term, own in new.by_term().items() if own[1]))
        while portion := list(islice(rows, _ROWS_AT_ONCE)):
            keys, terms, positions, counts = zip(*portion, strict=True)
            wholes = [None if key == term else term for key, term in zip(keys, terms, strict=True)]
            self.db.execute(
                self.tables(_APPEND_POSTINGS),
                (segment, to_stored(scope), list(keys), wholes, list(positions), list(counts)),
            )


def room_in(segments: Sequence[Segment], count: int) -> Iterator[tuple[Segment | None, int, int]]:
    """Where so many new chunks go: a segment (None: a new one), its capacity, and how many of them."""
    newest = segments[-1] if segments else None
    if newest is not None and newest.used < newest.capacity:
        taken = min(count, newest.capacity - newest.used)
        yield newest, newest.capacity, taken
        count -= taken
    own = sum(each.living for each in segments)
    while count > 0:
        capacity = min(_MOST_CAPACITY, max(_LEAST_CAPACITY, own // 4))
        yield None, capacity, min(count, capacity)
        count -= capacity
