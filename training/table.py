"""Train the embedder: a table of one vector a piece, so that the mean of a text's pieces says what teachers say of it.

Two teachers: mpnet knows English well, the multilingual sentence encoder puts ten languages into one space. The
target of an English text is both side by side; of another text the second alone, and what the first would say is
predicted from it. The table also learns from pairs: a question is nearer to its answer, a text nearer to its
translation, than to the others of its batch; and from windows: several texts put together are near what the teachers
say of each. The first 128 dimensions are trained to be of use alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from training import adam

PADDING = -1
SHORT, LONG = 32, 192
PREFIX = 128
MIXED = 4


class Texts(NamedTuple):
    """Texts as padded ids of pieces, with their targets; short ones stand apart, to save work."""

    tokens: jax.Array  # texts × places
    targets: jax.Array  # texts × dims, unit vectors
    weights: jax.Array  # cumulative chances of being drawn


class Pairs(NamedTuple):
    """Both sides of pairs as padded ids of pieces."""

    left: jax.Array
    right: jax.Array


class Plan(NamedTuple):
    """What a run tries."""

    steps: int = 6_000
    batch: int = 2_048
    rate: float = 4e-3
    near_target: float = 1.0
    like_target: float = 0.5  # the same neighbours in the batch
    answers: float = 0.3
    same: float = 0.5
    mixed: float = 0.5  # a window of several texts is near what the teachers say of each
    temperature: float = 0.05
    decay: float = 0.0


def pad(ids: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Ids as a matrix, cut to `length` and padded."""
    matrix = np.full((len(ids), length), PADDING, np.int32)
    for row, one in enumerate(ids):
        matrix[row, : min(len(one), length)] = one[:length]
    return matrix


def vectors(table: jax.Array, tokens: jax.Array) -> jax.Array:
    """Sums of pieces, not yet of unit length."""
    mask = (tokens != PADDING)[..., None]
    return (table[jnp.maximum(tokens, 0)] * mask).sum(1)


def unit(x: jax.Array) -> jax.Array:
    """Rows of length one."""
    return x / jnp.sqrt((x * x).sum(-1, keepdims=True) + 1e-12)


def make_targets(
    english: np.ndarray, english_wide: np.ndarray, others_wide: np.ndarray, dims: int, share: float
) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Targets of English texts, of the others, and how any text of the wide teacher gets one.

    `english` is what the English teacher says; `…_wide` what the multilingual one says.
    """
    gram = english_wide.T @ english_wide + 1e-3 * len(english_wide) / english_wide.shape[1] * np.eye(
        english_wide.shape[1]
    )
    predict = np.linalg.solve(gram, english_wide.T @ english)  # wide → English teacher

    def predicted(wide: np.ndarray) -> np.ndarray:
        said = wide @ predict
        return np.asarray(said / (np.linalg.norm(said, axis=1, keepdims=True) + 1e-9))

    both = np.concatenate([english, share * english_wide], 1)
    foreign = np.concatenate([predicted(others_wide), share * others_wide], 1)
    sample = np.concatenate([both[:200_000], foreign[:200_000]])
    mean = sample.mean(0)
    _, directions = np.linalg.eigh((sample - mean).T @ (sample - mean))
    best = directions[:, ::-1][:, :dims]

    def finish(x: np.ndarray) -> np.ndarray:
        y = (x - mean) @ best
        return np.asarray(y / np.linalg.norm(y, axis=1, keepdims=True), np.float32)

    def of_wide(wide: np.ndarray) -> np.ndarray:
        return finish(np.concatenate([predicted(wide), share * wide], 1))

    return finish(both), finish(foreign), of_wide


def first_table(targets_of_pieces: np.ndarray, counts: np.ndarray, shared: int, seed: int) -> np.ndarray:
    """Each piece begins as what the teacher says of it alone, rare ones longer than common ones."""
    share = counts / counts.sum()
    length = 1e-4 / (1e-4 + share)
    chance = np.random.default_rng(seed)
    known = targets_of_pieces * length[:, None]
    others = chance.standard_normal((shared, targets_of_pieces.shape[1])).astype(np.float32)
    others *= 0.5 / np.linalg.norm(others, axis=1, keepdims=True)
    return np.concatenate([known, others]).astype(np.float32)


def train(
    table: np.ndarray, short: Texts, long: Texts, answers: Pairs, same: Pairs, plan: Plan, seed: int,
    log: Callable[[str], None],
) -> np.ndarray:  # fmt: skip
    """The table after `plan.steps` steps."""
    many = 100  # steps in one go

    def contrast(left: jax.Array, right: jax.Array) -> jax.Array:
        likeness = unit(left) @ unit(right).T / plan.temperature
        here = jnp.arange(len(left))
        forth = jax.nn.log_softmax(likeness, 1)[here, here]
        back = jax.nn.log_softmax(likeness, 0)[here, here]
        return -(forth.mean() + back.mean()) / 2

    def distance(x: jax.Array, target: jax.Array) -> jax.Array:
        near = 1 - (unit(x) * target).sum(-1).mean()
        said = jax.nn.softmax(target @ target.T / plan.temperature, 1)
        ours = jax.nn.log_softmax(unit(x) @ unit(x).T / plan.temperature, 1)
        return plan.near_target * near - plan.like_target * (said * ours).sum(1).mean()

    def mixed(x: jax.Array, target: jax.Array) -> jax.Array:
        """Texts are put together by fours; each is to be found by what the teachers say of it."""
        together = x.reshape(-1, MIXED, x.shape[1]).sum(1)
        likeness = unit(target) @ unit(together).T / plan.temperature
        own = jnp.arange(len(x)) // MIXED
        return -jax.nn.log_softmax(likeness, 1)[jnp.arange(len(x)), own].mean()

    def both(loss: Callable[..., jax.Array], *parts: jax.Array) -> jax.Array:
        """A loss of whole vectors and of their first half."""
        return 0.7 * loss(*parts) + 0.3 * loss(*(part[:, :PREFIX] for part in parts))

    def loss(table: jax.Array, batch: tuple[jax.Array, ...]) -> jax.Array:
        tokens1, target1, tokens2, target2, a1, a2, s1, s2 = batch
        x1, x2 = vectors(table, tokens1), vectors(table, tokens2)
        total = both(_with_unit_targets(distance), x1, target1) + both(
            _with_unit_targets(distance), x2, target2
        )
        total += plan.answers * both(contrast, vectors(table, a1), vectors(table, a2))
        total += plan.same * both(contrast, vectors(table, s1), vectors(table, s2))
        return total + plan.mixed * both(mixed, x1, target1)

    def draw(key: jax.Array) -> tuple[jax.Array, ...]:
        keys = jax.random.split(key, 4)
        at1 = jnp.searchsorted(short.weights, jax.random.uniform(keys[0], (plan.batch,)))
        at2 = jnp.searchsorted(long.weights, jax.random.uniform(keys[1], (plan.batch,)))
        at3 = jax.random.randint(keys[2], (plan.batch,), 0, len(answers.left))
        at4 = jax.random.randint(keys[3], (plan.batch,), 0, len(same.left))
        return (
            short.tokens[at1], short.targets[at1], long.tokens[at2], long.targets[at2],
            answers.left[at3], answers.right[at3], same.left[at4], same.right[at4],
        )  # fmt: skip

    @jax.jit
    def run(state: tuple[Any, Any], keys: jax.Array, rates: jax.Array) -> tuple[tuple[Any, Any], jax.Array]:
        def step(
            carry: tuple[Any, Any], given: tuple[jax.Array, jax.Array]
        ) -> tuple[tuple[Any, Any], jax.Array]:
            table, moments = carry
            key, rate = given
            value, gradient = jax.value_and_grad(loss)(table, draw(key))
            return adam.update(gradient, moments, table, rate, decay=plan.decay, clip=1e9), value

        return jax.lax.scan(step, state, (keys, rates))

    state: tuple[Any, Any] = (jnp.asarray(table), adam.start(jnp.asarray(table)))
    key = jax.random.PRNGKey(seed)
    begun = time.time()
    for at in range(0, plan.steps, many):
        key, now = jax.random.split(key)
        rates = jnp.asarray([adam.rate_at((at + one) / plan.steps, plan.rate) for one in range(many)])
        state, values = run(state, jax.random.split(now, many), rates)
        if at % 1_000 == 0 or at + many >= plan.steps:
            log(f"step {at + many} loss {float(values.mean()):.4f} after {time.time() - begun:.0f} s")
    return np.asarray(state[0])


def _with_unit_targets(distance: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """A prefix of a unit vector is not one."""

    def measured(x: jax.Array, target: jax.Array) -> jax.Array:
        return distance(x, unit(target))

    return measured


def quantise(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 rows, and a scale for each."""
    scale = np.maximum(np.abs(table).max(1), 1e-9) / 127
    return np.rint(table / scale[:, None]).astype(np.int8), scale.astype(np.float32)
