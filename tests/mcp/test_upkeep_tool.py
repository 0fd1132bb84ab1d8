"""An agent proposes a change of the notes over MCP: it waits for a person, and nothing changes before."""

from __future__ import annotations

import pytest

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER, SearchContext
from plainmind.guests.upkeep.desk import Desk
from plainmind.mcp.desk import open_desk
from plainmind.mcp.offers import box_of, chosen_tools

FILE = "memory/house.md"
OLD = "- The boiler is serviced in May"
NEW = "- The boiler is serviced in June"
TEXT = f"# House\n\n{OLD}\n- The key hangs behind the door\n"
GROUP = SearchContext("anna", "group", "agent:main:telegram:group:7", "telegram", "7")
WANTED = {"kind": "superseded", "path": FILE, "old": OLD, "new": NEW, "reason": "Ben said so today"}


@pytest.fixture
def memory(tmp_path):
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / FILE).write_text(TEXT)
    (folder / "memory/2026-05-01.md").write_text("# 2026-05-01\n\n- 10:02 Ben said that it is June\n")
    with Memory(folder, home=tmp_path / "home") as opened:
        yield opened


def call(memory, context=THE_OWNER, **changed):
    box, _ = box_of(memory, memory.within(context), tools())
    return box.call("memory_propose", {**WANTED, **changed})


def tools():
    return chosen_tools(["notes", "upkeep"], read_only=False, connector=False)


def test_the_tool_is_offered_to_whoever_names_it():
    by_itself = chosen_tools(None, read_only=False, connector=False)

    assert "memory_propose" not in [tool.name for tool in by_itself]
    assert [tool.name for tool in tools()][-1] == "memory_propose"


def test_a_proposal_waits_and_changes_nothing_until_a_person_accepts_it(memory, tmp_path):
    answer = call(memory, evidence="memory/2026-05-01.md#L3")

    (waiting,) = Desk(memory).list().proposals
    file = tmp_path / "workspace" / FILE
    assert (answer.content["status"], answer.content["id"]) == ("waiting", waiting.id)
    assert (waiting.maker.by, waiting.reason) == ("agent", "Ben said so today")
    assert [str(cite) for cite in waiting.cites] == [f"{FILE}#L3", "memory/2026-05-01.md#L3"]
    assert file.read_text() == TEXT
    assert Desk(memory).accept([waiting.id]).done == (waiting.id,)
    assert file.read_text() == TEXT.replace(OLD, NEW)
    memory.undo()
    assert file.read_text() == TEXT


def test_lines_that_shall_go_are_proposed_without_a_new_text(memory, tmp_path):
    wanted = {name: given for name, given in WANTED.items() if name != "new"}
    box, _ = box_of(memory, memory.within(THE_OWNER), tools())
    Desk(memory).accept([box.call("memory_propose", wanted).content["id"]])

    assert (tmp_path / "workspace" / FILE).read_text() == TEXT.replace(f"{OLD}\n", "")


def test_what_is_proposed_anew_takes_the_place_of_what_the_agent_proposed_before(memory):
    first, second = call(memory), call(memory, new="- The boiler is serviced in July")

    (waiting,) = Desk(memory).list().proposals
    assert first.content["id"] == second.content["id"] == waiting.id
    assert waiting.edits[0].new == ("- The boiler is serviced in July",)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"old": "- The boiler"}, "stand nowhere"),
        ({"old": ""}, "empty"),
        ({"path": "memory/2026-05-01.md", "old": "- 10:02 Ben said that it is June"}, "is a log"),
        ({"path": "../elsewhere.md"}, "elsewhere"),
        ({"evidence": f"{FILE}#L99"}, "evidence"),
        ({"new": f"{NEW} [redacted:password#0000]"}, "mark of a secret"),
        ({"new": "x" * 5_000}, "at most"),
        ({"kind": "whatever"}, "kind"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(memory, changed, said):
    answer = call(memory, **changed)

    assert answer.is_error
    assert said in answer.text
    assert Desk(memory).list().proposals == ()


def test_who_is_not_the_owner_proposes_nothing(memory):
    answer = call(memory, GROUP)

    assert answer.is_error
    assert "owner" in answer.text
    assert Desk(memory).list().proposals == ()


def test_what_a_person_rejected_does_not_come_back(memory):
    Desk(memory).reject([call(memory).content["id"]])

    assert "rejected" in call(memory).text


def test_agents_cannot_fill_the_inbox(memory, tmp_path):
    lines = [f"- line number {number}" for number in range(60)]
    (tmp_path / "workspace" / FILE).write_text("\n".join(lines))
    box, _ = box_of(memory, memory.within(THE_OWNER), tools())

    answers = [box.call("memory_propose", {**WANTED, "old": line}) for line in lines]

    assert [answer.is_error for answer in answers] == [False] * 50 + [True] * 10
    assert "wait already" in answers[-1].text


def test_it_is_called_like_every_other_tool_of_a_server(memory):
    with open_desk(memory, THE_OWNER, tools()) as desk:
        listed = desk.answer("tools/list", {})["tools"]
        task = desk.answer("tools/call", {"name": "memory_propose", "arguments": WANTED})
        result = task.work()

    assert "memory_propose" in [tool["name"] for tool in listed]
    assert result["structuredContent"]["status"] == "waiting"
