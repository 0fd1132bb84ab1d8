"""An agent of Microsoft's framework that remembers: python agent_framework_agent.py "Where does the gateway run?"."""

import asyncio
import sys

from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient

from plainmind.guests.integrations.agent_framework import PlainmindProvider


async def main() -> None:
    """Ask one question."""
    memory = PlainmindProvider("~/notes")
    agent = Agent(OpenAIChatClient(model="gpt-5"), context_providers=[memory])
    print(await agent.run(sys.argv[1], session=agent.create_session()))
    memory.close()


asyncio.run(main())
