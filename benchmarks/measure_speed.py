"""Measure how fast the memory is, beside the widespread recipe's own SQL and beside engines that do half a search.

Invents notes of any size, always the same for the same seed; indexes and searches them; and starts whole processes.
The recipe needs sqlite-vec, the engines are tantivy, usearch and faiss: what is not installed is not measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from speed.figures import TARGETS, SpeedFigures, as_json
from speed.others import NAMES
from speed.report import TIMES, growth_rows, once_rows, size_rows, target_rows
from speed.runner import Plan, run

from plainmind.base.errors import PlainmindError
from plainmind.base.model import Progress, ProgressCallback
from plainmind.cli.console import Console, duration_in_words, is_terminal
from plainmind.cli.options import whole_number

FAILED = 1


def parser() -> argparse.ArgumentParser:
    """Say what can be measured."""
    made = argparse.ArgumentParser(
        description=__doc__,
        epilog="Takes two minutes for 10,000 chunks. Everything is made in a temporary folder and removed.",
        allow_abbrev=False,
    )
    made.add_argument(
        "--chunks",
        metavar="N",
        type=sizes,
        default=(10_000,),
        help="how many chunks; several numbers, as in 1000,10000, show how times grow (10000)",
    )
    made.add_argument(
        "--dims", metavar="D", type=whole_number(8, 8192), default=256, help="numbers in a vector (256)"
    )
    made.add_argument("--seed", metavar="S", type=whole_number(0), default=7, help="of the notes (7)")
    made.add_argument(
        "--against",
        metavar="NAMES",
        type=contestants,
        default=NAMES,
        help=f"whom to measure beside ours: {','.join(NAMES)}, or none (all that are installed)",
    )
    made.add_argument("--keep", metavar="DIR", help="work in this new folder and leave everything there")
    made.add_argument(
        "--large-file",
        metavar="MB",
        type=whole_number(1, 10_000),
        help="also index one file of so many megabytes, and say how much memory that took",
    )
    made.add_argument("--check", action="store_true", help="fail when a figure is not what it must be")
    made.add_argument("--json", action="store_true", help="print JSON for programs")
    made.add_argument("-q", "--quiet", action="store_true", help="print nothing but the figures")
    return made


def sizes(text: str) -> tuple[int, ...]:
    """Read `1000,10000`."""
    read = whole_number(100, 10_000_000)
    return tuple(sorted({read(part) for part in text.split(",")}))


def contestants(text: str) -> tuple[str, ...]:
    """Read `seed,tantivy` or `none`."""
    names = () if text == "none" else tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"`{unknown[0]}` must be one of {', '.join(NAMES)}, or none")
    return names


def main(argv: Sequence[str]) -> int:
    """Measure and print; missed targets fail only when that was asked for."""
    arguments = parser().parse_args(argv)
    console = Console(json=arguments.json, quiet=arguments.quiet)
    try:
        return measure_speed(arguments, console)
    except PlainmindError as error:
        console.error(type(error).__name__, str(error), error.hint)
        return FAILED


def measure_speed(arguments: argparse.Namespace, console: Console) -> int:
    """Measure what was asked for, and print it."""
    plan = Plan(
        chunks=arguments.chunks,
        dims=arguments.dims,
        seed=arguments.seed,
        against=arguments.against,
        large_file_mb=arguments.large_file,
        keeps=arguments.keep is not None,
    )
    with _folder(arguments.keep) as folder, _show_steps(console) as progress:
        figures = run(plan, folder, progress=progress)
    verdicts = [target.verdict(figures) for target in TARGETS]
    if console.json:
        targets = [
            {
                "figure": target.name,
                "unit": target.unit,
                "must": target.must,
                "goal": target.goal,
                "more": target.more,
                "measured": as_json(target.measured(figures)),
                "reached": verdict,
            }
            for target, verdict in zip(TARGETS, verdicts, strict=True)
        ]
        console.result({**as_json(figures), "growth": as_json(figures.growth()), "targets": targets})
    else:
        for line in report(figures):
            console.answer(line)
    for note in figures.notes:
        console.note(note)
    return FAILED if arguments.check and "missed" in verdicts else 0


def report(figures: SpeedFigures) -> Iterator[str]:
    """The figures as tables, with what must be reached first."""
    yield from aligned(target_rows(figures))
    yield ""
    yield f"times: {TIMES}"
    yield from aligned(size_rows(figures))
    yield ""
    yield from aligned(once_rows(figures))
    if figures.growth():
        yield ""
        yield from aligned(growth_rows(figures))
    yield ""
    yield f"measured in {duration_in_words(figures.seconds)}"


def aligned(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns of text: the first to the left, figures to the right."""
    table = list(rows)
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    for name, *cells in table:
        shown = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        yield f"{name:{widths[0]}}  {shown}".rstrip()


@contextmanager
def _folder(kept: str | None) -> Iterator[str]:
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="plainmind-speed-") as folder:
            yield folder
        return
    place = os.path.abspath(os.path.expanduser(kept))
    os.makedirs(place, exist_ok=True)
    if os.listdir(place):
        raise PlainmindError(f"{place} is not empty", hint="name a folder that is not there yet")
    yield place


@contextmanager
def _show_steps(console: Console) -> Iterator[ProgressCallback | None]:
    """A bar on a terminal; elsewhere a line for each step, since minutes go by."""
    if console.quiet or (not console.json and is_terminal(sys.stderr)):
        with console.progress("measuring") as bar:
            yield bar
        return
    shown = ""

    def show(progress: Progress) -> None:
        nonlocal shown
        if progress.label != shown:
            shown = progress.label
            print(shown, file=sys.stderr, flush=True)

    yield show


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
