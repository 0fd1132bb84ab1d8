"""The session of the OpenAI Agents SDK: items come back as they went in, and memory can read them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from plainmind.guests.integrations.agents_sdk import AgentsSession
from plainmind.sessions.entries import message_of
from plainmind.sessions.store import SessionStore

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
    spoken = [found.line for entry in store.open("support").entries() if (found := message_of(entry))]
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


@pytest.fixture(scope="module")
def agents() -> Any:
    """The SDK itself, which takes some seconds to import."""
    return pytest.importorskip("agents", reason="the OpenAI Agents SDK is not installed")


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_sdk_takes_it_for_a_session(agents: Any, tmp_path: Path) -> None:
    adapter = AgentsSession(SessionStore(tmp_path).create("support"))

    assert isinstance(adapter, agents.Session)
    assert adapter.session_id == "support"


class Model(BaseHTTPRequestHandler):
    """A model on loopback that calls a tool for the first question, and repeats what it was given afterwards."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(asked)
        texts = [part["content"] for part in asked["messages"] if part.get("content")]
        message: dict[str, Any] = {"role": "assistant", "content": f"I was given: {' / '.join(texts)}"}
        if len(self.asked) == 1:
            call = {"name": "multiply", "arguments": '{"a": 6, "b": 7}'}
            message = {"role": "assistant", "content": None}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def model_url() -> Iterator[str]:
    Model.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="loopback-model")
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_an_agent_of_the_sdk_remembers_across_runs_and_processes(
    agents: Any, tmp_path: Path, model_url: str
) -> None:
    import openai

    agents.set_tracing_disabled(True)

    @agents.function_tool
    def multiply(a: int, b: int) -> int:
        """Multiply two numbers."""
        return a * b

    async def ask(question: str) -> str:
        # Opened anew each time, as another process would.
        session = AgentsSession(SessionStore(tmp_path).open_or_create("support"))
        async with openai.AsyncOpenAI(base_url=model_url, api_key="none") as client:
            model = agents.OpenAIChatCompletionsModel(model="m", openai_client=client)
            agent = agents.Agent(name="clerk", model=model, tools=[multiply])
            result = await agents.Runner.run(agent, question, session=session)
        return str(result.final_output)

    assert "42" in asyncio.run(ask("what is six times seven?"))
    second = asyncio.run(ask("and what did I ask before?"))

    assert "what is six times seven?" in second
    assert "42" in second
    assert [part["role"] for part in Model.asked[-1]["messages"]] == [
        *("user", "assistant", "tool", "assistant"),
        "user",
    ]
    spoken = [
        found.line
        for entry in SessionStore(tmp_path).open("support").entries()
        if (found := message_of(entry))
    ]
    assert spoken[0] == "User: what is six times seven?"
    assert len([line for line in spoken if line.startswith("User: ")]) == 2
    assert len([line for line in spoken if line.startswith("Assistant: ")]) == 2
