"""All workspaces asked as one memory, among other notes."""

from __future__ import annotations

import natural_questions
import one_memory
from compare import work
from speed.corpus import Corpus

from plainmind.guests.evaluation.dataset import read_dataset


def test_questions_are_asked_of_one_memory_with_other_notes_in_it(tmp_path, monkeypatch):
    workspaces = [
        workspace
        for workspace in read_dataset(str(natural_questions.EVALS), queries="dev")
        if workspace.name in {"busan", "casa"}
    ]
    monkeypatch.setattr(work, "read_dataset", lambda *_, **__: workspaces)
    beside = tmp_path / "beside"
    beside.mkdir()
    for number in range(3):
        (beside / f"{number}.md").write_text("Nothing of interest stands here.\n")
    found = one_memory.ask(
        tmp_path / "one",
        "among others",
        around=Corpus(6, fixed_per_file=3),
        beside=one_memory.notes_in(beside, 2),
        out=str(tmp_path / "out.jsonl"),
    )

    assert (
        found.files
        == sum(len(list(natural_questions.EVALS.glob(f"{name}/**/*.md"))) for name in ("busan", "casa")) + 4
    )
    assert found.figures["others"][0] > 0.9
    assert 0.4 < found.figures["across"][0] < 1.0
    asked = sum(bool(question.evidence) for workspace in workspaces for question in workspace.questions)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == asked
    assert "| among others | " in list(one_memory.table([found]))[2]
