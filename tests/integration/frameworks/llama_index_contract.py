"""LlamaIndex: each turn is kept once, the chat store has nothing that was recalled, people are kept apart."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import InsertMethod
from llama_index.core.memory import Memory as TheirMemory
from llama_index.llms.openai import OpenAI

from plainmind import Memory, SearchContext
from plainmind.guests.integrations.llama_index import PlainmindBlock, PlainmindMemory, tools

ASKED = "Where does the billing gateway run?"


async def main():
    notes = Memory("~/notes", config={"sources": ["memory", "sessions"]})
    memory = PlainmindMemory.over(notes, session_id="talk")
    agent = FunctionAgent(tools=tools(notes), llm=OpenAI(model="gpt-4.1"))
    for question in (ASKED, "And the second question, what is it?"):
        await agent.run(question, memory=memory)
    assert "Falkenstein" not in str(await memory.aget_all())
    with notes.sessions.open("llama-index:talk") as kept:
        texts = [message["content"][0]["text"] for message in kept.messages()]
    assert len(texts) == 4, texts
    assert not any("Falkenstein" in text for text in texts)

    # The block alone, in a memory of LlamaIndex.
    block = PlainmindBlock(notes)
    plain = TheirMemory.from_defaults(memory_blocks=[block], insert_method=InsertMethod.USER)
    await plain.aput(ChatMessage(role="user", content=ASKED))
    (message,) = await plain.aget()
    assert "<recalled-memory " in str(message.blocks[0])
    assert message.role == "user"

    anna = SearchContext("anna", "direct", "", channel="app")
    theirs = PlainmindMemory.over(notes, context=anna)
    await theirs.aput(ChatMessage(role="user", content=ASKED))
    assert "Falkenstein" not in str(await theirs.aget())
    search = next(tool for tool in tools(notes, context=anna) if tool.metadata.name == "memory_search")
    assert "Falkenstein" not in str(await search.acall(query="billing gateway"))
    notes.close()
    print("all as promised")


asyncio.run(main())
