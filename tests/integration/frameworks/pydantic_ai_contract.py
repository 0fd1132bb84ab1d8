"""Pydantic AI: the capability leaves no trace in the history; the store answers as Pydantic AI's own one does."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter

from plainmind import Memory, SearchContext
from plainmind.base.errors import PlainmindError
from plainmind.guests.integrations.pydantic_ai import PlainmindConversations, PlainmindMemory, toolset

try:
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
except ImportError:  # before 2.66
    Conversation = None

ASKED = "Where does the billing gateway run?"
MODEL = "openai-chat:gpt-5"


async def converse(store, agent):
    """What a store answers, without its ids and times."""
    told = []
    for question in ("one", "two"):
        conversation = await store.load("c1") or Conversation(conversation_id="c1")
        result = await agent.run(question, conversation=conversation)
        told.append(len(await store.save(result, scope="anna")))
    told.append([len(record.branches) for record in await store.list_conversations(scope="anna")])
    told.append(await store.list_conversations(scope="ben"))
    told.append(await store.load("c1", scope="ben"))
    told.append([part.content for message in (await store.load("c1")).messages for part in message.parts])
    told.append(len((await store.load("c1", limit=1)).messages))
    fork = await store.fork("c1", at=2, new_conversation_id="c2")
    told.append(len(fork.messages))
    result = await agent.run("three", conversation=fork)
    told.append(len(await store.save(result)))
    stale = await store.load("c1")
    branched = await store.branch("c1", at=2, expected_revision=stale.revision)
    told.append(len(branched.messages))
    try:
        stale.messages.append(stale.messages[0])
        await store.save(stale)
    except ConversationConflict:
        told.append("conflict")
    await store.delete("c1")
    told.append(await store.load("c1"))
    told.append(len((await store.load("c2")).messages))
    await store.delete("c2")
    told.append(await store.list_conversations())
    return told


async def main():
    memory = Memory("~/notes", config={"sources": ["memory", "sessions"]})
    capability = PlainmindMemory(memory)
    agent = Agent(MODEL, capabilities=[capability])

    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    first = await agent.run(ASKED, conversation_id="talk:group:1")
    second = await agent.run("And what is the second thing?", message_history=first.all_messages())
    ticking.cancel()
    assert ticks > 3, ticks
    assert "recalled-memory" not in str(second.all_messages())
    (row,) = memory.sessions.list()
    assert row.key == "pydantic-ai:talk%3Agroup%3A1", row.key
    assert set(memory.conversations.scopes.now().values()) == {"private"}
    with memory.sessions.open(row.key) as session:
        assert len(list(session.messages())) == 4

    theirs = PlainmindMemory(memory, context=SearchContext("anna", "direct", "", channel="app"))
    assert theirs.mine.reminder(ASKED) == ""
    assert "Falkenstein" in capability.mine.reminder(ASKED)
    assert PlainmindMemory(memory, offers_tools=False).get_toolset() is None
    assert {"memory_search", "memory_append"} <= set(toolset(memory).tools)

    plain = Agent(MODEL)
    if Conversation is None:
        try:
            PlainmindConversations(memory)
        except PlainmindError as error:
            print("all as promised" if "2.66" in str(error) else error)
        return
    expected = await converse(InMemoryConversationStore(), plain)
    assert await converse(PlainmindConversations(memory), plain) == expected, expected

    # What a store holds another process finds, and memory too; who else asks sees none of it.
    store = PlainmindConversations(memory)
    result = await plain.run("my parrot is called Herodotus", conversation=Conversation(conversation_id="c9"))
    await store.save(result)
    again = PlainmindConversations(memory)
    as_json = ModelMessagesTypeAdapter.dump_json
    assert as_json((await again.load("c9")).messages) == as_json(result.all_messages())
    assert "Herodotus" in str(memory.search("what is the parrot called?").hits)
    other = PlainmindConversations(memory, context=SearchContext("anna", "direct", "", channel="app"))
    assert await other.load("c9") is None
    assert await other.list_conversations() == []
    memory.close()
    print("all as promised")


asyncio.run(main())
