"""Record what a reranker is given, once, and judge any reranker by it: `python -m training.candidates DATASET FILE`.

A line of the file is a question with its results: what the engine ranked each by and how sure it is, the passage that
is read, the rest of it, and which pieces of the evidence it holds. Orders are then made as the program makes them,
without asking the engine again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plainmind.base.model import SOURCES
from plainmind.guests.evaluation.dataset import read_dataset
from plainmind.guests.evaluation.scoring import Shown, pieces_of, proves
from plainmind.memory.memory import Memory
from plainmind.search.second_look import windows_of, with_expected
from plainmind.sessions.transcripts import Transcripts

SHOWN = 6
RECORDED = 32
_SNIPPET = 700


def record(folder: Path, questions: str = "queries") -> list[dict[str, Any]]:
    """Every question that has evidence, with its best results."""
    rows = []
    for workspace in read_dataset(str(folder), queries=questions):
        sessions = Path(workspace.folder, "sessions")
        more = [Transcripts(str(sessions))] if sessions.is_dir() else []
        settings = {"provider": "builtin", "sync.onSearch": False}
        with (
            tempfile.TemporaryDirectory() as home,
            Memory.from_environment(
                {}, workspace=workspace.folder, home=home, config=settings, cwd=home, more_sources=more
            ) as memory,
        ):
            memory.sync()
            for question in workspace.questions:
                if not question.evidence:
                    continue
                pieces = pieces_of(question)
                hits = memory.search(
                    question.text, max_results=RECORDED, min_score=0.0, snippet_chars=_SNIPPET, sources=SOURCES,
                    today=question.today,
                ).hits  # fmt: skip
                shown = [
                    Shown(hit.path, hit.start_line, hit.end_line, len(hit.snippet), hit.score) for hit in hits
                ]
                rows.append({
                    "question": question.text, "category": question.category, "pieces": len(pieces),
                    "results": [
                        {
                            "worth": hit.worth, "score": hit.score, "passage": best, "rest": rest,
                            "holds": [number for number, piece in enumerate(pieces) if proves(seen, piece)],
                        }
                        for hit, seen in zip(hits, shown, strict=True)
                        for best, rest in [windows_of(hit)]
                    ],
                })  # fmt: skip
    return rows


def figures(
    rows: Sequence[dict[str, Any]], said: Sequence[Sequence[float | None]], weight: float, read: int
) -> tuple[float, float]:
    """(recall at six, share with evidence first) when so many results are read and log-odds count for `weight`."""
    recall, first = [], []
    for row, odds in zip(rows, said, strict=True):
        results = row["results"]
        worths = [one["worth"] for one in results[:read]]
        is_read = any(one is not None for one in odds[:read])
        read_odds = with_expected(worths, odds[:read]) if is_read else [0.0] * len(worths)
        mixed = [worth + weight * said_of for worth, said_of in zip(worths, read_odds, strict=True)]
        order = [*np.argsort(-np.array(mixed), kind="stable"), *range(len(mixed), len(results))]
        found = {piece for at in order[:SHOWN] for piece in results[at]["holds"]}
        recall.append(len(found) / row["pieces"])
        first.append(bool(results) and bool(results[order[0]]["holds"]))
    return float(np.mean(recall)), float(np.mean(first))


def main() -> None:
    """Record a dataset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--questions", default="queries", help="the name of the file of questions, without .jsonl"
    )
    given = parser.parse_args()
    lines = (json.dumps(row, ensure_ascii=False) for row in record(given.dataset, given.questions))
    given.file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
