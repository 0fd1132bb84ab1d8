"""What a sentence says, by its words: a decision, a preference, a fact; and whether it says the same as another."""

from __future__ import annotations

import re

from plainmind.base.lazy import pattern
from plainmind.text.terms import document_terms, fold, normalize, stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

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


def category_of(text: str) -> tuple[str, float] | None:
    """What a person says that stays true: its category and how much it matters; None for nearly all that is said."""
    if _QUESTION.search(text) or _MACHINE_MADE.search(text) or is_for_the_assistant(text):
        return None
    return next(((category, importance) for category, importance, rule in _KINDS if rule.search(text)), None)


def is_for_the_assistant(text: str) -> bool:
    """Whether a text gives orders to a model: it is never a source of anything."""
    return _FOR_THE_ASSISTANT.search(text) is not None


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
_MOST_DENIED = 24
_MYSELF = frozenset({"I", "I'", "I’"})
_EITHER_WAY = frozenset({"and", "or", "und", "oder", "et", "ou", "y", "o", "e", "with", "mit", "avec", "con"})

_IDLE = frozenset(
    {"user", "everi"}
)  # of "the user prefers …", which a person says of themselves as "I prefer …"


# Text between spaces; Chinese, Japanese and Korean, which have none or others, part it too.
_PIECE = pattern("[^\\s\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff]+")
_IN_ONE_NUMBER = pattern(r"(?<=\d) (?=\d)")
_BESIDE_A_SIGN = pattern(r"(?<=\d)\s+(?=[%$€£¥°])|(?<=[$€£¥<>=≤≥~])\s+(?=\d)")
_MARKS = "\"'`“”„‚‘’«»()[]{}*_,;:!?|…"  # of sentences and of Markdown
_PLAIN = pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+")
_HYPHENED = pattern(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_SIGNS = frozenset("%$€£¥°<>=≤≥≠±+#@~")


def adds_nothing(new: str, old: str) -> bool:
    """Whether a sentence has no number, name, code or "not" that another one lacks, nor turns it round."""
    if numbers_of(new) != numbers_of(old) or is_negated(new) != is_negated(old):
        return False
    (plain, codes), (old_plain, old_codes) = _parted(new), _parted(old)
    if not codes <= old_codes or plain & ({fold(word) for word in words_of(old)} - old_plain):
        return False
    if not names_of(new) <= {fold(word) for word in words_of(old)}:
        return False
    reversed_ = {(last, middle, first) for first, middle, last in _triples(old)}
    return reversed_.isdisjoint(_triples(new))


def same_words(new: str, old: str) -> bool:
    """Whether both are made of the same words that mean something, in whatever form and order, and say no more."""
    return adds_nothing(new, old) and _meaning(new) == _meaning(old)


def _meaning(text: str) -> set[str]:
    return set(document_terms(text)) - _IDLE


def words_of(text: str) -> list[str]:
    """The words of a text, in one form of writing."""
    return _WORD.findall(normalize(text))


def numbers_of(text: str) -> list[str]:
    """Every run of digits, in order of their size as text."""
    return sorted(_NUMBER.findall(normalize(text)))


def codes_of(text: str) -> set[str]:
    """What is the same only to the letter: paths, addresses, versions, options, amounts, words with digits."""
    return _parted(text)[1]


def _parted(text: str) -> tuple[set[str], set[str]]:
    """The words that stand by themselves, folded, and the codes: "tern" is no word of "tern.backup"."""
    plain: set[str] = set()
    codes: set[str] = set()
    for piece in _PIECE.findall(_BESIDE_A_SIGN.sub("", _IN_ONE_NUMBER.sub("·", normalize(text)))):
        bare = piece.lstrip(_MARKS).rstrip(_MARKS + ".-–—")
        if _PLAIN.fullmatch(bare):
            plain.add(fold(bare))
        elif _HYPHENED.fullmatch(bare):  # "Follow-up" begins a sentence
            codes.add(fold(bare))
        elif _WORD.search(bare) or not _SIGNS.isdisjoint(bare):
            codes.add(bare)
    return plain, codes


def is_negated(text: str) -> bool:
    """Whether a text denies something; two negations cancel each other out."""
    return len(_NEGATION.findall(normalize(text))) % 2 == 1


def denied_parts(text: str) -> list[str]:
    """What each "not" of a text denies: a few words behind it, or what is left; in German what `nicht` follows."""
    bare = normalize(text)
    return [
        bare if found[0].casefold() == "nicht" else bare[found.end() :].lstrip()[:_MOST_DENIED]
        for found in _NEGATION.finditer(bare)
    ]


def names_of(text: str) -> set[str]:
    """Words with a capital letter that does not stand there because a sentence begins."""
    return {fold(word) for word in words_of(text)[1:] if word != word.lower() and word[:2] not in _MYSELF}


def _triples(text: str) -> set[Triple]:
    """Three words in a row, but for those that stand in the middle of what can be turned round.

    Once with all words and once with those that tell something: "reports to" stands between two people as "calls" does.
    """
    words = words_of(text)
    told = [word for word in words if document_terms(word)]
    return _rows([stem(fold(word)) for word in words]) | _rows([stem(fold(word)) for word in told])


def _rows(words: list[str]) -> set[Triple]:
    rows = zip(words, words[1:], words[2:], strict=False)
    return {row for row in rows if row[1] not in _EITHER_WAY and row[0] != row[2]}
