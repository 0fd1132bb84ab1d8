"""AutoGen: a `Memory` that reminds an agent before its model is called, and keeps what was said.

agent = AssistantAgent("assistant", model_client=client, memory=[PlainmindMemory("~/notes")])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from plainmind.agent.recall import without_recalled
from plainmind.agent.scope import SearchContext
from plainmind.agent.tools import Tool
from plainmind.base.errors import PlainmindError
from plainmind.guests.integrations.framework import (
    FrameworkMemory,
    FrameworkMissing,
    Given,
    Said,
    arguments_model,
    in_thread,
    new_name,
)

try:
    from autogen_core import CancellationToken
    from autogen_core.memory import (
        Memory,
        MemoryContent,
        MemoryMimeType,
        MemoryQueryResult,
        UpdateContextResult,
    )
    from autogen_core.model_context import ChatCompletionContext
    from autogen_core.models import UserMessage
    from autogen_core.tools import BaseTool
    from pydantic import BaseModel
except ImportError as error:
    raise FrameworkMissing("AutoGen", "autogen", error) from error

_PROGRAM = "autogen"
_SOURCE = "plainmind"  # who says what is recalled: nobody in the conversation


class MemoryTool(BaseTool[BaseModel, str]):
    """One tool of the memory."""

    def __init__(self, mine: FrameworkMemory, tool: Tool) -> None:
        super().__init__(arguments_model(tool), str, tool.name, tool.description)
        self._mine = mine

    async def run(self, args: BaseModel, cancellation_token: CancellationToken) -> str:
        """Carry out one call, beside the event loop."""
        del cancellation_token
        return await in_thread(self._mine.call, self.name, args.model_dump(exclude_none=True))


def tools(memory: Given = None, *, context: SearchContext | None = None) -> list[MemoryTool]:
    """The tools of the memory for an agent."""
    mine = FrameworkMemory(memory, _PROGRAM, context)
    return [MemoryTool(mine, tool) for tool in mine.tools]


class PlainmindMemory(Memory):
    """A `Memory` of AutoGen.

    Before the model is called, what is certain to help is put behind the user's words, as a message of its own, once:
    AutoGen keeps it in the context of the agent. What was said until then is kept; the last answer when the memory is
    closed.
    """

    component_type = "memory"

    def __init__(
        self,
        memory: Given = None,
        *,
        context: SearchContext | None = None,
        session: str | None = None,
        recalls: bool = True,
        keeps: bool = True,
    ) -> None:
        self.mine = FrameworkMemory(memory, _PROGRAM, context)
        self._session = session or new_name()
        self._recalls = recalls
        self._keeps = keeps
        self._given: set[str] = (
            set()
        )  # what is in the context already, without the marks, which differ each time
        self._contexts: list[ChatCompletionContext] = []

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Remind the agent, and keep what was said."""
        if not any(known is model_context for known in self._contexts):
            self._contexts.append(model_context)
        messages = await model_context.get_messages()
        asked = [text for role, text in _spoken(messages) if role == "user"]
        reminder = ""
        if self._recalls and asked:
            reminder = await in_thread(self.mine.reminder, asked[-1], session=self._session)
        await self._keep(messages)
        lines = "\n".join(line for line in reminder.splitlines() if not line.startswith(("<", "[")))
        if not reminder or lines in self._given:
            return UpdateContextResult(memories=MemoryQueryResult(results=[]))
        self._given.add(lines)
        await model_context.add_message(UserMessage(content=reminder, source=_SOURCE))
        return UpdateContextResult(memories=MemoryQueryResult(results=[_content(reminder)]))

    async def query(
        self,
        query: str | MemoryContent,
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """What answers a question, best first, each piece between its marks."""
        del cancellation_token
        question = query if isinstance(query, str) else str(query.content)
        found = await in_thread(self.mine.found, question, max_results=kwargs.get("max_results"))
        return MemoryQueryResult(
            results=[
                _content(
                    fenced, path=hit.path, start_line=hit.start_line, end_line=hit.end_line, score=hit.score
                )
                for hit, fenced in found
            ]
        )

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Write a note."""
        del cancellation_token
        if not isinstance(content.content, str):
            raise PlainmindError("only text can be remembered", hint="say in words what the content shows")
        await in_thread(self.mine.mine.append, content.content)

    async def clear(self) -> None:
        """Refuse: notes are not removed wholesale."""
        raise PlainmindError(
            "a memory that is files is not cleared by an agent",
            hint="`plainmind forget` removes what you name; the folder is yours to delete",
        )

    async def close(self) -> None:
        """Keep the last answer, and close the memory if it was opened here."""
        for model_context in self._contexts:
            await self._keep(await model_context.get_messages())
        await in_thread(self.mine.close)

    async def _keep(self, messages: Sequence[Any]) -> None:
        if not self._keeps:
            return
        seen: Counter[tuple[str, str]] = Counter()
        said = []
        for spoken in _spoken(messages):
            seen[spoken] += 1
            # AutoGen's messages have no ids: the second time that the same is said is another time.
            said.append(Said(*spoken, f"{seen[spoken]}: {spoken[1]}"))
        await in_thread(self.mine.keep, self._session, said)


def _content(text: str, **facts: Any) -> MemoryContent:
    return MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata=facts or None)


def _spoken(messages: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """What people and models said: no calls of tools, and nothing that was recalled."""
    for message in messages:
        content = message.content
        if isinstance(content, list) and message.type == "UserMessage":
            content = "\n".join(part for part in content if isinstance(part, str))
        if isinstance(content, str) and (text := without_recalled(content).strip()):
            if message.type == "UserMessage" and message.source != _SOURCE:
                yield "user", text
            elif message.type == "AssistantMessage":
                yield "assistant", text
