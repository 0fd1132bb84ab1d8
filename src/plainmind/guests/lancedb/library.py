"""LanceDB itself: imported when first needed, quiet, and its errors in our words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from importlib import import_module

from plainmind.base.errors import ConfigError, IndexUnavailable, PlainmindError, StorageFailure
from plainmind.base.extras import install_hint
from plainmind.base.lazy import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

# An object store that did not answer says nothing about what is in it.
_PASSING = (
    "generic s3",
    "generic gcs",
    "generic microsoftazure",
    "http error",
    "retries",
    "denied",
    "privileges",
)
_INNERMOST_REASON = pattern(r'\bmessage: "([^"]{1,300})"')
_ASKED = pattern(r"\buri: Some\((https?://[^/?#)@]{1,200})")
_FULL = ("no space left", "quota exceeded")
_MISSING = ("not found", "does not exist", "no longer exists", "no such file")
_DAMAGED = ("corrupt", "invalid", "magic", "decode", "unexpected", "malformed", "out of range", "file size")


class TableFault(Exception):
    """LanceDB could not do what was asked; `is_damage` when files of a table are not there, or not whole."""

    def __init__(self, error: Exception) -> None:
        super().__init__(first_line(error))
        said = str(error).casefold()
        is_passing = any(words in said for words in _PASSING)
        self.is_missing = not is_passing and any(words in said for words in _MISSING)
        self.is_damage = self.is_missing or (not is_passing and any(words in said for words in _DAMAGED))


def load() -> Any:
    """The lancedb module; it takes over a second, so nothing imports it before it is needed."""
    # Its core writes warnings about its own future to stderr, where ours are; errors still come as exceptions.
    os.environ.setdefault("LANCEDB_LOG", "error")
    try:
        import lancedb
    except ImportError as error:
        raise ConfigError(
            f"LanceDB is not installed: {error}",
            key="store.driver",
            hint=f"install it: {install_hint('lancedb')}",
        ) from error
    return lancedb


def arrow() -> Any:
    """The pyarrow module, which comes with LanceDB. It has no types."""
    return import_module("pyarrow")


def connect(uri: str, storage_options: Mapping[str, str] | None = None) -> Any:
    """Open a folder, or a place in an object store, as a database."""
    with plain_errors():
        return load().connect(uri, storage_options=dict(storage_options or {}) or None)


@contextmanager
def faults() -> Iterator[None]:
    """Let LanceDB's errors out of a block as TableFault: what they mean is said by code that knows what was asked.

    They are Python's plainest errors. So nothing else is to be called in the block that raises such.
    """
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        raise TableFault(error) from error


def with_faults(method: Callable[P, R]) -> Callable[P, R]:
    """Let LanceDB's errors out of a method as TableFault."""

    @wraps(method)
    def call(*args: P.args, **options: P.kwargs) -> R:
        with faults():
            return method(*args, **options)

    return call


@contextmanager
def plain_faults() -> Iterator[None]:
    """Let no TableFault out of a block except as an error that a user understands."""
    try:
        yield
    except TableFault as fault:
        raise refusal(fault) from fault


@contextmanager
def plain_errors() -> Iterator[None]:
    """The same for LanceDB's own errors, in blocks in which only LanceDB raises such."""
    with plain_faults(), faults():
        yield


def refusal(fault: TableFault) -> PlainmindError:
    """The error that says in words what LanceDB did not do."""
    if any(words in str(fault).casefold() for words in _FULL):
        return StorageFailure(
            f"the index could not be written: {fault}",
            hint="free some space; what answered before still does",
        )
    return IndexUnavailable(
        f"LanceDB refused: {fault}", hint="check the folder or the object store, then try again"
    )


def first_line(error: Exception) -> str:
    """What an error says, without the places in LanceDB's source."""
    whole = str(error)
    reasons = _INNERMOST_REASON.findall(whole)
    if reasons:  # the rest is the inside of a library, as it prints itself
        asked = _ASKED.search(whole)
        return f"{reasons[-1]}, at {asked[1]}" if asked else str(reasons[-1])
    said = (whole.splitlines() or [type(error).__name__])[0]
    return said.split(", /")[0][:300]
