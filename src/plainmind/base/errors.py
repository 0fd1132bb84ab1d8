"""Every error a user can meet, each with a hint: what to do about it.

PlainmindError
├── ConfigError            a setting is wrong; names the key
├── WorkspaceError         the workspace is missing, unreadable or not writable
├── PathNotAllowed         a path outside the memory, or one we refuse to follow
├── ScopeDenied            not in this conversation; never tells what exists
├── NotFound               the file, line or entry does not exist
├── ConflictError          the text changed under an edit; nothing was overwritten
├── WouldShrink            a rewrite would drop most of a file; nothing was written
├── LockTimeout            another process holds a lock; names the holder
├── StorageFailure         the disk refused: full, read-only, failing; nothing was acknowledged
├── IndexUnavailable       the index cannot be used and could not be rebuilt
│   └── IndexCorrupt       a generation is damaged; the next sync rebuilds it
└── EmbeddingError         a provider failed
    ├── TransientEmbeddingError   worth retrying
    └── BadVector                 the provider answered with something that must not be stored
"""

from __future__ import annotations

import os

from plainmind.base.lazy import pattern

_ONE_SHELL_WORD = pattern(r"[\w@%+=:,./-]+")


class PlainmindError(Exception):
    """An error that a user can understand: one sentence, and a hint that says what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # shown in a traceback


class ConfigError(PlainmindError):
    """A setting is wrong. `key` is its full path, `query.hybrid.textWeight`."""

    def __init__(self, message: str, *, key: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.key = key


class WorkspaceError(PlainmindError):
    """The workspace is missing, unreadable or not writable."""


class PathNotAllowed(PlainmindError):
    """A path outside the memory, or one that we refuse to follow."""


class ScopeDenied(PlainmindError):
    """What was asked for is not for this conversation. The same words whether it exists or not."""


class NotFound(PlainmindError):
    """The file, line or entry does not exist."""


class ConflictError(PlainmindError):
    """The text changed under an edit; nothing was overwritten."""


class WouldShrink(PlainmindError):
    """A rewrite would drop most of a file; nothing was written."""


class LockTimeout(PlainmindError):
    """Another process holds a lock for longer than we may wait."""


class StorageFailure(PlainmindError):
    """The disk refused a write. Nothing was acknowledged and the old bytes are intact."""


class IndexUnavailable(PlainmindError):
    """The index cannot be used and could not be rebuilt."""


class IndexCorrupt(IndexUnavailable):
    """A generation of the index is damaged; it is set aside and the next sync rebuilds it."""


class EmbeddingError(PlainmindError):
    """An embedding provider failed for good."""


class TransientEmbeddingError(EmbeddingError):
    """An embedding provider failed in a way that is worth retrying."""


class BadVector(EmbeddingError):
    """A provider answered with something that must not be stored."""


def check_kind(given: object, what: str, kind: type | tuple[type, ...], called: str) -> None:
    """Tell a program at once that it gave something of another kind, and not from some depth. Raises TypeError."""
    if not isinstance(given, kind):
        raise TypeError(f"{what} is {called}, not {type(given).__name__}")


def check_text(given: object, what: str) -> None:
    """Raise TypeError for something else than text."""
    check_kind(given, what, str, "text (str)")


def check_texts(**given: object) -> None:
    """Raise TypeError for an argument that is something else than text."""
    for name, each in given.items():
        check_text(each, f"`{name}`")


def path_of(given: object, what: str) -> str:
    """The text of a path that a program gave as text or as a `pathlib.Path`. Raises TypeError."""
    check_kind(given, what, (str, os.PathLike), "a path (str or os.PathLike)")
    path = given if isinstance(given, str) else os.fspath(given)  # type: ignore[call-overload]
    check_text(path, what)
    return str(path)


def shell_word(text: str) -> str:
    """Quote a text for a command line, so that a command in a hint can be typed as it stands."""
    if _ONE_SHELL_WORD.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"
