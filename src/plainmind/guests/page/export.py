"""One file to take away: the notes and the page that searches them, for a browser without server and network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from importlib.resources import files

from plainmind.base.errors import NotFound
from plainmind.base.lazy import pattern
from plainmind.base.model import SHARED, split_lines
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.memory.memory import Memory

_IMPORT = pattern(r'"\./(\w+\.js)"')
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
<script type="importmap">{modules}</script>
<script type="module">{start}</script>
</head>
<body></body>
</html>
"""
_START = 'import "plainmind/offline.js";'


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
        "texts": _texts(),
        "today": memory.now().date().isoformat(),
        "title": os.path.basename(memory.workspace),
    }
    return Exported(len(notes), len(listed) - len(taken), _html(kept))


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


def _texts() -> Mapping[str, Any]:
    folder = files("plainmind.guests.page") / "static" / "texts"
    return {one.name.removesuffix(".json"): json.loads(one.read_text("utf-8")) for one in folder.iterdir()}


def _html(kept: Mapping[str, Any]) -> str:
    place = files("plainmind.guests.page")
    scripts = {
        one.name: one.read_text("utf-8") for one in (place / "static").iterdir() if one.name.endswith(".js")
    }
    scripts["offline.js"] = (place / "offline.js").read_text("utf-8")
    modules = json.dumps(
        {"imports": {f"plainmind/{name}": _data_url(text) for name, text in scripts.items()}}
    )
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src data: {_hashes((modules, _START))}",
            "style-src 'unsafe-inline'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return _PAGE.format(
        policy=policy,
        styles=(place / "static" / "style.css").read_text("utf-8"),
        kept=json.dumps(kept, ensure_ascii=False).replace("<", "\\u003c"),
        modules=modules,
        start=_START,
    )


def _data_url(script: str) -> str:
    named = _IMPORT.sub(r'"plainmind/\1"', script)
    return "data:text/javascript;base64," + base64.b64encode(named.encode("utf-8")).decode("ascii")


def _hashes(scripts: Sequence[str]) -> str:
    digests = (
        base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") for text in scripts
    )
    return " ".join(f"'sha256-{digest}'" for digest in digests)
