"""The jobs that providers work on for us, as the ledger remembers them: saved before anything is waited for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import apsw

from plainmind.base.errors import StorageFailure
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.wire import ProviderKey

_SAVE = """
    INSERT INTO jobs (id, provider, model, endpoint, state, remote_id, items, created, updated, facts)
    VALUES (:id, :provider, :model, :endpoint, :state, :remote_id, :items, :created, :updated, :facts)
        ON CONFLICT DO UPDATE
       SET state = :state, remote_id = :remote_id, updated = :updated, facts = :facts
"""
_ALL = """
    SELECT id, provider, model, endpoint, state, items, remote_id, created, updated, facts
      FROM jobs
     ORDER BY created, id
"""
_DROP = "DELETE FROM jobs WHERE id = :id"
_CLAIM = """
    UPDATE jobs
       SET owner = :owner, owned_until = :until
     WHERE id = :id AND (owner IS NULL OR owner = :owner OR owned_until <= :now)
"""
_RELEASE = "UPDATE jobs SET owner = NULL, owned_until = 0 WHERE id = :id AND owner = :owner"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job. `id` is ours and exists before theirs; `facts` is whatever JSON the job needs, without note text."""

    id: str
    key: ProviderKey
    state: str
    items: int
    remote_id: str | None = None
    created: float = 0.0
    updated: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)


def save_job(ledger: Ledger, job: JobRecord) -> None:
    """Keep a new job or its new state; on disk, not only on its way there, when this returns. Raises StorageFailure."""
    row = {
        "id": job.id,
        "provider": job.key.provider,
        "model": job.key.model,
        "endpoint": job.key.endpoint,
        "state": job.state,
        "remote_id": job.remote_id,
        "items": job.items,
        "created": job.created or ledger.now(),
        "updated": ledger.now(),
        "facts": json.dumps(dict(job.facts)),
    }
    # A job that is forgotten is paid for twice, so even a power cut must not lose it.
    ledger.reading(lambda connection: connection.execute("PRAGMA synchronous = FULL").fetchall())
    try:
        ledger.writing(lambda connection: connection.execute(_SAVE, row))
    finally:
        ledger.reading(lambda connection: connection.execute("PRAGMA synchronous = NORMAL").fetchall())
    if ledger.trouble is not None:
        raise StorageFailure(ledger.trouble, hint="no job is begun that could be forgotten; check the disk")


def jobs(ledger: Ledger, key: ProviderKey | None = None) -> list[JobRecord]:
    """Every job that is remembered, oldest first, or those of one provider."""
    rows = ledger.reading(lambda connection: connection.execute(_ALL).fetchall())
    return [job for job in map(_job, rows) if key is None or job.key == key]


def _job(row: tuple[Any, ...]) -> JobRecord:
    name, provider, model, endpoint, state, items, remote_id, created, updated, facts = row
    of = ProviderKey(provider, model, endpoint)
    return JobRecord(name, of, state, items, remote_id, created, updated, json.loads(facts))


def drop_job(ledger: Ledger, job_id: str) -> None:
    """Forget a job whose vectors are kept."""
    ledger.writing(lambda connection: connection.execute(_DROP, {"id": job_id}))


def claim_job(ledger: Ledger, job_id: str, owner: str, *, seconds: float) -> bool:
    """Take a job, or keep it longer, so that no other process works on it; False when one does."""
    row = {"id": job_id, "owner": owner, "now": ledger.now(), "until": ledger.now() + seconds}

    def work(connection: apsw.Connection) -> bool:
        connection.execute(_CLAIM, row)
        return connection.changes() == 1

    return ledger.writing(work)


def release_job(ledger: Ledger, job_id: str, owner: str) -> None:
    """Let others work on it."""
    ledger.writing(lambda connection: connection.execute(_RELEASE, {"id": job_id, "owner": owner}))
