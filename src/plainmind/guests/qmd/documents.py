"""The documents of collections: found by their masks, read for the index, and written down where programs look."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import (
    Document,
    FileFailure,
    FileState,
    Source,
    sha256_bytes,
    time_to_keep,
)
from plainmind.base.value import record, value
from plainmind.files.safe_open import Root
from plainmind.files.system import SYSTEM, explain_errors, make_folders
from plainmind.guests.qmd.catalogue import Shelf, Whereabouts
from plainmind.notes.discovery import Discovery, FoundFile, compile_pattern
from plainmind.notes.workspace import MAX_FILE_BYTES, day_of, decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import apsw

_NEVER_ENTERED = frozenset({"node_modules", ".git", ".cache", "vendor", "dist", "build"})
_HEADING = pattern(r"(?m)^##?\s+(.+)$")
_SECOND = pattern(r"(?m)^##\s+(.+)$")
_ORG_TITLE = pattern(r"(?mi)^#\+TITLE:\s*(.+)$")
_ORG_HEADING = pattern(r"(?m)^\*+\s+(.+)$")
DOCID_CHARS = 6


@value
class Listed:
    """A document."""

    collection: str
    path: str  # in the collection
    title: str
    hash: str
    size: int  # in characters, as far as it was read
    mtime_ns: int
    real: str = ""  # where it is on disk

    @property
    def docid(self) -> str:
        """Its short name."""
        return self.hash[:DOCID_CHARS]

    @property
    def cited(self) -> str:
        """How our index calls it."""
        return f"{self.collection}/{self.path}"


class Files:
    """The files of collections, as a source of the index. Cited as `<collection>/<path>`."""

    def __init__(self, shelves: Sequence[Shelf]) -> None:
        self._shelves = tuple(shelves)
        self._found: Discovery | None = None
        self.places: dict[str, tuple[str, str]] = {}  # collection and path, by how a file is cited

    @property
    def source(self) -> Source:
        """Which source its files are cited as."""
        return "memory"

    @property
    def growing(self) -> None:
        """Nothing: each file is read whole."""

    def discover(self) -> Discovery:
        """List the files; once, for a command sees one state of the disk."""
        if self._found is None:
            files: list[FoundFile] = []
            skipped: list[FileFailure] = []
            for shelf in self._shelves:
                for found in _files_of(shelf, skipped):
                    files.append(found)
                    self.places[found.path] = (shelf.name, found.relative)
            self._found = Discovery(tuple(files), tuple(skipped))
        return self._found

    def changed_since(self, moment: int | None) -> None:
        """Say that only another look can tell."""

    def look_at(self, path: str) -> FoundFile | None:
        """Look again at a file; None when it is not there any more."""
        return next((found for found in self.discover().files if found.path == path), None)

    def is_surely_gone(self, path: str) -> bool:
        """Whether the folder of its collection is there, or the collection is not."""
        folders = (shelf.path for shelf in self._shelves if path.startswith(f"{shelf.name}/"))
        return all(os.path.isdir(folder) for folder in folders)

    def read(self, file: FoundFile) -> tuple[Document, FileState]:
        """Read a file: its text, and what it looked like."""
        raw, status = file.root.read(file.relative, max_bytes=MAX_FILE_BYTES)
        state = FileState(
            file.path,
            self.source,
            sha256_bytes(raw),
            status.st_size,
            time_to_keep(status.st_mtime_ns),
            status.st_ino,
        )
        return Document(file.path, self.source, decode(raw), day_of(file.path)), state

    def locate(self, path: str) -> FoundFile:
        """Find the file that a cited path names. Raises NotFound."""
        found = self.look_at(path)
        if found is None:
            raise NotFound(f"there is no `{path}`", hint="`qmd ls` lists the collections")
        return found

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`."""
        return {"changes": "seen by looking at all files"}

    def close(self) -> None:
        """Forget what was found."""
        self._found = None


def masks_of(mask: str) -> list[Callable[[str], bool]]:
    """Make what tells whether a path fits one of the patterns of a mask: they are separated by commas."""
    parts, depth, start = [], 0, 0
    for position, sign in enumerate(f"{mask},"):
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            parts.append(mask[start:position].strip())
            start = position + 1
    return [_fits(part) for part in parts if part]


def _fits(mask: str) -> Callable[[str], bool]:
    compiled = compile_pattern(mask)
    if compiled is None:
        return lambda path: path.endswith(".md")
    return lambda path: compiled.fullmatch(path) is not None


def _files_of(shelf: Shelf, skipped: list[FileFailure]) -> Iterator[FoundFile]:
    """The files of one collection, in order: nothing hidden, nothing in folders of programs, no links."""
    wanted, ignored = masks_of(shelf.pattern), [test for mask in shelf.ignore for test in masks_of(mask)]
    root = Root(shelf.path)
    for inside, folders, names in os.walk(shelf.path):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _NEVER_ENTERED
        )
        for name in sorted(names):
            relative = os.path.relpath(os.path.join(inside, name), shelf.path)
            if name.startswith(".") or not any(test(relative) for test in wanted):
                continue
            if any(test(relative) for test in ignored):
                continue
            try:
                status = os.lstat(os.path.join(inside, name))
            except OSError as error:
                skipped.append(FileFailure(f"{shelf.name}/{relative}", error.strerror or str(error)))
                continue
            if os.path.islink(os.path.join(inside, name)):
                continue
            yield FoundFile(
                f"{shelf.name}/{relative}",
                status.st_size,
                status.st_mtime_ns,
                status.st_ino,
                status.st_ctime_ns,
                root,
                relative,
            )


def title_of(text: str, path: str) -> str:
    """A document's title: its first heading, else its name."""
    lower = path.lower()
    if lower.endswith(".md"):
        first = _HEADING.search(text)
        if first is not None and first[1].strip() in {"Notes", "📝 Notes"}:
            first = _SECOND.search(text) or first
        if first is not None:
            return str(first[1]).strip()
    if lower.endswith(".org"):
        found = _ORG_TITLE.search(text) or _ORG_HEADING.search(text)
        if found is not None:
            return str(found[1]).strip()
    return os.path.splitext(os.path.basename(path))[0] or path


# --- what is known of them: in the database, and in the table, that programs written for QMD look into ---

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_SCHEMA = """
    CREATE TABLE IF NOT EXISTS documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        collection TEXT NOT NULL,
        path TEXT NOT NULL,
        title TEXT NOT NULL,
        hash TEXT NOT NULL,
        created_at TEXT NOT NULL,
        modified_at TEXT NOT NULL,
        active INTEGER NOT NULL DEFAULT 1,
        size INTEGER,
        mtime_ns INTEGER,
        inode INTEGER,
        UNIQUE (collection, path)
    )
"""
_ALL = "SELECT collection, path, title, hash, size, mtime_ns, inode FROM documents WHERE active = 1"
_PUT = """
    INSERT INTO documents (collection, path, title, hash, created_at, modified_at, active, size, mtime_ns, inode)
         VALUES (:collection, :path, :title, :hash, :now, :modified, 1, :size, :mtime_ns, :inode)
    ON CONFLICT (collection, path) DO UPDATE
            SET title = excluded.title, hash = excluded.hash, modified_at = excluded.modified_at, active = 1,
                size = excluded.size, mtime_ns = excluded.mtime_ns, inode = excluded.inode
"""
_DROP = "DELETE FROM documents WHERE collection = :collection AND path = :path"
_DROP_ALL = "DELETE FROM documents WHERE collection = :collection"
_RENAME = "UPDATE documents SET collection = :new WHERE collection = :old"
# Shorter than that of QMD: should QMD itself find this table one day, it takes each document for changed, and reads it.
_HASH_CHARS = 16
_BUSY_MS = 10_000


@record
class Changes:
    """What a look at a collection found."""

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0


class Ledger:
    """The table of documents."""

    def __init__(self, where: Whereabouts) -> None:
        self.path = where.ledger
        if os.path.exists(self.path) and not self._is_ours():
            self.path = os.path.join(where.home, "documents.sqlite")  # QMD's own is left to QMD

    def refresh(self, files: Files, shelves: Sequence[Shelf]) -> tuple[list[Listed], dict[str, Changes]]:
        """Write down what is there now; all documents, and what has changed in each collection."""
        changes = {shelf.name: Changes() for shelf in shelves}
        listed: list[Listed] = []
        with self._open() as database:
            known = {(row[0], row[1]): row for row in database.execute(_ALL)}
            seen: set[tuple[str, str]] = set()
            with database:
                for found in files.discover().files:
                    key = files.places[found.path]
                    document = self._document(found, key, known.get(key))
                    if document is None:
                        continue
                    seen.add(key)
                    listed.append(document)
                    self._note(database, found, document, known.get(key), changes[key[0]])
                for collection, path in known.keys() - seen:
                    database.execute(_DROP, {"collection": collection, "path": path})
                    if collection in changes:
                        changes[collection].removed += 1
        return listed, changes

    def remove(self, collection: str) -> tuple[int, int]:
        """Drop a collection; how many documents it had, and how many of their texts are in no other."""
        with self._open() as database, database:
            rows = [(row[0], row[3]) for row in database.execute(_ALL)]
            database.execute(_DROP_ALL, {"collection": collection})
        gone = [digest for name, digest in rows if name == collection]
        return len(gone), len(set(gone) - {digest for name, digest in rows if name != collection})

    def erase(self, has_it: Callable[[str], bool]) -> None:
        """Drop the documents whose titles have a text, to be looked at again; no byte of the database keeps it."""
        if not os.path.exists(self.path):
            return
        with self._open() as database:
            doomed = [(row[0], row[1]) for row in database.execute(_ALL) if has_it(row[2])]
            for collection, path in doomed:
                database.execute(_DROP, {"collection": collection, "path": path})
            if doomed:
                database.execute("VACUUM")

    def rename(self, old: str, new: str) -> None:
        """Give a collection another name."""
        with self._open() as database, database:
            database.execute(_RENAME, {"old": old, "new": new})

    def _document(self, found: FoundFile, key: tuple[str, str], known: Any) -> Listed | None:
        """A document as it is now; None for an empty file, and one that cannot be read."""
        if known is not None and (known[4], known[5], known[6]) == (found.size, found.mtime_ns, found.inode):
            return Listed(*key, known[2], known[3], found.size, found.mtime_ns, found.real)
        try:
            raw, _ = found.root.read(found.relative, max_bytes=MAX_FILE_BYTES)
        except (PlainmindError, OSError):
            return None
        text = decode(raw)
        if not text.strip():
            return None
        digest = sha256_bytes(raw)[:_HASH_CHARS]
        return Listed(*key, title_of(text, key[1]), digest, found.size, found.mtime_ns, found.real)

    def _note(
        self, database: apsw.Connection, found: FoundFile, document: Listed, known: Any, changes: Changes
    ) -> None:
        if known is None:
            changes.new += 1
        elif known[3] != document.hash:
            changes.updated += 1
        else:
            changes.unchanged += 1
            if (known[4], known[5], known[6]) == (found.size, found.mtime_ns, found.inode):
                return
        from datetime import UTC, datetime

        def iso(seconds: float) -> str:
            return (
                datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            )

        row = {
            "collection": document.collection,
            "path": document.path,
            "title": document.title,
            "hash": document.hash,
            "now": iso(found.ctime_ns / 1e9),
            "modified": iso(found.mtime_ns / 1e9),
            "size": found.size,
            "mtime_ns": found.mtime_ns,
            "inode": found.inode,
        }
        database.execute(_PUT, row)

    def _is_ours(self) -> bool:
        import apsw

        try:
            database = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READONLY)
            try:
                return "content" not in {name for (name,) in database.execute(_TABLES)}
            finally:
                database.close()
        except apsw.Error:
            return False

    @contextmanager
    def _open(self) -> Iterator[apsw.Connection]:
        import apsw

        with explain_errors("create", os.path.dirname(self.path)):
            make_folders(SYSTEM, os.path.dirname(self.path))
        try:
            database = apsw.Connection(self.path)
            try:
                database.set_busy_timeout(_BUSY_MS)
                database.execute("PRAGMA secure_delete = ON")  # or a title that was forgotten would stay
                database.execute(_SCHEMA)
                yield database
            finally:
                database.close()
        except apsw.Error as error:
            raise PlainmindError(
                f"{self.path} cannot be used: {error}", hint="delete it: it is made anew from your files"
            ) from error
