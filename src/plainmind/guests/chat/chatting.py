"""Conversations with a model that has this memory: opened as the settings say, each within its own scope."""

from __future__ import annotations

import os
from collections.abc import Mapping

from plainmind.agent.scope import OWNER, SearchContext
from plainmind.base.errors import PlainmindError
from plainmind.guests.chat.access import chat_model_of
from plainmind.guests.chat.config import ChatConfig, FlushConfig
from plainmind.guests.chat.conversation import PROMPT, Conversation, ConversationSettings
from plainmind.guests.chat.flush import FlushSettings
from plainmind.guests.chat.flush_prompts import REQUEST, SYSTEM
from plainmind.guests.chat.room import RoomSettings
from plainmind.guests.entries.access import tools_within
from plainmind.guests.entries.config import EntryConfig
from plainmind.guests.entries.place import require_entries
from plainmind.memory.memory import Memory
from plainmind.notes.scopes import group_in_key, person_in_key
from plainmind.sessions.entries import Entry
from plainmind.sessions.store import Session, SessionStore
from plainmind.sessions.usage import place_of_count, with_place_of_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.config.settings import Settings
    from plainmind.guests.chat.models.endpoint import EndpointModel

_MANY = frozenset({"group", "channel"})


def usual_key(settings: Settings) -> str:
    """The key of the conversation that is meant when none is named."""
    return f"agent:{settings.agent_id}:main"


def open_conversation(
    memory: Memory, key: str | None = None, *, model: str | None = None, is_new: bool = False
) -> Conversation:
    """Continue the conversation of a key, or begin it; with `is_new` the one before goes to the archive."""
    settings = memory.settings
    chosen = chat_model_of(settings, memory.environ, model=model)  # before anything is begun or put away
    if settings.section(EntryConfig).enabled:
        require_entries(settings)
    key = key or usual_key(settings)
    store = memory.sessions
    if is_new and any(row.key == key for row in store.list()):
        store.archive(key)
    return _with_model(memory, store.open_or_create(key, chatType=_kind_of_new(key)), chosen)


def converse(memory: Memory, session: Session, *, model: str | None = None) -> Conversation:
    """A conversation in a session, with the model of the settings. Raises PlainmindError for an archive."""
    if session.key is None:
        raise PlainmindError(
            f"{os.path.basename(session.path)} is an archive, and nothing is added to one",
            hint="`plainmind sessions list` names the conversations that go on",
        )
    chosen = chat_model_of(memory.settings, memory.environ, model=model)
    return _with_model(memory, session, chosen)


def _with_model(memory: Memory, session: Session, chosen: EndpointModel) -> Conversation:
    settings = memory.settings
    entry = _counted_here(memory.sessions, session, chosen.context_window)
    context = context_of_session(session.key or session.id, entry)
    tools, hooks = tools_within(memory, context)
    return Conversation(
        memory.sessions,
        session,
        memory.within(context),
        chosen,
        conversation_settings(settings, chosen.context_window),
        tools=tools,
        hooks=hooks,
        today=lambda: memory.now().date(),
        can_write=lambda: os.access(memory.workspace, os.W_OK | os.X_OK),
    )


def _counted_here(store: SessionStore, session: Session, context_window: int) -> Entry:
    """Keep the counters of a session from now on, also of one that another program began or that was found again.

    Its own counters stay, and what is added is counted; without any, everything is.
    """
    entry = session.entry()
    fields: dict[str, Any] = {}
    if place_of_count(entry) is None:
        fields |= with_place_of_count({}, session.transcript.end() if "totalTokens" in entry else 0)
    if entry.get("contextTokens") != context_window:
        fields["contextTokens"] = context_window
    return store.update(session.id, **fields) if fields else entry


def context_of_session(key: str, entry: Mapping[str, Any]) -> SearchContext:
    """Who reads along in a session: a group, another person, or nobody but the owner."""
    kind, group = entry.get("chatType"), entry.get("groupId") or group_in_key(key)
    channel = str(entry.get("channel") or "")
    if group or kind in _MANY:
        return SearchContext("", str(kind if kind in _MANY else "group"), key, channel, str(group or ""))
    # Its transcript has the same scope: see `scope_of_session`.
    return SearchContext(person_in_key(key) or OWNER, "direct", key, channel)


def conversation_settings(settings: Settings, context_window: int) -> ConversationSettings:
    """Translate the settings of a conversation."""
    flush, chat = settings.section(FlushConfig), settings.section(ChatConfig)
    room = RoomSettings(
        context_window=context_window,
        reserve_tokens_floor=settings.reserve_tokens_floor,
        soft_threshold_tokens=flush.soft_threshold_tokens,
        flush_enabled=flush.enabled,
    )
    return ConversationSettings(
        flush=FlushSettings(room, flush.prompt or REQUEST, flush.system_prompt or SYSTEM),
        system_prompt=chat.system_prompt or PROMPT,
        keep_messages=chat.keep_messages,
        max_tool_rounds=chat.max_tool_rounds,
    )


def _kind_of_new(key: str) -> str:
    return "group" if group_in_key(key) else "direct"
