"""What goes wrong with a server, in our words; never the text of a note, which PostgreSQL likes to quote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from plainmind.base.errors import IndexUnavailable, LockTimeout, StorageFailure

_NOTES_ARE_SAFE = "your notes are safe, they are files"


@contextmanager
def speaking_plainly(operation: str) -> Iterator[None]:
    """Turn the errors of PostgreSQL into ours."""
    try:
        yield
    except errors.LockNotAvailable as error:
        raise LockTimeout(
            f"others keep the index busy: could not {operation} in time", hint="try again"
        ) from error
    except (errors.QueryCanceled, errors.IdleInTransactionSessionTimeout) as error:
        raise IndexUnavailable(
            f"the database took too long to {operation}", hint="try again, or see what keeps it busy"
        ) from error
    except errors.DiskFull as error:
        raise StorageFailure(
            f"the disk of the database is full: could not {operation}", hint="free some space on the server"
        ) from error
    except (errors.UndefinedTable, errors.SerializationFailure) as error:
        raise IndexUnavailable("the index was made anew meanwhile", hint="try again") from error
    except errors.DeadlockDetected as error:
        raise IndexUnavailable(f"others were in the way: could not {operation}", hint="try again") from error
    except errors.ReadOnlySqlTransaction as error:
        raise IndexUnavailable(
            f"this server only answers, it takes no changes: could not {operation}",
            hint="`store.dsn` must name the server that takes changes; name several hosts, and the one that does is"
            " found after a failover too; a replica goes into `store.readDsn`",
        ) from error
    except errors.InsufficientPrivilege as error:
        raise IndexUnavailable(
            f"the database does not let this role {operation}: {said(error)}",
            hint="let the owner of the schema run `plainmind migrate-store --prepare` for this role",
        ) from error
    except psycopg.OperationalError as error:
        raise unreachable(error) from error
    except psycopg.Error as error:
        raise IndexUnavailable(
            f"the database could not {operation}: {said(error)}", hint=f"see its log; {_NOTES_ARE_SAFE}"
        ) from error


def unreachable(error: psycopg.Error) -> IndexUnavailable:
    """What to say when there is no server, or no more."""
    return IndexUnavailable(
        f"the database cannot be reached: {said(error)}",
        hint=f"start it, or correct `store.dsn`; {_NOTES_ARE_SAFE}",
    )


def no_vectors() -> IndexUnavailable:
    """What to say of a server without pgvector."""
    return IndexUnavailable(
        "this PostgreSQL has no pgvector",
        hint="install pgvector 0.8 or newer on the server, then let an administrator run `CREATE EXTENSION vector`"
        " in this database",
    )


def said(error: psycopg.Error) -> str:
    """The first line of what PostgreSQL says, without the details: those quote rows."""
    text = error.diag.message_primary or str(error).removeprefix("connection is bad: ")
    return text.strip().partition("\n")[0] or type(error).__name__
