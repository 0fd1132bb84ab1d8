"""Segments: runs of chunks of one source and scope, with their ids, lengths and postings packed together.

Ids ascend within a segment, and from one segment of a source and scope to the next. So an id is found by bisection, and
a segment can be packed anew, or together with its neighbour, without touching any chunk.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import Source
from plainmind.base.value import value
from plainmind.guests.postgres.session import Tables
from plainmind.guests.postgres.wire import from_stored, to_stored
from plainmind.index.bm25 import Collected, Postings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.guests.postgres.connections import Connection

MOST = 65_536  # positions are uint16
# New segments for single files take a quarter of what their source and scope have, within these bounds.
_LEAST_CAPACITY = 512
_MOST_CAPACITY = 8_192
_MERGED = 4_096  # neighbours that have no more chunks together become one when one of them is packed anew
_KEY_CHARACTERS = 200  # an index takes no longer keys
_ROWS_AT_ONCE = 5_000

_COLUMNS = "number, source, scope, first_id, capacity, used, living, terms, revision, posted"
ALL = f"SELECT {_COLUMNS} FROM {{segments}} ORDER BY first_id, number"  # noqa: S608 (a constant)
_OF = f"SELECT {_COLUMNS} FROM {{segments}} WHERE source = %s AND scope = %s ORDER BY first_id"  # noqa: S608
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


@value
class Segment:
    """One row of `segments`."""

    number: int
    source: Source
    scope: str
    first_id: int
    capacity: int
    used: int
    living: int
    terms: int
    revision: int
    posted: int


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

    def without(self, dead: frozenset[int]) -> Packed:
        """The same without some positions, the others moved up."""
        kept = Packed()
        moved = {}
        for position, (id_, length) in enumerate(zip(self.ids, self.lengths, strict=True)):
            if position not in dead:
                moved[position] = len(kept.ids)
                kept.ids.append(id_)
                kept.lengths.append(length)
        for term, own in self.postings.by_term().items():
            if own[1]:
                kept.postings.add_postings(term, _moved(Postings(*own), moved))
        return kept


def segment_of_row(row: Sequence[Any]) -> Segment:
    """A segment as a row tells it."""
    number, source, scope, *numbers = row
    return Segment(number, source, from_stored(scope), *numbers)


def all_segments(db: Connection, tables: Tables) -> list[Segment]:
    """Every segment, those of one source and scope in the order of their ids."""
    return [segment_of_row(row) for row in db.execute(tables(ALL))]


def segments_of(db: Connection, tables: Tables, source: Source, scope: str) -> list[Segment]:
    """The segments of one source and scope, in the order of their ids."""
    return [segment_of_row(row) for row in db.execute(tables(_OF), (source, to_stored(scope)))]


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


def append(db: Connection, tables: Tables, segment: Segment, new: Packed, *, revision: int) -> None:
    """Put chunks behind those that a segment has."""
    db.execute(tables(_APPEND_POSITIONS), (new.ids.tobytes(), new.lengths.tobytes(), segment.number))
    count, terms = len(new.ids), sum(new.lengths)
    db.execute(tables(_GROW), (count, count, terms, revision, revision, segment.number))
    _write_postings(db, tables, segment.number, segment.scope, new.postings)


def insert(
    db: Connection, tables: Tables, source: Source, scope: str, new: Packed, *, capacity: int, revision: int
) -> None:
    """Make a segment of chunks."""
    count = len(new.ids)
    row = db.execute(
        tables(_INSERT),
        (source, to_stored(scope), new.ids[0], capacity, count, count, sum(new.lengths), revision, revision),
    ).fetchone()
    number = int(row[0]) if row else 0
    db.execute(
        tables(_INSERT_POSITIONS), (number, to_stored(scope), new.ids.tobytes(), new.lengths.tobytes())
    )
    _write_postings(db, tables, number, scope, new.postings)


def bury(
    db: Connection, tables: Tables, segments: Sequence[Segment], ids: Iterable[int], *, revision: int
) -> list[Segment]:
    """Make holes of some chunks; returns the segments that had them, as they are now.

    An id that no segment has is left alone: whoever is building that segment will notice.
    """
    touched = []
    firsts = [each.first_id for each in segments]
    for at, own in groupby(sorted(ids), key=lambda id_: bisect_right(firsts, id_)):
        if at == 0:
            continue
        segment = segments[at - 1]
        known, lengths = read_positions(db, tables, segment)
        positions = [position for id_ in own if (position := position_of(known, id_)) is not None]
        terms = sum(lengths[position] for position in positions)
        for position in positions:
            lengths[position] = 0
        if positions:
            db.execute(tables(_SET_LENGTHS), (lengths.tobytes(), segment.number))
            db.execute(tables(_BURY), (len(positions), terms, revision, segment.number))
            touched.append(segment)
    return touched


def tidy(
    db: Connection, tables: Tables, source: Source, scope: str, numbers: Iterable[int], *, revision: int
) -> None:
    """Pack those of some segments anew that are mostly holes, each with its neighbour where both are small."""
    wanted = frozenset(numbers)
    segments = segments_of(db, tables, source, scope)
    taken: set[int] = set()
    for at, each in enumerate(segments):
        if each.number in wanted and each.number not in taken and 2 * each.living < each.used:
            run = [each]
            before = segments[at - 1] if at else None
            if before and before.number not in taken and before.living + each.living <= _MERGED:
                run = [before, each]
            taken.update(one.number for one in run)
            pack_anew(db, tables, run, revision=revision)


def pack_anew(db: Connection, tables: Tables, run: Sequence[Segment], *, revision: int) -> None:
    """Put the living chunks of neighbours into one new segment, and delete the old ones."""
    new = Packed()
    for segment in run:
        ids, lengths = read_positions(db, tables, segment)
        moved = {}
        # A chunk without any term has a length of 0, as a hole has: the chunks themselves tell them apart.
        living = living_ids(db, tables, ids)
        for position, (id_, length) in enumerate(zip(ids, lengths, strict=True)):
            if id_ in living:
                moved[position] = len(new.ids)
                new.ids.append(id_)
                new.lengths.append(length)
        for term, postings in all_postings(db, tables, segment.number):
            new.postings.add_postings(term, _moved(postings, moved))
    delete(db, tables, [each.number for each in run])
    if new.ids:
        last = run[-1]
        capacity = max(last.capacity, len(new.ids))
        insert(db, tables, last.source, last.scope, new, capacity=min(capacity, MOST), revision=revision)


_LIVING = "SELECT id FROM {chunks} WHERE id = ANY(%s)"


def living_ids(db: Connection, tables: Tables, ids: Iterable[int]) -> frozenset[int]:
    """Those of some ids that are chunks."""
    return frozenset(id_ for (id_,) in db.execute(tables(_LIVING), (list(ids),)))


def delete(db: Connection, tables: Tables, numbers: Sequence[int]) -> None:
    """Take out segments."""
    for statement in _DELETE:
        db.execute(tables(statement), (list(numbers),))


def read_positions(db: Connection, tables: Tables, segment: Segment) -> tuple[array[int], array[int]]:
    """The ids and lengths of a segment."""
    row = db.execute(tables(_POSITIONS), (segment.number,)).fetchone()
    if row is None or len(row[0]) != 8 * segment.used or len(row[1]) != 2 * segment.used:
        raise IndexCorrupt("a segment of the index is damaged", hint="run `plainmind sync --force`")
    return array("q", row[0]), array("H", row[1])


def position_of(ids: Sequence[int], id_: int) -> int | None:
    """Where an id stands among ascending ones."""
    at = bisect_left(ids, id_)
    return at if at < len(ids) and ids[at] == id_ else None


def all_postings(db: Connection, tables: Tables, segment: int) -> Iterator[tuple[str, Postings]]:
    """Every term of a segment."""
    for term, whole, positions, counts in db.execute(tables(_ALL_POSTINGS), (segment,)):
        yield (term if whole is None else whole), Postings(positions, counts)


def key_of(term: str) -> str:
    """By what a term is found: itself, unless it is too long for an index."""
    if len(term) <= _KEY_CHARACTERS:
        return term
    import hashlib

    # No term has a control character in it, so that none looks like the key of another.
    return "\x01" + hashlib.sha256(term.encode()).hexdigest()


def _moved(postings: Postings, moved: Mapping[int, int]) -> list[tuple[int, int]]:
    pairs = zip(postings.positions, postings.counts, strict=True)
    return [(moved[old], count) for old, count in pairs if old in moved]


def _write_postings(db: Connection, tables: Tables, segment: int, scope: str, new: Collected) -> None:
    in_order = sorted((key_of(term), term, *own) for term, own in new.by_term().items() if own[1])
    rows = iter(in_order)
    while portion := list(islice(rows, _ROWS_AT_ONCE)):
        keys, terms, positions, counts = zip(*portion, strict=True)
        wholes = [None if key == term else term for key, term in zip(keys, terms, strict=True)]
        db.execute(
            tables(_APPEND_POSTINGS),
            (segment, to_stored(scope), list(keys), wholes, list(positions), list(counts)),
        )
