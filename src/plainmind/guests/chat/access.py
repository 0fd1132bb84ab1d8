"""Conversations with a model that has this memory: opened as the settings say, each within its own scope."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from plainmind.agent.recalls import Asker
from plainmind.agent.scope import OWNER, SearchContext
from plainmind.base.errors import ConfigError, PlainmindError
from plainmind.base.lazy import find_by_name
from plainmind.config.load import resolve_secret
from plainmind.config.settings import Settings
from plainmind.guests.chat.config import ChatConfig, FlushConfig
from plainmind.guests.chat.context import RoomSettings
from plainmind.guests.chat.conversation import PROMPT, Conversation, ConversationSettings
from plainmind.guests.chat.endpoint import EndpointModel, create_chat_model, dialect_of
from plainmind.guests.chat.flush import REQUEST, SYSTEM, FlushSettings
from plainmind.guests.chat.model import ChatModelSettings
from plainmind.guests.net.address import is_same_place, split_base_url
from plainmind.memory.memory import Memory
from plainmind.notes.scopes import group_in_key, is_key_of_direct_chat, person_in_key
from plainmind.sessions.entries import Entry, place_of_count, with_place_of_count
from plainmind.sessions.store import Session, SessionStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def chat_model_of(
    settings: Settings, environ: Mapping[str, str], *, model: str | None = None
) -> EndpointModel:
    """Make the chat model of the settings, or another one of the same endpoint. Raises ConfigError."""
    chat = settings.section(ChatConfig)
    name = model or chat.model
    if not name:
        raise ConfigError(
            "no chat model is chosen",
            key="chat.model",
            hint="`plainmind config set chat.model NAME`, or --model NAME; `chat.provider` says whose it is",
        )
    base_url = _base_url(settings)
    key = next(_keys(settings, base_url, environ), None)
    dialect = dialect_of(chat.provider)
    if (
        key is None
        and not chat.headers
        and is_same_place(base_url, None, dialect.default_base_url, settings="chat")
    ):
        raise ConfigError(
            f"there is no API key for {chat.provider}",
            key="chat.apiKey",
            hint=f"set {dialect.key_variable} or `chat.apiKey`; a server of your own is named by `chat.baseUrl`",
        )
    return create_chat_model(
        chat.provider,
        ChatModelSettings(
            model=name,
            base_url=base_url,
            api_key=key,
            headers=chat.headers,
            proxy=chat.proxy,
            context_window=chat.context_window,
            max_output_tokens=chat.max_output_tokens,
            silence_s=chat.timeout_ms / 1000,
            # Nobody but the user can set an address: a project file may not.
            allow_private=base_url is not None,
        ),
    )


def chat_destination(settings: Settings) -> dict[str, str | None] | None:
    """Whom `chat` and `flush` ask, and at which host; None when no model is chosen. Facts for `status`."""
    chat = settings.section(ChatConfig)
    if not chat.model:
        return None
    facts: dict[str, str | None] = {"provider": chat.provider, "model": chat.model}
    try:
        base_url = _base_url(settings) or dialect_of(chat.provider).default_base_url
        origin, _ = split_base_url(base_url, settings="chat")
    except ConfigError as error:
        return facts | {"to": None, "problem": str(error)}
    return facts | {"to": origin.host}


def _base_url(settings: Settings) -> str | None:
    chat = settings.section(ChatConfig)
    own = settings.provider_access.get(chat.provider)
    return chat.base_url or (own.base_url if own else None)


def _keys(settings: Settings, base_url: str | None, environ: Mapping[str, str]) -> Iterator[str]:
    """The keys that may be sent to this address, best first. A key belongs to the address that it was given for."""
    chat = settings.section(ChatConfig)
    own = settings.provider_access.get(chat.provider)
    dialect = dialect_of(chat.provider)
    written = [chat.api_key]
    if own is not None and is_same_place(base_url, own.base_url, dialect.default_base_url, settings="chat"):
        written.append(own.api_key)
    for secret in written:
        key = resolve_secret(secret, environ)
        if key is not None and key.strip():
            yield key
    if (
        is_same_place(base_url, None, dialect.default_base_url, settings="chat")
        and environ.get(dialect.key_variable, "").strip()
    ):
        yield environ[dialect.key_variable]


_MANY = frozenset({"group", "channel"})
# Of the entry memory, which chat does not import.
_REQUIRE_IF_ON = "plainmind.guests.entries.access:require_if_on"
_TOOLS_WITHIN = "plainmind.guests.entries.access:tools_within"


def usual_key(settings: Settings) -> str:
    """The key of the conversation that is meant when none is named."""
    return f"agent:{settings.agent_id}:main"


def open_conversation(
    memory: Memory, key: str | None = None, *, model: str | None = None, is_new: bool = False
) -> Conversation:
    """Continue the conversation of a key, or begin it; with `is_new` the one before goes to the archive."""
    settings = memory.settings
    chosen = chat_model_of(settings, memory.environ, model=model)  # before anything is begun or put away
    find_by_name(_REQUIRE_IF_ON)(settings)
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
    asker = Asker("chat", chosen.name, session.key or session.id)
    tools, hooks = find_by_name(_TOOLS_WITHIN)(memory, context, asker)
    return Conversation(
        memory.sessions,
        session,
        memory.within(context, asker=asker),
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
    kind, group = str(entry.get("chatType") or "direct"), entry.get("groupId") or group_in_key(key)
    channel = str(entry.get("channel") or "")
    if group or kind in _MANY:
        return SearchContext("", kind if kind in _MANY else "group", key, channel, str(group or ""))
    # Its transcript has the same scope: see `scope_of_session`. A key that names somebody, or forgets to, is not ours.
    person = person_in_key(key) or "" if is_key_of_direct_chat(key) else OWNER
    return SearchContext(person, kind, key, channel)


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
