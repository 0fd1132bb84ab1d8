"""Vectors by who made them and the hash of the text, in an SQLite file that can always be thrown away."""

from __future__ import annotations

import json
import math
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import apsw

from plainmind.base.errors import StorageFailure
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.base.value import value
from plainmind.embed.cache_file import (
    CacheFile,
    Damaged,
    drop_damaged_copies,
    empty_log,
    inode_of,
    set_aside,
    writing,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _Answer = TypeVar("_Answer")

_HASHES_A_QUERY = 400
_UNIT_TOLERANCE = 1e-3
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
            return self._healed(lambda connection: self._found(connection, identity, hashes))

    def insert(self, identity: EmbedderIdentity, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors, dropping the least recently used beyond the caps."""
        if not vectors:
            return
        with self._turn:
            self._healed(lambda connection: self._keep(connection, identity, vectors))

    def forget(self, hashes: Sequence[str]) -> None:
        """Erase vectors of these texts, whoever made them, from the file, its log and damaged copies."""
        if not hashes:
            return
        with self._turn:
            self._healed(lambda connection: _erased(connection, hashes))
            drop_damaged_copies(self._path)  # nothing can be picked out of them, so they go whole

    def describe(self) -> Mapping[str, int]:
        """Facts for `status`; `setAside` counts how often the file was found damaged and begun anew."""
        with self._turn:
            entries, size = self._healed(lambda connection: connection.execute(_TOTALS).get)
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
            found: int = self._healed(lambda connection: connection.execute(_COUNT, parameters).get)
            return found

    def contents(self) -> list[Held]:
        """What it holds, by who made it."""
        with self._turn:
            rows: list[Any] = self._healed(lambda connection: connection.execute(_CONTENTS).fetchall())
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
            with writing(connection):
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
            return self._healed(work)

    def close(self) -> None:
        """Let go of the file; the next call opens it again."""
        with self._turn:
            file, self._file = self._file, None
            if file is not None:
                file.close()

    def _healed(self, work: Callable[[apsw.Connection], _Answer]) -> _Answer:
        """Run `work`; when the file turns out to be damaged, set it aside and run `work` on an empty one."""
        try:
            for _ in range(_ATTEMPTS):
                inode = inode_of(self._path) if self._file is None else self._file.inode
                try:
                    return work(self._opened())
                except Damaged:
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

    def _opened(self) -> apsw.Connection:
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
                vector = _sound_vector(embedding, identity.dims)
                if vector is not None:
                    found[name] = vector
        # The order of use is advice. A disk that is full, read-only or busy must not hide what was found.
        with suppress(apsw.BusyError, apsw.FullError, apsw.ReadOnlyError, apsw.IOError):
            self._touch(connection, identity, list(found))
        return found

    def _touch(self, connection: apsw.Connection, identity: EmbedderIdentity, hashes: Sequence[str]) -> None:
        if not hashes:
            return
        with writing(connection):
            for some in _portions(hashes):
                connection.execute(_TOUCH, {**_key(identity), "now": self._now_ns(), "hashes": some})

    def _keep(
        self, connection: apsw.Connection, identity: EmbedderIdentity, vectors: Mapping[str, Vector]
    ) -> None:
        with writing(connection):
            # Asked inside the transaction: a text forgotten before it is buried by now, and one forgotten
            # after it is deleted after it.
            rows = (
                {
                    **_key(identity),
                    "hash": name,
                    "now": self._now_ns(),
                    "dims": len(vector),
                    "embedding": vector.tobytes(),
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


def _sound_vector(embedding: bytes, dims: int) -> Vector | None:
    """Read a stored vector; one that is not of unit length was damaged on disk and counts as unknown."""
    if len(embedding) != dims * 4:
        return None
    vector = array("f", embedding)
    return vector if abs(math.hypot(*vector) - 1) < _UNIT_TOLERANCE else None


def _erased(connection: apsw.Connection, hashes: Sequence[str]) -> None:
    with writing(connection):
        for some in _portions(hashes):
            connection.execute(_FORGET, {"hashes": some})
    try:
        empty_log(connection)
    except apsw.BusyError as error:
        raise StorageFailure(
            "the vectors are deleted, but another process reads the cache and its log still holds them",
            hint="forget again in a moment",
        ) from error
