"""The tools as the official client sees them, in the protocol of today and in the one before."""

import json

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError
from tests.support.poisoned_notes import held

from plainmind.agent.scope import THE_OWNER, SearchContext
from plainmind.base.errors import PlainmindError
from plainmind.mcp.desk import Desk
from plainmind.mcp.offers import chosen_tools

ALL = ["memory_search", "memory_get", "memory_append", "memory_edit", "memory_forget", "memory_status"]
WRITERS = {"memory_append", "memory_edit", "memory_forget"}
MODES = ["auto", "legacy"]


@pytest.mark.parametrize("mode", MODES)
def test_every_tool_is_listed_with_what_a_client_decides_by(with_client, mode):
    listed = with_client(lambda client: client.list_tools(), mode=mode).tools

    assert [tool.name for tool in listed] == ALL
    for tool in listed:
        assert tool.title
        assert tool.description
        assert tool.annotations.open_world_hint is False
        assert tool.annotations.read_only_hint is (tool.name not in WRITERS)
        assert tool.annotations.destructive_hint is (tool.name in {"memory_edit", "memory_forget"})


@pytest.mark.parametrize("mode", MODES)
def test_the_server_says_how_its_tools_are_used(with_client, mode):
    async def look(client):
        return client.instructions, client.server_info

    instructions, server = with_client(look, mode=mode)

    assert instructions.startswith("## Memory Recall")
    assert server.name == "plainmind"


@pytest.mark.parametrize("mode", MODES)
def test_recalled_text_stands_between_its_marks_and_nowhere_else_in_an_answer(with_client, mode):
    """Some clients hand on the text to the model, some the structure, some both."""

    async def ask(client):
        calls = [
            ("memory_search", {"query": "which VLAN is the printer on"}),
            ("memory_get", {"path": "MEMORY.md"}),
            ("memory_forget", {"what": "VLAN 40"}),
        ]
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    for answer in with_client(ask, mode=mode):
        assert answer.is_error is False
        assert answer.structured_content is None
        [text] = [block.text for block in answer.content]
        before, mark, fenced = text.partition("<recalled-memory")
        inside, after = held(mark + fenced)
        assert "VLAN 40" in inside
        assert "VLAN" not in before + after


def test_every_answer_fits_the_schema_of_its_tool(with_client):
    async def use_all(client):
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        assert [name for name, schema in schemas.items() if schema] == ["memory_append", "memory_edit"]
        calls = [
            ("memory_search", {"query": "printer"}),
            ("memory_search", {"query": 7}),
            ("memory_get", {"path": "MEMORY.md"}),
            ("memory_get", {"path": "../../etc/passwd"}),
            ("memory_get", {"path": "memory/none.md"}),
            ("memory_append", {"text": "The lift is being repaired."}),
            ("memory_append", {}),
            ("memory_edit", {"path": "MEMORY.md", "old": "VLAN 40", "new": "VLAN 41"}),
            ("memory_edit", {"path": "MEMORY.md", "old": "VLAN 40", "new": "VLAN 42"}),
            ("memory_forget", {"what": "The lift is being repaired."}),
            ("memory_forget", {"what": "nobody wrote this"}),
            ("memory_status", {}),
        ]
        return schemas, [(name, await client.call_tool(name, arguments)) for name, arguments in calls]

    schemas, answers = with_client(use_all)

    for name, answer in answers:
        if schemas[name] is None:
            assert answer.structured_content is None
        else:
            jsonschema.validate(answer.structured_content, schemas[name])
    assert [answer.is_error for _, answer in answers] == [
        False, True, False, True, True, False, True, False, True, False, True, False,
    ]  # fmt: skip


def test_what_was_appended_is_on_disk_and_found_by_the_next_search(with_client, workspace):
    async def append_and_search(client):
        saved = await client.call_tool("memory_append", {"text": "The heron nests on pier nine."})
        found = await client.call_tool("memory_search", {"query": "where does the heron nest"})
        return saved.structured_content, found.content[0].text

    saved, found = with_client(append_and_search)

    assert "The heron nests on pier nine." in (workspace / saved["path"]).read_text()
    first, second = found.index("1/"), found.find("2/")
    assert first < found.index(f"{saved['path']}#L") < (second if second >= 0 else len(found))


def test_a_tool_that_does_not_exist_is_an_error_of_the_protocol(with_client):
    async def call(client):
        with pytest.raises(MCPError) as refused:
            await client.call_tool("memory_destroy", {})
        return refused.value

    refused = with_client(call)

    assert refused.code == -32602
    assert "memory_search" in refused.message


def test_a_server_that_only_reads_offers_nothing_that_writes(with_client):
    async def look(client):
        with pytest.raises(MCPError):
            await client.call_tool("memory_append", {"text": "no"})
        return [tool.name for tool in (await client.list_tools()).tools]

    assert with_client(look, read_only=True) == ["memory_search", "memory_get", "memory_status"]


def test_only_the_tools_that_were_named_are_offered(with_client):
    async def look(client):
        return [tool.name for tool in (await client.list_tools()).tools], client.instructions

    names, instructions = with_client(look, tools=["memory_get"])

    assert names == ["memory_get"]
    assert "memory_search" not in instructions


@pytest.mark.parametrize(
    ("names", "said"), [(["memory_write"], "no tool `memory_write`"), (["memory_append"], "writes")]
)
def test_tools_that_cannot_be_offered_are_refused_by_name(names, said):
    with pytest.raises(PlainmindError, match=said):
        chosen_tools(names, read_only=True, connector=False)


def test_over_http_a_client_is_told_the_same_as_over_standard_output(with_client, memory):
    desk = Desk(memory.within(THE_OWNER), chosen_tools(None, read_only=False, connector=False))

    async def look(client):
        lists = [client.list_tools(), client.list_prompts(), client.list_resource_templates()]
        told = [(await one).model_dump(by_alias=True, exclude_none=True, mode="json") for one in lists]
        return told, client.instructions

    told, instructions = with_client(look, mode="legacy")

    assert instructions == desk.introduction()["instructions"]
    for method, answer in zip(("tools/list", "prompts/list", "resources/templates/list"), told, strict=True):
        assert answer.items() >= desk.answer(method, {}).items()


def test_the_list_of_tools_costs_a_model_little(with_client):
    tools = with_client(lambda client: client.list_tools()).tools
    # What reaches a model: names, descriptions and input schemas. A token of JSON has three letters or more.
    shown = [{"name": t.name, "description": t.description, "schema": t.input_schema} for t in tools]

    assert len(json.dumps(shown)) / 3 < 1500


def test_a_group_gets_nothing_private_and_is_told_why(with_client):
    async def search(client):
        answer = await client.call_tool("memory_search", {"query": "printer VLAN"})
        return answer, client.instructions

    group = SearchContext("anna", "group", "agent:main:telegram:group:-100", "telegram", "-100")
    answer, instructions = with_client(search, context=group)

    assert "VLAN" not in answer.model_dump_json()
    assert answer.is_error
    assert "scope" in answer.content[0].text
    assert "Citations are off" in instructions


def test_our_own_mistakes_are_logged_and_not_told(with_client, memory, monkeypatch, caplog):
    class Broken(type(memory)):
        def within(self, context):
            scoped = super().within(context)

            def fail():
                raise RuntimeError("the secret is 4711")

            scoped.list = fail
            return scoped

    broken = Broken.__new__(Broken)
    vars(broken).update(vars(memory))

    async def look(client):
        with pytest.raises(MCPError) as refused:
            await client.list_resources()
        return refused.value

    refused = with_client(look, of=broken)

    assert refused.code == -32603
    assert "4711" not in refused.message
    assert "4711" in caplog.text
