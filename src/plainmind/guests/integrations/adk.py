"""Google ADK: a memory service over notes and what was said, for `load_memory`, `preload_memory` and callbacks.

runner = Runner(…, memory_service=PlainmindMemoryService("~/notes", owner="me"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import RLock
from plainmind.guests.integrations.framework import FrameworkMemory, FrameworkMissing, Given, Said, in_thread

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
    from google.genai import types
except ImportError as error:
    raise FrameworkMissing("Google ADK", "adk", error) from error


class PlainmindMemoryService(BaseMemoryService):
    """A `BaseMemoryService`. Each user of each app has a memory of their own, which nobody else sees.

    The user who is called `owner` is the owner of the notes: they see everything, and what they say is private.
    """

    def __init__(
        self, memory: Given = None, *, owner: str | None = None, max_results: int | None = None
    ) -> None:
        self.mine = FrameworkMemory(memory, "adk")
        self._owner = owner
        self._max_results = max_results
        self._guard = RLock()
        self._people: dict[tuple[str, str], FrameworkMemory] = {}

    async def add_session_to_memory(self, session: Session) -> None:
        """Keep what was said in a session; what is kept already, once."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what was said in some events; what tools gave is not speech."""
        del custom_metadata
        said = [
            Said("user" if event.author == "user" else "assistant", text, event.id)
            for event in events
            if (text := _text_of(event.content))
        ]
        await in_thread(self._of(app_name, user_id).keep, f"{app_name}-{session_id or 'events'}", said)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Write notes; one with an id is written once."""
        del custom_metadata
        mine = self._of(app_name, user_id).mine
        for one in memories:
            text = _text_of(one.content)
            if text:
                await in_thread(mine.append, text, note_id=one.id)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """What answers a question, best first, each piece between its marks; its id is where it stands."""
        found = await in_thread(self._of(app_name, user_id).found, query, max_results=self._max_results)
        return SearchMemoryResponse(
            memories=[
                MemoryEntry(
                    content=types.Content(role="user", parts=[types.Part(text=fenced)]),
                    id=f"{hit.path}#L{hit.start_line}-L{hit.end_line}",
                    author="memory",
                    custom_metadata={"score": hit.score, "path": hit.path},
                )
                for hit, fenced in found
            ]
        )

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Remove the lines of a note for good, by the id that a search gave."""
        if not memory_id:
            raise PlainmindError(
                "which memory is to be deleted is not said", hint="give the id that `search_memory` gave"
            )
        await in_thread(self._of(app_name, user_id).mine.forget, memory_id)

    async def close(self) -> None:
        """Close the memory if it was opened here."""
        await in_thread(self.mine.close)

    def _of(self, app_name: str, user_id: str) -> FrameworkMemory:
        """The memory of one user of one app."""
        with self._guard:
            whose = app_name, user_id
            if whose not in self._people:
                is_owner = self._owner is not None and user_id == self._owner
                self._people[whose] = self.mine if is_owner else self.mine.of_person(user_id, app_name)
            return self._people[whose]


def _text_of(content: types.Content | None) -> str:
    parts = (content.parts or ()) if content is not None else ()
    return "\n".join(part.text for part in parts if part.text and not part.thought)
