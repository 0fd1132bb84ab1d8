"""Everyday language: sentences people translated for each other, and words that mean the same in two languages.

A folder holds `sentences/` and `words/`. Sentences: `LANGUAGE.txt` with English, a tab and the other language, and
`FIRST-SECOND.*.tsv` with both languages' codes before both texts (Tatoeba, CC-BY 2.0 FR). Words: `*.tab` with the
number of a meaning, `LANGUAGE:lemma` and a word (wordnets and what Wiktionary adds to them), and `cedict*.gz`.
Two sentences of one language that are translations of the same third one say the same in other words.
"""

from __future__ import annotations

import gzip
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

CODES = {
    "eng": "en", "zho": "zh", "cmn": "zh", "jpn": "ja", "kor": "ko", "deu": "de",
    "spa": "es", "fra": "fr", "por": "pt", "rus": "ru", "ita": "it",
}  # fmt: skip
LONGEST = 200  # characters of a sentence
MOST_OF_A_PAIR = 60_000  # sentences of two languages
FEWEST_OF_A_PAIR = 24_000  # of English and another: what is rarer is repeated, up to four times
# The languages whose words are paired with each other's, not with English alone.
CENTRAL = ("en", "zh", "ja", "ko", "de", "es")
_WORD = re.compile(r"[\w'’·・ー-]+")
_SENSE = re.compile(r"^(\S+) (\S+) \[[^]]*\] /(.*)/$")
_BRACKETS = re.compile(r"\s*[(\[（][^)\]）]*[)\]）]\s*")
_REFERENCES = ("variant of", "see ", "abbr.", "surname", "CL:", "old variant", "used in", "Japanese ")


class Sentence(NamedTuple):
    """A sentence in one language and in another, or in the same in other words."""

    first_language: str
    first: str
    second_language: str
    second: str


def read_sentences(folder: Path) -> Iterator[Sentence]:
    """All pairs of the folder's files, English or the earlier code first."""
    for file in sorted(folder.glob("*.txt")):
        language = file.stem.split("-")[0]
        for line in file.read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            if len(fields) >= 2:
                yield Sentence("en", fields[0].strip(), language, fields[1].strip())
    for file in sorted(folder.glob("*.tsv")):
        for line in file.read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            languages = [CODES.get(code.split("_")[0], "") for code in fields[:2]]
            if len(fields) == 4 and all(languages):
                pair = ((languages[0], fields[2].strip()), (languages[1], fields[3].strip()))
                (first_language, first), (second_language, second) = sorted(
                    pair, key=lambda one: one[0] != "en"
                )
                yield Sentence(first_language, first, second_language, second)


def choose_sentences(sentences: Iterable[Sentence], seed: int) -> list[Sentence]:
    """Each pair once, of no two languages too many, of English and another not too few."""
    chance = random.Random(seed)
    by_pair: dict[tuple[str, str], dict[Sentence, None]] = defaultdict(dict)
    for one in sentences:
        if 0 < len(one.first) <= LONGEST and 0 < len(one.second) <= LONGEST and one.first != one.second:
            by_pair[one.first_language, one.second_language][one] = None
    chosen: list[Sentence] = []
    for (first, _), kept in sorted(by_pair.items()):
        mine = list(kept)
        chance.shuffle(mine)
        times = min(4, -(-FEWEST_OF_A_PAIR // len(mine))) if first == "en" else 1
        chosen += mine[:MOST_OF_A_PAIR] * times
    return chosen


def reworded(sentences: Iterable[Sentence], seed: int) -> list[Sentence]:
    """Two sentences of one language that have a translation in common and less than half of their words."""
    chance = random.Random(seed)
    meeting: dict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
    for one in sentences:
        if (
            len(one.first) <= LONGEST
            and len(one.second) <= LONGEST
            and one.first_language != one.second_language
        ):
            meeting[one.first_language, one.second_language, one.second][one.first] = None
            meeting[one.second_language, one.first_language, one.first][one.second] = None
    found: dict[Sentence, None] = {}
    for (language, _, _), variants in meeting.items():
        if len(variants) < 2:
            continue
        some = list(variants)
        chance.shuffle(some)
        for left, right in pairwise(some[:4]):
            if _shared(left, right) < 0.5:
                found[Sentence(language, left, language, right)] = None
    return list(found)


def _shared(left: str, right: str) -> float:
    """How many of the words, or characters where words are not spaced, two texts have in common."""
    parts = [set(_WORD.findall(text.lower())) for text in (left, right)]
    if max(map(len, parts), default=0) < 3 and any(text > "⺀" for text in (left, right)):
        parts = [set(left), set(right)]
    return len(parts[0] & parts[1]) / max(1, min(len(parts[0]), len(parts[1])))


def read_meanings(folder: Path) -> dict[str, dict[str, list[str]]]:
    """By the number of a meaning: its words in each language."""
    meanings: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for file in sorted(folder.glob("*.tab")):
        for line in file.read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            if len(fields) < 3 or line.startswith("#"):
                continue
            language, _, kind = fields[1].partition(":")
            word = fields[-1].replace("_", " ").replace("+", "").strip()
            if kind.startswith("lemma") and language in CODES and word:
                words = meanings[fields[0]].setdefault(CODES[language], [])
                if word not in words:
                    words.append(word)
    return meanings


def read_chinese(file: Path) -> Iterator[tuple[str, str]]:
    """(Chinese, English) of CC-CEDICT: a word in either script with each of its first two senses."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            if not (found := _SENSE.match(line.strip())) or line[0].isascii() or len(found[2]) > 4:
                continue
            senses = [one for one in found[3].split("/") if not one.startswith(_REFERENCES)]
            for sense in senses[:2]:
                plain = _BRACKETS.sub(" ", sense).strip().removeprefix("to ")
                if plain and len(plain.split()) <= 4 and "[" not in plain:
                    yield from dict.fromkeys(((found[2], plain), (found[1], plain)))


def word_pairs(meanings: dict[str, dict[str, list[str]]], seed: int) -> list[tuple[str, str]]:
    """Words of two languages, or of one, that have a meaning in common."""
    chance = random.Random(seed)
    pairs: dict[tuple[str, str], None] = {}
    for per_language in meanings.values():
        languages = sorted(per_language)
        for at, left in enumerate(languages):
            for right in languages[at:]:
                if "en" not in (left, right) and not (left in CENTRAL and right in CENTRAL):
                    continue
                lefts, rights = per_language[left][:6], per_language[right][:6]
                for word in chance.sample(lefts, min(2, len(lefts))):
                    other = chance.choice(rights)
                    if other.lower() != word.lower():
                        pairs[word, other] = None
    return list(pairs)
