"""The notes and the questions that everybody gets: those of `evals/plainmind` among invented ones, or a folder's."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from natural_questions import EVALS
from speed.corpus import Corpus
from speed.workload import write_files

from plainmind.base.value import replace, value
from plainmind.guests.evaluation.dataset import Evidence, Question, read_dataset

# Invented notes around those that are asked about; both together are about a thousand files.
SIZES: Mapping[str, Corpus | None] = {
    "none": None,
    "small": Corpus(1_850, fixed_per_file=3),
    "large": Corpus(19_000, fixed_per_file=32),
}


@value
class Work:
    """A folder of notes and what is asked about it."""

    workspace: Path
    questions: tuple[Question, ...]
    files: int
    bytes: int


def gather(workspace: Path, *, dataset: Path | None = None, around: Corpus | None, limit: int | None) -> Work:
    """Put the notes of a dataset's workspaces side by side, invented ones around them; questions take turns.

    Of our own questions only those of the `dev` halves are asked; those without an answer are left out.
    """
    turns: list[tuple[int, str, Question]] = []
    source, half = (EVALS, "dev") if dataset is None else (dataset, "queries")
    for asked in read_dataset(str(source), queries=half):
        for note in sorted(Path(asked.folder).rglob("*.md")):
            place = workspace / "memory" / asked.name / note.relative_to(asked.folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(note, place)
        answerable = [question for question in asked.questions if question.evidence]
        turns += [(number, asked.name, _moved(asked.name, one)) for number, one in enumerate(answerable)]
    if around is not None:
        write_files(around, str(workspace))
    notes = list(workspace.rglob("*.md"))
    questions = [question for _, _, question in sorted(turns, key=lambda turn: turn[:2])]
    count = min(limit or len(questions), len(questions))
    # Some of them from everywhere: they stand in their files kind by kind.
    some = tuple(questions[number * len(questions) // count] for number in range(count))
    return Work(workspace, some, len(notes), sum(note.stat().st_size for note in notes))


def _moved(name: str, question: Question) -> Question:
    evidence = tuple(
        Evidence(f"memory/{name}/{one.path}", one.first_line, one.last_line) for one in question.evidence
    )
    return replace(question, evidence=evidence)
