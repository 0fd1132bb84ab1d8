"""The entry memory in the shape of mem0's `Memory`: a program written for that one changes its import.

    from plainmind.guests.integrations.mem0 import Memory

    memory = Memory("~/notes")
    memory.add("I prefer tea over coffee", user_id="anna")
    memory.search("what does Anna drink?", filters={"user_id": "anna"})

What is added is kept in its own words: no model makes facts of it, and no key is needed. A user is a person here, whom
nobody else's memories are shown to; who is not named is the owner. mem0 itself is not imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from plainmind.agent.recall import without_recalled
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.lazy import RLock
from plainmind.base.model import sha256_text
from plainmind.guests.integrations.framework import FrameworkMemory, Given

_PROGRAM = "mem0"
_IDS = ("user_id", "agent_id", "run_id")
_USUAL = 20


class Memory:
    """What mem0's `Memory` does, over the entries of a workspace. Safe to share between threads."""

    def __init__(self, memory: Given = None) -> None:
        self._owner = FrameworkMemory(memory, _PROGRAM)
        self._guard = RLock()
        self._people: dict[str, FrameworkMemory] = {}

    def add(
        self,
        messages: str | Mapping[str, str] | Sequence[Mapping[str, str]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        **_: Any,
    ) -> dict[str, Any]:
        """Keep what was said, one memory a message; what the same user's memory says already is not kept twice.

        With `infer` only what a user said is kept, as mem0's model would look at it; without, every message.
        """
        ids = _ids(user_id=user_id, agent_id=agent_id, run_id=run_id)
        mine = self._of(ids.get("user_id"))
        results = []
        for role, text in _said(messages):
            clean = without_recalled(text).strip()
            if not clean or role == "system" or (infer and role != "user"):
                continue
            details = {**ids, "role": role, "metadata": dict(metadata or {})}
            stored = mine.entries.store(
                clean, scope=mine.mine.access.writes, anyway=not infer, details={_PROGRAM: details}
            )
            if stored.entry is not None:
                results.append({"id": stored.entry.id, "memory": stored.entry.text, "event": "ADD"})
        return {"results": results}

    def search(
        self,
        query: str,
        *,
        top_k: int = _USUAL,
        filters: Mapping[str, Any] | None = None,
        threshold: float = 0.1,
        **more: Any,
    ) -> dict[str, Any]:
        """Memories that answer a question, best first, of whom `filters` names."""
        ids, wanted = _filters(filters, more)
        mine = self._of(ids.get("user_id"))
        found = mine.entries.recall(query, scopes=_own(mine), limit=max(50, 5 * top_k), min_score=threshold)
        results = [
            {**_memory(each.entry), "score": each.score}
            for each in found.found
            if _matches(each.entry, ids, wanted)
        ]
        return {"results": results[:top_k]}

    def get_all(
        self, *, filters: Mapping[str, Any] | None = None, top_k: int = _USUAL, **more: Any
    ) -> dict[str, Any]:
        """The memories of whom `filters` names, the newest first."""
        ids, wanted = _filters(filters, more)
        mine = self._of(ids.get("user_id"))
        found = (entry for entry in mine.entries.list(scopes=_own(mine)) if _matches(entry, ids, wanted))
        return {"results": [_memory(entry) for entry in found][:top_k]}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """One memory; None when there is none."""
        try:
            return _memory(self._entry(memory_id))
        except NotFound:
            return None

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        data: str | None = None,
    ) -> dict[str, str]:
        """Say a memory otherwise; it keeps its id, and `history` knows what it was."""
        new = text if text is not None else data
        if new is None and metadata is None:
            raise PlainmindError("nothing is said that should change", hint="give `text` or `metadata`")
        entry = self._entry(memory_id)
        facts = dict(_facts(entry))
        now = datetime.now(UTC).isoformat()
        if new is not None:
            facts["history"] = [*facts.get("history", ()), {"was": entry.text, "until": now}]
        if metadata is not None:
            facts["metadata"] = {**facts.get("metadata", {}), **metadata}
        facts["updated_at"] = now
        self._owner.entries.change(
            memory_id, scopes=self._owner.mine.access.scopes, text=new, details={_PROGRAM: facts}
        )
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Remove a memory for good. Raises NotFound."""
        self._owner.entries.forget([memory_id], scopes=self._owner.mine.access.scopes)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:
        """Remove all memories of somebody for good."""
        ids = _ids(user_id=user_id, agent_id=agent_id, run_id=run_id)
        if not ids:
            raise PlainmindError(
                "whose memories are to be deleted is not said", hint="give `user_id`, `agent_id` or `run_id`"
            )
        mine = self._of(ids.get("user_id"))
        gone = [entry.id for entry in mine.entries.list(scopes=_own(mine)) if _matches(entry, ids, {})]
        if gone:
            mine.entries.forget(gone, scopes=_own(mine))
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """What a memory was, oldest first."""
        entry = self._entry(memory_id)
        before = _facts(entry).get("history", [])
        texts = [one["was"] for one in before] + [entry.text]
        times = [_time(entry.created_at), *(one["until"] for one in before)]
        return [
            {
                "memory_id": memory_id,
                "old_memory": texts[number - 1] if number else None,
                "new_memory": text,
                "event": "UPDATE" if number else "ADD",
                "created_at": times[number],
            }
            for number, text in enumerate(texts)
        ]

    def reset(self) -> None:
        """Refuse: a memory that is files is not removed wholesale."""
        raise PlainmindError(
            "the memory is not reset as a whole",
            hint="`delete_all(user_id=…)` removes what is somebody's; `plainmind entries forget` what you name",
        )

    def close(self) -> None:
        """Close the memory if it was opened here."""
        for person in self._people.values():
            person.close()
        self._owner.close()

    def _of(self, user_id: str | None) -> FrameworkMemory:
        if user_id is None:
            return self._owner
        with self._guard:
            if user_id not in self._people:
                self._people[user_id] = self._owner.of_person(user_id)
            return self._people[user_id]

    def _entry(self, memory_id: str) -> Any:
        return self._owner.entries.get(memory_id, scopes=self._owner.mine.access.scopes)


def _ids(**given: str | None) -> dict[str, str]:
    return {name: each.strip() for name, each in given.items() if each and each.strip()}


def _filters(
    filters: Mapping[str, Any] | None, more: Mapping[str, Any]
) -> tuple[dict[str, str], Mapping[str, Any]]:
    """Whose memories are meant, and what else must be so; ids beside `filters` are understood, as mem0 once did."""
    given = {**{name: more[name] for name in _IDS if more.get(name)}, **(filters or {})}
    ids = _ids(**{name: given.pop(name) for name in _IDS if name in given})
    return ids, given


def _own(mine: FrameworkMemory) -> frozenset[str]:
    return frozenset({mine.mine.access.writes})


def _matches(entry: Any, ids: Mapping[str, str], wanted: Mapping[str, Any]) -> bool:
    facts = _facts(entry)
    kept = facts.get("metadata", {})
    return all(facts.get(name) == each for name, each in ids.items() if name != "user_id") and all(
        kept.get(name) == each for name, each in wanted.items()
    )


def _facts(entry: Any) -> Mapping[str, Any]:
    found = (entry.details or {}).get(_PROGRAM, {})
    return found if isinstance(found, Mapping) else {}


def _memory(entry: Any) -> dict[str, Any]:
    facts = _facts(entry)
    return {
        "id": entry.id,
        "memory": entry.text,
        "hash": sha256_text(entry.text),
        "metadata": facts.get("metadata") or None,
        "created_at": _time(entry.created_at),
        "updated_at": facts.get("updated_at"),
        **{name: facts[name] for name in (*_IDS, "role") if name in facts},
    }


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


def _said(messages: str | Mapping[str, str] | Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    if isinstance(messages, str):
        yield "user", messages
        return
    for message in [messages] if isinstance(messages, Mapping) else messages:
        content = message.get("content")
        if isinstance(content, str):
            yield str(message.get("role", "user")), content
