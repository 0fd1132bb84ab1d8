"""Pydantic AI: a capability that reminds an agent, keeps what was said and has tools; and a store of conversations.

agent = Agent("openai:gpt-5", capabilities=[PlainmindMemory("~/notes")])
"""

from __future__ import annotations

import copy
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from plainmind.agent.scope import SearchContext
from plainmind.agent.tools import Tool as MemoryTool
from plainmind.agent.tools import recall_section
from plainmind.files.system import hold_lock
from plainmind.guests.integrations.framework import (
    FrameworkMemory,
    FrameworkMissing,
    Given,
    Said,
    entry_of_item,
    in_thread,
)
from plainmind.sessions.store import Session

try:
    from pydantic import TypeAdapter
    from pydantic_ai import FunctionToolset, RunContext, Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
except ImportError as error:
    raise FrameworkMissing("Pydantic AI", "pydantic-ai", error) from error

_why_no_store: ImportError | None = None
try:
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
except ImportError as error:  # before 2.66
    ConversationStore = ConversationRecord = object
    _why_no_store = error

_PROGRAM = "pydantic-ai"


def toolset(memory: Given = None, *, context: SearchContext | None = None) -> FunctionToolset:
    """The tools of the memory by themselves: `Agent(…, toolsets=[toolset("~/notes")])`."""
    return toolset_of(FrameworkMemory(memory, _PROGRAM, context))


def toolset_of(mine: FrameworkMemory) -> FunctionToolset:
    """The tools of a memory that is open."""
    return FunctionToolset([_tool(mine, tool) for tool in mine.tools], id="plainmind")


def _tool(mine: FrameworkMemory, tool: MemoryTool) -> Tool:
    async def call(**given: Any) -> str:
        return await in_thread(mine.call, tool.name, given)

    return Tool.from_schema(call, tool.name, tool.description, dict(tool.input_schema))


class PlainmindMemory(AbstractCapability[Any]):
    """Memory around the runs of an agent.

    Each request to the model begins, before the user's words, with what is certain to help; the history of the messages
    does not have it. After a run what was said is kept, in a conversation that is called like `conversation_id`. The
    tools of the memory come with it, unless `offers_tools` is false.
    """

    def __init__(
        self,
        memory: Given = None,
        *,
        context: SearchContext | None = None,
        recalls: bool = True,
        keeps: bool = True,
        offers_tools: bool = True,
    ) -> None:
        self.mine = FrameworkMemory(memory, _PROGRAM, context)
        self._recalls = recalls
        self._keeps = keeps
        self._offers_tools = offers_tools

    def get_toolset(self) -> FunctionToolset | None:
        """The tools of the memory."""
        return toolset_of(self.mine) if self._offers_tools else None

    def get_instructions(self) -> str | None:
        """How to use the tools; nothing of what is remembered."""
        if not self._offers_tools:
            return None
        names = [tool.name for tool in self.mine.tools]
        return recall_section(names, shows_citations=self.mine.mine.shows_citations)

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: Any, handler: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """Put what is certain to help before the user's last words, in this request only.

        What a hook before the request does to the messages, some versions keep in their history.
        """
        place = _place_of_prompt(request_context.messages) if self._recalls else None
        if place is not None:
            at, number = place
            asked = request_context.messages[at]
            part = asked.parts[number]
            reminder = await in_thread(
                self.mine.reminder, _words_of(part), session=_session_of(ctx), turn=ctx.run_id or ""
            )
            if reminder:
                request_context = copy.copy(request_context)
                request_context.messages = list(request_context.messages)
                request_context.messages[at] = _reminded(asked, number, reminder)
        return await handler(request_context)

    async def after_run(self, ctx: RunContext[Any], *, result: Any) -> Any:
        """Keep what was said in the run."""
        if self._keeps:
            said = list(_said(result.new_messages(), ctx.run_id or ""))
            await in_thread(self.mine.keep, _session_of(ctx), said)
        return result

    def close(self) -> None:
        """Close the memory if it was opened here."""
        self.mine.close()


def _session_of(ctx: RunContext[Any]) -> str:
    """What the conversation is called; a run has an id of its own, if nothing else."""
    return str(ctx.conversation_id or ctx.run_id)


def _place_of_prompt(messages: Sequence[ModelMessage]) -> tuple[int, int] | None:
    """Where the user's last words are: in which message, and which part of it."""
    for at in reversed(range(len(messages))):
        if isinstance(messages[at], ModelRequest):
            for number in reversed(range(len(messages[at].parts))):
                if isinstance(messages[at].parts[number], UserPromptPart):
                    return at, number
    return None


def _reminded(asked: ModelRequest, number: int, reminder: str) -> ModelRequest:
    part = copy.copy(asked.parts[number])
    content = part.content
    part.content = f"{reminder}\n\n{content}" if isinstance(content, str) else [reminder, *content]
    message = copy.copy(asked)
    message.parts = [*asked.parts[:number], part, *asked.parts[number + 1 :]]
    return message


def _words_of(part: UserPromptPart) -> str:
    content = part.content
    return content if isinstance(content, str) else "\n".join(one for one in content if isinstance(one, str))


def _said(messages: Sequence[ModelMessage], run: str) -> Iterator[Said]:
    for number, message in enumerate(messages):
        role, text = _spoken(message)
        if text:
            yield Said(role, text, f"{run}:{number}" if run else "")


def _spoken(message: ModelMessage) -> tuple[str, str]:
    """Who speaks, and what is said; what tools are given and give is not speech."""
    if isinstance(message, ModelResponse):
        return "assistant", "\n".join(part.content for part in message.parts if isinstance(part, TextPart))
    spoken = (_words_of(part) for part in message.parts if isinstance(part, UserPromptPart))
    return "user", "\n".join(spoken)


_RECORD = "pydantic-ai record"  # the kind of an entry that says where a conversation stands


class PlainmindConversations(ConversationStore):
    """The conversations of Pydantic AI as transcripts, one a conversation; memory finds what was said in them.

    A message is stored once, and nothing is overwritten: a record that has changed stands behind the one that it was.
    Deleted, a conversation is gone from the disk, unless another was forked from it and still needs its messages. A
    `PlainmindMemory` beside it should not keep the same runs: `keeps=False`.
    """

    def __init__(self, memory: Given = None, *, context: SearchContext | None = None) -> None:
        if _why_no_store is not None:
            raise FrameworkMissing("Pydantic AI 2.66 or newer", "pydantic-ai", _why_no_store)
        self.mine = FrameworkMemory(memory, f"{_PROGRAM}-store", context)
        self._records = TypeAdapter(ConversationRecord)
        self._messages = TypeAdapter(ModelMessage)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Where a conversation stands; None when there is none."""
        return await in_thread(self._record, conversation_id)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """All conversations, or those of a scope, the latest first."""
        found = await in_thread(self._all)
        kept = [record for record in found if scope is None or record.scope == scope]
        kept.sort(key=lambda record: record.updated_at, reverse=True)
        return kept[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Add messages and where the conversation stands now. On the disk when this returns."""
        await in_thread(self._write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Remove a conversation for good."""
        await in_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """One message of whatever conversation. Raises KeyError."""
        return (await in_thread(self._entries))[entry_id]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The messages up to one, oldest first; only the last `limit`. Raises KeyError."""
        known = await in_thread(self._entries) if head_id is not None else {}
        history: list[ConversationEntry] = []
        while head_id is not None and (limit is None or len(history) < limit):
            history.append(known[head_id])
            head_id = known[head_id].parent_id
        return history[::-1]

    def close(self) -> None:
        """Close the memory if it was opened here."""
        self.mine.close()

    def _sessions(self) -> Iterator[Session]:
        """The transcripts that may be seen here."""
        prefix = self.mine.key_of("")
        sessions = self.mine.memory.sessions
        for row in sessions.list():
            if row.key.startswith(prefix):
                yield sessions.open(row.key)

    def _all(self) -> list[ConversationRecord]:
        return [record for session in self._sessions() if (record := self._last(session)) is not None]

    def _entries(self) -> dict[str, ConversationEntry]:
        """Every message by its id; a fork has messages of another conversation."""
        found = {}
        for session in self._sessions():
            for entry in session.entries():
                item = entry.get("item")
                if isinstance(item, dict) and "parentId" in item:
                    found[item["id"]] = ConversationEntry(
                        id=item["id"],
                        parent_id=item["parentId"],
                        message=self._messages.validate_python(item["message"]),
                    )
        return found

    def _record(self, conversation_id: str) -> ConversationRecord | None:
        session = self.mine.session_if_there(conversation_id)
        return None if session is None else self._last(session)

    def _last(self, session: Session) -> ConversationRecord | None:
        for placed in session.transcript.backwards():
            if placed.entry is not None and placed.entry.get("customType") == _RECORD:
                data = placed.entry.get("data")
                return None if data is None else self._records.validate_python(data)
        return None

    def _write(
        self, record: ConversationRecord, new: Sequence[ConversationEntry], expected_revision: str | None
    ) -> None:
        with self._alone():
            self._check(record.conversation_id, expected_revision)
            added = {None, *(entry.id for entry in new)}
            if record.head_id not in added and record.head_id not in self._entries():
                raise ConversationConflict(record.conversation_id)
            entries = [self._kept(entry) for entry in new]
            data = self._records.dump_python(record, mode="json")
            with self.mine.session(record.conversation_id) as session:
                session.extend([*entries, {"type": "custom", "customType": _RECORD, "data": data}])

    def _kept(self, entry: ConversationEntry) -> dict[str, Any]:
        role, text = _spoken(entry.message)
        item = {
            "id": entry.id,
            "parentId": entry.parent_id,
            "message": self._messages.dump_python(entry.message, mode="json"),
        }
        return entry_of_item(item, role if text else "custom", text)

    def _delete(self, conversation_id: str, expected_revision: str) -> None:
        with self._alone():
            self._check(conversation_id, expected_revision)
            if any(record.forked_from == conversation_id for record in self._all()):
                with self.mine.session(conversation_id) as session:
                    session.extend([{"type": "custom", "customType": _RECORD, "data": None}])
            else:
                self.mine.memory.delete_session(self.mine.key_of(conversation_id))

    def _check(self, conversation_id: str, expected_revision: str | None) -> None:
        there = self._record(conversation_id)
        if (there.revision if there is not None else None) != expected_revision:
            raise ConversationConflict(conversation_id)

    def _alone(self) -> Any:
        """Wait to be the only one, in all processes, who changes conversations."""
        path = os.path.join(self.mine.memory.places.state, "pydantic-ai-store.lock")
        return hold_lock(path, operation="save a conversation")
