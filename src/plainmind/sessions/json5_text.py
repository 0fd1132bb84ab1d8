"""JSON5 as people and other programs write it, and what can be saved of a text that is neither JSON nor JSON5."""

from __future__ import annotations

import json
import re

from plainmind.base.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DECODER = json.JSONDecoder(strict=False, parse_constant=str)
_MEMBER = pattern(r'"(?:[^"\\]|\\.){1,1000}"\s{0,100}:\s{0,100}(?=\{)', re.DOTALL)
_OBJECT = pattern(r'\{\s{0,100}"(?:id|role|entry)"\s{0,100}:')


def read_object(data: bytes) -> dict[str, Any] | None:
    """Read an object; None when the bytes are not one."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        found = _DECODER.decode(text)
    except (ValueError, RecursionError):
        found = _read_json5(text)
    return found if isinstance(found, dict) else None


def is_plain(data: bytes) -> bool:
    """Whether it is JSON, and so has no comments that writing it again would lose."""
    try:
        _DECODER.decode(data.decode())
    except (ValueError, RecursionError):
        return False
    return True


def saved_members(data: bytes) -> dict[str, dict[str, Any]]:
    """Find the members `"name": {…}` that are whole in the text of a damaged object, not looking into them."""
    text = data.decode("utf-8", "replace")
    saved: dict[str, dict[str, Any]] = {}
    at = 0
    while match := _MEMBER.search(text, at):
        found, at = _object_at(text, match.end())
        if found is not None:
            saved[json.loads(match[0].rstrip().removesuffix(":"), strict=False)] = found
    return saved


def saved_messages(data: bytes) -> list[dict[str, Any]]:
    """Find the messages that are whole in the text of a damaged document."""
    text = data.decode("utf-8", "replace")
    saved: list[dict[str, Any]] = []
    at = 0
    while match := _OBJECT.search(text, at):
        found, at = _object_at(text, match.start())
        if found is not None and ("role" in found or "entry" in found):
            saved.append(found)
    return saved


def _object_at(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """Decode the object that begins here; without one, go on behind its brace."""
    try:
        found, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at + 1
    return found, end


def _read_json5(text: str) -> object:
    if not text.strip():
        return None
    import json5

    try:
        return json5.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return None
