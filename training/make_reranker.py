"""Make the reranker from prepared questions: `python -m training.make_reranker FOLDER OUT`, on a machine with a GPU.

FOLDER holds what `training.prepare` made: `questions.*.xz`, the weights that teachers begin with as `mpnet.*.xz` and
`minilm.*.xz`, and the words of these encoders as `minilm-tokenizer.json`; and pairs to measure on as `measured.npz`.
The student goes on from the model that is shipped. Teacher and student are left in FOLDER, since a lent machine runs no
command as long as all of it takes: a teacher that is there is not trained again, and a student goes on.
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
    """Find neighbours, train the teacher, distil the student, measure both, write the student."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--teacher-seconds", type=float, default=400)
    parser.add_argument("--student-seconds", type=float, default=400)
    parser.add_argument("--steps", type=int, help="instead of seconds, for a small try")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--student-batch", type=int, default=64)
    parser.add_argument("--nearness", type=float, default=10.0, help="what a cosine of one adds to log-odds")
    parser.add_argument("--rate", type=float, default=1.5e-4, help="the highest one of the student")
    parser.add_argument("--only", choices=("teacher", "student"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    folder: Path = given.folder
    data = packed.read(folder)
    log(f"{len(data.questions)} questions, {len(data.passages)} passages")
    measured = dict(np.load(folder / "measured.npz")) if (folder / "measured.npz").exists() else None
    tables = _tables(data, folder, given.seed)
    log("the neighbours are known")
    kept = folder / "teacher.npz"
    if not kept.exists():
        begun = reranker.add_head(_encoder(folder, "mpnet"), given.seed)
        teacher = reranker.train_teacher(
            begun,
            transformer.MPNET,
            tables,
            given.batch,
            given.seed,
            given.teacher_seconds,
            3e-5,
            log,
            given.steps,
        )
        half: Any = {name: np.asarray(one, np.float16) for name, one in teacher.items()}
        np.savez(kept, **half)
        log("the teacher is kept")
        _measure("teacher", teacher, transformer.MPNET, measured, given.out)
    apart = {name: jnp.asarray(one, jnp.float32) for name, one in _encoder(folder, "minilm").items()}
    if given.only == "teacher":
        _measure("apart", apart, transformer.MINILM, measured, given.out)
        return
    with np.load(kept) as arrays:
        teacher = {name: jnp.asarray(arrays[name], jnp.float32) for name in arrays.files}
    begun = _student(folder)
    _measure("begun", begun, transformer.MINILM, measured, given.out)
    student = reranker.distil(
        begun, transformer.MINILM, reranker.Teachers(teacher, apart, given.nearness), transformer.MPNET, tables,
        given.student_batch, given.seed + 1, given.student_seconds, given.rate, log, given.steps,
    )  # fmt: skip
    stream = io.BytesIO()
    small: Any = {name: np.asarray(one, np.float16) for name, one in student.items()}
    np.savez(stream, **small)
    np.savez(folder / "student.npz", **small)
    for number, at in enumerate(range(0, len(stream.getvalue()), _PART)):
        (given.out / f"student.npz.{number}").write_bytes(stream.getvalue()[at : at + _PART])
    _measure("student", student, transformer.MINILM, measured, given.out)
    log("done")


def _student(folder: Path) -> Any:
    """What the student goes on from: what was learned before, or what is shipped."""
    kept = folder / "student.npz"
    if kept.exists():
        with np.load(kept) as arrays:
            return {name: jnp.asarray(arrays[name], jnp.float32) for name in arrays.files}
    numbers = json.loads((folder / "minilm-tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return {name: jnp.asarray(one) for name, one in reranker_files.read(SHIPPED, numbers).items()}


def _encoder(folder: Path, name: str) -> transformer.Parameters:
    return transformer.canonical(transformer.unpack(packed.read_arrays(folder, name)))


def _tables(data: packed.Packed, folder: Path, seed: int) -> reranker.Tables:
    """Questions with passages to tell apart; neighbours that are known are not looked for again."""
    known = folder / "neighbours.npy"
    if known.exists():
        near = np.load(known)
    else:
        words = _encoder(folder, "mpnet")["word_embeddings.weight"][4:].astype(np.float32)
        near = reranker.find_neighbours(data.questions, data.passages, data.answer, words, seed)
        np.save(known, near)
    counts = np.bincount(data.source, minlength=len(data.names))
    weight = np.array([BOOST.get(name, 1.0) for name in data.names]) / np.sqrt(np.maximum(counts, 1))
    return reranker.make_tables(
        data.questions, data.passages, data.answer, data.others, weight[data.source], near, data.reworded
    )


def _measure(
    name: str, parameters: Any, shape: transformer.Shape, pairs: dict[str, np.ndarray] | None, out: Path
) -> None:
    """Keep what is said of every pair that is measured on, for weighing it against the engine's opinion.

    What has no head reads question and passage apart, and says their cosine.
    """
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
        read = (
            rows,
            passages[:, None],
            jnp.zeros_like(lengths)[:, None],
            lengths[:, None],
            reranker.POOL_LENGTH,
        )
        if "head.weight" not in small:
            return reranker.nearness(tables, small, shape, *read)[:, 0]
        batch = reranker.join(tables, shape, *read)
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
