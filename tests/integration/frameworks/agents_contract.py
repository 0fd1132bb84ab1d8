"""The OpenAI Agents SDK: what is recalled reaches the model and no session; tools and sessions are of who asks."""

import asyncio

from agents import Agent, RunConfig, Runner

from plainmind import Memory, SearchContext
from plainmind.guests.integrations.agents_sdk import AgentsMemory

ASKED = "Where does the billing gateway run?"


async def main():
    memory = Memory("~/notes", config={"sources": ["memory", "sessions"]})
    mine = AgentsMemory(memory)
    agent = Agent("a", tools=mine.tools(), model="gpt-5")
    config = RunConfig(call_model_input_filter=mine.remind)

    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await Runner.run(agent, ASKED, session=mine.session("talk"), run_config=config)
    await Runner.run(agent, "And the second thing?", session=mine.session("talk"), run_config=config)
    ticking.cancel()
    assert ticks > 3, ticks
    items = await mine.session("talk").get_items()
    assert len(items) == 4, items
    assert "recalled-memory" not in str(items)

    theirs = AgentsMemory(memory, context=SearchContext("anna", "direct", "", channel="app"))
    assert theirs.mine.reminder(ASKED) == ""
    assert await theirs.session("talk").get_items() == []
    await theirs.session("talk").add_items([{"role": "user", "content": "Anna's parrot is called Herodotus"}])
    assert "Herodotus" in theirs.mine.call("memory_search", {"query": "what is the parrot called?"})
    ben = AgentsMemory(memory, context=SearchContext("ben", "direct", "", channel="app"))
    assert "Herodotus" not in ben.mine.call("memory_search", {"query": "what is the parrot called?"})
    memory.close()
    print("all as promised")


asyncio.run(main())
