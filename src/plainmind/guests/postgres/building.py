"""An index that is being built beside the one that answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from plainmind.base.errors import IndexUnavailable
from plainmind.base.model import IndexFingerprint, Source
from plainmind.guests.postgres import writer
from plainmind.guests.postgres.bulk import InBulk
from plainmind.guests.postgres.cache import GenerationCache
from plainmind.guests.postgres.changes import Change, Changes
from plainmind.guests.postgres.connections import Connections
from plainmind.guests.postgres.reader import PostgresReader
from plainmind.guests.postgres.session import STATEMENT_S, Published, Session, Tables
from plainmind.index.protocol import IndexStore, leave_as_is

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from plainmind.guests.postgres.connections import Connection

_ANALYZE = "SELECT analyze_generation(%s)"
_LONG_S = 3_600  # a large graph takes minutes


class BuildingStore(Changes):
    """What `rebuild()` yields: it takes files as any store does, and nobody else sees it yet."""

    neighbours = None

    def __init__(
        self, session: Session, connections: Connections, number: int, fingerprint: IndexFingerprint
    ) -> None:
        self.tables = Tables(number)
        self._session = session
        self._connections = connections
        self._fingerprint = fingerprint
        self._bulk = InBulk()
        self._one_at_a_time = threading.RLock()
        self._joint: tuple[Change, list[bool]] | None = None  # and whether one of its changes has failed

    def finish(self) -> None:
        """Make everything found, and found fast."""
        self._flush()
        with self._changing("finish a rebuild", statement_s=_LONG_S) as (db, tables, _):
            writer.make_graph_if_large(db, tables, self._fingerprint.embedder.dims)
            db.execute(_ANALYZE, (tables.generation,))

    def settle(self) -> None:
        """Write what came last."""
        self._flush()

    @contextmanager
    def reading(self) -> Iterator[PostgresReader]:
        """Look at what was built so far."""
        self._flush()
        with self._connections.transaction(self._look, "read the index") as (db, now):
            yield PostgresReader(db, GenerationCache(now.generation), now)

    def erase(self, source: Source, *paths: str) -> None:
        """Drop files and every trace of them."""
        from plainmind.guests.postgres.erasing import write_anew

        self._flush()
        with self._changing("erase files") as (db, tables, _):
            for path in paths:
                writer.remove_file(db, tables, source, path, self._bulk)
            writer.wipe_removed(db, tables)
        write_anew(self._session, self._connections, [self.tables.generation])

    def rebuild(
        self,
        fingerprint: IndexFingerprint,  # noqa: ARG002
        *,
        reason: str,  # noqa: ARG002
        catch_up: Callable[[IndexStore], None] = leave_as_is,  # noqa: ARG002
    ) -> NoReturn:
        """Refuse: this is a rebuild already."""
        raise IndexUnavailable("an index that is being built cannot be rebuilt", hint="leave the block first")

    def describe(self) -> Mapping[str, Any]:
        """Say what this is."""
        return {"driver": "postgres", "path": None, "generation": self.tables.generation, "building": True}

    def sizes(self) -> Mapping[str, int]:
        """Counts and bytes by part of what was built so far."""
        from plainmind.guests.postgres.describing import sizes_of

        self._flush()
        with self._connections.transaction(self._look, "measure the index") as (db, _):
            return sizes_of(db, self.tables)

    def digest(self) -> str:
        """Hash what was built so far."""
        from plainmind.guests.postgres.digest import digest_generation

        self._flush()
        with self._connections.transaction(self._look, "check the index") as (db, now):
            return digest_generation(db, self.tables, now)

    def close(self) -> None:
        """Do nothing: the end of the `rebuild()` block closes it."""

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Make all changes of a block in one transaction: a commit takes longer than a small file."""
        with self._one_at_a_time:
            if self._joint is not None:
                yield  # of a block that is joined already
                return
            with self._changing("index files") as change:
                failures: list[bool] = []
                self._joint = (change, failures)
                try:
                    yield
                finally:
                    self._joint = None
                if failures:
                    raise IndexUnavailable(
                        "a change failed, and with it those it was joined with", hint="try again"
                    )

    @contextmanager
    def _changing(self, operation: str, *, statement_s: int = STATEMENT_S) -> Iterator[Change]:
        with self._one_at_a_time:
            if self._joint is not None:
                change, failures = self._joint
                try:
                    yield change
                except BaseException:
                    failures.append(True)
                    raise
                return

            def begin(db: Connection) -> Published:
                self._session.introduce(db, statement_s=statement_s)
                return self._found(db)

            with self._connections.transaction(begin, operation) as (db, now):
                yield db, self.tables, now
            self._write_full_segments()

    def _placing(self) -> writer.Placing:
        return self._bulk

    def _look(self, db: Connection) -> Published:
        self._session.introduce(db)
        return self._found(db)

    def _found(self, db: Connection) -> Published:
        found = self._session.generation(db, self.tables.generation)
        if found is None or not found.is_kept:
            raise IndexUnavailable("the index that was being built is gone", hint="sync again")
        return found

    def _flush(self) -> None:
        """Write all postings that wait for it."""
        with self._one_at_a_time:
            if self._joint is not None:
                raise IndexUnavailable(
                    "changes are being joined", hint="leave the block, then read the index"
                )
            self._bulk.complete()
            self._write_full_segments()

    def _write_full_segments(self) -> None:
        with self._one_at_a_time:
            if self._bulk.is_full:
                with self._connections.transaction(self._look, "index files") as (db, _):
                    self._bulk.write(db, self.tables)
                self._bulk.written()
