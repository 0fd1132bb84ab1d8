"""What takes how much space in a generation: a pass over all of it."""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from plainmind.index.drivers.sqlite.connection import setting

# `length` of a blob or of a long text is in the header of its row: their pages stay unread.
_SUMS: Mapping[str, str] = {
    "files": "SELECT count(*) FROM files",
    "chunks": "SELECT count(*) FROM chunks",
    "texts": "SELECT coalesce(sum(octet_length(text) + octet_length(context)), 0) FROM chunks",
    "vectors": "SELECT coalesce(sum(octet_length(vector)), 0) FROM vectors",
    "signs": "SELECT coalesce(sum(octet_length(signs)), 0) FROM signs",
    "terms": "SELECT count(*) FROM postings",
    "postings": """SELECT coalesce(sum(octet_length(term) + octet_length(positions) + octet_length(counts)), 0)
                     FROM postings""",
    "segments": "SELECT count(*) FROM segments",
    "positions": "SELECT coalesce(sum(used), 0) FROM segments",
    "holes": "SELECT coalesce(sum(dead), 0) FROM segments",
}


def sizes_of(db: apsw.Connection) -> Mapping[str, int]:
    """Counts and bytes by part, inside a transaction that the caller has begun."""
    found = {name: int(db.execute(statement).get) for name, statement in _SUMS.items()}
    page = int(setting(db, "page_size"))
    found["free"] = page * int(setting(db, "freelist_count"))
    found["file"] = page * int(setting(db, "page_count"))
    return found
