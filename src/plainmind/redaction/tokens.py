"""Finds the tokens of `vendors.py` in one pass: long unbroken stretches are rare, and their beginning says whose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from plainmind.base.pattern import pattern
from plainmind.base.value import value
from plainmind.redaction.findings import Found, Page
from plainmind.redaction.vendors import SHAPED_TOKENS, TOKENS

# What may sit between the beginning of a stretch and that of a token: the end of an escape (`\n`, `\u003d`, `%3D`, a
# colour of a terminal), and marks of a list or of bold type.
_LEAD = pattern(r"(?:(?<=\\)(?:[nrt]|u[0-9a-fA-F]{4})|(?<=%)[0-9a-fA-F]{2}|(?<=[\[;])[0-9]{1,3}m)?+[_.\-]*+")
_JOINTS = "_.-"
_BEFORE_ESCAPE_END = "\\%[;"
_LETTERS_AND_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@value
class _Rule:
    kind: str
    beginning: str
    rest: re.Pattern[str]


def tokens_in(page: Page) -> Iterator[Found]:
    """Report every token of a known vendor."""
    text = page.text
    rules = _rules_by_beginning()
    for start_of_stretch in page.stretches:
        start = start_of_stretch
        if text[start] in _JOINTS or text[start - 1] in _BEFORE_ESCAPE_END:
            start = _LEAD.match(text, start).end()  # type: ignore[union-attr]  # it matches anything
        for rule in rules.get(text[start : start + 2], ()):
            if text.startswith(rule.beginning, start):
                found = rule.rest.match(text, start + len(rule.beginning))
                if found:
                    yield start, found.end(), rule.kind
                    break


@cache
def _rules_by_beginning() -> Mapping[str, tuple[_Rule, ...]]:
    """Sort the rules by two first characters, longer beginnings before shorter ones."""
    rules = [
        _Rule(kind, beginning, pattern(f"{made_of}{{{least},{most}}}+(?!{made_of}|[A-Za-z0-9])"))
        for kind, beginnings, made_of, least, most in TOKENS
        for beginning in beginnings.split()
    ]
    for kind, beginnings, rest in SHAPED_TOKENS:
        rules += [_Rule(kind, beginning, pattern(rest)) for beginning in beginnings.split()]
    rules.sort(key=lambda rule: -len(rule.beginning))
    by_beginning: dict[str, list[_Rule]] = {}
    for rule in rules:
        followers = _LETTERS_AND_DIGITS if len(rule.beginning) == 1 else rule.beginning[1]
        for second in followers:
            by_beginning.setdefault(rule.beginning[0] + second, []).append(rule)
    return {beginning: tuple(some) for beginning, some in by_beginning.items()}
