"""Make the reranker from prepared pairs: `python -m training.make_reranker FOLDER OUT`, on a machine with a GPU.

FOLDER holds `rerank.json.xz` (made by `training.prepare`), the weights of both encoders, and candidates to measure on.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from training import candidates, reranker, transformer
from training.make_table import batched, log

# Talk and everyday questions count for more than headings of manuals.
BOOST = {
    "qmsum": 3.0,
    "friendsqa": 3.0,
    "covidqa": 2.0,
    "medquad": 1.5,
    "dstc9_faq": 1.5,
    "xquad": 3.0,
    "sgd_memory": 1.5,
    "molweni": 2.0,
}
_NEIGHBOURS = 40


def main() -> None:
    """Mine, train the teacher, distil the student, measure both, write both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--teacher-seconds", type=float, default=500)
    parser.add_argument("--student-seconds", type=float, default=950)
    parser.add_argument("--steps", type=int, help="instead of seconds, for a small try")
    parser.add_argument("--teacher", type=Path, help="one that was trained before: only distil")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--student-batch", type=int, default=128)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    arguments.out.mkdir(parents=True, exist_ok=True)
    with lzma.open(folder / "rerank.json.xz", "rt", encoding="utf-8") as opened:
        prepared: dict[str, Any] = json.load(opened)
    log(f"{len(prepared['questions'])} questions, {len(prepared['passages'])} passages")
    tokens = _Words(folder / "minilm-tokenizer.json")
    questions, passages = tokens.encode(prepared["questions"], 64), tokens.encode(prepared["passages"], 240)
    minilm = transformer.canonical(transformer.unpack(_arrays(folder, "minilm")))
    data = _mine(prepared, questions, passages, minilm, folder / "neighbours.npz")
    log("mined")
    sets = {file.stem: candidates.read_candidates(file) for file in sorted((folder / "cand").glob("*.jsonl"))}
    sets.pop("cmrc_zh", None)  # neither encoder reads Chinese

    if arguments.teacher is not None:
        with np.load(arguments.teacher) as arrays:
            kept = transformer.unpack({name: arrays[name] for name in arrays.files})
        teacher = {name: jnp.asarray(array) for name, array in kept.items()}
    else:
        mpnet = transformer.canonical(transformer.unpack(_arrays(folder, "mpnet")))
        stream = reranker.batches(data, transformer.MPNET, arguments.batch, arguments.seed)
        teacher = reranker.train_teacher(
            reranker.add_head(mpnet, arguments.seed), transformer.MPNET, stream, arguments.teacher_seconds, 3e-5,
            log, arguments.steps,
        )  # fmt: skip
        packed: Any = transformer.pack({k: np.asarray(v) for k, v in teacher.items()})
        np.savez(arguments.out / "teacher.npz", **packed)
        log("the teacher is kept")

    reworded = {int(at): text for at, text in prepared["reworded"].items()}
    encoded = dict(zip(reworded, tokens.encode(list(reworded.values()), 64), strict=True))

    def read(number: int) -> reranker.Pools:
        pools = reranker.read_pools(
            data, teacher, transformer.MPNET, transformer.MINILM, encoded, arguments.seed + number
        )
        log(f"the teacher has read {pools.said.size} passages")
        return pools

    student = reranker.distil(
        reranker.add_head(minilm, arguments.seed), transformer.MINILM, read, arguments.student_batch,
        arguments.seed, arguments.student_seconds, 1.5e-4, log, arguments.steps,
    )  # fmt: skip
    half: Any = {k: np.asarray(v, np.float16) for k, v in student.items()}
    np.savez(arguments.out / "student.npz", **half)
    _measure("student", sets, _scorer(student, transformer.MINILM, tokens), arguments.out)
    _measure("teacher", sets, _scorer(teacher, transformer.MPNET, tokens), arguments.out)
    log("done")


def _measure(name: str, sets: dict[str, list[dict[str, Any]]], score: Any, out: Path) -> None:
    """Print what an order by these scores finds, and keep the scores, for weighing them against the engine's."""
    said = candidates.look_again(sets, score)
    log(f"{name}\n{candidates.report(sets, said)}")
    half: Any = {key: one.astype(np.float16) for key, one in said.items()}
    np.savez(out / f"{name}-said.npz", **half)


class _Words:
    """The word pieces that both encoders have, numbered as BERT has them."""

    def __init__(self, file: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, texts: Sequence[str], longest: int) -> list[np.ndarray]:
        found: list[np.ndarray] = []
        for at in range(0, len(texts), 20_000):
            part = self._tokenizer.encode_batch(
                [one[:3_000] for one in texts[at : at + 20_000]], add_special_tokens=False
            )
            found += [np.array(one.ids[:longest], np.int32) for one in part]
        return found


def _arrays(folder: Path, name: str) -> dict[str, np.ndarray]:
    packed: dict[str, np.ndarray] = {}
    for file in sorted(folder.glob(f"{name}.*.npz")):
        with np.load(file) as arrays:
            packed |= {key: arrays[key] for key in arrays.files}
    return packed


def _mine(
    prepared: dict[str, Any],
    questions: list[np.ndarray],
    passages: list[np.ndarray],
    encoder: transformer.Parameters,
    known: Path,
) -> reranker.Questions:
    """Questions with passages to tell apart; neighbours that are `known` are not looked for again."""
    if known.exists():
        with np.load(known) as arrays:
            neighbours = arrays["neighbours"]
    else:
        neighbours = _neighbours(prepared, questions, passages, encoder)
        np.savez_compressed(known, neighbours=neighbours)
    sources, inverse, counts = np.unique(prepared["source"], return_inverse=True, return_counts=True)
    weight = np.array([BOOST.get(str(name), 1.0) for name in sources]) * np.sqrt(counts) / counts
    chances = weight[inverse]
    return reranker.Questions(
        questions,
        passages,
        np.array(prepared["answer"]),
        prepared["others"],
        neighbours,
        chances / chances.sum(),
    )


def _neighbours(
    prepared: dict[str, Any],
    questions: list[np.ndarray],
    passages: list[np.ndarray],
    encoder: transformer.Parameters,
) -> np.ndarray:
    """Passages by the bi-encoder, without those that may well answer too; after them, what our engine found."""
    parameters = {name: jnp.asarray(array) for name, array in encoder.items()}
    shape = transformer.MINILM
    ask = jax.jit(lambda tokens: transformer.mean_vectors(parameters, shape, tokens))
    marked = [[[shape.begin, *one.tolist(), shape.end] for one in some] for some in (questions, passages)]
    # A shape takes as long to compile as forty thousand passages take to read.
    left, right = (batched(ask, some, shape.padding, 192, 1 << 16, (72,)) for some in marked)
    everything = jnp.asarray(right, jnp.bfloat16)
    answer = np.array(prepared["answer"])
    neighbours = np.full((len(questions), _NEIGHBOURS + 16), -1, np.int32)
    nearest = jax.jit(lambda some: jax.lax.top_k((some @ everything.T).astype(jnp.float32), _NEIGHBOURS + 8))
    for at in range(0, len(questions), 1024):
        part = left[at : at + 1024]
        likeness, found = (np.asarray(one) for one in nearest(jnp.asarray(part, jnp.bfloat16)))
        own = (part.astype(np.float32) * right[answer[at : at + len(part)]].astype(np.float32)).sum(1)
        for row in range(len(part)):
            kept = found[row][(likeness[row] < own[row] + 0.03) & (found[row] != answer[at + row])][
                :_NEIGHBOURS
            ]
            neighbours[at + row, : len(kept)] = kept
    for at, found_words in prepared.get("engine", {}).items():
        kept = [one for one in found_words[:16] if one != answer[int(at)]]
        neighbours[int(at), _NEIGHBOURS : _NEIGHBOURS + len(kept)] = kept
    return neighbours


def _scorer(parameters: Any, shape: transformer.Shape, tokens: _Words) -> Any:
    ask = jax.jit(lambda some, ids, kinds: transformer.pair_scores(some, shape, ids, kinds))

    def score(pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        left, right = (
            tokens.encode([one for one, _ in pairs], 64),
            tokens.encode([one for _, one in pairs], 240),
        )
        offset = 4 if shape.kind == "mpnet" else 0
        result = []
        size = min(512, len(pairs))
        for at in range(0, len(pairs), size):
            rows = [
                transformer.join_pair(shape, left[one] + offset, right[one] + offset, reranker.POOL_LENGTH)
                for one in range(at, min(at + size, len(pairs)))
            ]
            ids = np.full((size, reranker.POOL_LENGTH), shape.padding, np.int32)
            kinds = np.zeros_like(ids)
            for row, (one, kind) in enumerate(rows):
                ids[row], kinds[row] = one, kind
            ids[len(rows) :, 0] = shape.begin
            result.append(np.asarray(ask(parameters, ids, kinds))[: len(rows)])
        return np.concatenate(result)

    return score


if __name__ == "__main__":
    main()
