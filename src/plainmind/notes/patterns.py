"""Glob patterns for the files of an extra path: `**/`, `*`, `?`, `[a-z]` and `{one,two}`."""

from __future__ import annotations

import re

from plainmind.base.errors import ConfigError

EVERY_NOTE = "**/*.md"

_PART = r"(?s:(?:\*\*/)+|\*+|\?|\[!?[^\]/]+\]|\{[^{}]*\}|.)"


def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """Make a pattern ready for `fullmatch`; None when it takes every note, which needs no matching at all."""
    if pattern == EVERY_NOTE:
        return None
    try:
        return re.compile(_as_regex(pattern.removeprefix("./")), re.IGNORECASE)
    except re.error as error:
        raise ConfigError(
            f"the pattern `{pattern}` of an extra path cannot be read: {error.msg}",
            hint=f"use a glob such as `{EVERY_NOTE}` or `projects/*.md`",
        ) from error


def _as_regex(pattern: str) -> str:
    return "".join(map(_translated, re.findall(_PART, pattern)))


def _translated(part: str) -> str:
    if part.startswith("**"):
        return "(?:[^/]+/)*" if part.endswith("/") else ".*"
    if part == "*":
        return "[^/]*"
    if part == "?":
        return "[^/]"
    if part.startswith("[") and len(part) > 1:
        body = part[1:-1].replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
        return f"(?!/)[^{body[1:]}]" if body.startswith("!") else f"[{body}]"
    if part.startswith("{") and len(part) > 1:
        return "(?:" + "|".join(map(_as_regex, part[1:-1].split(","))) + ")"
    return re.escape(part)
