"""Where a copied entry came from, and the id that it gets every time it is read."""

from __future__ import annotations

from plainmind.base.model import sha256_bytes
from plainmind.sessions.entries import Entry

FROM = "imported"  # of an entry: {"file": …, "line": …}
FROM_WHERE = "importedFrom"  # of a header and of a registry's entry: {"program": …, "path": …, "id": …}


def made_id(number: int, raw: bytes) -> str:
    """Name a line that has no id of its own: by its place and its bytes, so that it is the same at every reading."""
    return "x" + sha256_bytes(b"%d:%s" % (number, raw))[:20]


def numbered(entry_id: str, count: int) -> str:
    """Name the entries that one line becomes: its own id, then `….2`, `….3`."""
    return entry_id if count == 1 else f"{entry_id}.{count}"


def with_origin(entry: Entry, file: str, number: int) -> Entry:
    """Note from which file and line an entry was copied."""
    first = {name: entry[name] for name in ("type", "id", "parentId", "timestamp") if name in entry}
    return first | entry | {FROM: {"file": file, "line": number}}


def line_of_origin(entry: Entry, file: str) -> int | None:
    """The line that an entry was copied from, if it was from this file."""
    mark = entry.get(FROM)
    if not isinstance(mark, dict) or mark.get("file") != file:
        return None
    number = mark.get("line")
    return number if isinstance(number, int) else None
