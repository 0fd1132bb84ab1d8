"""A memory, a session and a scripted model: everything of a conversation but the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.scripted_chat_model import KEY, Script, ScriptedModel, scripted_model

from plainmind.agent.scope import AgentMemory
from plainmind.guests.chat.access import context_of_session
from plainmind.guests.chat.context import RoomSettings
from plainmind.guests.chat.conversation import Conversation, ConversationSettings, Listener
from plainmind.guests.chat.endpoint import EndpointModel, dialect_of
from plainmind.guests.chat.flush import Flush, Flushed, FlushSettings
from plainmind.guests.chat.model import ChatModelSettings, ToolCall
from plainmind.guests.net.failures import RetryPolicy
from plainmind.memory.memory import Memory
from plainmind.sessions.store import Session, SessionStore

WINDOW = 100_000
ROOM = RoomSettings(context_window=WINDOW)
QUICK = RetryPolicy(first_pause_s=0.001, longest_pause_s=0.001)
MAIN = "agent:main:main"


class Recorded(Listener):
    """Takes down what happens."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.tools: list[tuple[str, bool]] = []
        self.notices: list[str] = []
        self.is_stopped = False

    def text(self, piece: str) -> None:
        self.pieces.append(piece)

    def tool(self, call: ToolCall, text: str, *, is_error: bool) -> None:
        self.tools.append((call.name, is_error))

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def stopped(self) -> bool:
        return self.is_stopped


@dataclass
class Stage:
    """What a test of an agent's side looks at."""

    folder: Path
    memory: Memory
    server: ScriptedModel
    model: EndpointModel

    @property
    def notes(self) -> Path:
        return self.folder / "notes"

    @property
    def store(self) -> SessionStore:
        return self.memory.sessions

    @property
    def today(self) -> Path:
        return self.notes / "memory" / f"{self.memory.now().date().isoformat()}.md"

    def session(self, key: str = MAIN, said: int = 2, **fields: object) -> Session:
        """A session in which something was said."""
        session = self.store.open_or_create(key, **fields)
        for number in range(said):
            session.append({"role": "user", "content": f"Turn {number}: which wood for the hull?"})
            session.append(
                {"role": "assistant", "content": [{"type": "text", "text": f"Larch, {number} times."}]}
            )
        return session

    def within(self, session: Session) -> AgentMemory:
        return self.memory.within(context_of_session(session.key or "", session.entry()))

    def flush(self, session: Session, *, memory: AgentMemory | None = None, by_hand: bool = False) -> Flushed:
        flush = Flush(self.store, session, memory or self.within(session), self.model, FlushSettings(ROOM))
        return flush.run(by_hand=by_hand)

    def conversation(self, session: Session, **settings: Any) -> Conversation:
        room, can_write = settings.pop("room", ROOM), settings.pop("can_write", lambda: True)
        chosen = ConversationSettings(FlushSettings(room), **settings)
        return Conversation(
            self.store, session, self.within(session), self.model, chosen, can_write=can_write
        )

    def files(self) -> dict[str, bytes]:
        """Every file of the workspace, by its name."""
        return {
            str(path.relative_to(self.notes)): path.read_bytes()
            for path in self.notes.rglob("*")
            if path.is_file()
        }


@contextmanager
def staged(
    folder: Path, script: Script, config: Mapping[str, Any] | None = None, *, dialect: str = "openai"
) -> Iterator[Stage]:
    (folder / "notes" / "memory").mkdir(parents=True, exist_ok=True)
    (folder / "notes" / "MEMORY.md").write_text("# Memory\n\n- The boat is called Ida.\n")
    settings = {"provider": "none", **(config or {})}
    with (
        scripted_model(script) as server,
        Memory(folder / "notes", home=folder / "home", config=settings) as memory,
    ):
        url = server.openai_url if dialect == "openai" else server.anthropic_url
        given = ChatModelSettings(
            "larch-1", base_url=url, api_key=KEY, allow_private=True, context_window=WINDOW, silence_s=20
        )
        model = EndpointModel(dialect_of(dialect), given, policy=QUICK)
        try:
            yield Stage(folder, memory, server, model)
        finally:
            model.close()
