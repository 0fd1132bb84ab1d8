"""Which of the proposed chunks are worth reading, and what speaks for the whole of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from plainmind.base.model import Chunk, SearchFilter
from plainmind.search.query import ParsedQuery, names_day

# A question that names days is about them: worth as much as a third of its words.
DAY_BONUS = 0.15
# In transcripts, what people said about themselves counts more, and what an assistant made of it less: by no more than
# what it says about the question, or whatever anybody said would stand above a note that answers.
ASKED_BONUS = 0.15
ANSWERED_MALUS = 0.15
_MOST_LOST = 1 / 3  # of what a chunk is worth: a line of it is never worth less than nothing


class RankedChunk:
    """A chunk that is worth reading line by line."""

    __slots__ = ("bonus", "chunk", "id", "keywords", "meaning", "neighbours", "term_counts")

    def __init__(self, chunk: Chunk, keywords: float, meaning: float, bonus: float, *, id_: int = 0) -> None:
        self.id = id_
        self.chunk = chunk
        self.keywords = keywords  # BM25 of its words, headings included
        self.meaning = meaning  # cosine of its vector
        self.bonus = bonus  # for what it is, whatever it says
        self.neighbours = (
            0.0  # BM25 of the better of the chunks before and after, as far as they are foremost
        )
        # By term of the question: how often it stands in the chunk and its headings; None where only the text tells.
        self.term_counts: bytes | None = None


def in_question(
    query: ParsedQuery,
    where: SearchFilter,
    keywords: Sequence[float],
    meaning: Sequence[float],
    *,
    meaning_weight: float,
    foremost: int,
) -> list[int]:
    """The positions of those that can be among the foremost, whatever the bonus of each: no others need be fetched."""
    of_talk = ASKED_BONUS + ANSWERED_MALUS if "sessions" in where.sources else 0.0
    swing = (DAY_BONUS if query.days else 0.0) + of_talk
    worths = _earned(keywords, meaning, meaning_weight)
    if len(worths) <= foremost:
        return list(range(len(worths)))
    least = sorted(worths, reverse=True)[foremost - 1]
    return [position for position, worth in enumerate(worths) if worth + swing >= least]


def ranked_chunks(
    query: ParsedQuery,
    proposed: Mapping[int, Chunk],
    keywords: Sequence[float],
    meaning: Sequence[float],
    *,
    meaning_weight: float,
    foremost: int,
    everything: bool,
) -> list[RankedChunk]:
    """The foremost chunks, or all of them, best first: words count more here, for the lines in a chunk too."""
    earned = _earned(keywords, meaning, meaning_weight)
    bonuses = _bonuses(query, proposed.values(), earned)
    worths = [own + bonus for own, bonus in zip(earned, bonuses, strict=True)]
    most = len(worths) if everything else min(foremost, len(worths))
    least = sorted(worths, reverse=True)[most - 1] if most else 0.0
    ordered = sorted(
        [
            (
                -worth,
                chunk.source,
                chunk.path,
                chunk.ordinal,
                RankedChunk(chunk, by_word, by_meaning, bonus, id_=id_),
            )
            for worth, (id_, chunk), by_word, by_meaning, bonus in zip(
                worths, proposed.items(), keywords, meaning, bonuses, strict=True
            )
            if worth >= least
        ]
    )  # no two chunks have the same place, so that nothing after it is ever compared
    ranked = [chunk for _, _, _, _, chunk in ordered[:most]]
    _look_beside(ranked, foremost)
    return ranked


def _earned(keywords: Sequence[float], meaning: Sequence[float], meaning_weight: float) -> list[float]:
    """What chunks are worth by their words and their meaning."""
    words_weight = 1.0 - meaning_weight
    return [
        words_weight * by_word + meaning_weight * by_meaning
        for by_word, by_meaning in zip(keywords, meaning, strict=True)
    ]


def _bonuses(query: ParsedQuery, chunks: Collection[Chunk], earned: Sequence[float]) -> list[float]:
    """What chunks are worth beyond that."""
    of_talk = [_of_talk(chunk, own) for chunk, own in zip(chunks, earned, strict=True)]
    if not query.days:
        return of_talk
    return [
        (DAY_BONUS if names_day(query, chunk.day) else 0.0) + bonus
        for chunk, bonus in zip(chunks, of_talk, strict=True)
    ]


def _of_talk(chunk: Chunk, own: float) -> float:
    """What a chunk of a transcript gains because it begins what a person said, or loses because it does not."""
    if chunk.source != "sessions":
        return 0.0
    if chunk.text.startswith("User:"):
        return min(ASKED_BONUS, own)
    return -min(ANSWERED_MALUS, _MOST_LOST * own)


def _look_beside(ranked: Sequence[RankedChunk], foremost: int) -> None:
    """Note what the words of the neighbours say; only the foremost are looked at, however many are read."""
    keywords = {}
    for item in ranked[:foremost]:
        chunk = item.chunk
        keywords[chunk.source, chunk.path, chunk.ordinal] = item.keywords
    for item in ranked:
        source, path, ordinal = item.chunk.source, item.chunk.path, item.chunk.ordinal
        before = keywords.get((source, path, ordinal - 1), 0.0)
        after = keywords.get((source, path, ordinal + 1), 0.0)
        item.neighbours = max(before, after)
