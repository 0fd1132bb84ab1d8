"""Hold the coverage data against our floors: every branch of the pure code, nine tenths of everything."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FLOORS = (
    ("the pure package text", "src/plainmind/text/", 100.0),
    ("the pure package search", "src/plainmind/search/", 100.0),
    ("the pure module index.plan", "src/plainmind/index/plan.py", 100.0),
    ("everything", "src/plainmind/", 90.0),
)
# Each is run by its own framework, in an environment of its own: `make frameworks`.
ELSEWHERE = tuple(
    f"src/plainmind/guests/integrations/{name}.py"
    for name in (
        "adk", "agent_framework", "autogen", "crewai", "langchain", "langgraph", "llama_index", "pydantic_ai",
        "smolagents", "strands",
    )
)  # fmt: skip


def measured() -> dict[str, Any]:
    """Return what `coverage json` says of each file, by path."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(report)]
        if subprocess.run(command, check=False).returncode:
            raise SystemExit("error: there is no coverage data to judge")
        files: dict[str, Any] = json.loads(report.read_text())["files"]
    return files


def percentage(files: dict[str, Any], prefix: str) -> float | None:
    """Count lines and branches together, as coverage does; None when nothing under `prefix` was seen."""
    summaries = [
        entry["summary"]
        for path, entry in files.items()
        if prefix in Path(path).as_posix() and not Path(path).as_posix().endswith(ELSEWHERE)
    ]
    if not summaries:
        return None
    total = sum(one["num_statements"] + one["num_branches"] for one in summaries)
    covered = sum(one["covered_lines"] + one["covered_branches"] for one in summaries)
    return 100.0 * covered / total if total else 100.0


def main() -> int:
    """Print one line for each floor; 1 when a floor is broken, with the lines that were missed."""
    files = measured()
    broken = []
    for name, prefix, floor in FLOORS:
        share = percentage(files, prefix)
        kept = share is not None and share >= floor
        seen = "nothing seen" if share is None else f"{share:.1f} %"
        print(f"coverage of {name}: {seen} (floor {floor:.0f} %)")
        if not kept:
            broken.append(f"{prefix}**" if prefix.endswith("/") else prefix)
    for pattern in broken:
        subprocess.run([sys.executable, "-m", "coverage", "report", f"--include={pattern}"], check=False)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
