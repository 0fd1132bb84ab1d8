"""`search` and `fetch` in the shapes that ChatGPT's connectors are fixed to."""

import json

import pytest
from tests.support.poisoned_notes import held

from plainmind.agent.scope import Limits, SearchContext
from plainmind.mcp.offers import Connector


def answer_of(result):
    """The structured answer; the text must be the same, as JSON."""
    assert [json.loads(block.text) for block in result.content] == [result.structured_content]
    return result.structured_content


def test_a_connector_gets_its_two_tools_and_no_others(with_client):
    listed = with_client(lambda client: client.list_tools(), connector=True).tools

    assert [tool.name for tool in listed] == ["search", "fetch"]
    assert all(tool.annotations.read_only_hint for tool in listed)


def test_other_tools_can_be_added_to_them_by_name(with_client):
    listed = with_client(lambda client: client.list_tools(), connector=True, tools=["memory_append"]).tools

    assert [tool.name for tool in listed] == ["memory_append", "search", "fetch"]


def test_what_search_finds_is_fetched_by_its_id(with_client):
    async def find_and_fetch(client):
        found = answer_of(await client.call_tool("search", {"query": "which VLAN is the printer on"}))
        first = found["results"][0]
        return found, first, answer_of(await client.call_tool("fetch", {"id": first["id"]}))

    found, first, fetched = with_client(find_and_fetch, connector=True)

    assert list(found) == ["results"]
    assert set(first) == {"id", "title", "text", "url"}
    assert first["id"].startswith("MEMORY.md#L")
    assert first["url"] == "memory:///" + first["id"]
    assert first["title"] == first["id"]
    inside, outside = held(first["text"])
    assert "VLAN 40" in inside
    assert outside == ""
    assert set(fetched) == {"id", "title", "text", "url", "metadata"}
    assert fetched["id"] == first["id"]
    assert "VLAN 40" in fetched["text"]
    assert fetched["text"].startswith("<recalled-memory ")


def test_of_a_long_file_the_cited_part_is_fetched(with_client, workspace):
    lines = [f"- entry {number}: {'words ' * 10}" for number in range(2000)]
    lines[1500] = "- The zeppelin lands at gate seventeen."
    (workspace / "memory" / "long.md").write_text("\n".join(lines) + "\n")

    async def fetch(client):
        return answer_of(await client.call_tool("fetch", {"id": "memory/long.md#L1501"}))

    fetched = with_client(fetch, connector=True)

    assert "zeppelin" in fetched["text"]
    assert fetched["metadata"]["startLine"] == 1481
    assert fetched["metadata"]["nextFrom"] > 1501


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {}),
        ("search", {"query": " "}),
        ("search", {"query": 5}),
        ("fetch", {}),
        ("fetch", {"id": "../../etc/passwd"}),
        ("fetch", {"id": "memory/none.md#L1"}),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(with_client, tool, arguments):
    async def call(client):
        return await client.session.call_tool(tool, arguments)

    answer = with_client(call, connector=True)

    assert answer.is_error
    assert answer.structured_content is None
    assert len(answer.content[0].text) > 10


def test_a_denied_conversation_finds_and_fetches_nothing(with_client):
    async def call(client):
        return [
            await client.session.call_tool(tool, arguments)
            for tool, arguments in (("search", {"query": "printer"}), ("fetch", {"id": "MEMORY.md"}))
        ]

    answers = with_client(call, connector=True, context=SearchContext("", "", ""))

    assert all(answer.is_error for answer in answers)
    assert "VLAN" not in str(answers)


def test_a_message_that_is_fetched_is_said_to_be_of_a_conversation(with_client, memory):
    memory.sessions.create("agent:main:main", id="s1").append({"role": "user", "content": "the violin"})

    async def fetch(client):
        return answer_of(await client.call_tool("fetch", {"id": "sessions/s1.jsonl#L2"}))

    fetched = with_client(fetch, connector=True)

    assert "sessions/s1.jsonl#L1-L2 · conversation\n" in fetched["text"]
    assert fetched["metadata"]["endLine"] == 2


def test_a_search_is_waited_for_as_long_as_other_tools_are_and_then_says_so():
    class Slow:
        limits = Limits(timeout_ms=1_500)

    call = Connector(Slow()).prepare("search", {"query": "tea"})

    assert call.seconds == 1.5
    assert call.late().is_error
    assert "did not answer within 1500 ms" in call.late().text
    assert Connector(Slow()).prepare("fetch", {"id": "MEMORY.md"}).seconds is None
