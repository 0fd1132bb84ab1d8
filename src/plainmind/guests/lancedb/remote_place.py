"""An index in an object store: the pointer is a table of one row, changed by compare-and-swap.

No process can hold a lock there. A host that wants to change the index writes its name and an hour into the row, if no
other name stands there or its hour has passed. It puts the hour off while it works, and publishes only if its name
still stands there: a host that was overtaken changes nothing that others see. The clocks of the hosts must agree to
within a few seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from plainmind.base.errors import ConflictError, IndexCorrupt, LockTimeout, PlainmindError
from plainmind.guests.lancedb.library import TableFault, arrow, connect, faults, plain_errors
from plainmind.guests.lancedb.pointer import (
    NOTHING,
    Pointer,
    empty_pointer,
    generation_of,
    pointer_json,
    pointer_of_json,
    table_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_POINTER_TABLE = "current"
_LEASE_S = 40.0
_TIMEOUT_S = 60.0  # longer than the lease of a host that died
_PAUSE_S = 0.1
_TIDY_EVERY = 256  # commits of the pointer's table
_KEPT_S = 600.0  # versions that others may still look at


class RemotePlace:
    """A prefix in an object store: `s3://bucket/prefix`, `gs://…`, `az://…`."""

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._uri = uri.rstrip("/")
        self._options = storage_options
        self._guard = threading.Lock()
        self._database: Any = None
        self._row: Any = None

    @property
    def uri(self) -> str:
        """Where its tables are."""
        return self._uri

    def database(self) -> Any:
        """The connection to its tables."""
        with self._guard:
            if self._database is None:
                self._database = connect(self._uri, self._options)
            return self._database

    def pointer(self) -> Pointer:
        """The state that answers now; a damaged pointer is put aside, and there is no index until it is rebuilt."""
        with plain_errors():
            table = self._pointer_table(make=False)
            if table is None:
                return NOTHING
            kept = _read_state(table)
        try:
            return pointer_of_json(kept)
        except IndexCorrupt:
            with self.turn("replace a damaged pointer") as turn:
                return turn.pointer

    @contextmanager
    def current(self) -> Iterator[Pointer]:
        """The state that answers now; who reads a table that is dropped is told so."""
        yield self.pointer()

    @contextmanager
    def turn(self, operation: str) -> Iterator[RemoteTurn]:
        """Wait to be the only one who changes the index."""
        with plain_errors():
            table = self._pointer_table(make=True)
            turn = RemoteTurn(table, _new_token())
            deadline = time.monotonic() + _TIMEOUT_S
            while not turn.try_take():
                if time.monotonic() > deadline:
                    raise LockTimeout(
                        f"another host is changing the index: could not {operation}", hint="try again"
                    )
                time.sleep(_PAUSE_S)
        try:
            with turn.keep():
                yield turn
        finally:
            with plain_errors():
                turn.give_back()

    @contextmanager
    def using(self, generation: int) -> Iterator[None]:  # noqa: ARG002
        """Do nothing: who reads a table that is dropped is told so."""
        yield

    def drop(self, generation: int) -> None:
        """Drop a table with all its objects."""
        with plain_errors():
            self.database().drop_table(table_name(generation), ignore_missing=True)

    def drop_unused(self, current: int) -> None:
        """Drop the tables that have not answered for long: the last one before this is still being read."""
        for number in [number for number in self._generations() if number < current][:-1]:
            self.drop(number)

    def drop_others(self, current: int, replaced: int) -> None:  # noqa: ARG002
        """Drop all tables but one."""
        for number in self._generations():
            if number != current:
                self.drop(number)

    def check(self, pointer: Pointer) -> None:
        """Do nothing: object stores compare what they keep with checksums of their own."""

    def close(self) -> None:
        """Let go of the connection."""
        with self._guard:
            self._database = self._row = None

    def _generations(self) -> list[int]:
        with plain_errors():
            names = list(self.database().list_tables().tables)
        return sorted(number for name in names if (number := generation_of(name)) is not None)

    def _pointer_table(self, *, make: bool) -> Any:
        if self._row is None:
            database = self.database()
            try:
                with faults():
                    self._row = database.open_table(_POINTER_TABLE)
            except TableFault as fault:
                if not fault.is_missing:
                    raise
                if not make:
                    return None
                self._row = _make_pointer_table(database)
        self._row.checkout_latest()
        return self._row


class RemoteTurn:
    """A name in the pointer's row, for as long as the lease lasts."""

    def __init__(self, table: Any, token: str) -> None:
        self._table = table
        self._token = token
        self._guard = threading.Lock()  # the end of the lease is put off by another thread

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Put off the end of the lease during a block, however long it takes."""
        is_over = threading.Event()
        renewing = threading.Thread(
            target=self._renew, args=(is_over,), name="plainmind-lancedb-lease", daemon=True
        )
        renewing.start()
        try:
            yield
        finally:
            is_over.set()
            renewing.join()

    def try_take(self) -> bool:
        """Write our name into the row, if no other stands there."""
        now = time.time()
        said = {"holder": self._token, "until": now + _LEASE_S}
        self._table.checkout_latest()
        return bool(self._table.update(where=f"until < {now!r}", values=said).rows_updated)

    @property
    def pointer(self) -> Pointer:
        """The state that is to be changed."""
        with plain_errors():
            self._table.checkout_latest()
            kept = _read_state(self._table)
        try:
            return pointer_of_json(kept)
        except IndexCorrupt as error:
            nothing = empty_pointer(str(error))
            self.publish(nothing)
            return nothing

    def publish(self, pointer: Pointer) -> None:
        """Let another state answer from now on, unless another name stands there by now."""
        said = {"state": pointer_json(pointer), "until": time.time() + _LEASE_S}
        with plain_errors():
            is_done = self._write_row(said)
        if not is_done:
            raise ConflictError(
                "another host has taken over the index meanwhile; nothing was changed", hint="try again"
            )

    def give_back(self) -> None:
        """Take our name out, and do not let old versions of the row pile up."""
        from datetime import timedelta

        self._write_row({"holder": "", "until": 0.0})
        if self._table.version % _TIDY_EVERY < 3:  # a turn is about three commits
            self._table.optimize(cleanup_older_than=timedelta(seconds=_KEPT_S))

    def _renew(self, is_over: threading.Event) -> None:
        while not is_over.wait(_LEASE_S / 3):
            # One that fails is tried again; a host that was overtaken meanwhile learns it when it publishes.
            with suppress(PlainmindError), plain_errors():
                self._write_row({"until": time.time() + _LEASE_S})

    def _write_row(self, values: Mapping[str, Any]) -> bool:
        """Write into the row, if our name stands there."""
        with self._guard:
            self._table.checkout_latest()
            return bool(
                self._table.update(where=f"holder = '{self._token}'", values=dict(values)).rows_updated
            )


def _make_pointer_table(database: Any) -> Any:
    """The pointer's table; if another host makes it at the same time, the first one has made it."""
    pa = arrow()
    row = {"state": [pointer_json(NOTHING)], "holder": [""], "until": [0.0]}
    with suppress(TableFault), faults():
        return database.create_table(_POINTER_TABLE, pa.table(row))
    return database.open_table(_POINTER_TABLE)


def _read_state(table: Any) -> str:
    rows = table.search().select(["state"]).to_list()
    return str(rows[0]["state"]) if rows else pointer_json(NOTHING)


def _new_token() -> str:
    import secrets

    return secrets.token_hex(16)
