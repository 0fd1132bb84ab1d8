"""An agent of Strands with the tools of the memory: python strands_tools.py "Where does the gateway run?"."""

import sys

from strands import Agent
from strands.models.openai import OpenAIModel

from plainmind.guests.integrations.strands import tools

agent = Agent(model=OpenAIModel(model_id="gpt-5"), tools=tools("~/notes"), callback_handler=None)
print(agent(sys.argv[1]))
