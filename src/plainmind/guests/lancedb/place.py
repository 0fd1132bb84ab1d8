"""Where an index is, in a folder or an object store, and the pointer to the version of the table that answers there.

A change may take several commits of LanceDB. Readers look at the version that the pointer names, so they see all of a
change or nothing; what a dead writer has left behind it is undone by the next one.

In a folder the pointer is a file, and one process at a time may change it:

CURRENT           the pointer, replaced as a whole
writer.lock       held while the index is changed
gen-000017.lock   held shared while a generation is read or built
gen-000017.sums   the checksum of every file of its table, as it was when it was written
tables/           the tables, as LanceDB keeps them

In an object store it is a table of one row, changed by compare-and-swap. No process can hold a lock there. A host that
wants to change the index writes its name and an hour into the row, if no other name stands there or its hour has
passed. It puts the hour off while it works, and publishes only if its name still stands there: a host that was
overtaken changes nothing that others see. The clocks of the hosts must agree to within a few seconds.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress

from plainmind.base.errors import ConflictError, IndexCorrupt, IndexUnavailable, LockTimeout, PlainmindError
from plainmind.base.model import IndexFingerprint
from plainmind.base.value import asdict, replace, value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    hold_lock,
    make_folders,
    read_file,
    try_lock,
)
from plainmind.guests.lancedb.library import TableFault, arrow, connect, faults, plain_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol
else:
    Protocol = object


@value
class Pointer:
    """One state of an index."""

    generation: int = 0
    version: int = 0  # of the table; 0: there is no table, and nothing was ever built
    revision: int = 0
    fingerprint: IndexFingerprint | None = None
    next_id: int = 1
    next_owner: int = 1
    tidied: int = 0  # the version after the last compaction
    recovered: str | None = None  # what was wrong with the index before this one

    @property
    def table(self) -> str:
        """The name of its table."""
        return table_name(self.generation)

    @property
    def dims(self) -> int:
        """How many numbers a vector has."""
        return self.fingerprint.embedder.dims if self.fingerprint else 0


NOTHING = Pointer()


class Turn(Protocol):
    """The right to change an index, for the length of a block."""

    @property
    def pointer(self) -> Pointer:
        """The state that is to be changed."""

    def publish(self, pointer: Pointer) -> None:
        """Let another state answer from now on. Raises ConflictError when the right was lost meanwhile."""


class Place(Protocol):
    """Where an index is: its tables, its pointer, and who may change it."""

    @property
    def uri(self) -> str:
        """Where its tables are."""

    def database(self) -> Any:
        """The connection to its tables."""

    def pointer(self) -> Pointer:
        """The state that answers now."""

    def current(self) -> AbstractContextManager[Pointer]:
        """The state that answers now, kept from being dropped for the length of a block, where that is possible."""

    def turn(self, operation: str) -> AbstractContextManager[Turn]:
        """Wait to be the only one who changes the index."""

    def check(self, pointer: Pointer) -> None:
        """Make sure that the files of a state are what was written, where the place does not see to it itself.

        Raises IndexCorrupt.
        """

    def using(self, generation: int) -> AbstractContextManager[None]:
        """Keep the table of a generation from being dropped, where that is possible."""

    def drop(self, generation: int) -> None:
        """Drop a table with all its files; one that is not there is fine."""

    def drop_unused(self, current: int) -> None:
        """Drop the tables that neither answer nor are read or built. Needs a turn."""

    def drop_others(self, current: int, replaced: int) -> None:
        """Drop all tables but one; readers of the one that it has just replaced are given a moment. Needs a turn."""

    def close(self) -> None:
        """Let go of the connection."""


def table_name(generation: int) -> str:
    """The name of a generation's table."""
    return f"gen_{generation:06d}"


def generation_of(name: str) -> int | None:
    """The generation that a table is of; None for tables that are none of ours."""
    number = name.removeprefix("gen_")
    return int(number) if number != name and number.isdecimal() else None


def empty_pointer(reason: str) -> Pointer:
    """A pointer to nothing, for the place of one that cannot be read."""
    # A number that no table has had: what is left of the old ones is dropped by the next rebuild.
    return replace(NOTHING, generation=int(time.time()) % 900_000 + 100_000, recovered=reason)


def pointer_json(pointer: Pointer) -> str:
    """A pointer as it is kept, with its checksum."""
    facts = asdict(pointer)
    return json.dumps({**facts, "sum": _checksum(facts)})


def pointer_of_json(kept: str) -> Pointer:
    """A kept pointer; raises IndexCorrupt when it is none."""
    try:
        facts = json.loads(kept)
        is_whole = facts.pop("sum", None) in {None, _checksum(facts)}  # earlier versions wrote no checksum
        made = facts.pop("fingerprint")
        if made is not None:
            made = IndexFingerprint.from_facts(made)
        pointer = Pointer(**facts, fingerprint=made)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _pointer_damage() from error
    if not is_whole:
        raise _pointer_damage()
    return pointer


def _pointer_damage() -> IndexCorrupt:
    return IndexCorrupt("the pointer to the index is damaged", hint="run `plainmind sync`")


def _checksum(facts: object) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode("ascii"))


# --- in a folder ---


_WRITER_TIMEOUT_S = 30.0
_READERS_TIMEOUT_S = 5.0
_PAUSE_S = 0.02
_ATTEMPTS = 200
_MOST_POINTER_BYTES = 1_000_000
_READ_BYTES = 1 << 20
_HINT = "latest_version_hint.json"  # the one file that LanceDB replaces; our pointer names the version


class LocalPlace:
    """A folder, made when it is missing."""

    def __init__(self, folder: str, system: System = SYSTEM) -> None:
        # A folder of its own inside that of the index: other stores, used before or after, have theirs there.
        self.folder = os.path.join(os.path.abspath(folder), "lancedb")
        self._system = system
        self._synced = SyncedFiles(system)  # used by the thread that has the turn
        self._checked = CheckedFiles(system)
        self._pointer = os.path.join(self.folder, "CURRENT")
        self._tables = os.path.join(self.folder, "tables")
        self._guard = threading.Lock()
        self._database: Any = None

    @property
    def uri(self) -> str:
        """Where its tables are."""
        return self._tables

    def database(self) -> Any:
        """The connection to its tables."""
        with self._guard:
            if self._database is None:
                self._make()
                self._database = connect(self._tables)
            return self._database

    def pointer(self) -> Pointer:
        """The state that answers now; a damaged pointer is put aside, and there is no index until it is rebuilt."""
        try:
            return self.read()
        except IndexCorrupt as error:
            reason = str(error)
        with self.turn("replace a damaged pointer") as turn:
            return turn.repair(reason)

    @contextmanager
    def current(self) -> Iterator[Pointer]:
        """The state that answers now, kept from being dropped."""
        for _ in range(_ATTEMPTS):
            pointer = self.pointer()
            with self.using(pointer.generation):
                now = self.pointer()
                if now.generation == pointer.generation:
                    yield now
                    return
            # What was kept from being dropped had been replaced already.
        raise IndexUnavailable("the index changes faster than it can be opened", hint="try again")

    @contextmanager
    def turn(self, operation: str) -> Iterator[LocalTurn]:
        """Wait to be the only one who changes the index."""
        self.database()  # importing LanceDB takes seconds, which others need not wait for
        lock = os.path.join(self.folder, "writer.lock")
        with hold_lock(lock, operation=operation, timeout_s=_WRITER_TIMEOUT_S):
            yield LocalTurn(self)

    @contextmanager
    def using(self, generation: int) -> Iterator[None]:
        """Keep the table of a generation from being dropped."""
        self._make()
        for _ in range(_ATTEMPTS):
            lock = try_lock(self._lock(generation), operation="read the index", shared=True)
            if lock is not None:
                with lock:
                    yield
                return
            time.sleep(_PAUSE_S)
        raise IndexUnavailable("the index is just being replaced", hint="try again")

    def check(self, pointer: Pointer) -> None:
        """Make sure that the files of a table are what was written; each is read once by a process."""
        self._checked.check(self._table(pointer.generation), self._sums(pointer.generation))

    def drop(self, generation: int) -> None:
        """Drop a table with all its files, whatever state they are in, also while others drop or write them."""
        path = self._table(generation)
        deadline = time.monotonic() + _READERS_TIMEOUT_S
        with explain_errors("delete", path):
            with suppress(FileNotFoundError):
                self._system.unlink(self._sums(generation))  # the next table of this number has other files
            while os.path.lexists(path):
                try:
                    self._system.remove_tree(path)
                except FileNotFoundError:
                    pass  # another process deletes it too: what is left of it may be ours to delete
                except OSError as error:
                    if error.errno != errno.ENOTEMPTY or time.monotonic() > deadline:
                        raise  # else a writer has just written to it, and is about to find it gone

    def drop_unused(self, current: int) -> None:
        """Drop the tables that neither answer nor are read or built."""
        for number in self._generations():
            if number != current:
                self._try_drop(number)

    def drop_others(self, current: int, replaced: int) -> None:
        """Drop all tables but one, even from under those who read or build them."""
        deadline = time.monotonic() + _READERS_TIMEOUT_S
        for number in self._generations():
            while number != current and not self._try_drop(number):
                if number != replaced or time.monotonic() > deadline:
                    self.drop(number)
                    break
                time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Let go of the connection."""
        with self._guard:
            self._database = None

    def read(self) -> Pointer:
        """The pointer as it stands in its file; raises IndexCorrupt when that is none."""
        with explain_errors("read", self._pointer):
            try:
                written = read_file(self._pointer, system=self._system, most=_MOST_POINTER_BYTES)
                return pointer_of_json(written.decode("ascii", "replace"))
            except FileNotFoundError:
                return NOTHING

    def write(self, pointer: Pointer) -> None:
        """Replace the pointer, once what it points to would survive a power cut."""
        if pointer.version:
            table = self._table(pointer.generation)
            with explain_errors("write", table):
                self._synced.sync(table)
                self._checked.record(
                    table, self._sums(pointer.generation), anew=not self._is_current(pointer.generation)
                )
        write_atomically(self._pointer, pointer_json(pointer).encode("ascii"), system=self._system)

    def _is_current(self, generation: int) -> bool:
        try:
            return self.read().generation == generation
        except IndexCorrupt:
            return False

    def _make(self) -> None:
        with explain_errors("make", self.folder):
            make_folders(self._system, self._tables)

    def _generations(self) -> list[int]:
        """Every generation of which a table or a lock is left."""
        with explain_errors("list", self.folder):
            tables = [name.removesuffix(".lance") for name in os.listdir(self._tables)]
            locks = [
                name.removesuffix(".lock").replace("-", "_")
                for name in os.listdir(self.folder)
                if name.endswith(".lock")
            ]
        found = {number for name in (*tables, *locks) if (number := generation_of(name)) is not None}
        return sorted(found)

    def _try_drop(self, number: int) -> bool:
        lock = try_lock(self._lock(number), operation="drop an old index")
        if lock is None:
            return False
        with lock:
            self.drop(number)
            with suppress(FileNotFoundError):
                self._system.unlink(self._lock(number))
        return True

    def _lock(self, generation: int) -> str:
        return os.path.join(self.folder, f"gen-{generation:06d}.lock")

    def _sums(self, generation: int) -> str:
        return os.path.join(self.folder, f"gen-{generation:06d}.sums")

    def _table(self, generation: int) -> str:
        return os.path.join(self._tables, f"{table_name(generation)}.lance")


class LocalTurn:
    """The writer lock is held."""

    def __init__(self, place: LocalPlace) -> None:
        self._place = place

    @property
    def pointer(self) -> Pointer:
        """The state that is to be changed."""
        try:
            return self._place.read()
        except IndexCorrupt as error:
            return self.repair(str(error))

    def publish(self, pointer: Pointer) -> None:
        """Let another state answer from now on."""
        self._place.write(pointer)

    def repair(self, reason: str) -> Pointer:
        """Put a pointer to nothing in the place of one that cannot be read."""
        try:
            return self._place.read()
        except IndexCorrupt:
            nothing = empty_pointer(reason)
            self.publish(nothing)
            return nothing


class CheckedFiles:
    """The checksums of the files of a table: LanceDB has none of its own, and never changes a file."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._guard = threading.Lock()
        self._found_right: dict[str, tuple[int, int, int]] = {}  # by path: inode, size and time

    def record(self, table: str, sums: str, *, anew: bool) -> None:
        """Add the files that have come since the last time; what is known of the others stays, unless all are new.

        The number of a table comes again after an index was removed, and its checksums may have been left.
        """
        known = {} if anew else _read_sums(sums)
        there = {
            path: os.path.relpath(path, table) for path in _files_below(table) if not path.endswith(_HINT)
        }
        kept = {name: known[name] if name in known else _sum_of(path) for path, name in there.items()}
        if kept != known:
            facts = json.dumps(kept, sort_keys=True)
            content = f"{zlib.crc32(facts.encode('ascii'))}\n{facts}"
            write_atomically(sums, content.encode("ascii"), system=self._system)

    def check(self, table: str, sums: str) -> None:
        """Compare every file with its checksum, unless this process has found it right already."""
        with self._guard:
            for name, expected in _read_sums(sums).items():
                path = os.path.join(table, name)
                try:
                    now = os.stat(path)
                    seen = (now.st_ino, now.st_size, now.st_mtime_ns)
                    if self._found_right.get(path) != seen and _sum_of(path) != expected:
                        raise IndexCorrupt(
                            f"the index is damaged: {name} has changed on the disk",
                            hint="run `plainmind sync`: it is built anew",
                        )
                except FileNotFoundError:
                    continue  # of an older version; LanceDB says if it is missing
                self._found_right[path] = seen


def _files_below(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(place, name)


def _sum_of(path: str) -> int:
    found = 0
    with open(path, "rb") as file:
        while part := file.read(_READ_BYTES):
            found = zlib.crc32(part, found)
    return found


def _read_sums(path: str) -> dict[str, int]:
    """Checksums by the paths of files; none for a table of an earlier version."""
    try:
        with open(path, "rb") as file:
            checksum, _, facts = file.read().partition(b"\n")
    except FileNotFoundError:
        return {}
    if checksum != str(zlib.crc32(facts)).encode("ascii"):
        raise IndexCorrupt(
            "the checksums of the index are damaged", hint="run `plainmind sync`: it is built anew"
        )
    found: dict[str, int] = json.loads(facts)
    return found


class SyncedFiles:
    """Brings files to the disk that LanceDB has written: it never waits for that, and a pointer to them does.

    LanceDB never changes a file, it writes others: those that are on the disk are remembered.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._known: set[tuple[str, int]] = set()  # path and inode

    def sync(self, table: str) -> None:
        """Wait until a table survives a power cut."""
        found: set[tuple[str, int]] = set()
        for folder, _, names in os.walk(table):
            paths = [os.path.join(folder, name) for name in names]
            files = {(path, self._system.stat(path).st_ino) for path in paths}
            for path, _inode in files - self._known:
                self._sync_file(path)
            if files - self._known:
                self._system.fsync_folder(folder)
            found |= files
        self._system.fsync_folder(os.path.dirname(table))
        self._known = found

    def _sync_file(self, path: str) -> None:
        opened = self._system.open(path, os.O_RDONLY)
        try:
            self._system.fsync(opened)
        finally:
            self._system.close(opened)


# --- in an object store ---


_POINTER_TABLE = "current"
_LEASE_S = 40.0
_TIMEOUT_S = 60.0  # longer than the lease of a host that died
_LEASE_PAUSE_S = 0.1
_TIDY_EVERY = 256  # commits of the pointer's table
_KEPT_S = 600.0  # versions that others may still look at


class RemotePlace:
    """A prefix in an object store: `s3://bucket/prefix`, `gs://…`, `az://…`."""

    def __init__(
        self, uri: str, storage_options: Mapping[str, str] | None = None, *, is_named: bool = True
    ) -> None:
        self._uri = uri.rstrip("/")
        self._is_named = is_named  # by a person, and not after a folder, which other machines may have too
        self._options = storage_options
        self._guard = threading.Lock()
        self._database: Any = None
        self._row: Any = None

    @property
    def uri(self) -> str:
        """Where its tables are."""
        return self._uri

    def database(self) -> Any:
        """The connection to its tables. Raises IndexUnavailable when nobody has given them a name."""
        if not self._is_named:
            above, name = self._uri.rsplit("/", 1)
            raise IndexUnavailable(
                f"an index in {above} needs a name: a folder at the same place on another machine would share it",
                hint="`plainmind config set store.workspace NAME`, the same on every host that has these notes and on"
                f" no other; the name {name} goes on with an index that was made there without one",
            )
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
                time.sleep(_LEASE_PAUSE_S)
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
