"""The entry memory as tools of an agent, and the hooks that recall and capture without being called."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from commonplace.agent.protocol import Limits
from commonplace.agent.recall import NOTICE, Recalled, as_data, fence, labels, new_nonce
from commonplace.agent.scope import NOTHING, Access
from commonplace.agent.tools import answers
from commonplace.agent.tools.answers import ToolAnswer
from commonplace.agent.tools.arguments import Misuse
from commonplace.agent.tools.calling import carried_out, code_of
from commonplace.agent.tools.deadline import Deadlines, TimedOut
from commonplace.agent.tools.definitions import Tool
from commonplace.agent.tools.entry_definitions import ENTRY_TOOLS
from commonplace.entries.memory import LEAST_SCORE, EntryMemory
from commonplace.entries.model import CATEGORIES, USUAL_IMPORTANCE, Entry, Recall
from commonplace.errors import CommonplaceError, NotFound, ScopeDenied
from commonplace.text.hashing import sha256_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ENTRY_TOOLS", "EntryToolBox"]

NOTHING_RECALLED = "No entry matches this. Other words may find it; otherwise say that you looked."
RECALLED_BY_ITSELF = 3
# What comes without being asked for has to match better than what was asked for.
_LEAST_BY_ITSELF = 0.5


class EntryToolBox:
    """The entries within one conversation: what may be seen there and written there. Safe to share between threads."""

    def __init__(
        self,
        entries: EntryMemory,
        access: Access,
        limits: Limits | None = None,
        *,
        nonce: Callable[[], str] = new_nonce,
    ) -> None:
        self._entries = entries
        self._access = access
        self._limits = limits or Limits()
        self._nonce = nonce
        self._deadlines = Deadlines()
        self._tools = {tool.name: tool for tool in ENTRY_TOOLS}
        self._calls: Mapping[str, Callable[..., ToolAnswer]] = {
            "memory_store": self._store,
            "memory_recall": self._recall,
            "memory_forget": self._forget,
        }

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What can be called."""
        return tuple(self._tools.values())

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Carry out one call; a mistake of the model is an answer, never an exception."""
        return carried_out(name, arguments, tools=self._tools, calls=self._calls, explained=_explained)

    def recalled_for(self, message: str) -> str:
        """What a turn may begin with, fenced: the few entries that a person's message is clearly about; "" for none.

        Whoever calls this by itself, before a turn, gives the model data that nobody asked for: it stays short, and
        a memory that is slow or broken never holds up the turn.
        """
        if not self._access.is_allowed:
            return ""
        try:
            found = self._recalled(message[-4_000:], RECALLED_BY_ITSELF, _LEAST_BY_ITSELF)
        except (TimedOut, CommonplaceError):
            return ""  # the tool says why when it is called
        return fence(_items(found, self._limits), self._nonce()) if found.found else ""

    def capture(self, messages: Iterable[str]) -> tuple[Entry, ...]:
        """Propose what a person said for keeping: only where notes may be written, and nothing is kept by itself."""
        if not self._access.is_allowed or self._access.writes == NOTHING:
            return ()
        return self._entries.capture(messages, scope=self._access.writes)

    def close(self) -> None:
        """Wait for what nobody waits for any more. The entries stay open: they are their owner's to close."""
        self._deadlines.close()

    def _store(
        self,
        text: str,
        category: str = "other",
        importance: float = USUAL_IMPORTANCE,
        replaces: str | None = None,
    ) -> ToolAnswer:
        self._check()
        if self._access.writes == NOTHING:
            raise ScopeDenied("nothing may be kept in this conversation", hint="keep it in a direct chat")
        if category not in CATEGORIES:
            raise Misuse(
                f"there is no category `{category[:60]}`",
                f"use one of {', '.join(CATEGORIES)}, or leave it out",
            )
        stored = self._entries.store(
            text,
            scope=self._access.writes,
            category=category,
            importance=importance,
            replacing=replaces.strip() if replaces else None,
        )
        warning = {"warning": as_data("; ".join(stored.degraded))} if stored.degraded else {}
        content: dict[str, Any]
        if stored.entry is not None:
            content = {"status": "stored", "id": stored.entry.id, **warning}
            return ToolAnswer(content, f"Stored as {stored.entry.id}.")
        twin = stored.twin
        assert twin is not None  # what is not stored has a twin
        action = f'if the new one is right, call memory_store again with "replaces": "{twin.id}"'
        content = {
            "status": "duplicate",
            "twin": _shown(twin, self._limits),
            "similarity": round(stored.similarity, 3),
            "action": action,
            "notice": NOTICE,
            **warning,
        }
        told = "Not stored: an entry that says the same is there already."
        fenced = fence([_item(twin, f"similarity {stored.similarity:.2f}", self._limits)], self._nonce())
        return ToolAnswer(content, f"{told}\n{fenced}\nOtherwise i{action[1:]}.")

    def _recall(self, query: str, max_results: int | None = None) -> ToolAnswer:
        self._check()
        limits = self._limits
        wanted = min(max_results or limits.max_results, limits.max_results)
        try:
            found = self._recalled(query, wanted, LEAST_SCORE)
        except TimedOut:
            return answers.failed(
                "memory_recall",
                "MEMORY_TIMED_OUT",
                f"the entries did not come within {limits.timeout_ms} ms",
                "ask again in a moment, or say that they were not looked at",
                {"timedOut": True, "timeoutMs": limits.timeout_ms},
            )
        content: dict[str, Any] = {
            "status": "ok",
            "entries": [
                {**_shown(each.entry, limits), "score": round(each.score, 4)} for each in found.found
            ],
            "degraded": [as_data(reason) for reason in found.degraded],
        }
        if found.found:
            content["notice"] = NOTICE
        remarks = [f"not everything was consulted: {reason}" for reason in found.degraded]
        parts = [
            "" if found.found else NOTHING_RECALLED,
            fence(_items(found, limits), self._nonce(), remarks=remarks),
        ]
        return ToolAnswer(content, "\n".join(filter(None, parts)))

    def _forget(self, what: str, confirm: str | None = None) -> ToolAnswer:
        self._check()
        chosen = self._chosen(what)
        code = sha256_text(json.dumps([[entry.id, entry.text] for entry in chosen]))[:8]
        if confirm is not None and confirm.strip() == code:
            gone = self._entries.forget([entry.id for entry in chosen], scopes=self._writable())
            content = {"status": "forgotten", "total": len(gone), "ids": [entry.id for entry in gone]}
            return ToolAnswer(
                content, f"Removed for good: {len(gone)} {'entry' if len(gone) == 1 else 'entries'}."
            )
        warning = None
        if confirm is not None:
            warning = (
                "This code does not stand for these entries: they have changed, or the code is another one's."
            )
        content = {
            "status": "preview",
            "entries": [_shown(entry, self._limits) for entry in chosen],
            "confirm": code,
            **({"warning": warning} if warning else {}),
        }
        told = (
            warning,
            f"Nothing was removed yet. {len(chosen)} {'entry' if len(chosen) == 1 else 'entries'} would go for good.",
            fence([_item(entry, "", self._limits) for entry in chosen], self._nonce()),
            f'If the user agrees, call memory_forget again with the same `what` and "confirm": "{code}".',
        )
        return ToolAnswer(content, "\n".join(filter(None, told)), is_error=warning is not None)

    def _chosen(self, what: str) -> Sequence[Entry]:
        """The entry with an id, or those that have a text; never more than can be shown before they go."""
        what, scopes = what.strip(), self._writable()
        everything = [*self._entries.list(scopes=scopes), *self._entries.list(scopes=scopes, waiting=True)]
        words = what.casefold().split()
        chosen = [entry for entry in everything if entry.id == what] or [
            entry for entry in everything if all(word in entry.text.casefold() for word in words)
        ]
        if not chosen:
            raise NotFound("no entry has this", hint="recall it first, and give its id")
        if len(chosen) > self._limits.max_results:
            raise Misuse(
                f"{len(chosen)} entries have these words",
                "give more words, or the id of one from memory_recall",
            )
        return chosen

    def _recalled(self, query: str, limit: int, least: float) -> Recall:
        ask = partial(self._entries.recall, query, scopes=self._access.scopes, limit=limit, min_score=least)
        return self._deadlines.run(
            ask, seconds=self._limits.timeout_ms / 1000, name="commonplace memory_recall"
        )

    def _writable(self) -> frozenset[str]:
        """Whoever sees everything may change everything; others what is their own."""
        return self._access.scopes if self._access.sees_everything else frozenset({self._access.writes})

    def _check(self) -> None:
        if not self._access.is_allowed:
            raise ScopeDenied(self._access.reason or "the memory may not be used in this conversation")


def _items(found: Recall, limits: Limits) -> list[Recalled]:
    items: list[Recalled] = []
    left = limits.max_injected_chars
    for each in found.found:
        item = _item(each.entry, f"score {each.score:.2f}", limits)
        left -= len(item.text)
        if left < 0 and items:
            break
        items.append(item)
    return items


def _item(entry: Entry, remark: str, limits: Limits) -> Recalled:
    facts = ", ".join(
        filter(None, (entry.category, f"importance {entry.importance:.1f}", _day(entry), remark))
    )
    text = as_data(entry.text)[: limits.max_snippet_chars]
    return Recalled(f"entry {entry.id}", text, source="entries", remark=facts, labels=labels(entry.text))


def _shown(entry: Entry, limits: Limits) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": entry.id,
        "text": as_data(entry.text)[: limits.max_snippet_chars],
        "category": entry.category,
        "importance": entry.importance,
        "createdAt": entry.created_at,
    }
    careful = labels(entry.text)
    return {**shown, "careful": list(careful)} if careful else shown


def _day(entry: Entry) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(max(0, entry.created_at) / 1000, UTC).date().isoformat()


def _explained(name: str, error: CommonplaceError) -> ToolAnswer:
    more: dict[str, Any] = {"denied": True} if isinstance(error, ScopeDenied) else {}
    if isinstance(error, NotFound):
        more["status"] = "not_found"
    return answers.failed(name, code_of(error), str(error), error.hint, more)
