"""An agent of the OpenAI Agents SDK that remembers: python openai_agents.py "Where does the billing gateway run?"."""

import sys

from agents import Agent, RunConfig, Runner

from plainmind.guests.integrations.agents_sdk import AgentsMemory

memory = AgentsMemory("~/notes")
agent = Agent("Assistant", tools=memory.tools(), model="gpt-5")

result = Runner.run_sync(
    agent,
    sys.argv[1],
    session=memory.session(),  # a new one; memory.session("support-7") goes on with one that has a name
    run_config=RunConfig(call_model_input_filter=memory.remind),
)
print(result.final_output)
memory.close()
