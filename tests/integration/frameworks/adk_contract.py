"""Google ADK: sessions are added once however often, users are kept apart, what is found can be deleted."""

import asyncio

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import InMemorySessionService
from google.genai import types

from plainmind import Memory
from plainmind.guests.integrations.adk import PlainmindMemoryService


def said(author, text):
    return Event(author=author, content=types.Content(role="user", parts=[types.Part(text=text)]))


def words(found):
    return "\n".join(part.text for one in found.memories for part in one.content.parts)


async def main():
    notes = Memory("~/notes", config={"sources": ["memory", "sessions"]})
    service = PlainmindMemoryService(notes, owner="me")
    sessions = InMemorySessionService()
    session = await sessions.create_session(app_name="shop", user_id="anna")
    await sessions.append_event(session, said("user", "My parrot is called Herodotus."))
    await sessions.append_event(session, said("assistant", "A fine name for a parrot."))
    for _ in range(3):
        await service.add_session_to_memory(session)
    (row,) = notes.sessions.list()
    with notes.sessions.open(row.key) as kept:
        assert len(list(kept.messages())) == 2

    question = "what is the parrot called?"
    found = await service.search_memory(app_name="shop", user_id="anna", query=question)
    assert "Herodotus" in words(found)
    assert all(one.content.parts[0].text.startswith("<recalled-memory ") for one in found.memories)
    assert "Herodotus" in words(await service.search_memory(app_name="shop", user_id="me", query=question))
    for app, user in (("shop", "ben"), ("other", "anna")):
        assert "Herodotus" not in words(
            await service.search_memory(app_name=app, user_id=user, query=question)
        )
        gateway = await service.search_memory(app_name=app, user_id=user, query="billing gateway")
        assert "Falkenstein" not in words(gateway)

    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="Anna is allergic to walnuts.")]))
    await service.add_memory(app_name="shop", user_id="anna", memories=[entry])
    (note, *_) = (
        await service.search_memory(app_name="shop", user_id="anna", query="allergic to walnuts")
    ).memories
    assert "walnuts" in note.content.parts[0].text
    await service.delete_memory(app_name="shop", user_id="anna", memory_id=note.id)
    left = await service.search_memory(app_name="shop", user_id="anna", query="allergic to walnuts")
    assert "walnuts" not in words(left)
    notes.close()
    print("all as promised")


asyncio.run(main())
