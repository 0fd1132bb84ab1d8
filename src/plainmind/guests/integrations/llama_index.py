"""LlamaIndex: a memory whose block reminds an agent before its model is called, and which keeps what was said.

memory = PlainmindMemory.over("~/notes")
await FunctionAgent(tools=tools("~/notes"), llm=llm).run("hello", memory=memory)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plainmind.agent.scope import SearchContext
from plainmind.agent.tools import Tool
from plainmind.guests.integrations.framework import (
    FrameworkMemory,
    FrameworkMissing,
    Given,
    Said,
    arguments_model,
    in_thread,
    new_name,
    without_none,
)

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock, InsertMethod, Memory
    from llama_index.core.tools import FunctionTool
except ImportError as error:
    raise FrameworkMissing("LlamaIndex", "llama-index", error) from error

_PROGRAM = "llama-index"
_ROLES = frozenset({"user", "assistant"})


def tools(memory: Given = None, *, context: SearchContext | None = None) -> list[FunctionTool]:
    """The tools of the memory for an agent."""
    mine = FrameworkMemory(memory, _PROGRAM, context)
    return [_tool(mine, tool) for tool in mine.tools]


def _tool(mine: FrameworkMemory, tool: Tool) -> FunctionTool:
    def call(**given: Any) -> str:
        return mine.call(tool.name, without_none(given))

    async def acall(**given: Any) -> str:
        return await in_thread(call, **given)

    return FunctionTool.from_defaults(
        call,
        async_fn=acall,
        name=tool.name,
        description=tool.description,
        fn_schema=arguments_model(tool),
    )


class PlainmindBlock(BaseMemoryBlock[str]):
    """A block for a `Memory` of LlamaIndex: what is certain to help with the user's last words, between its marks.

    What the memory's short-term part lets go of is kept. Insert it into the user's message: what is recalled is data,
    and no instruction of the system's.
    """

    name: str = "plainmind"
    mine: Any = None
    session: str = ""
    # Kept with the answer: a question is not to be found among what answers it.
    unanswered: list[Said] = []  # noqa: RUF012 (a field, which Pydantic copies)

    def __init__(self, memory: Given = None, *, context: SearchContext | None = None, **fields: Any) -> None:
        super().__init__(**{"session": new_name(), **fields})
        self.mine = FrameworkMemory(memory, _PROGRAM, context)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        del block_kwargs
        asked = [message for message in messages or () if message.role == "user"]
        if not asked:
            return ""
        turn = f"{len(asked)}"  # the same as often as a model is called for it
        return await in_thread(self.mine.reminder, asked[-1].content or "", session=self.session, turn=turn)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await self.keep(messages)

    async def keep(self, messages: Sequence[ChatMessage]) -> None:
        """Keep what was said, as soon as it is answered."""
        self.unanswered += [
            Said(message.role.value, message.content)
            for message in messages
            if message.role.value in _ROLES and message.content
        ]
        if self.unanswered and self.unanswered[-1].role == "assistant":
            await in_thread(self._keep)

    def close(self) -> None:
        """Keep what nobody answered, and close the memory if it was opened here."""
        self._keep()
        self.mine.close()

    def _keep(self) -> None:
        said, self.unanswered = self.unanswered, []
        self.mine.keep(self.session, said)


class PlainmindMemory(Memory):
    """A `Memory` with that block in it, which keeps each message when it comes, not only when there are too many."""

    @classmethod
    def over(
        cls,
        memory: Given = None,
        *,
        context: SearchContext | None = None,
        session_id: str | None = None,
        memory_blocks: Sequence[BaseMemoryBlock[Any]] = (),
        **fields: Any,
    ) -> PlainmindMemory:
        """Make one; `fields` are those of `Memory.from_defaults`."""
        name = session_id or new_name()
        block = PlainmindBlock(memory, context=context, session=name, accept_short_term_memory=False)
        made: PlainmindMemory = cls.from_defaults(
            session_id=name,
            memory_blocks=[block, *memory_blocks],
            insert_method=InsertMethod.USER,
            **fields,
        )
        return made

    async def aput(self, message: ChatMessage) -> None:
        """Add a message, and keep it."""
        await self._keep([message])
        await super().aput(message)

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages, and keep them."""
        await self._keep(messages)
        await super().aput_messages(messages)

    def close(self) -> None:
        """Close the memory if it was opened here."""
        for block in self._own_blocks():
            block.close()

    async def _keep(self, messages: Sequence[ChatMessage]) -> None:
        for block in self._own_blocks():
            await block.keep(messages)

    def _own_blocks(self) -> list[PlainmindBlock]:
        return [block for block in self.memory_blocks if isinstance(block, PlainmindBlock)]
