"""What a person said that may be worth keeping: proposals, which wait until somebody has accepted them."""

from __future__ import annotations

import re

from plainmind.base.pattern import pattern
from plainmind.base.value import value

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
