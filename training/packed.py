"""Questions and passages as numbers of word pieces, in files that are small enough to be carried to a lent machine.

questions.NN.xz  parts of one archive: tokens of questions and passages, and what belongs together
NAME.NN.xz       the same of the weights of an encoder
"""

from __future__ import annotations

import io
import lzma
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

QUESTION, PASSAGE = 48, 150  # the most pieces that are kept of each


class Packed(NamedTuple):
    """Everything a reranker learns from; texts are tokens without marks, as BERT numbers them."""

    questions: list[np.ndarray]
    passages: list[np.ndarray]
    answer: np.ndarray  # of a passage, by question
    others: list[np.ndarray]  # passages of the same document
    source: np.ndarray  # of a name, by question
    names: list[str]
    reworded: dict[int, np.ndarray]


def _flat(rows: Sequence[np.ndarray | Sequence[int]], kind: Any) -> tuple[np.ndarray, np.ndarray]:
    counts = np.array([len(row) for row in rows], np.uint16)
    return counts, np.concatenate([np.asarray(row, kind) for row in rows] or [np.zeros(0, kind)])


def _rows(counts: np.ndarray, flat: np.ndarray) -> list[np.ndarray]:
    return np.split(flat, np.cumsum(counts.astype(np.int64))[:-1])


def write(folder: Path, packed: Packed, most: int) -> list[Path]:
    """Write files of at most so many bytes each."""
    arrays: dict[str, np.ndarray] = {
        "answer": packed.answer.astype(np.int32),
        "source": packed.source.astype(np.uint8),
    }
    for name, rows in (("questions", packed.questions), ("passages", packed.passages)):
        arrays[f"{name}.counts"], arrays[f"{name}.flat"] = _flat(rows, np.uint16)
    arrays["others.counts"], arrays["others.flat"] = _flat(packed.others, np.int32)
    arrays["reworded.at"] = np.array(list(packed.reworded), np.int32)
    arrays["reworded.counts"], arrays["reworded.flat"] = _flat(list(packed.reworded.values()), np.uint16)
    arrays["names"] = np.array(packed.names)
    # Passages of one document are numbered in a row, so differences are small and pack well.
    arrays["others.flat"] = np.diff(arrays["others.flat"], prepend=0).astype(np.int32)
    arrays["answer"] = np.diff(arrays["answer"], prepend=0).astype(np.int32)
    return _write(
        folder, "questions", arrays, most, {"preset": 6, "dict_size": 1 << 26, "lc": 0, "lp": 1, "pb": 1}
    )


def write_weights(folder: Path, name: str, arrays: Mapping[str, np.ndarray], most: int) -> list[Path]:
    """Write an encoder in files of at most so many bytes each."""
    return _write(folder, name, arrays, most, {"preset": 1, "lc": 0, "lp": 0, "pb": 0})


def read_arrays(folder: Path, name: str) -> dict[str, np.ndarray]:
    """What files of that name hold together."""
    whole = b"".join(file.read_bytes() for file in sorted(folder.glob(f"{name}.*.xz")))
    with np.load(io.BytesIO(lzma.decompress(whole))) as arrays:
        return {key: arrays[key] for key in arrays.files}


def _write(
    folder: Path, name: str, arrays: Mapping[str, np.ndarray], most: int, packing: dict[str, int]
) -> list[Path]:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    filters = [{"id": lzma.FILTER_LZMA2, **packing}]
    whole = lzma.compress(stream.getvalue(), format=lzma.FORMAT_XZ, filters=filters)
    files = []
    for number, at in enumerate(range(0, len(whole), most)):
        files.append(folder / f"{name}.{number:02d}.xz")
        files[-1].write_bytes(whole[at : at + most])
    return files


def read(folder: Path) -> Packed:
    """What `write` wrote."""
    found = read_arrays(folder, "questions")
    others = np.cumsum(found["others.flat"], dtype=np.int64)
    reworded = _rows(found["reworded.counts"], found["reworded.flat"]) if len(found["reworded.at"]) else []
    return Packed(
        _rows(found["questions.counts"], found["questions.flat"]),
        _rows(found["passages.counts"], found["passages.flat"]),
        np.cumsum(found["answer"], dtype=np.int64),
        _rows(found["others.counts"], others),
        found["source"],
        [str(name) for name in found["names"]],
        dict(zip(found["reworded.at"].tolist(), reworded, strict=True)),
    )
