"""Keep for good: a decision or preference in a log that was asked for again and again, copied as it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plainmind.base.lazy import pattern
from plainmind.base.model import PRIVATE
from plainmind.base.value import value
from plainmind.guests.upkeep.model import Cite, Edit, Proposal
from plainmind.guests.upkeep.survey import Line, Survey, frame_of
from plainmind.text.note_format import DURABLE_SECTION
from plainmind.text.sentences import adds_nothing, category_of, same_words

_LASTING = frozenset({"decision", "preference"})
_LEAST_TIMES = 2  # different questions, or days on which it was asked for
_LEAST_TERMS = 3
_BOILERPLATE_FROM = 3  # logs in which the same frame stands
# Decisions as people write them into a log, beside those that are said in conversation.
_WRITTEN_DECISION = pattern(
    r"(?i)^(?:decision|decided|agreed|entscheidung|entschieden|beschlossen|vereinbart|决定|约定|定了)\s*[:：,]?"
    r"|\b(?:decided (?:to|on|against)|agreed (?:to|on|that)|prefers?|preferred|favou?rite|always wants?|never wants?"
    r"|allergic|entschieden|beschlossen|vereinbart|bevorzugt|mag (?:keine?[nrms]?|lieber|am liebsten)|lieblings\w+"
    r"|am liebsten|möchte (?:immer|nie|keine?[nrms]?)|allergisch)\b"
    r"|决定|约定|说好|喜欢|不喜欢|更喜欢|最爱|偏好|讨厌|过敏|以后都"
)


@value
class Asked:
    """How often a line was given as an answer."""

    questions: frozenset[str]
    days: frozenset[str]

    @property
    def is_often(self) -> bool:
        """Whether it was for two different questions, or on two days."""
        return max(len(self.questions), len(self.days)) >= _LEAST_TIMES


def is_lasting(words: str) -> bool:
    """Whether a line says what somebody decided or prefers."""
    found = category_of(words)
    if found is not None and found[0] in _LASTING:
        return True
    return _WRITTEN_DECISION.search(words) is not None and not words.rstrip().endswith(("?", "？"))


def lasting(survey: Survey, asked: Mapping[tuple[str, int], Asked], into: str) -> Iterator[Proposal]:
    """Lines of logs that belong into the curated memory; `into` is its path."""
    for line in survey.lines:
        if not line.is_log or line.scope != PRIVATE or line.is_task or line.is_settled:
            continue
        often = asked.get((line.path, line.number))
        if often is None or not often.is_often or not is_lasting(line.words):
            continue
        if is_boilerplate(line, survey) or is_known(line, survey):
            continue
        yield proposal(line, line.words, into, _reason(often))


def _reason(often: Asked) -> str:
    questions, days = len(often.questions), len(often.days)
    if questions >= _LEAST_TIMES:
        return f"a decision or preference that answered {questions} different questions, and stands in a log alone"
    return f"a decision or preference that was asked for on {days} days, and stands in a log alone"


def proposal(line: Line, words: str, into: str, reason: str) -> Proposal:
    """Copy what a line says into the curated memory, with the way back to it."""
    new = f"- {words} (from {line})"
    return Proposal(
        "keep",
        (Cite(line.path, line.number, line.text),),
        (Edit(into, 0, (), (new,), section=DURABLE_SECTION),),
        reason,
    )


def is_boilerplate(line: Line, survey: Survey) -> bool:
    """Whether a line says next to nothing, or begins as lines of other logs do: what comes every day is no decision."""
    if len(survey.terms(line.words)) < _LEAST_TERMS:
        return True
    frame = frame_of(line.words)
    return len({other.path for other in survey.frames.get(frame, ()) if other.is_log}) >= _BOILERPLATE_FROM


def is_known(line: Line, survey: Survey) -> bool:
    """Whether the curated memory or another durable file says it already."""
    terms = survey.terms(line.words)
    for other in survey.durable:
        if other.scope != PRIVATE:
            continue
        theirs = survey.terms(other.words)
        if len(terms & theirs) < 0.6 * len(terms):
            continue
        if same_words(line.words, other.words) or (terms <= theirs and adds_nothing(line.words, other.words)):
            return True
    return False
