"""Passwords on command lines, in files of programs, and in codes for a wireless network."""

from __future__ import annotations

import re
from collections.abc import Iterator

from commonplace.pattern import pattern
from commonplace.text.redaction.findings import Found, Page
from commonplace.text.redaction.plausible import is_password
from commonplace.value import value

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
            for found in expression.finditer(text):
                if is_password(found[1], is_quoted=True):
                    yield found.start(1), found.end(1), "password"


def _behind(flag: _Flag, text: str) -> Iterator[Found]:
    verdicts: dict[str, bool] = {}
    for found in flag.expression.finditer(text):
        at = found.start()
        line = text[max(0, at - _LOOK_BACK) : at].rpartition("\n")[2]
        if not any(program in line for program in flag.programs):
            continue
        group = found.lastindex
        assert group is not None
        start, end = found.span(group)
        given = text[start:end]
        is_secret = verdicts.get(given)
        if is_secret is None:
            is_secret = verdicts[given] = is_password(given, is_quoted=True)
        if is_secret:
            yield start, end, "password"
