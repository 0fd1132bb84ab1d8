"""What models are measured on while they are made, as numbers: `python -m training.measured KIND … OUT`.

`pairs`: questions with the passages that a reranker is given (`training.candidates` records them), as word pieces.
`windows`: notes cut into windows of 700 characters and questions about them, as pieces of a table.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plainmind.guests.evaluation.dataset import AskedWorkspace, Question, read_dataset
from plainmind.guests.evaluation.scoring import pieces_of
from plainmind.guests.rerank.word_pieces import WordPieces
from training.candidates import SHOWN
from training.prepare_everyday import Cutter
from training.reranker import padded

_ROOM = 700
_WHOLE = 8  # results of which the rest is read too


def read_recorded(file: Path) -> list[dict[str, Any]]:
    """The questions of a file that `training.candidates` wrote."""
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def texts_of(row: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """What is read of a question's results: numbers of results and passages."""
    for at, result in enumerate(row["results"]):
        yield at, result["passage"]
        if at < _WHOLE and result["rest"]:
            yield at, result["rest"]


def write_pairs(files: Sequence[Path], pieces: Path, out: Path, results: int) -> None:
    """Write every question with the passages of its first results."""
    cutter = WordPieces(pieces.read_text(encoding="utf-8").split("\n")[:-1])

    def encode(texts: Sequence[str], longest: int) -> tuple[np.ndarray, np.ndarray]:
        return padded([np.array(cutter.encode(text)[:longest], np.uint16) for text in texts], longest)

    rows = [row for file in files for row in read_recorded(file)]
    passages = [
        (number, text) for number, row in enumerate(rows) for at, text in texts_of(row) if at < results
    ]
    questions, question_lengths = encode([row["question"] for row in rows], 48)
    read, lengths = encode([text for _, text in passages], 126)
    np.savez_compressed(
        out, questions=questions, question_lengths=question_lengths, passages=read, passage_lengths=lengths,
        of_question=np.array([number for number, _ in passages], np.int32),
    )  # fmt: skip


def said_of(
    files: Sequence[Path], said: np.ndarray, results: int
) -> dict[str, tuple[list[dict[str, Any]], list[list[float | None]]]]:
    """By set its questions, and of each result the higher log-odds of what was read; in the order of `write_pairs`."""
    found, number = {}, 0
    for file in files:
        rows = read_recorded(file)
        of_rows: list[list[float | None]] = []
        for row in rows:
            best: list[float | None] = [None] * len(row["results"])
            for at, _ in texts_of(row):
                if at < results:
                    known, one = best[at], float(said[number])
                    best[at] = one if known is None else max(known, one)
                    number += 1
            of_rows.append(best)
        found[file.stem] = (rows, of_rows)
    return found


def cut_windows(workspace: AskedWorkspace) -> list[tuple[str, int, int, str]]:
    """(path, first line, last line, text) of windows of 700 characters; each begins in the middle of the last."""
    found = []
    for file in sorted(Path(workspace.folder).rglob("*.md")):
        lines = file.read_text(encoding="utf-8").split("\n")
        path = file.relative_to(workspace.folder).as_posix()
        first = 0
        while first < len(lines):
            last, room = first, _ROOM
            while last < len(lines) and (last == first or len(lines[last]) < room):
                room -= len(lines[last]) + 1
                last += 1
            found.append((path, first + 1, last, "\n".join(lines[first:last])))
            first = max(first + 1, first + (last - first) // 2)
    return found


def write_windows(sets: Sequence[tuple[str, Path, str]], model: Path, out: Path) -> None:
    """Write sets of workspaces; our own questions also by kind, those across languages and those in other words."""
    cutter = Cutter((model / "pieces").read_text(encoding="utf-8").split("\n")[:-1])
    made: dict[str, list[dict[str, Any]]] = {}
    for name, folder, questions in sets:
        for workspace in read_dataset(str(folder), queries=questions):
            windows = cut_windows(workspace)
            numbers = [cutter.cut(text).tolist() for *_, text in windows]
            for kind, asked in _by_kind(name, workspace.questions).items():
                rows = []
                for question in asked:
                    pieces = [
                        [
                            at
                            for at, (path, first, last, _) in enumerate(windows)
                            if any(path == where and first <= line <= last for where, line in piece)
                        ]
                        for piece in pieces_of(question)
                    ]
                    rows.append((cutter.cut(question.text).tolist(), question.category, pieces))
                if rows:
                    made.setdefault(kind, []).append({"windows": numbers, "qs": rows})
    out.write_bytes(lzma.compress(json.dumps(made).encode(), preset=6))


def _by_kind(name: str, questions: Sequence[Question]) -> dict[str, list[Question]]:
    asked = [one for one in questions if one.evidence]
    if name != "own":
        return {name: asked}
    kinds = {"across": "own_across", "paraphrase": "own_paraphrase"}
    found: dict[str, list[Question]] = {}
    for one in asked:
        found.setdefault(kinds.get(one.category, "own_rest"), []).append(one)
    return found


def main() -> None:
    """Write one of both."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    pairs = kinds.add_parser("pairs", help="for a reranker")
    pairs.add_argument("pieces", type=Path, help="the word pieces, a line each")
    pairs.add_argument("out", type=Path)
    pairs.add_argument("files", type=Path, nargs="+")
    pairs.add_argument("--results", type=int, default=24)
    cut = kinds.add_parser("windows", help=f"for a table: what stands among the {SHOWN} nearest")
    cut.add_argument("model", type=Path)
    cut.add_argument("out", type=Path)
    cut.add_argument(
        "sets", nargs="+", help="NAME=FOLDER or NAME=FOLDER:QUESTIONS; NAME `own` is told apart by kind"
    )
    given = parser.parse_args()
    if given.kind == "pairs":
        write_pairs(given.files, given.pieces, given.out, given.results)
        return
    sets = []
    for one in given.sets:
        name, _, where = one.partition("=")
        folder, _, questions = where.partition(":")
        sets.append((name, Path(folder), questions or "queries"))
    write_windows(sets, given.model, given.out)


if __name__ == "__main__":
    main()
