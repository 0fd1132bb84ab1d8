"""Microsoft Agent Framework: a context provider that reminds an agent, keeps what was said, and brings the tools.

agent = Agent(client, context_providers=[PlainmindProvider("~/notes")])
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
    in_thread,
    new_name,
)

try:
    from agent_framework import ContextProvider, FunctionTool, Message
except ImportError as error:
    raise FrameworkMissing("Microsoft Agent Framework", "agent-framework", error) from error

_PROGRAM = "agent-framework"
_ROLES = frozenset({"user", "assistant"})


def tools(memory: Given = None, *, context: SearchContext | None = None) -> list[FunctionTool]:
    """The tools of the memory for an agent."""
    return tools_of(FrameworkMemory(memory, _PROGRAM, context))


def tools_of(mine: FrameworkMemory) -> list[FunctionTool]:
    """The tools of a memory that is open."""
    return [_tool(mine, tool) for tool in mine.tools]


def _tool(mine: FrameworkMemory, tool: Tool) -> FunctionTool:
    async def call(**given: Any) -> str:
        return await in_thread(mine.call, tool.name, given)

    return FunctionTool(
        name=tool.name, description=tool.description, func=call, input_model=dict(tool.input_schema)
    )


class PlainmindProvider(ContextProvider):
    """A context provider.

    A run begins with what is certain to help, as a message of this provider, which no history provider keeps as said.
    After the run what was said is kept, in a conversation that is called like the session.
    """

    def __init__(
        self,
        memory: Given = None,
        *,
        context: SearchContext | None = None,
        source_id: str = "plainmind",
        recalls: bool = True,
        keeps: bool = True,
        offers_tools: bool = True,
    ) -> None:
        super().__init__(source_id)
        self.mine = FrameworkMemory(memory, _PROGRAM, context)
        self._recalls = recalls
        self._keeps = keeps
        self._tools = tools_of(self.mine) if offers_tools else []

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Remind the agent, and offer the tools."""
        del agent, state
        if self._tools:
            context.extend_tools(self.source_id, self._tools)
        asked = [message.text for message in context.input_messages if message.role == "user"]
        if not self._recalls or not asked:
            return
        reminder = await in_thread(self.mine.reminder, asked[-1], session=_name_of(session))
        if reminder:
            context.extend_messages(self, [Message("user", [reminder])])

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Keep what was said in the run."""
        del agent, state
        if not self._keeps:
            return
        answers: Sequence[Any] = context.response.messages if context.response is not None else ()
        run = new_name()
        said = [
            Said(message.role, message.text, message.message_id or f"{run}:{number}")
            for number, message in enumerate([*context.input_messages, *answers])
            if message.role in _ROLES and message.text
        ]
        await in_thread(self.mine.keep, _name_of(session), said)

    def close(self) -> None:
        """Close the memory if it was opened here."""
        self.mine.close()


def _name_of(session: Any) -> str:
    return str(session.session_id)
