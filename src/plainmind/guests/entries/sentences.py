"""What a sentence says, by its words: whether it is worth keeping, the same as another, or the one that is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.guests.entries.model import Entry
from plainmind.text.terms import document_terms, fold, normalize, stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


LEAST_CHARS = 10
MOST_CHARS = 500
_MOST_LINES = 4

# Words of people who want something remembered, or who say what stays true: English, German, French, Spanish, Chinese,
# Japanese. What they miss is not captured, and what they catch wrongly waits in a list: nothing is kept by itself.
_DECISION = pattern(
    r"\bwe (?:have )?(?:decided|agreed|settled|chose|will use)\b"
    r"|\b(?:i|we)(?:'ll| will) go with\b|\bdecision\s*:"
    r"|\bfrom now on\b|\bwir (?:haben|nehmen|machen)\b.{0,60}\bentschieden|\bab jetzt\b|\bon a décidé\b"
    r"|\bhemos decidido\b|决定|決め(?:た|ました)",
    re.IGNORECASE,
)
_PREFERENCE = pattern(
    r"\bi (?:really |always |usually )?(?:prefer|like|love|enjoy|hate|dislike|want|need|never|always)\b"
    r"|\bmy favou?rite\b|\bi(?:'d| would) rather\b|\bplease (?:always|never)\b"
    r"|\bich (?:mag|bevorzuge|hasse|liebe|will)\b"
    r"|\bje (?:préfère|déteste|n'aime)\b|\b(?:prefiero|me gusta|odio)\b|我(?:喜欢|偏好|讨厌)|(?:好き|嫌い)(?:です|だ)",
    re.IGNORECASE,
)
_ENTITY = pattern(
    r"\bmy (?:\w+ ){0,2}(?:name|number|address|birthday|e-?mail|phone)\b|\b(?:is|am) called\b|\bmein name\b"
    r"|\bje m'appelle\b|\bme llamo\b|我(?:叫|的名字)|[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{2,63}"
    r"|(?<!\w)\+\d[\d ()-]{7,17}\d",
    re.IGNORECASE,
)
_FACT = pattern(
    r"\bremember\b|\bdon't forget\b|\bkeep in mind\b|\bfor the record\b|\bnote that\b"
    r"|\bmerk(?:e)? dir\b|\bvergiss nicht\b"
    r"|\bsouviens-toi\b|\brecuerda\b|\bmy \w+ (?:is|are|has|works|lives)\b|\bi (?:live|work|am allergic|was born)\b"
    r"|记住|请记|覚えて",
    re.IGNORECASE,
)
_KINDS = (
    ("decision", 0.85, _DECISION),
    ("entity", 0.75, _ENTITY),
    ("preference", 0.7, _PREFERENCE),
    ("fact", 0.7, _FACT),
)
_QUESTION = pattern(r"[?？]\s*$")
_MACHINE_MADE = pattern(
    r"```|^\s*[<{\[]|</\w|recalled-memory|^\s*(?:at |File \"|Traceback|\$ )", re.MULTILINE
)
_FOR_THE_ASSISTANT = pattern(
    r"\b(?:ignore|disregard|override)\b.{0,60}\b(?:instruction|prompt|rule|message)|\bsystem prompt\b|\byou are now\b"
    r"|\bmemory_(?:store|recall|forget)\b",
    re.IGNORECASE | re.DOTALL,
)


@value
class Proposal:
    """Something to keep, if somebody agrees."""

    text: str
    category: str
    importance: float


def proposal_of(message: str, most_chars: int = MOST_CHARS) -> Proposal | None:
    """What of a person's message may be worth keeping; None for nearly all of them."""
    text = message.strip()
    if not LEAST_CHARS <= len(text) <= most_chars or text.count("\n") >= _MOST_LINES:
        return None
    if _QUESTION.search(text) or _MACHINE_MADE.search(text) or _FOR_THE_ASSISTANT.search(text):
        return None
    for category, importance, rule in _KINDS:
        if rule.search(text):
            return Proposal(text, category, importance)
    return None


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


# What stands around the words of a note: the mark of a list item, the time it was written, and its id.
_AROUND = pattern(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\d\d:\d\d\s+)?|\s*<!-- m:[0-9A-Za-z_-]+ -->\s*$")

_BARE_WORD = pattern(r"\w+")
_WITHOUT_SPACES = "\u0e00"  # the first of the scripts that put none between words


def entries_meant(entries: Iterable[Entry], what: str) -> list[Entry]:
    """The entry with this id; else those with this text, or with all of its words in any order, in whatever case."""
    what, everything = what.strip(), list(entries)
    if same := [entry for entry in everything if entry.id == what]:
        return same
    wanted = _folded(what)
    return [entry for entry in everything if wanted and _has(_folded(entry.text), wanted)]


def _has(text: str, wanted: str) -> bool:
    """A part of a word is no word: who has the code of a door forgotten does not mean a postcode."""
    if wanted in text:
        return True
    own, words = set(_BARE_WORD.findall(text)), _BARE_WORD.findall(wanted)
    return bool(words) and all(
        word in own or (max(word) >= _WITHOUT_SPACES and word in text) for word in words
    )


def entries_that_say(entries: Iterable[Entry], lines: Iterable[str]) -> list[Entry]:
    """The entries that say what one of these lines of notes says, no more and no less."""
    said = {_folded(_AROUND.sub("", line)) for line in lines} - {""}
    return [entry for entry in entries if _folded(entry.text) in said]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
