"""Ask the questions of all workspaces of evals/plainmind of one memory, which has other notes in it too.

Each workspace alone hides what a real vault has: notes in several languages, a thousand and more, some of which have
some words of any question. `--beside DIR` puts notes of a folder around them too, such as those of the public sets.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from compare.work import gather
from speed.corpus import Corpus

from plainmind.base.model import sha256_text
from plainmind.base.value import value
from plainmind.guests.evaluation.dataset import AskedWorkspace
from plainmind.guests.evaluation.runner import Asking, evaluate, opened_memory, summarise
from plainmind.guests.evaluation.scoring import write_results

KINDS = ("across", "paraphrase")
# What stands around the notes: nothing, and as much as `make compare` puts there, invented twice.
INVENTED = {"alone": None, "among invented notes": 7, "among others": 11}
_CHUNKS, _CHUNKS_A_FILE = 1_850, 3


@value
class Answers:
    """What was found among so many files: recall of six and how many are first, by kind, of the others, and of all."""

    name: str
    files: int
    figures: dict[str, tuple[float, float]]


def ask(
    folder: Path, name: str, *, around: Corpus | None, beside: Sequence[Path] = (), out: str = ""
) -> Answers:
    """Index everything as one memory, and ask the dev half of all questions that have an answer."""
    work = gather(folder / "workspace", around=around, limit=None)
    for number, note in enumerate(beside):
        place = work.workspace / "memory" / "beside" / f"{number // 100}" / f"{number}-{note.name}"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(note, place)
    asked = AskedWorkspace("one memory", str(work.workspace), work.questions)
    answers = evaluate([asked], opened_memory, Asking()).answers
    if out:
        write_results(out, answers)
    summary = summarise(answers)
    of_kind = {
        kind: (count, own["recall6"], own["hit1"]) for kind, (count, own) in summary.by_category.items()
    }
    figures = {kind: of_kind[kind][1:] for kind in KINDS if kind in of_kind}
    others = [own for kind, own in of_kind.items() if kind not in KINDS]
    total = sum(count for count, _, _ in others) or 1
    figures["others"] = (
        sum(count * recall for count, recall, _ in others) / total,
        sum(count * first for count, _, first in others) / total,
    )
    figures["all"] = summary.overall["recall6"], summary.overall["hit1"]
    return Answers(name, len(list(work.workspace.rglob("*.md"))), figures)


def notes_in(folder: Path, most: int) -> list[Path]:
    """Some of the notes below a folder, drawn by their paths, so that each run has the same."""
    found = sorted(folder.rglob("*.md"), key=lambda note: sha256_text(str(note.relative_to(folder))))
    return found[:most]


def table(rows: Sequence[Answers]) -> Iterator[str]:
    """The figures as Markdown."""
    kinds = [*KINDS, "others", "all"]
    yield "| | files | " + " | ".join(kinds) + " |"
    yield "|---|---|" + "---|" * len(kinds)
    for row in rows:
        pairs = [
            f"{recall:.3f} / {first:.3f}".replace("0.", ".")
            for recall, first in (row.figures.get(kind, (0.0, 0.0)) for kind in kinds)
        ]
        yield f"| {row.name} | {row.files:,} | " + " | ".join(pairs) + " |"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--beside", metavar="DIR", type=Path, help="notes of this folder too, in their own rows"
    )
    parser.add_argument(
        "--sizes", metavar="N", type=int, nargs="+", default=[600, 2_600], help="so many of them (600 2600)"
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="write there what was shown, a file a row")
    arguments = parser.parse_args()
    ways: list[tuple[str, Corpus | None, list[Path]]] = [
        (name, None if seed is None else Corpus(_CHUNKS, fixed_per_file=_CHUNKS_A_FILE, seed=seed), [])
        for name, seed in INVENTED.items()
    ]
    if arguments.beside:
        ways += [
            (f"among notes of {arguments.beside.name}", None, notes_in(arguments.beside, size))
            for size in arguments.sizes
        ]
    rows = []
    for number, (name, around, beside) in enumerate(ways):
        with tempfile.TemporaryDirectory(prefix="plainmind-one-memory-") as folder:
            out = str(arguments.out / f"{number}.jsonl") if arguments.out else ""
            rows.append(ask(Path(folder), name, around=around, beside=beside, out=out))
    print("\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
