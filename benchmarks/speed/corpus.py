"""A corpus of any size, the same for the same seed: its words, its vectors, its notes, and questions about them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from plainmind.base.model import Chunk
from plainmind.base.value import value
from plainmind.text.terms import STOP_WORDS

Numbers: TypeAlias = npt.NDArray[np.int64]

WORDS = os.path.join(os.path.dirname(__file__), "words")  # one file a language, most frequent words first
LAST_DAY = date(2026, 11, 1)  # of the corpus: figures of tomorrow compare with those of today
SYLLABLES = "ka lo mer tin va or bel dun fi gra hol jen nor pel qui ru".split()  # noqa: SIM905
RARE_WORDS = 40_000
TOPICS = 240
WORDS_OF_TOPIC = 160
TOPICAL_SHARE = 0.3  # of all words in a text
SENTENCES = 2_000  # kept ready in each language that is written without spaces
Matrix: TypeAlias = npt.NDArray[np.float32]
# Vectors in clusters that are as hard to tell apart as those of the builtin model on real notes. Fitted to it: how fast
# the directions lose weight, how near the nearest chunks are to a question, how far away the others, and how many
# candidates by sign bits it takes to have the nearest among them.
# What a vector is the sum of: something that all share, two topics, the file, the chunk itself, noise.
_SHARED, _TOPIC, _SECOND, _FILE, _OWN, _NOISE = 0.35, 0.9, 0.35, 0.7, 0.7, 0.15
_ASKED = 1.7  # how far a question is from the chunk that it is about
_DECAY = 0.4  # the n-th direction weighs n to the minus this
_MOST_TOPICS = 240
# Streams of chance, apart from those of the text.
_CENTRES, _CHUNKS, _NEAR = 10, 11, 12
_FEWEST_WORDS, _MOST_WORDS = 115, 205
_SENTENCES = 16  # in a passage of a language without spaces
_WITH_DETAIL = 0.25  # of all lines
CHUNKS_PER_FILE = 10
MOST_SHORT_FILES = 1_000  # a larger corpus has longer files first, and then more of them
MOST_CHUNKS_PER_FILE = 100
TERMS_OF_QUESTION = 8
_LANGUAGES = ("english", "chinese", "japanese")
_SHARES = (0.90, 0.07, 0.03)
# Streams of chance: what is drawn for the text does not change with the number of dimensions.
_TEXT, _QUESTIONS = 1, 3


@value
class Vocabulary:
    """Words by rank. `cumulative[n]` is the share of all words that rank n or before it."""

    words: npt.NDArray[np.object_]
    rank_of: Mapping[str, int]
    cumulative: npt.NDArray[np.float64]
    topics: Numbers  # ranks, a row a topic
    topical: npt.NDArray[np.float64]  # the same shares within a topic
    sentences: dict[str, tuple[str, ...]]

    def draw(self, chance: np.random.Generator, topic: int, count: int) -> Numbers:
        """Ranks of the words of a text about one topic."""
        ranks = np.searchsorted(self.cumulative, chance.random(count))
        of_topic = self.topics[topic, np.searchsorted(self.topical, chance.random(count))]
        drawn: Numbers = np.where(chance.random(count) < TOPICAL_SHARE, of_topic, ranks)
        return drawn


def words_of(language: str) -> list[str]:
    """The frequent words of a language."""
    with open(os.path.join(WORDS, f"{language}.txt"), encoding="utf-8") as lines:
        return lines.read().split()


@cache
def vocabulary(seed: int) -> Vocabulary:
    """Make the words of a seed. Real ones come first; the rare ones, which no list holds, are invented."""
    chance = np.random.default_rng([seed, 0])
    frequent = words_of("english")
    words = [*frequent, *invented(chance, RARE_WORDS)]
    ranks = np.arange(len(frequent), len(words))
    topics = np.array([chance.choice(ranks, WORDS_OF_TOPIC, replace=False) for _ in range(TOPICS)])
    topics.sort(axis=1)
    return Vocabulary(
        words=np.array(words, dtype=object),
        rank_of={word: rank for rank, word in enumerate(words)},
        cumulative=zipf(len(words)),
        topics=topics,
        topical=zipf(WORDS_OF_TOPIC, flattened=10),
        sentences={
            language: tuple(_sentence(chance, words_of(language)) for _ in range(SENTENCES))
            for language in ("chinese", "japanese")
        },
    )


def zipf(count: int, *, flattened: int = 0) -> npt.NDArray[np.float64]:
    """Cumulative shares of words: the n-th is n times rarer than the first, or less where it is flattened."""
    weights = np.cumsum(1.0 / np.arange(1 + flattened, count + 1 + flattened))
    shares: npt.NDArray[np.float64] = weights / weights[-1]
    shares[-1] = 1.0
    return shares


def invented(chance: np.random.Generator, count: int) -> list[str]:
    """Words of two to four syllables, the short ones first, since frequent words are short."""
    words: list[str] = []
    longer = SYLLABLES
    while len(words) < count:
        longer = [first + second for first in longer for second in SYLLABLES]
        chance.shuffle(longer)
        words += longer
    return words[:count]


def _sentence(chance: np.random.Generator, words: list[str]) -> str:
    drawn = np.searchsorted(zipf(len(words)), chance.random(int(chance.integers(6, 13))))
    return "".join(words[rank] for rank in drawn) + "。"


@value
class _Space:
    """Directions of falling weight, turned so that each shows in every dimension."""

    dims: int
    weights: Matrix
    signs: Matrix

    def draw(self, chance: np.random.Generator, count: int) -> Matrix:
        """Rows of coordinates, to be added up and then turned."""
        return chance.standard_normal((count, len(self.weights)), dtype=np.float32)

    def turned(self, coordinates: Matrix) -> Matrix:
        """Vectors of length one on average.

        A Walsh-Hadamard transform rather than a product of matrices: what BLAS gives depends on the machine,
        and its threads would be measured along.
        """
        rows = coordinates * self.weights
        size, half = len(self.weights), 1
        while half < size:
            pairs = rows.reshape(len(rows), -1, 2, half)
            first, second = pairs[:, :, 0], pairs[:, :, 1]
            rows = np.stack([first + second, first - second], axis=2).reshape(len(rows), size)
            half *= 2
        return rows[:, : self.dims] * self.signs


def clustered(seed: int, file: int, topic: int, count: int, dims: int) -> Matrix:
    """The unit vectors of one file, a row a chunk."""
    chance = np.random.default_rng([seed, _CHUNKS, file])
    space, centres = _space(seed, dims), _centres(seed, dims)
    of_file = np.float32(_FILE) * space.draw(chance, 1)
    own = np.float32(_OWN) * space.draw(chance, count)
    second = chance.integers(_MOST_TOPICS, size=count)
    noise = chance.standard_normal((count, dims), dtype=np.float32) * np.float32(_NOISE / dims**0.5)
    topics = np.float32(_TOPIC) * centres[topic % _MOST_TOPICS] + np.float32(_SECOND) * centres[second]
    return unit(np.float32(_SHARED) * centres[-1] + topics + space.turned(of_file + own) + noise)


def near(vector: Matrix, seed: int, *, corpus_seed: int) -> Matrix:
    """A unit vector in the neighbourhood of a chunk's, as a question's is."""
    space = _space(corpus_seed, len(vector))
    away = space.turned(space.draw(np.random.default_rng([seed, _NEAR]), 1))
    asked: Matrix = unit(vector[None, :] + np.float32(_ASKED) * away)[0]
    return asked


def unit(rows: Matrix) -> Matrix:
    """Bring rows to length one."""
    scaled: Matrix = rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return scaled


@cache
def _space(seed: int, dims: int) -> _Space:
    size = 1 << (dims - 1).bit_length()
    weights = np.arange(1, size + 1, dtype=np.float32) ** np.float32(-_DECAY)
    weights *= (size / np.sum(weights * weights) / (size * dims)) ** 0.5
    signs = np.random.default_rng([seed, _CENTRES]).choice(np.array([-1, 1], dtype=np.float32), size=dims)
    return _Space(dims, weights, signs)


@cache
def _centres(seed: int, dims: int) -> Matrix:
    """The centres of all topics, and last what all vectors share."""
    space = _space(seed, dims)
    return space.turned(space.draw(np.random.default_rng([seed, _CENTRES, dims]), _MOST_TOPICS + 1))


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


@value
class SyntheticFile:
    """A note and the chunks in it."""

    path: str
    text: str
    chunks: tuple[Chunk, ...]


@value
class Question:
    """A natural question of eight words that count, all from one chunk; its vector is near that chunk's."""

    text: str
    words: tuple[str, ...]
    path: str
    ordinal: int
    vector: Matrix


@value
class Corpus:
    """So many chunks of some 1,200 characters, each with a vector; two files in three are daily logs."""

    chunks: int
    dims: int = 256
    seed: int = 7
    fixed_per_file: int | None = None

    @property
    def chunks_per_file(self) -> int:
        """Ten, and up to a hundred where there would be more than a thousand files."""
        return self.fixed_per_file or min(
            MOST_CHUNKS_PER_FILE, max(CHUNKS_PER_FILE, -(-self.chunks // MOST_SHORT_FILES))
        )

    @property
    def files(self) -> int:
        """How many files there are."""
        return -(-self.chunks // self.chunks_per_file)

    def chunks_in(self, number: int) -> int:
        """How many chunks a file has; the last one has what is left."""
        return min(self.chunks_per_file, self.chunks - number * self.chunks_per_file)

    def path(self, number: int) -> str:
        """Where a file stands in the workspace."""
        day = self.day(number)
        return f"memory/{day}.md" if day else f"memory/topics/topic-{number:06}.md"

    def day(self, number: int) -> str | None:
        """The day that a log belongs to; None for a file about a topic."""
        return (LAST_DAY - timedelta(days=number)).isoformat() if number % 3 else None

    def file(self, number: int) -> SyntheticFile:
        """Write one file."""
        chance = np.random.default_rng([self.seed, _TEXT, number])
        topic = self.topic(number)
        language = _LANGUAGES[int(chance.choice(len(_LANGUAGES), p=_SHARES))]
        path, day = self.path(number), self.day(number)
        title = f"Log of {day}" if day else f"Topic {number}"
        chunks: list[Chunk] = []
        line = 1
        for ordinal in range(self.chunks_in(number)):
            heading, body = passage(chance, vocabulary(self.seed), topic, language)
            lines = [f"## {heading}", "", *body]
            if not ordinal:
                lines = [f"# {title}", "", *lines]
            last = line + len(lines) - 1
            text, context = "\n".join(lines), f"{title} › {heading}"
            chunks.append(Chunk(path, "memory", ordinal, line, last, text, context, day))
            line = last + 2
        return SyntheticFile(path, "\n\n".join(chunk.text for chunk in chunks) + "\n", tuple(chunks))

    def topic(self, number: int) -> int:
        """What a file is about, by its text and by its vectors."""
        return int(np.random.default_rng([self.seed, number]).integers(TOPICS))

    def vectors(self, number: int) -> Matrix:
        """The vectors of a file's chunks, a row each."""
        return clustered(self.seed, number, self.topic(number), self.chunks_in(number), self.dims)

    def blocks(self, rows: int = 8_192) -> Iterator[tuple[int, Matrix]]:
        """All vectors in blocks, each with the number of its first chunk."""
        waiting: list[Matrix] = []
        first = held = 0
        for number in range(self.files):
            waiting.append(self.vectors(number))
            held += len(waiting[-1])
            if held >= rows or number == self.files - 1:
                yield first, np.concatenate(waiting)
                first, held, waiting = first + held, 0, []

    def place(self, chunk: int) -> tuple[str, int]:
        """The path and the ordinal of the chunk with this number."""
        number, ordinal = divmod(chunk, self.chunks_per_file)
        return self.path(number), ordinal

    def questions(self, count: int) -> list[Question]:
        """Ask about chunks that are drawn by chance; the first ones are the same however many are asked."""
        chance = np.random.default_rng([self.seed, _QUESTIONS])
        rank_of = vocabulary(self.seed).rank_of
        asked: list[Question] = []
        while len(asked) < count:
            number = int(chance.integers(self.files))
            ordinal = int(chance.integers(self.chunks_in(number)))
            noise_seed = int(chance.integers(2**32))
            words = _words_that_count(self.file(number).chunks[ordinal])
            if len(words) < TERMS_OF_QUESTION:
                continue  # a text without spaces
            chosen = _from_common_to_rare(words, rank_of)
            a, b, c, d, e, f, g, h = chosen
            text = f"What was it about {a} {d} and {g} when the {b} {e} had {h} with {c} {f}?"
            vector = near(self.vectors(number)[ordinal], noise_seed, corpus_seed=self.seed)
            asked.append(Question(text, tuple(chosen), self.path(number), ordinal, vector))
        return asked


def _words_that_count(chunk: Chunk) -> list[str]:
    """The distinct plain words of a chunk in their order, without those that say nothing."""
    words = dict.fromkeys(word.strip("-.").lower() for word in chunk.text.split())
    return [word for word in words if word.isascii() and word.isalpha() and word not in STOP_WORDS]


def _from_common_to_rare(words: list[str], rank_of: Mapping[str, int]) -> list[str]:
    """Three of the most frequent words, three of the middle, the two rarest."""
    ordered = sorted(words, key=lambda word: rank_of.get(word, 0))
    middle = len(ordered) // 2
    return [*ordered[:3], *ordered[middle - 1 : middle + 2], *ordered[-2:]]
