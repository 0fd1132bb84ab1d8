"""The entry memory as tools of an agent, and the hooks that recall and capture without being called."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from plainmind.agent.protocol import Limits
from plainmind.agent.recall import NOTICE, Recalled, as_data, fence, labels, new_nonce
from plainmind.agent.scope import NOTHING, Access
from plainmind.agent.tools import answers
from plainmind.agent.tools.answers import ToolAnswer
from plainmind.agent.tools.arguments import Misuse
from plainmind.agent.tools.budget import ELLIPSIS
from plainmind.agent.tools.calling import carried_out, code_of
from plainmind.agent.tools.deadline import Deadlines, TimedOut
from plainmind.agent.tools.definitions import Tool
from plainmind.base.errors import NotFound, PlainmindError, ScopeDenied
from plainmind.base.model import PRIVATE, SHARED, sha256_text
from plainmind.base.value import replace, value
from plainmind.guests.entries.capture import MOST_CHARS as CAPTURED_CHARS
from plainmind.guests.entries.choosing import entries_meant
from plainmind.guests.entries.definitions import ENTRY_TOOLS
from plainmind.guests.entries.memory import LEAST_SCORE, EntryMemory
from plainmind.guests.entries.model import CATEGORIES, USUAL_IMPORTANCE, Entry, Recall, RecalledEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

__all__ = ["ENTRY_TOOLS", "ByItself", "EntryToolBox"]

NOTHING_RECALLED = "No entry matches this. Other words may find it; otherwise say that you looked."
_QUERY_CHARS = 4_000  # of a long message its end, where the question mostly stands


@value
class ByItself:
    """How much is recalled and captured without being asked for. It has to match better than what was asked for."""

    max_results: int = 3
    min_score: float = 0.5
    capture_chars: int = CAPTURED_CHARS
    by_words_only: bool = False  # what people say is not sent to whoever makes the vectors


class EntryToolBox:
    """The entries within one conversation: what may be seen there and written there. Safe to share between threads."""

    def __init__(
        self,
        entries: EntryMemory,
        access: Access,
        limits: Limits | None = None,
        *,
        by_itself: ByItself | None = None,
        nonce: Callable[[], str] = new_nonce,
    ) -> None:
        self._entries = entries
        self._access = access
        self._limits = limits or Limits()
        self._by_itself = by_itself or ByItself()
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
        return carried_out(name, arguments, tools=self._tools, calls=self._calls, explained=self._explained)

    def has_entry(self, id_: str) -> bool:
        """Whether it is the id of an entry that may be changed here; what is wrong with them a call tells."""
        try:
            self._entries.get(id_.strip(), scopes=self._writable())
        except PlainmindError:
            return False
        return True

    def recalled_for(self, message: str, tell: Callable[[str], None] | None = None) -> str:
        """What a turn may begin with, fenced: the few entries that a person's message is clearly about; "" for none.

        Whoever calls this by itself, before a turn, gives the model data that nobody asked for: it stays short. A
        memory that is slow or broken never holds up the turn: `tell` is told why there is nothing.
        """
        if not self._access.is_allowed:
            return ""
        wanted = self._by_itself
        try:
            found = self._recalled(
                message[-_QUERY_CHARS:],
                limit=wanted.max_results,
                min_score=wanted.min_score,
                scopes=self._own_scopes(),
                by_words_only=wanted.by_words_only,
            )
        except TimedOut:
            reason = f"they did not come within {self._limits.timeout_ms} ms"
        except PlainmindError as error:
            reason = str(self._for_others(error))
        else:
            return fence(self._items(found), self._nonce()) if found.found else ""
        if tell is not None:
            tell(f"without recalled entries: {reason}")
        return ""

    def capture(self, messages: Iterable[str]) -> tuple[Entry, ...]:
        """Propose what a person said for keeping: only where notes may be written, and nothing is kept by itself.

        Raises PlainmindError, also when it takes too long; it is done later then.
        """
        if not self._access.is_allowed or self._access.writes == NOTHING:
            return ()
        propose = partial(
            self._entries.capture,
            list(messages),
            scope=self._access.writes,
            most_chars=self._by_itself.capture_chars,
        )
        try:
            return self._within_time(propose, "capture")
        except TimedOut:
            raise PlainmindError(
                f"it takes longer than {self._limits.timeout_ms} ms, and goes on by itself"
            ) from None
        except PlainmindError as error:
            raise self._for_others(error) from error

    def close(self) -> None:
        """Wait for what nobody waits for any more. The entries stay open: they are their owner's to close."""
        self._deadlines.close()

    def _store(
        self,
        text: str,
        category: str = "other",
        importance: float = USUAL_IMPORTANCE,
        replaces: str | None = None,
        anyway: bool = False,  # noqa: FBT001, FBT002 (given by name)
    ) -> ToolAnswer:
        self._check_writing()
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
            anyway=anyway,
        )
        degraded = self._reasons(stored.degraded)
        warning = {"warning": "; ".join(degraded)} if degraded else {}
        content: dict[str, Any]
        if stored.entry is not None:
            content = {"status": "stored", "id": stored.entry.id, **warning}
            return ToolAnswer(content, f"Stored as {stored.entry.id}.")
        twin = stored.twin
        assert twin is not None  # what is not stored has a twin
        action = (
            f'if the new one is right, call memory_store again with "replaces": "{twin.id}";'
            ' if both are, with "anyway": true'
        )
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
            found = self._recalled(query, limit=wanted, min_score=LEAST_SCORE, scopes=self._access.scopes)
        except TimedOut:
            return answers.failed(
                "memory_recall",
                "MEMORY_TIMED_OUT",
                f"the entries did not come within {limits.timeout_ms} ms",
                "ask again in a moment, or say that they were not looked at",
                {"timedOut": True, "timeoutMs": limits.timeout_ms},
            )
        found, degraded = _fitted(found, limits), self._reasons(found.degraded)
        content: dict[str, Any] = {
            "status": "ok",
            "entries": [
                {**_shown(each.entry, limits), "score": round(each.score, 4)} for each in found.found
            ],
            "degraded": degraded,
        }
        if found.found:
            content["notice"] = NOTICE
        remarks = [f"not everything was consulted: {reason}" for reason in degraded]
        parts = [
            "" if found.found else NOTHING_RECALLED,
            fence(self._items(found), self._nonce(), remarks=remarks),
        ]
        return ToolAnswer(content, "\n".join(filter(None, parts)))

    def _forget(self, what: str, confirm: str | None = None) -> ToolAnswer:
        self._check_writing()
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
        scopes = self._writable()
        everything = [*self._entries.list(scopes=scopes), *self._entries.list(scopes=scopes, waiting=True)]
        chosen = entries_meant(everything, what)
        if not chosen:
            raise NotFound("no entry has this", hint="recall it first, and give its id")
        if len(chosen) > self._limits.max_results:
            raise Misuse(
                f"{len(chosen)} entries have these words",
                "give more words, or the id of one from memory_recall",
            )
        return chosen

    def _recalled(self, query: str, **options: Any) -> Recall:
        return self._within_time(partial(self._entries.recall, query, **options), "memory_recall")

    def _within_time(self, work: Callable[[], T], name: str) -> T:
        """Do something for which a turn waits, and not for long. Raises TimedOut."""
        seconds = self._limits.timeout_ms / 1000
        return self._deadlines.run(work, seconds=seconds, name=f"plainmind {name}")

    def _own_scopes(self) -> frozenset[str]:
        """What may come by itself: to the owner nothing that others have stored, who may mean no good by it."""
        return frozenset({PRIVATE, SHARED}) if self._access.sees_everything else self._access.scopes

    def _writable(self) -> frozenset[str]:
        """Whoever sees everything may change everything; others what is their own."""
        return self._access.scopes if self._access.sees_everything else frozenset({self._access.writes})

    def _check(self) -> None:
        if not self._access.is_allowed:
            raise ScopeDenied(self._access.reason or "the memory may not be used in this conversation")

    def _check_writing(self) -> None:
        self._check()
        if self._access.writes == NOTHING:
            raise ScopeDenied("nothing may be kept in this conversation", hint="keep it in a direct chat")

    def _items(self, found: Recall) -> list[Recalled]:
        shown = _fitted(found, self._limits).found
        return [_item(each.entry, f"score {each.score:.2f}", self._limits) for each in shown]

    def _reasons(self, degraded: Sequence[str]) -> list[str]:
        """What was not consulted; which programs and addresses the owner uses is not for others."""
        if degraded and not self._access.sees_everything:
            return ["a part of the entries could not be consulted"]
        return [as_data(reason) for reason in degraded]

    def _for_others(self, error: PlainmindError) -> PlainmindError:
        """Say as much about a failure as may be known here: paths are the owner's; the log has the rest."""
        tells_nothing = type(error) is PlainmindError or isinstance(error, NotFound | ScopeDenied)
        if tells_nothing or self._access.sees_everything:
            return error
        import logging

        logging.getLogger(__name__).warning("in a conversation of others than the owner: %s", error)
        return PlainmindError("the entries could not be reached just now", hint="try again later")

    def _explained(self, name: str, error: PlainmindError) -> ToolAnswer:
        more: dict[str, Any] = {"denied": True} if isinstance(error, ScopeDenied) else {}
        if isinstance(error, NotFound):
            more["status"] = "not_found"
        told = self._for_others(error)
        return answers.failed(name, code_of(error), str(told), told.hint, more)


def _fitted(found: Recall, limits: Limits) -> Recall:
    """The first that fit the budget, at least one."""
    left = limits.max_injected_chars
    taken: list[RecalledEntry] = []
    for each in found.found:
        left -= len(_text(each.entry, limits))
        if left < 0 and taken:
            break
        taken.append(each)
    return replace(found, found=tuple(taken))


def _item(entry: Entry, remark: str, limits: Limits) -> Recalled:
    author = "" if entry.scope == PRIVATE else f"stored by {entry.scope}"
    facts = (entry.category, f"importance {entry.importance:.1f}", entry.day, author, remark)
    text, careful = _text(entry, limits), labels(entry.text)
    return Recalled(
        f"entry {entry.id}", text, source="entries", remark=", ".join(filter(None, facts)), labels=careful
    )


def _shown(entry: Entry, limits: Limits) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": entry.id,
        "text": _text(entry, limits),
        "category": entry.category,
        "importance": entry.importance,
        "createdAt": entry.created_at,
        **({} if entry.scope == PRIVATE else {"scope": entry.scope}),
    }
    careful = labels(entry.text)
    return {**shown, "careful": list(careful)} if careful else shown


def _text(entry: Entry, limits: Limits) -> str:
    """The text as data; of a long one the beginning, and a mark that there is more."""
    text = as_data(entry.text)
    most = limits.max_snippet_chars
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS
