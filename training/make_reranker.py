"""Make the reranker from prepared questions: `python -m training.make_reranker FOLDER OUT`, on a machine with a GPU.

FOLDER holds what `training.prepare` made: `questions.*.xz`, the weights that teachers begin with as `mpnet.*.xz`,
`pieces.txt` with all pieces and `begun.npz`, between which of an encoder's own the new ones begin; and pairs to measure
on as `measured.npz`. Each student leaves the files of its package in OUT/NAME.
A lent machine runs no command as long as all of it takes: start it in a session of its own (`setsid`), and fetch what
it leaves in OUT, which must be no folder that the machine empties between two commands.
"""

from __future__ import annotations

import argparse
import os
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
    "written_asia": 3.0,
    "written_europe": 3.0,
    "written_tongues": 4.0,
    "written_reports": 4.0,
    "written_programs": 4.0,
    "written_words": 4.0,
    "kdconv": 1.5,
    "jaquad": 2.0,
    "jsquad": 2.0,
    "realpersonachat": 2.0,
    "drcd_devtest": 1.5,
    "everyday": 1.0,
    "everyday_reworded": 1.0,
}
ELSEWHERE = 0.5  # of other sources in another language than English, which are manuals
ENGLISH = 1.5  # so that more than half of what is drawn is English
SHIPPED = Path(__file__).resolve().parent.parent / "packages/plainmind-reranker/src/plainmind_reranker"
_MARKS = 4  # that mpnet's words have before the first of BERT's
_BEGUN = time.time()


def log(text: str) -> None:
    """Print with the seconds since the start."""
    print(f"[{time.time() - _BEGUN:6.1f}] {text}", flush=True)


def main() -> None:
    """Find neighbours, train all, write the students, measure all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--students", nargs="+", default=["shipped"], choices=("shipped", "twelve", "every_second")
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=800, help="since the start; measuring comes after it"
    )
    parser.add_argument("--steps", type=int, help="instead of seconds, for a small try")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rates", type=float, nargs=2, default=(3e-5, 1.5e-4), help="the highest of each")
    given = parser.parse_args()
    emptied = os.environ.get("OUT")
    if emptied and given.out.resolve().is_relative_to(Path(emptied).resolve()):
        parser.error(
            "OUT is emptied before each command on this machine: choose another folder, and copy from it"
        )
    given.out.mkdir(parents=True, exist_ok=True)
    folder: Path = given.folder
    data = packed.read(folder)
    log(f"{len(data.questions)} questions, {len(data.passages)} passages")
    measured = dict(np.load(folder / "measured.npz")) if (folder / "measured.npz").exists() else None
    pieces = (folder / "pieces.txt").read_text(encoding="utf-8").split("\n")[:-1]
    with np.load(folder / "begun.npz") as begun:
        numbers, shares = begun["numbers"], begun["shares"]
    mpnet = _teacher(folder, len(pieces) - len(numbers), numbers, shares)
    tables = _tables(data, mpnet, given.seed)
    log("the neighbours are known")
    begun = [_student(folder, name, pieces, numbers, shares) for name in given.students]
    teacher, students = reranker.train_together(
        reranker.add_head(mpnet, given.seed), transformer.MPNET, begun, transformer.MINILM, tables, given.batch,
        given.seed, _BEGUN + given.seconds, tuple(given.rates), log, given.steps,
    )  # fmt: skip
    for name, one in zip(given.students, students, strict=True):
        arrays = {key: np.asarray(array) for key, array in one.items()}
        reranker_files.write(given.out / name, arrays, pieces, transformer.MINILM.heads)
    log("the students are kept")
    for name, one in zip(given.students, students, strict=True):
        _measure(name, one, transformer.MINILM, measured, given.out)
    _measure("teacher", teacher, transformer.MPNET, measured, given.out)
    log("done")


def _student(
    folder: Path, name: str, pieces: list[str], numbers: np.ndarray, shares: np.ndarray
) -> transformer.Parameters:
    """What a student begins as: the one that is shipped, or a reranker of twelve layers or every second of them.

    Pieces that it did not know begin between those that it did.
    """
    own = len(pieces) - len(numbers)
    if name == "shipped":
        student = reranker_files.read(SHIPPED, {piece: at for at, piece in enumerate(pieces)})
    else:
        student = transformer.unpack(packed.read_arrays(folder, "twelve"))
        room = np.zeros((len(numbers), student["word_embeddings.weight"].shape[1]), np.float32)
        student["word_embeddings.weight"] = np.concatenate([student["word_embeddings.weight"], room])
    if name == "every_second":
        student = transformer.every_second(student)
    words = student["word_embeddings.weight"]
    new = words[own:]
    is_unknown = ~new.any(1)
    new[is_unknown] = reranker.grow(words[:own], numbers, shares)[is_unknown]
    return {key: jnp.asarray(array, jnp.float32) for key, array in student.items()}


def _teacher(folder: Path, own: int, numbers: np.ndarray, shares: np.ndarray) -> transformer.Parameters:
    teacher = transformer.canonical(transformer.unpack(packed.read_arrays(folder, "mpnet")))
    words = np.asarray(teacher["word_embeddings.weight"])[: _MARKS + own]
    new = reranker.grow(words[_MARKS:], numbers, shares)
    return {**teacher, "word_embeddings.weight": np.concatenate([words, new])}


def _tables(data: packed.Packed, mpnet: transformer.Parameters, seed: int) -> reranker.Tables:
    """Questions with passages to tell apart."""
    words = mpnet["word_embeddings.weight"][_MARKS:].astype(np.float32)
    near = reranker.find_neighbours(data.questions, data.passages, data.answer, words, seed)
    counts = np.bincount(data.source, minlength=len(data.names))
    english = np.array([" " not in name for name in data.names])
    boosts = [
        ENGLISH * BOOST.get(name, 1.0) if " " not in name else BOOST.get(name.split(" ")[0], ELSEWHERE)
        for name in data.names
    ]
    weight = np.array(boosts) / np.sqrt(np.maximum(counts, 1))
    share = float((weight * counts)[english].sum() / (weight * counts).sum())
    log(f"{share:.2f} of what is drawn is English")
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
