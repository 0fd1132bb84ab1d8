"""Prepare what a table goes on with: `python -m training.prepare_everyday DATA INPUTS EVERYDAY MODEL OUT EVALS…`.

Writes `pairs.a.npz`, `pairs.b.npz` and `pairs.c.npz`: pairs of everyday language, questions with what answers, and some
texts of the first training as ids of pieces, in several files because a lent machine takes so much at a time;
`english.npy`: how much of each piece's use is English; and a log with checksums and what was left out.
The vocabulary is the model's, so whatever is made has its size and its cuts.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plainmind.embed.builtin import SHARED_ROWS, Tokenizer
from training import corpus, everyday, inputs, natural, overlap, written
from training.vocabulary import make_vocabulary

WIDTHS = {
    "sentences": 24,
    "reworded": 24,
    "words": 8,
    "meanings": 32,
    "manuals": 96,
    "asked": 64,
    "natural": 96,
    "wordings": 24,
    "short": 32,
    "long": 192,
}
MOST = {"sentences": 700_000, "manuals": 15_000, "natural": 40_000, "short": 250_000, "long": 30_000}
MOST_WORDS = 60_000  # of the dictionary, and of the words for emoji
MOST_OF_A_SOURCE = 1_500
MOST_SPOKEN = 12_000  # sentences of Common Voice, a language
_EUROPEAN = ("de", "es", "fr", "it", "pt")

Texts = Sequence[str]
Ids = list["np.ndarray"]


class Cutter:
    """Texts as ids of pieces."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._tokenizer = Tokenizer(make_vocabulary(pieces))
        self.rows = len(pieces) + SHARED_ROWS

    def cut(self, text: str, width: int = 10**6) -> np.ndarray:
        """The ids of a text, not more than so many."""
        return np.array(self._tokenizer.encode(text)[:width], np.uint16)

    def count(self, texts: Iterable[str]) -> np.ndarray:
        """How often each piece comes."""
        counts = np.zeros(self.rows)
        for text in texts:
            np.add.at(counts, self.cut(text).astype(np.int64), 1)
        return counts


def pack_texts(name: str, texts: Ids) -> dict[str, np.ndarray]:
    """Texts one after the other, and how long each is."""
    return {
        f"{name}.flat": np.concatenate(texts),
        f"{name}.lengths": np.array([len(one) for one in texts], np.uint8),
    }


def pack_pairs(name: str, pairs: Iterable[tuple[str, str]], cutter: Cutter) -> dict[str, np.ndarray]:
    """Each text once, and pairs by their numbers; a text without a piece that is known is in none."""
    numbers: dict[bytes, int] = {}
    texts: Ids = []
    sides: tuple[list[int], list[int]] = ([], [])
    for pair in pairs:
        both = [cutter.cut(text, WIDTHS[name]) for text in pair]
        if not all(len(one) for one in both):
            continue
        for side, one in zip(sides, both, strict=True):
            number = numbers.setdefault(one.tobytes(), len(texts))
            if number == len(texts):
                texts.append(one)
            side.append(number)
    left, right = (np.array(side, np.int32) for side in sides)
    return {**pack_texts(name, texts), f"{name}.left": left, f"{name}.right": right}


def english_share(cutter: Cutter, english: Texts, others: Texts, pieces: Sequence[str]) -> np.ndarray:
    """Of each piece how much of its use is English, 0 to 1; one half where it is not known."""
    here, there = (counts / max(counts.sum(), 1) for counts in (cutter.count(english), cutter.count(others)))
    share = (here + 1e-9) / (here + there + 2e-9)
    share[: len(pieces)][[not piece.isascii() for piece in pieces]] = 0
    share[len(pieces) :] = 0
    return np.asarray(share, np.float32)


def known_texts(
    data: Path, spoken: dict[str, list[str]], seed: int
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Texts of the first training, some of each source; those that are English; and its translations."""
    chance = random.Random(seed)
    seen: Counter[tuple[str, str]] = Counter()
    texts: list[str] = []
    english_texts: list[str] = []
    for file in ("pairs-permissive.jsonl.xz", "pairs-sharealike.jsonl.xz"):
        for pair in inputs.read_pairs(data / file):
            seen[pair.source, pair.language] += 1
            if seen[pair.source, pair.language] <= MOST_OF_A_SOURCE:
                both = [pair.question[: corpus.LONGEST], pair.passage[: corpus.LONGEST]]
                texts += both
                english_texts += both if pair.language == "en" else []
    manuals = [
        (english[: corpus.LONGEST], other[: corpus.LONGEST])
        for at, (_, english, other) in enumerate(inputs.read_translations(data / "parallel.jsonl.xz"))
        if at % 3 == 0
    ]
    texts += [other for _, other in manuals]
    for lines in spoken.values():
        texts += lines[:MOST_SPOKEN]
    chance.shuffle(texts)
    chance.shuffle(manuals)
    return texts, english_texts, manuals


def unbarred(pairs: Iterable[tuple[str, str]], barred: overlap.Grams) -> list[tuple[str, str]]:
    """Without what shares words with an evaluation set."""
    return [pair for pair in pairs if not any(overlap.shares(barred, text) for text in pair)]


def some_natural(folder: Path, barred: overlap.Grams, chance: random.Random) -> list[tuple[str, str]]:
    """Questions that people asked, with the sentences that answer, some of all."""
    found = unbarred(written.read_sides(natural.read_documents(folder)), barred)
    chance.shuffle(found)
    return found[: MOST["natural"]]


def _save(file: Path, arrays: dict[str, Any]) -> None:
    np.savez(file, **arrays)


def main() -> None:
    """Write everything into OUT."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("data", "packages", "everyday", "model", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("evals", type=Path, nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    chance = random.Random(given.seed)
    pieces = (given.model / "pieces").read_text(encoding="utf-8").split("\n")[:-1]
    cutter = Cutter(pieces)
    barred: overlap.Grams = frozenset().union(*(overlap.collect_folder(folder) for folder in given.evals))

    found = list(everyday.read_sentences(given.everyday / "sentences"))
    sentences = [
        one
        for one in found
        if not overlap.shares(barred, one.first) and not overlap.shares(barred, one.second)
    ]
    log: dict[str, object] = {"left out, in an evaluation set": len(found) - len(sentences)}
    chosen = everyday.choose_sentences(sentences, given.seed)
    chance.shuffle(chosen)
    words = everyday.word_pairs(everyday.read_meanings(given.everyday / "words"), given.seed)
    for file in sorted((given.everyday / "words").glob("cedict*.gz")):
        chinese = [
            pair
            for pair in everyday.read_chinese(file)
            if len(cutter.cut(pair[0])) == 1 and len(cutter.cut(pair[1])) <= 3
        ]
        words += chance.sample(chinese, min(MOST_WORDS, len(chinese)))
    pictures = corpus.everyday_words(given.packages / "cldr", chance)
    words += chance.sample(pictures, min(MOST_WORDS, len(pictures)))
    meanings = corpus.word_meanings(given.packages / "wordnet", chance)

    spoken: dict[str, list[str]] = defaultdict(list)
    for language in inputs.LANGUAGES:
        for name in {"zh": ("zh-CN", "zh-TW")}.get(language, (language,)):
            lines = [
                line
                for line in inputs.read_lines(given.packages / "sentences" / f"{name}.txt")
                if len(line) > 3
            ]
            chance.shuffle(lines)
            spoken[language] += lines
    texts, english, manuals = known_texts(given.data, spoken, given.seed)
    cuts = [cutter.cut(text, WIDTHS["long"]) for text in texts]
    short = [one for one in cuts if 0 < len(one) <= WIDTHS["short"]]
    long = [one for one in cuts if len(one) > WIDTHS["short"]]

    pairs = {
        "sentences": [(one.first, one.second) for one in chosen[: MOST["sentences"]]],
        "reworded": [(one.first, one.second) for one in everyday.reworded(sentences, given.seed)],
        "words": words,
        "meanings": meanings,
        "manuals": manuals[: MOST["manuals"]],
        "asked": unbarred(written.read_sides(written.read_documents()), barred),
        "natural": some_natural(given.packages / "natural", barred, chance),
        "wordings": unbarred(written.read_wordings(), barred),
    }
    packed = {kind: pack_pairs(kind, some, cutter) for kind, some in pairs.items() if some}
    _save(given.out / "pairs.a.npz", packed.pop("sentences"))
    asked = [packed.pop(kind, {}) for kind in ("asked", "natural", "wordings")]
    _save(given.out / "pairs.c.npz", {name: array for some in asked for name, array in some.items()})
    rest = {name: array for some in packed.values() for name, array in some.items()}
    rest |= pack_texts("short", short[: MOST["short"]]) | pack_texts("long", long[: MOST["long"]])
    _save(given.out / "pairs.b.npz", rest)
    english += [*spoken["en"], *(one.first for one in chosen if one.first_language == "en")]
    others = [line for language in _EUROPEAN for line in spoken[language][:20_000]]
    others += [one.second for one in chosen if one.second_language in _EUROPEAN]
    np.save(given.out / "english.npy", english_share(cutter, english, others, pieces))
    log["pairs"] = {kind: len(some) for kind, some in pairs.items()}
    log["texts"] = {"short": len(short), "long": len(long)}
    files = (
        file for folder in ("sentences", "words") for file in sorted((given.everyday / folder).iterdir())
    )
    log["inputs"] = {file.name: inputs.checksum(file) for file in files}
    (given.out / "pairs.log.json").write_text(json.dumps(log, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
