"""Erasing: files taken out of a generation so that no byte of it still has their text."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import apsw

from plainmind.base.errors import LockTimeout, StorageFailure
from plainmind.base.model import Source
from plainmind.index.drivers.sqlite import writer
from plainmind.index.drivers.sqlite.connection import (
    connect,
    empty_log,
    give_back_room,
    speaking_plainly,
    transaction,
)

_LOG_TIMEOUT_S = 10.0


def erase_traces(database: str, source: Source, paths: Iterable[str]) -> None:
    """Take files out of one generation, and out of its postings, free space and log."""
    with speaking_plainly(), _saying_what_is_left():
        db = connect(database, for_writing=True)
        try:
            with transaction(db):
                for path in paths:
                    writer.remove_file(db, source, path, writer.AT_ONCE)
                writer.wipe_removed(db)
            _write_anew(db)
            deadline = time.monotonic() + _LOG_TIMEOUT_S
            while not empty_log(db):
                if time.monotonic() > deadline:
                    raise apsw.BusyError("a reader keeps the log")
                time.sleep(0.01)
        finally:
            db.close()


def _write_anew(db: apsw.Connection) -> None:
    """Write every page anew: zeros go over what is deleted, but not over what SQLite has moved to another page."""
    try:
        db.execute("VACUUM")
    except apsw.FullError:
        give_back_room(db)
        raise


@contextmanager
def _saying_what_is_left() -> Iterator[None]:
    """An erasure that fails may have come half-way; the files are clean by then, so making the index anew ends it."""
    anew = "then run `plainmind sync --force`: it makes the index anew, without the text"
    try:
        yield
    except apsw.FullError as error:
        raise StorageFailure(
            "the disk is too full to erase text from the index: some of it may be left in the index's file",
            hint=f"free as much space as the index takes, {anew}",
        ) from error
    except apsw.BusyError as error:
        raise LockTimeout(
            "a reader is in the way of erasing text from the index: some of it may be left in the index's file",
            hint=f"end long-running searches, {anew}",
        ) from error
