"""Vectors in clusters that are as hard to tell apart as those of the builtin model on real notes.

Fitted to it: how fast the directions lose weight, how near the nearest chunks are to a question, how far away the
others, and how many candidates by sign bits it takes to have the nearest among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float32]

# What a vector is the sum of: something that all share, two topics, the file, the chunk itself, noise.
_SHARED, _TOPIC, _SECOND, _FILE, _OWN, _NOISE = 0.35, 0.9, 0.35, 0.7, 0.7, 0.15
_ASKED = 1.7  # how far a question is from the chunk that it is about
_DECAY = 0.4  # the n-th direction weighs n to the minus this
_MOST_TOPICS = 240
# Streams of chance, apart from those of the text.
_CENTRES, _CHUNKS, _QUESTIONS = 10, 11, 12


@dataclass(frozen=True, slots=True)
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
    away = space.turned(space.draw(np.random.default_rng([seed, _QUESTIONS]), 1))
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
