"""Reads a JSON or JSON5 file that a person wrote, and says where it is wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping

from plainmind.base.errors import ConfigError
from plainmind.base.lazy import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def printable(text: str, limit: int = 80) -> str:
    """Cut the text short and make it safe to print on any terminal."""
    short = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in short)


def printable_path(path: str) -> str:
    """Make a path safe to print, at its full length."""
    return printable(path, limit=4096)


def describe_found(value: object, *, secret: bool) -> str:
    """Say what kind of value it is, and the value itself when it is short and no secret."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number" if secret or abs(value) > 1e15 else f"the number {value}"
    if isinstance(value, str):
        return _describe_text(value, secret=secret)
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else "something else"


def _describe_text(text: str, *, secret: bool) -> str:
    if not text:
        return "an empty text"
    # ascii() keeps what is not printable off the terminal
    short = repr(text) if text.isprintable() else ascii(text)
    return "text" if secret or len(text) > 60 else f"the text {short}"


def describe_typed(text: str, *, secret: bool) -> str:
    """Say what was typed where text stands for a value of any kind: `["a"]` is a list."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return describe_found(text, secret=secret)
    if not isinstance(value, list | dict):
        return describe_found(text, secret=secret)
    kind = "list" if isinstance(value, list) else "object"
    return describe_found(value, secret=True) if secret or len(text) > 60 else f"the {kind} {printable(text)}"


# json5 takes about 13 µs a byte: a file much larger than any configuration would look like a hang.
MAX_BYTES = 512 * 1024
_JSON5_PLACE = pattern(r":(\d+) .* at column (\d+)$", re.DOTALL)
_MAKE_IT_READABLE = "make it a readable file, or remove it"
_HINT = "look for a missing comma, quote or bracket at that place or just before it"


class _Duplicate(Exception):
    """A key stands twice in one object."""


def read_bytes(path: str, *, follow_symlinks: bool = True) -> bytes | None:
    """Read a regular file; None when there is none. Raises ConfigError for anything else of that name."""
    # O_NONBLOCK: a FIFO of that name in a checked-out repository must not make us wait for a writer.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_symlinks else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise ConfigError(
                f"cannot read {printable_path(path)}: it is a link to nothing", hint=_MAKE_IT_READABLE
            ) from None
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot read {printable_path(path)}: {_reason(error)}", hint=_MAKE_IT_READABLE
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigError(
                f"cannot read {printable_path(path)}: it is not a regular file", hint=_MAKE_IT_READABLE
            )
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot read {printable_path(path)}: {_reason(error)}", hint=_MAKE_IT_READABLE
        ) from error
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"{printable_path(path)} is too large for a configuration: over {MAX_BYTES:,} bytes"
        )
    return data


def parse_document(data: bytes, path: str) -> Mapping[str, Any]:
    """Read the object that the file holds. Raises ConfigError with file, line and column."""
    text = decode(data, path)
    if not text.strip():
        # An empty file may be all that a crash left: taking it for "no settings" could undo a choice.
        raise ConfigError(f"{printable_path(path)} is empty", hint="write `{}` into it, or remove it")
    try:
        value = _parse(text, path)
    except _Duplicate as duplicate:
        raise _duplicate_error(text, path, str(duplicate)) from None
    except RecursionError:
        raise ConfigError(f"{printable_path(path)} is nested too deeply to be a configuration") from None
    if not isinstance(value, dict):
        raise ConfigError(
            f"{printable_path(path)} must hold an object, `{{ … }}`, not {describe_found(value, secret=True)}"
        )
    return value


def decode(data: bytes, path: str) -> str:
    """Take the bytes as text, without a byte order mark. Raises ConfigError when it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{printable_path(path)} is not UTF-8 text, at line {line}", hint="save it as UTF-8"
        ) from None


def _parse(text: str, path: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        place = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else None
    import json5

    try:
        return json5.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        match = _JSON5_PLACE.search(str(error))
        line, column = (int(match[1]), int(match[2])) if match else place or (1, 1)
        raise ConfigError(
            f"{printable_path(path)} is not valid JSON5 at line {line}, column {column}", hint=_HINT
        ) from None  # the parser's own message quotes the text, which may be a key


def _object(members: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    pairs = list(members)
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Duplicate(name)
            seen.add(name)
    return found


def _duplicate_error(text: str, path: str, name: str) -> ConfigError:
    from plainmind.config.edit import find_duplicate

    key, lines = find_duplicate(text) or (name, ())
    places = f", on lines {lines[0]} and {lines[1]}" if lines else ""
    return ConfigError(
        f"`{printable(key)}` stands twice in {printable_path(path)}{places}",
        key=key,
        hint="keep one of the two",
    )


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        if error.errno == errno.ELOOP:
            return "it is a symbolic link"
        return (error.strerror or "it cannot be opened").lower()
    return "its name is not valid"
