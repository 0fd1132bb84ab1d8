"""Measure vectors alone: how often windows of 700 characters with the evidence are among the six nearest."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

SHOWN = 6


def read_sets(file: Path) -> dict[str, list[dict[str, Any]]]:
    """By set its workspaces: windows, and questions with the windows that hold each piece of evidence."""
    with lzma.open(file, "rt", encoding="utf-8") as opened:
        sets: dict[str, list[dict[str, Any]]] = json.load(opened)
    return sets


def recall(workspaces: Sequence[dict[str, Any]], embed: Callable[[Sequence[str]], np.ndarray]) -> float:
    """Mean share of the evidence among the six nearest windows."""
    shares: list[float] = []
    for workspace in workspaces:
        windows = embed(workspace["windows"])
        questions = embed([question for question, _, _ in workspace["qs"]])
        likeness = questions @ windows.T
        for (_, _, pieces), row in zip(workspace["qs"], likeness, strict=True):
            nearest = set(np.argsort(-row, kind="stable")[:SHOWN].tolist())
            held = [piece for piece in pieces if piece]
            if held:
                shares.append(sum(bool(nearest.intersection(piece)) for piece in held) / len(held))
    return float(np.mean(shares))
