"""Addresses of memory files, `memory:///memory/2026-02-10.md#L3-L7`, and back to what they cite."""

from __future__ import annotations

from urllib.parse import quote, unquote

from plainmind.base.errors import NotFound
from plainmind.base.pattern import pattern

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
