"""Make the embedder from a prepared corpus: `python -m training.make_table FOLDER OUT`, on a machine with a GPU.

FOLDER holds `corpus.json.xz` and `pieces.txt` (made by `training.prepare`), the teachers' weights, and sets to
measure on.
"""

from __future__ import annotations

import argparse
import json
import lzma
import multiprocessing
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plainmind.embed.builtin import SHARED_ROWS, Tokenizer
from training import sentence_encoder, table, transformer, windows
from training.vocabulary import SHARES, make_vocabulary

DIMS = 256
_BEGUN = time.time()
_TOKENIZER: list[Tokenizer] = []


def log(text: str) -> None:
    """Print with the seconds since the start."""
    print(f"[{time.time() - _BEGUN:6.1f}] {text}", flush=True)


def _start(pieces: Sequence[str]) -> None:
    _TOKENIZER.append(Tokenizer(make_vocabulary(pieces)))


def _encode(texts: Sequence[str]) -> list[np.ndarray]:
    return [np.array(_TOKENIZER[0].encode(text)[: table.LONG], np.int32) for text in texts]


def encode_all(texts: Sequence[str], pieces: Sequence[str]) -> list[np.ndarray]:
    """Ids of the pieces of all texts, by as many processes as there are cores."""
    parts = [texts[at : at + 4_000] for at in range(0, len(texts), 4_000)]
    with multiprocessing.get_context("fork").Pool(initializer=_start, initargs=(pieces,)) as pool:
        return [ids for part in pool.map(_encode, parts) for ids in part]


def batched(
    embed: Callable[[jax.Array], jax.Array],
    ids: Sequence[Sequence[int]],
    padding: int,
    longest: int,
    places: int,
    lengths_at_once: Sequence[int] = (16, 32, 64, 128, 256, 512),
) -> np.ndarray:
    """Vectors of texts of like lengths together, some `places` at a time; few shapes, so few compilations."""
    lengths = np.array([min(len(one), longest) for one in ids])
    edges = [one for one in lengths_at_once if one < longest] + [longest]
    result: np.ndarray | None = None
    low = -1
    for edge in edges:
        chosen = np.flatnonzero((lengths > low) & (lengths <= edge))
        low = edge
        size = min(max(8, places // edge), 1 << max(3, len(chosen) - 1).bit_length())
        for at in range(0, len(chosen), size):
            part = chosen[at : at + size]
            matrix = np.full((size, edge), padding, np.int32)
            for row, index in enumerate(part):
                matrix[row, : lengths[index]] = ids[index][:edge]
            found = np.asarray(embed(jnp.asarray(matrix)), np.float32)[: len(part)]
            if result is None:
                result = np.zeros((len(ids), found.shape[1]), np.float16)
            result[part] = found
    assert result is not None
    return result


def main() -> None:
    """Read, ask the teachers, train each plan, measure it, and write the best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=10**9, help="texts a language, for a small try")
    parser.add_argument("--plans", default="{}", help="JSON: name → fields of a plan that differ")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    pieces = (folder / "pieces.txt").read_text(encoding="utf-8").split("\n")
    with lzma.open(folder / "corpus.json.xz", "rt", encoding="utf-8") as opened:
        corpus: dict[str, Any] = json.load(opened)
    everything: list[str] = corpus["all"]
    numbers = {language: some[: arguments.most] for language, some in corpus["texts"].items()}
    names = [language for language, some in numbers.items() for _ in some]
    chosen = [number for some in numbers.values() for number in some]
    flat = [everything[number] for number in chosen]
    is_english = np.array([name == "en" for name in names])
    log(f"{len(flat)} texts, {len(corpus['answers'])} answers, {len(corpus['same'])} of one meaning")

    wide_weights = {
        name: jnp.asarray(array) if isinstance(array, np.ndarray) else array
        for name, array in sentence_encoder.read_weights(folder / "use.npz").items()
    }
    wide_weights["table"] = wide_weights["table"].astype(jnp.bfloat16)
    wide_tokenizer = sentence_encoder.read_tokenizer(folder / "use.model")
    ask_wide = jax.jit(lambda tokens: sentence_encoder.vectors(wide_weights, tokens))

    def wide(some: Sequence[str]) -> np.ndarray:
        ids = sentence_encoder.token_ids(wide_tokenizer, some, 192)
        return batched(ask_wide, ids, sentence_encoder.PADDING, 192, 1 << 17)

    wide_said = wide(flat)
    pieces_said = wide([piece.removeprefix("-") for piece in pieces])
    log("the multilingual teacher has spoken")
    all_ids = encode_all(everything, pieces)
    ids = [all_ids[number] for number in chosen]
    log(f"cut into pieces, {np.mean([len(one) for one in ids]):.1f} a text")
    english_said = _ask_english(
        folder, [text for text, english in zip(flat, is_english, strict=True) if english]
    )
    log("the English teacher has spoken")

    english_targets, other_targets, of_wide = table.make_targets(
        english_said.astype(np.float32), wide_said[is_english].astype(np.float32),
        wide_said[~is_english].astype(np.float32), DIMS, 0.6,
    )  # fmt: skip
    targets = np.empty((len(flat), DIMS), np.float32)
    targets[is_english], targets[~is_english] = english_targets, other_targets
    counts = np.bincount(np.concatenate(ids), minlength=len(pieces) + SHARED_ROWS)[: len(pieces)] + 1.0
    first = table.first_table(of_wide(pieces_said.astype(np.float32)), counts, SHARED_ROWS, arguments.seed)

    short, long = _texts(ids, targets, names, is_short=True), _texts(ids, targets, names, is_short=False)
    answers = _pairs(corpus["answers"], all_ids, (48, table.LONG))
    same = _pairs(corpus["same"], all_ids, (96, 96))
    log("ready")
    sets = windows.read_sets(folder / "evalpack.json.xz") if (folder / "evalpack.json.xz").exists() else {}
    encoded = {name: _encode_set(workspaces, pieces) for name, workspaces in sets.items()}
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, fields in {"first": {"steps": 0}, **json.loads(arguments.plans)}.items():
        made = table.train(first, short, long, answers, same, table.Plan(**fields), arguments.seed, log)
        figures = {}
        for set_name, (workspaces, known) in encoded.items():
            figures[set_name] = round(windows.recall(workspaces, partial(_vectors, made, known)), 3)
        log(f"{name} {fields} {figures}")
        rows, scale = table.quantise(made)
        if fields.get("steps") != 0:
            np.savez(arguments.out / f"{name}.npz", rows=rows, scale=scale)


def _ask_english(folder: Path, texts: Sequence[str]) -> np.ndarray:
    from tokenizers import Tokenizer as WordPiece

    tokenizer = WordPiece.from_file(str(folder / "mpnet-tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(192)
    packed: dict[str, np.ndarray] = {}
    for file in sorted(folder.glob("mpnet.*.npz")):
        with np.load(file) as arrays:
            packed |= {name: arrays[name] for name in arrays.files}
    parameters = {
        name: jnp.asarray(array) for name, array in transformer.canonical(transformer.unpack(packed)).items()
    }
    ids = [
        one.ids
        for at in range(0, len(texts), 20_000)
        for one in tokenizer.encode_batch(texts[at : at + 20_000])
    ]
    ask = jax.jit(lambda tokens: transformer.mean_vectors(parameters, transformer.MPNET, tokens))
    return batched(ask, ids, transformer.MPNET.padding, 192, 1 << 16)


def _texts(
    ids: Sequence[np.ndarray], targets: np.ndarray, names: Sequence[str], *, is_short: bool
) -> table.Texts:
    """Texts of up to 32 pieces or longer ones, every language drawn by its share."""
    chosen = np.array(
        [at for at, one in enumerate(ids) if len(one) and (len(one) <= table.SHORT) == is_short]
    )
    languages = np.array(names)[chosen]
    weights = np.zeros(len(chosen))
    for language, share in SHARES.items():
        here = languages == language
        weights[here] = share / max(1, here.sum())
    cumulative = np.cumsum(weights) / weights.sum()
    length = table.SHORT if is_short else table.LONG
    return table.Texts(
        jnp.asarray(table.pad([ids[at] for at in chosen], length)),
        jnp.asarray(targets[chosen]),
        jnp.asarray(cumulative, jnp.float32),
    )


def _pairs(
    pairs: Sequence[tuple[int, int]], ids: Sequence[np.ndarray], lengths: tuple[int, int]
) -> table.Pairs:
    kept = [(left, right) for left, right in pairs if len(ids[left]) and len(ids[right])]
    return table.Pairs(
        jnp.asarray(table.pad([ids[left] for left, _ in kept], lengths[0])),
        jnp.asarray(table.pad([ids[right] for _, right in kept], lengths[1])),
    )


def _encode_set(
    workspaces: Sequence[dict[str, Any]], pieces: Sequence[str]
) -> tuple[Any, dict[str, np.ndarray]]:
    texts = list(
        dict.fromkeys(
            text
            for one in workspaces
            for text in (*one["windows"], *(question for question, _, _ in one["qs"]))
        )
    )
    return workspaces, dict(zip(texts, encode_all(texts, pieces), strict=True))


def _vectors(made: np.ndarray, known: dict[str, np.ndarray], texts: Sequence[str]) -> np.ndarray:
    sums = np.stack([made[known[text]].sum(0) for text in texts])
    return np.asarray(sums / (np.linalg.norm(sums, axis=1, keepdims=True) + 1e-9))


if __name__ == "__main__":
    main()
