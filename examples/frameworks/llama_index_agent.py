"""An agent of LlamaIndex that remembers: python llama_index_agent.py "Where does the billing gateway run?"."""

import asyncio
import sys

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI

from plainmind.guests.integrations.llama_index import PlainmindMemory, tools


async def main() -> None:
    """Ask one question."""
    memory = PlainmindMemory.over("~/notes")
    agent = FunctionAgent(tools=tools("~/notes"), llm=OpenAI(model="gpt-4.1"))
    print(await agent.run(sys.argv[1], memory=memory))
    memory.close()


asyncio.run(main())
