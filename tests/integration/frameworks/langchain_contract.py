"""LangChain: middleware, tools, retriever and chat history keep what they promise, also asynchronously."""

import asyncio

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from plainmind import Memory, SearchContext
from plainmind.base.errors import ScopeDenied
from plainmind.guests.integrations.langchain import (
    PlainmindChatHistory,
    PlainmindMiddleware,
    PlainmindRetriever,
    tools,
)

ASKED = "Where does the billing gateway run?"


def texts(folder, key):
    with folder.sessions.open(key) as session:
        return [message["content"][0]["text"] for message in session.messages()]


def main():
    memory = Memory("~/notes", config={"sources": ["memory", "sessions"]})

    # A thread with a checkpointer, asynchronously: each turn is kept once, in a conversation called like the thread.
    middleware = PlainmindMiddleware(memory)
    agent = create_agent(ChatOpenAI(model="gpt-5"), middleware=[middleware], checkpointer=InMemorySaver())

    async def talk():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        ticking = asyncio.create_task(tick())
        thread = {"configurable": {"thread_id": "a:group:7"}}
        for question in (ASKED, "And the second question, where is it?"):
            state = await agent.ainvoke({"messages": [("user", question)]}, thread)
        ticking.cancel()
        assert ticks > 3, ticks
        return state

    state = asyncio.run(talk())
    # What was recalled is not in the state of the agent.
    assert not any("recalled-memory" in str(message.content) for message in state["messages"])
    kept = texts(memory, "langchain:a%3Agroup%3A7")
    assert kept[0] == ASKED and len(kept) == 4, kept
    # A thread that is called like a group is no group's.
    assert memory.conversations.scopes.now().popitem()[1] == "private"

    # Scopes: another person sees nothing of the owner's, neither by recall nor by tools.
    anna = SearchContext("anna", "direct", "", channel="app")
    theirs = PlainmindMiddleware(memory, context=anna)
    assert theirs.mine.reminder(ASKED) == ""
    assert "Falkenstein" not in theirs.mine.call("memory_search", {"query": "billing gateway"})
    assert "Falkenstein" in middleware.mine.call("memory_search", {"query": "billing gateway"})
    create_agent(ChatOpenAI(model="gpt-5"), middleware=[theirs]).invoke(
        {"messages": [("user", "I like oat milk best.")]}
    )
    assert "oat milk" in theirs.mine.call("memory_search", {"query": "who likes oat milk?"})
    ben = PlainmindMiddleware(memory, context=SearchContext("ben", "direct", "", channel="app"))
    assert "oat milk best" not in ben.mine.call("memory_search", {"query": "who likes oat milk?"})
    try:
        PlainmindMiddleware(memory, context=SearchContext("", "direct", ""))
    except ScopeDenied:
        pass
    else:
        raise AssertionError("nobody knows who asks, and it was let in")

    # Without recall, without keeping, without tools.
    quiet = PlainmindMiddleware(memory, recalls=False, keeps=False, offers_tools=False, session="quiet")
    assert list(quiet.tools) == []
    create_agent(ChatOpenAI(model="gpt-5"), middleware=[quiet]).invoke({"messages": [("user", ASKED)]})
    assert not any("quiet" in row.key for row in memory.sessions.list())

    # Tools by themselves, in both ways; a mistake of the model is an answer.
    by_name = {tool.name: tool for tool in tools(memory)}
    assert {"memory_search", "memory_append"} <= by_name.keys()
    assert "<recalled-memory" in by_name["memory_search"].invoke({"query": ASKED})
    assert "Falkenstein" in asyncio.run(by_name["memory_search"].ainvoke({"query": ASKED, "path": "memory"}))
    assert "memory/none.md" in by_name["memory_get"].invoke({"path": "memory/none.md"})

    # A retriever's documents are fenced unless they are for people.
    found = PlainmindRetriever(memory).invoke(ASKED)
    assert all(one.page_content.startswith("<recalled-memory ") for one in found)
    (note,) = (one for one in found if "Falkenstein" in one.page_content)
    assert note.metadata["source"] == "memory/2026-11-02.md"
    assert note.metadata["start_line"] >= 1
    (bare, *_) = asyncio.run(PlainmindRetriever(memory, fenced=False, max_results=1).ainvoke(ASKED))
    assert "recalled-memory" not in bare.page_content

    # A history gives back what it was given, also in another object, and begins anew when it is cleared.
    messages = [
        HumanMessage("what is six times seven?", id="1"),
        AIMessage("", tool_calls=[{"id": "c", "name": "multiply", "args": {"a": 6}}]),
        ToolMessage("42", tool_call_id="c"),
        AIMessage([{"type": "text", "text": "It is 42."}], id="4"),
    ]
    PlainmindChatHistory("sums", memory).add_messages(messages)
    assert PlainmindChatHistory("sums", memory).messages == messages
    assert asyncio.run(PlainmindChatHistory("sums", memory).aget_messages()) == messages
    chain = RunnableWithMessageHistory(
        ChatOpenAI(model="gpt-5"), lambda session_id: PlainmindChatHistory(session_id, memory)
    )
    chain.invoke([HumanMessage("and times two?")], {"configurable": {"session_id": "sums"}})
    assert len(PlainmindChatHistory("sums", memory).messages) == 6
    PlainmindChatHistory("sums", memory).clear()
    assert PlainmindChatHistory("sums", memory).messages == []
    assert "six times seven" in str(memory.search("six times seven").hits)
    memory.close()
    print("all as promised")


main()
