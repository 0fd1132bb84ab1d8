"""PINs, and what is called a PAT: names so short that they are mostly a part of other words."""

from __future__ import annotations

from collections.abc import Iterator

from plainmind.base.lazy import pattern
from plainmind.redaction.findings import Found
from plainmind.redaction.page import Page
from plainmind.redaction.plausible import is_key

_PAT = pattern(
    r"pat(?![a-z0-9])[^a-z0-9\r\n]{1,12}(?:\r?\n[ \t]{1,8})?(?:[a-z]{2,7}[^a-z0-9]{1,12}){0,4}?([a-z0-9_-]{20,}+)"
)
_OF_PIN = r"(?:[- ]?(?:code|number|nummer|码|番号|번호))?"
_PIN = pattern(
    rf"""pin(?:(?<![a-z0-9]pin)|(?<=[_-]pin)){_OF_PIN}(?:'s)?["'`*)\],]{{0,3}}"""
    r"""(?: [^\s0-9:=.!?]{1,20}){0,5}?[ ]?(?:[:=\t>|→]| (?:is|ist|lautet|est|es|e)(?= )|[是为は는은])?[ ]?["'`*]{0,2}[ ]?([0-9]{4,8})(?![0-9a-z]|[.:][0-9])"""  # noqa: E501
)
# In `cardPin` and in a table, below its name or as an answer; and before its name.
_PIN_IN_FIELD = pattern(
    r"""(?:(?<=[a-z])Pin|(?<![A-Za-z])(?:PIN|pin))(?:["']?[ ]?[:=][ ]?["']?|</[a-z]{1,8}>\s{0,4}<[a-z]{1,8}>|>|,)"""
    r"""([0-9]{4,8})(?![0-9A-Za-z]|[.:,][0-9])"""
)
_PIN_BELOW = pattern(
    r"""pin(?<![a-z0-9]pin)[?:*]{0,3}[ ]?(?:\r?\n(?:[^\s:]{1,16}: )?|(?<=\?) )([0-9]{4,8})(?=[.!]?[ \t]{0,8}(?:[\r\n]|$))"""  # noqa: E501
)
_PIN_AHEAD = pattern(
    r"""(?<![0-9a-z.,:/-])([0-9]{4,8})["'`*),]{0,3}[ ]{1,2}(?:is|as|ist|als|est|es|comme|como|c'est|for|when|<-|←|\(|=)"""  # noqa: E501
    r"""(?: ?[^\s0-9.!?]{1,16}){0,6}?[ ]?$"""
)
_A_PIN = pattern("pin(?![abd-mo-z])|pin(?=nummer|code)")
_PIN_DIGITS = pattern("[0-9]{4}")
_NEAR_PIN = 64


def short_names_in(page: Page) -> Iterator[Found]:
    """Report PINs, and the tokens that are called PAT."""
    low, text = page.low, page.text
    if "pat" in low:
        for found in _PAT.finditer(low):
            if is_key(text[found.start(1) : found.end(1)]):
                yield *found.span(1), "token"
    if "pin" in low and page.has_digits:
        for word in _A_PIN.finditer(low):
            at = word.start()
            before = max(0, at - _NEAR_PIN)
            if _PIN_DIGITS.search(low, before, at + 2 * _NEAR_PIN):
                pin = (
                    _PIN.match(low, at)
                    or _PIN_BELOW.match(low, at)
                    or _PIN_IN_FIELD.match(text, at)
                    or _PIN_AHEAD.search(low, before, at)
                )
                if pin is not None:
                    yield *pin.span(1), "pin"
