"""Measure speed at several sizes and at a prompt, and write the figures and their picture to docs/performance.md."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from natural_questions import NaturalTimes, all_sizes, rows
from page_parts import markdown_table, publish
from speed.corpus import Corpus
from speed.figures import SpeedFigures
from speed.report import (
    TIMES,
    growth_rows,
    once_rows,
    picture,
    size_rows,
    target_rows,
    times,
)
from speed.resident import plain_environment
from speed.runner import Plan, run
from speed.timing import Times, command, lap, summary
from speed.workload import write_files

from plainmind.base.model import Progress

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "performance-search.svg"
START = "<!-- figures: written by `make bench`, edits here are lost -->"
END = "<!-- figures: end -->"
SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000

# A workspace of real size: what a year of notes comes to.
REAL = Corpus(1_500, fixed_per_file=6)


def at_a_prompt(folder: Path, *, runs: int) -> list[tuple[str, Times]]:
    """Time what a person types, start-up included, in a workspace of real size."""
    workspace = folder / "workspace"
    write_files(REAL, str(workspace))
    environment = {
        **plain_environment(),
        "PLAINMIND_HOME": str(folder / "home"),
        "PLAINMIND_WORKSPACE": str(workspace),
    }
    asked = [question.text for question in REAL.questions(runs)]
    ours, typed = command(), "plainmind"

    def timed(*arguments: Sequence[str]) -> Times:
        laps = [lap(one, environment) for one in arguments]
        return summary([wall for wall, _ in laps], [cpu for _, cpu in laps])

    lap([*ours, "--help"], environment)  # compiles what is not compiled yet
    return [
        (f"`{typed} sync`, first time", timed([*ours, "sync"])),
        (f"`{typed} sync`, nothing changed", timed(*[[*ours, "sync"]] * runs)),
        (f"`{typed} search`", timed(*[[*ours, "search", text] for text in asked])),
        (f"`{typed} --help`", timed(*[[*ours, "--help"]] * runs)),
        ("an empty Python process, for comparison", timed(*[[sys.executable, "-c", "pass"]] * runs)),
    ]


def part_of(
    figures: SpeedFigures, prompt: list[tuple[str, Times]], natural: list[NaturalTimes], day: dt.date
) -> str:
    """The part of the page that this program writes."""
    machine, versions = figures.machine, figures.versions
    where = f"{machine['cores']} cores ({machine['processor']}), {machine['system']}"
    what = ", ".join(f"{name} {version}" for name, version in versions.items())
    notes = [f"Not measured: {note}." for note in figures.notes]
    growth = list(growth_rows(figures))
    sections = [
        f"`make bench`, {day}, seed {figures.seed}. {where}. {what}.",
        *notes,
        "## Targets",
        markdown_table(list(target_rows(figures, with_unmeasured=True))),
        f"## Search by size, {figures.dims} dimensions",
        f"![Search time against the number of chunks]({PICTURE.name})",
        f"Times are {TIMES}.",
        markdown_table(list(size_rows(figures))),
        *(["**Growth**", markdown_table(growth)] if len(growth) > 1 else []),
        "## Questions as people ask them",
        f"Those of `evals/plainmind`, in an open memory, each once; {TIMES}.",
        markdown_table(rows(natural)),
        "## Syncing, and this machine",
        markdown_table([("what", "figure"), *once_rows(figures)]),
        f"## At a prompt: {REAL.files} Markdown files, {REAL.chunks:,} chunks",
        f"Whole processes; {TIMES}.",
        markdown_table([("what", "times"), *((name, times(measured)) for name, measured in prompt)]),
    ]
    return "\n\n".join(sections)


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", metavar="N", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--print-only", action="store_true", help="leave docs/performance.md as it is")
    arguments = parser.parse_args()
    sizes = [*arguments.chunks, *([MILLION] if os.environ.get("BENCH") == "full" else [])]
    told = ""

    def tell(progress: Progress) -> None:
        nonlocal told
        if progress.label != told:
            told = progress.label
            print(told, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="plainmind-bench-") as name:
        tell(Progress(0, 1, "at a prompt"))
        prompt = at_a_prompt(Path(name) / "prompt", runs=15)
        tell(Progress(0, 1, "questions as people ask them"))
        natural = all_sizes(Path(name))
        figures = run(Plan(chunks=tuple(sizes)), name, progress=tell)
    part = part_of(figures, prompt, natural, dt.datetime.now(dt.UTC).date())
    print(part)
    if not arguments.print_only:
        PICTURE.write_text(picture(figures), encoding="utf-8")
        publish(PAGE, part, start=START, end=END)
        print(f"\nwritten to {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
