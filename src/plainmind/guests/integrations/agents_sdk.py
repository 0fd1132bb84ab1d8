"""The OpenAI Agents SDK: tools, a reminder before the model is called, and sessions whose items memory finds again.

    memory = AgentsMemory("~/notes")
    agent = Agent("assistant", tools=memory.tools())
    Runner.run_sync(agent, "hello", session=memory.session("support"), run_config=RunConfig(
        call_model_input_filter=memory.remind))

For a session alone the SDK is not imported: its `Session` is a protocol, and `AgentsSession` has what it asks for.
"""

from __future__ import annotations

import asyncio

from plainmind.agent.scope import SearchContext
from plainmind.agent.tools import Tool, for_openai
from plainmind.guests.integrations.framework import FrameworkMemory, FrameworkMissing, Given, new_name
from plainmind.sessions.entries import Context, Entry, parent_of
from plainmind.sessions.store import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

Item: TypeAlias = "dict[str, Any]"

_SPOKEN = frozenset({"input_text", "output_text", "text"})


class AgentsMemory:
    """A memory for the agents of one program: its tools, its sessions, and what they are reminded of."""

    def __init__(self, memory: Given = None, *, context: SearchContext | None = None) -> None:
        self.mine = FrameworkMemory(memory, "openai-agents", context)

    def tools(self) -> list[Any]:
        """The tools of the memory, as `FunctionTool`s."""
        try:
            from agents import FunctionTool
        except ImportError as error:
            raise FrameworkMissing("The OpenAI Agents SDK", "agents", error) from error
        return [
            FunctionTool(
                name=tool.name,
                description=tool.description,
                params_json_schema=schema["parameters"],
                on_invoke_tool=self._call(tool),
                strict_json_schema=True,
            )
            for tool, schema in zip(self.mine.tools, for_openai(self.mine.tools), strict=True)
        ]

    def session(self, name: str | None = None) -> AgentsSession:
        """The session of a name, begun when it is not there; without a name a new one."""
        return AgentsSession(self.mine.session(name or new_name()))

    async def remind(self, data: Any) -> Any:
        """Put what is certain to help before the user's last words, for one call of the model: no session has it.

        For `RunConfig(call_model_input_filter=memory.remind)`.
        """
        items = list(data.model_data.input)
        asked = [place for place, item in enumerate(items) if _is_of_user(item)]
        if asked:
            item = items[asked[-1]]
            # As often as it is called in one turn, with the same words: what stands before them is the same then.
            turn = f"{id(data.context)}:{asked[-1]}"
            reminder = await asyncio.to_thread(self.mine.reminder, _text_of(item["content"]), turn=turn)
            if reminder:
                items[asked[-1]] = {**item, "content": _with_reminder(reminder, item["content"])}
        data.model_data.input = items
        return data.model_data

    def close(self) -> None:
        """Close the memory if it was opened here."""
        self.mine.close()

    def _call(self, tool: Tool) -> Any:
        async def call(_context: Any, arguments: str) -> str:
            return await asyncio.to_thread(self.mine.call, tool.name, arguments)

        return call


def _is_of_user(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "user" and "content" in item


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if part.get("type") in _SPOKEN)


def _with_reminder(reminder: str, content: Any) -> Any:
    if isinstance(content, str):
        return f"{reminder}\n\n{content}"
    return [{"type": "input_text", "text": reminder}, *content]


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
