"""The memory files as MCP resources: their addresses, listed in pages, read whole, only those that may be seen here."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from plainmind.agent.recall import as_data
from plainmind.base.errors import NotFound
from plainmind.base.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.scoped import ScopedMemory
    from plainmind.notes.discovery import FoundFile


PREFIX = "memory:///"
TEMPLATE = "memory:///{+path}"

_CITED = pattern(r"(?P<path>.*?)#L(?P<first>[0-9]{1,9})(?:-L?[0-9]{1,9})?")


def address_of(path: str, lines: str = "") -> str:
    """The address of a file; `lines` are what `place_in` gives."""
    return PREFIX + quote(path, safe="/") + lines


def cited_by(address: str) -> str:
    """The path, with its lines if it names any, that an address stands for. Raises NotFound."""
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


_PAGE = 100
_MOST_CHARS = 1_000_000
_MARKDOWN = "text/markdown"


def listed(memory: ScopedMemory, cursor: str | None) -> types.ListResourcesResult:
    """One page of the files, by path; the cursor is the last path of the page before."""
    after = "" if cursor is None else _path_of(cursor)
    files = sorted((file for file in memory.list() if file.path > after), key=lambda file: file.path)
    page = files[:_PAGE]
    return types.ListResourcesResult(
        resources=[_resource(file) for file in page],
        next_cursor=_cursor_after(page[-1].path) if len(files) > len(page) else None,
    )


def read(memory: ScopedMemory, address: str) -> types.ReadResourceResult:
    """The text of one file, or of the lines that the address names (`#L3-L7`).

    Its words are those on the disk; what nobody sees but a model reads is left out, as from every recalled copy.
    """
    excerpt = memory.get(cited_by(address), line_count=None, max_chars=_MOST_CHARS)
    text = as_data(excerpt.text)
    if excerpt.next_line is not None and "#" not in address:
        text += f"\n\n(cut here: the file goes on at line {excerpt.next_line})"
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=address, mime_type=_kind_of(excerpt.path), text=text)]
    )


def _kind_of(path: str) -> str:
    return _MARKDOWN if path.lower().endswith(".md") else "text/plain"  # a conversation


def templates() -> types.ListResourceTemplatesResult:
    """How addresses are made from paths and citations."""
    template = types.ResourceTemplate(
        name="memory-file",
        title="A memory file",
        uri_template=TEMPLATE,
        description="A file of the memory by its path, as results cite it: MEMORY.md, memory/2026-02-10.md#L3-L7.",
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


def _resource(file: FoundFile) -> types.Resource:
    changed = datetime.fromtimestamp(file.mtime_ns / 1e9, UTC).isoformat(timespec="seconds")
    return types.Resource(
        uri=address_of(file.path),
        name=" ".join(as_data(file.path).split()),
        mime_type=_MARKDOWN,
        size=file.size,
        annotations=types.Annotations(last_modified=changed),
    )


def _cursor_after(path: str) -> str:
    return base64.urlsafe_b64encode(path.encode()).decode()


def _path_of(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        raise MCPError(types.INVALID_PARAMS, "this cursor was not given by this server") from None
