"""Secrets that fixed words announce: PINs and PATs, whose names are so short, seed phrases, plain words."""

from __future__ import annotations

from collections.abc import Iterator

from plainmind.base.lazy import pattern
from plainmind.redaction.findings import Found
from plainmind.redaction.page import Page, is_within_id
from plainmind.redaction.plausible import is_key, is_password
from plainmind.redaction.tables import cells_under, is_heading

_PAT = pattern(
    r"pat(?![a-z0-9])[^a-z0-9\r\n]{1,12}(?:\r?\n[ \t]{1,8})?(?:[a-z]{2,7}[^a-z0-9]{1,12}){0,4}?([a-z0-9_-]{20,}+)"
)
_OF_PIN = r"(?:[-_ ]?(?:code|number|nummer|码|番号|번호))?"
_PIN = pattern(
    rf"""pin(?:(?<![a-z0-9]pin)|(?<=[_-]pin)){_OF_PIN}(?:'s| no\.?| nr\.?)?["'`*)\],;]{{0,3}}(?: ?\.{{2,12}})?"""
    r"""(?:(?: [^\s0-9:=.!?]{1,20}){0,5}?|(?: [^\s0-9:=.!?]{1,20}){6,12}?(?=: | (?:is|ist|est|es) ))[ ]?(?:[:=\t>|→]| (?:is|ist|lautet|est|es|e)(?= )|[是为は는은])?[ ]?["'`*]{0,2}[ ]?([0-9]{4,8})(?![0-9a-z]|[.:][0-9])"""  # noqa: E501
)
# In `cardPin` and in a table, below its name or as an answer; and before its name.
_PIN_IN_FIELD = pattern(
    r"""(?:(?<=[a-z])Pin|(?<![A-Za-z])(?:PIN|pin))(?:["']?[ ]?[:=][ ]?["']?|</[a-z]{1,8}>\s{0,4}<[a-z]{1,8}>|>|,)"""
    r"""([0-9]{4,8})(?![0-9A-Za-z]|[.:,][0-9])"""
)
_PIN_BELOW = pattern(
    r"""pin(?<![a-z0-9]pin)(?: (?:again|now|code))?[ ]?[?:*>|]{0,3}[ ]?(?:\r?\n[ \t]{0,8}(?:[-*•] )?(?:[^\s:]{1,16}: )?|(?<=\?) (?:[^\s:]{1,16}: )?)(?:(?:it's|it is|its|c'est|es ist|es) )?([0-9]{4,8})(?=[.!]?[ \t]{0,8}(?:[\r\n]|$))"""  # noqa: E501
)
_PIN_AHEAD = pattern(
    r"""(?<![0-9a-z.,:/-])([0-9]{4,8})["'`*),]{0,3}[ ]{1,2}(?:is|as|ist|als|est|es|comme|como|c'est|for|when|<-|←|\(|=)"""  # noqa: E501
    r"""(?: ?[^\s0-9.!?]{1,16}){0,6}?[ ]?$"""
)
# `from 1111 to 4821`
_PIN_CHANGED = pattern(r" ?(?:to|auf|zu|en|a|->|→) ?([0-9]{4,8})(?![0-9a-z]|[.:][0-9])")
_A_PIN = pattern("pin(?![abd-mo-z])|pin(?=nummer|code)")
_PIN_DIGITS = pattern("[0-9]{4}")
_DIGITS_OF_PIN = pattern("[0-9]{4,8}")
_NEAR_PIN = 64


def short_names_in(page: Page) -> Iterator[Found]:
    """Report PINs, and the tokens that are called PAT."""
    low, text = page.low, page.text
    if "pat" in low:
        for found in _PAT.finditer(low):
            if is_key(text[found.start(1) : found.end(1)]) and not is_within_id(text, found.start()):
                yield *found.span(1), "token"
    if page.has("pin") and page.has_digits:
        for word in _A_PIN.finditer(low):
            before = max(0, word.start() - _NEAR_PIN)
            if _PIN_DIGITS.search(low, before, word.start() + 2 * _NEAR_PIN):
                yield from _pins_at(page, word.span())


def _pins_at(page: Page, word: tuple[int, int]) -> Iterator[Found]:
    text, low, at = page.text, page.low, word[0]
    pin = (
        _PIN.match(low, at)
        or _PIN_BELOW.match(low, at)
        or _PIN_IN_FIELD.match(text, at)
        or _PIN_AHEAD.search(low, max(0, at - _NEAR_PIN), at)
    )
    if pin is not None:
        yield *pin.span(1), "pin"
        changed = _PIN_CHANGED.match(low, pin.end(1))
        if changed is not None:
            yield *changed.span(1), "pin"
    elif is_heading(low, *word):
        yield from cells_under(page, at, _is_pin, "pin")


def _is_pin(cell: str) -> bool:
    return _DIGITS_OF_PIN.fullmatch(cell) is not None


# --- plain words that are secrets because the text says so ---

# In lower case.
_STATED = pattern(
    r"pass(?:(?<=my pass)|(?<=our pass)|(?<=wifi pass)|(?<=wi-fi pass))(?:word|code|phrase)"
    r" (?:is|was)(?: now)? ([a-z]{6,24})(?=[.!,;]?(?:\s|$))"
)
# What people say about a password in one word.
_REMARK = pattern(
    r".{0,24}(?:ed|ing|ly|able|ible|ful|less)$"
    r"|(?:wrong|correct|strong|simple|unique|random|longer|shorter|broken|stolen|secure|insecure|public|unsafe|written"
    r"|forgotten|different|incorrect|complex|something|nothing|always|never|being|about|still|almost|either|neither"
    r"|another|because|whatever|rather|pretty|perhaps|maybe|obvious|unique|typical|generic|important)$"
)
# Capitals are how variables of an environment are written.
_VARIABLE = pattern(r"PASS(?:WORD|WD|PHRASE|)=([A-Za-z]{6,64})(?![A-Za-z0-9_({\[]|\.[A-Za-z])")
# Twelve to twenty-four short words open a wallet.
_WORDS_OF_SEED = (
    r"""["'`*]{0,3}(?: is)?[ ]?[:=]?[ ]{0,2}["'`*]{0,2}((?:[a-z]{3,8} ){11,23}+[a-z]{3,8})(?![a-z])"""
)
# By what they begin with: then the search goes from one to the next without looking at what lies between.
_SEEDS = tuple(
    (word, pattern(word + _WORDS_OF_SEED))
    for word in ("seed phrase", "recovery phrase", "mnemonic phrase", "mnemonic")
)


def plain_words_in(page: Page) -> Iterator[Found]:
    """Report plain words that are called a secret beyond doubt."""
    for word, expression in _SEEDS:
        if page.has(word):
            for found in expression.finditer(page.low):
                yield *found.span(1), "seed-phrase"
    if page.has("pass"):
        yield from _passwords(page)


def _passwords(page: Page) -> Iterator[Found]:
    if any(page.has(words) for words in _BEFORE_STATED):
        for found in _STATED.finditer(page.low):
            if not _REMARK.match(found[1]) and is_password(found[1], is_quoted=True):
                yield *found.span(1), "password"
    if "PASS" in page.text:
        for found in _VARIABLE.finditer(page.text):
            if is_password(found[1], is_quoted=True):
                yield *found.span(1), "password"


_BEFORE_STATED = ("my pass", "our pass", "fi pass")
# One of these is in a text that has something for the rules above.
KEYWORDS = ("pin", "pass", *(word for word, _ in _SEEDS), *_BEFORE_STATED)
