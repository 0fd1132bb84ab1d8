"""AutoGen: what is recalled is given once, what was said is kept once, with the last answer, for each person apart."""

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import MemoryContent
from autogen_ext.models.openai import OpenAIChatCompletionClient

from plainmind import Memory, SearchContext
from plainmind.base.errors import PlainmindError
from plainmind.guests.integrations.autogen import PlainmindMemory

ASKED = "Where does the billing gateway run?"


async def main():
    notes = Memory("~/notes", config={"sources": ["memory", "sessions"]})
    mine = PlainmindMemory(notes, session="talk")
    agent = AssistantAgent(
        "assistant", model_client=OpenAIChatCompletionClient(model="gpt-4.1"), memory=[mine]
    )
    for question in (ASKED, "And the second question, what is it?", ASKED):
        await agent.run(task=question)
    context = await agent.model_context.get_messages()
    assert sum("Falkenstein" in str(message.content) for message in context) == 1
    await mine.close()
    with notes.sessions.open("autogen:talk") as kept:
        texts = [message["content"][0]["text"] for message in kept.messages()]
    assert len(texts) == 6, texts
    assert not any("Falkenstein" in text for text in texts)

    mine = PlainmindMemory(notes)
    found = await mine.query(ASKED)
    assert all(one.content.startswith("<recalled-memory ") for one in found.results)
    await mine.add(MemoryContent(content="Ben is allergic to walnuts.", mime_type="text/plain"))
    assert "walnuts" in str(await mine.query("who is allergic to walnuts?"))
    anna = PlainmindMemory(notes, context=SearchContext("anna", "direct", "", channel="app"))
    assert "walnuts" not in str(await anna.query("who is allergic to walnuts?"))
    assert "Falkenstein" not in str(await anna.query(ASKED))
    try:
        await mine.clear()
    except PlainmindError as error:
        print("all as promised" if error.hint else error)
    notes.close()


asyncio.run(main())
