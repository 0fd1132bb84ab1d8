"""LangChain: a middleware that reminds an agent and keeps what was said, its tools, a retriever, a chat history.

agent = create_agent("openai:gpt-5", middleware=[PlainmindMiddleware("~/notes")])
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any  # frameworks evaluate annotations

from plainmind.agent.scope import SearchContext
from plainmind.agent.tools import Tool
from plainmind.guests.integrations.framework import (
    FrameworkMemory,
    FrameworkMissing,
    Given,
    Said,
    entry_of_item,
    in_thread,
    items_of,
    new_name,
)

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool, StructuredTool
    from langgraph.config import get_config
except ImportError as error:
    raise FrameworkMissing("LangChain", "langchain", error) from error

_PROGRAM = "langchain"
_ROLES = {"human": "user", "ai": "assistant"}


def tools(memory: Given = None, *, context: SearchContext | None = None) -> list[BaseTool]:
    """The tools of the memory for an agent, in threads of their own where the agent is asynchronous."""
    return tools_of(FrameworkMemory(memory, _PROGRAM, context))


def tools_of(mine: FrameworkMemory) -> list[BaseTool]:
    """The tools of a memory that is open."""
    return [_tool(mine, tool) for tool in mine.tools]


def _tool(mine: FrameworkMemory, tool: Tool) -> BaseTool:
    def call(**given: Any) -> str:
        return mine.call(tool.name, given)

    async def acall(**given: Any) -> str:
        return await in_thread(mine.call, tool.name, given)

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=dict(tool.input_schema),
        func=call,
        coroutine=acall,
    )


class PlainmindMiddleware(AgentMiddleware):
    """Memory around an agent of `create_agent`.

    Before the model is called, the user's words are preceded by what is certain to help, for this call only: it is not
    put into the state of the agent. After the agent has answered, what was said in the turn is kept, in a conversation
    that is called like the thread. The tools of the memory come with it, unless `offers_tools` is false.
    """

    def __init__(
        self,
        memory: Given = None,
        *,
        context: SearchContext | None = None,
        session: str | None = None,
        recalls: bool = True,
        keeps: bool = True,
        offers_tools: bool = True,
    ) -> None:
        super().__init__()
        self.mine = FrameworkMemory(memory, _PROGRAM, context)
        self.tools = tools_of(self.mine) if offers_tools else []
        self._session = session
        self._unnamed = new_name()
        self._recalls = recalls
        self._keeps = keeps

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Remind, then call the model."""
        return handler(self._reminded(request, self._name()))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Remind beside the event loop, then call the model."""
        return await handler(await in_thread(self._reminded, request, self._name()))

    def after_agent(self, state: Mapping[str, Any], runtime: Any) -> None:
        """Keep what was said in the turn."""
        del runtime
        self._keep(state["messages"], self._name())

    async def aafter_agent(self, state: Mapping[str, Any], runtime: Any) -> None:
        """Keep what was said in the turn, beside the event loop."""
        del runtime
        await in_thread(self._keep, state["messages"], self._name())

    def close(self) -> None:
        """Close the memory if it was opened here."""
        self.mine.close()

    def _name(self) -> str:
        """What the conversation is called: as the program said, as the thread is, or as this object."""
        thread = get_config().get("configurable", {}).get("thread_id")
        return self._session or (str(thread) if thread else self._unnamed)

    def _reminded(self, request: Any, session: str) -> Any:
        messages = list(request.messages)
        place = _place_of_prompt(messages)
        if not self._recalls or place is None:
            return request
        asked = messages[place]
        reminder = self.mine.reminder(_text_of(asked), session=session, turn=asked.id or "")
        if not reminder:
            return request
        content = asked.content
        content = (
            f"{reminder}\n\n{content}"
            if isinstance(content, str)
            else [{"type": "text", "text": reminder}, *content]
        )
        messages[place] = asked.model_copy(update={"content": content})
        return request.override(messages=messages)

    def _keep(self, messages: Sequence[BaseMessage], session: str) -> None:
        place = _place_of_prompt(messages)
        if self._keeps and place is not None:
            turn = messages[place:]
            self.mine.keep(
                session,
                [Said(_ROLES[one.type], _text_of(one), one.id or "") for one in turn if one.type in _ROLES],
            )


def _place_of_prompt(messages: Sequence[BaseMessage]) -> int | None:
    """Where the user's last words are."""
    return next((place for place in reversed(range(len(messages))) if messages[place].type == "human"), None)


def _text_of(message: BaseMessage) -> str:
    """The words of a message, whatever else it holds."""
    content = message.content
    if isinstance(content, str):
        return content
    parts = (part if isinstance(part, str) else part.get("text") for part in content)
    return "\n".join(part for part in parts if isinstance(part, str))


class PlainmindRetriever(BaseRetriever):
    """Documents for a chain: each a piece of recalled text between its marks, with its place as metadata.

    With `fenced=False` it is bare, for a program that shows it to people and to no model.
    """

    mine: Any = None
    max_results: int | None = None
    min_score: float | None = None
    fenced: bool = True

    def __init__(self, memory: Given = None, *, context: SearchContext | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self.mine = FrameworkMemory(memory, _PROGRAM, context)

    def _get_relevant_documents(self, query: str, *, run_manager: Any = None) -> list[Document]:
        del run_manager
        documents = []
        for hit, fenced in self.mine.found(query, max_results=self.max_results):
            facts = {
                "source": hit.path,
                "start_line": hit.start_line,
                "end_line": hit.end_line,
                "score": hit.score,
            }
            if self.min_score is None or hit.score >= self.min_score:
                text = fenced if self.fenced else hit.snippet
                documents.append(Document(page_content=text, metadata=facts))
        return documents


class PlainmindChatHistory(BaseChatMessageHistory):
    """The messages of one conversation, as LangChain gave them; memory finds again what was said in it.

    Cleared, it begins anew; what was said stays in the transcript.
    """

    def __init__(self, session: str, memory: Given = None, *, context: SearchContext | None = None) -> None:
        self.mine = FrameworkMemory(memory, _PROGRAM, context)
        self._name = session

    @property
    def messages(self) -> list[BaseMessage]:
        """All messages since it was last cleared, oldest first."""
        with self.mine.session(self._name) as session:
            found: list[BaseMessage] = messages_from_dict(items_of(session))
        return found

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages, on the disk when this returns."""
        entries = [
            entry_of_item(message_to_dict(one), _ROLES.get(one.type, one.type), _text_of(one))
            for one in messages
        ]
        with self.mine.session(self._name) as session:
            session.extend(entries)

    def clear(self) -> None:
        """Begin anew."""
        with self.mine.session(self._name) as session:
            session.reset("cleared")
