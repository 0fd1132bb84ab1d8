"""The memory files as MCP resources: their addresses, listed in pages, read whole, only those that may be seen here."""

from __future__ import annotations

from plainmind.agent.recall import as_data, fence, lines_of, new_nonce
from plainmind.agent.recalls import lines_of_excerpt
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.lazy import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.memory.scoped import ScopedMemory
    from plainmind.notes.discovery import FoundFile


# What is given here is in the names of the protocol, and needs no SDK.
PREFIX = "memory:///"
TEMPLATE = "memory:///{+path}"

_CITED = pattern(r"(?P<path>.*?)#L(?P<first>[0-9]{1,9})(?:-L?[0-9]{1,9})?")
_PAGE = 100
_MOST_CHARS = 1_000_000
_MARKDOWN = "text/markdown"


def address_of(path: str, lines: str = "") -> str:
    """The address of a file; `lines` are what `place_in` gives."""
    from urllib.parse import quote

    return PREFIX + quote(path, safe="/") + lines


def cited_by(address: str) -> str:
    """The path, with its lines if it names any, that an address stands for. Raises NotFound."""
    from urllib.parse import unquote

    path, mark, lines = address.removeprefix(PREFIX).partition("#")
    try:
        if not address.startswith(PREFIX):
            raise NotFound(
                f"`{address[:200]}` is no address of a memory file", hint=f"they begin with {PREFIX}"
            )
        return unquote(path, errors="strict") + mark + lines
    except UnicodeDecodeError:
        raise NotFound(
            f"`{address[:200]}` is no address of a memory file", hint="its path is not UTF-8"
        ) from None


def place_in(first_line: int, last_line: int) -> str:
    """`#L3-L7`, or `#L5` for one line."""
    return f"#L{first_line}" if last_line <= first_line else f"#L{first_line}-L{last_line}"


def split_citation(cited: str) -> tuple[str, int]:
    """The path and the first line of a citation; line 1 when it names none."""
    found = _CITED.fullmatch(cited)
    return (found["path"], int(found["first"])) if found else (cited, 1)


def resource_page(memory: ScopedMemory, cursor: str | None) -> dict[str, Any]:
    """One page of the files, by path; the cursor is the last path of the page before."""
    after = "" if cursor is None else _path_of(cursor)
    files = sorted((file for file in memory.list() if file.path > after), key=lambda file: file.path)
    page = files[:_PAGE]
    answer: dict[str, Any] = {"resources": [_resource(file) for file in page]}
    if len(files) > len(page):
        answer["nextCursor"] = _cursor_after(page[-1].path)
    return answer


def resource_text(memory: ScopedMemory, address: str) -> dict[str, Any]:
    """The text of one file, or of the lines that the address names (`#L3-L7`).

    A client puts it before a model: it stands between marks, as whatever is recalled.
    """
    recall = memory.begin_recall("read")
    excerpt = memory.get(cited_by(address), line_count=None, max_chars=_MOST_CHARS)
    text = fence((lines_of(excerpt),), new_nonce())
    recall.end(lines_of_excerpt(excerpt), text)
    if excerpt.next_line is not None and "#" not in address:
        text += f"\n(cut here: the file goes on at line {excerpt.next_line})"
    return {"contents": [{"uri": address, "mimeType": _kind_of(excerpt.path), "text": text}]}


def _kind_of(path: str) -> str:
    return _MARKDOWN if path.lower().endswith(".md") else "text/plain"  # a conversation


def resource_templates() -> dict[str, Any]:
    """How addresses are made from paths and citations."""
    file = {
        "name": "memory-file",
        "title": "A memory file",
        "uriTemplate": TEMPLATE,
        "description": "A file of the memory by its path, as results cite it: MEMORY.md, memory/2026-02-10.md#L3-L7.",
    }
    day = {
        "name": "memory-day",
        "title": "The log of a day",
        "uriTemplate": "memory:///memory/{day}.md",
        "description": "What was noted on a day, such as 2026-02-10.",
        "mimeType": _MARKDOWN,
    }
    return {"resourceTemplates": [file, day]}


def _resource(file: FoundFile) -> dict[str, Any]:
    facts = {
        "uri": address_of(file.path),
        "name": " ".join(as_data(file.path).split()),
        "mimeType": _MARKDOWN,
        "size": file.size,
    }
    changed = file.changed_at
    return facts if changed is None else {**facts, "annotations": {"lastModified": changed}}


def _cursor_after(path: str) -> str:
    import base64

    return base64.urlsafe_b64encode(path.encode()).decode()


def _path_of(cursor: str) -> str:
    import base64

    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except ValueError:
        raise PlainmindError("this cursor was not given by this server") from None
