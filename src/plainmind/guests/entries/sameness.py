"""Whether two sentences can say the same: what a vector does not see, and people would not overlook.

A vector of "the port is 8080" is next to that of "the port is 8081", and many models take "tea over coffee" for "coffee
over tea". So nearness alone is never enough: numbers, names, a "not" and who comes before whom must agree too.
"""

from __future__ import annotations

import re

from plainmind.base.pattern import pattern
from plainmind.text.terms import document_terms, fold, normalize, stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

Triple: TypeAlias = tuple[str, str, str]

_WORD = pattern(r"[^\W_]+(?:['’][^\W_]+)*")
_NUMBER = pattern(r"\d+")
# English, German, French, Spanish, Italian; then Chinese, Japanese and Korean, which have no spaces.
_NEGATION = pattern(
    r"\b(?:not|no|never|none|nothing|nobody|without|neither|nor|stopped|cannot"
    r"|(?:do|does|did|is|are|was|were|has|have|had|ca|could|wo|would|should|must|need|ai)n['’]?t"
    r"|nicht|nie|niemals|keine?[nmrs]?|ohne|kaum"
    r"|pas|jamais|aucune?|sans|nunca|jamás|sin|tampoco|non|mai|senza)\b"
    r"|[不没無无非未别]|ない|ません|않|안\s",
    re.IGNORECASE,
)
_MYSELF = frozenset({"I", "I'", "I’"})
_EITHER_WAY = frozenset({"and", "or", "und", "oder", "et", "ou", "y", "o", "e", "with", "mit", "avec", "con"})

_IDLE = frozenset(
    {"user", "everi"}
)  # of "the user prefers …", which a person says of themselves as "I prefer …"


def adds_nothing(new: str, old: str) -> bool:
    """Whether a sentence has no number, name or "not" that another one lacks, nor turns it round."""
    if _numbers(new) != _numbers(old) or _negations(new) != _negations(old):
        return False
    if not _names(new) <= {fold(word) for word in _words(old)}:
        return False
    reversed_ = {(last, middle, first) for first, middle, last in _triples(old)}
    return reversed_.isdisjoint(_triples(new))


def same_words(new: str, old: str) -> bool:
    """Whether both are made of the same words that mean something, in whatever form and order, and say no more."""
    return adds_nothing(new, old) and _meaning(new) == _meaning(old)


def _meaning(text: str) -> set[str]:
    return set(document_terms(text)) - _IDLE


def _words(text: str) -> list[str]:
    return _WORD.findall(normalize(text))


def _numbers(text: str) -> list[str]:
    return sorted(_NUMBER.findall(normalize(text)))


def _negations(text: str) -> bool:
    """Two of them cancel each other out."""
    return len(_NEGATION.findall(normalize(text))) % 2 == 1


def _names(text: str) -> set[str]:
    """Words with a capital letter that does not stand there because a sentence begins."""
    return {fold(word) for word in _words(text)[1:] if word != word.lower() and word[:2] not in _MYSELF}


def _triples(text: str) -> set[Triple]:
    """Three words in a row, but for those that stand in the middle of what can be turned round."""
    words = [stem(fold(word)) for word in _words(text)]
    rows = zip(words, words[1:], words[2:], strict=False)
    return {row for row in rows if row[1] not in _EITHER_WAY and row[0] != row[2]}
