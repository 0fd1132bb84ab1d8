"""What all classes for frameworks are made of: reminders are certain, turns are kept once, people are kept apart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from plainmind.agent.scope import OWNER, SearchContext
from plainmind.base.errors import PlainmindError, ScopeDenied
from plainmind.guests.integrations.framework import FrameworkMemory, Said, in_thread, open_memory
from plainmind.memory.memory import Memory

ASKED = "Where does the billing gateway run?"
FACT = "The billing gateway runs at Hetzner in Falkenstein, behind Caddy."
ANNA = SearchContext("anna", "direct", "", channel="app")
BEN = SearchContext("ben", "direct", "", channel="app")


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    monkeypatch.setenv("PLAINMIND_HOME", str(tmp_path / "home"))
    with open_memory(tmp_path / "notes") as opened:
        opened.remember(FACT)
        yield opened


@pytest.fixture
def mine(memory: Memory) -> FrameworkMemory:
    return FrameworkMemory(memory, "test")


def texts(mine: FrameworkMemory, session: str) -> list[str]:
    with mine.session(session) as kept:
        return [message["content"][0]["text"] for message in kept.messages()]


def test_a_folder_becomes_a_memory_in_which_conversations_are_searched(memory: Memory) -> None:
    assert Path(memory.workspace, "MEMORY.md").exists()
    assert set(memory.sources) == {"memory", "sessions"}


def test_a_prompt_is_preceded_by_what_is_certain_between_marks(mine: FrameworkMemory) -> None:
    reminder = mine.reminder(ASKED)
    assert reminder.startswith("<recalled-memory ")
    assert "Falkenstein" in reminder
    assert mine.reminder("Write a haiku about autumn leaves.") == ""


def test_within_a_turn_the_reminder_stays_the_same(mine: FrameworkMemory, memory: Memory) -> None:
    first = mine.reminder(ASKED, turn="1")
    memory.remember("The billing gateway runs at Netcup in Nuremberg.")
    assert mine.reminder(ASKED, turn="1") == first
    assert "Nuremberg" in mine.reminder(ASKED, turn="2")


def test_a_turn_that_is_told_twice_is_kept_once(mine: FrameworkMemory) -> None:
    turn = [Said("user", "one", "1"), Said("assistant", "two", "2")]
    assert mine.keep("talk", turn) == 2
    assert mine.keep("talk", [*turn, Said("user", "three", "3")]) == 1
    assert texts(mine, "talk") == ["one", "two", "three"]


def test_what_was_recalled_private_or_secret_is_not_kept(mine: FrameworkMemory) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    said = f"{mine.reminder(ASKED)}\n\nhello <private>my salary</private> {token}"
    mine.keep("talk", [Said("user", said), Said("assistant", mine.reminder(ASKED))])
    (kept,) = texts(mine, "talk")
    assert kept.startswith("hello")
    for word in ("Falkenstein", "recalled-memory", "salary", token):
        assert word not in kept


def test_another_conversation_is_reminded_of_what_was_said_and_the_same_one_is_not(
    mine: FrameworkMemory,
) -> None:
    mine.keep("first", [Said("user", "The codeword for the migration is heliotrope.")])
    question = "What is the codeword for the migration?"
    assert "heliotrope" in mine.reminder(question, session="second")
    assert "heliotrope" not in mine.reminder(question, session="first")


def test_people_are_kept_apart(memory: Memory, mine: FrameworkMemory) -> None:
    anna, ben = FrameworkMemory(memory, "test", ANNA), FrameworkMemory(memory, "test", BEN)
    anna.keep("talk", [Said("user", "My parrot is called Herodotus.")])
    question = "What is the parrot called?"
    assert "Herodotus" in anna.call("memory_search", {"query": question})
    assert "Herodotus" in mine.call("memory_search", {"query": question})
    assert "Herodotus" not in ben.call("memory_search", {"query": question})
    assert anna.reminder(ASKED) == ""
    assert texts(ben, "talk") == []


@pytest.mark.parametrize("name", ["a:group:7", "direct:ben", "x:thread:y", "%3A", ":"])
def test_the_name_of_a_conversation_opens_it_to_nobody(
    memory: Memory, mine: FrameworkMemory, name: str
) -> None:
    mine.keep(name, [Said("user", "mine alone")])
    FrameworkMemory(memory, "test", ANNA).keep(name, [Said("user", "anna's alone")])
    assert set(memory.conversations.scopes.now().values()) == {"private", "app/person:anna"}


def test_who_may_not_ask_is_told_at_once(memory: Memory) -> None:
    for context in (SearchContext("", "direct", ""), SearchContext("x", "group", "", group="g")):
        with pytest.raises(ScopeDenied):
            FrameworkMemory(memory, "test", context)
    assert FrameworkMemory(memory, "test", SearchContext(OWNER, "direct", "")).writes


def test_what_goes_wrong_costs_no_turn_and_is_logged(
    mine: FrameworkMemory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PlainmindError("the disk is full")

    monkeypatch.setattr(mine.mine, "search", fail)
    monkeypatch.setattr(mine, "session", fail)
    with caplog.at_level(logging.WARNING, logger="plainmind.integrations"):
        assert mine.reminder(ASKED) == ""
        assert mine.keep("talk", [Said("user", "hello")]) == 0
    assert caplog.text.count("the disk is full") == 2


def test_what_is_recalled_is_written_down_for_its_owner(mine: FrameworkMemory, memory: Memory) -> None:
    mine.reminder(ASKED, session="talk")
    mine.found(ASKED)
    asked = [(one.host, one.session) for one in memory.recalls.page().recalls]
    assert ("test", "talk") in asked
    assert len(asked) == 2


def test_slow_work_does_not_stop_an_event_loop(mine: FrameworkMemory) -> None:
    async def both() -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        ticking = asyncio.create_task(tick())
        assert "Falkenstein" in await in_thread(mine.reminder, ASKED)
        ticking.cancel()
        return ticks

    assert asyncio.run(both()) > 1
