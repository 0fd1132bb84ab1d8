"""The entry memory as tools of an agent, alone or beside those of the notes, and what happens around a turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from plainmind.agent import answers
from plainmind.agent.answers import ELLIPSIS, ToolAnswer
from plainmind.agent.recall import NOTICE, Recalled, as_data, fence, labels, new_nonce
from plainmind.agent.scope import NOTHING, Access, Limits
from plainmind.agent.tool_calls import (
    OF_THIS_PROCESS,
    Call,
    Misuse,
    Pool,
    TimedOut,
    answer_call,
    carry_out,
    code_of,
    wrong_code,
)
from plainmind.agent.tools import Tool, ToolBox
from plainmind.base.errors import NotFound, PlainmindError, ScopeDenied
from plainmind.base.model import PRIVATE, SHARED
from plainmind.base.value import replace, value
from plainmind.guests.entries.entry_file import entries_meant
from plainmind.guests.entries.memory import CAPTURED_CHARS, LEAST_SCORE, EntryMemory
from plainmind.guests.entries.model import CATEGORIES, USUAL_IMPORTANCE, Entry, Recall, RecalledEntry
from plainmind.guests.entries.tools import (
    ALL_TOOLS,
    ENTRY_TOOLS,
    FORGET,
    FORGET_EVERYWHERE,
    RECALL,
    STORE,
)
from plainmind.sessions.entries import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from plainmind.agent.recalls import BegunRecall, RecalledLines
    from plainmind.redaction.findings import Redacted

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
        conversation: str = "",
        redact: Callable[[str], Redacted] | None = None,
        begin_recall: Callable[[str, str], BegunRecall] | None = None,
    ) -> None:
        """`conversation` says in which one: a code that was shown in another one is worth nothing here.

        `redact` makes what is shown of an entry; None shows its secrets too. `begin_recall` leads to the recall log.
        """
        self._entries = entries
        self._access = access
        self._limits = limits or Limits()
        self._by_itself = by_itself or ByItself()
        self._conversation = conversation
        self._redact = redact
        self._begin_recall = begin_recall
        self._behind: dict[str, str] = {}  # secrets by the marks that were shown in their place
        self._pool = Pool()
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
        return answer_call(self.prepare(name, arguments), self._pool)

    def prepare(self, name: str, arguments: Mapping[str, Any] | str) -> Call:
        """A call for a caller that has threads of its own; recalling is not waited for longer than the limits say."""
        work = partial(
            carry_out, name, arguments, tools=self._tools, calls=self._calls, explained=self._explained
        )
        if name != RECALL.name:
            return Call(work)
        return Call(work, self._limits.timeout_ms / 1000, self._late)

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
        recall = self._begin_recall("search", message) if self._begin_recall is not None else None
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
            text = fence(self._items(self._veiled_all(found)), new_nonce()) if found.found else ""
            if recall is not None:
                recall.end(_recalled_lines(found), text)
            return text
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
            return self._within_time(propose)
        except TimedOut:
            raise PlainmindError(
                f"it takes longer than {self._limits.timeout_ms} ms, and goes on by itself"
            ) from None
        except PlainmindError as error:
            raise self._for_others(error) from error

    def close(self) -> None:
        """Wait for what nobody waits for any more. The entries stay open: they are their owner's to close."""
        self._pool.close()

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
        for mark, secret in self._behind.items():  # who writes an entry anew has only seen its marks
            text = text.replace(mark, secret)
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
        assert stored.twin is not None  # what is not stored has a twin
        twin = self._veiled(stored.twin)
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
        fenced = fence([_item(twin, f"similarity {stored.similarity:.2f}", self._limits)], new_nonce())
        return ToolAnswer(content, f"{told}\n{fenced}\nOtherwise i{action[1:]}.")

    def _recall(self, query: str, max_results: int | None = None) -> ToolAnswer:
        self._check()
        limits = self._limits
        wanted = min(max_results or limits.max_results, limits.max_results)
        recall = self._begin_recall("search", query) if self._begin_recall is not None else None
        found = self._entries.recall(query, limit=wanted, min_score=LEAST_SCORE, scopes=self._access.scopes)
        found, degraded = _fitted(self._veiled_all(found), limits), self._reasons(found.degraded)
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
            fence(self._items(found), new_nonce(), remarks=remarks),
        ]
        text = "\n".join(filter(None, parts))
        if recall is not None:
            recall.end(_recalled_lines(found), text, timeout_ms=limits.timeout_ms)
        return ToolAnswer(content, text)

    def _late(self) -> ToolAnswer:
        timeout_ms = self._limits.timeout_ms
        return answers.failure(
            "memory_recall",
            "MEMORY_TIMED_OUT",
            f"the entries did not come within {timeout_ms} ms",
            "ask again in a moment, or say that they were not looked at",
            {"timedOut": True, "timeoutMs": timeout_ms},
        )

    def _forget(self, what: str, confirm: str | None = None) -> ToolAnswer:
        self._check_writing()
        chosen = self._chosen(what)
        exactly = json.dumps([[entry.id, entry.text] for entry in chosen])
        if confirm is not None and OF_THIS_PROCESS.take(confirm, self._conversation, exactly):
            gone = self._entries.forget([entry.id for entry in chosen], scopes=self._writable())
            content = {"status": "forgotten", "total": len(gone), "ids": [entry.id for entry in gone]}
            return ToolAnswer(
                content, f"Removed for good: {len(gone)} {'entry' if len(gone) == 1 else 'entries'}."
            )
        code = OF_THIS_PROCESS.make(self._conversation, exactly)
        shown = [self._veiled(entry) for entry in chosen]
        warning = None if confirm is None else wrong_code("these entries")
        content = {
            "status": "preview",
            "entries": [_shown(entry, self._limits) for entry in shown],
            "confirm": code,
            **({"warning": warning} if warning else {}),
        }
        told = (
            warning,
            f"Nothing was removed yet. {len(chosen)} {'entry' if len(chosen) == 1 else 'entries'} would go for good.",
            fence([_item(entry, "", self._limits) for entry in shown], new_nonce()),
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
        return self._within_time(partial(self._entries.recall, query, **options))

    def _within_time(self, work: Callable[[], T]) -> T:
        """Do something for which a turn waits, and not for long. Raises TimedOut."""
        seconds = self._limits.timeout_ms / 1000
        return self._pool.run(work, seconds=seconds)

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

    def _veiled(self, entry: Entry) -> Entry:
        """An entry as it may be shown: with marks in the place of its secrets."""
        if self._redact is None:
            return entry
        redacted = self._redact(entry.text)
        for one in redacted.found:
            self._behind[one.mark] = entry.text[one.start : one.end]
        return replace(entry, text=redacted.text)

    def _veiled_all(self, found: Recall) -> Recall:
        return replace(
            found, found=tuple(replace(each, entry=self._veiled(each.entry)) for each in found.found)
        )

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
        return answers.failure(name, code_of(error), str(told), told.hint, more)


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


def _recalled_lines(found: Recall) -> list[RecalledLines]:
    """What the recall log says of entries: a mark and no words, as of lines."""
    from plainmind.agent.recalls import ENTRIES, RecalledLines, mark_of

    return [
        RecalledLines(f"{ENTRIES}/{each.entry.id}", score=round(each.score, 3), mark=mark_of(each.entry.text))
        for each in found.found
    ]


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


_OF_ENTRIES = (STORE, RECALL, FORGET)


class AllTools:
    """Both sets within one conversation. `close` closes the boxes, and then whatever is given as `on_close`."""

    def __init__(
        self,
        notes: ToolBox,
        entries: EntryToolBox,
        tools: Sequence[Tool] = ALL_TOOLS,
        *,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._notes = notes
        self._entries = entries
        self._tools = {tool.name: tool for tool in tools}
        self._on_close = on_close

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What can be called."""
        return tuple(self._tools.values())

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Carry out one call; a mistake of the model is an answer, never an exception."""
        tool = self._tools.get(name)
        if tool is None or tool is FORGET_EVERYWHERE:
            return self.prepare(name, arguments).work()
        return self._box_of(tool).call(name, arguments)

    def prepare(self, name: str, arguments: Mapping[str, Any] | str) -> Call:
        """A call for a caller that has threads of its own."""
        tool = self._tools.get(name)
        if tool is None or tool is FORGET_EVERYWHERE:
            calls = {"memory_forget": self._forget}
            return Call(
                partial(carry_out, name, arguments, tools=self._tools, calls=calls, explained=_explained)
            )
        return self._box_of(tool).prepare(name, arguments)

    def _box_of(self, tool: Tool) -> ToolBox | EntryToolBox:
        return self._entries if tool in _OF_ENTRIES else self._notes

    def close(self) -> None:
        """Wait for what nobody waits for any more."""
        self._notes.close()
        self._entries.close()
        self._on_close()

    def _forget(self, what: str, confirm: str | None = None) -> ToolAnswer:
        """Show what would go of both, or let it go. The code stands for everything that was shown."""
        boxes = (self._entries,) if self._entries.has_entry(what) else (self._notes, self._entries)
        seen = [(box, box.call("memory_forget", {"what": what})) for box in boxes]
        for _, answer in seen:
            if answer.is_error and answer.content["status"] != "not_found":
                return answer
        seen = [(box, answer) for box, answer in seen if not answer.is_error]
        if not seen:
            return answers.failure(
                "memory_forget",
                "MEMORY_NOT_FOUND",
                "no note and no entry has this",
                "search or recall it first, and give its place, its id or its words",
                {"status": "not_found"},
            )
        parts = [OF_THIS_PROCESS.meaning_of(answer.content["confirm"]) for _, answer in seen]
        if confirm is not None and OF_THIS_PROCESS.take(confirm, *parts):
            return _joined([box.call("memory_forget", _confirmed(what, answer)) for box, answer in seen])
        code = OF_THIS_PROCESS.make(*parts)
        return self._preview([answer.content for _, answer in seen], code, is_wrong=confirm is not None)

    def _preview(self, seen: Sequence[Mapping[str, Any]], code: str, *, is_wrong: bool) -> ToolAnswer:
        lines = [line for part in seen for line in part.get("lines", ())]
        entries = [entry for part in seen for entry in part.get("entries", ())]
        total = sum(part.get("total", len(part.get("entries", ()))) for part in seen)
        content: dict[str, Any] = {
            "status": "preview",
            "lines": lines,
            "entries": entries,
            "total": total,
            "confirm": code,
        }
        warning = ""
        if is_wrong:
            warning = content["warning"] = wrong_code("this")
        items = [Recalled(one["path"], one["text"], one["startLine"], one["endLine"]) for one in lines]
        items += [Recalled(f"entry {one['id']}", one["text"], source="entries") for one in entries]
        told = (
            warning,
            f"Nothing was removed yet. {_places(total)} would be removed for good.",
            f"Only the first {len(items)} are shown." if len(items) < total else "",
            fence(items, new_nonce()),
            f'If the user agrees, call memory_forget again with the same `what` and "confirm": "{code}".',
        )
        return ToolAnswer(content, "\n".join(filter(None, told)), is_error=is_wrong)


def _confirmed(what: str, answer: ToolAnswer) -> dict[str, str]:
    return {"what": what, "confirm": answer.content["confirm"]}


def _joined(done: Sequence[ToolAnswer]) -> ToolAnswer:
    """Say what went; and when something did not, that and why."""
    gone = [answer.content for answer in done if answer.content["status"] == "forgotten"]
    content: dict[str, Any] = {
        "status": "forgotten",
        "total": sum(part["total"] for part in gone),
        "places": [place for part in gone for place in part.get("places", ())],
        "ids": [id_ for part in gone for id_ in part.get("ids", ())],
    }
    text = f"Removed for good: {_places(content['total'])}."
    left = next((answer for answer in done if answer.content["status"] != "forgotten"), None)
    if left is None:
        return ToolAnswer(content, text)
    why = {
        name: left.content[name] for name in ("code", "error", "action", "warning") if name in left.content
    }
    return ToolAnswer(
        {**content, **why, "status": "error"}, f"{text}\nThe rest is still there.\n{left.text}", is_error=True
    )


def _places(total: int) -> str:
    return f"{total} {'place' if total == 1 else 'places'}"


def _explained(name: str, error: PlainmindError) -> ToolAnswer:
    return answers.failure(name, code_of(error), str(error), error.hint)


class EntryHooks:
    """The entries around a turn: what is known comes before it, what was said is proposed after it."""

    def __init__(self, box: EntryToolBox, *, recalls: bool, captures: bool) -> None:
        self._box = box
        self._recalls = recalls
        self._captures = captures

    def before(self, messages: Sequence[Mapping[str, Any]], tell: Callable[[str], None]) -> str:
        """What the model is reminded of in this turn."""
        said = last_words(messages)
        return self._box.recalled_for(said, tell) if self._recalls and said else ""

    def after(self, messages: Sequence[Mapping[str, Any]], tell: Callable[[str], None]) -> None:
        """Propose what the user said in the turn that was answered just now."""
        said = last_words(messages)
        if not self._captures or not said:
            return
        try:
            proposed = self._box.capture([said])
        except PlainmindError as error:
            tell(f"what was said could not be proposed for keeping: {error}")
            return
        if proposed:
            tell("proposed for keeping; `plainmind entries review` shows it")


def last_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the user said last."""
    for message in reversed(messages):
        if message.get("role") == "user":
            return text_of(message.get("content"))
    return ""
