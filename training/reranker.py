"""Train the reranker: a strong cross-encoder learns from pairs, then a small one learns to score as it does.

A group is one question with the passage that answers it and others that do not: neighbours by the bi-encoder, other
parts of the same document, results of our own engine, and one by chance. The teacher learns to put the answer first
(a softmax over the group) and to say whether a passage answers at all (a probability); the student learns the
teacher's scores.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from training import adam, transformer

GROUP = 8
LENGTH = 192
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
    """Groups as the encoders read them; the answer is the first of each group."""

    tokens: np.ndarray  # groups × GROUP × LENGTH
    kinds: np.ndarray


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
    data: Questions, shapes: Sequence[transformer.Shape], size: int, seed: int, *, ahead: int = 4
) -> Iterator[tuple[Batch, ...]]:
    """Endless batches, the same groups in the form of each shape, made by a thread some steps ahead."""
    chance = np.random.default_rng(seed)
    made: queue.Queue[tuple[Batch, ...]] = queue.Queue(ahead)
    if len({(shape.begin, shape.end) for shape in shapes}) > 2:
        raise ValueError("at most two forms")

    def make() -> None:
        while True:
            drawn = chance.choice(len(data.questions), size=size, p=data.chances)
            groups = [draw_group(data, int(at), chance) for at in drawn]
            made.put(tuple(_batch(data, drawn, groups, shape) for shape in shapes))

    threading.Thread(target=make, daemon=True).start()
    while True:
        yield made.get()


def _batch(
    data: Questions, drawn: np.ndarray, groups: Sequence[Sequence[int]], shape: transformer.Shape
) -> Batch:
    tokens = np.empty((len(groups), GROUP, LENGTH), np.int32)
    kinds = np.empty_like(tokens)
    for row, (at, group) in enumerate(zip(drawn, groups, strict=True)):
        question = _of_shape(data.questions[at], shape)
        for place, passage in enumerate(group):
            tokens[row, place], kinds[row, place] = transformer.join_pair(
                shape, question, _of_shape(data.passages[passage], shape), LENGTH
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
    parameters: Any, shape: transformer.Shape, stream: Iterator[tuple[Batch, ...]], seconds: float, rate: float,
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

    return _run(step, parameters, stream, seconds, rate, log, steps, lambda made: (made[0],))


def distil(
    student: Any, student_shape: transformer.Shape, teacher: Any, teacher_shape: transformer.Shape,
    stream: Iterator[tuple[Batch, ...]], seconds: float, rate: float, log: Callable[[str], None],
    steps: int | None = None,
) -> Any:  # fmt: skip
    """The student's parameters after so many seconds (or steps); batches come in both forms, the teacher's first."""
    small = {name: one.astype(jnp.bfloat16) if one.ndim > 1 else one for name, one in teacher.items()}

    @jax.jit
    def step(
        parameters: Any, moments: Any, theirs: Batch, ours: Batch, teacher: Any, rate: Any
    ) -> tuple[Any, Any, jax.Array]:
        said = jax.lax.stop_gradient(_scores(teacher, teacher_shape, theirs))

        def loss(one: Any) -> jax.Array:
            scores = _scores(one, student_shape, ours)
            return _loss_by_teacher(scores, said) + 0.1 * _loss_by_answers(scores)

        value, gradient = jax.value_and_grad(loss)(parameters)
        parameters, moments = adam.update(gradient, moments, parameters, rate)
        return parameters, moments, value

    def call(
        parameters: Any, moments: Any, theirs: Batch, ours: Batch, rate: Any
    ) -> tuple[Any, Any, jax.Array]:
        found: tuple[Any, Any, jax.Array] = step(parameters, moments, theirs, ours, small, rate)
        return found

    return _run(call, student, stream, seconds, rate, log, steps, lambda made: made)


def _run(
    step: Callable[..., tuple[Any, Any, jax.Array]], parameters: Any, stream: Iterator[tuple[Batch, ...]],
    seconds: float, rate: float, log: Callable[[str], None], steps: int | None,
    pick: Callable[[tuple[Batch, ...]], tuple[Batch, ...]],
) -> Any:  # fmt: skip
    moments = adam.start(parameters)
    losses: list[jax.Array] = []
    begun: float | None = None
    at = 0
    while True:
        share = at / steps if steps else (0.0 if begun is None else (time.time() - begun) / seconds)
        if share >= 1:
            break
        parameters, moments, loss = step(parameters, moments, *pick(next(stream)), adam.rate_at(share, rate))
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
