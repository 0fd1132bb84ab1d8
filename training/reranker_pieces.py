"""More words for encoders that know English alone: pieces of other languages, and where each begins.

A piece begins between the words of English that mean about the same, by our own table: `Hund` near `dog`. So an encoder
reads another language from the first step as if most words were translated, and learns the rest.

    pieces.txt  a line each: the encoder's own in their order, then the new ones
    begun.npz   of each new one four of the encoder's own, and how much of each
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from plainmind.embed.builtin import BuiltinEmbedder
from plainmind.guests.rerank.word_pieces import IDEOGRAPH, LONGEST_RUN, WordPieces, split_words
from training import everyday, inputs, written

# How many pieces of each; those that English has as well, or another language before it, are not counted twice.
MOST = {
    "de": 2700,
    "es": 2000,
    "fr": 2000,
    "it": 1600,
    "pt": 1600,
    "ru": 2700,
    "zh": 6000,
    "ja": 3400,
    "ko": 3200,
}
_LETTERS, _OFTEN = 3_600, 20  # single ones that come before all others, if they are used
_LINES = 60_000  # of a kind of text, a language
_OF_A_SOURCE = 1_500
_TIMES = {"written": 6, "everyday": 2, "spoken": 2, "pairs": 1, "manuals": 1}
_TOGETHER = 12_000  # ideographs and what they are together, of which the most used are chosen
_NEIGHBOURS = 4
DIMS = 256  # of our own table
_SHARPNESS = 12.0
_REPEATED = 60  # times that a word counts when parts are looked for
_ENGLISH = re.compile(r"[a-z]{2,}")
_ACCENTED = re.compile(r"[a-z]*[\u00c0-\u024f][a-z\u00c0-\u024f]*|[\u0400-\u04ff]*[йё][\u0400-\u04ff]*")


Texts = dict[str, list[tuple[str, int]]]


def read_texts(data: Path, spoken: Path, folder: Path, seed: int) -> Texts:
    """By language texts of all kinds, and how often each counts: everyday ones several times."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for document in written.read_documents():
        texts = found[document.language]["written"]
        texts += document.lines
        texts += [one.text for one in document.questions if one.language == document.language]
    for file in sorted(spoken.glob("*.txt")):
        found[file.stem[:2]]["spoken"] += inputs.read_lines(file)
    for one in everyday.read_sentences(folder):
        found[one.first_language]["everyday"].append(one.first)
        found[one.second_language]["everyday"].append(one.second)
    for language, _, other in inputs.read_translations(data / "parallel.jsonl.xz"):
        found[language]["manuals"].append(other)
    for name in ("pairs-permissive.jsonl.xz", "pairs-sharealike.jsonl.xz"):
        seen: Counter[tuple[str, str]] = Counter()
        for pair in inputs.read_pairs(data / name):
            seen[pair.language, pair.source] += 1
            if seen[pair.language, pair.source] <= _OF_A_SOURCE:
                found[pair.language]["pairs"] += [pair.question, pair.passage]
    chance = random.Random(seed)
    return {
        language: [
            (text, _TIMES[kind])
            for kind, texts in sorted(kinds.items())
            for text in chance.sample(texts, min(_LINES, len(texts)))
        ]
        for language, kinds in found.items()
    }


def choose(texts: Texts, known: Iterable[str]) -> list[str]:
    """The new pieces: those that each language uses most, words and parts of words and runs of ideographs."""
    have = set(known)
    chosen: list[str] = []
    for language, most in MOST.items():
        words: Counter[str] = Counter()
        runs: Counter[str] = Counter()
        for text, times in texts.get(language, ()):
            here = split_words(text)
            for word in here:
                if not IDEOGRAPH.fullmatch(word):
                    words[word] += times
            for run in _runs(here):
                runs[run] += times
        pieces = [*_ideographs(runs), *_parts(words, most)]
        counts = _uses(pieces, have, words, runs)
        alone: Counter[str] = Counter()  # an ideograph, whether or not it is part of a longer piece
        for run, count in runs.items():
            for letter in run:
                alone[letter] += count
        new = [piece for piece in dict.fromkeys(pieces) if piece not in have]
        new.sort(key=lambda piece: -counts[piece])
        letters = [piece for piece in new if len(piece) == 1 and max(counts[piece], alone[piece]) > _OFTEN]
        letters.sort(key=lambda piece: -max(counts[piece], alone[piece]))
        kept = list(islice(dict.fromkeys([*letters[:_LETTERS], *new]), most))
        have.update(kept)
        chosen += kept
    return chosen


def _runs(words: Sequence[str]) -> Iterator[str]:
    """Ideographs that stand side by side."""
    run = ""
    for word in [*words, ""]:
        if word and IDEOGRAPH.fullmatch(word):
            run += word
        elif run:
            yield run
            run = ""


def _ideographs(runs: Mapping[str, int]) -> list[str]:
    """Single ones, and some that often stand together."""
    counts: Counter[str] = Counter()
    for run, count in runs.items():
        for size in range(1, LONGEST_RUN + 1):
            for at in range(len(run) - size + 1):
                counts[run[at : at + size]] += count
    alone = [piece for piece, count in counts.items() if len(piece) == 1 and count > _OFTEN]
    return [*alone, *(piece for piece, _ in counts.most_common(_TOGETHER))]


def _parts(words: Mapping[str, int], most: int) -> list[str]:
    tokenizer = Tokenizer(models.WordPiece({}))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(vocab_size=3 * most, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(
        (f"{word} " * min(count, _REPEATED) for word, count in words.items() if len(word) < 40), trainer
    )
    often = sorted(words, key=lambda word: -words[word])[: 3 * most]
    return [*often, *(piece for piece in tokenizer.get_vocab() if piece != "[UNK]")]


def _uses(
    pieces: Sequence[str], have: set[str], words: Mapping[str, int], runs: Mapping[str, int]
) -> Counter[str]:
    """How often each piece is used when all of them are known."""
    names = ["[UNK]", *dict.fromkeys([*have - {"[UNK]"}, *pieces])]
    cutter = WordPieces(names)
    counts: Counter[str] = Counter()
    for texts in (words, runs):
        for text, count in texts.items():
            for number in cutter.encode(text):
                counts[names[number]] += count
    return counts


class Meanings(dict[str, "np.ndarray"]):
    """Vectors of our own table, by text; as it is usually written, for words that lost their accents."""

    def __init__(self, texts: Texts) -> None:
        super().__init__()
        self._embedder = BuiltinEmbedder()
        written_as: dict[str, Counter[str]] = defaultdict(Counter)
        for some in texts.values():
            for text, times in some:
                for word in _ACCENTED.findall(text.lower()):
                    for plain in split_words(word)[:1]:
                        written_as[plain][word] += times
        self._usual = {plain: words.most_common(1)[0][0] for plain, words in written_as.items()}

    def __missing__(self, text: str) -> np.ndarray:
        usual = unicodedata.normalize("NFC", self._usual.get(text, text))
        (found,) = self._embedder.embed_documents([usual])
        self[text] = vector = np.zeros(DIMS, np.float32) if found is None else np.asarray(found, np.float32)
        return vector


def begin(
    new: Sequence[str], own: Sequence[str], vectors: Mapping[str, np.ndarray], counts: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Of each new piece the numbers of some of the encoder's own, and how much of each: the nearest words of English.

    What stands within a word begins as the parts that the encoder knew for it.
    """
    words = [at for at, piece in enumerate(own) if _ENGLISH.fullmatch(piece) and counts.get(piece, 0) > 3]
    table = np.stack([vectors[own[at]] for at in words])
    cutter = WordPieces(own)
    unknown = cutter.number("[UNK]")
    numbers = np.full((len(new), _NEIGHBOURS), unknown, np.int32)
    shares = np.zeros((len(new), _NEIGHBOURS), np.float32)
    for row, piece in enumerate(new):
        text = piece.removeprefix("##")
        likeness = table @ vectors[text]
        nearest = np.argpartition(-likeness, _NEIGHBOURS)[:_NEIGHBOURS]
        weight = np.exp(_SHARPNESS * likeness[nearest])
        numbers[row], shares[row] = np.array(words)[nearest], weight / weight.sum()
        if piece.startswith("##"):
            parts = [one for one in cutter.cut(piece) if one != unknown][:_NEIGHBOURS]
            if parts:
                numbers[row, : len(parts)], shares[row] = parts, 0.0
                shares[row, : len(parts)] = 1 / len(parts)
    return numbers, shares


def write(data: Path, packages: Path, folder: Path, own: Sequence[str], out: Path, seed: int) -> list[str]:
    """Choose the pieces, write both files, and give all pieces."""
    texts = read_texts(data, packages / "sentences", folder / "sentences", seed)
    new = choose(texts, own)
    counts: Counter[str] = Counter()
    for text, times in texts["en"]:
        for word in split_words(text):
            counts[word] += times
    numbers, shares = begin(new, own, Meanings(texts), counts)
    pieces = [*own, *new]
    (out / "pieces.txt").write_text("".join(f"{one}\n" for one in pieces), encoding="utf-8")
    np.savez_compressed(
        out / "begun.npz", numbers=numbers.astype(np.uint16), shares=shares.astype(np.float16)
    )
    return pieces
