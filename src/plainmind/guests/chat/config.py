"""The settings of the chat model and of the flush before a compaction, and what `status` tells of both."""

# ruff: noqa: FBT003 -- the first argument of `setting` is the default, often True or False

from __future__ import annotations

import os
from collections.abc import Mapping

from plainmind.base.value import value
from plainmind.config.kinds import (
    ALLOWED,
    SENDS,
    SPEAKS,
    SPENDS,
    Flag,
    OneOf,
    Text,
    TextTable,
    Whole,
    setting,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.memory.memory import Memory


@value
class ChatConfig:
    """The model that `plainmind chat` and `plainmind flush` talk to."""

    section = "chat"

    provider: str = setting(
        "openai",
        OneOf("openai", "anthropic"),
        SENDS,
        "The language of the endpoint: `openai` for every compatible server, or `anthropic`.",
    )
    model: str | None = setting(None, Text(optional=True), SPENDS, "The model; there is no default.")
    base_url: str | None = setting(
        None,
        Text("an http:// or https:// address", shape=r"https?://[^\s/]\S*", optional=True),
        SENDS,
        "Address of the endpoint, instead of the provider's own, such as http://127.0.0.1:11434/v1.",
    )
    api_key: str | None = setting(
        None,
        Text(optional=True),
        SPENDS,
        "The key, or `env:NAME`; unset: OPENAI_API_KEY or ANTHROPIC_API_KEY, for the provider's own address.",
        secret=True,
    )
    headers: Mapping[str, str] = setting(
        {}, TextTable(), SENDS, "Headers sent with each request.", secret=True
    )
    proxy: str | None = setting(
        None,
        Text("an http:// address", shape=r"http://[^\s/]\S*", optional=True),
        SENDS,
        "A proxy on the way to the endpoint; none is ever taken from the environment.",
        secret=True,
    )
    context_window: int | None = setting(
        None,
        Whole(1_000, 100_000_000, optional=True),
        SPENDS,
        "Tokens that the model takes; unset is 128,000, for Anthropic 200,000.",
    )
    max_output_tokens: int | None = setting(
        None,
        Whole(1, 10_000_000, optional=True),
        SPENDS,
        "Longest answer; unset is what the server gives, for Anthropic 8,192.",
    )
    timeout_ms: int = setting(
        300_000, Whole(1000, 3_600_000), SPENDS, "Longest silence of the endpoint before it is given up."
    )
    max_tool_rounds: int = setting(
        12, Whole(1, 200), SPENDS, "How often in one turn the model may use tools before it has to answer."
    )
    keep_messages: int = setting(
        8, Whole(0, 1000), SPENDS, "Messages that stay in the context, word for word, when it is compacted."
    )
    system_prompt: str | None = setting(
        None, Text(optional=True), SPEAKS, "The system prompt, instead of ours."
    )


@value
class FlushConfig:
    """The silent turn that saves what lasts before a conversation is compacted."""

    section = "memoryFlush"

    enabled: bool = setting(True, Flag(), ALLOWED, "Ask the model to save what lasts.")
    soft_threshold_tokens: int = setting(
        4000, Whole(0, 10_000_000), ALLOWED, "How long before the compaction to ask, in tokens."
    )
    prompt: str | None = setting(None, Text(optional=True), SPEAKS, "The request, instead of ours.")
    system_prompt: str | None = setting(
        None, Text(optional=True), SPEAKS, "The system prompt of that turn, instead of ours."
    )


def status_facts(memory: Memory, *, deep: bool) -> dict[str, Any]:  # noqa: ARG001 (as every guest is asked)
    """What `status` says of the chat model and of the last flush."""
    chat = None
    if memory.settings.guests.get("chat.model"):  # nothing of a chat is loaded for those who have none
        from plainmind.guests.chat.access import chat_destination

        chat = chat_destination(memory.settings)
    return {"chat": chat, "lastFlush": last_flush(memory.sessions_folder())}


def last_flush(folder: str) -> dict[str, Any] | None:
    """The latest flush of any conversation in a folder, whether it worked or not; None when there was none."""
    if not os.path.isdir(folder):
        return None
    from plainmind.sessions.store import SessionStore

    flushes = [flush for row in SessionStore(folder).list() for flush in _flushes_of(row.key, row.entry)]
    return max(flushes, key=lambda flush: int(flush["at"]), default=None)


def _flushes_of(key: str, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if isinstance(entry.get("memoryFlushAt"), int):
        note = entry.get("memoryFlushNote")
        found.append({"session": key, "at": entry["memoryFlushAt"], "ok": True, "note": note})
    failure = entry.get("memoryFlushFailure")
    if isinstance(failure, dict) and isinstance(failure.get("at"), int):
        found.append({"session": key, "at": failure["at"], "ok": False, "reason": str(failure.get("reason"))})
    return found
