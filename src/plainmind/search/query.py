"""A question, taken apart once: its terms, what they weigh, and the days it names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date

from plainmind.base.model import TermStatistics
from plainmind.base.pattern import pattern
from plainmind.base.value import value
from plainmind.text.cjk import letters_without_spaces
from plainmind.text.dates import DayRange, mentioned_days
from plainmind.text.terms import clues, document_terms, query_terms

# A longer one is a document pasted by mistake: it would take seconds and match everything.
LONGEST_QUESTION = 8_000

_RECENT = pattern(
    r"\b(?:lately|latest|current(?:ly)?|newest|nowadays|right now|these days|most recent|as of now)\b",
    re.IGNORECASE,
)
_RECENT_HINTS = ("late", "current", "new", "now", "days", "recent")
_RECENT_EAST_ASIAN = (
    *("最近", "最新", "目前", "现在", "現在", "如今", "近頃", "このごろ", "今の"),
    *("최근", "최신", "요즘", "현재", "지금"),
)
_CAPITALISED = pattern(r"\b[^\W\d_a-z]\w+")


@value
class ParsedQuery:
    """What a question asks for, in words and in days."""

    text: str
    terms: tuple[str, ...]
    exact: frozenset[str]  # identifiers, ids, error strings: a line that has one always survives
    days: tuple[DayRange, ...]
    named: frozenset[str] = frozenset()  # capitalised words inside the question, folded: mostly people
    is_spaceless: bool = False  # most of it is in a script without spaces, such as Chinese or Japanese

    def names(self, speaker: str | None) -> bool:
        """Whether the question names this person."""
        return speaker is not None and any(word in self.named for word in speaker.casefold().split())

    def has_exact_token(self, text: str) -> bool:
        """Whether a text has one of the identifiers of the question, as written."""
        if not self.exact:
            return False
        folded = text.lower()
        if text.isascii() and not any(clue in folded for term in self.exact for clue in clues(term)):
            return False
        return not self.exact.isdisjoint(document_terms(text))

    @property
    def asks_for_recent(self) -> bool:
        """Whether the question is about how things are now, so that newer notes count more."""
        lowered = self.text.lower()
        if any(hint in lowered for hint in _RECENT_HINTS) and _RECENT.search(self.text):
            return True
        return not self.text.isascii() and any(word in self.text for word in _RECENT_EAST_ASIAN)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to look for."""
        return not self.text


def parse(text: str, *, today: date) -> ParsedQuery:
    """Take a question apart; `today` decides what "last Friday" means."""
    text = " ".join(text[:LONGEST_QUESTION].split())
    found = query_terms(text)
    return ParsedQuery(
        text=text,
        terms=found.terms,
        exact=found.exact,
        days=mentioned_days(text, today),
        # The first word has a capital of its own: it names nobody.
        named=frozenset(word.casefold() for word in _CAPITALISED.findall(text.partition(" ")[2])),
        is_spaceless=not text.isascii() and 2 * letters_without_spaces(text) > len(text.replace(" ", "")),
    )


def term_weights(terms: Sequence[str], statistics: TermStatistics) -> Mapping[str, float]:
    """Weigh terms by rarity. A term that stands nowhere weighs most: its absence must lower every score."""
    total = statistics.chunk_count
    return {
        term: math.log(1 + (total - count + 0.5) / (count + 0.5))
        for term in terms
        for count in (min(total, statistics.chunks_with.get(term, 0)),)
    }


def names_day(query: ParsedQuery, day: str | None) -> bool:
    """Whether the question names the day, or a span that holds it."""
    if day is None or not query.days:
        return False
    try:
        wanted = date.fromisoformat(day)
    except ValueError:
        return False
    return any(span.first <= wanted <= span.last for span in query.days)
