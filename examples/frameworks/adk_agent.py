"""An agent of Google ADK that remembers: python adk_agent.py "Where does the billing gateway run?"."""

import asyncio
import sys

from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory, preload_memory
from google.genai import types

from plainmind.guests.integrations.adk import PlainmindMemoryService


async def main() -> None:
    """Ask one question, then keep the session."""
    memory = PlainmindMemoryService("~/notes", owner="me")
    sessions = InMemorySessionService()
    agent = LlmAgent(name="assistant", model="gemini-2.5-flash", tools=[preload_memory, load_memory])
    runner = Runner(app_name="notes", agent=agent, session_service=sessions, memory_service=memory)
    session = await sessions.create_session(app_name="notes", user_id="me")
    question = types.Content(role="user", parts=[types.Part(text=sys.argv[1])])
    async for event in runner.run_async(user_id="me", session_id=session.id, new_message=question):
        if event.is_final_response() and event.content:
            print(event.content.parts[0].text)
    kept = await sessions.get_session(app_name="notes", user_id="me", session_id=session.id)
    await memory.add_session_to_memory(kept)
    await memory.close()


asyncio.run(main())
