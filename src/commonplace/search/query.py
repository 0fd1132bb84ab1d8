"""A question, taken apart once: its terms, what they weigh, and the days it names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from commonplace.model import TermStatistics
from commonplace.text.cjk import letters_without_spaces
from commonplace.text.dates import DayRange, mentioned_days
from commonplace.text.terms import query_terms

# A longer one is a document pasted by mistake: it would take seconds and match everything.
LONGEST_QUESTION = 8_000

_RECENT = re.compile(
    r"\b(?:lately|latest|current(?:ly)?|newest|nowadays|right now|these days|most recent|as of now)\b"
    r"|最近|最新|目前|现在|現在|如今|近頃|このごろ|今の|최근|최신|요즘|현재|지금",
    re.IGNORECASE,
)
_CAPITALISED = re.compile(r"\b[^\W\d_a-z]\w+")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """What a question asks for, in words and in days."""

    text: str
    terms: tuple[str, ...]
    exact: frozenset[str]  # identifiers, ids, error strings: a line that has one always survives
    days: tuple[DayRange, ...]
    named: frozenset[str] = frozenset()  # capitalised words inside the question, folded: mostly people

    def names(self, speaker: str | None) -> bool:
        """Whether the question names this person."""
        return speaker is not None and any(word in self.named for word in speaker.casefold().split())

    @property
    def asks_for_recent(self) -> bool:
        """Whether the question is about how things are now, so that newer notes count more."""
        return _RECENT.search(self.text) is not None

    @property
    def is_spaceless(self) -> bool:
        """Whether most of the question is in a script without spaces, such as Chinese or Japanese."""
        return not self.text.isascii() and 2 * letters_without_spaces(self.text) > len(
            self.text.replace(" ", "")
        )

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
