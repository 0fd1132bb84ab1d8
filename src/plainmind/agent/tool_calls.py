"""A tool call as a model writes it: its arguments checked against the schema, and mistakes turned into answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from plainmind.agent import answers
from plainmind.agent.answers import ToolAnswer
from plainmind.agent.pool import Pool, TimedOut
from plainmind.base.errors import (
    ConflictError,
    IndexUnavailable,
    LockTimeout,
    NotFound,
    PathNotAllowed,
    PlainmindError,
    ScopeDenied,
    StorageFailure,
    WorkspaceError,
)
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from plainmind.agent.tools import Tool


# More is a mistake, and would only be searched for slowly. A note has a limit of its own.
MOST_CHARS = {
    "query": 4_000,
    "path": 4_096,
    "what": 20_000,
    "old": 20_000,
    "new": 50_000,
    "confirm": 100,
    "tag": 200,
    "since": 100,
    "until": 100,
}

_LARGEST = 1e300  # beyond it arithmetic gives up; NaN is on neither side of it

_NAMES = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


class Misuse(Exception):
    """A call that cannot be carried out as it is: what is wrong, and what to do instead."""

    def __init__(self, message: str, action: str) -> None:
        super().__init__(message)
        self.action = action


def read_arguments(tool: Tool, given: Mapping[str, Any] | str) -> dict[str, Any]:
    """The arguments by name; those that are null count as left out. Raises Misuse."""
    arguments = _parse(tool, given) if isinstance(given, str) else given
    if not isinstance(arguments, Mapping):
        raise Misuse(f"the arguments of {tool.name} are {_describe(arguments)}, not an object", _usage(tool))
    known: Mapping[str, Any] = tool.input_schema["properties"]
    for name in arguments:
        if name not in known:
            raise Misuse(f"{tool.name} has no argument `{str(name)[:60]}`", _usage(tool))
    taken = {name: value for name, value in arguments.items() if value is not None}
    for name in tool.input_schema["required"]:
        if name not in taken:
            raise Misuse(f"{tool.name} needs the argument `{name}`", _usage(tool))
    return {name: _check(name, value, known[name]) for name, value in taken.items()}


def _parse(tool: Tool, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_not_a_number) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Misuse(
            f"the arguments of {tool.name} are not valid JSON: {str(error)[:200]}", _usage(tool)
        ) from error


def _not_a_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number that JSON knows")


def _check(name: str, value: Any, shape: Mapping[str, Any]) -> Any:
    kind = shape["type"]
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)  # 3.0 is a whole number in JSON
    if not _is(kind, value):
        raise Misuse(
            f"`{name}` must be {_NAMES[kind]}, not {_describe(value)}", _correction(name, value, kind)
        )
    least = shape.get("minimum")
    if least is not None and value < least:
        raise Misuse(f"`{name}` is {_describe(value)}", f"give {least} or more, or leave `{name}` out")
    if kind == "string":
        _check_text(name, value)
    return value


def _is(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) and value.bit_length() < 64
    if kind == "number":
        return isinstance(value, int | float) and -_LARGEST <= value <= _LARGEST
    return kind == "string" and isinstance(value, str)


def _check_text(name: str, value: str) -> None:
    if not value.strip():
        raise Misuse(f"`{name}` is empty", f"say something in `{name}`, or do not call the tool")
    most = MOST_CHARS.get(name)
    if most is not None and len(value) > most:
        raise Misuse(
            f"`{name}` has {len(value):,} characters; the limit is {most:,}",
            "give less: a sentence is enough",
        )


def _correction(name: str, value: Any, kind: str) -> str:
    if kind in {"integer", "number"} and isinstance(value, str):
        try:
            as_number = json.loads(value)
        except ValueError:
            return f"give `{name}` as a number, or leave it out"
        if _is(kind, as_number):
            return f"write {json.dumps({name: as_number})}, without quotation marks"
    if kind == "string":
        return f"give `{name}` as one text in quotation marks"
    return f"give `{name}` as {_NAMES[kind]}, or leave it out"


def _describe(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {json.dumps(value[:40])}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, int) and value.bit_length() > 128:
        return "a huge number"  # Python refuses to write out the longest
    return "null" if value is None else json.dumps(value, default=repr)[:40]


def _usage(tool: Tool) -> str:
    """How to call the tool, in one line."""
    properties: Mapping[str, Any] = tool.input_schema["properties"]
    if not properties:
        return f"call {tool.name} with {{}}"
    required = tool.input_schema["required"]
    parts = (
        f'"{name}": {_NAMES[shape["type"]]}' + ("" if name in required else " (optional)")
        for name, shape in properties.items()
    )
    return f"call {tool.name} with {{{', '.join(parts)}}}"


_CODES: tuple[tuple[type[PlainmindError], str], ...] = (
    (ScopeDenied, "MEMORY_DENIED"),
    (PathNotAllowed, "MEMORY_PATH_NOT_ALLOWED"),
    (NotFound, "MEMORY_NOT_FOUND"),
    (ConflictError, "MEMORY_CHANGED"),
    (LockTimeout, "MEMORY_BUSY"),
    (WorkspaceError, "MEMORY_UNAVAILABLE"),
    (StorageFailure, "MEMORY_UNAVAILABLE"),
    (IndexUnavailable, "MEMORY_UNAVAILABLE"),
)
_PYTHONIC = {
    "maxResults": "max_results",
    "minScore": "min_score",
    "from": "first_line",
    "lines": "line_count",
}


@value
class Call:
    """A call that can be carried out: its work, and what is answered when that takes longer than `seconds`."""

    work: Callable[[], ToolAnswer]
    seconds: float | None = None  # None: it is waited for as long as it takes
    late: Callable[[], ToolAnswer] | None = None


def answer_call(call: Call, pool: Pool) -> ToolAnswer:
    """Carry out a call from a thread that waits for it: here, or where it has a deadline in the pool."""
    if call.seconds is None or call.late is None:
        return call.work()
    try:
        return pool.run(call.work, seconds=call.seconds)
    except TimedOut:
        return call.late()


def carry_out(
    name: str,
    arguments: Mapping[str, Any] | str,
    *,
    tools: Mapping[str, Tool],
    calls: Mapping[str, Callable[..., ToolAnswer]],
    explained: Callable[[str, PlainmindError], ToolAnswer],
) -> ToolAnswer:
    """Carry out one call, with its arguments as an object or as the JSON text that a model wrote."""
    tool = tools.get(name)
    if tool is None:
        known = ", ".join(tools)
        return answers.failure(
            name, "UNKNOWN_TOOL", f"there is no tool `{name[:60]}`", f"the tools are: {known}"
        )
    try:
        given = read_arguments(tool, arguments)
        return calls[name](**{_PYTHONIC.get(each, each): value for each, value in given.items()})
    except Misuse as misuse:
        return answers.failure(name, "INVALID_ARGUMENTS", str(misuse), misuse.action)
    except PlainmindError as error:
        return explained(name, error)


def code_of(error: PlainmindError) -> str:
    """The short name by which a program tells failures apart."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), "MEMORY_ERROR")
