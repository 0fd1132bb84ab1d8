"""What the classes for all frameworks are made of: a memory that reminds, keeps what was said, and has tools.

A class for a framework is a thin coat around this: it says which words of the framework are a prompt, which are what
was said, and where a reminder is put so that the framework does not keep it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from plainmind.agent.recall import Recalled, fence, new_nonce, remind, without_recalled
from plainmind.agent.recalls import Asker, lines_of_hits
from plainmind.agent.scope import NOTHING, OWNER, THE_OWNER, SearchContext
from plainmind.base.errors import NotFound, PlainmindError, ScopeDenied
from plainmind.base.extras import install_hint
from plainmind.base.lazy import RLock, find_by_name, made_once
from plainmind.base.model import sha256_text
from plainmind.base.value import replace, value
from plainmind.files.safe_open import expand_user
from plainmind.memory.memory import Memory
from plainmind.memory.scoped import denial
from plainmind.notes.scopes import scope_of_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ParamSpec, Self, TypeVar

    from plainmind.agent.scope import Tools, TurnHooks
    from plainmind.agent.tools import Tool
    from plainmind.base.model import SearchHit
    from plainmind.sessions.store import Session

    P = ParamSpec("P")
    T = TypeVar("T")

# A memory that is open already, or the folder of one; None: the one that the settings name.
Given: TypeAlias = Memory | str | os.PathLike[str] | None

_TOOLS = "plainmind.guests.entries.access:tools_within"
_ENTRIES = "plainmind.guests.entries.access:entry_memory_of"
_SOURCES = ("memory", "sessions")
_TAIL = 2_000  # messages: those that a framework tells again are among the last
_MOST_REMINDERS = 256

log = logging.getLogger("plainmind.integrations")


class FrameworkMissing(PlainmindError, ImportError):
    """A framework is not installed, or in a version that its class was not made for."""

    def __init__(self, framework: str, extra: str, cause: ImportError) -> None:
        super().__init__(
            f"{framework} is needed for this, and cannot be imported: {cause}",
            hint=f"install it in a version that is tested: {install_hint(extra)}",
        )


@value
class Said:
    """What one side of a conversation said. With the same `id` it is kept once; without one, as often as it is told."""

    role: str  # "user" or "assistant"
    text: str
    id: str = ""


class FrameworkMemory:
    """A memory as an agent in some framework has it. Safe to share between threads.

    `context` says whose conversation it is: at their own machine the owner's, who sees everything. What is denied there
    raises ScopeDenied at once. A memory that was given open stays open.
    """

    def __init__(self, memory: Given, program: str, context: SearchContext | None = None) -> None:
        self.making = RLock()
        self.is_ours = not isinstance(memory, Memory)
        self.memory = memory if isinstance(memory, Memory) else open_memory(memory)
        self.program = program
        self.context = THE_OWNER if context is None else context
        self._asker = Asker("python", program)
        self.mine = self.memory.within(self.context, asker=self._asker)
        self._reminders: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        if not self.mine.access.is_allowed:
            self.close()
            raise denial(self.mine.access)

    def of_person(self, person: str, channel: str = "") -> FrameworkMemory:
        """The same memory as somebody else than its owner may see and write it; "" is the owner."""
        whose = SearchContext(person, "direct", "", channel=channel) if person else THE_OWNER
        return FrameworkMemory(self.memory, self.program, whose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for tools that still run, and close the memory if it was opened here."""
        if "_box" in vars(self):
            self._box[0].close()
        if "entries" in vars(self):
            self.entries.close()
        if self.is_ours:
            self.memory.close()

    # --- tools ---

    @made_once
    def _box(self) -> tuple[Tools, TurnHooks | None]:
        """The tools of the notes, and those of the entries where these are on; with what entries do by themselves."""
        made: tuple[Tools, TurnHooks | None] = find_by_name(_TOOLS)(self.memory, self.context, self._asker)
        return made

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What a model may call; without what writes, where nothing may be written."""
        tools = self._box[0].tools
        return tools if self.writes else tuple(tool for tool in tools if tool.is_read_only)

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Carry out a call; what a model may read of it, with all that is recalled between its marks."""
        return self._box[0].call(name, arguments).text

    def found(self, query: str, *, max_results: int | None = None) -> list[tuple[SearchHit, str]]:
        """What answers a question, best first, each piece between marks of its own; it goes into the recall log."""
        recall = self.mine.begin_recall("search", query, asker=self._asker)
        hits = self.mine.search(query, max_results=max_results).hits
        pieces = [
            fence([Recalled(hit.path, hit.snippet, hit.start_line, hit.end_line, hit.source)], new_nonce())
            for hit in hits
        ]
        recall.end(lines_of_hits(hits), "\n".join(pieces))
        return list(zip(hits, pieces, strict=True))

    # --- before a turn ---

    def reminder(self, prompt: str, *, session: str = "", turn: str = "") -> str:
        """What is certain to help with a prompt, between its marks; mostly "". What goes wrong is logged.

        Within one `turn` it is searched once, whatever happens meanwhile: a model that is called again for the answers
        of its tools is given the same words again.
        """
        key = session, turn, prompt
        with self.making:
            if turn and key in self._reminders:
                return self._reminders[key]
        try:
            own = self._own_transcript(session)
            found = remind(
                self.mine,
                prompt,
                asker=replace(self._asker, session=session),
                asked_in=() if own is None else (own,),
            ).text
            hooks = self._box[1]
            if hooks is not None:
                also = hooks.before([{"role": "user", "content": prompt}], log.warning)
                found = "\n".join(filter(None, (found, also)))
        except PlainmindError as error:
            log.warning("nothing was recalled: %s", error)
            return ""
        with self.making:
            self._reminders[key] = found
            while len(self._reminders) > _MOST_REMINDERS:
                self._reminders.popitem(last=False)
        return found

    # --- after a turn ---

    @property
    def writes(self) -> bool:
        """Whether something may be kept here."""
        return self.mine.access.writes != NOTHING

    def keep(self, session: str, said: Sequence[Said]) -> int:
        """Keep what was said, without what was recalled, what is private, and secrets; how much was new.

        What goes wrong is logged: a conversation does not stop for its memory.
        """
        try:
            return self._keep(session, said)
        except PlainmindError as error:
            log.warning("what was said in `%s` was not kept: %s", session, error)
            return 0

    def _keep(self, session: str, said: Sequence[Said]) -> int:
        new = [(one, text) for one in said if (text := self.clean(one.text).strip())]
        if not new or not self.writes:
            return 0
        count = 0
        with self.making, self.session(session) as kept:
            there = {entry["id"] for entry in kept.tail(_TAIL)}
            for one, text in new:
                mark = "f" + sha256_text(f"{one.role}: {one.id}")[:20] if one.id else None
                if mark is None or mark not in there:
                    message = {"role": one.role, "content": [{"type": "text", "text": text}]}
                    there.add(kept.append(message, id=mark, look_back_bytes=0))
                    count += 1
        hooks = self._box[1]
        if hooks is not None and count:
            hooks.after([{"role": one.role, "content": text} for one, text in new], log.info)
        return count

    def clean(self, text: str) -> str:
        """A text as it may be kept."""
        return self.memory.redactor().without_secrets(without_recalled(text))

    # --- single facts ---

    @made_once
    def entries(self) -> Any:
        """The entry memory of the settings, whether agents get its tools or not; closed with this."""
        return find_by_name(_ENTRIES)(self.memory)

    # --- conversations ---

    def session(self, name: str) -> Session:
        """The conversation of a name, begun when it is not there; seen by who may see this context, and nobody else."""
        key, fields = self._place_of(name)
        return self.memory.sessions.open_or_create(key, **fields)

    def session_if_there(self, name: str) -> Session | None:
        """The conversation of a name; None when nobody has begun it."""
        try:
            return self.memory.sessions.open(self.key_of(name))
        except NotFound:
            return None

    def key_of(self, name: str) -> str:
        """The key of a conversation; of "", what the keys of all conversations here begin with."""
        return self._place_of(name)[0]

    def _place_of(self, name: str) -> tuple[str, dict[str, str]]:
        """The key of a conversation, which says whose it is, and what its entry says besides."""
        context = self.context
        # A colon would begin another part of the key, and a part may say that a group reads along.
        own = name.replace("%", "%25").replace(":", "%3A")
        fields: dict[str, str] = {}
        if context.principal is OWNER and not context.group:
            key = f"{self.program}:{own}"
        else:
            kind, whom = ("group", context.group) if context.group else ("direct", str(context.principal))
            key = ":".join(filter(None, (context.channel, kind, whom, "thread", f"{self.program}-{own}")))
            fields = (
                {"groupId": whom, "channel": context.channel, "chatType": "group"} if context.group else {}
            )
        if scope_of_session(key, fields) != self.mine.access.writes:
            raise ScopeDenied(
                "what is said here could be seen by others than it is meant for, and is not kept",
                hint="give a SearchContext whose ids have no `:thread:` or `:topic:` in them",
            )
        return key, fields

    def _own_transcript(self, session: str) -> str | None:
        """How the transcript of a conversation is cited: it need not be reminded of itself."""
        kept = self.session_if_there(session) if session else None
        return None if kept is None else f"sessions/{os.path.basename(kept.path)}"


def open_memory(folder: str | os.PathLike[str] | None) -> Memory:
    """Open the memory in a folder, made when it is missing; what was said is searched too, unless settings say no."""
    workspace = None if folder is None else expand_user(os.fspath(folder))
    entries = {} if _has_lancedb() else {"entries": {"driver": "sqlite"}}

    memory = Memory.from_environment(
        os.environ,
        cwd=os.getcwd(),
        workspace=workspace,
        config=entries,
        looks_around=False,
        assumed={"sources": _SOURCES},
    )
    if not os.path.lexists(memory.workspace):
        memory.create_workspace()
    return memory


def _has_lancedb() -> bool:
    from importlib.util import find_spec

    return find_spec("lancedb") is not None


def new_name() -> str:
    """A name for a conversation that its framework has none for."""
    from plainmind.files.append import new_id

    return new_id()


def entry_of_item(item: Any, role: str, text: str) -> dict[str, Any]:
    """An entry of a transcript for something that a framework wants back as it was: memory reads what it says."""
    message = {"role": role, "content": [{"type": "text", "text": without_recalled(text)}]}
    return {"type": "message", "message": message, "item": item}


def items_of(session: Session) -> list[Any]:
    """What a framework put into a conversation since it was last cleared, oldest first."""
    return [entry["item"] for entry in session.context().entries if "item" in entry]


def arguments_model(tool: Tool) -> Any:
    """The arguments of a tool as a model of Pydantic, which every framework that asks for one brings along."""
    from pydantic import Field, create_model

    kinds: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}
    wanted = tool.input_schema["required"]
    fields: dict[str, Any] = {}
    for name, shape in tool.input_schema["properties"].items():
        kind = kinds[shape["type"]]
        told = Field(description=shape["description"])
        fields[name] = (
            (kind, told) if name in wanted else (kind | None, Field(None, description=shape["description"]))
        )
    return create_model(tool.name, **fields)


def without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that were given: frameworks pass None for the others."""
    return {name: each for name, each in given.items() if each is not None}


async def in_thread(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Do something slow beside the event loop: what else runs in it goes on."""
    return await asyncio.to_thread(work, *given, **named)
