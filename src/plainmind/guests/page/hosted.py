"""The page inside a program that shows MCP Apps: one HTML with nothing from elsewhere, and what answers its wishes."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

from plainmind import __version__
from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.guests.page.bundle import make_html, page_texts, script_beside
from plainmind.guests.page.call import Call, Keeper
from plainmind.guests.page.gate import Caller, Callers, PageSessions, TokenFile
from plainmind.guests.page.table import Operation, operations
from plainmind.guests.page.wire import Problem, as_json, problem_of, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.memory.memory import Memory
    from plainmind.memory.scoped import ScopedMemory

# What search and reader ask for. All of it only reads.
_ASKED = frozenset(
    {
        ("GET", "/v1/session"),
        ("POST", "/v1/search"),
        ("GET", "/v1/notes"),
        ("GET", "/v1/notes/{path:path}"),
        ("GET", "/v1/links/{path:path}"),
        ("GET", "/v1/tags"),
    }
)
_HOLE = pattern(r"\{(\w+):path\}")
_STYLES = """
nav.side, .pills { display: none }
body { grid-template: minmax(0, 1fr) / minmax(0, 1fr) }
main { padding: 8px }
.given { margin: 0; padding: 16px; overflow: auto; white-space: pre-wrap; font: 13px/1.6 ui-monospace, monospace }
"""


class View:
    """What one memory shows inside other programs."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        nobody = PageSessions(frozenset())
        callers = Callers(nobody, TokenFile(memory.home), secrets.token_urlsafe(32), read_only=True)
        self._keeper = Keeper(memory, callers, read_only=True)

    def html(self) -> str:
        """The whole of it, the same for everybody: what is in the memory, it asks for."""
        kept = {"texts": page_texts(), "version": __version__}
        return make_html(
            kept,
            "hosted.js",
            before=script_beside("hosted_globals.js"),
            styles=_STYLES,
        )

    def answer(self, scoped: ScopedMemory, asked: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """What a request of the view gets, and whether it is refused; within what may be seen there."""
        try:
            return {"answer": self._answer(scoped, asked)}, False
        except Exception as error:  # noqa: BLE001 (told to who asked, or kept for the log)
            return problem_of(error).as_json(), True

    def _answer(self, scoped: ScopedMemory, asked: Mapping[str, Any]) -> Any:
        method, address = asked.get("method"), asked.get("path")
        if not isinstance(method, str) or not isinstance(address, str):
            raise PlainmindError("a request of the view needs `method` and `path`")
        path, _, query = address.partition("?")
        operation, parameters = _operation(method, path)
        said = dict(parse_qsl(query, keep_blank_values=True))
        caller = Caller(f"view in {scoped.asker.host or 'a client'}", frozenset({"read"}), scoped.context)
        call = Call(
            caller,
            self._memory,
            self._keeper,
            parameters,
            read(operation.query, said, what="the address", is_text=True),
            None if operation.body is None else read(operation.body, asked.get("body") or {}),
            {},
            "",
        )
        facts = as_json(operation.handle(call).body)
        if path == "/v1/session":
            return {**facts, "rights": ["read"], "readOnly": True, "places": ["search"]}
        return facts


def _operation(method: str, path: str) -> tuple[Operation, Mapping[str, str]]:
    for operation in operations():
        if operation.method != method or (method, operation.path) not in _ASKED:
            continue
        hole = _HOLE.search(operation.path)
        start = operation.path[: hole.start()] if hole else operation.path
        if hole and path.startswith(start) and len(path) > len(start):
            return operation, {hole[1]: unquote(path[len(start) :])}
        if not hole and path == start:
            return operation, {}
    raise Problem("not-found", f"the view has nothing at {path[:200]}")
