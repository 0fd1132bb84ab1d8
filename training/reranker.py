"""Train the reranker: a strong cross-encoder learns from pairs, then a small one learns to score as it does.

A group is one question with the passage that answers it and others that do not: neighbours by their words, other parts
of the same document, and one by chance. The teacher learns to put the answer first (a softmax over the group) and to
say whether a passage answers at all (a probability). The student reads the same groups in the same step, and learns
the teacher's scores: at first little of them, and most when the teacher has begun to know.

Everything that groups are drawn from lies on the device as tables of numbers, and so does the chance: a step takes
nothing from the host but a key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from training import adam, transformer

GROUP = 8  # passages of a question that are told apart at once
LENGTH = 128  # as much as the program gives a reranker
NEIGHBOURS = 40
_BESIDE = 12  # other passages of a document that are kept
_OF_DOCUMENT = 3  # of a group
_CUT, _LEAST = 0.3, 0.7  # of the passages are cut, and how much of each stays
_TRUST, _TRUSTED_AT = (
    0.7,
    0.15,
)  # how much less the answers count beside a teacher, and when it has learned enough
_PROBABILITY = 0.2  # how much "does it answer at all" counts beside "which answers best"
_DIRECTIONS = 512  # in which words without a likeness point
_LIKE = 0.7  # how much the likeness of words counts beside their being the same
_SAME = 0.5  # passages that are more like the answer than this may well hold it
_SLICE = 16_384  # passages among which a question's neighbours are looked for


class Tables(NamedTuple):
    """What groups are drawn from, on the device; tokens without marks, as BERT numbers them."""

    questions: jax.Array  # questions × places
    question_lengths: jax.Array
    passages: jax.Array  # passages × places
    passage_lengths: jax.Array
    answer: jax.Array  # of a passage, by question
    beside: jax.Array  # questions × some: passages of the same document; -1 where there is none
    near: jax.Array  # questions × some: what is like the question; -1 where there is none
    chances: jax.Array  # of a question being drawn, summed up
    reworded: jax.Array  # questions × places: the question in other words, or once more
    reworded_lengths: jax.Array


class Batch(NamedTuple):
    """Groups as an encoder reads them."""

    tokens: jax.Array  # groups × passages × places
    kinds: jax.Array


def padded(rows: Sequence[np.ndarray], longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows as one table of two-byte numbers, and their lengths."""
    table = np.zeros((len(rows), longest), np.uint16)
    lengths = np.array([min(len(row), longest) for row in rows], np.int32)
    for at, row in enumerate(rows):
        table[at, : lengths[at]] = row[:longest]
    return table, lengths


def make_tables(
    questions: Sequence[np.ndarray], passages: Sequence[np.ndarray], answer: np.ndarray,
    others: Sequence[np.ndarray], chances: np.ndarray, near: np.ndarray,
    reworded: Mapping[int, np.ndarray], *, longest_question: int = 48, longest_passage: int = 150,
) -> Tables:  # fmt: skip
    """Put everything onto the device."""
    asked, asked_lengths = padded(questions, longest_question)
    read, read_lengths = padded(passages, longest_passage)
    again, again_lengths = padded(
        [reworded.get(at, row) for at, row in enumerate(questions)], longest_question
    )
    beside = np.full((len(questions), _BESIDE), -1, np.int32)
    for at, row in enumerate(others):
        kept = [one for one in row if one != answer[at]][:_BESIDE]
        beside[at, : len(kept)] = kept
    summed = np.cumsum(chances / chances.sum())
    return Tables(*(jnp.asarray(one) for one in (
        asked, asked_lengths, read, read_lengths, answer.astype(np.int32), beside, near.astype(np.int32),
        summed.astype(np.float32), again, again_lengths,
    )))  # fmt: skip


def find_neighbours(
    questions: Sequence[np.ndarray], passages: Sequence[np.ndarray], answer: np.ndarray, words: np.ndarray, seed: int,
    *, among: int = _SLICE, block: int = 1024, longest: int = 150,
) -> np.ndarray:  # fmt: skip
    """Passages that share rare words with each question, or have like ones, without those that are like its answer.

    `words` are vectors of the word pieces. Questions of a source stand in a row, and so do their passages; neighbours
    are looked for in a stretch of the passages around the answers of some questions in a row.
    """
    among = min(among, len(passages))
    counts = np.bincount(np.concatenate(passages).astype(np.int64), minlength=len(words))
    rarity = np.maximum(0.0, np.log((len(passages) + 1) / (counts + 1))).astype(np.float32)
    chance = np.random.default_rng(seed)
    alike = words - words.mean(0)
    alike = alike / (np.linalg.norm(alike, axis=1, keepdims=True) + 1e-6)
    apart = chance.standard_normal((len(words), _DIRECTIONS)).astype(np.float32) / np.sqrt(_DIRECTIONS)
    table = jnp.asarray(np.concatenate([apart, _LIKE * alike], axis=1) * rarity[:, None], jnp.bfloat16)

    @jax.jit
    def vectors(table: jax.Array, tokens: jax.Array, lengths: jax.Array) -> jax.Array:
        mask = jnp.arange(tokens.shape[1])[None] < lengths[:, None]
        total = (table[tokens] * mask[..., None]).sum(1, dtype=jnp.float32)
        unit: jax.Array = (total / (jnp.linalg.norm(total, axis=1, keepdims=True) + 1e-6)).astype(
            jnp.bfloat16
        )
        return unit

    def all_vectors(rows: Sequence[np.ndarray], width: int, size: int) -> jax.Array:
        tokens, lengths = padded(rows, width)
        found = []
        for at in range(0, len(rows), size):
            part, some = tokens[at : at + size], lengths[at : at + size]
            room = ((0, size - len(part)), (0, 0))
            found.append(vectors(table, np.pad(part, room), np.pad(some, room[:1]))[: len(part)])
        return jnp.concatenate(found)

    asked, read = all_vectors(questions, 48, 4096), all_vectors(passages, longest, 2048)

    @jax.jit
    def nearest(read: jax.Array, start: jax.Array, part: jax.Array, own: jax.Array) -> jax.Array:
        some = jax.lax.dynamic_slice_in_dim(read, start, among)
        likeness = (part @ some.T).astype(jnp.float32)
        same = (read[own] @ some.T).astype(jnp.float32) > _SAME
        values, places = jax.lax.top_k(jnp.where(same, -1.0, likeness), min(NEIGHBOURS, among))
        return jnp.where(values > 0, places + start, -1)

    near = np.full((len(questions), NEIGHBOURS), -1, np.int32)
    for at in range(0, len(questions), block):
        numbers = np.arange(at, at + block) % len(questions)
        middle = int(np.median(answer[numbers[: min(block, len(questions) - at)]]))
        start = min(
            max(0, middle - int(chance.integers(among // 4, among - among // 4 + 1))), len(passages) - among
        )
        found = np.asarray(nearest(read, jnp.int32(start), asked[numbers], jnp.asarray(answer[numbers])))
        near[at : at + block, : found.shape[1]] = found[: len(questions) - at]
    return near


def draw(
    tables: Tables, key: jax.Array, size: int, pool: int, answers: int, beside: int
) -> tuple[jax.Array, jax.Array]:
    """Questions, and the passages to read with each: the answer so many times, then what is hard to tell from it."""
    of_question, of_near, of_beside, of_chance = jax.random.split(key, 4)
    rows = jnp.searchsorted(tables.chances, jax.random.uniform(of_question, (size,)))
    rows = jnp.minimum(rows, len(tables.answer) - 1)
    wanted = pool - answers
    luck = jax.random.uniform(of_chance, (size, wanted))
    anything = jnp.minimum((luck * len(tables.passages)).astype(jnp.int32), len(tables.passages) - 1)
    chosen = _some_of(tables.near[rows], wanted, of_near)
    chosen = jnp.where(chosen < 0, anything, chosen)
    chosen = chosen.at[:, -1].set(anything[:, -1])
    if beside:
        parts = _some_of(tables.beside[rows], beside, of_beside)
        chosen = chosen.at[:, :beside].set(jnp.where(parts < 0, chosen[:, :beside], parts))
    answer = jnp.repeat(tables.answer[rows][:, None], answers, axis=1)
    return rows, jnp.concatenate([answer, chosen], axis=1)


def _some_of(numbers: jax.Array, count: int, key: jax.Array) -> jax.Array:
    """So many of each row by chance, each once; -1 where there are no more."""
    luck = jnp.where(numbers < 0, -1.0, jax.random.uniform(key, numbers.shape))
    values, places = jax.lax.top_k(luck, min(count, numbers.shape[1]))
    found = jnp.where(values < 0, -1, jnp.take_along_axis(numbers, places, axis=1))
    room = count - found.shape[1]
    return jnp.pad(found, ((0, 0), (0, room)), constant_values=-1) if room else found


def cut(lengths: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Where to begin in each passage and how much to read: a third of them lose a little, as results do."""
    of_whether, of_length, of_start = jax.random.split(key, 3)
    part = ((_LEAST + (1 - _LEAST) * jax.random.uniform(of_length, lengths.shape)) * lengths).astype(
        jnp.int32
    )
    length = jnp.where(jax.random.uniform(of_whether, lengths.shape) < _CUT, part, lengths)
    start = (jax.random.uniform(of_start, lengths.shape) * (lengths - length + 1)).astype(jnp.int32)
    return start, length


def join(
    tables: Tables, shape: transformer.Shape, rows: jax.Array, passages: jax.Array, start: jax.Array, length: jax.Array,
    places: int, *, reworded: jax.Array | None = None,
) -> Batch:  # fmt: skip
    """Questions with passages as an encoder reads them; both are cut to fit."""
    offset = 4 if shape.kind == "mpnet" else 0  # mpnet has the same words four places later
    asked, lengths = tables.questions[rows], tables.question_lengths[rows]
    if reworded is not None:
        asked = jnp.where(reworded[:, None], tables.reworded[rows], asked)
        lengths = jnp.where(reworded, tables.reworded_lengths[rows], lengths)
    between = len(shape.between)
    lengths = jnp.minimum(lengths, places // 3)[:, None, None]
    length = jnp.minimum(length[..., None], places - lengths - 2 - between)
    place = jnp.arange(places)[None, None]
    in_question = jnp.clip(place - 1, 0, asked.shape[1] - 1)
    in_passage = place - 1 - lengths - between
    words = jnp.take_along_axis(asked[:, None].astype(jnp.int32), in_question, axis=2)
    at = jnp.clip(start[..., None] + in_passage, 0, tables.passages.shape[1] - 1)
    said = tables.passages[passages[..., None], at].astype(jnp.int32)
    tokens = jnp.where(place <= lengths, words + offset, jnp.where(in_passage < 0, shape.end, said + offset))
    tokens = jnp.where(place == 0, shape.begin, tokens)
    tokens = jnp.where(in_passage == length, shape.end, tokens)
    tokens = jnp.where(in_passage > length, shape.padding, tokens)
    kinds = ((in_passage >= 0) & (in_passage <= length)).astype(jnp.int32)
    return Batch(tokens, kinds)


def scores_of(parameters: Any, shape: transformer.Shape, batch: Batch, *, whole: bool = False) -> jax.Array:
    """A number for each passage of each group; `whole`: as the model in whole numbers would say it."""
    flat = (-1, batch.tokens.shape[-1])
    tokens, kinds = batch.tokens.reshape(flat), batch.kinds.reshape(flat)
    scores = transformer.pair_scores(parameters, shape, tokens, kinds, whole=whole)
    return scores.reshape(batch.tokens.shape[:2])


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


def in_half(parameters: Any) -> Any:
    """Matrices in half precision: what is only read needs no more."""
    return {name: one.astype(jnp.bfloat16) if one.ndim > 1 else one for name, one in parameters.items()}


def add_head(parameters: transformer.Parameters, seed: int) -> transformer.Parameters:
    """An encoder with a last row that gives one number."""
    width = parameters["word_embeddings.weight"].shape[1]
    chance = np.random.default_rng(seed)
    return {
        **{name: jnp.asarray(array, jnp.float32) for name, array in parameters.items()},
        "head.weight": jnp.asarray(0.02 * chance.standard_normal((1, width)), jnp.float32),
        "head.bias": jnp.zeros((1,), jnp.float32),
    }


def grow(words: np.ndarray, numbers: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Rows of new pieces between an encoder's own, and as long as those are."""
    new = (words[numbers] * shares.astype(np.float32)[..., None]).sum(1)
    usual = np.linalg.norm(words, axis=1)[np.unique(numbers)].mean()
    long: np.ndarray = new * (usual / np.maximum(np.linalg.norm(new, axis=1, keepdims=True), 1e-6))
    return long


def train_together(
    teacher: Any, teacher_shape: transformer.Shape, students: Sequence[Any], shape: transformer.Shape, tables: Tables,
    size: int, seed: int, until: float, rates: tuple[float, float], log: Callable[[str], None],
    steps: int | None = None,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Teacher and students when the time has come (or after so many steps of the same groups).

    The teacher learns which passage answers; a student learns that too, and what the teacher says of each: at first a
    little, and most of it when the teacher has learned something. One of six layers takes an eighth of its time.
    """

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(
        models: list[Any], moments: list[Any], tables: Tables, key: jax.Array, share: Any, fall: Any
    ) -> tuple[list[Any], list[Any], jax.Array]:
        of_group, of_cut, of_words = jax.random.split(key, 3)
        rows, passages = draw(tables, of_group, size, GROUP, 1, _OF_DOCUMENT)
        start, length = cut(tables.passage_lengths[passages], of_cut)
        read = join(tables, teacher_shape, rows, passages, start, length, LENGTH)
        # The student is to say of a question in other words what the teacher says of the first ones.
        again = jax.random.uniform(of_words, (size,)) < 0.5
        batch = join(tables, shape, rows, passages, start, length, LENGTH, reworded=again)
        trust = jnp.clip(share / _TRUSTED_AT, 0.0, 1.0)

        def of_teacher(one: Any) -> tuple[jax.Array, jax.Array]:
            scores = scores_of(one, teacher_shape, read)
            return _loss_by_answers(scores), scores

        def of_student(one: Any, said: jax.Array) -> jax.Array:
            scores = scores_of(one, shape, batch, whole=True)
            return trust * _loss_by_teacher(scores, said) + (1 - _TRUST * trust) * _loss_by_answers(scores)

        (loss, said), gradient = jax.value_and_grad(of_teacher, has_aux=True)(models[0])
        said = jax.lax.stop_gradient(said)
        made, losses = [adam.update(gradient, moments[0], models[0], rates[0] * fall)], [loss]
        for one, of_one in zip(models[1:], moments[1:], strict=True):
            loss, gradient = jax.value_and_grad(of_student)(one, said)
            made.append(adam.update(gradient, of_one, one, rates[1] * fall))
            losses.append(loss)
        return [one for one, _ in made], [one for _, one in made], jnp.stack(losses)

    models = [teacher, *students]
    moments = [adam.start(one) for one in models]
    losses: list[jax.Array] = []
    begun: float | None = None
    at = 0
    keys = jax.random.key(seed)
    while True:
        share = at / steps if steps else (0.0 if begun is None else (time.time() - begun) / (until - begun))
        if share >= 1:
            break
        models, moments, loss = step(
            models, moments, tables, jax.random.fold_in(keys, at), share, adam.rate_at(share, 1.0)
        )
        if begun is None:
            loss.block_until_ready()
            begun = time.time()  # compiling does not count
        losses.append(loss)
        at += 1
        if at % 10 == 0:
            loss.block_until_ready()  # or the clock would run ahead of the work
        if at % 200 == 0:
            log(f"step {at}: {_mean(losses)}")
    log(f"{at} steps: {_mean(losses)}")
    return models[0], models[1:]


def _mean(losses: Sequence[jax.Array]) -> str:
    teacher, *students = jnp.stack(losses[-200:]).mean(0)
    return f"teacher {float(teacher):.4f}, students {', '.join(f'{float(one):.4f}' for one in students)}"
