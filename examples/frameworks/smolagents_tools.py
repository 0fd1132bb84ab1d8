"""An agent of smolagents with the tools of the memory: python smolagents_tools.py "Where does the gateway run?"."""

import sys

from smolagents import OpenAIModel, ToolCallingAgent

from plainmind.guests.integrations.smolagents import tools

agent = ToolCallingAgent(tools=tools("~/notes"), model=OpenAIModel("gpt-5"), verbosity_level=0)
print(agent.run(sys.argv[1]))
