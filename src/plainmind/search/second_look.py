"""A second look: a model has read the best results together with the question, and both opinions make the order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plainmind.base.model import CitedLines, SearchHit
from plainmind.base.value import replace
from plainmind.search.doubts import doubt_of
from plainmind.search.engine import as_probability
from plainmind.text.terms import query_terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object

# What the log-odds of the second look are worth beside what the engine ranked by: it puts the most evidence first, and
# into six, over seven sets of questions, public and our own. From .03 to .05 it makes little difference.
_OF_READING = 0.035
# The log-odds that the first result holds evidence: how far it is ahead of the third, how sure the first look was of
# its own first, and how much more was read in it than in any other.
_FIRST_LEVEL, _OF_DISTANCE, _OF_FIRST_LOOK, _OF_LEAD = -1.05, 7.0, 0.36, 0.32
_FARTHEST = 0.3
_LONGEST_LEAD = 3.0
_SUREST = 0.99  # as much as the first look counts at most, and so far from none at least
# The log-odds that one of the others does: its worth, what was read in it, and how far it is behind the first.
_OTHER_LEVEL, _OF_WORTH, _OF_OTHER_ANSWER, _OF_DELAY = -2.3, 3.7, 0.14, -6.0
_PASSAGE_CHARS = 480  # about what is read of a snippet at once
# Of so many results the rest is read too, after the best lines of so many: later ones can be spared if time is short.
_READ_WHOLE, _READ_BEFORE = 8, 16
_FIRST_WIDE, _MORE_OF_WIDE = "⺀", 2  # an ideograph, a kana or a syllable of Hangul is nearly a piece
_LEAST_LEFT = 60  # characters: less says nothing


class Reranker(Protocol):
    """Reads a question and a passage at once. Safe to share between threads."""

    def log_odds(self, question: str, passages: Sequence[str], *, seconds: float) -> list[float | None]:
        """How likely each passage answers, as log-odds; None for one that was not read in time, or not understood."""


def windows_of(hit: SearchHit) -> tuple[str, str]:
    """The lines around the one that answers best, and what they leave out; both under their path of headings.

    The second is empty where little is left.
    """
    lines = hit.snippet.split("\n")
    first = last = min(max(0, hit.best_line - hit.start_line), len(lines) - 1)
    room = _PASSAGE_CHARS - _width(hit.headings) - _width(lines[first])
    while True:
        grown = False
        if last + 1 < len(lines) and _width(lines[last + 1]) < room:
            last += 1
            room -= _width(lines[last]) + 1
            grown = True
        if first and _width(lines[first - 1]) < room:
            first -= 1
            room -= _width(lines[first]) + 1
            grown = True
        if not grown:
            break
    head = f"{hit.headings}\n" if hit.headings else ""
    rest = "\n".join([*lines[:first], *lines[last + 1 :]]).strip()
    return head + "\n".join(lines[first : last + 1]), head + rest if len(rest) > _LEAST_LEFT else ""


def _width(text: str) -> int:
    """How many letters of an alphabet are about as many pieces as this text is."""
    if text.isascii():
        return len(text)
    return len(text) + _MORE_OF_WIDE * sum(letter >= _FIRST_WIDE for letter in text)


def let_read(
    reranker: Reranker, question: str, hits: Sequence[SearchHit], *, seconds: float
) -> list[float | None]:
    """What a reranker says of each result: of its best lines, or of the others where those say more."""
    windows = [windows_of(hit) for hit in hits]
    passages = [(at, best) for at, (best, _) in enumerate(windows)]
    passages[_READ_BEFORE:_READ_BEFORE] = [
        (at, rest) for at, (_, rest) in enumerate(windows[:_READ_WHOLE]) if rest
    ]
    said = reranker.log_odds(question, [text for _, text in passages], seconds=seconds)
    found: list[float | None] = [None] * len(hits)
    for (at, _), one in zip(passages, said, strict=True):
        known = found[at]
        if one is not None:
            found[at] = one if known is None else max(known, one)
    return found


def look_again(
    hits: Sequence[SearchHit], said: Sequence[float | None], question: str = ""
) -> list[SearchHit]:
    """Results in the order that both looks make, with how likely each answers; as they were when nothing was read."""
    read = [one for one in said if one is not None]
    if not read:
        return list(hits)
    usual = sum(read) / len(read)  # what was not read is neither lifted nor lowered
    known = [usual if one is None else one for one in said]
    mixed = sorted(
        [(hit.worth + _OF_READING * one, one, hit) for hit, one in zip(hits, known, strict=True)],
        key=lambda each: -each[0],
    )
    worths = [worth for worth, _, _ in mixed]
    # Identifiers and names, which no model reads letter by letter.
    texts = [f"{hit.snippet} {hit.headings} {hit.path}" for _, _, hit in mixed]
    doubt = doubt_of(question, query_terms(question).exact, texts[0], texts)
    seen: list[SearchHit] = []
    for worth, one, hit in mixed:
        if seen:
            odds = (
                _OTHER_LEVEL
                + _OF_WORTH * hit.worth
                + _OF_OTHER_ANSWER * one
                + _OF_DELAY * (worths[0] - worth)
            )
            seen.append(replace(hit, score=min(seen[-1].score, as_probability(odds))))
        else:
            distance = worth - (worths[2] if len(worths) > 2 else 0.0)
            lead = one - max([other for _, other, _ in mixed[1:]], default=one)
            odds = (
                _FIRST_LEVEL
                + _OF_DISTANCE * min(_FARTHEST, max(0.0, distance))
                + _OF_FIRST_LOOK * _log_odds(hits[0].score)
                + _OF_LEAD * min(_LONGEST_LEAD, max(0.0, lead))
                + doubt
            )
            seen.append(replace(hit, score=as_probability(odds)))
    return _newer_first(seen)


def _log_odds(probability: float) -> float:
    known = min(_SUREST, max(1.0 - _SUREST, probability))
    return math.log(known / (1.0 - known))


def _newer_first(hits: list[SearchHit]) -> list[SearchHit]:
    """Put what is newer than a result back before it."""
    for hit in [hit for hit in hits if hit.older]:
        at = hits.index(hit)
        before = [place for place, other in enumerate(hits[:at]) if _is_among(other, hit.older)]
        if before:
            hits.insert(before[0], replace(hits.pop(at), score=hits[before[0]].score))
    return hits


def _is_among(hit: SearchHit, places: Sequence[CitedLines]) -> bool:
    return any(
        place.path == hit.path and hit.start_line <= place.start_line <= hit.end_line for place in places
    )
