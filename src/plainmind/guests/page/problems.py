"""What a request gets that is not carried out: a status, a kind, our sentence and what to do (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from plainmind.base.errors import (
    ConflictError,
    EmbeddingError,
    IndexUnavailable,
    LockTimeout,
    NotFound,
    PathNotAllowed,
    PlainmindError,
    ScopeDenied,
    StorageFailure,
    WorkspaceError,
    WouldShrink,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_log = logging.getLogger(__name__)

# What each kind of problem is called, and the status that goes with it.
KINDS: Mapping[str, tuple[int, str]] = {
    "bad-request": (400, "The request cannot be understood"),
    "unauthorized": (401, "A token is needed"),
    "session-over": (401, "The session is over"),
    "code": (409, "The code does not work any more"),
    "forbidden": (403, "This is not allowed here"),
    "host": (403, "Another host was meant"),
    "origin": (403, "Pages of other sites may not ask here"),
    "not-found": (404, "There is no such thing"),
    "method": (405, "This cannot be done with it"),
    "too-slow": (408, "The body took too long"),
    "conflict": (409, "It does not fit what is there"),
    "would-shrink": (409, "Most of the file would go"),
    "stale": (412, "The file has changed meanwhile"),
    "too-large": (413, "The body is too large"),
    "media-type": (415, "The body must be JSON"),
    "precondition-required": (428, "Say which version is meant"),
    "too-many": (503, "Too much is going on"),
    "failed": (500, "This failed inside"),
    "absent": (501, "A part is not there"),
    "unavailable": (503, "The memory cannot be used just now"),
}
# The first that fits: subclasses stand before what they are of.
_OF_ERRORS: tuple[tuple[type[PlainmindError], str], ...] = (
    (ScopeDenied, "forbidden"),
    (NotFound, "not-found"),
    (PathNotAllowed, "forbidden"),
    (WouldShrink, "would-shrink"),
    (ConflictError, "conflict"),
    (WorkspaceError, "unavailable"),
    (LockTimeout, "unavailable"),
    (StorageFailure, "unavailable"),
    (IndexUnavailable, "unavailable"),
    (EmbeddingError, "unavailable"),
)


class Problem(Exception):
    """A request that is not carried out, and why. Never holds what only the owner may read."""

    def __init__(
        self,
        kind: str,
        detail: str,
        hint: str | None = None,
        *,
        more: Mapping[str, Any] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status, self.title = KINDS[kind]
        self.hint = hint
        self.more = more or {}
        self.headers = headers

    def as_json(self) -> dict[str, Any]:
        """The body that is sent."""
        said = {
            "type": f"urn:plainmind:{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": str(self),
        }
        return {**said, **({"hint": self.hint} if self.hint else {}), **self.more}


def problem_of(error: BaseException) -> Problem:
    """Say of an error what the one who asked may know; our own mistakes go to the log."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, PlainmindError):
        kind = next((kind for of, kind in _OF_ERRORS if isinstance(error, of)), "bad-request")
        return Problem(kind, str(error), error.hint)
    _log.error("a request failed", exc_info=error)
    return Problem(
        "failed", f"this failed inside ({type(error).__name__})", "the log of the server tells more"
    )
