"""What is known, where it is kept, and what leaves this machine; the same facts for people and for programs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from plainmind import __version__
from plainmind.base.errors import ConfigError, IndexCorrupt, IndexUnavailable, LockTimeout, PlainmindError
from plainmind.base.lazy import find_by_name
from plainmind.base.model import FileFailure, FileState, IndexFingerprint, Source
from plainmind.base.value import value
from plainmind.files.history import COMPACT_ABOVE_BYTES
from plainmind.index.plan import WITHOUT_VECTORS, SyncPlan, plan_sync
from plainmind.index.reader import IndexCounts
from plainmind.index.sync import NO_INDEX_YET
from plainmind.memory import translation
from plainmind.memory.providers import EmbeddingStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.embed.cache import Held, SqliteEmbeddingCache
    from plainmind.embed.succession import Choice
    from plainmind.memory.index import Index
    from plainmind.memory.memory import Memory
    from plainmind.notes.discovery import Discovery


# What guests add: facts by name, given the memory.
_GUESTS = (
    "plainmind.guests.chat.config:status_facts",
    "plainmind.guests.entries.access:status_facts",
    "plainmind.guests.rerank.reranker:status_facts",
    "plainmind.guests.upkeep.desk:status_facts",
)
# Which host holds the index, told by the guest that keeps it.
_DESTINATIONS = {
    "lancedb": "plainmind.guests.lancedb.config:destination",
    "postgres": "plainmind.guests.postgres.config:destination",
}


@value
class Status:
    """The state of one memory. `as_dict` uses the names that other programs of this kind use."""

    facts: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """Give one fact by its name."""
        return self.facts[name]

    def as_dict(self) -> dict[str, Any]:
        """All facts, ready for JSON."""
        return dict(self.facts)


def status_of(memory: Memory, *, deep: bool) -> Status:
    """Collect the facts without changing anything; `deep` also measures sizes and looks into every part.

    An index that cannot be asked leaves out what only it knows: None stands for that.
    """
    chosen = translation.status_facts(memory.settings)
    index = index_of(memory.index)
    known, counts = index.known, index.counts
    embedding = embedding_of(memory, index.made, deep=deep)
    identity = embedding.identity
    found = memory.notes.workspace.discover()
    pending = _pending(memory, index, found, embedding.rebuild)
    facts: dict[str, Any] = {
        "backend": chosen["backend"],
        "provider": identity.provider,
        "model": identity.model,
        "requestedProvider": chosen["requestedProvider"],
        "files": index.files,
        "chunks": index.chunks,
        "dirty": None if pending is None else any(pending[why] for why in ("rebuild", "changed", "missing")),
        "workspaceDir": memory.notes.workspace.path,
        "workspaceOrigin": str(memory.places.workspace.origin),
        "workspaceMissing": found.root_missing,
        "home": memory.places.home,
        "agentId": chosen["agentId"],
        "dbPath": memory.places.index,
        "extraPaths": chosen["extraPaths"],
        "sources": list(memory.sources),
        "sourceCounts": [
            {
                "source": source,
                "files": counts.files.get(source, 0),
                "chunks": counts.chunks.get(source, 0),
            }
            for source in memory.index.sources
            if index.trouble is None
        ],
        "pending": pending,
        "skipped": [_failure(failure) for failure in found.skipped],
        "missingNotes": [
            {"id": note.id, "path": note.path, "at": note.at} for note in memory.missing_notes()
        ],
        "cache": _cache(memory.index),
        "fts": {"enabled": chosen["keywords"], "available": index.trouble is None},
        "vector": {
            "enabled": chosen["vectors"],
            "available": identity.dims > 0 and index.trouble is None,
            "dims": identity.dims,
        },
        "embedding": embedding.facts,
        "fallback": embedding.fallback if memory.index.backend is None else memory.index.backend.fallback,
        "sendsTextTo": memory.index.embedder.sends_text_to,
        "leaves": embedding.leaves,
        "keepsTextAt": _kept_elsewhere(memory.index),
        "withoutVectors": sum(state.hash.startswith(WITHOUT_VECTORS) for state in known.values()),
        "store": index.store,
        "engine": engine_of(memory.index, index, deep=deep),
    }
    for guest in _GUESTS:
        facts |= find_by_name(guest)(memory, deep=deep)
    if deep:
        facts["sizes"] = sizes_of(memory)
        facts["bounds"] = bounds_of(memory)
        facts["store"]["parts"] = {} if index.trouble else dict(memory.index.store.sizes())
        facts["noticing"] = dict(memory.notes.workspace.describe())
        facts["process"] = dict(footprint())
        facts["notes"] = list(memory.remarks)
    return Status(facts)


def _pending(
    memory: Memory, index: IndexStatus, found: Discovery, rebuild: str | None
) -> dict[str, Any] | None:
    """What the next sync has to do; None while it is not known what the index holds."""
    if index.trouble is not None:
        return None
    plan = plan_sync(found, index.known, memory.notes.workspace.source)
    return {
        "rebuild": rebuild,
        "changed": _really_changed(memory, plan, index.known),
        "missing": len(plan.missing),
        "hidden": len(plan.hidden),
    }


def _really_changed(memory: Memory, plan: SyncPlan, known: Mapping[tuple[Source, str], FileState]) -> int:
    """How many files hold another text than the index: a new time stamp alone is no change."""
    count = 0
    for found in plan.to_read:
        before = known.get((memory.notes.workspace.source, found.path))
        try:
            now = memory.notes.workspace.read(found)[1].hash
            count += before is None or now != before.hash.removeprefix(WITHOUT_VECTORS)
        except PlainmindError:
            count += 1
    return count


def _kept_elsewhere(index: Index) -> str | None:
    """The host or bucket that holds the index; None when it is on this machine, or nowhere that could be read."""
    if index.values.driver not in _DESTINATIONS:
        return None
    try:
        found: str | None = find_by_name(_DESTINATIONS[index.values.driver])(index.values.options)
    except ConfigError:
        return None  # nothing is sent there either
    return found


def _failure(failure: FileFailure) -> dict[str, str]:
    return {"path": failure.path, "reason": failure.reason}


def _cache(index: Index) -> dict[str, Any]:
    values = index.values.cache
    if index.cache is None:
        why = "computing is faster than looking up" if values.enabled else "switched off"
        return {"enabled": False, "reason": why, "maxEntries": values.max_entries}
    return {"enabled": True, **index.cache.describe()}


def embedding_of(memory: Memory, made: IndexFingerprint | None, *, deep: bool) -> EmbeddingStatus:
    """Who embeds, why that one, and which text leaves this machine."""
    index = memory.index
    if index.providers is not None:
        return index.providers.status(index, made, deep=deep)
    return EmbeddingStatus(
        index.embedder.identity,
        NO_INDEX_YET if made is None else made.difference(index.indexer.fingerprint),
        facts_of_choice(memory.choice_of_provider()),
        leaves=[],
        fallback=None,
    )


def facts_of_choice(choice: Choice) -> dict[str, Any]:
    """Say who embeds and why, and who could not."""
    return {
        "chosen": choice.provider,
        "why": choice.why,
        "passedOver": [
            {"provider": over.provider, "reason": over.reason, "configured": over.is_configured}
            for over in choice.passed_over
        ],
    }


@value
class IndexStatus:
    """What could be found out about the index."""

    known: Mapping[tuple[Source, str], FileState]
    counts: IndexCounts
    made: IndexFingerprint | None
    store: dict[str, Any]
    trouble: IndexUnavailable | LockTimeout | None = None  # nothing of the above is known then

    @property
    def files(self) -> int | None:
        """How many files are indexed; None while that is not known: an index that cannot be asked is not empty."""
        return None if self.trouble else sum(self.counts.files.values())

    @property
    def chunks(self) -> int | None:
        """How many chunks are indexed; None while that is not known."""
        return None if self.trouble else sum(self.counts.chunks.values())


def index_of(index: Index) -> IndexStatus:
    """Ask the index once: a server that is gone takes seconds to be given up."""
    try:
        with index.store.reading() as reader:
            known, counts, made = reader.files(), reader.counts(), reader.fingerprint()
        return IndexStatus(known, counts, made, dict(index.store.describe()))
    except IndexCorrupt:
        raise  # it is set aside, and who asks again is answered
    except (IndexUnavailable, LockTimeout) as error:
        facts = {"driver": index.values.driver, "problem": str(error), "hint": error.hint}
        return IndexStatus({}, IndexCounts(files={}, chunks={}), None, facts, error)


def engine_of(index: Index, status: IndexStatus, *, deep: bool) -> dict[str, Any]:
    """Who indexes and searches, which version, and whether it works."""
    if index.backend is not None:
        return dict(index.backend.describe(deep=deep))
    driver = index.values.driver
    if status.trouble is not None:
        name = "builtin" if driver == "sqlite" else driver
        return {"name": name, "version": None, "healthy": False, **_reason(status.store)}
    if driver == "sqlite":
        return {"name": "builtin", "version": __version__, "healthy": True}
    return {"name": driver, "version": status.store.get(driver), "healthy": True}


def _reason(store: Mapping[str, Any]) -> dict[str, Any]:
    return {"problem": store["problem"], "hint": store["hint"]}


def sizes_of(memory: Memory) -> dict[str, int]:
    """Measure what is on disk, in bytes; what is not there takes none."""
    places = memory.places
    return {
        "workspaceBytes": sum(found.size for found in memory.notes.workspace.discover().files),
        "transcriptsBytes": sum(
            found.size
            for source in memory.index.more_sources
            if source.source == "sessions"
            for found in source.discover().files
        ),
        "indexBytes": bytes_under(places.index),
        "cacheBytes": bytes_under(places.cache) + bytes_under(places.cache + "-wal"),
        "historyBytes": bytes_under(places.history),
        "tombstonesBytes": bytes_under(places.tombstones),
    }


def bounds_of(memory: Memory) -> dict[str, int]:
    """How large each may grow before old things go, by the same names.

    Neither the workspace nor transcripts are here: they are not ours to cut; nor is the index, which follows them.
    """
    return {
        "cacheBytes": memory.index.values.cache.max_bytes,
        "historyBytes": memory.notes.values.history_bytes,
        "tombstonesBytes": COMPACT_ABOVE_BYTES,  # more only within the day that they are needed
    }


def bytes_under(path: str) -> int:
    """How much space a file, or all files of a folder, take; what vanishes meanwhile counts nothing."""
    if os.path.isfile(path):
        return os.path.getsize(path)
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue
    return total


def footprint() -> Mapping[str, int]:
    """What this process takes of the system, with bounds where there are any; what is not told is left out."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    facts = {"threads": threading.active_count()}
    # Listing it opens one more.
    facts |= _listed("openFiles", "/proc/self/fd", less=1) or _listed("openFiles", "/dev/fd", less=1)
    if soft != resource.RLIM_INFINITY:
        facts["maxOpenFiles"] = soft
    return (
        facts | _resident() | {"peakResidentBytes": _peak(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)}
    )


def _listed(name: str, folder: str, *, less: int) -> dict[str, int]:
    try:
        return {name: len(os.listdir(folder)) - less}
    except OSError:
        return {}


def _resident() -> dict[str, int]:
    try:
        with open("/proc/self/statm", "rb") as file:
            return {"residentBytes": int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")}
    except OSError:
        return {}


def _peak(max_rss: int) -> int:
    """Linux counts kilobytes, macOS bytes."""
    import sys

    return max_rss if sys.platform == "darwin" else max_rss * 1024


# --- the cache of embeddings ---


@value
class CacheStats:
    """What the cache holds, by who made it, and how much it may hold."""

    path: str
    is_used: bool  # by the provider that is chosen now
    held: tuple[Held, ...]
    file_bytes: int
    max_entries: int
    max_bytes: int

    @property
    def entries(self) -> int:
        """How many vectors there are."""
        return sum(held.entries for held in self.held)

    @property
    def bytes(self) -> int:
        """How much the vectors take by themselves."""
        return sum(held.bytes for held in self.held)


def cache_stats(values: translation.CacheValues, *, is_used: bool) -> CacheStats:
    """Look at the cache of an agent; `is_used` by the provider that is chosen now."""
    with open_cache(values) as cache:
        held = tuple(cache.contents())
    return CacheStats(
        values.path,
        is_used=is_used,
        held=held,
        file_bytes=bytes_under(values.path) + bytes_under(values.path + "-wal"),
        max_entries=values.max_entries,
        max_bytes=values.max_bytes,
    )


@contextmanager
def open_cache(values: translation.CacheValues) -> Iterator[SqliteEmbeddingCache]:
    """Open the cache, which is there even where the provider of today does not use it."""
    from plainmind.embed.cache import SqliteEmbeddingCache

    cache = SqliteEmbeddingCache(values.path, max_entries=values.max_entries, max_bytes=values.max_bytes)
    try:
        yield cache
    finally:
        cache.close()
