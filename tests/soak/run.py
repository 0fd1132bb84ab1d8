"""Let a memory work for hours, and look whether anything grows: `python -m tests.soak.run`, or `make soak`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.soak.day import NOTES, day
from tests.soak.samples import Curve, Notebook, picture, report
from tests.support.results import write_down

SAMPLES = 400


def soak(
    folder: Path, minutes: float, *, rest_s: float, notes: int = NOTES, seed: int = 1
) -> tuple[list[Curve], dict[str, int]]:
    """Work for so long, with a pause behind each step; the curves, and what was done."""
    length = minutes * 60
    with day(folder, seed, notes) as work:
        work.settle()
        notebook, begun, due = Notebook(), time.monotonic(), 0.0
        while (now := time.monotonic() - begun) < length:
            if now >= due:
                work.take(notebook, now)
                due = now + max(0.5, length / SAMPLES)
            work.step()
            time.sleep(rest_s)
        work.take(notebook, time.monotonic() - begun)
        return list(notebook.curves()), dict(sorted(work.counts.items()))


def write_report(folder: Path, minutes: float, curves: Sequence[Curve], counts: dict[str, int]) -> Path:
    """Leave the page and its pictures in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {}
    for curve in curves:
        name = f"{curve.who}-{curve.kind}.svg"
        (folder / name).write_text(picture(curve), encoding="utf-8")
        pictures[f"{curve.who}: {curve.kind}"] = name
    page = folder / "soak.md"
    page.write_text(report(f"{minutes:g} minutes of work", curves, counts, pictures), encoding="utf-8")
    return page


def main(arguments: Sequence[str] | None = None) -> int:
    """Work, write the report, and say what rises."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=480.0)
    parser.add_argument("--rest", type=float, default=0.2, help="seconds behind each step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("build/soak"))
    parser.add_argument("--record", action="store_true", help="write the figures down for docs/proof.md")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="plainmind-soak-") as folder:
        curves, counts = soak(Path(folder), given.minutes, rest_s=given.rest, seed=given.seed)
    page = write_report(given.output, given.minutes, curves, counts)
    faults = [curve.fault for curve in curves if curve.fault]
    print(f"{sum(counts.values()):,} operations, {len(curves)} curves, {len(faults)} rise; see {page}")
    for fault in faults:
        print(fault)
    if given.record:
        processes = {curve.who for curve in curves if curve.kind == "memory"}
        write_down("soak", {
            "minutes": given.minutes,
            "rest_s": given.rest,
            "operations": sum(counts.values()),
            "processes": len(processes),
            "curves": len(curves),
            "rising": faults,
        })  # fmt: skip
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
