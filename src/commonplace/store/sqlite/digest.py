"""The digest of a generation, from what its tables really hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import apsw

from commonplace.errors import IndexCorrupt
from commonplace.model import Chunk, FileState
from commonplace.store.digest import file_digest, index_digest
from commonplace.store.sqlite.connection import rows
from commonplace.store.sqlite.vectors import owners_of_slots, read_vectors
from commonplace.store.sqlite.writer import read_fingerprint

_ALL_OCCURRENCES = 'SELECT doc, term, "offset" FROM chunks_occurrences'
_FILES = "SELECT id, path, source, hash FROM files"
_CHUNKS = """SELECT id, ordinal, start_line, end_line, term_count, slot, text, context, day
               FROM chunks WHERE file_id = ? ORDER BY ordinal, id"""
_TOTALS = "SELECT source, files, chunks, terms FROM totals WHERE files <> 0 OR chunks <> 0 OR terms <> 0"
_COUNTED = """SELECT f.source, count(DISTINCT f.id), count(c.id), coalesce(sum(c.term_count), 0)
                FROM files f LEFT JOIN chunks c ON c.file_id = f.id
               GROUP BY f.source"""


def check_parts(db: apsw.Connection) -> None:
    """Make sure that SQLite finds its file in order; FTS5 checks its own structures with it."""
    answers = [row[0] for row in db.execute("PRAGMA quick_check(3)")]
    if answers != ["ok"]:
        raise _contradiction("; ".join(answers))


def digest_generation(db: apsw.Connection) -> str:
    """Hash everything that a rebuild would write again, inside a transaction that the caller has begun."""
    check_parts(db)
    fingerprint = read_fingerprint(db)
    dims = fingerprint.embedder.dims if fingerprint else 0
    terms = _terms_of_chunks(db)
    owners = owners_of_slots(db)
    digests = []
    for id_, path, source, hash_ in rows(db, _FILES):
        state = FileState(path, source, hash_, 0, 0, 0)
        digests.append(file_digest(state, _chunks(db, (id_, state), terms, owners, dims)))
    if terms or owners:
        raise _contradiction(f"{len(terms)} postings and {len(owners)} vectors belong to no chunk")
    if sorted(db.execute(_TOTALS)) != sorted(db.execute(_COUNTED)):
        raise _contradiction("the totals are not the sums of the rows")
    return index_digest(fingerprint, digests)


def _chunks(
    db: apsw.Connection,
    file: tuple[int, FileState],
    terms: dict[int, list[tuple[int, str]]],
    owners: dict[int, int],
    dims: int,
) -> Iterator[tuple[Chunk, Sequence[str], bytes | None]]:
    """The chunks of one file; takes what belongs to them out of `terms` and `owners`."""
    file_id, state = file
    for id_, ordinal, first, last, term_count, slot, text, context, day in rows(db, _CHUNKS, (file_id,)):
        mine = [term for _, term in sorted(terms.pop(id_, []))]
        if len(mine) != term_count:
            raise _contradiction(f"a chunk of {term_count} terms has postings for {len(mine)}")
        if slot is not None and owners.pop(slot, None) != id_:
            raise _contradiction("the slot of a vector belongs to another chunk")
        vector = None if slot is None else read_vectors(db, [slot], dims=dims)[0]
        yield Chunk(state.path, state.source, ordinal, first, last, text, context, day), mine, vector


def _terms_of_chunks(db: apsw.Connection) -> dict[int, list[tuple[int, str]]]:
    terms: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for doc, term, offset in db.execute(_ALL_OCCURRENCES):
        terms[doc].append((offset, term))
    return terms


def _contradiction(found: str) -> IndexCorrupt:
    return IndexCorrupt(f"the index contradicts itself: {found}", hint="run `commonplace sync --force`")
