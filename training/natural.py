"""Questions that people wrote or asked, with the passages that they marked as answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from training.inputs import Pair

MOST = {
    "shifts_reddit": 12_000, "shifts_amazon": 12_000, "shifts_wiki": 12_000, "fairytaleqa": 12_000, "cosmosqa": 12_000,
    "qasper": 4_000, "squad_dev": 6_000, "squad_train": 30_000, "squad_pairs": 12_000, "squad_lines": 6_000,
    "boolq": 6_000, "qed": 6_000, "clapnq": 6_000, "tweetqa": 6_000, "doqa": 6_000, "adversarialqa": 6_000,
    "drop": 3_000, "fetaqa": 4_000,
}  # fmt: skip


def read_natural(folder: Path) -> Iterator[Pair]:
    """Every question, with passages of the same text that do not answer it."""
    for file in sorted(folder.glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                yield Pair(row["q"], row["p"], row["lang"], file.stem, tuple(row["neg"]))
