"""An agent of AutoGen that remembers: python autogen_agent.py "Where does the billing gateway run?"."""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

from plainmind.guests.integrations.autogen import PlainmindMemory, tools


async def main() -> None:
    """Ask one question."""
    memory = PlainmindMemory("~/notes")
    model = OpenAIChatCompletionClient(model="gpt-4.1")
    agent = AssistantAgent(
        "assistant", model_client=model, memory=[memory], tools=tools("~/notes"), reflect_on_tool_use=True
    )
    result = await agent.run(task=sys.argv[1])
    print(result.messages[-1].content)
    await memory.close()


asyncio.run(main())
