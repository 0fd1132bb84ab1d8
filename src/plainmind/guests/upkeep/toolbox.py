"""The tool by which an agent proposes a change of the notes: it waits for a person like all others do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from plainmind.agent import answers
from plainmind.agent.answers import ToolAnswer
from plainmind.agent.tool_calls import Call, Pool, answer_call, carry_out, code_of
from plainmind.agent.tools import Tool, gives, takes
from plainmind.base.errors import NotFound, PlainmindError, ScopeDenied
from plainmind.base.model import PRIVATE, split_lines
from plainmind.guests.upkeep.model import KINDS, Cite, Edit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.agent.scope import Tools
    from plainmind.guests.upkeep.desk import Desk
    from plainmind.memory.memory import Memory
    from plainmind.memory.scoped import ScopedMemory

_TEXT = {"type": "string"}
_MOST_CHARS = 4_000

PROPOSE = Tool(
    name="memory_propose",
    title="Propose a change of memory",
    description=(
        "Propose that lines of a memory file be changed or dropped: a line that stands twice, that a newer one"
        " contradicts, whose time is over. Nothing changes before the user accepts it. Read the lines with memory_get"
        " first. Daily logs are never changed."
    ),
    input_schema=takes(
        {
            "kind": {"type": "string", "enum": list(KINDS), "description": "What is the matter with the lines."},
            "path": {"type": "string", "description": "The file, as in a result."},
            "old": {"type": "string", "description": "The whole lines as they are, to the letter."},
            "new": {"type": "string", "description": "What they shall say; leave it out when they shall go."},
            "reason": {"type": "string", "description": "Why, in a sentence, for the user."},
            "evidence": {
                "type": "string",
                "description": "The line that shows it, as cited in a result (`memory/house.md#L4`).",
            },
        },
        "kind", "path", "old", "reason",
    ),
    output_schema=gives(
        {
            "status": {"enum": ["waiting", "not_found", "error"]},
            "id": _TEXT,
            "code": _TEXT,
            "error": _TEXT,
            "action": _TEXT,
        },
        "status",
    ),
    is_read_only=False,
    is_structured=True,
)  # fmt: skip

UPKEEP_TOOLS: tuple[Tool, ...] = (PROPOSE,)


class WithProposals:
    """The tools of another box, and `memory_propose`. Safe to share between threads."""

    def __init__(self, memory: Memory, scoped: ScopedMemory, others: Tools) -> None:
        self._memory = memory
        self._scoped = scoped
        self._others = others
        self._tools = {tool.name: tool for tool in UPKEEP_TOOLS}
        self._calls: Mapping[str, Callable[..., ToolAnswer]] = {PROPOSE.name: self._propose}
        self._pool = Pool()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What can be called."""
        return (*self._others.tools, *UPKEEP_TOOLS)

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Carry out one call; a mistake of the model is an answer, never an exception."""
        return answer_call(self.prepare(name, arguments), self._pool)

    def prepare(self, name: str, arguments: Mapping[str, Any] | str) -> Call:
        """A call for a caller that has threads of its own."""
        if name not in self._tools:
            return self._others.prepare(name, arguments)
        return Call(
            partial(carry_out, name, arguments, tools=self._tools, calls=self._calls, explained=_explained)
        )

    def close(self) -> None:
        """Wait for calls that are still running."""
        self._others.close()
        self._pool.close()

    def _propose(
        self, *, kind: str, path: str, old: str, reason: str, new: str = "", evidence: str | None = None
    ) -> ToolAnswer:
        access = self._scoped.access
        if not access.sees_everything or access.writes != PRIVATE:
            raise ScopeDenied("only the owner's own memory is tidied", hint="leave it as it is")
        _require_plain(old, new)
        from plainmind.guests.upkeep.desk import Desk

        desk = Desk(self._memory)
        lines = split_lines(old)
        first = self._place_of(desk, path, lines)
        cites = [Cite(path, first + at, line) for at, line in enumerate(lines)]
        cites += self._evidence(desk, evidence, {(cite.path, cite.line) for cite in cites})
        edit = Edit(path, first, tuple(lines), tuple(split_lines(new)))
        asker = self._scoped.asker
        proposal = desk.propose(kind, cites, [edit], reason, agent=asker.host or asker.surface)
        return ToolAnswer(
            {"status": "waiting", "id": proposal.id},
            f"Proposed as {proposal.id}. It waits for the user: `plainmind tidy` shows it, nothing has changed.",
        )

    def _place_of(self, desk: Desk, path: str, wanted: list[str]) -> int:
        known = list(desk.lines_of(path))
        count = len(wanted)
        places = [at for at in range(len(known) - count + 1) if known[at : at + count] == wanted]
        if not wanted or len(places) != 1:
            often = "several times" if places else "nowhere"
            raise NotFound(
                f"these lines stand {often} in the file", hint="read it again, and give whole lines"
            )
        return places[0] + 1

    def _evidence(self, desk: Desk, cited: str | None, known: set[tuple[str, int]]) -> list[Cite]:
        if not cited:
            return []
        path, _, number = cited.partition("#L")
        line = int(number) if number.isdecimal() else 0
        lines = desk.lines_of(path)
        if not 0 < line <= len(lines):
            raise NotFound(
                "the evidence is not there", hint="cite a line as a result does: `memory/house.md#L4`"
            )
        return [] if (path, line) in known else [Cite(path, line, lines[line - 1])]


def _require_plain(old: str, new: str) -> None:
    from plainmind.redaction.findings import marks_in

    if len(marks_in(new)) > len(marks_in(old)):
        raise PlainmindError(
            "`new` holds the mark of a secret that is hidden here: it would take the secret's place",
            hint="propose only the words before or after it",
        )
    if len(old) > _MOST_CHARS or len(new) > _MOST_CHARS:
        raise PlainmindError(
            f"a proposal changes at most {_MOST_CHARS:,} characters", hint="propose it in several parts"
        )


def _explained(name: str, error: PlainmindError) -> ToolAnswer:
    more: dict[str, Any] = {"status": "not_found"} if isinstance(error, NotFound) else {}
    if isinstance(error, ScopeDenied):
        more["denied"] = True
    return answers.failure(name, code_of(error), str(error), error.hint, more)
