"""Makes the embedder of a remote provider that uses batch jobs, from its settings."""

from __future__ import annotations

from plainmind.embed.protocol import EmbeddingCache
from plainmind.guests.remote.asking import transport_for
from plainmind.guests.remote.batch_embedder import BatchingEmbedder
from plainmind.guests.remote.creating import wire_for
from plainmind.guests.remote.embedder import RemoteEmbedder
from plainmind.guests.remote.jobs import BatchJobs
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.settings import RemoteSettings


def create_batching(
    name: str, settings: RemoteSettings, ledger: Ledger, *, cache: EmbeddingCache, folder: str
) -> BatchingEmbedder:
    """Make the provider `name` with its jobs. It closes the ledger but not the cache, which stands in front of it."""
    wire = wire_for(name, settings)
    embedder = RemoteEmbedder(wire, settings, ledger)
    jobs = BatchJobs(
        wire,
        transport_for(wire, settings),
        ledger,
        settings,
        cache=cache,
        identity=lambda: embedder.identity,
        folder=folder,
    )
    return BatchingEmbedder(embedder, jobs)
