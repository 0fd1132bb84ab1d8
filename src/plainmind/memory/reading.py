"""Reading lines of a file by its citation, wherever the file is from."""

from __future__ import annotations

from plainmind.base.model import Excerpt
from plainmind.memory.wiring import Parts
from plainmind.notes.excerpt import MAX_CHARS, read_excerpt


def read_lines(
    parts: Parts, path: str, *, first_line: int, line_count: int | None, max_chars: int | None
) -> Excerpt:
    """Read lines of a memory file, or messages of a transcript; `path` may be a citation such as `MEMORY.md#L3-L7`."""
    return read_excerpt(
        parts.workspace,
        path,
        first_line=first_line,
        line_count=line_count,
        max_chars=MAX_CHARS if max_chars is None else max_chars,
        transcripts=parts.transcripts if path.removeprefix("./").startswith("sessions/") else None,
    )
