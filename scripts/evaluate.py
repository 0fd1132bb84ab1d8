"""Measure the answers on public question sets, beside both baselines, and write the figures to docs/quality.md."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from page_parts import publish
from score_curve import Step, picture, reliability

from plainmind.guests.evaluation.baselines import BASELINES
from plainmind.guests.evaluation.dataset import read_dataset
from plainmind.guests.evaluation.runner import Asking, Opener, Summary, evaluate, opened_memory, summarise

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "quality.md"
CURVE = ROOT / "docs" / "quality-scores.svg"
START = "<!-- public sets: written by `make eval`, edits here are lost -->"
END = "<!-- public sets: end -->"
MOST_MS = 10.0


@dataclass(frozen=True, slots=True)
class Target:
    """What must be reached, and what is hoped for: recall@6, and hit@1 where it is asked for."""

    floor: tuple[float, float | None]
    goal: tuple[float, float | None]


@dataclass(frozen=True, slots=True)
class Budget:
    """How much an agent gets to see: six results of so many characters each."""

    name: str
    snippet_chars: int
    targets: dict[str, Target]


DEFAULT = Budget(
    "default",
    700,
    {
        "locomo": Target((0.84, 0.62), (0.90, 0.72)),
        "lme_pool": Target((0.76, 0.66), (0.86, 0.75)),
        "realtalk": Target((0.64, 0.49), (0.72, 0.58)),
        "beam100k": Target((0.44, 0.36), (0.58, 0.48)),
        "chroma_chunkeval": Target((0.82, 0.60), (0.92, 0.72)),
        "cranfield": Target((0.33, None), (0.38, None)),
        "cmrc_zh": Target((0.97, 0.90), (0.995, 0.95)),
    },
)
WIDE = Budget(
    "wide",
    1600,
    {
        "locomo": Target((0.89, 0.72), (0.94, 0.78)),
        "lme_pool": Target((0.80, 0.66), (0.90, 0.77)),
        "realtalk": Target((0.71, 0.57), (0.79, 0.65)),
        "beam100k": Target((0.48, None), (0.65, None)),
        "chroma_chunkeval": Target((0.95, 0.74), (0.98, 0.80)),
        "cranfield": Target((0.34, None), (0.38, None)),
        "cmrc_zh": Target((0.99, 0.92), (0.998, 0.96)),
    },
)
BUDGETS = (DEFAULT, WIDE)


@dataclass(frozen=True, slots=True)
class Row:
    """One set at one budget: ours, and the baselines in the order of BASELINES."""

    name: str
    budget: Budget
    ours: Summary
    baselines: tuple[Summary, ...]

    @property
    def verdict(self) -> str:
        """Whether the figures reach the goal, or the floor at least."""
        target = self.budget.targets.get(self.name)
        if target is None:
            return ""
        if reaches(self.ours, target.goal):
            return "goal"
        return "floor" if reaches(self.ours, target.floor) else "**below**"

    def cells(self) -> str:
        """The row as Markdown."""
        target = self.budget.targets.get(self.name)
        figures = [
            f"{self.name} ({self.ours.count})",
            pair(self.ours.overall["recall6"], self.ours.overall["hit1"]),
            f"{self.ours.overall['tok6']:,.0f}",
            pair(*target.floor) if target else "–",
            pair(*target.goal) if target else "–",
            self.verdict,
            *(pair(one.overall["recall6"], one.overall["hit1"]) for one in self.baselines),
            f"{self.ours.mean_ms:.1f} / {self.ours.p95_ms:.1f}",
        ]
        return "| " + " | ".join(figures) + " |"


def reaches(ours: Summary, wanted: tuple[float, float | None]) -> bool:
    """Compare to three places, as the table shows them."""
    recall, hit = wanted
    figures = ours.overall
    return round(figures["recall6"], 3) >= recall and (hit is None or round(figures["hit1"], 3) >= hit)


def pair(recall: float, hit: float | None) -> str:
    """`.844 / .648`."""
    return " / ".join(f"{figure:.3f}".removeprefix("0") for figure in (recall, hit) if figure is not None)


def sets_in(folder: Path) -> list[Path]:
    """The sets with targets in the order of these, then all others by name."""
    known = list(DEFAULT.targets)
    found = [one for one in (folder.iterdir() if folder.is_dir() else ()) if any(one.glob("*/queries.jsonl"))]
    return sorted(
        found, key=lambda one: (known.index(one.name) if one.name in known else len(known), one.name)
    )


def measured(folder: Path, opener: Opener, snippet_chars: int) -> Summary:
    """Run one set with one recipe. Times are the processor's: what else the machine does must not count."""
    asking = Asking(snippet_chars=snippet_chars)
    return summarise(evaluate(read_dataset(str(folder)), opener, asking, clock=time.process_time).answers)


def rows_of(sets: Sequence[Path], budget: Budget) -> Iterator[Row]:
    """Measure all sets, saying on stderr which one is under way."""
    for folder in sets:
        print(f"{budget.name}: {folder.name} …", file=sys.stderr)
        ours = measured(folder, opened_memory, budget.snippet_chars)
        others = tuple(measured(folder, opener, budget.snippet_chars) for opener in BASELINES.values())
        yield Row(folder.name, budget, ours, others)


def table(rows: Sequence[Row]) -> str:
    """One budget as a Markdown table."""
    budget = rows[0].budget
    names = " | ".join(f"`{name}`" for name in BASELINES)
    head = (
        f"**{budget.name.capitalize()}: six snippets of at most {budget.snippet_chars:,} characters"
        " (recall@6 / hit@1)**\n\n"
        f"| Set (questions) | Plainmind | tokens | floor | goal | reached | {names} | CPU ms, mean / p95 |\n"
        f"|---|---|---|---|---|---|{'---|' * len(BASELINES)}---|"
    )
    return "\n".join([head, *(row.cells() for row in rows)])


def part_of(rows: Sequence[Row]) -> str:
    """The part of the page that this program writes."""
    day = dt.datetime.now(dt.UTC).date()
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    tables = [table([row for row in rows if row.budget is budget]) for budget in BUDGETS]
    return "\n\n".join([f"`make eval`, {day}. Python {platform.python_version()}, {machine}.", *tables])


def curve_of(sets: Sequence[Path]) -> list[Step]:
    """Every result of every set, the low scores too, by what its score was."""
    print("what scores mean …", file=sys.stderr)
    everything = Asking(snippet_chars=DEFAULT.snippet_chars, min_score=0.0)
    return reliability(
        answer
        for folder in sets
        for answer in evaluate(read_dataset(str(folder)), opened_memory, everything).answers
    )


def curve_table(steps: Sequence[Step]) -> str:
    """The curve in figures, under its picture."""
    cells = [f"| {step.low:.1f}–{step.high:.1f} | {step.results:,} | {step.share:.1%} |" for step in steps]
    head = "| Score | Results | with evidence |\n|---|---|---|"
    return "\n".join([f"![What scores mean]({CURVE.name})", "", head, *cells])


def main() -> int:
    """Measure, print and write; 1 when a figure is below its floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder that holds the sets")
    parser.add_argument(
        "--only", metavar="SET", action="append", help="only this set; leaves the page as it is"
    )
    arguments = parser.parse_args()
    sets = [one for one in sets_in(arguments.folder) if not arguments.only or one.name in arguments.only]
    if not sets:
        print(f"skipped: there are no question sets in {arguments.folder}; EVALS=DIR names another folder")
        return 0
    rows = [row for budget in BUDGETS for row in rows_of(sets, budget)]
    part = part_of(rows)
    print(part)
    if not arguments.only:
        steps = curve_of(sets)
        CURVE.write_text(picture(steps), encoding="utf-8")
        meaning = f"**What a score means: ten results a question, all sets**\n\n{curve_table(steps)}"
        publish(PAGE, f"{part}\n\n{meaning}", start=START, end=END)
        print(f"\nwritten to {PAGE.relative_to(ROOT)}")
    below = [f"{row.name} ({row.budget.name})" for row in rows if row.verdict == "**below**"]
    slow = [f"{row.name} ({row.budget.name})" for row in rows if row.ours.mean_ms > MOST_MS]
    if slow:
        print(f"slower than {MOST_MS:.0f} ms: {', '.join(slow)}")
    if below:
        print(f"below a floor: {', '.join(below)}")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
