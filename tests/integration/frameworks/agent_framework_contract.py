"""Microsoft Agent Framework: runs of a session are kept once each, and what is recalled is in no history."""

import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient

from plainmind import Memory, SearchContext
from plainmind.guests.integrations.agent_framework import PlainmindProvider

ASKED = "Where does the billing gateway run?"


async def main():
    notes = Memory("~/notes", config={"sources": ["memory", "sessions"]})
    provider = PlainmindProvider(notes)
    agent = Agent(OpenAIChatClient(model="gpt-5"), context_providers=[provider])
    session = agent.create_session()
    for question in (ASKED, "And the second question, what is it?"):
        await agent.run(question, session=session)
    (row,) = notes.sessions.list()
    with notes.sessions.open(row.key) as kept:
        texts = [message["content"][0]["text"] for message in kept.messages()]
    assert len(texts) == 4, texts
    assert not any("Falkenstein" in text for text in texts)

    anna = PlainmindProvider(notes, context=SearchContext("anna", "direct", "", channel="app"))
    theirs = Agent(OpenAIChatClient(model="gpt-5"), context_providers=[anna])
    await theirs.run("My parrot is called Herodotus.", session=theirs.create_session())
    question = {"query": "what is the parrot called?"}
    assert "Herodotus" in anna.mine.call("memory_search", question)
    ben = PlainmindProvider(notes, context=SearchContext("ben", "direct", "", channel="app"))
    assert "Herodotus" not in ben.mine.call("memory_search", question)
    assert anna.mine.reminder(ASKED) == ""
    notes.close()
    print("all as promised")


asyncio.run(main())
