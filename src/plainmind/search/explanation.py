"""Why a hit is where it is: the signals of the line that it grew from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from plainmind.search.engine import Recency
from plainmind.search.pages import ParsedQuery, QuestionWords, TermSet, names_day, speaker_of
from plainmind.search.snippets import ReadChunk


class Explanations:
    """Explains the hits of one question."""

    def __init__(self, query: ParsedQuery, asked: QuestionWords, recency: Recency, today: date) -> None:
        self._query = query
        self._asked = asked
        self._recency = recency
        self._today = today

    def of(self, read: ReadChunk, unit: int, score: float, *, exact: bool) -> Mapping[str, object]:
        """What spoke for one unit of a chunk."""
        query, ranked, wording = self._query, read.ranked, read.wording
        chunk = ranked.chunk
        own, beside, passage = (
            (0, 0, 0.0)
            if wording is None
            else (wording.own[unit], terms_beside(wording.own)[unit], wording.passages[unit])
        )
        recency = self._recency.factor(chunk.day, today=self._today, asked_for_recent=query.asks_for_recent)
        return {
            "score": round(score, 4),
            "raw": round(read.scores[unit], 4),
            "coverage": round(self._asked.share_of_words(own), 4),
            "nearby": round(self._asked.share_of_words(beside), 4),
            "passage": round(passage, 4),
            "keywords": round(ranked.keywords, 4),
            "neighbours": round(ranked.neighbours, 4),
            "meaning": round(ranked.meaning, 4),
            "otherWords": round(ranked.lift, 4),
            "speaker": query.names(speaker_of(read.page.units[unit])),
            "recency": round(recency, 4),
            "namedDay": names_day(query, chunk.day),
            "exactToken": exact,
            "matched": list(self._asked.names_of(own)),
            "bestLine": read.places[unit][0],
        }


def terms_beside(own: Sequence[TermSet]) -> list[TermSet]:
    """For each unit the terms that stand in the two before or the two after it, and not in it."""
    around = [0, 0, *own, 0, 0]
    return [
        (first | second | fourth | fifth) & ~middle
        for first, second, middle, fourth, fifth in zip(
            around, around[1:], own, around[3:], around[4:], strict=False
        )
    ]
