"""Strands: an agent calls the tools directly, and each person has their own."""

from strands import Agent
from strands.models.openai import OpenAIModel

from plainmind import Memory, SearchContext
from plainmind.guests.integrations.strands import tools

notes = Memory("~/notes", config={"sources": ["memory", "sessions"]})
model = OpenAIModel(model_id="gpt-5")
agent = Agent(model=model, tools=tools(notes), callback_handler=None)
found = str(agent.tool.memory_search(query="billing gateway"))
assert "Falkenstein" in found
assert "<recalled-memory " in found
assert "success" in str(agent.tool.memory_append(text="Ben is allergic to walnuts."))
anna = SearchContext("anna", "direct", "", channel="app")
theirs = Agent(model=model, tools=tools(notes, context=anna), callback_handler=None)
assert "Falkenstein" not in str(theirs.tool.memory_search(query="billing gateway"))
assert "walnuts." not in str(theirs.tool.memory_search(query="allergic to whom"))
notes.close()
print("all as promised")
