"""Questions that were written are asked of our own engine, and its passages are told apart by the lines that answer."""

from __future__ import annotations

from pathlib import Path

from training.written import Asked, Document

from training import found

TALK = Document(
    "written_chat", "en", "2024-03-09 › Session 4 (Saturday 9 March 2024)",
    ("Ana: Did you fix the tap?", "Bo: The plumber came on Friday, ninety euros.", "Ana: My bike was stolen in Porto.",
     "Bo: Oh no! Which bike, the red one?", "Ana: The green one, with the basket."),
    (Asked("How much did the plumber cost?", (1,), "p", "en"), Asked("¿Qué?", (2,), "x", "es"),
     Asked("Who is Bo's doctor?", (), "n", "en")),
)  # fmt: skip
NOTES = Document(
    "written_chat", "en", "house/tap.md › Repairs",
    ("Plumber: Sato, 0.9 km away.", "The tap in the bath drips again."), (),
)  # fmt: skip


def test_a_document_is_a_note_whose_lines_can_be_found_again(tmp_path: Path) -> None:
    path, first = found.write_note(tmp_path, 3, TALK)
    lines = (tmp_path / path).read_text("utf-8").split("\n")

    assert lines[:2] == ["# 2024-03-09", "## Session 4 (Saturday 9 March 2024)"]
    assert lines[first - 1] == TALK.lines[0]

    path, first = found.write_note(tmp_path, 4, NOTES)
    assert (tmp_path / path).read_text("utf-8").split("\n")[first - 1] == f"- {NOTES.lines[0]}"


def test_what_answers_is_told_from_what_the_engine_finds_beside_it() -> None:
    more = TALK._replace(
        language="es", lines=("Ana: ¿Y el grifo?", "Bo: El grifo ya no gotea."), questions=()
    )
    pairs = list(found.found_pairs([TALK, NOTES, more], 1))

    assert {(pair.question, pair.language) for pair in pairs} >= {("How much did the plumber cost?", "en")}
    assert not any("grifo" in one for pair in pairs for one in (pair.passage, *pair.others))
    asked = [pair for pair in pairs if pair.language == "en"]
    assert 1 <= len(asked) <= 2
    for pair in asked:
        assert "ninety euros" in pair.passage
        assert pair.passage.startswith("2024-03-09 › Session 4")
        assert pair.others
        assert not any("ninety euros" in other for other in pair.others)
