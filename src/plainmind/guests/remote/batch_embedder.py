"""An embedder that leaves large amounts to batch jobs, and does not pay twice for what they are working on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plainmind.base.model import EmbedderIdentity, ProgressCallback, Vector, sha256_text
from plainmind.guests.remote.embedder import Keep, RemoteEmbedder
from plainmind.guests.remote.failures import ProviderFailure
from plainmind.guests.remote.jobs import BatchJobs, Prepared


class VectorsPending(ProviderFailure):
    """A batch job is making these vectors; a later sync finds them in the cache."""


class BatchingEmbedder:
    """Stands behind the cache and before the provider's single requests.

    `prepare` is given everything that a sync will ask for, and fills the cache; what then still comes here is what
    jobs did not give.
    """

    def __init__(self, embedder: RemoteEmbedder, jobs: BatchJobs) -> None:
        self.embedder = embedder
        self.jobs = jobs
        self._waiting: frozenset[str] = frozenset()

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors these are."""
        return self.embedder.identity

    @property
    def sends_text_to(self) -> str | None:
        """The host that sees the texts, in jobs and in single requests."""
        return self.embedder.sends_text_to

    def prepare(
        self, texts: Iterable[str], *, wait: bool | None = None, progress: ProgressCallback | None = None
    ) -> Prepared:
        """Let jobs bring the vectors of many texts into the cache; see `BatchJobs.prepare`."""
        prepared = self.jobs.prepare(texts, wait=wait, progress=progress)
        self._waiting = prepared.waiting
        return prepared

    def leave_running(self) -> None:
        """Leave to jobs what they have begun, without asking how far they are."""
        self._waiting = self.jobs.begun()

    def embed_query(self, text: str) -> Vector:
        """Embed a question. Raises EmbeddingError."""
        return self.embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed by single requests what no job is working on. Raises VectorsPending when one of the texts is."""
        self._refuse_pending(texts)
        return self.embedder.embed_documents(texts)

    def embed_keeping(self, texts: Sequence[str], keep: Keep) -> list[Vector | None]:
        """The same, with somebody who keeps what each request brings."""
        self._refuse_pending(texts)
        return self.embedder.embed_keeping(texts, keep)

    def _refuse_pending(self, texts: Sequence[str]) -> None:
        if self._waiting and any(sha256_text(text) in self._waiting for text in texts):
            raise VectorsPending(
                "batch jobs are still making the vectors of some texts",
                hint="keywords answer meanwhile; `plainmind status` shows the jobs, the next sync collects them",
            )

    def close(self) -> None:
        """Let go of the provider; its jobs go on."""
        self.jobs.close()
        self.embedder.close()
