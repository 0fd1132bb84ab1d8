"""A second look: a model has read the best results together with the question, and both opinions make the order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from plainmind.base.model import CERTAIN, CitedLines, SearchHit
from plainmind.base.value import replace, value
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
# The log-odds that a result is expected to have for its worth, where it could not be read: half of all questions have
# 11 to 23 among those that were. The mean alone puts a right answer that was not read behind wrong ones that were.
_OF_WORTH_UNREAD = 15.0
# What reads like no answer, by these log-odds, is not certain for being ahead of what reads worse, unless the first
# look was certain. Of 1,877 questions that have an answer three lose the certain right one; of 64 certain first results
# to 1,233 questions that have none eight go.
_NO_ANSWER, _UNCERTAIN = 0.0, CERTAIN - 0.01
_PASSAGE_CHARS = 480  # about what is read of a snippet at once
# Of so many results the rest is read too, after the best lines of so many: later ones can be spared if time is short.
_READ_WHOLE, _READ_BEFORE = 8, 16
_FIRST_WIDE, _MORE_OF_WIDE = "⺀", 2  # an ideograph, a kana or a syllable of Hangul is nearly a piece
_LEAST_LEFT = 60  # characters: less says nothing


class Reranker(Protocol):
    """Reads a question and a passage at once. Safe to share between threads."""

    @property
    def name(self) -> str:
        """Which model it is."""

    def log_odds(self, question: str, passages: Sequence[str], *, seconds: float) -> list[float | None]:
        """How likely each passage answers, as log-odds; None for one that is not understood.

        Where the time is too short it tells of the first ones alone.
        """


# A look that has reached the best lines of so many results is as good as done: over seven sets of questions two thirds
# of the answers that it puts first are there by then, and twice as many results put no more there. Less is told.
ENOUGH = 8
# So begins what is said of it among what an answer lacks, and where there was too little time, which anybody may know.
SECOND_LOOK = "second look"
CUT_SHORT = f"{SECOND_LOOK}: there was time for"


@value
class Reading:
    """What a reranker says of some results, in their order."""

    said: tuple[float | None, ...]  # log-odds; None: there was no time for it, or it was not understood
    reached: int  # the best lines of so many of them, the first ones
    share: float = 1.0  # of all that was to be read, the rest of the best results too

    @property
    def is_cut(self) -> bool:
        """Whether there was too little time: the last ones are there to be spared."""
        return self.reached < min(ENOUGH, len(self.said))


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


def let_read(reranker: Reranker, question: str, hits: Sequence[SearchHit], *, seconds: float) -> Reading:
    """What a reranker says of each result: of its best lines, or of the others where those say more."""
    windows = [windows_of(hit) for hit in hits]
    passages = [(at, best) for at, (best, _) in enumerate(windows)]
    passages[_READ_BEFORE:_READ_BEFORE] = [
        (at, rest) for at, (_, rest) in enumerate(windows[:_READ_WHOLE]) if rest
    ]
    said = reranker.log_odds(question, [text for _, text in passages], seconds=seconds)
    found: list[float | None] = [None] * len(hits)
    for (at, _), one in zip(passages, said, strict=False):
        known = found[at]
        if one is not None:
            found[at] = one if known is None else max(known, one)
    reached = len({at for at, _ in passages[: len(said)]})
    return Reading(tuple(found), reached, len(said) / len(passages) if passages else 1.0)


def most_windows(results: int) -> int:
    """How many passages are read of so many results at most."""
    return results + min(results, _READ_WHOLE)


def cut_short(reading: Reading, seconds: float) -> Iterator[str]:
    """What is said of a look for which there was too little time."""
    if reading.is_cut:
        yield (
            f"{CUT_SHORT} {reading.reached} of the best {min(ENOUGH, len(reading.said))}"
            f" results (`rerank.deadlineMs` is {round(seconds * 1000)}); the others are as the first look had them"
        )


_UNKNOWN_LANGUAGE = ", or the question is, in a language that it does not know"


def what_was_read(reading: Reading, name: str, milliseconds: float) -> str:
    """What is said of a look whose reasons are wanted."""
    why = [_why_unread(at, reading) for at, one in enumerate(reading.said) if one is None]
    language, late = why.count("language"), why.count("time")
    unread = [
        *([f"{language} {_is_or_are(language)}{_UNKNOWN_LANGUAGE}"] if language else []),
        *([f"for {late} there was no time"] if late else []),
    ]
    return (
        f"{SECOND_LOOK}: {name} read {len(reading.said) - len(why)} of {len(reading.said)} results"
        f" in {milliseconds:.0f} ms{'; ' if unread else ''}{', '.join(unread)}"
    )


def _is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


def _why_unread(at: int, reading: Reading) -> str:
    return "language" if at < reading.reached else "time"


def with_reasons(hits: Sequence[SearchHit], reading: Reading) -> list[SearchHit]:
    """Results with what was read in each, and where they stood before it, beside what explains them already."""
    told: list[SearchHit] = []
    for at, (hit, one) in enumerate(zip(hits, reading.said, strict=True)):
        if hit.explanation is None:
            told.append(hit)
            continue
        seen: dict[str, object] = {"place": at + 1, "logOdds": None if one is None else round(one, 2)}
        if one is None:
            seen["unread"] = _why_unread(at, reading)
        told.append(replace(hit, explanation={**hit.explanation, "secondLook": seen}))
    return told


def look_again(hits: Sequence[SearchHit], reading: Reading, question: str = "") -> list[SearchHit]:
    """Results in the order that both looks make, with how likely each answers; as they were when nothing was read."""
    if not any(one is not None for one in reading.said):
        return list(hits)
    known = with_expected([hit.worth for hit in hits], reading.said)
    worths = [hit.worth + _OF_READING * one for hit, one in zip(hits, known, strict=True)]
    order = sorted(range(len(hits)), key=lambda at: -worths[at])
    # Identifiers and names, which no model reads letter by letter.
    texts = [f"{hits[at].snippet} {hits[at].headings} {hits[at].path}" for at in order]
    doubt = doubt_of(question, query_terms(question).exact, texts[0], texts)
    first, *others = order
    third = worths[order[2]] if len(order) > 2 else 0.0
    lead = 0.0
    if (
        reading.said[first] is not None
    ):  # the best of what there was no time for is the better the more of it there is
        lead = (
            known[first] - max([known[at] for at in others], default=known[first]) + math.log(reading.share)
        )
    odds = (
        _FIRST_LEVEL
        + _OF_DISTANCE * min(_FARTHEST, max(0.0, worths[first] - third))
        + _OF_FIRST_LOOK * _log_odds(hits[0].score)
        + _OF_LEAD * min(_LONGEST_LEAD, max(0.0, lead))
        + doubt
    )
    score = as_probability(odds)
    if known[first] < _NO_ANSWER and hits[0].score < CERTAIN:
        score = min(score, _UNCERTAIN)
    seen = [replace(hits[first], score=score)]
    for at in others:
        odds = (
            _OTHER_LEVEL
            + _OF_WORTH * hits[at].worth
            + _OF_OTHER_ANSWER * known[at]
            + _OF_DELAY * (worths[first] - worths[at])
        )
        seen.append(replace(hits[at], score=min(seen[-1].score, as_probability(odds))))
    return _newer_first(seen)


def with_expected(worths: Sequence[float], said: Sequence[float | None]) -> list[float]:
    """What is said of each result; of one that was not read, what those are said that are worth as much.

    Something has to be said of one at least.
    """
    read = [(worth, one) for worth, one in zip(worths, said, strict=True) if one is not None]
    usual, mean = (sum(column) / len(read) for column in zip(*read, strict=True))
    return [
        mean + _OF_WORTH_UNREAD * (worth - usual) if one is None else one
        for worth, one in zip(worths, said, strict=True)
    ]


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
