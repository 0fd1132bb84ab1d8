"""Carries out what a model asks of its memory; a mistake of the model is an answer, never an exception."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from plainmind.agent.protocol import AgentMemory
from plainmind.agent.recall import new_nonce
from plainmind.agent.tools import answers
from plainmind.agent.tools.answers import ToolAnswer
from plainmind.agent.tools.budget import reading_chars
from plainmind.agent.tools.calling import carried_out, code_of
from plainmind.agent.tools.deadline import Deadlines, TimedOut
from plainmind.agent.tools.definitions import TOOLS, Tool
from plainmind.base.errors import NotFound, PlainmindError, ScopeDenied
from plainmind.base.model import EXCERPT_LINES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ToolAnswer", "ToolBox"]


class ToolBox:
    """The tools of one agent in one conversation. Safe to share between threads."""

    def __init__(
        self, memory: AgentMemory, tools: Sequence[Tool] = TOOLS, *, nonce: Callable[[], str] = new_nonce
    ) -> None:
        self._memory = memory
        self._tools = {tool.name: tool for tool in tools}
        self._nonce = nonce
        self._deadlines = Deadlines()
        self._calls: Mapping[str, Callable[..., ToolAnswer]] = {
            "memory_search": self._search,
            "memory_get": self._get,
            "memory_append": self._append,
            "memory_forget": self._forget,
            "memory_status": self._status,
        }

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What can be called."""
        return tuple(self._tools.values())

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Carry out one call, with its arguments as an object or as the JSON text that a model wrote."""
        return carried_out(name, arguments, tools=self._tools, calls=self._calls, explained=self._explained)

    def close(self) -> None:
        """Wait for searches that nobody waits for any more. The memory stays open: it is its owner's to close."""
        self._deadlines.close()

    def _search(
        self, query: str, max_results: int | None = None, min_score: float | None = None
    ) -> ToolAnswer:
        limits = self._memory.limits
        warning = None
        if max_results is not None and max_results > limits.max_results:
            warning = f"At most {limits.max_results} results are given at once."
            max_results = limits.max_results
        ask = partial(self._memory.search, query, max_results=max_results, min_score=min_score)
        try:
            result = self._deadlines.run(
                ask, seconds=limits.timeout_ms / 1000, name="plainmind memory_search"
            )
        except TimedOut:
            return _late(limits.timeout_ms)
        shows_citations = self._memory.shows_citations
        return answers.found(
            result, limits, shows_citations=shows_citations, warning=warning, nonce=self._nonce()
        )

    def _get(self, path: str, first_line: int = 1, line_count: int = EXCERPT_LINES) -> ToolAnswer:
        excerpt = self._memory.get(
            path, first_line=first_line, line_count=line_count, max_chars=reading_chars(self._memory.limits)
        )
        return answers.read(excerpt, self._nonce())

    def _append(self, text: str) -> ToolAnswer:
        return answers.saved(self._memory.append(text))

    def _forget(self, what: str, confirm: str | None = None) -> ToolAnswer:
        limits, chosen = self._memory.limits, self._memory.forget(what, dry_run=True)
        if confirm is None:
            return answers.to_be_forgotten(chosen, limits, nonce=self._nonce())
        if confirm.strip() != answers.confirmation(chosen):
            warning = "This code does not stand for these lines: the memory has changed, or the code is another one's."
            return answers.to_be_forgotten(chosen, limits, nonce=self._nonce(), warning=warning)
        return answers.forgotten(self._memory.forget(chosen))

    def _status(self) -> ToolAnswer:
        return answers.state(self._memory.status(), self._nonce())

    def _explained(self, name: str, error: PlainmindError) -> ToolAnswer:
        code = code_of(error)
        message, action = str(error), error.hint
        if isinstance(error, ScopeDenied):
            return answers.failed(name, code, message, action, {"denied": True})
        more: dict[str, Any] = {}
        if isinstance(error, NotFound) and name != "memory_search":
            more["status"] = "not_found"
        if name == "memory_search":
            more |= {"disabled": True, "unavailable": True, "warning": "the memory could not be searched"}
        return answers.failed(name, code, message, action, more)


def _late(timeout_ms: int) -> ToolAnswer:
    return answers.failed(
        "memory_search",
        "MEMORY_TIMED_OUT",
        f"the memory did not answer within {timeout_ms} ms",
        "ask again in a moment, for it goes on reading new files meanwhile; or say that it was not searched",
        {
            "disabled": True,
            "unavailable": True,
            "warning": "the memory was not searched",
            "timedOut": True,
            "timeoutMs": timeout_ms,
        },
    )
