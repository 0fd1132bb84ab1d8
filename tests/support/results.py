"""What a long run has found, written down for docs/proof.md."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "docs" / "proof.json"


def write_down(name: str, figures: Mapping[str, Any], day: date | None = None) -> None:
    """Put the figures of a run in the place of those of the last one; of several parts, those that were run."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    run = {
        "day": (day or datetime.now(UTC).date()).isoformat(),
        "machine": f"{platform.system()} {platform.release().partition('-')[0]}, Python {platform.python_version()}",
    }
    if any(isinstance(figure, dict) for figure in figures.values()):
        parts = {part: {**run, "figures": figure} for part, figure in figures.items()}
        results[name] = {**results.get(name, {}), **parts}
    else:
        results[name] = {**run, "figures": dict(figures)}
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
