"""A process that embeds texts by a batch job, and kills itself at a moment that its tests name."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.providers.batch_clients import TEXTS, client_of

from plainmind.embed.cache import SqliteEmbeddingCache
from plainmind.guests.remote import job_steps


class DeadlyCache(SqliteEmbeddingCache):
    """Kills its process when vectors were read, when half of them are kept, or all."""

    moment = ""
    stored = 0

    def insert(self, identity: Any, vectors: Mapping[str, Any]) -> None:
        if self.moment == "parsed" or (self.moment == "half-stored" and self.stored):
            os.kill(os.getpid(), signal.SIGKILL)
        super().insert(identity, vectors)
        self.stored += len(vectors)
        if self.moment == "stored" and self.stored >= len(TEXTS):
            os.kill(os.getpid(), signal.SIGKILL)


def work(dialect: str, base_url: str, home: str, moment: str, max_items: int, out: str, err: str) -> None:
    """Embed all texts; what is said goes to two files."""
    for descriptor, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
    job_steps._VECTORS_AT_ONCE = 7
    cache = DeadlyCache(f"{home}/cache.sqlite")
    cache.moment = moment
    with client_of(
        dialect,
        base_url,
        Path(home),
        cache=cache,
        settle_s=0.05,
        max_items=max_items,
        batch={"poll_interval_ms": 20},
    ) as user:
        prepared = user.jobs.prepare(TEXTS)
        said = (len(prepared.ready), len(prepared.missing), len(prepared.waiting), *prepared.notes)
        os.write(1, (" ".join(map(str, said)) + "\n").encode())
