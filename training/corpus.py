"""The texts that the embedder learns from, put together from the inputs: short and long, ten languages, weighed.

Everything is drawn with a seed. What shares eight words in a row with an evaluation set is left out before
(`training.overlap`); the share-alike part can be left out as a whole.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from training import inputs, overlap

# Sources of documentation have tens of thousands of sections; dialogue and everyday questions have few.
MOST_OF_A_SOURCE = 5_000
MOST_OF_TRANSLATIONS = 12_000  # a language
LONGEST = 640  # characters, about a window of what is searched


class Corpus(NamedTuple):
    """Texts to be near their teacher, and pairs to be near each other."""

    texts: dict[str, list[str]]  # by language
    answers: list[tuple[str, str]]  # question, passage
    same: list[tuple[str, str]]  # two ways to say one thing, in one language or in two
    log: dict[str, int]


def read_corpus(
    data: Path, packages: Path, sentences: Path, *, barred: overlap.Grams, seed: int, share_alike: bool = True
) -> Corpus:
    """All texts and pairs, shuffled."""
    chance = random.Random(seed)
    log: Counter[str] = Counter()
    texts: dict[str, list[str]] = {language: [] for language in inputs.LANGUAGES}
    answers: list[tuple[str, str]] = []
    same: list[tuple[str, str]] = []

    by_source: dict[tuple[str, str], list[inputs.Pair]] = {}
    files = ["pairs-permissive.jsonl.xz", *(["pairs-sharealike.jsonl.xz"] if share_alike else [])]
    for file in files:
        for pair in inputs.read_pairs(data / file):
            by_source.setdefault((pair.source, pair.language), []).append(pair)
    for (source, language), pairs in sorted(by_source.items()):
        chance.shuffle(pairs)
        kept = []
        for pair in pairs[: 2 * MOST_OF_A_SOURCE]:
            if overlap.shares(barred, pair.question) or overlap.shares(barred, pair.passage):
                log[f"left out, in an evaluation set: {source}"] += 1
            else:
                kept.append(pair)
        kept = kept[:MOST_OF_A_SOURCE]
        log[f"pairs: {source} ({language})"] = len(kept)
        into = same if source in ("disflqa", "parakqc") else answers
        into += [(pair.question[:LONGEST], pair.passage[:LONGEST]) for pair in kept]
        if language in texts:
            texts[language] += [text[:LONGEST] for pair in kept for text in (pair.question, pair.passage)]

    per_language: dict[str, list[tuple[str, str]]] = {}
    for language, english, other in inputs.read_translations(data / "parallel.jsonl.xz"):
        per_language.setdefault(language, []).append((english[:LONGEST], other[:LONGEST]))
    for language, translations in sorted(per_language.items()):
        chance.shuffle(translations)
        kept_here = translations[:MOST_OF_TRANSLATIONS]
        log[f"translations ({language})"] = len(kept_here)
        same += kept_here
        if language in texts:
            texts[language] += [other for _, other in kept_here]
            texts["en"] += [english for english, _ in kept_here[:2_000]]

    for language in inputs.LANGUAGES:
        names = {"zh": ("zh-CN", "zh-TW")}.get(language, (language,))
        spoken = [
            line for name in names for line in inputs.read_lines(sentences / f"{name}.txt") if len(line) > 3
        ]
        chance.shuffle(spoken)
        log[f"sentences ({language})"] = len(spoken)
        texts[language] += spoken

    words = everyday_words(packages / "cldr", chance)
    log["words for emoji, pairs"] = len(words)
    same += words
    meanings = word_meanings(packages / "wordnet", chance)
    log["meanings of words, pairs"] = len(meanings)
    same += meanings
    texts["en"] += [text for pair in meanings[:120_000] for text in pair]
    for language_texts in texts.values():
        chance.shuffle(language_texts)
    chance.shuffle(answers)
    chance.shuffle(same)
    return Corpus(texts, answers, same, dict(log))


def everyday_words(folder: Path, chance: random.Random) -> list[tuple[str, str]]:
    """Words of two languages, or of one, that name the same picture; names count more than words around them."""
    annotations = inputs.read_annotations(folder)
    pairs: list[tuple[str, str]] = []
    for emoji in annotations["en"]:
        per_language = {language: words.get(emoji, []) for language, words in annotations.items()}
        for language, words in per_language.items():
            if not words:
                continue
            for other in inputs.LANGUAGES:
                others = per_language[other]
                if other == language or not others:
                    continue
                pairs.append((words[0], others[0]))
                pairs.append((" ".join(_some(words, chance)), " ".join(_some(others, chance))))
    return pairs


def _some(words: Sequence[str], chance: random.Random) -> list[str]:
    return chance.sample(list(words), k=min(len(words), chance.randint(1, 4)))


def word_meanings(folder: Path, chance: random.Random) -> list[tuple[str, str]]:
    """A word with another of the same meaning, with what it means, and with an example of its use."""
    pairs: list[tuple[str, str]] = []
    for words, meaning, examples in inputs.read_wordnet(folder):
        if any(word[:1].isupper() for word in words):
            continue  # names of people, places and species
        if len(words) > 1:
            first, second = chance.sample(words, 2)
            pairs.append((first, second))
        pairs.append((", ".join(words[:3]), meaning))
        pairs += [(f"{words[0]}: {meaning}", example) for example in examples[:1]]
    return pairs


def numbered(corpus: Corpus) -> dict[str, Any]:
    """Every text once, and the rest by its number: what travels to the machine that trains."""
    number: dict[str, int] = {}

    def put(text: str) -> int:
        return number.setdefault(text, len(number))

    texts = {language: [put(text) for text in dict.fromkeys(some)] for language, some in corpus.texts.items()}
    answers = [(put(left), put(right)) for left, right in corpus.answers]
    same = [(put(left), put(right)) for left, right in corpus.same]
    return {"all": list(number), "texts": texts, "answers": answers, "same": same}
