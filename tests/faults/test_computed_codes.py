"""No code that makes `memory_forget` erase can be computed; each works once, for minutes, in one conversation."""

import os
from hashlib import sha256
from json import dumps
from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER, SearchContext
from plainmind.agent.tool_calls import Codes
from plainmind.agent.tools import ToolBox
from plainmind.guests.entries.access import tools_within

TRIES = 1_000 if os.environ.get("PLAINMIND_FAULTS") == "full" else 60
LINE = "- the word is zanzibar"


@pytest.fixture
def memory(tmp_path):
    notes = tmp_path / "notes" / "memory"
    notes.mkdir(parents=True)
    (notes / "2026-02-10.md").write_text(f"# Tuesday\n\n{LINE}\n")
    with Memory(
        tmp_path / "notes", home=tmp_path / "home", config={"entries": {"enabled": True}, "provider": "none"}
    ) as memory:
        yield memory


def computed_codes(data: bytes, note_of_entry: str):
    """What somebody can compute who knows the file, the entry, and how this program is written."""
    base_hash = sha256(data).hexdigest()
    pieces = [
        dumps([[["memory/2026-02-10.md", 3, 3, base_hash]], what, None])
        for what in ("zanzibar", "the word is zanzibar", LINE)
    ]
    pieces += [dumps([[note_of_entry, "the word is zanzibar"]])]
    codes = [sha256(piece.encode()).hexdigest()[:8] for piece in pieces]
    both = [sha256(f"{one} {other}".encode()).hexdigest()[:8] for one in codes for other in codes]
    yield from codes
    yield from both
    for number in range(TRIES - len(codes) - len(both)):
        text = f"{number} {base_hash} {note_of_entry}"
        yield sha256(text.encode()).hexdigest()[: 16 if number % 2 else 8]


@pytest.mark.parametrize("kind", ["notes", "both"])
def test_no_computed_code_erases(memory, kind):
    box = tools_within(memory, THE_OWNER)[0] if kind == "both" else ToolBox(memory.within(THE_OWNER))
    entry = box.call("memory_store", {"text": "the word is zanzibar"}).content["id"] if kind == "both" else ""
    place = Path(memory.workspace, "memory/2026-02-10.md")
    data = place.read_bytes()

    erased = 0
    for number, code in enumerate(computed_codes(data, entry)):
        what = ("zanzibar", "the word is zanzibar", LINE)[number % 3]
        answer = box.call("memory_forget", {"what": what, "confirm": code})
        erased += answer.content["status"] == "forgotten"

    box.close()
    assert erased == 0
    assert place.read_bytes() == data


def test_a_code_works_once(memory):
    box = ToolBox(memory.within(THE_OWNER))
    place = Path(memory.workspace, "memory/2026-02-10.md")
    data = place.read_bytes()
    code = box.call("memory_forget", {"what": "zanzibar"}).content["confirm"]
    assert box.call("memory_forget", {"what": "zanzibar", "confirm": code}).content["status"] == "forgotten"
    place.write_bytes(data)  # somebody wrote the very same line again

    answer = box.call("memory_forget", {"what": "zanzibar", "confirm": code})

    assert answer.content["status"] == "preview"
    assert place.read_bytes() == data


def test_a_code_is_valid_for_minutes(memory):
    now = [1_000.0]
    box = ToolBox(memory.within(THE_OWNER), codes=Codes(clock=lambda: now[0]))
    late = box.call("memory_forget", {"what": "zanzibar"}).content["confirm"]
    now[0] += 601
    assert box.call("memory_forget", {"what": "zanzibar", "confirm": late}).content["status"] == "preview"

    code = box.call("memory_forget", {"what": "zanzibar"}).content["confirm"]
    now[0] += 599
    assert box.call("memory_forget", {"what": "zanzibar", "confirm": code}).content["status"] == "forgotten"


def test_a_code_is_for_the_conversation_that_it_was_shown_in(memory):
    mine = ToolBox(memory.within(THE_OWNER))
    other = ToolBox(memory.within(SearchContext(THE_OWNER.principal, "direct", "agent:main:other")))
    code = mine.call("memory_forget", {"what": "zanzibar"}).content["confirm"]

    assert other.call("memory_forget", {"what": "zanzibar", "confirm": code}).content["status"] == "preview"
    assert mine.call("memory_forget", {"what": "zanzibar", "confirm": code}).content["status"] == "forgotten"


def test_a_code_outlives_its_box_but_not_its_process(memory):
    code = ToolBox(memory.within(THE_OWNER)).call("memory_forget", {"what": "zanzibar"}).content["confirm"]
    elsewhere = ToolBox(memory.within(THE_OWNER), codes=Codes())
    assert (
        elsewhere.call("memory_forget", {"what": "zanzibar", "confirm": code}).content["status"] == "preview"
    )

    next_turn = ToolBox(memory.within(THE_OWNER))
    assert (
        next_turn.call("memory_forget", {"what": "zanzibar", "confirm": code}).content["status"]
        == "forgotten"
    )
