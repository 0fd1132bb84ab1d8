"""The session of the OpenAI Agents SDK: items come back as they went in, and memory can read them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from commonplace.sessions.agents_sdk import AgentsSession
from commonplace.sessions.store import SessionStore
from commonplace.text.transcripts import said

ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "what is six times seven?"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "multiply", "arguments": '{"a": 6, "b": 7}'},
    {"type": "function_call_output", "call_id": "c1", "output": "42"},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It is 42.", "annotations": []}],
    },
]


@pytest.fixture
def session(store: SessionStore) -> AgentsSession:
    return AgentsSession(store.open_or_create("support"))


def test_items_come_back_as_they_were_added(session: AgentsSession) -> None:
    asyncio.run(session.add_items(ITEMS))

    assert asyncio.run(session.get_items()) == ITEMS
    assert asyncio.run(session.get_items(2)) == ITEMS[-2:]
    assert asyncio.run(session.get_items(99)) == ITEMS
    assert asyncio.run(session.get_items(0)) == []


def test_a_limit_may_be_settled(store: SessionStore) -> None:
    limited = AgentsSession(store.open_or_create("support"), {"limit": 1})
    asyncio.run(limited.add_items(ITEMS))
    assert asyncio.run(limited.get_items()) == ITEMS[-1:]
    assert asyncio.run(limited.get_items(3)) == ITEMS[-3:]


def test_the_latest_item_can_be_taken_back(session: AgentsSession) -> None:
    asyncio.run(session.add_items(ITEMS[:2]))

    assert asyncio.run(session.pop_item()) == ITEMS[1]
    assert asyncio.run(session.pop_item()) == ITEMS[0]
    assert asyncio.run(session.pop_item()) is None
    asyncio.run(session.add_items(ITEMS[3:4]))
    assert asyncio.run(session.get_items()) == ITEMS[3:4]


def test_clearing_begins_anew_and_keeps_the_transcript(store: SessionStore, session: AgentsSession) -> None:
    asyncio.run(session.add_items(ITEMS))
    asyncio.run(session.clear_session())

    assert asyncio.run(session.get_items()) == []
    assert len(list(store.open("support").messages())) == len(ITEMS)


def test_memory_reads_what_people_and_models_said(store: SessionStore, session: AgentsSession) -> None:
    asyncio.run(session.add_items(ITEMS))
    spoken = [found.line for entry in store.open("support").entries() if (found := said(entry))]
    assert spoken == ["User: what is six times seven?", "Assistant: It is 42."]


def test_messages_that_came_another_way_are_items_too(store: SessionStore, session: AgentsSession) -> None:
    ours = store.open("support")
    ours.append({"role": "user", "content": "old"})
    ours.compact("they had talked")
    ours.append({"role": "assistant", "content": [{"type": "text", "text": "new"}]})
    ours.append({"role": "toolResult", "content": "42"})

    assert asyncio.run(session.get_items()) == [
        {"role": "user", "content": "they had talked"},
        {"role": "assistant", "content": "new"},
        {"role": "user", "content": "42"},
    ]


def test_the_sdk_takes_it_for_a_session(tmp_path: Path) -> None:
    agents = pytest.importorskip("agents", reason="the OpenAI Agents SDK is not installed")
    adapter = AgentsSession(SessionStore(tmp_path).create("support"))

    assert isinstance(adapter, agents.Session)
    assert adapter.session_id == "support"
