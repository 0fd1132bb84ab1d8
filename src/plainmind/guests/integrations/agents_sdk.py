"""A session for the OpenAI Agents SDK: its items as messages of a transcript, where memory finds them again.

    store = SessionStore("sessions")
    result = await Runner.run(agent, "hello", session=AgentsSession(store.open_or_create("support")))

The SDK itself is not imported: its `Session` is a protocol, and this class has what it asks for.
"""

from __future__ import annotations

import asyncio

from plainmind.sessions.branch import Context
from plainmind.sessions.entries import Entry, parent_of
from plainmind.sessions.store import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

Item: TypeAlias = "dict[str, Any]"

_SPOKEN = frozenset({"input_text", "output_text", "text"})


class AgentsSession:
    """What one agent of the SDK remembers of a conversation; nothing is ever cut from the transcript."""

    def __init__(self, session: Session, session_settings: Any = None) -> None:
        self.session_id = session.key or session.id
        self.session_settings = session_settings
        self._session = session

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """The items that the agent is given, oldest first; of all or of the latest `limit`."""
        items = _items(await asyncio.to_thread(self._session.context))
        most = limit if limit is not None else self._limit_of_settings()
        return items if most is None else items[max(0, len(items) - most) :]

    async def add_items(self, items: list[Item]) -> None:
        """Add items, on the disk when this returns."""
        await asyncio.to_thread(self._session.extend, [entry_of(item) for item in items])

    async def pop_item(self) -> Item | None:
        """Take the latest item back: the conversation goes on from the one before it."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Begin anew; what was said stays in the transcript."""
        await asyncio.to_thread(self._session.reset, "cleared")

    def _pop(self) -> Item | None:
        context = self._session.context()
        if not context.entries:
            return None
        last = context.entries[-1]
        self._session.back_to(parent_of(last))
        return _item_of(last, context.messages[-1])

    def _limit_of_settings(self) -> int | None:
        settings = self.session_settings
        found = settings.get("limit") if isinstance(settings, dict) else getattr(settings, "limit", None)
        return found if isinstance(found, int) else None


def entry_of(item: Item) -> Entry:
    """Make an entry of an item: a message that memory can read, and the item as it was."""
    return {"type": "message", "message": _message_of(item), "item": item}


def _message_of(item: Item) -> dict[str, Any]:
    kind = item.get("type")
    if isinstance(item.get("role"), str):
        return {"role": item["role"], "content": _content_of(item.get("content"))}
    if kind == "function_call":
        call = {"type": "toolCall", "id": item.get("call_id"), "name": item.get("name")}
        return {"role": "assistant", "content": [call | {"arguments": item.get("arguments")}]}
    if kind == "function_call_output":
        output = item.get("output")
        content = [{"type": "text", "text": output}] if isinstance(output, str) else output
        return {"role": "toolResult", "toolCallId": item.get("call_id"), "content": content}
    return {"role": "custom", "customType": str(kind), "content": ""}


def _content_of(content: object) -> object:
    """Call the words of a message `text`, as transcripts do; other parts stay in the item."""
    if not isinstance(content, list):
        return content
    return [
        {"type": "text", "text": part.get("text")}
        for part in content
        if isinstance(part, dict) and part.get("type") in _SPOKEN
    ]


def _items(context: Context) -> list[Item]:
    items = [
        _item_of(entry, message) for entry, message in zip(context.entries, context.messages, strict=True)
    ]
    if context.summary is not None:
        items.insert(0, {"role": "user", "content": context.summary})
    return items


def _item_of(entry: Entry, message: dict[str, Any]) -> Item:
    """The item as it was added, or, of a message that came another way, what the SDK needs of it."""
    item = entry.get("item")
    if isinstance(item, dict):
        return item
    content = message.get("content")
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    role = message.get("role")
    return {
        "role": role if role in {"user", "assistant", "system", "developer"} else "user",
        "content": content,
    }
