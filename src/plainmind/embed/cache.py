"""Vectors by who made them and the hash of the text, in an SQLite file that can always be thrown away."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import stat
import threading
import time
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import apsw

from plainmind.base.errors import StorageFailure
from plainmind.base.model import EmbedderIdentity, Vector, sha256_text
from plainmind.base.value import value
from plainmind.embed.protocol import EmbeddingCache, FullEmbedder
from plainmind.files.system import SYSTEM, make_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _Answer = TypeVar("_Answer")


_SCHEMA_VERSION = 1
_BUSY_MS = 5000
_PARTS = ("", "-wal", "-shm")

_CREATE = (
    "DROP TABLE IF EXISTS embedding_cache",
    # The hash leads the key: `forget` knows a text but not who embedded it. The vector comes last, so that
    # touching `used_at` of a long row changes one page.
    """
    CREATE TABLE embedding_cache (
        hash         TEXT NOT NULL,     -- SHA-256 of the text
        provider     TEXT NOT NULL,
        model        TEXT NOT NULL,
        provider_key TEXT NOT NULL,     -- SHA-256 of the endpoint; never a credential
        used_at      INTEGER NOT NULL,  -- nanoseconds since 1970
        dims         INTEGER NOT NULL,
        embedding    BLOB NOT NULL,     -- float32, little-endian, unit length; then its checksum
        PRIMARY KEY (hash, provider, model, provider_key)
    )
    """,
    "CREATE INDEX embedding_cache_by_use ON embedding_cache (used_at, dims)",
)


# What SQLite raises when the file is not, or no longer, a sound database.
Damaged = (apsw.CorruptError, apsw.NotADBError)


class SharedFile:
    """One open connection to a private database and its shared lock; `prepare` brings it into shape.

    Every connection holds a shared lock on `<path>.lock`. SQLite finds its write-ahead log by name, so a database that
    is open must never be renamed: only who gets the lock alone sets a damaged file aside.
    """

    def __init__(self, path: str, prepare: Callable[[apsw.Connection], None]) -> None:
        self.path = path
        make_folders(SYSTEM, os.path.dirname(path))
        self._lock = _open_private(path + ".lock")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            os.close(_open_private(path))  # SQLite gives its own files the mode of this one
            self.inode = inode_of(path)
            flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
            self.connection = apsw.Connection(path, flags=flags)
        except BaseException:
            os.close(self._lock)
            raise
        try:
            self.connection.set_busy_timeout(_BUSY_MS)
            _write_ahead(self.connection)
            prepare(self.connection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the database, then give up the lock."""
        try:
            self.connection.close()
        finally:
            os.close(self._lock)


class CacheFile(SharedFile):
    """The cache's own."""

    def __init__(self, path: str) -> None:
        super().__init__(path, _prepare)


def inode_of(path: str) -> int | None:
    """Which file is at `path`, None when there is none."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


@contextmanager
def write_transaction(connection: apsw.Connection) -> Iterator[None]:
    """One transaction that waits for other writers at its start, so that it never fails half-way through."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def empty_log(connection: apsw.Connection) -> None:
    """Move the write-ahead log into the database and cut it to nothing: until then it keeps old pages."""
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def set_aside(path: str, inode: int | None) -> str | None:
    """Rename a damaged database to `.bad-<time>`, unless others have it open or have already replaced it.

    Returns where it went. Only the newest damaged file is kept.
    """
    lock = _open_private(path + ".lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if inode is None or inode_of(path) != inode:
            return None
        drop_damaged_copies(path)
        bad = f"{path}.bad-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        for part in _PARTS:
            with suppress(FileNotFoundError):
                SYSTEM.replace(path + part, bad + part)
    except BlockingIOError:
        return None
    finally:
        os.close(lock)
    return bad


def drop_damaged_copies(path: str) -> None:
    """Delete what `set_aside` has kept."""
    folder, name = os.path.split(path)
    for entry in SYSTEM.listdir(folder or "."):
        if entry.startswith(name + ".bad-"):
            with suppress(FileNotFoundError):
                SYSTEM.unlink(os.path.join(folder, entry))


def _open_private(path: str) -> int:
    fd = SYSTEM.open(path, os.O_RDWR | os.O_CREAT)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.ENXIO, "it is not a plain file", path)
    return fd


def _prepare(connection: apsw.Connection) -> None:
    for pragma in (
        "PRAGMA synchronous = NORMAL",
        "PRAGMA secure_delete = ON",
        "PRAGMA trusted_schema = OFF",
        "PRAGMA cell_size_check = ON",
        "PRAGMA journal_size_limit = 67108864",
    ):
        connection.execute(pragma).fetchall()
    if connection.pragma("user_version") == _SCHEMA_VERSION:
        return
    with write_transaction(connection):
        if connection.pragma("user_version") != _SCHEMA_VERSION:
            for statement in _CREATE:
                connection.execute(statement)
            connection.pragma("user_version", _SCHEMA_VERSION)


def _write_ahead(connection: apsw.Connection) -> None:
    """Switch to WAL; SQLite's busy timeout does not cover this one statement, so we wait ourselves."""
    deadline = time.monotonic() + _BUSY_MS / 1000
    while connection.pragma("journal_mode") != "wal":
        try:
            mode = connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
            continue
        if mode != "wal":
            raise StorageFailure(
                f"the file system under {connection.filename} does not allow a write-ahead log",
                hint="put PLAINMIND_HOME on a local disk",
            )


_HASHES_A_QUERY = 400
_UNIT_TOLERANCE = 1e-3
_CHECKSUM_BYTES = 4
_ATTEMPTS = 3

_LOOKUP = """
    SELECT hash, embedding
      FROM embedding_cache
     WHERE hash IN (SELECT value FROM json_each(:hashes))
       AND provider = :provider AND model = :model AND provider_key = :provider_key AND dims = :dims
"""
_TOUCH = """
    UPDATE embedding_cache
       SET used_at = :now
     WHERE hash IN (SELECT value FROM json_each(:hashes))
       AND provider = :provider AND model = :model AND provider_key = :provider_key
"""
_INSERT = """
    INSERT OR REPLACE INTO embedding_cache (hash, provider, model, provider_key, used_at, dims, embedding)
    VALUES (:hash, :provider, :model, :provider_key, :now, :dims, :embedding)
"""
_FORGET = "DELETE FROM embedding_cache WHERE hash IN (SELECT value FROM json_each(:hashes))"
_TOTALS = "SELECT count(*), coalesce(sum(dims), 0) * 4 FROM embedding_cache"
_OLDEST = "SELECT rowid, dims * 4 FROM embedding_cache ORDER BY used_at, rowid"
_EVICT = "DELETE FROM embedding_cache WHERE rowid = ?"
_COUNT = """
    SELECT count(*)
      FROM embedding_cache
     WHERE provider = :provider AND model = :model AND provider_key = :provider_key
"""
_CONTENTS = """
    SELECT provider, model, provider_key, count(*), sum(dims) * 4, min(used_at), max(used_at)
      FROM embedding_cache
     GROUP BY provider, model, provider_key
     ORDER BY count(*) DESC, provider, model
"""
_PRUNE = """
    DELETE FROM embedding_cache
     WHERE (:since IS NULL OR used_at < :since) AND (:provider IS NULL OR provider = :provider)
"""


@value
class Held:
    """The vectors of one provider, model and endpoint; times are in nanoseconds since 1970."""

    provider: str
    model: str
    endpoint: str
    entries: int
    bytes: int
    used_first_ns: int
    used_last_ns: int


@value
class Pruned:
    """How much was dropped."""

    entries: int
    bytes: int


def _never_buried(_: str) -> bool:
    return False


class SqliteEmbeddingCache:
    """A cache shared by threads and processes. Raises StorageFailure when the disk refuses.

    `buried` says whether a text was forgotten: its vector, still on its way when that happened, is not kept.
    `max_bytes` counts the vectors themselves.
    """

    def __init__(
        self,
        path: str,
        *,
        max_entries: int = 50_000,
        max_bytes: int = 512 * 1024 * 1024,
        buried: Callable[[str], bool] = _never_buried,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._path = path
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._buried = buried
        self._now_ns = now_ns
        self._turn = threading.RLock()
        self._file: CacheFile | None = None
        self._set_aside = 0

    def lookup(self, identity: EmbedderIdentity, hashes: Sequence[str]) -> Mapping[str, Vector]:
        """Find the known vectors among `hashes`; looking one up makes it recently used."""
        with self._turn:
            return self._run_repaired(lambda connection: self._found(connection, identity, hashes))

    def insert(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors, dropping the least recently used beyond the caps."""
        if not vectors:
            return
        with self._turn:
            self._run_repaired(lambda connection: self._keep(connection, identity, vectors))

    def forget(self, hashes: Sequence[str]) -> None:
        """Erase vectors of these texts, of all providers, from the file, its log and damaged copies."""
        if not hashes:
            return
        with self._turn:
            self._run_repaired(lambda connection: _erase(connection, hashes))
            drop_damaged_copies(self._path)  # nothing can be picked out of them, so they go whole

    def describe(self) -> Mapping[str, int]:
        """Facts for `status`; `setAside` counts how often the file was found damaged and begun anew."""
        with self._turn:
            entries, size = self._run_repaired(lambda connection: connection.execute(_TOTALS).get)
            return {
                "entries": entries,
                "bytes": size,
                "maxEntries": self._max_entries,
                "maxBytes": self._max_bytes,
                "setAside": self._set_aside,
            }

    def count(self, identity: EmbedderIdentity) -> int:
        """How many vectors of one embedder it has."""
        parameters = _key(identity)
        with self._turn:
            found: int = self._run_repaired(lambda connection: connection.execute(_COUNT, parameters).get)
            return found

    def contents(self) -> list[Held]:
        """What it holds, by who made it."""
        with self._turn:
            rows: list[Any] = self._run_repaired(lambda connection: connection.execute(_CONTENTS).fetchall())
        return [Held(*row) for row in rows]

    def prune(
        self,
        *,
        unused_since_ns: int | None = None,
        provider: str | None = None,
        max_entries: int | None = None,
        max_bytes: int | None = None,
    ) -> Pruned:
        """Drop vectors: those of a provider, those not used since then, and the least recently used beyond the bounds.

        Of age and provider both must hold where both are given. The file gets as small as what is left of it.
        """

        def work(connection: apsw.Connection) -> Pruned:
            before = connection.execute(_TOTALS).get
            with write_transaction(connection):
                if unused_since_ns is not None or provider is not None:
                    connection.execute(_PRUNE, {"since": unused_since_ns, "provider": provider})
                self._evict(
                    connection,
                    max_entries=self._max_entries if max_entries is None else max_entries,
                    max_bytes=self._max_bytes if max_bytes is None else max_bytes,
                )
            connection.execute("VACUUM")
            empty_log(connection)
            after = connection.execute(_TOTALS).get
            return Pruned(before[0] - after[0], before[1] - after[1])

        with self._turn:
            return self._run_repaired(work)

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        with self._turn:
            file, self._file = self._file, None
            if file is not None:
                file.close()

    def _run_repaired(self, work: Callable[[apsw.Connection], _Answer]) -> _Answer:
        """Run `work`; when the file turns out to be damaged, set it aside and run `work` on an empty one."""
        try:
            for _ in range(_ATTEMPTS):
                inode = inode_of(self._path) if self._file is None else self._file.inode
                try:
                    return work(self._open())
                except (*Damaged, UnicodeDecodeError):  # a text of a row is none
                    with suppress(*Damaged):
                        self.close()
                    self._set_aside += set_aside(self._path, inode) is not None
        except (apsw.Error, OSError) as error:
            raise StorageFailure(
                f"the embedding cache {self._path} cannot be used: {error}",
                hint="it holds nothing that cannot be made again; delete it when no plainmind is running",
            ) from error
        raise StorageFailure(
            f"the embedding cache {self._path} is damaged and another process has it open",
            hint="it is replaced as soon as that process closes it",
        )

    def _open(self) -> apsw.Connection:
        if self._file is None:
            self._file = CacheFile(self._path)
        return self._file.connection

    def _found(
        self, connection: apsw.Connection, identity: EmbedderIdentity, hashes: Sequence[str]
    ) -> dict[str, Vector]:
        found: dict[str, Vector] = {}
        for some in _portions(hashes):
            parameters = {**_key(identity), "dims": identity.dims, "hashes": some}
            for name, embedding in connection.execute(_LOOKUP, parameters):
                vector = _sound_vector(embedding, identity, name)
                if vector is not None:
                    found[name] = vector
        # The order of use is advice. A disk that is full, read-only or busy must not hide what was found.
        with suppress(apsw.BusyError, apsw.FullError, apsw.ReadOnlyError, apsw.IOError):
            self._touch(connection, identity, list(found))
        return found

    def _touch(self, connection: apsw.Connection, identity: EmbedderIdentity, hashes: Sequence[str]) -> None:
        if not hashes:
            return
        with write_transaction(connection):
            for some in _portions(hashes):
                connection.execute(_TOUCH, {**_key(identity), "now": self._now_ns(), "hashes": some})

    def _keep(
        self, connection: apsw.Connection, identity: EmbedderIdentity, vectors: Mapping[str, Vector]
    ) -> None:
        with write_transaction(connection):
            # Asked inside the transaction: a text forgotten before it is buried by now, and one forgotten
            # after it is deleted after it.
            rows = (
                {
                    **_key(identity),
                    "hash": name,
                    "now": self._now_ns(),
                    "dims": len(vector),
                    "embedding": _with_checksum(vector.tobytes(), identity, name),
                }
                for name, vector in vectors.items()
                if not self._buried(name)
            )
            connection.executemany(_INSERT, rows)
            self._evict(connection, max_entries=self._max_entries, max_bytes=self._max_bytes)

    def _evict(self, connection: apsw.Connection, *, max_entries: int, max_bytes: int) -> None:
        entries, size = connection.execute(_TOTALS).get
        victims = []
        if entries > max_entries or size > max_bytes:
            for rowid, bytes_freed in connection.execute(_OLDEST):
                if entries <= max_entries and size <= max_bytes:
                    break
                victims.append((rowid,))
                entries, size = entries - 1, size - bytes_freed
        connection.executemany(_EVICT, victims)


def _key(identity: EmbedderIdentity) -> dict[str, str]:
    return {"provider": identity.provider, "model": identity.model, "provider_key": identity.endpoint}


def _portions(hashes: Sequence[str]) -> list[str]:
    """JSON lists of at most 400 hashes, for `json_each`."""
    return [
        json.dumps(list(hashes[start : start + _HASHES_A_QUERY]))
        for start in range(0, len(hashes), _HASHES_A_QUERY)
    ]


def _with_checksum(numbers: bytes, identity: EmbedderIdentity, name: str) -> bytes:
    """The numbers of a vector and a checksum of them, of who made them and of which text they are."""
    owner = "\0".join((name, *_key(identity).values())).encode("utf-8", "surrogatepass")
    return numbers + zlib.crc32(numbers, zlib.crc32(owner)).to_bytes(_CHECKSUM_BYTES, "little")


def _sound_vector(embedding: bytes, identity: EmbedderIdentity, name: str) -> Vector | None:
    """Read a stored vector; one that was damaged on disk, or is of another text, counts as unknown."""
    numbers = embedding[: identity.dims * 4]
    # Earlier versions wrote no checksum: then its length has to do.
    if (
        embedding not in {_with_checksum(numbers, identity, name), numbers}
        or len(numbers) != identity.dims * 4
    ):
        return None
    vector = array("f", numbers)
    return vector if abs(math.hypot(*vector) - 1) < _UNIT_TOLERANCE else None


def _erase(connection: apsw.Connection, hashes: Sequence[str]) -> None:
    with write_transaction(connection):
        for some in _portions(hashes):
            connection.execute(_FORGET, {"hashes": some})
    try:
        empty_log(connection)
    except apsw.BusyError as error:
        raise StorageFailure(
            "the vectors are deleted, but another process reads the cache and its log still holds them",
            hint="forget again in a moment",
        ) from error


# Every insertion looks for what has to go, so a few requests share one.
_TOGETHER = 256


class CachedEmbedder:
    """Asks an embedder that is slow or costs money only for texts that the cache does not know, each once.

    The builtin model has no cache: it computes faster than a lookup.
    """

    def __init__(self, embedder: FullEmbedder, cache: EmbeddingCache) -> None:
        self._embedder = embedder
        self._cache = cache
        self.trouble: str | None = None  # why the cache was last not used, for `status`

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors these are."""
        return self._embedder.identity

    @property
    def sends_text_to(self) -> str | None:
        """The host that sees texts the cache does not know."""
        return self._embedder.sends_text_to

    def embed_query(self, text: str) -> Vector:
        """Pass the question on: some providers embed questions and documents differently."""
        return self._embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed each distinct unknown text once; the answers come in the order of `texts`."""
        hashes = [sha256_text(text) for text in texts]
        text_by_hash = dict(zip(hashes, texts, strict=True))
        vectors: dict[str, Vector | None] = dict(self._known(list(text_by_hash)))
        missing = {name: text for name, text in text_by_hash.items() if name not in vectors}
        if missing:
            vectors.update(self._made(missing))
        return [vectors[name] for name in hashes]

    def close(self) -> None:
        """Let go of the embedder and of the cache."""
        try:
            self._embedder.close()
        finally:
            self._cache.close()

    def _made(self, missing: Mapping[str, str]) -> Mapping[str, Vector | None]:
        """Have texts embedded, and keep what was made: what one request has brought even when another one fails."""
        names = {text: name for name, text in missing.items()}
        waiting = _Waiting(self._keep)
        try:
            made = self._embedder.embed_keeping(
                list(names), lambda some: waiting.add({names[text]: vector for text, vector in some.items()})
            )
        finally:
            waiting.flush()
        return dict(zip(missing, made, strict=True))

    def _known(self, hashes: Sequence[str]) -> dict[str, Vector]:
        try:
            return dict(self._cache.lookup(self.identity, hashes))
        except StorageFailure as error:
            # Without its cache a provider is slower, not wrong: go on, and let `status` tell.
            self.trouble = str(error)
            return {}

    def _keep(self, vectors: dict[str, Vector]) -> None:
        try:
            self._cache.insert(self.identity, vectors)
        except StorageFailure as error:
            self.trouble = str(error)


class _Waiting:
    """Vectors on their way into the cache, from several threads at once."""

    def __init__(self, keep: Callable[[dict[str, Vector]], None]) -> None:
        self._keep = keep
        self._turn = threading.Lock()
        self._vectors: dict[str, Vector] = {}

    def add(self, vectors: Mapping[str, Vector]) -> None:
        """Take some; enough of them go to the cache."""
        with self._turn:
            self._vectors.update(vectors)
            if len(self._vectors) < _TOGETHER:
                return
            ready, self._vectors = self._vectors, {}
        self._keep(ready)

    def flush(self) -> None:
        """Send the rest."""
        with self._turn:
            ready, self._vectors = self._vectors, {}
        if ready:
            self._keep(ready)
