"""Proposals wait, are accepted or rejected, are void when their lines change, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.guests.upkeep.desk import Desk, after_chat, is_due
from plainmind.guests.upkeep.model import Cite, Edit, Proposal


def of_kind(desk: Desk, kind: str) -> Proposal:
    return next(one for one in desk.list().proposals if one.kind == kind)


def test_a_run_says_what_it_looked_at_and_why_it_proposed_nothing(desk: Desk) -> None:
    run = desk.run()

    assert run.proposed == {"repeated": 1, "restated": 1, "expiry": 1}
    assert (run.files, run.lines) == (1, 5)
    assert run.nothing["superseded"]
    assert "plainmind recalls" in run.nothing["keep"]
    again = desk.run()
    assert again.proposed == {}
    assert again.nothing["repeated"] == "what was found waits already, or was rejected"


def test_what_is_accepted_at_once_is_one_change(desk: Desk, memory: Memory, workspace: Path) -> None:
    before = (workspace / "MEMORY.md").read_bytes()
    desk.run()

    outcome = desk.accept([one.id for one in desk.list().proposals])

    text = (workspace / "MEMORY.md").read_text()
    assert len(outcome.done) == 3
    assert text.count("guest room key") == 1
    assert text.count("02:15") == 1
    assert "valid until 1 December 2030 (until 2030-12-01)" in text
    assert desk.list().proposals == ()
    assert memory.undo().operation == "tidy"
    assert (workspace / "MEMORY.md").read_bytes() == before


def test_a_proposal_is_void_when_its_lines_change(desk: Desk, workspace: Path) -> None:
    desk.run()
    chosen = of_kind(desk, "expiry")
    text = (workspace / "MEMORY.md").read_text().replace("1 December 2030", "1 May 2031")
    (workspace / "MEMORY.md").write_text(text)

    outcome = desk.accept([chosen.id])

    assert outcome.done == ()
    assert outcome.void == ((chosen.id, "lines of `MEMORY.md` have changed"),)
    assert (workspace / "MEMORY.md").read_text() == text


def test_a_proposal_follows_its_lines_when_others_move_them(desk: Desk, workspace: Path) -> None:
    desk.run()
    file = workspace / "MEMORY.md"
    file.write_text(file.read_text().replace("# Memory\n", "# Memory\n\nA new line above.\n"))

    assert desk.accept([of_kind(desk, "repeated").id, of_kind(desk, "expiry").id]).void == ()
    assert file.read_text().count("guest room key") == 1
    assert "(until 2030-12-01)" in file.read_text()


def test_a_rejected_proposal_never_comes_back(desk: Desk) -> None:
    desk.run()
    chosen = of_kind(desk, "repeated")

    desk.reject([chosen.id[:6]])

    assert chosen.id not in {one.id for one in desk.list().proposals}
    assert "repeated" not in desk.run().proposed


def test_an_id_that_does_not_wait_is_said_so(desk: Desk) -> None:
    desk.run()

    for name, said in (("ffffffffff", "waits"), ("3f", "too short")):
        with pytest.raises(NotFound, match=said):
            desk.accept([name])


def test_two_that_change_the_same_line_are_not_both_done(desk: Desk, workspace: Path) -> None:
    desk.run()
    line = "- The parking permit is valid until 1 December 2030"
    number = (workspace / "MEMORY.md").read_text().splitlines().index(line) + 1
    desk.propose(
        "stale",
        [Cite("MEMORY.md", number, line)],
        [Edit("MEMORY.md", number, (line,), ("- gone",))],
        "it is over",
        agent="codex",
    )

    outcome = desk.accept([of_kind(desk, "expiry").id, of_kind(desk, "stale").id])

    assert len(outcome.done) == 1
    assert "same lines" in outcome.void[0][1]


def test_an_agent_may_propose_but_nothing_that_does_not_fit_or_edits_a_log(
    desk: Desk, workspace: Path
) -> None:
    (workspace / "memory" / "2026-01-02.md").write_text("- said\n")
    cite = Cite("memory/2026-01-02.md", 1, "- said")

    with pytest.raises(PlainmindError, match="is a log"):
        desk.propose("stale", [cite], [Edit(cite.path, 1, ("- said",), ())], "over", agent="codex")
    with pytest.raises(PlainmindError, match="have changed"):
        desk.propose(
            "stale",
            [Cite("MEMORY.md", 1, "# Other")],
            [Edit("MEMORY.md", 1, ("# Other",), ())],
            "over",
            agent="codex",
        )
    with pytest.raises(PlainmindError, match="not cited"):
        desk.propose("stale", [cite], [Edit("MEMORY.md", 1, ("# Memory",), ())], "over", agent="codex")
    assert desk.list().proposals == ()


def test_a_rule_of_the_person_accepts_a_kind_and_one_undo_takes_the_run_back(
    open_memory: Callable[..., Memory], workspace: Path
) -> None:
    memory = open_memory(tidy={"accept": ["repeated", "restated"]})
    before = (workspace / "MEMORY.md").read_bytes()

    run = Desk(memory).run()

    assert len(run.accepted) == 2
    assert (workspace / "MEMORY.md").read_text().count("02:15") == 1
    memory.undo()
    assert (workspace / "MEMORY.md").read_bytes() == before
    assert Desk(memory).run().accepted == ()  # what a person took back is asked for, and not done again
    assert (workspace / "MEMORY.md").read_bytes() == before


def test_superseded_is_never_accepted_by_a_rule(open_memory: Callable[..., Memory]) -> None:
    with pytest.raises(PlainmindError, match=r"tidy\.accept"):
        Desk(open_memory(tidy={"accept": ["superseded"]})).run()


def test_a_superseded_line_goes_on_naming_the_newer_one_when_that_moves(
    desk: Desk, memory: Memory, workspace: Path
) -> None:
    (workspace / "MEMORY.md").write_text(
        "# Memory\n\n"
        "- The key of the boat hangs behind the door of the cellar\n"
        "- The key of the boat hangs behind the door of the cellar\n"
        "- The office network: Lindenblatt (2024-01-02)\n"
        "- The office network: Rosenduft (2026-05-02)\n"
    )
    desk.run()
    desk.accept([of_kind(desk, "superseded").id])
    assert "now MEMORY.md#L6)" in (workspace / "MEMORY.md").read_text()

    desk.accept([of_kind(desk, "repeated").id])

    assert "~~ (until 2026-05-02, now MEMORY.md#L5)" in (workspace / "MEMORY.md").read_text()
    memory.undo()
    assert "now MEMORY.md#L6)" in (workspace / "MEMORY.md").read_text()


def test_one_run_at_a_time(desk: Desk) -> None:
    with desk.ledger.running() as is_alone:
        assert is_alone
        assert desk.run().problem == "another run is at work"


def test_proposals_are_not_in_the_workspace_and_no_file_of_it_changes(desk: Desk, workspace: Path) -> None:
    before = {path: path.read_bytes() for path in workspace.rglob("*") if path.is_file()}

    desk.run()

    assert {path: path.read_bytes() for path in workspace.rglob("*") if path.is_file()} == before


def test_status_has_one_line_about_it(desk: Desk, memory: Memory) -> None:
    assert memory.status().as_dict()["tidy"] == {"waiting": 0, "lastRun": None}

    desk.run()

    assert memory.status().as_dict()["tidy"]["waiting"] == 3


def test_the_end_of_a_chat_looks_unless_the_settings_say_otherwise(
    open_memory: Callable[..., Memory],
) -> None:
    told: list[str] = []

    after_chat(open_memory(tidy={"afterChat": False}), told.append)
    assert told == []
    after_chat(open_memory(), told.append)

    assert told == ["3 new proposals wait: `plainmind tidy` shows what to tidy"]


def test_a_hook_looks_once_a_day_at_most(open_memory: Callable[..., Memory]) -> None:
    memory = open_memory()
    assert is_due(memory)
    assert not is_due(open_memory(tidy={"byHook": False}))

    Desk(memory).run()

    assert not is_due(memory)


def test_forgotten_text_is_in_no_proposal_and_no_version(desk: Desk, memory: Memory, tmp_path: Path) -> None:
    desk.run()
    desk.accept([of_kind(desk, "expiry").id])
    number = 1 + (tmp_path / "workspace" / "MEMORY.md").read_text().splitlines().index(
        "- The parking permit is valid until 1 December 2030 (until 2030-12-01)"
    )

    memory.forget(f"MEMORY.md#L{number}")
    memory.forget("guest room key")

    left = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not [path for path in left if b"guest room" in path.read_bytes()]
    assert not [path for path in left if b"parking permit" in path.read_bytes()]
    for version in memory.history():
        if version.available:
            assert b"parking" not in memory.read_version(version.id)
            assert b"guest room" not in memory.read_version(version.id)
    assert {one.kind for one in desk.list().proposals} == {"restated"}


def test_what_a_line_ending_or_a_mark_is_stays_as_it_was(desk: Desk, workspace: Path) -> None:
    file = workspace / "MEMORY.md"
    kept = b"\xef\xbb\xbf- The key of the boat hangs behind the door\r\n- other words\r\n"
    file.write_bytes(kept + b"- the key of the boat hangs behind the door")
    desk.run()

    desk.accept([of_kind(desk, "repeated").id])

    assert (
        file.read_bytes() == b"\xef\xbb\xbf- The key of the boat hangs behind the door\r\n- other words\r\n"
    )


def test_a_line_that_was_corrected_is_not_superseded_by_what_was_noted_before(
    desk: Desk, memory: Memory, workspace: Path
) -> None:
    """An id tells when a note was made; in its present words it may be younger."""
    noted = memory.remember("Doctor: Dr Winter, Hauptstrasse 4", durable=True)
    old = "01HZV9A1B2C3D4E5F6G7H8J9KM"  # of June 2024
    (workspace / "MEMORY.md").write_text(
        (workspace / "MEMORY.md").read_text().replace(noted.id, old), encoding="utf-8"
    )
    (workspace / "memory").mkdir(exist_ok=True)
    (workspace / "memory" / "2026-05-02.md").write_text(
        "# 2026-05-02\n\n- 10:12 Doctor: Dr Kovacs, Lindengasse 12\n"
    )
    assert desk.run().proposed["superseded"] == 1
    (waiting,) = [one for one in desk.list().proposals if one.kind == "superseded"]

    memory.edit("MEMORY.md", "Dr Winter, Hauptstrasse 4", "Dr Novak, Am Markt 1")

    assert "superseded" not in desk.run().proposed
    assert waiting.id not in [one.id for one in desk.list().proposals]
