"""smolagents: every tool can be called by name and in order, and each person has their own."""

from plainmind import Memory, SearchContext
from plainmind.guests.integrations.smolagents import tools

notes = Memory("~/notes", config={"sources": ["memory", "sessions"]})
by_name = {tool.name: tool for tool in tools(notes)}
assert by_name["memory_search"](query="billing gateway").count("<recalled-memory ") == 1
assert "Falkenstein" in by_name["memory_search"]("billing gateway")
assert "Falkenstein" in by_name["memory_get"](**{"path": "memory/2026-11-02.md", "from": 1, "lines": None})
assert "2026" in by_name["memory_append"](text="Ben is allergic to walnuts.")
theirs = {
    tool.name: tool for tool in tools(notes, context=SearchContext("anna", "direct", "", channel="app"))
}
assert "walnuts" in by_name["memory_search"](query="allergic to walnuts")
assert "walnuts." not in theirs["memory_search"](query="allergic to whom")
notes.close()
print("all as promised")
