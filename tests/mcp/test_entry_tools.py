"""The entry memory over MCP: only when it is switched on, and within the same scopes as everything else."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import anyio
import pytest
from mcp import Client
from tests.support.mcp_process import INITIALIZE, McpProcess, code_in

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER, SearchContext
from plainmind.agent.tools import FORGET as NOTES_FORGET
from plainmind.agent.tools import TOOLS, ToolBox
from plainmind.base.errors import PlainmindError
from plainmind.base.model import PRIVATE
from plainmind.guests.entries.access import entry_memory_of, entry_tools_of
from plainmind.guests.entries.toolbox import AllTools
from plainmind.guests.entries.tools import ALL_TOOLS, ENTRY_TOOLS, FORGET, FORGET_EVERYWHERE
from plainmind.mcp.desk import Desk
from plainmind.mcp.http import server_of
from plainmind.mcp.offers import chosen_tools, has_entry_tools

SWITCHED_ON = {"PLAINMIND_ENTRIES_ENABLED": "true", "PLAINMIND_ENTRIES_DRIVER": "sqlite"}
_WITHOUT_LANCEDB = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "lancedb" else found(name, *more)
from plainmind.cli.main import main
sys.exit(main(["mcp"]))
"""
GROUP = SearchContext("anna", "group", "agent:main:telegram:group:7", "telegram", "7")


def chosen(*names, **options):
    return chosen_tools(
        list(names) or None, read_only=options.pop("read_only", False), connector=False, **options
    )


def names(tools):
    return [tool.name for tool in tools]


def test_by_itself_a_server_offers_the_notes_and_with_entries_both():
    assert chosen() == TOOLS
    assert chosen(entries=True) == ALL_TOOLS
    assert FORGET_EVERYWHERE in ALL_TOOLS
    assert names(chosen(entries=True, read_only=True)) == [
        "memory_search",
        "memory_get",
        "memory_status",
        "memory_recall",
    ]


def test_a_kind_can_be_named_as_a_whole_and_forgets_what_it_is_for():
    assert all(tool in ENTRY_TOOLS for tool in chosen("entries", entries=True))
    assert len(chosen("entries", entries=True)) == len(ENTRY_TOOLS)
    assert chosen("notes", entries=True) == TOOLS
    assert chosen("notes", "entries", entries=True) == ALL_TOOLS
    assert FORGET in chosen("memory_recall", "memory_forget", entries=True)
    assert NOTES_FORGET in chosen("memory_search", "memory_forget", entries=True)
    assert NOTES_FORGET in chosen("memory_forget", entries=True)
    assert FORGET_EVERYWHERE in chosen("memory_search", "memory_recall", "memory_forget", entries=True)


@pytest.mark.parametrize("name", ["entries", "memory_store", "memory_recall"])
def test_what_is_switched_off_cannot_be_named(name):
    with pytest.raises(PlainmindError) as refused:
        chosen(name)
    assert "entries.enabled" in (refused.value.hint or "")


def test_tools_that_need_the_entries_are_told_from_those_that_do_not():
    assert not has_entry_tools(TOOLS)
    assert has_entry_tools(ENTRY_TOOLS)
    assert has_entry_tools([FORGET_EVERYWHERE])


def test_to_choose_tools_nothing_is_loaded_that_keeps_or_finds_entries():
    program = "import sys, plainmind.mcp.offers; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    loaded = {name for name in ended.stdout.split() if name.startswith("plainmind.")}
    assert "plainmind.guests.entries.model" in loaded
    assert loaded.isdisjoint({"plainmind.guests.entries.memory", "plainmind.index", "plainmind.embed"})


@pytest.mark.timeout(60)
def test_a_client_stores_recalls_and_forgets(workspace, home):
    with McpProcess(env=SWITCHED_ON) as server:
        instructions = server.ask(1, "initialize", 50, **INITIALIZE)["result"]["instructions"]
        server.tell("notifications/initialized")
        assert "memory_recall" in instructions
        listed = server.ask(2, "tools/list", 50)["result"]["tools"]
        assert len(listed) == 8

        def call(number, name, **arguments):
            answer = server.ask(number, "tools/call", 50, name=name, arguments=arguments)["result"]
            assert not answer.get("isError"), answer
            assert "structuredContent" not in answer, "what is recalled stands between its marks alone"
            return answer["content"][0]["text"]

        call(3, "memory_store", text="Ana prefers tea over coffee")
        assert "\nAna prefers" in call(4, "memory_recall", query="Ana tea coffee")
        preview = call(5, "memory_forget", what="Ana")
        assert "2 places would be removed" in preview
        call(6, "memory_forget", what="Ana", confirm=code_in(preview))
    files = [path for folder in (home, workspace) for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if b"prefers tea" in path.read_bytes()] == []


@pytest.mark.timeout(60)
def test_a_server_that_lacks_what_keeps_the_entries_says_so_and_greets_nobody(workspace):
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
    served = subprocess.run(
        [sys.executable, "-c", _WITHOUT_LANCEDB],
        input=hello + "\n",
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "PLAINMIND_ENTRIES_ENABLED": "true", "PLAINMIND_ENTRIES_DRIVER": "lancedb"},
    )
    assert (served.returncode, served.stdout) == (1, "")
    assert "LanceDB, which is not installed" in served.stderr


def test_a_group_gets_nothing_of_the_owner(workspace):
    config = {
        "entries": {"enabled": True, "driver": "sqlite"},
        "scope": {"default": "allow", "rules": []},
        "provider": "none",
    }
    with Memory(config=config) as memory:
        entries = entry_memory_of(memory)
        entries.store("the word of the owner is zanzibar", scope=PRIVATE)

        def asked(context):
            scoped = memory.within(context)
            box = AllTools(ToolBox(scoped), entry_tools_of(memory, scoped, entries))
            desk = Desk(scoped, ALL_TOOLS, lambda _memory: (box, lambda: None))

            async def ask():
                async with Client(server_of(desk)) as client:
                    found = await client.call_tool("memory_recall", {"query": "the word of the owner is"})
                    gone = await client.call_tool("memory_forget", {"what": "zanzibar"})
                    return json.dumps([found.model_dump(mode="json"), gone.model_dump(mode="json")])

            try:
                return anyio.run(ask)
            finally:
                assert desk.close()

        assert "zanzibar" in asked(THE_OWNER)
        assert "zanzibar" not in asked(GROUP)
        entries.close()
