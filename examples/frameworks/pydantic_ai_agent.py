"""An agent of Pydantic AI that remembers: python pydantic_ai_agent.py "Where does the billing gateway run?"."""

import sys

from pydantic_ai import Agent

from plainmind.guests.integrations.pydantic_ai import PlainmindMemory

memory = PlainmindMemory("~/notes")
agent = Agent("openai-chat:gpt-5", capabilities=[memory])

print(agent.run_sync(sys.argv[1]).output)
memory.close()
