"""A corpus of any size, the same for the same seed, made file by file so that it is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from plainmind.base.model import Chunk
from plainmind.guests.evaluation.speed.prose import passage
from plainmind.guests.evaluation.speed.vectors import Matrix, clustered, near
from plainmind.guests.evaluation.speed.vocabulary import LAST_DAY, TOPICS, vocabulary
from plainmind.text.stopwords import STOP_WORDS

CHUNKS_PER_FILE = 10
MOST_SHORT_FILES = 1_000  # a larger corpus has longer files first, and then more of them
MOST_CHUNKS_PER_FILE = 100
TERMS_OF_QUESTION = 8
_LANGUAGES = ("english", "chinese", "japanese")
_SHARES = (0.90, 0.07, 0.03)
# Streams of chance: what is drawn for the text does not change with the number of dimensions.
_TEXT, _QUESTIONS = 1, 3


@dataclass(frozen=True, slots=True)
class SyntheticFile:
    """A note and the chunks in it."""

    path: str
    text: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A natural question of eight words that count, all from one chunk; its vector is near that chunk's."""

    text: str
    words: tuple[str, ...]
    path: str
    ordinal: int
    vector: Matrix


@dataclass(frozen=True, slots=True)
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
