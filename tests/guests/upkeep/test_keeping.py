"""What agents asked for again and again is proposed for keeping: from the recall log to the curated memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.agent.recalls import Asker
from plainmind.agent.scope import OWNER, SearchContext
from plainmind.agent.tools import ToolBox
from plainmind.guests.upkeep.desk import Desk

LOG = (
    "# 2026-03-02\n\n- 09:00 We decided to keep the boat in Bregenz all year\n- 09:10 Bought bread and milk\n"
)


@pytest.fixture
def workspace(workspace: Path) -> Path:
    (workspace / "memory" / "2026-03-02.md").write_text(LOG)
    return workspace


def ask(memory: Memory, question: str, session: str = "agent:main:main") -> None:
    context = SearchContext(OWNER, "direct", session)
    tools = ToolBox(memory.within(context, asker=Asker("tools", "codex", session)))
    assert "Bregenz" in tools.call("memory_search", {"query": question}).text
    tools.close()


def kept(desk: Desk) -> list[str]:
    desk.run()
    return [one.edits[0].new[0] for one in desk.list().proposals if one.kind == "keep"]


def test_a_decision_that_answered_two_questions_is_proposed_and_undone_to_the_byte(
    memory: Memory, desk: Desk, workspace: Path
) -> None:
    before = (workspace / "MEMORY.md").read_bytes()
    ask(memory, "where do we keep the boat?")
    assert kept(desk) == []

    ask(memory, "boat in Bregenz in winter")

    assert kept(desk) == ["- We decided to keep the boat in Bregenz all year (from memory/2026-03-02.md#L3)"]
    (proposal,) = [one for one in desk.list().proposals if one.kind == "keep"]
    desk.accept([proposal.id])
    assert "(from memory/2026-03-02.md#L3)" in (workspace / "MEMORY.md").read_text()
    assert (workspace / "memory" / "2026-03-02.md").read_text() == LOG
    assert kept(desk) == []  # it is known now
    memory.undo()
    assert (workspace / "MEMORY.md").read_bytes() == before


def test_what_a_cron_job_or_a_subagent_asked_is_no_evidence(memory: Memory, desk: Desk) -> None:
    ask(memory, "where do we keep the boat?", "agent:main:cron:daily")
    ask(memory, "boat in Bregenz in winter", "agent:main:subagent:1")

    assert kept(desk) == []


def test_the_way_back_follows_a_line_that_moves_while_its_proposal_waits(
    memory: Memory, desk: Desk, workspace: Path
) -> None:
    ask(memory, "where do we keep the boat?")
    ask(memory, "boat in Bregenz in winter")
    assert kept(desk)[0].endswith("#L3)")

    (workspace / "memory" / "2026-03-02.md").write_text(LOG.replace("\n\n", "\n\n- 08:00 up early\n", 1))

    (proposal,) = [one for one in desk.list().proposals if one.kind == "keep"]
    assert proposal.edits[0].new[0].endswith("(from memory/2026-03-02.md#L4)")
