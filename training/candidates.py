"""Measure a second look: the engine's best results of each question, put into another order.

A line of a candidates file is a question with its results: score, text, and which pieces of the evidence each holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

SHOWN = 6


def read_candidates(file: Path) -> list[dict[str, Any]]:
    """Questions that have evidence and at least one result."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["n"] and row["c"]]


def standard(scores: Sequence[float] | np.ndarray) -> np.ndarray:
    """Scores of one question with mean 0 and spread 1."""
    array = np.asarray(scores, np.float64)
    return np.asarray((array - array.mean()) / (array.std() + 1e-6))


def figures(
    rows: Sequence[dict[str, Any]], scores: Sequence[np.ndarray], share: float
) -> tuple[float, float]:
    """(recall at six, share with evidence first) when the second look counts for `share`."""
    recall, first = [], []
    for row, ours in zip(rows, scores, strict=True):
        engine = standard([one["s"] for one in row["c"]])
        order = np.argsort(-((1 - share) * engine + share * standard(ours)), kind="stable")
        found = {piece for at in order[:SHOWN] for piece in row["c"][at]["g"]}
        recall.append(len(found) / row["n"])
        first.append(float(bool(row["c"][order[0]]["g"])))
    return float(np.mean(recall)), float(np.mean(first))


def look_again(
    sets: dict[str, list[dict[str, Any]]], score: Callable[[Sequence[tuple[str, str]]], np.ndarray]
) -> dict[str, np.ndarray]:
    """What the second look says about every result, set by set, question after question."""
    return {
        name: score([(row["q"], one["t"]) for row in rows for one in row["c"]]) for name, rows in sets.items()
    }


def report(sets: dict[str, list[dict[str, Any]]], said: dict[str, np.ndarray]) -> str:
    """One line a set: today, and with the second look at several shares."""
    lines = []
    for name, rows in sets.items():
        flat = said[name]
        per_row, at = [], 0
        for row in rows:
            per_row.append(flat[at : at + len(row["c"])])
            at += len(row["c"])
        cells = [
            f"{share:.2f}: {'{:.3f} / {:.3f}'.format(*figures(rows, per_row, share))}"
            for share in (0, 0.5, 0.65, 0.8, 1)
        ]
        lines.append(f"{name:18} " + "   ".join(cells))
    return "\n".join(lines)
