"""Make the reranker from prepared questions: `python -m training.make_reranker FOLDER OUT`, on a machine with a GPU.

FOLDER holds what `training.prepare` made: `questions.*.xz`, the weights that teachers begin with as `mpnet.*.xz` and
the words of these encoders as `minilm-tokenizer.json`; and pairs to measure on as `measured.npz`.
The student goes on from the model that is shipped. A lent machine runs no command as long as all of it takes: start it
in a session of its own (`setsid`), and fetch what it leaves in OUT.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from training import packed, reranker, reranker_files, transformer

# Talk and everyday questions count for more than headings of manuals.
BOOST = {
    "qmsum": 3.0,
    "friendsqa": 3.0,
    "covidqa": 2.0,
    "medquad": 1.5,
    "dstc9_faq": 1.0,
    "xquad": 3.0,
    "sgd_memory": 1.5,
    "molweni": 2.0,
    "acl": 1.5,
    "talk_chitchat": 2.0,
    "talk_topical": 1.5,
    "talk_changelog": 1.5,
    "shifts_reddit": 2.5,
    "shifts_amazon": 2.0,
    "shifts_wiki": 1.5,
    "fairytales": 2.0,
    "written_chat": 3.0,
    "written_asked": 3.0,
    "written_notes": 4.0,
    "written_friends": 5.0,
    "written_messages": 4.0,
    "written_assistant": 4.0,
    "written_asia": 2.0,
    "written_europe": 2.0,
}
SHIPPED = Path(__file__).resolve().parent.parent / "packages/plainmind-reranker/src/plainmind_reranker"
_PART = 14_000_000
_BEGUN = time.time()


def log(text: str) -> None:
    """Print with the seconds since the start."""
    print(f"[{time.time() - _BEGUN:6.1f}] {text}", flush=True)


def main() -> None:
    """Find neighbours, train both, write the student, measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=800, help="since the start; measuring comes after it"
    )
    parser.add_argument("--steps", type=int, help="instead of seconds, for a small try")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rates", type=float, nargs=2, default=(3e-5, 1.5e-4), help="the highest of each")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    folder: Path = given.folder
    data = packed.read(folder)
    log(f"{len(data.questions)} questions, {len(data.passages)} passages")
    measured = dict(np.load(folder / "measured.npz")) if (folder / "measured.npz").exists() else None
    mpnet = _encoder(folder, "mpnet")
    tables = _tables(data, mpnet, given.seed)
    log("the neighbours are known")
    teacher, student = reranker.train_together(
        reranker.add_head(mpnet, given.seed), transformer.MPNET, _student(folder), transformer.MINILM, tables,
        given.batch, given.seed, _BEGUN + given.seconds, tuple(given.rates), log, given.steps,
    )  # fmt: skip
    stream = io.BytesIO()
    small: Any = {name: np.asarray(one, np.float16) for name, one in student.items()}
    np.savez(stream, **small)
    for number, at in enumerate(range(0, len(stream.getvalue()), _PART)):
        (given.out / f"student.npz.{number}").write_bytes(stream.getvalue()[at : at + _PART])
    log("the student is kept")
    _measure("student", student, transformer.MINILM, measured, given.out)
    _measure("teacher", teacher, transformer.MPNET, measured, given.out)
    log("done")


def _student(folder: Path) -> Any:
    """What the student goes on from: the one that is shipped."""
    numbers = json.loads((folder / "minilm-tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return {name: jnp.asarray(one) for name, one in reranker_files.read(SHIPPED, numbers).items()}


def _encoder(folder: Path, name: str) -> transformer.Parameters:
    return transformer.canonical(transformer.unpack(packed.read_arrays(folder, name)))


def _tables(data: packed.Packed, mpnet: transformer.Parameters, seed: int) -> reranker.Tables:
    """Questions with passages to tell apart."""
    words = mpnet["word_embeddings.weight"][4:].astype(np.float32)
    near = reranker.find_neighbours(data.questions, data.passages, data.answer, words, seed)
    counts = np.bincount(data.source, minlength=len(data.names))
    weight = np.array([BOOST.get(name, 1.0) for name in data.names]) / np.sqrt(np.maximum(counts, 1))
    return reranker.make_tables(
        data.questions, data.passages, data.answer, data.others, weight[data.source], near, data.reworded
    )


def _measure(
    name: str, parameters: Any, shape: transformer.Shape, pairs: dict[str, np.ndarray] | None, out: Path
) -> None:
    """Keep what is said of every pair that is measured on, for weighing it against the engine's opinion."""
    if pairs is None:
        return
    small = reranker.in_half(parameters)
    nothing = np.zeros(1)
    tables = reranker.Tables(*(jnp.asarray(one) for one in (
        pairs["questions"], pairs["question_lengths"], pairs["passages"], pairs["passage_lengths"],
        *(nothing,) * 4, pairs["questions"], pairs["question_lengths"],
    )))  # fmt: skip

    @jax.jit
    def score(tables: reranker.Tables, small: Any, rows: jax.Array, passages: jax.Array) -> jax.Array:
        lengths = tables.passage_lengths[passages]
        zero = jnp.zeros_like(lengths)[:, None]
        batch = reranker.join(tables, shape, rows, passages[:, None], zero, lengths[:, None], reranker.LENGTH)
        return reranker.scores_of(small, shape, batch, whole=shape.kind == "bert")[:, 0]

    size, total = min(1024, len(pairs["of_question"])), len(pairs["of_question"])
    said = []
    for at in range(0, total, size):
        numbers = np.arange(at, at + size) % total
        said.append(score(tables, small, pairs["of_question"][numbers], numbers))
    np.save(out / f"{name}-said.npy", np.concatenate([np.asarray(one) for one in said])[:total])
    log(f"the {name} is measured")


if __name__ == "__main__":
    main()
