"""The postings of segments as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from plainmind.index.postings import Collected, Postings, without_positions

_INSERT = "INSERT INTO postings (segment, term, positions, counts) VALUES (?, ?, ?, ?)"
# `||` joins blobs byte by byte, and calls the result a text.
_APPEND = """INSERT INTO postings (segment, term, positions, counts) VALUES (?, ?, ?, ?)
             ON CONFLICT DO UPDATE SET positions = CAST(positions || excluded.positions AS BLOB),
                                       counts    = CAST(counts    || excluded.counts    AS BLOB)"""
_ALL = "SELECT term, positions, counts FROM postings WHERE segment = ?"
_REWRITE = "UPDATE postings SET positions = ?, counts = ? WHERE segment = ? AND term = ?"
_DELETE = "DELETE FROM postings WHERE segment = ? AND term = ?"
_DELETE_ALL = "DELETE FROM postings WHERE segment = ?"


def write_postings(db: apsw.Connection, segment: int, new: Collected, *, into_empty: bool) -> None:
    """Write postings to a segment: behind those that it has, or as its first."""
    by_term = new.by_term()
    if into_empty:
        # In the order of the table, so that each page of it is written once.
        in_order = sorted((term, *own) for term, own in by_term.items())
        db.executemany(_INSERT, ((segment, *row) for row in in_order if row[2]))
    else:
        db.executemany(_APPEND, ((segment, term, *own) for term, own in by_term.items() if own[1]))


def all_postings(db: apsw.Connection, segment: int) -> Iterator[tuple[str, Postings]]:
    """Every term of a segment."""
    for term, positions, counts in db.execute(_ALL, (segment,)):
        yield term, Postings(positions, counts)


def drop_positions(db: apsw.Connection, segment: int, dead: frozenset[int]) -> None:
    """Take positions out of all postings of a segment; a term that stands nowhere any more goes too."""
    changed, gone = [], []
    for term, postings in all_postings(db, segment):
        if dead.isdisjoint(postings.positions):
            continue
        positions, counts = without_positions(postings, dead)
        if counts:
            changed.append((positions, counts, segment, term))
        else:
            gone.append((segment, term))
    db.executemany(_REWRITE, changed)
    db.executemany(_DELETE, gone)


def drop_all_postings(db: apsw.Connection, segment: int) -> None:
    """Take out all postings of a segment."""
    db.execute(_DELETE_ALL, (segment,))
