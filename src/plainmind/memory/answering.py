"""Who answers a question: the embedder that the index was made with, and who stood in for whom when it was made."""

from __future__ import annotations

from plainmind.base.model import EmbedderIdentity, SearchResult, SyncReport
from plainmind.base.value import replace
from plainmind.memory.providers import Providers
from plainmind.memory.wiring import Parts
from plainmind.search.engine import SearchEngine


def engine_for(parts: Parts, providers: Providers) -> SearchEngine:
    """What answers questions to the index as it is now: vectors of two models never meet."""
    return parts.engine_with(providers.succession.answering(made_with(parts)))


def with_fallback(
    result: SearchResult, before: SyncReport, parts: Parts, providers: Providers
) -> SearchResult:
    """Say in an answer that it comes from the fallback's index."""
    fallback = before.fallback or providers.standing_in(made_with(parts))
    return result if fallback is None else replace(result, fallback=fallback)


def made_with(parts: Parts) -> EmbedderIdentity | None:
    """Who made the vectors of the index; None when there is none yet."""
    with parts.store.reading() as reader:
        made = reader.fingerprint()
    return None if made is None else made.embedder
