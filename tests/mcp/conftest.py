"""A memory, and the official client connected to a server of it."""

from __future__ import annotations

import anyio
import pytest
from mcp import Client
from tests.support.command_line import as_plain_user, cli, home, process, workspace

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER
from plainmind.mcp.desk import Desk
from plainmind.mcp.http import server_of
from plainmind.mcp.offers import chosen_tools

__all__ = ["as_plain_user", "cli", "home", "process", "workspace"]


@pytest.fixture
def memory(workspace):
    with Memory() as opened:
        yield opened


@pytest.fixture
def with_client(memory):
    """Do something with a client, in this process."""

    def run(do, *, context=THE_OWNER, tools=None, read_only=False, connector=False, mode="auto", of=memory):
        desk = Desk(of.within(context), chosen_tools(tools, read_only=read_only, connector=connector))

        async def main():
            async with Client(server_of(desk), mode=mode) as client:
                return await do(client)

        try:
            return anyio.run(main)
        finally:
            assert desk.close()

    return run
