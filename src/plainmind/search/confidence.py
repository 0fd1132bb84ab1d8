"""How likely each result answers the question: what its words, its meaning and the others beside it say."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from plainmind.base.lazy import pattern
from plainmind.search.pages import ParsedQuery, QuestionWords, Stake, names_day

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.search.snippets import Snippet

# The log-odds that the first snippet holds evidence, learned on the questions of ten sets (docs/decisions). What the
# question says counts, and how far the first is ahead: where two are as good as each other, neither is the answer.
_FIRST_LEVEL, _OF_LEAD, _OF_INFORMATION = -1.9, 2.2, 1.25
_OF_DISTANCE, _OF_NAMED_DAY, _OF_MEANING = 6.1, 0.9, 0.95
_HALF_A_LEAD = 0.06  # over the second: then it is worth half of what a lead can be
_FARTHEST = 0.2  # from the third: what is ahead by more is no surer
_MUCH_SAID = 1.5  # in three rare words
_VERY_NEAR = 0.5  # in meaning; models of others call nearly everything near
# A question that names an identifier is not answered by what does not have it: of questions of ten sets that nothing
# answers, all that name one are told so, and no right answer is doubted for it.
OF_MISSING_IDENTIFIER = -3.0
# The log-odds that one of the others does: what it is worth, the share of the question that its best line has, and how
# far it is behind the first.
_OTHER_LEVEL, _OF_WORTH, _OF_COVERAGE, _OF_DELAY = -3.9, 6.7, 1.8, -5.8


def probability_of_first(
    *,
    share_of_words: float,
    information: float,
    meaning: float,
    lead: float,
    distance: float,
    of_named_day: bool,
    lacks_identifier: bool = False,
) -> float:
    """How likely the first snippet answers the question.

    `share_of_words` is how much of the question's words its chunk has; `information` is what those in its best line
    weigh, in rare words; `lead` and `distance` are how much more it is worth than the second and the third.
    """
    lead = max(0.0, lead)
    return as_probability(
        _FIRST_LEVEL
        + _OF_LEAD * share_of_words * lead / (lead + _HALF_A_LEAD)
        + _OF_INFORMATION * min(_MUCH_SAID, information / 3)
        + _OF_DISTANCE * min(_FARTHEST, max(0.0, distance))
        + _OF_MEANING * min(_VERY_NEAR, max(0.0, meaning))
        + (_OF_NAMED_DAY if of_named_day else 0.0)
        + (OF_MISSING_IDENTIFIER if lacks_identifier else 0.0)
    )


def probability_of_other(*, worth: float, coverage: float, behind: float) -> float:
    """How likely one of the other snippets does; `behind` is how much less it is worth than the first."""
    return as_probability(
        _OTHER_LEVEL + _OF_WORTH * min(1.0, worth) + _OF_COVERAGE * coverage + _OF_DELAY * max(0.0, behind)
    )


def as_probability(odds: float) -> float:
    """The probability that log-odds say."""
    return 1.0 / (1.0 + math.exp(-odds))


_SIGNS = pattern(r"[\W_]+")
_CODE = pattern(r"(?=.*\d).*[^\W\d_]|.*_", re.DOTALL)


def lacks_identifier(exact: Iterable[str], texts: Iterable[str]) -> bool:
    """Whether a question names something like `HW-3001` or `quiet_hours` that none of these has, however spelt."""
    named = [_SIGNS.sub("", term) for term in exact if _CODE.match(term)]
    if not any(named):
        return False
    there = [_SIGNS.sub("", text.lower()) for text in texts]
    return any(all(one not in text for text in there) for one in named)


def _all_of(weighed: tuple[float, bool, Snippet]) -> str:
    _, _, snippet = weighed
    chunk = snippet.best[0].ranked.chunk
    return f"{snippet.text} {chunk.headed_text} {chunk.path}"


def chances_of(
    query: ParsedQuery,
    weighed: Sequence[tuple[float, bool, Snippet]],
    asked: QuestionWords,
    stake: Stake,
) -> list[float]:
    """How likely each snippet answers; none is surer than the one before it."""
    of_day = stake.day_bonus * stake.share_of_words
    # Words that are like those of the question tell its subject, and not that it is answered.
    own_worths = [worth - snippet.best[0].ranked.likeness for worth, _, snippet in weighed]
    # A day that was named says nothing about the words that were: among them it makes no answer.
    worths = [
        worth - (of_day if names_day(query, snippet.best[0].ranked.chunk.day) else 0.0)
        for worth, (_, _, snippet) in zip(own_worths, weighed, strict=True)
    ]
    chances: list[float] = []
    for worth, (_, _, snippet) in zip(worths, weighed, strict=True):
        best, unit = snippet.best
        own = 0 if best.wording is None else best.wording.own[unit]
        if chances:
            behind = worths[0] - worth
            other = probability_of_other(worth=worth, coverage=asked.shares[own], behind=behind)
            chances.append(min(chances[-1], other))
            continue
        others = ~asked.terms_among(query.words_of_days) if query.days else -1
        first = probability_of_first(
            share_of_words=asked.shares[best.terms & others]
            / (asked.shares[asked.all_terms & others] or 1.0),
            information=asked.shares[own & others] * asked.total / stake.rarest,
            meaning=best.ranked.meaning,
            lead=own_worths[0] - (own_worths[1] if len(own_worths) > 1 else 0.0),
            distance=worth - (worths[2] if len(worths) > 2 else 0.0),
            of_named_day=names_day(query, best.ranked.chunk.day),
            lacks_identifier=bool(query.exact) and lacks_identifier(query.exact, map(_all_of, weighed)),
        )
        chances.append(first)
    return chances
