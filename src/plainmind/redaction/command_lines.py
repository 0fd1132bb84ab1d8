"""Passwords on command lines, in files of programs, and in codes for a wireless network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from plainmind.base.pattern import pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found, Page
from plainmind.redaction.plausible import is_password

_LOOK_BACK = 400
_ARGUMENT = r"""(?:"([^"\r\n]{4,256}+)"|'([^'\r\n]{4,256}+)'|([^\s"'`|;<>&-][^\s"'`|;<>]{3,256}+))"""


@value
class _Flag:
    """A flag with a password behind it; only if one of the programs stands before it on its line."""

    keyword: str
    expression: re.Pattern[str]
    programs: tuple[str, ...]


_FLAGS = (
    _Flag(
        "curl",
        pattern(r""" -(?:u|-user)[ =]{1,2}(?:"[^\s:"]{1,128}:([^"\r\n]{4,256}+)|'[^\s:']{1,128}:([^'\r\n]{4,256}+)"""
                r"""|[^\s:"']{1,128}:([^\s"']{4,256}+))"""),
        ("curl",),
    ),
    _Flag(" -p", pattern(f" -p{_ARGUMENT}"), ("mysql", "mariadb", "sshpass")),
    _Flag(" -p ", pattern(f" -p {_ARGUMENT}"), ("docker login", "podman login", "sshpass")),
    _Flag(" -a ", pattern(f" -a {_ARGUMENT}"), ("redis-cli",)),
)  # fmt: skip
_FILES = (
    # `host:port:database:user:password`, as libpq keeps them.
    (":5432:", pattern(r":5432:[^\s:]{1,64}:[^\s:]{1,64}:([^\s:]{4,256}+)$", re.MULTILINE)),
    (":thin:", pattern(r":thin:[A-Za-z0-9_]{1,64}/([^\s@\"'/]{4,128}+)@")),
    ("WIFI:", pattern(r"WIFI:(?:[A-OQ-Z]:[^\s;]{0,64};){0,4}P:([^\s;]{4,64}+);")),
)


def passwords_in_command_lines(page: Page) -> Iterator[Found]:
    """Report what is given to a program as a password."""
    text = page.text
    for flag in _FLAGS:
        if flag.keyword in text and any(program in text for program in flag.programs):
            yield from _behind(flag, text)
    for keyword, expression in _FILES:
        if keyword in text:
            is_secret = cache(_is_password)
            for found in expression.finditer(text):
                if is_secret(found[1]):
                    yield *found.span(1), "password"


def _behind(flag: _Flag, text: str) -> Iterator[Found]:
    is_secret = cache(_is_password)  # what stands behind a flag once often stands there again
    called_until = 0
    for found in flag.expression.finditer(text):
        at = found.start()
        if at >= called_until:
            called_until = _called_until(flag.programs, text, at)
            if at >= called_until:
                continue
        group = found.lastindex
        assert group is not None
        if is_secret(found[group]):
            yield *found.span(group), "password"


def _called_until(programs: tuple[str, ...], text: str, at: int) -> int:
    """Up to where one of the programs, standing before a place on its line, counts as called; 0 if there is none."""
    first = max(0, at - _LOOK_BACK)
    line = text.rfind("\n", first, at)
    program = max(text.rfind(name, max(first, line), at) for name in programs)
    if program < 0:
        return 0
    end = text.find("\n", at, program + _LOOK_BACK)
    return end if end >= 0 else program + _LOOK_BACK


def _is_password(given: str) -> bool:
    return is_password(given, is_quoted=True)
