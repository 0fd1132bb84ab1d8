"""LangGraph: its long-term store as Markdown files, one an item, which people read and every search finds.

    graph = builder.compile(store=PlainmindStore("~/notes"))

An item is `memory/store/<namespace>/<key>.md`: its value as JSON, with its name and its times above it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Self, TypeAlias

from plainmind.agent.scope import NOTHING, SearchContext
from plainmind.base.errors import ConflictError, NotFound, PlainmindError, ScopeDenied
from plainmind.base.model import sha256_text
from plainmind.base.value import value
from plainmind.guests.integrations.framework import FrameworkMemory, FrameworkMissing, Given, in_thread
from plainmind.notes.memory_files import MemoryFiles
from plainmind.notes.scopes import folder_of_scope

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        PutOp,
        SearchItem,
        SearchOp,
    )
except ImportError as error:
    raise FrameworkMissing("LangGraph", "langgraph", error) from error

Namespace: TypeAlias = "tuple[str, ...]"

FOLDER = "store"
_TRIES = 8  # with others who write the same item
_MOST_NAME = 100
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@+-")
_CANDIDATES = 4  # hits for each item that is wanted: an item may be hit more than once, or be filtered out


@value
class Kept:
    """An item as its file says it."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    created: datetime
    updated: datetime
    is_searched: bool = True


class PlainmindStore(BaseStore):
    """A `BaseStore` over a memory. Items never expire; all text of a value is searched, whatever `index` names.

    What comes back is what was put, exactly: data for the program. A model should read it through the memory's tools,
    or fenced by `plainmind.agent.recall.fence`.
    """

    __slots__ = ("_files", "_folder", "mine")

    def __init__(self, memory: Given = None, *, context: SearchContext | None = None) -> None:
        self.mine = FrameworkMemory(memory, "langgraph", context)
        access = self.mine.mine.access
        top = "memory" if access.sees_everything else folder_of_scope(access.writes)
        if access.writes == NOTHING or top is None:
            raise ScopeDenied(
                "a store needs a place to write to, and here there is none",
                hint="give the SearchContext of the owner, a person or a group",
            )
        self._folder = f"{top}/{FOLDER}"
        notes = self.mine.memory.notes
        self._files = MemoryFiles(
            notes.workspace,
            notes.history,
            erasures=notes.erasures,
            state_dir=self.mine.memory.places.state,
            folder=self._folder,
        )

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Carry out operations in their order."""
        return [self._answer(op) for op in ops]

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Carry out operations in their order, beside the event loop."""
        return await in_thread(self.batch, list(ops))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the memory if it was opened here."""
        self.mine.close()

    def _answer(self, op: Any) -> Any:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, PutOp):
            return self._put(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        raise PlainmindError(
            f"`{type(op).__name__}` is no operation of a store",
            hint="use GetOp, PutOp, SearchOp or ListNamespacesOp",
        )

    # --- one item ---

    def _get(self, op: Any) -> Item | None:
        kept = self._read(name_of(op.namespace, op.key))
        return None if kept is None else Item(**_fields(kept))

    def _put(self, op: Any) -> None:
        self.mine.memory.require_place_for_notes()
        name = name_of(op.namespace, op.key)
        for _ in range(_TRIES):
            try:
                self._write(name, op)
            except (ConflictError, NotFound):
                continue  # others wrote it meanwhile: the last one to write wins
            return
        self._write(name, op)

    def _write(self, name: str, op: Any) -> None:
        is_there = self._files.is_folder(name) is False
        if op.value is None:
            if is_there:
                self._files.delete(name)
            return
        now = datetime.now(UTC)
        before = self._files.read(name) if is_there else None
        kept = item_in(before.text) if before is not None else None
        created = now if kept is None else kept.created
        text = text_of(
            Kept(tuple(op.namespace), op.key, op.value, created, now, is_searched=op.index is not False)
        )
        if before is None:
            self._files.create(name, text)
        else:
            self._files.rewrite(name, text, base_hash=before.hash, reason="store")

    def _read(self, name: str) -> Kept | None:
        try:
            return item_in(self._files.read(name).text)
        except NotFound:
            return None

    # --- many items ---

    def _search(self, op: Any) -> list[SearchItem]:
        found = self._ranked(op) if op.query else ((kept, None) for kept in self._newest(op.namespace_prefix))
        matching = [
            SearchItem(**_fields(kept), score=score)
            for kept, score in found
            if _passes(kept.value, op.filter)
        ]
        return matching[op.offset : op.offset + op.limit]

    def _ranked(self, op: Any) -> Iterator[tuple[Kept, float | None]]:
        wanted = max(24, _CANDIDATES * (op.offset + op.limit))
        below = "/".join((self._folder, *map(_escaped, op.namespace_prefix), "**"))
        best: dict[str, float] = {}
        for hit in self.mine.mine.search(op.query, max_results=wanted, paths=(below,), deep=False).hits:
            best[hit.path] = max(hit.score, best.get(hit.path, 0.0))
        for path, score in sorted(best.items(), key=lambda pair: -pair[1]):
            kept = self._read(path.removeprefix(self._folder + "/"))
            if kept is not None and kept.is_searched:
                yield kept, score

    def _newest(self, prefix: Namespace) -> list[Kept]:
        return sorted(self._below(prefix), key=lambda kept: (kept.updated, kept.key), reverse=True)

    def _below(self, prefix: Namespace) -> Iterator[Kept]:
        folder = "/".join(map(_escaped, prefix))
        if self._files.is_folder(folder) is not True:
            return
        for entry in self._files.entries(folder, depth=64):
            kept = None if entry.is_folder else self._read(f"{folder}/{entry.name}".lstrip("/"))
            if kept is not None:
                yield kept

    def _namespaces(self, op: Any) -> list[Namespace]:
        found = {kept.namespace for kept in self._below(())}
        for condition in op.match_conditions or ():
            found = {one for one in found if _matches(one, condition)}
        if op.max_depth is not None:
            found = {one[: op.max_depth] for one in found}
        return sorted(found)[op.offset : op.offset + op.limit]


# --- files ---


def name_of(namespace: Namespace, key: str) -> str:
    """The file of an item, in the folder of the store."""
    return "/".join((*map(_escaped, namespace), f"{_escaped(key)}.md"))


def _escaped(name: str) -> str:
    """A name of a file or folder that no other name has; the file itself says what it stands for."""
    safe = "".join(
        sign if sign in _SAFE else "".join(f"%{byte:02X}" for byte in sign.encode("utf-8", "surrogatepass"))
        for sign in name
    )
    return safe if len(safe) <= _MOST_NAME else f"{safe[:_MOST_NAME]}%-{sha256_text(name)[:16]}"


def text_of(kept: Kept) -> str:
    """An item as its file says it. Raises PlainmindError for a value that is not JSON."""
    try:
        written = json.dumps(kept.value, ensure_ascii=False, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PlainmindError(
            f"the value of `{kept.key[:60]}` cannot be kept: {error}",
            hint="give a dictionary of texts, numbers, lists and dictionaries",
        ) from error
    head = [
        "---",
        f"namespace: {json.dumps(kept.namespace, ensure_ascii=False)}",
        f"key: {json.dumps(kept.key, ensure_ascii=False)}",
        f"created: {kept.created.isoformat()}",
        f"updated: {kept.updated.isoformat()}",
        *([] if kept.is_searched else ["searched: false"]),
        "---",
    ]
    return "\n".join([*head, "", "```json", written, "```", ""])


def item_in(text: str) -> Kept | None:
    """The item that a file says; None when it says none, for a person may have written it."""
    head, _, body = text.removeprefix("---\n").partition("\n---\n")
    facts = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    written = body.partition("```json\n")[2].rpartition("\n```")[0]
    try:
        return Kept(
            tuple(json.loads(facts["namespace"])),
            json.loads(facts["key"]),
            json.loads(written),
            datetime.fromisoformat(facts["created"]),
            datetime.fromisoformat(facts["updated"]),
            facts.get("searched") != "false",
        )
    except (KeyError, ValueError, TypeError):
        return None


def _fields(kept: Kept) -> dict[str, Any]:
    return {
        "namespace": kept.namespace,
        "key": kept.key,
        "value": dict(kept.value),
        "created_at": kept.created,
        "updated_at": kept.updated,
    }


# --- filters ---

_COMPARISONS = {
    "$eq": lambda one, other: one == other,
    "$ne": lambda one, other: one != other,
    "$gt": lambda one, other: one > other,
    "$gte": lambda one, other: one >= other,
    "$lt": lambda one, other: one < other,
    "$lte": lambda one, other: one <= other,
}


def _passes(found: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(_is_as(found.get(name), each) for name, each in (wanted or {}).items())


def _is_as(found: Any, wanted: Any) -> bool:
    """Whether a value is what a filter says: an equal one, or one that all its comparisons hold for."""
    if isinstance(wanted, Mapping) and any(name.startswith("$") for name in wanted):
        unknown = [name for name in wanted if name not in _COMPARISONS]
        if unknown:
            raise PlainmindError(
                f"a filter cannot compare by `{unknown[0]}`", hint=f"use one of {', '.join(_COMPARISONS)}"
            )
        if found is None and not wanted.keys() <= {"$eq", "$ne"}:
            return False
        return all(_COMPARISONS[name](found, other) for name, other in wanted.items())
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and _passes(found, wanted)
    return bool(found == wanted)


def _matches(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wanted in {"*", found} for found, wanted in zip(part, path, strict=True))
