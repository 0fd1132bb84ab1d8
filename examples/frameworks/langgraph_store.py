"""A graph of LangGraph whose long-term store is a folder of Markdown: python langgraph_store.py "I take tea."."""

import sys
from dataclasses import dataclass

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

from plainmind.guests.integrations.langgraph import PlainmindStore


@dataclass
class State:
    said: str
    known: tuple[str, ...] = ()


def look_up_and_keep(state: State, runtime: Runtime) -> dict[str, tuple[str, ...]]:
    """Find what is known about it, then keep it: the file is called `memory/store/said/anna/<key>.md`."""
    found = runtime.store.search(("said", "anna"), query=state.said, limit=3)
    runtime.store.put(("said", "anna"), f"{len(state.said)}-{hash(state.said) % 1000}", {"text": state.said})
    return {"known": tuple(item.value["text"] for item in found)}


with PlainmindStore("~/notes") as store:
    graph = (
        StateGraph(State).add_node(look_up_and_keep).add_edge(START, "look_up_and_keep").compile(store=store)
    )
    print(graph.invoke({"said": sys.argv[1]})["known"])
