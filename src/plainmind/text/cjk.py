"""Scripts written without spaces: how much room they take, and how they are searched."""

from __future__ import annotations

import re
from functools import cache
from operator import add

_HAN = r"\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = (
    r"\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3105-\u312f\u31a0-\u31bf"
)
_HANGUL = r"\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
_THAI_LAO = r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"
_KHMER_BURMESE = r"\u1780-\u17d3\u17dc\u17dd\u1000-\u103f\u1050-\u109d\uaa60-\uaa7b"

WIDE_WEIGHT = 4


# Compiled when first needed: ranges beyond the basic plane take milliseconds, which an English query saves.
@cache
def spaceless_run() -> re.Pattern[str]:
    """Match a run of letters of scripts without spaces, as one group."""
    return re.compile(f"([{_HAN}{_KANA}{_HANGUL}{_THAI_LAO}{_KHMER_BURMESE}]+)")


@cache
def wide_run() -> re.Pattern[str]:
    """Match East Asian letters, punctuation and full-width forms: about one token each for a model."""
    return re.compile(
        r"[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
        r"\U00020000-\U0003ffff]+"
    )


def weight(text: str) -> int:
    """Measure text in characters of English: four to a token, so that a CJK character counts four."""
    if text.isascii():
        return len(text)
    return len(text) + (WIDE_WEIGHT - 1) * sum(map(len, wide_run().findall(text)))


def letters_without_spaces(text: str) -> int:
    """Count the letters of scripts that are written without spaces."""
    return sum(map(len, spaceless_run().findall(text)))


def bigrams(run: str) -> list[str]:
    """Return the overlapping pairs of a run: 東京都 → 東京, 京都; a character alone stays as it is."""
    return list(map(add, run, run[1:])) if len(run) > 1 else [run]
