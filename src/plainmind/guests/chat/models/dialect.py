"""What an endpoint's language must say: how a request is written, and how a stream becomes an answer."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Protocol

from plainmind.guests.chat.models.protocol import ChatModelSettings, Reply, Request, ToolCall
from plainmind.guests.net.events import ServerEvent
from plainmind.guests.net.failures import AnswerUnreadable
from plainmind.sessions.entries import storable


class ErrorSent(Exception):
    """The endpoint reported an error in the middle of a stream, as if with `status`."""

    def __init__(self, status: int, payload: object) -> None:
        super().__init__(status)
        self.status = status
        self.payload = payload


class AnswerReader(Protocol):
    """One answer while it comes in."""

    @property
    def is_complete(self) -> bool:
        """Whether the endpoint has said that nothing follows."""

    @property
    def has_ended(self) -> bool:
        """Whether the model came to an end: some endpoints then just hang up."""

    def take(self, event: ServerEvent) -> str:
        """Read one event; the text to show, or "". Raises AnswerUnreadable or ErrorSent."""

    def take_whole(self, payload: Mapping[str, Any]) -> str:
        """Read an answer that came in one piece, from a server that does not stream."""

    def reply(self, request: Request) -> Reply:
        """What was said so far."""


class Dialect(Protocol):
    """One language of chat endpoints."""

    name: str
    default_base_url: str
    key_variable: str
    default_context_window: int

    def path(self, base_url: str) -> str:
        """Where it is asked, beneath the base URL."""

    def headers(self, key: str) -> Mapping[str, str]:
        """How the key is shown; it may be empty."""

    def body(self, request: Request, settings: ChatModelSettings) -> dict[str, Any]:
        """Write a request."""

    def reader(self) -> AnswerReader:
        """Begin to read an answer."""


def payload_of(event: ServerEvent) -> dict[str, Any]:
    """Read the JSON object of an event. Raises AnswerUnreadable."""
    try:
        payload = json.loads(event.data)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise AnswerUnreadable("the endpoint streams something that is not JSON")
    return payload


def call_of(call_id: str, name: str, arguments: str) -> ToolCall:
    """Make a tool call; arguments that are no JSON object stay the text that they are, for the tool to complain of."""
    try:
        read: Any = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        read = None
    return ToolCall(
        storable(call_id) or f"call_{os.urandom(8).hex()}",
        storable(name),
        read if isinstance(read, dict) else storable(arguments),
    )


def count_in(found: Mapping[str, Any], *names: str) -> int:
    """The first of some counters that is there and is a number."""
    for name in names:
        count = found.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 10**12:
            return count
    return 0


def object_in(found: Any, name: str) -> dict[str, Any]:
    """The object of that name, or an empty one."""
    inner = found.get(name) if isinstance(found, Mapping) else None
    return inner if isinstance(inner, dict) else {}


def blocks_of(content: Any) -> list[dict[str, Any]]:
    """The content of a message as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
