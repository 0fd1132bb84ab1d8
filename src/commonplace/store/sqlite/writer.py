"""Changes to one generation, each inside a transaction that its caller has begun."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import apsw

from commonplace.model import Chunk, EmbeddedChunk, EmbedderIdentity, FileState, IndexFingerprint, Source
from commonplace.store.agreement import check_agreement
from commonplace.store.bm25 import storable_terms
from commonplace.store.kernels import packed
from commonplace.store.protocol import ANY_CONTENT
from commonplace.store.sqlite.connection import one_row, rows
from commonplace.store.sqlite.vectors import put_vectors, take_vectors

_NEXT_REVISION = "UPDATE revision SET value = value + 1 RETURNING value"
_FILE_HASH = "SELECT hash FROM files WHERE source = ? AND path = ?"
_FILE_ID = "SELECT id FROM files WHERE source = ? AND path = ?"
_INSERT_FILE = """INSERT INTO files (source, path, hash, size, mtime_ns, inode)
                  VALUES (?, ?, ?, ?, ?, ?) RETURNING id"""
_TOUCH_FILE = """UPDATE files SET size = ?, mtime_ns = ?, inode = ?
                  WHERE source = ? AND path = ? AND hash = ?"""
_LAST_CHUNK_ID = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'chunks'"
_INSERT_CHUNK = """INSERT INTO chunks (id, file_id, ordinal, start_line, end_line, term_count, slot,
                                       day, context, text)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_INSERT_TERMS = "INSERT INTO chunks_fts (rowid, terms) VALUES (?, ?)"
_CHUNKS_OF = "SELECT id, term_count, slot FROM chunks WHERE file_id = ?"
_DELETE_TERMS = "DELETE FROM chunks_fts WHERE rowid = ?"
_DELETE_CHUNKS = "DELETE FROM chunks WHERE file_id = ?"
_DELETE_FILE = "DELETE FROM files WHERE id = ?"
_ADD_TO_TOTALS = """INSERT INTO totals (source, files, chunks, terms) VALUES (?, ?, ?, ?)
                    ON CONFLICT (source) DO UPDATE SET files  = files  + excluded.files,
                                                       chunks = chunks + excluded.chunks,
                                                       terms  = terms  + excluded.terms"""
_SET_META = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"
_FINGERPRINT = "SELECT value FROM meta WHERE key = 'fingerprint'"
_MERGE_POSTINGS = "INSERT INTO chunks_fts (chunks_fts) VALUES ('optimize')"


def write_fingerprint(db: apsw.Connection, fingerprint: IndexFingerprint, reason: str) -> None:
    """Say how the index is made, and why it was made anew."""
    db.execute(_SET_META, ("fingerprint", json.dumps(asdict(fingerprint))))
    db.execute(_SET_META, ("reason", reason))


def read_fingerprint(db: apsw.Connection) -> IndexFingerprint | None:
    """How the index is made; None when it was never built."""
    row = db.execute(_FINGERPRINT).fetchone()
    if row is None:
        return None
    facts = json.loads(row[0])
    return IndexFingerprint(**{**facts, "embedder": EmbedderIdentity(**facts["embedder"])})


def replace_file(
    db: apsw.Connection,
    file: FileState,
    chunks: Sequence[EmbeddedChunk],
    expecting: IndexFingerprint | None,
    replacing: str | None,
) -> bool:
    """Take the old chunks of a file out and put the new ones in; False when another text was put in before."""
    dims = check_agreement(read_fingerprint(db), expecting).embedder.dims
    if replacing != ANY_CONTENT:
        known = db.execute(_FILE_HASH, (file.source, file.path)).fetchone()
        if replacing != (known and known[0]):
            return False
    revision = _next_revision(db)
    _drop_file(db, file.source, file.path, dims=dims, revision=revision)
    (file_id,) = one_row(
        db,
        _INSERT_FILE,
        (file.source, file.path, file.hash, file.size, file.mtime_ns, signed_64(file.inode)),
    )
    (last_id,) = one_row(db, _LAST_CHUNK_ID)
    numbered = list(enumerate(chunks, last_id + 1))
    vectors = [(id_, packed(each.vector, dims)) for id_, each in numbered if each.vector is not None]
    slots = put_vectors(db, file.source, vectors, dims=dims, revision=revision)
    terms = {id_: storable_terms(each.terms) for id_, each in numbered}
    db.executemany(
        _INSERT_CHUNK,
        [_chunk_row(id_, file_id, each.chunk, len(terms[id_]), slots.get(id_)) for id_, each in numbered],
    )
    db.executemany(_INSERT_TERMS, [(id_, " ".join(own)) for id_, own in terms.items()])
    db.execute(_ADD_TO_TOTALS, (file.source, 1, len(chunks), sum(map(len, terms.values()))))
    return True


def touch_file(db: apsw.Connection, file: FileState) -> None:
    """Record what the file looks like now, if its text is the one that is indexed."""
    _next_revision(db)
    db.execute(
        _TOUCH_FILE,
        (file.size, file.mtime_ns, signed_64(file.inode), file.source, file.path, file.hash),
    )


def remove_file(db: apsw.Connection, source: Source, path: str) -> None:
    """Take a file and its chunks out, if they are there."""
    fingerprint = read_fingerprint(db)
    if fingerprint is not None:
        _drop_file(db, source, path, dims=fingerprint.embedder.dims, revision=_next_revision(db))


def merge_postings(db: apsw.Connection) -> None:
    """Write the postings anew: until then the words of deleted chunks are only marked as deleted."""
    db.execute(_MERGE_POSTINGS)


def signed_64(number: int) -> int:
    """Fit an unsigned 64-bit number, an inode, into SQLite's signed integers."""
    return number - 2**64 if number >= 2**63 else number


def unsigned_64(number: int) -> int:
    """Undo `signed_64`."""
    return number + 2**64 if number < 0 else number


def _chunk_row(id_: int, file_id: int, chunk: Chunk, term_count: int, slot: int | None) -> tuple[object, ...]:
    return (
        id_, file_id, chunk.ordinal, chunk.start_line, chunk.end_line, term_count, slot,
        chunk.day, chunk.context, chunk.text,
    )  # fmt: skip


def _drop_file(db: apsw.Connection, source: Source, path: str, *, dims: int, revision: int) -> None:
    row = db.execute(_FILE_ID, (source, path)).fetchone()
    if row is None:
        return
    chunks = rows(db, _CHUNKS_OF, row)
    db.executemany(_DELETE_TERMS, [(id_,) for id_, _, _ in chunks])
    taken = [slot for _, _, slot in chunks if slot is not None]
    take_vectors(db, taken, dims=dims, revision=revision)
    db.execute(_DELETE_CHUNKS, row)
    db.execute(_DELETE_FILE, row)
    db.execute(_ADD_TO_TOTALS, (source, -1, -len(chunks), -sum(count for _, count, _ in chunks)))


def _next_revision(db: apsw.Connection) -> int:
    (revision,) = one_row(db, _NEXT_REVISION)
    return int(revision)
