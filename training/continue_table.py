"""Go on with a table that is in use: `python -m training.continue_table FOLDER MODEL OUT --plans '…'`, on a GPU.

What it knows stays: texts of the first training are held where they are, and pieces that are English alone hardly move.
What is new are pairs of everyday language (`training.everyday`): sentences and words that mean the same, in two
languages or in one, come nearer to each other than to the others of their batch. FOLDER holds what
`training.prepare_everyday` wrote, and may hold sets to measure on. A plan takes seconds: 1,500 steps in six.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from training import adam, table, windows

KINDS = ("sentences", "reworded", "words", "meanings", "manuals", "asked", "natural", "wordings")
_IN_A_ROW = {"asked": 4}  # pairs that are drawn together: what stands in one document is hard to tell apart
_BEGUN = time.time()


class Plan(NamedTuple):
    """How much each kind of pair counts, and what holds the table where it is."""

    steps: int = 2_000
    batch: int = 2_048  # the same for all plans
    rate: float = 2e-3
    sentences: float = 1.0
    reworded: float = 0.5
    words: float = 1.0
    meanings: float = 0.3
    manuals: float = 0.3
    asked: float = 0.0  # our own questions, each with a line that answers
    natural: float = 0.0  # questions of people with their passages
    wordings: float = 0.0  # what we wrote in other words and languages
    held: float = 4.0  # texts that were known before
    mixed: float = 2.0  # a window of four of them is near to each
    ranked: float = 2.0  # what stood nearest to them stays nearest
    pulled: float = 0.0  # a translation is near to where its English stood
    temperature: float = 0.1
    english: float = 0.2  # how much of its way a piece goes that is English alone
    seed: int = 1


class Pairs(NamedTuple):
    """Texts as padded ids of pieces, and by their numbers the two sides of each pair."""

    texts: jax.Array
    left: jax.Array
    right: jax.Array


def log(text: str) -> None:
    """Print with the seconds since the start."""
    print(f"[{time.time() - _BEGUN:6.1f}] {text}", flush=True)


def padded(flat: np.ndarray, lengths: np.ndarray, width: int) -> np.ndarray:
    """Texts that stand one after the other as a matrix of ids."""
    matrix = np.full((len(lengths), width), table.PADDING, np.int32)
    matrix[np.arange(width)[None, :] < lengths[:, None]] = flat
    return matrix


def contrast(x: jax.Array, y: jax.Array, same: jax.Array, temperature: jax.Array) -> jax.Array:
    """Each left is nearest to its right among all of the batch; the same text twice is no wrong answer."""
    likeness = jnp.where(same, -1e9, table.unit(x) @ table.unit(y).T / temperature)
    at = jnp.arange(len(likeness))
    forth, back = jax.nn.log_softmax(likeness, 1)[at, at], jax.nn.log_softmax(likeness, 0)[at, at]
    return -0.5 * (forth + back).mean()


def out_of_order(x: jax.Array, y: jax.Array, target_x: jax.Array, target_y: jax.Array) -> jax.Array:
    """How differently texts find long ones now and before."""
    before = jax.nn.log_softmax(table.unit(target_x) @ table.unit(target_y).T / 0.05, 1)
    now = jax.nn.log_softmax(table.unit(x) @ table.unit(y).T / 0.05, 1)
    return (jnp.exp(before) * (before - now)).sum(1).mean()


def away(x: jax.Array, target: jax.Array) -> jax.Array:
    """How far texts are from where they should be."""
    return (1 - (table.unit(x) * table.unit(target)).sum(1)).mean()


def in_window(x: jax.Array, target: jax.Array) -> jax.Array:
    """A window of four texts is nearer to each of them than other windows are."""
    parts = table.unit(x).reshape(table.MIXED, -1, x.shape[1])
    targets = table.unit(target).reshape(table.MIXED, -1, x.shape[1])
    likeness = targets @ table.unit(parts.sum(0)).T / 0.1
    at = jnp.arange(likeness.shape[1])
    return -jax.nn.log_softmax(likeness, 1)[:, at, at].mean() / table.MIXED


WEIGHTS = (*KINDS, "held", "mixed", "ranked", "pulled", "temperature")
SIZES = {
    "sentences": 1.0, "words": 1.0, "reworded": 0.5, "meanings": 0.5, "manuals": 0.25, "asked": 0.5, "natural": 0.25,
    "wordings": 0.5,
}  # fmt: skip


def trainer(
    first: np.ndarray, pairs: Mapping[str, Pairs], known: Mapping[str, jax.Array], batch: int
) -> Callable[..., Any]:
    """Some steps, compiled once for all plans: `(state, freedom, weights, keys, rates) → state, losses`."""
    begin = jnp.asarray(first)

    def both(loss: Callable[..., jax.Array], parts: tuple[jax.Array, ...], *rest: jax.Array) -> jax.Array:
        return 0.7 * loss(*parts, *rest) + 0.3 * loss(*(part[:, : table.PREFIX] for part in parts), *rest)

    def loss(way: jax.Array, freedom: jax.Array, weight: dict[str, jax.Array], key: jax.Array) -> jax.Array:
        now = begin + freedom[:, None] * way
        keys = iter(jax.random.split(key, len(KINDS) + 2))
        total = jnp.zeros(())
        for kind, some in pairs.items():
            run = _IN_A_ROW.get(kind, 1)
            starts = jax.random.randint(next(keys), (int(batch * SIZES[kind]) // run,), 0, len(some.left))
            drawn = ((starts[:, None] + jnp.arange(run)) % len(some.left)).reshape(-1)
            left, right = some.left[drawn], some.right[drawn]
            same = (left[:, None] == left[None, :]) | (right[:, None] == right[None, :])
            same &= ~jnp.eye(len(left), dtype=bool)
            x, y = table.vectors(now, some.texts[left]), table.vectors(now, some.texts[right])
            total += weight[kind] * both(contrast, (x, y), same, weight["temperature"])
            if kind == "sentences":
                total += weight["pulled"] * both(away, (y, table.vectors(begin, some.texts[left])))
        short = known["short"][jax.random.randint(next(keys), (batch,), 0, len(known["short"]))]
        long = known["long"][jax.random.randint(next(keys), (batch // 4,), 0, len(known["long"]))]
        x, target = table.vectors(now, short), table.vectors(begin, short)
        x_long, target_long = table.vectors(now, long), table.vectors(begin, long)
        total += weight["held"] * (both(away, (x, target)) + both(away, (x_long, target_long)))
        total += weight["ranked"] * both(out_of_order, (x, x_long, target, target_long))
        return total + weight["mixed"] * both(in_window, (x, target))

    @jax.jit
    def run(
        state: Any, freedom: jax.Array, weight: dict[str, jax.Array], keys: jax.Array, rates: jax.Array
    ) -> Any:
        def step(carry: Any, given: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
            way, moments = carry
            key, rate = given
            value, gradient = jax.value_and_grad(loss)(way, freedom, weight, key)
            return adam.update(gradient, moments, way, rate, decay=0.0, clip=1e9), value

        return jax.lax.scan(step, state, (keys, rates))

    return run


def train(
    run: Callable[..., Any], first: np.ndarray, is_english: np.ndarray, plan: Plan, many: int = 100
) -> np.ndarray:
    """The table after all steps of the plan; `is_english` says of each piece how much of its use is English."""
    freedom = jnp.asarray(1 - (1 - plan.english) * is_english, jnp.float32)
    weight = {name: jnp.asarray(plan._asdict()[name], jnp.float32) for name in WEIGHTS}
    way = jnp.zeros(first.shape, jnp.float32)
    state: Any = (way, adam.start(way))
    key = jax.random.PRNGKey(plan.seed)
    for at in range(0, plan.steps, many):
        key, now = jax.random.split(key)
        rates = jnp.asarray([adam.rate_at((at + one) / plan.steps, plan.rate) for one in range(many)])
        state, values = run(state, freedom, weight, jax.random.split(now, many), rates)
    log(f"loss {float(values.mean()):.4f} after {plan.steps} steps")
    return np.asarray(first + np.asarray(freedom)[:, None] * np.asarray(state[0]))


def read_model(folder: Path) -> np.ndarray:
    """The table of a model's files."""
    scales = np.fromfile(folder / "scales.f32", "<f4")
    rows = np.fromfile(folder / "vectors.i8", np.int8).reshape(len(scales), -1)
    return np.asarray(rows.astype(np.float32) * scales[:, None])


def read_pairs(folder: Path) -> tuple[dict[str, Pairs], dict[str, jax.Array]]:
    """The pairs, and the texts that were known before."""
    arrays: dict[str, np.ndarray] = {}
    for file in sorted(folder.glob("pairs.*.npz")):
        with np.load(file) as opened:
            arrays |= {name: opened[name] for name in opened.files}

    def texts(name: str) -> jax.Array:
        lengths = arrays[f"{name}.lengths"]
        return jnp.asarray(padded(arrays[f"{name}.flat"], lengths, int(lengths.max())))

    pairs = {
        kind: Pairs(texts(kind), jnp.asarray(arrays[f"{kind}.left"]), jnp.asarray(arrays[f"{kind}.right"]))
        for kind in KINDS
        if f"{kind}.left" in arrays
    }
    return pairs, {kind: texts(kind) for kind in ("short", "long") if f"{kind}.flat" in arrays}


def measure(made: np.ndarray, sets: Mapping[str, Any]) -> dict[str, float]:
    """Vectors alone, and of our own questions with words beside them: the share of evidence among the six nearest."""
    figures = {}
    signs = np.where(made > 0, 1, -1).astype(np.float32)
    weights = (made * made).sum(1)

    def embed(texts: Any) -> np.ndarray:
        sums = np.stack([made[np.asarray(ids, np.int64)].sum(0) for ids in texts])
        return np.asarray(sums / (np.linalg.norm(sums, axis=1, keepdims=True) + 1e-9))

    for name, workspaces in sets.items():
        figures[name] = round(windows.recall(workspaces, embed), 3)
        if name in ("own_across", "own_paraphrase"):
            figures[f"{name}+"] = round(_recall_by_words(workspaces, embed, signs, weights), 3)
    return figures


def _recall_by_words(workspaces: Any, embed: Any, signs: np.ndarray, weights: np.ndarray) -> float:
    """As `windows.recall`, where the best sixteen are put into order by words that are alike, too."""
    shares: list[float] = []
    for workspace in workspaces:
        likeness = embed([question for question, _, _ in workspace["qs"]]) @ embed(workspace["windows"]).T
        for (question, _, pieces), row in zip(workspace["qs"], likeness, strict=True):
            best = np.argsort(-row, kind="stable")[:16]
            asked = np.unique(np.asarray(question, np.int64))
            asked = asked[weights[asked] >= 0.08 * weights[asked].sum()]
            scores = []
            for at in best:
                there = np.unique(np.asarray(workspace["windows"][at], np.int64))
                nearest = (signs[asked] @ signs[there].T).max(1)
                like = (
                    np.cos(np.pi * (signs.shape[1] - nearest) / (2 * signs.shape[1])) * weights[asked]
                ).sum() / weights[asked].sum()
                scores.append(
                    0.4 * row[at] + 0.6 * (like - 0.06 * np.log(4 * len(workspace["windows"][at]) + 60))
                )
            chosen = set(best[np.argsort(-np.array(scores), kind="stable")[: windows.SHOWN]].tolist())
            if held := [piece for piece in pieces if piece]:
                shares.append(sum(bool(chosen.intersection(piece)) for piece in held) / len(held))
    return float(np.mean(shares))


def main() -> None:
    """Train each plan, measure it, write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("folder", "model", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--plans", default='{"plain": {}}', help="JSON: name → fields of a plan that differ")
    given = parser.parse_args()
    first = read_model(given.model)
    pairs, known = read_pairs(given.folder)
    for kind, some in pairs.items():
        log(f"{len(some.left)} pairs of {kind}")
    sets = (
        windows.read_sets(given.folder / "sets.json.xz") if (given.folder / "sets.json.xz").exists() else {}
    )
    log(f"as it is {measure(first, sets)}")
    given.out.mkdir(parents=True, exist_ok=True)
    figures = {}
    is_english = np.load(given.folder / "english.npy")
    run = trainer(first, pairs, known, Plan().batch)
    for name, fields in json.loads(given.plans).items():
        made = train(run, first, is_english, Plan(**fields))
        rows, scale = table.quantise(made)
        figures[name] = measure(rows * scale[:, None], sets)
        log(f"{name} {fields} {figures[name]}")
        np.savez(given.out / f"{name}.npz", rows=rows, scale=scale)
        (given.out / "figures.json").write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
