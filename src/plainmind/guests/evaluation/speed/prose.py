"""One passage of a synthetic note: a heading and a list, with the names, numbers and dates that real notes have."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from plainmind.guests.evaluation.speed.vocabulary import LAST_DAY, Vocabulary

_FEWEST_WORDS, _MOST_WORDS = 115, 205
_SENTENCES = 16  # in a passage of a language without spaces
_WITH_DETAIL = 0.25  # of all lines


def passage(
    chance: np.random.Generator, known: Vocabulary, topic: int, language: str
) -> tuple[str, list[str]]:
    """Write a heading and the lines under it, some 1,200 characters or 1,000 bytes of Chinese."""
    if language != "english":
        return _without_spaces(chance, known.sentences[language])
    count = int(chance.integers(_FEWEST_WORDS, _MOST_WORDS))
    words: list[str] = known.words[known.draw(chance, topic, count)].tolist()
    lines = []
    start = 3
    for length, detailed in zip(
        chance.integers(11, 25, size=count // 11), chance.random(count // 11) < _WITH_DETAIL, strict=True
    ):
        if start >= count:
            break
        sentence = " ".join(words[start : start + length]).capitalize()
        lines.append(f"- {sentence}{_detail(chance, words) if detailed else ''}.")
        start += int(length)
    return " ".join(words[:3]).capitalize(), lines


def _without_spaces(chance: np.random.Generator, sentences: tuple[str, ...]) -> tuple[str, list[str]]:
    heading, *drawn = (sentences[at] for at in chance.integers(len(sentences), size=_SENTENCES + 1))
    pairs = zip(drawn[::2], drawn[1::2], strict=True)
    return heading[:12].rstrip("。"), [f"- {first}{second}" for first, second in pairs]


def _detail(chance: np.random.Generator, words: list[str]) -> str:
    """What a keyword index must keep whole: a hash, a day, a version, a symbol, a person."""
    kind, number = int(chance.integers(5)), int(chance.integers(2**28))
    if kind == 0:
        return f" `{number:07x}`"
    if kind == 1:
        return f" on {LAST_DAY - timedelta(days=number % 3_000)}"
    if kind == 2:
        return f" with v{number % 9}.{number % 40}.{number % 7}"
    if kind == 3:
        return f" in `{words[0]}_{words[-1]}.py`"
    return f" says {words[1].capitalize()} {words[-2].capitalize()}"
