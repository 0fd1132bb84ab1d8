"""Plain words that are secrets because somebody says so: `my password is swordfish`, `DB_PASSWORD=swordfish`."""

from __future__ import annotations

from collections.abc import Iterator

from plainmind.base.pattern import pattern
from plainmind.redaction.findings import Found, Page
from plainmind.redaction.plausible import is_password

# In lower case.
_TOLD = pattern(
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
_SEED = pattern(
    r"(?:phrase(?:(?<=seed phrase)|(?<=recovery phrase)|(?<=mnemonic phrase))|mnemonic)"
    r"""["'`*]{0,3}(?: is)?[ ]?[:=]?[ ]{0,2}["'`*]{0,2}((?:[a-z]{3,8} ){11,23}+[a-z]{3,8})(?![a-z])"""
)


def plain_words_in(page: Page) -> Iterator[Found]:
    """Report plain words that are called a secret beyond doubt."""
    low = page.low
    if "mnemonic" in low or ("phrase" in low and ("seed phrase" in low or "recovery phrase" in low)):
        for found in _SEED.finditer(low):
            yield *found.span(1), "seed-phrase"
    if "pass" in low:
        yield from _passwords(page)


def _passwords(page: Page) -> Iterator[Found]:
    if any(words in page.low for words in ("my pass", "our pass", "fi pass")):
        for found in _TOLD.finditer(page.low):
            if not _REMARK.match(found[1]) and is_password(found[1], is_quoted=True):
                yield *found.span(1), "password"
    if "PASS" in page.text:
        for found in _VARIABLE.finditer(page.text):
            if is_password(found[1], is_quoted=True):
                yield *found.span(1), "password"
