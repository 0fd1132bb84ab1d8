"""Train the reranker: a strong cross-encoder learns from pairs, then a small one learns to score as it does.

A group is one question with the passage that answers it and others that do not: neighbours by the bi-encoder, other
parts of the same document, results of our own engine, and one by chance. The teacher learns to put the answer first
(a softmax over the group) and to say whether a passage answers at all (a probability). For the student every question
gets a pool of such passages, cut to what results of a search show; the teacher reads each pool once, and the student
learns its scores in groups that are drawn from the pools again and again.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from training import adam, transformer

GROUP = 8
LENGTH = 192
POOL = 16  # passages of a question that the teacher reads for the student
POOL_LENGTH = 128  # as much as the program gives a reranker
_SHORTEST, _LONGEST = 24, 110  # of a cut passage
_TIMES = (
    5  # that a pool is drawn from: after twenty-five times a student knew it by heart, and no more of others
)
_PROBABILITY = 0.2  # how much "does it answer at all" counts beside "which answers best"


class Questions(NamedTuple):
    """What groups are drawn from; tokens without marks, by question and by passage."""

    questions: Sequence[np.ndarray]
    passages: Sequence[np.ndarray]
    answer: np.ndarray  # index of a passage, by question
    others: Sequence[Sequence[int]]  # of the same document
    neighbours: np.ndarray  # questions × some: indexes of passages, nearest first; -1 where there is none
    chances: np.ndarray  # of a question being drawn


class Batch(NamedTuple):
    """Groups as an encoder reads them; the answer is the first of each group."""

    tokens: Any  # groups × passages × places, in memory or on the device
    kinds: Any


def draw_group(data: Questions, at: int, chance: np.random.Generator) -> list[int]:
    """Indexes of passages, the answer first, then what is hard to tell from it."""
    answer = int(data.answer[at])
    near = data.neighbours[at]
    near = near[(near >= 0) & (near != answer)]
    beside = [one for one in data.others[at] if one != answer]
    chosen: list[int] = []
    if beside:
        chosen += chance.choice(beside, size=min(2, len(beside)), replace=False).tolist()
    wanted = GROUP - 2 - len(chosen)
    if len(near):
        chosen += chance.choice(near, size=min(wanted, len(near)), replace=False).tolist()
    while len(chosen) < GROUP - 1:
        chosen.append(int(chance.integers(len(data.passages))))
    return [answer, *chosen]


def batches(
    data: Questions, shape: transformer.Shape, size: int, seed: int, *, ahead: int = 4
) -> Iterator[Batch]:
    """Endless batches, made by a thread some steps ahead."""
    chance = np.random.default_rng(seed)
    made: queue.Queue[Batch] = queue.Queue(ahead)

    def make() -> None:
        while True:
            drawn = chance.choice(len(data.questions), size=size, p=data.chances)
            groups = [[data.passages[one] for one in draw_group(data, int(at), chance)] for at in drawn]
            made.put(_batch([data.questions[at] for at in drawn], groups, shape, LENGTH))

    threading.Thread(target=make, daemon=True).start()
    while True:
        yield made.get()


def draw_pool(data: Questions, at: int, chance: np.random.Generator) -> list[np.ndarray]:
    """Passages to read with a question: two cuts of the answer, then cuts of what is hard to tell from it."""
    answer = int(data.answer[at])
    near = data.neighbours[at]
    near = near[(near >= 0) & (near != answer)]
    beside = [one for one in data.others[at] if one != answer]
    chosen = [answer, answer]
    if beside:
        chosen += chance.choice(beside, size=min(3, len(beside)), replace=False).tolist()
    wanted = POOL - 1 - len(chosen)
    if len(near):
        chosen += chance.choice(near, size=min(wanted, len(near)), replace=False).tolist()
    while len(chosen) < POOL:
        chosen.append(int(chance.integers(len(data.passages))))
    return [_cut(data.passages[one], chance) for one in chosen]


def _cut(passage: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Some words in a row, as a result shows some lines of a note."""
    length = int(chance.integers(_SHORTEST, _LONGEST + 1))
    start = int(chance.integers(max(0, len(passage) - length) + 1))
    return passage[start : start + length]


class Pools(NamedTuple):
    """What the student learns from; some questions are there twice, in other words."""

    tokens: jax.Array  # questions × POOL × POOL_LENGTH, as the student reads them
    said: jax.Array  # questions × POOL: the teacher's scores
    chances: jax.Array  # of a question being drawn, summed up


def read_pools(
    data: Questions, teacher: Any, teacher_shape: transformer.Shape, student_shape: transformer.Shape,
    reworded: Mapping[int, np.ndarray], seed: int, *, size: int = 64,
) -> Pools:  # fmt: skip
    """What the teacher says about a pool of every question.

    The student also reads `reworded` questions, and is to say what the teacher said about the first words.
    """
    chance = np.random.default_rng(seed)
    small = {name: one.astype(jnp.bfloat16) if one.ndim > 1 else one for name, one in teacher.items()}
    said: list[jax.Array] = []
    first: list[np.ndarray] = []
    again: list[np.ndarray] = []
    for begin in range(0, len(data.questions), size):
        numbers = [at % len(data.questions) for at in range(begin, begin + size)]
        pools = [draw_pool(data, at, chance) for at in numbers]
        questions = [data.questions[at] for at in numbers]
        # Not waited for: the next pools are drawn meanwhile.
        said.append(_read(small, teacher_shape, _batch(questions, pools, teacher_shape, POOL_LENGTH)))
        first.append(_batch(questions, pools, student_shape, POOL_LENGTH).tokens.astype(np.uint16))
        new = [row for row, at in enumerate(numbers) if at in reworded and begin + row == at]
        if new:
            asked = [reworded[numbers[row]] for row in new]
            found = _batch(asked, [pools[row] for row in new], student_shape, POOL_LENGTH)
            again.append(found.tokens.astype(np.uint16))
    count = len(data.questions)
    scores = np.concatenate([np.asarray(one) for one in said])[:count]
    twice = np.array(sorted(reworded), int)
    chances = np.concatenate([data.chances, data.chances[twice]])
    return Pools(
        jnp.asarray(np.concatenate([np.concatenate(first)[:count], *again])),
        jnp.asarray(np.concatenate([scores, scores[twice]])),
        jnp.asarray(np.cumsum(chances / chances.sum())),
    )


def _batch(
    questions: Sequence[np.ndarray],
    groups: Sequence[Sequence[np.ndarray]],
    shape: transformer.Shape,
    length: int,
) -> Batch:
    tokens = np.empty((len(groups), len(groups[0]), length), np.int32)
    kinds = np.empty_like(tokens)
    for row, (question, group) in enumerate(zip(questions, groups, strict=True)):
        asked = _of_shape(question, shape)
        for place, passage in enumerate(group):
            tokens[row, place], kinds[row, place] = transformer.join_pair(
                shape, asked, _of_shape(passage, shape), length
            )
    return Batch(tokens, kinds)


def _of_shape(ids: np.ndarray, shape: transformer.Shape) -> np.ndarray:
    """Ids are kept as BERT has them; mpnet has the same words four places later."""
    return ids + 4 if shape.kind == "mpnet" else ids


def _scores(parameters: Any, shape: transformer.Shape, batch: Batch) -> jax.Array:
    groups = batch.tokens.shape[0]
    flat = (-1, batch.tokens.shape[-1])
    tokens, kinds = (jnp.asarray(one).reshape(flat) for one in (batch.tokens, batch.kinds))
    scores = transformer.pair_scores(parameters, shape, tokens, kinds)
    return scores.reshape(groups, -1)


_read = jax.jit(_scores, static_argnums=1)


def _loss_by_answers(scores: jax.Array) -> jax.Array:
    listwise = -jax.nn.log_softmax(scores, 1)[:, 0].mean()
    answers = -jax.nn.log_sigmoid(scores[:, 0]).mean()
    others = -jax.nn.log_sigmoid(-scores[:, 1:]).mean()
    return listwise + _PROBABILITY * (answers + others)


def _loss_by_teacher(scores: jax.Array, said: jax.Array) -> jax.Array:
    middle, said_middle = scores - scores.mean(1, keepdims=True), said - said.mean(1, keepdims=True)
    apart = ((middle - said_middle) ** 2).mean()
    unlike = (
        (jax.nn.softmax(said, 1) * (jax.nn.log_softmax(said, 1) - jax.nn.log_softmax(scores, 1)))
        .sum(1)
        .mean()
    )
    level = ((jax.nn.sigmoid(scores) - jax.nn.sigmoid(said)) ** 2).mean()
    return unlike + 0.1 * apart + level


def add_head(parameters: transformer.Parameters, seed: int) -> transformer.Parameters:
    """An encoder with a last row that gives one number."""
    width = parameters["word_embeddings.weight"].shape[1]
    chance = np.random.default_rng(seed)
    return {
        **{name: jnp.asarray(array) for name, array in parameters.items()},
        "head.weight": jnp.asarray(0.02 * chance.standard_normal((1, width)), jnp.float32),
        "head.bias": jnp.zeros((1,), jnp.float32),
    }


def train_teacher(
    parameters: Any, shape: transformer.Shape, stream: Iterator[Batch], seconds: float, rate: float,
    log: Callable[[str], None], steps: int | None = None,
) -> Any:  # fmt: skip
    """Parameters after so many seconds (or steps)."""

    @jax.jit
    def step(parameters: Any, moments: Any, batch: Batch, rate: Any) -> tuple[Any, Any, jax.Array]:
        loss, gradient = jax.value_and_grad(lambda one: _loss_by_answers(_scores(one, shape, batch)))(
            parameters
        )
        parameters, moments = adam.update(gradient, moments, parameters, rate)
        return parameters, moments, loss

    return _run(step, parameters, stream, seconds, rate, log, steps)


def distil(
    student: Any, shape: transformer.Shape, read: Callable[[int], Pools], size: int, seed: int, seconds: float,
    rate: float, log: Callable[[str], None], steps: int | None = None,
) -> Any:  # fmt: skip
    """The student's parameters after so many seconds (or steps) of `size` groups from pools that are read in rounds."""

    @jax.jit
    def step(
        parameters: Any, moments: Any, given: tuple[Pools, jax.Array], rate: Any
    ) -> tuple[Any, Any, jax.Array]:
        batch, said = _draw(given[0], shape, size, given[1])

        def loss(one: Any) -> jax.Array:
            scores = _scores(one, shape, batch)
            return _loss_by_teacher(scores, said) + 0.1 * _loss_by_answers(scores)

        value, gradient = jax.value_and_grad(loss)(parameters)
        parameters, moments = adam.update(gradient, moments, parameters, rate)
        return parameters, moments, value

    return _run(step, student, _rounds(read, size, seed), seconds, rate, log, steps)


def _rounds(read: Callable[[int], Pools], size: int, seed: int) -> Iterator[tuple[Pools, jax.Array]]:
    """Pools with a key to draw by; new ones, otherwise cut, before the student knows them by heart."""
    key = jax.random.key(seed)
    number = 0
    while True:
        pools = read(number)
        for _ in range(max(1, _TIMES * len(pools.chances) // size)):
            key, one = jax.random.split(key)
            yield pools, one
        number += 1


def _draw(pools: Pools, shape: transformer.Shape, size: int, key: jax.Array) -> tuple[Batch, jax.Array]:
    """Groups from the pools, the better cut of the answer first, and what the teacher said about them."""
    of_question, of_passage = jax.random.split(key)
    rows = jnp.searchsorted(pools.chances, jax.random.uniform(of_question, (size,)))
    rows = jnp.minimum(rows, len(pools.chances) - 1)
    said = pools.said[rows]
    answer = jnp.argmax(said[:, :2], 1)
    luck = jax.random.uniform(of_passage, said.shape)
    luck = luck.at[jnp.arange(size), answer].set(2.0)
    _, places = jax.lax.top_k(luck, GROUP)
    tokens = pools.tokens[rows[:, None], places].astype(jnp.int32)
    ended = jnp.cumsum(tokens == shape.end, -1) - (tokens == shape.end)
    kinds = ((ended > 0) & (tokens != shape.padding)).astype(jnp.int32)
    return Batch(tokens, kinds), jnp.take_along_axis(said, places, 1)


def _run(
    step: Callable[..., tuple[Any, Any, jax.Array]], parameters: Any, stream: Iterator[Any], seconds: float,
    rate: float, log: Callable[[str], None], steps: int | None,
) -> Any:  # fmt: skip
    """Parameters after so many seconds (or steps); each step is given what comes next in the stream."""
    moments = adam.start(parameters)
    losses: list[jax.Array] = []
    begun: float | None = None
    at = 0
    while True:
        share = at / steps if steps else (0.0 if begun is None else (time.time() - begun) / seconds)
        if share >= 1:
            break
        parameters, moments, loss = step(parameters, moments, next(stream), adam.rate_at(share, rate))
        if begun is None:
            loss.block_until_ready()
            begun = time.time()  # compiling does not count
        losses.append(loss)
        at += 1
        if at % 20 == 0:
            loss.block_until_ready()  # or the clock would run ahead of the work
        if at % 200 == 0:
            log(f"step {at} loss {float(jnp.stack(losses[-200:]).mean()):.4f}")
    log(f"{at} steps, loss {float(jnp.stack(losses[-200:]).mean()):.4f}")
    return parameters
