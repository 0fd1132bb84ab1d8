"""Write the embedder as the files that the package carries: `python -m training.model_files PIECES TABLE… FOLDER`.

    vectors.i8   rows × 256 int8, row by row: one a piece, then the rows that unknown characters share
    scales.f32   a little-endian float32 a row: what its int8 values are multiplied with
    pieces       the pieces in the order of their bytes, UTF-8, a line each
    ends.u32     a little-endian uint32 a piece: where its line ends in `pieces`
    model.json   name, sizes, and a digest of the four files above

Several tables of one training, tried with different plans, are averaged.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np

from plainmind.embed.builtin import SHARED_ROWS
from training.table import quantise

NAME = "plainmind-pieces-2"
FORMAT = 2
FILES = ("vectors.i8", "scales.f32", "pieces", "ends.u32")


def write(folder: Path, pieces: list[str], table: np.ndarray) -> None:
    """Write all files; the card comes last."""
    if len(table) != len(pieces) + SHARED_ROWS:
        raise ValueError(f"{len(table)} rows for {len(pieces)} pieces and {SHARED_ROWS} shared rows")
    if pieces != sorted(set(pieces), key=str.encode):
        raise ValueError("pieces stand in the order of their bytes, each once")
    rows, scales = quantise(table)
    encoded = [piece.encode() + b"\n" for piece in pieces]
    contents = {
        "vectors.i8": rows.tobytes(),
        "scales.f32": scales.astype("<f4").tobytes(),
        "pieces": b"".join(encoded),
        "ends.u32": np.cumsum([len(piece) for piece in encoded]).astype("<u4").tobytes(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(str(FORMAT).encode())
    for name in FILES:
        (folder / name).write_bytes(contents[name])
        digest.update(contents[name])
    card = {
        "name": NAME, "format": FORMAT, "dims": table.shape[1], "rows": len(table), "digest": digest.hexdigest(),
        "sizes": {name: len(contents[name]) for name in FILES},
    }  # fmt: skip
    (folder / "model.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def read_table(file: Path) -> np.ndarray:
    """A table as the training wrote it."""
    with np.load(file) as arrays:
        return np.asarray(arrays["rows"].astype(np.float32) * arrays["scale"][:, None])


def main() -> None:
    """Average the tables and write the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pieces", type=Path)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    pieces = given.pieces.read_text(encoding="utf-8").split("\n")
    write(given.folder, pieces, np.mean([read_table(file) for file in given.tables], axis=0))


if __name__ == "__main__":
    main()
