"""Time questions as people ask them: those of evals/plainmind, about its notes among invented ones of any size.

Questions made of a chunk's own words hide what reading closely takes: people ask in other words, name days and people,
and ask in eight languages. Each question is asked once, of a memory that is open and has not seen it before.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from speed.corpus import Corpus
from speed.report import TIMES, times
from speed.resident import opened
from speed.timing import Times, measure
from speed.workload import WARM_UP, write_files

from plainmind.base.value import value
from plainmind.guests.evaluation.dataset import Question, read_dataset

ROOT = Path(__file__).resolve().parent.parent
EVALS = ROOT / "evals" / "plainmind"
# Never `unseen`: whoever tunes speed by these sees them.
ASKED = "dev"
# Invented notes around those that are asked about: about 2.8 and 25.5 MB in all, a thousand files each.
AROUND = ((1_850, 3), (19_000, 32))


@value
class NaturalTimes:
    """What questions took, with so much around what they ask about."""

    files: int
    text_bytes: int
    quick: Times  # without looking for changed files
    whole: Times  # as an agent asks


def ask(folder: Path, around: Corpus | None, *, questions: int | None = None) -> NaturalTimes:
    """Index the notes of all workspaces, with others around them, and ask about them."""
    workspace = folder / "workspace"
    asked = gather(workspace)[:questions]
    if around is not None:
        write_files(around, str(workspace))
    notes = list(workspace.rglob("*.md"))
    with opened(str(workspace), str(folder / "home"), {"sync.onSearch": False}) as memory:
        memory.sync()
        for question in asked[:WARM_UP]:
            memory.search(f"{question.text} again", today=question.today)
        quick = measure(lambda one: memory.search(one.text, today=one.today), asked, budget_s=120.0)
    with opened(str(workspace), str(folder / "home")) as memory:
        for question in asked[:WARM_UP]:
            memory.search(f"{question.text} again", today=question.today)
        whole = measure(lambda one: memory.search(one.text, today=one.today), asked, budget_s=120.0)
    return NaturalTimes(len(notes), sum(note.stat().st_size for note in notes), quick, whole)


def gather(workspace: Path) -> list[Question]:
    """Copy the notes of every asked workspace into a folder of one; the questions about them, by turns."""
    by_turns: list[tuple[int, str, Question]] = []
    for asked in read_dataset(str(EVALS), queries=ASKED):
        for note in Path(asked.folder).rglob("*.md"):
            place = workspace / "memory" / asked.name / note.relative_to(asked.folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(note, place)
        by_turns += [(number, asked.name, question) for number, question in enumerate(asked.questions)]
    return [question for _, _, question in sorted(by_turns, key=lambda turn: turn[:2])]


def rows(measured: Sequence[NaturalTimes]) -> list[tuple[str, ...]]:
    """The figures as a table."""
    return [
        ("notes", *(f"{one.files:,} files, {one.text_bytes / 1e6:.1f} MB" for one in measured)),
        ("questions", *(f"{one.quick.runs:,}" for one in measured)),
        ("`Memory.search`", *(times(one.quick) for one in measured)),
        ("`Memory.search`, looking for changed files", *(times(one.whole) for one in measured)),
    ]


def all_sizes(folder: Path, *, questions: int | None = None) -> list[NaturalTimes]:
    """Every size in turn."""
    return [
        ask(folder / f"natural-{chunks}", Corpus(chunks, fixed_per_file=per_file), questions=questions)
        for chunks, per_file in AROUND
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", metavar="N", type=int, help="ask so many (all)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plainmind-natural-") as name:
        measured = all_sizes(Path(name), questions=arguments.questions)
    print(f"times: {TIMES}")
    for row in rows(measured):
        print("  ".join(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
