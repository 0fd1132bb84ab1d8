"""What every box of tools does with a call: find the tool, read its arguments, and turn mistakes into answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plainmind.agent.tools import answers
from plainmind.agent.tools.answers import ToolAnswer
from plainmind.agent.tools.arguments import Misuse, read_arguments
from plainmind.agent.tools.definitions import Tool
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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


def carried_out(
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
        return answers.failed(
            name, "UNKNOWN_TOOL", f"there is no tool `{name[:60]}`", f"the tools are: {known}"
        )
    try:
        given = read_arguments(tool, arguments)
        return calls[name](**{_PYTHONIC.get(each, each): value for each, value in given.items()})
    except Misuse as misuse:
        return answers.failed(name, "INVALID_ARGUMENTS", str(misuse), misuse.action)
    except PlainmindError as error:
        return explained(name, error)


def code_of(error: PlainmindError) -> str:
    """The short name by which a program tells failures apart."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), "MEMORY_ERROR")
