"""CrewAI: a storage for its memory, over our entries: one JSON line a record, found by meaning and by word.

    storage = PlainmindStorage("~/notes")
    crew = Crew(…, memory=Memory(storage=storage, embedder=storage.embedder))

CrewAI hands a storage vectors and no words. With `storage.embedder` they are ours, made on this machine, and the
storage knows which words a vector stands for: so words count in a search, too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from plainmind.agent.scope import SearchContext
from plainmind.base.errors import NotFound, PlainmindError, ScopeDenied
from plainmind.base.lazy import RLock
from plainmind.guests.integrations.framework import FrameworkMemory, FrameworkMissing, Given, in_thread

try:
    from crewai.memory.types import MemoryRecord, ScopeInfo
except ImportError as error:
    raise FrameworkMissing("CrewAI", "crewai", error) from error

_PROGRAM = "crewai"
_MOST_TEXTS = 1_000  # that vectors were made of lately
_CANDIDATES = 5  # entries that are looked at for each record that is wanted: some are filtered out


class Embedder:
    """Makes vectors on this machine, and remembers for a while of which words."""

    def __init__(self, mine: FrameworkMemory) -> None:
        self._mine = mine
        self._guard = RLock()
        self._texts: OrderedDict[tuple[float, ...], str] = OrderedDict()

    def __call__(self, input: Sequence[str]) -> list[list[float]]:  # noqa: A002 (as CrewAI calls it)
        """Vectors of some texts."""
        made = []
        for vector in self._mine.memory.embedder.embed_documents(list(input)):
            if vector is None:
                raise PlainmindError(
                    "the memory makes no vectors, which CrewAI's needs",
                    hint="`plainmind config set provider builtin` lets this machine make them",
                )
            made.append(list(map(float, vector)))
        with self._guard:
            for numbers, text in zip(made, input, strict=True):
                self._texts[tuple(numbers)] = text
            while len(self._texts) > _MOST_TEXTS:
                self._texts.popitem(last=False)
        return made

    def text_of(self, vector: Sequence[float]) -> str:
        """The words that a vector was made of."""
        with self._guard:
            text = self._texts.get(tuple(map(float, vector)))
        if text is None:
            raise PlainmindError(
                "that vector was not made by this storage's embedder",
                hint="give CrewAI's memory both: Memory(storage=storage, embedder=storage.embedder)",
            )
        return text


class PlainmindStorage:
    """A `StorageBackend` of CrewAI. Its records are entries of the memory, also found by `plainmind entries recall`."""

    def __init__(self, memory: Given = None, *, context: SearchContext | None = None) -> None:
        self.mine = FrameworkMemory(memory, _PROGRAM, context)
        if not self.mine.writes:
            self.mine.close()
            raise ScopeDenied(
                "a storage needs a place to write to, and here there is none",
                hint="give the SearchContext of the owner, a person or a group",
            )
        self.embedder = Embedder(self.mine)
        self.write_lock = RLock()  # older versions of CrewAI hold it while they change several records
        self._scope = self.mine.mine.access.writes

    def save(self, records: list[MemoryRecord]) -> None:
        """Keep records, on the disk when this returns; one that is there under its id is replaced."""
        for record in records:
            try:
                self.update(record)
            except NotFound:
                self._entries.store(
                    record.content,
                    scope=self._scope,
                    importance=record.importance,
                    anyway=True,
                    id=record.id,
                    details=_details(record),
                )

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with the same id. Raises NotFound."""
        self._entries.change(
            record.id,
            scopes=self._scopes,
            text=record.content,
            importance=record.importance,
            details=_details(record),
        )

    def search(  # noqa: PLR0917 (as CrewAI calls it)
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Records that answer the words of a vector, best first, each with a score from 0 to 1."""
        query = self.embedder.text_of(query_embedding)
        is_wanted = _filter(scope_prefix, categories, metadata_filter)
        found = self._entries.recall(
            query, scopes=self._scopes, limit=max(50, _CANDIDATES * limit), min_score=max(min_score, 0.0)
        )
        matches = (
            (record, each.score) for each in found.found if (record := _record(each.entry)) is not None
        )
        return [(record, score) for record, score in matches if is_wanted(record)][:limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Remove the records that all that is given is true of, for good; how many."""
        is_wanted = _filter(scope_prefix, categories, metadata_filter)
        gone = [
            record.id
            for record in self._records()
            if is_wanted(record)
            and (record_ids is None or record.id in record_ids)
            and (older_than is None or record.created_at < older_than)
        ]
        if gone:
            self._entries.forget(gone, scopes=self._scopes)
        return len(gone)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """One record; None when there is none."""
        try:
            return _record(self._entries.get(record_id, scopes=self._scopes))
        except NotFound:
            return None

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """The records of a scope and those below it, the newest first."""
        is_wanted = _filter(scope_prefix, None, None)
        found = [record for record in self._records() if is_wanted(record)]
        found.sort(key=lambda record: record.created_at, reverse=True)
        return found[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """How many records a scope has, of which categories, and which scopes are in it."""
        records = self.list_records(scope, limit=1_000_000)
        times = [record.created_at for record in records]
        return ScopeInfo(
            path=scope,
            record_count=len(records),
            categories=sorted({category for record in records for category in record.categories}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """The scopes right below one."""
        top = parent.rstrip("/") + "/"
        below = (record.scope.rstrip("/") for record in self._records())
        return sorted({top + one.removeprefix(top).split("/")[0] for one in below if one.startswith(top)})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """The categories in a scope, each with how many records have it."""
        counts: dict[str, int] = {}
        for record in self.list_records(scope_prefix, limit=1_000_000):
            for category in record.categories:
                counts[category] = counts.get(category, 0) + 1
        return counts

    def count(self, scope_prefix: str | None = None) -> int:
        """How many records a scope and those below it have."""
        return len(self.list_records(scope_prefix, limit=1_000_000))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Remove all records of CrewAI in a scope; other entries of the memory stay."""
        self.delete(scope_prefix=scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Keep records, beside the event loop."""
        await in_thread(self.save, records)

    async def asearch(self, query_embedding: list[float], **wanted: Any) -> list[tuple[MemoryRecord, float]]:
        """Search, beside the event loop."""
        return await in_thread(self.search, query_embedding, **wanted)

    async def adelete(self, **wanted: Any) -> int:
        """Remove records, beside the event loop."""
        return await in_thread(self.delete, **wanted)

    def close(self) -> None:
        """Close the memory if it was opened here."""
        self.mine.close()

    @property
    def _entries(self) -> Any:
        return self.mine.entries

    @property
    def _scopes(self) -> frozenset[str]:
        return frozenset({self._scope})

    def _records(self) -> Iterator[MemoryRecord]:
        for entry in self._entries.list(scopes=self._scopes):
            record = _record(entry)
            if record is not None:
                yield record


def _details(record: MemoryRecord) -> dict[str, Any]:
    """What an entry has no place of its own for."""
    facts = record.model_dump(mode="json", exclude={"id", "content", "importance", "embedding"})
    return {_PROGRAM: facts}


def _record(entry: Any) -> MemoryRecord | None:
    """The record that an entry is; None for one that did not come from CrewAI."""
    facts = (entry.details or {}).get(_PROGRAM)
    if not isinstance(facts, Mapping):
        return None
    return MemoryRecord(id=entry.id, content=entry.text, importance=entry.importance, **facts)


def _filter(
    scope_prefix: str | None, categories: list[str] | None, metadata: Mapping[str, Any] | None
) -> Callable[[MemoryRecord], bool]:
    top = (scope_prefix or "/").rstrip("/")

    def is_wanted(record: MemoryRecord) -> bool:
        scope = record.scope.rstrip("/")
        return (
            (scope == top or scope.startswith(top + "/") or not top)
            and (not categories or not set(categories).isdisjoint(record.categories))
            and all(record.metadata.get(name) == each for name, each in (metadata or {}).items())
        )

    return is_wanted
