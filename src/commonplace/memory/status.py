"""What is known, where it is kept, and what leaves this machine; the same facts for people and for programs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commonplace.errors import CommonplaceError
from commonplace.indexing.plan import SyncPlan, plan_sync
from commonplace.memory.wiring import Parts
from commonplace.model import FileFailure, FileState, Source, known_sources


@dataclass(frozen=True, slots=True)
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
    """Collect the facts without changing anything; `deep` also measures sizes and looks into every part."""
    settings = parts.loaded.settings
    identity = parts.embedder.identity
    with parts.store.reading() as reader:
        known, counts, made = reader.files(), reader.counts(), reader.fingerprint()
    found = parts.workspace.discover()
    plan = plan_sync(found, known, parts.workspace.source)
    changed = _really_changed(parts, plan, known)
    rebuild = "there is no index yet" if made is None else made.difference(parts.indexer.fingerprint)
    facts: dict[str, Any] = {
        "backend": settings.backend,
        "provider": identity.provider,
        "model": identity.model,
        "requestedProvider": settings.provider,
        "files": sum(counts.files.values()),
        "chunks": sum(counts.chunks.values()),
        "dirty": bool(rebuild or changed or plan.missing),
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
        ],
        "pending": {
            "rebuild": rebuild,
            "changed": changed,
            "missing": len(plan.missing),
            "hidden": len(plan.hidden),
        },
        "skipped": [_failure(failure) for failure in found.skipped],
        "cache": _cache(parts),
        "fts": {"enabled": settings.query.hybrid.enabled, "available": True},
        "vector": {
            "enabled": settings.store.vector_enabled,
            "available": identity.dims > 0,
            "dims": identity.dims,
        },
        "fallback": None,
        "sendsTextTo": parts.embedder.sends_text_to,
        "store": dict(parts.store.describe()),
    }
    if deep:
        facts["sizes"] = _sizes(parts)
        facts["notes"] = list(parts.loaded.notes)
    return Status(facts)


def _really_changed(parts: Parts, plan: SyncPlan, known: Mapping[tuple[Source, str], FileState]) -> int:
    """How many files hold another text than the index: a new time stamp alone is no change."""
    count = 0
    for found in plan.to_read:
        before = known.get((parts.workspace.source, found.path))
        try:
            count += before is None or parts.workspace.read(found)[1].hash != before.hash
        except CommonplaceError:
            count += 1
    return count


def _failure(failure: FileFailure) -> dict[str, str]:
    return {"path": failure.path, "reason": failure.reason}


def _cache(parts: Parts) -> dict[str, Any]:
    settings = parts.loaded.settings.cache
    if parts.cache is None:
        why = "computing is faster than looking up" if settings.enabled else "switched off"
        return {"enabled": False, "reason": why, "maxEntries": settings.max_entries}
    return {"enabled": True, **parts.cache.describe()}


def _sizes(parts: Parts) -> dict[str, int]:
    places = parts.places
    return {
        "workspaceBytes": sum(found.size for found in parts.workspace.discover().files),
        "indexBytes": bytes_under(places.index),
        "cacheBytes": bytes_under(places.cache),
        "historyBytes": bytes_under(os.path.join(places.state, "history")),
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
