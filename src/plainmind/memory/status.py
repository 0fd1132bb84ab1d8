"""What is known, where it is kept, and what leaves this machine; the same facts for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.errors import PlainmindError
from plainmind.base.model import FileFailure, FileState, Source, known_sources
from plainmind.base.value import value
from plainmind.guests.chat.flushes import last_flush
from plainmind.guests.entries.status import entry_status
from plainmind.index.footprint import footprint
from plainmind.index.plan import WITHOUT_VECTORS, SyncPlan, plan_sync
from plainmind.memory.embedding_status import embedding_of
from plainmind.memory.index_status import IndexStatus, engine_of, index_of
from plainmind.memory.sizes import bounds_of, sizes_of
from plainmind.memory.wiring import Parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.notes.discovery import Discovery


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


def status_of(parts: Parts, *, deep: bool) -> Status:
    """Collect the facts without changing anything; `deep` also measures sizes and looks into every part.

    An index that cannot be asked leaves out what only it knows: None stands for that.
    """
    settings = parts.loaded.settings
    index = index_of(parts)
    known, counts = index.known, index.counts
    embedding = embedding_of(parts, index.made, deep=deep)
    identity = embedding.identity
    found = parts.workspace.discover()
    pending = _pending(parts, index, found, embedding.rebuild)
    facts: dict[str, Any] = {
        "backend": settings.backend,
        "provider": identity.provider,
        "model": identity.model,
        "requestedProvider": settings.provider,
        "files": index.files,
        "chunks": index.chunks,
        "dirty": None if pending is None else any(pending[why] for why in ("rebuild", "changed", "missing")),
        "workspaceDir": parts.workspace.path,
        "workspaceOrigin": str(parts.places.workspace.origin),
        "workspaceMissing": found.root_missing,
        "home": parts.places.home,
        "agentId": settings.agent_id,
        "dbPath": parts.places.index,
        "extraPaths": [path.path for path in settings.extra_paths],
        "sources": list(settings.sources),
        "sourceCounts": [
            {
                "source": source,
                "files": counts.files.get(source, 0),
                "chunks": counts.chunks.get(source, 0),
            }
            for source in known_sources(settings.sources)
            if index.trouble is None
        ],
        "pending": pending,
        "skipped": [_failure(failure) for failure in found.skipped],
        "cache": _cache(parts),
        "fts": {"enabled": settings.query.hybrid.enabled, "available": index.trouble is None},
        "vector": {
            "enabled": settings.store.vector_enabled,
            "available": identity.dims > 0 and index.trouble is None,
            "dims": identity.dims,
        },
        "embedding": embedding.facts,
        "fallback": embedding.fallback if parts.backend is None else parts.backend.fallback,
        "sendsTextTo": parts.embedder.sends_text_to,
        "leaves": embedding.leaves,
        "keepsTextAt": _kept_elsewhere(parts),
        "chat": _chat(parts),
        "withoutVectors": sum(state.hash.startswith(WITHOUT_VECTORS) for state in known.values()),
        "store": index.store,
        "engine": engine_of(parts, index, deep=deep),
        "lastFlush": last_flush(parts.places.sessions),
        "entries": entry_status(parts, deep=deep),
    }
    if deep:
        facts["sizes"] = sizes_of(parts)
        facts["bounds"] = bounds_of(settings)
        facts["store"]["parts"] = {} if index.trouble else dict(parts.store.sizes())
        facts["noticing"] = dict(parts.workspace.describe())
        facts["process"] = dict(footprint())
        facts["notes"] = list(parts.loaded.notes)
    return Status(facts)


def _pending(
    parts: Parts, index: IndexStatus, found: Discovery, rebuild: str | None
) -> dict[str, Any] | None:
    """What the next sync has to do; None while nobody knows what the index holds."""
    if index.trouble is not None:
        return None
    plan = plan_sync(found, index.known, parts.workspace.source)
    return {
        "rebuild": rebuild,
        "changed": _really_changed(parts, plan, index.known),
        "missing": len(plan.missing),
        "hidden": len(plan.hidden),
    }


def _really_changed(parts: Parts, plan: SyncPlan, known: Mapping[tuple[Source, str], FileState]) -> int:
    """How many files hold another text than the index: a new time stamp alone is no change."""
    count = 0
    for found in plan.to_read:
        before = known.get((parts.workspace.source, found.path))
        try:
            now = parts.workspace.read(found)[1].hash
            count += before is None or now != before.hash.removeprefix(WITHOUT_VECTORS)
        except PlainmindError:
            count += 1
    return count


def _kept_elsewhere(parts: Parts) -> str | None:
    if parts.loaded.settings.store.driver == "sqlite":
        return None
    from plainmind.memory.store_destination import store_destination

    return store_destination(parts)


def _chat(parts: Parts) -> dict[str, str | None] | None:
    if not parts.loaded.settings.guests.get(
        "chat.model"
    ):  # nothing of a chat is loaded for those who have none
        return None
    from plainmind.guests.chat.access import chat_destination

    return chat_destination(parts.loaded.settings)


def _failure(failure: FileFailure) -> dict[str, str]:
    return {"path": failure.path, "reason": failure.reason}


def _cache(parts: Parts) -> dict[str, Any]:
    settings = parts.loaded.settings.cache
    if parts.cache is None:
        why = "computing is faster than looking up" if settings.enabled else "switched off"
        return {"enabled": False, "reason": why, "maxEntries": settings.max_entries}
    return {"enabled": True, **parts.cache.describe()}
