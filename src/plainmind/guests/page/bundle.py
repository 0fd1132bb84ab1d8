"""The page as one HTML file, with nothing that is loaded: inside other programs, and to take away with the notes."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from importlib.resources import files

from plainmind import __version__
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import SHARED, split_lines
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any

    from plainmind.guests.page.table import Operation
    from plainmind.memory.memory import Memory
    from plainmind.memory.scoped import ScopedMemory


# How the modules of the page are written: names in braces, nothing by default, no name that gets another value.
_IMPORT = pattern(r'import ?\{([^}]*)\} ?from ?"\./(\w+\.js)";?')
_IMPORT_LATER = pattern(r'await import\("\./(\w+\.js)"\)')
_EXPORT = pattern(r"\bexport ((?:async )?function\*?|const|class) ?(\w+)")
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>Plainmind</title>
<style>{styles}</style>
<script type="application/json" id="kept">{kept}</script>
</head>
<body><script type="module">{script}</script></body>
</html>
"""
_NEED = """const made = {}, modules = {};
const need = (name) => (made[name] ??= modules[name]());
"""


def make_html(kept: Mapping[str, Any], first: str, *, before: str = "", styles: str = "") -> str:
    """One file that runs the module `first`, which finds `kept` in it; `before` is seen by all modules."""
    script = before + one_script(first)
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src 'sha256-{digest}'",
            "style-src 'unsafe-inline'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return _PAGE.format(
        policy=policy,
        styles=(files("plainmind.guests.page") / "static" / "style.css").read_text("utf-8") + styles,
        kept=json.dumps(kept, ensure_ascii=False).replace("<", "\\u003c"),
        script=script,
    )


def one_script(first: str) -> str:
    """The modules of the page and `first` as one script. Each is a function that runs when it is first needed."""
    place = files("plainmind.guests.page")
    scripts = {
        one.name: one.read_text("utf-8") for one in (place / "static").iterdir() if one.name.endswith(".js")
    }
    wrapped = [as_function(name, text) for name, text in sorted(scripts.items())]
    return _NEED + "".join(wrapped) + _with_needs(script_beside(first))


def script_beside(name: str) -> str:
    """A script that stands beside those of the page."""
    return (files("plainmind.guests.page") / name).read_text("utf-8")


def page_texts() -> Mapping[str, Any]:
    """The texts of every language."""
    folder = files("plainmind.guests.page") / "static" / "texts"
    return {one.name.removesuffix(".json"): json.loads(one.read_text("utf-8")) for one in folder.iterdir()}


def as_function(name: str, text: str) -> str:
    """A module, as it is or as the wheel has it, as a function that gives what it exports."""
    names = ", ".join(found[2] for found in _EXPORT.finditer(text))
    body = _EXPORT.sub(r"\1 \2", _with_needs(text))
    return f'modules["{name}"] = () => {{\n{body}\nreturn {{ {names} }};\n}};\n'


def _with_needs(text: str) -> str:
    def need(found: re.Match[str]) -> str:
        return f'const {{{found[1].replace(" as ", ": ")}}} = need("{found[2]}");'

    return _IMPORT_LATER.sub(r'need("\1")', _IMPORT.sub(need, text))


# --- one file to take away: the notes and the page that searches them, without server and network ---


@value
class Exported:
    """What an export took along."""

    files: int
    left_out: int  # those that not everyone may see
    html: str


def make_page(memory: Memory, *, with_private: bool) -> Exported:
    """The notes that may be taken along, secrets hidden, and the page, as one HTML file. NotFound when none may."""
    listed = memory.list()
    taken = [found for found in listed if with_private or found.scope == SHARED]
    if not taken:
        raise NotFound(
            "there is no note to take along"
            if not listed
            else f"none of the {len(listed)} notes is shared with everyone",
            hint="write one first"
            if not listed
            else "add --with-private to take all along: whoever has the file reads them",
        )
    hide = memory.redactor().without_secrets
    taken.sort(key=lambda found: found.path)
    notes = [_note(found.path, found.scope, hide(memory.text_of(found))) for found in taken]
    kept = {
        "notes": notes,
        "texts": page_texts(),
        "today": memory.now().date().isoformat(),
        "title": os.path.basename(memory.workspace),
    }
    return Exported(len(notes), len(listed) - len(taken), make_html(kept, "offline.js"))


def _note(path: str, scope: str, text: str) -> Mapping[str, Any]:
    from plainmind.notes.workspace import day_of
    from plainmind.text.front_matter import note_names

    names = note_names(path, split_lines(text))
    title = names.title or names.name
    return {
        "path": path,
        "scope": scope,
        "day": day_of(path),
        "title": title,
        "tags": list(names.tags),
        "text": text,
    }


# --- inside a program that shows MCP Apps, and what answers its wishes ---


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
        import secrets

        from plainmind.guests.page.call import Keeper
        from plainmind.guests.page.gate import Callers, PageSessions, TokenFile

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
        from plainmind.guests.page.wire import problem_of

        try:
            return {"answer": self._answer(scoped, asked)}, False
        except Exception as error:  # noqa: BLE001 (told to who asked, or kept for the log)
            return problem_of(error).as_json(), True

    def _answer(self, scoped: ScopedMemory, asked: Mapping[str, Any]) -> Any:
        from urllib.parse import parse_qsl

        from plainmind.guests.page.call import Call
        from plainmind.guests.page.gate import Caller
        from plainmind.guests.page.wire import as_json, read

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
    from urllib.parse import unquote

    from plainmind.guests.page.table import operations
    from plainmind.guests.page.wire import Problem

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
