"""What is known about a provider: what it has cost, whether it works, and which text it sees."""

from __future__ import annotations

from plainmind.base.errors import EmbeddingError
from plainmind.embed.silent import Withheld
from plainmind.index.sync import NO_INDEX_YET
from plainmind.memory.doctor import Check
from plainmind.memory.providers import EmbeddingStatus
from plainmind.memory.status import facts_of_choice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from plainmind.base.model import IndexFingerprint
    from plainmind.guests.remote.providers import Providers
    from plainmind.memory.index import Index


def status_of(
    providers: Providers, index: Index, made: IndexFingerprint | None, *, deep: bool
) -> EmbeddingStatus:
    """Collect the facts. Asks a provider on another machine only when `deep`, for one vector."""
    facts = facts_of_choice(providers.choice)
    if deep:
        facts["probe"] = _probe(providers)
    facts |= _facts_of_chosen(providers)
    succession = providers.succession
    stands = None if made is None else made.embedder
    fallback = providers.standing_in(stands)
    rebuild = None
    if isinstance(silent := succession.chosen.or_withheld(), Withheld):
        facts["problem"] = str(silent.refusal)
    elif fallback is None:
        rebuild = NO_INDEX_YET if made is None else made.difference(index.indexer.fingerprint)
    leaves = _leaving(index, succession.chosen.sends_text_to)
    return EmbeddingStatus(succession.answering(stands).identity, rebuild, facts, leaves, fallback)


def examine(providers: Providers) -> Iterator[Check]:
    """Ask the provider for one vector, though it may be paused: who runs this may have mended it."""
    chosen = providers.succession.chosen
    chosen.probe(anyway=True)
    identity, where = chosen.identity, chosen.sends_text_to or "this machine"
    yield Check(
        "embedding",
        "ok",
        f"{identity.provider} {identity.model}, {identity.dims} dimensions, on {where};"
        f" chosen because {providers.choice.why}",
    )
    if chosen.remote is not None and providers.ledger.trouble is not None:
        hint = "requests and tokens are counted in this process alone; check the disk of your home folder"
        yield Check("embedding", "problem", providers.ledger.trouble, hint)


def _probe(providers: Providers) -> dict[str, Any]:
    try:
        providers.succession.chosen.probe()
    except EmbeddingError as error:
        return {"ok": False, "error": str(error), "hint": error.hint}
    return {"ok": True}


def _facts_of_chosen(providers: Providers) -> dict[str, Any]:
    chosen = providers.succession.chosen
    facts: dict[str, Any] = {"model": chosen.model, **chosen.describe()}
    if chosen.remote is None:
        return facts
    seconds, because = facts.pop("pausedForSeconds"), facts.pop("pausedBecause")
    of_today = ("provider", "requestsToday", "failuresToday", "tokensToday", "costTodayUsd")
    return {
        **{name: fact for name, fact in facts.items() if name not in of_today},
        "paused": {"seconds": seconds, "because": because} if because else None,
        "usage": providers.usage(),
        "batch": None if providers.batching is None else dict(providers.batching.jobs.facts()),
    }


def _leaving(index: Index, host: str | None) -> list[dict[str, str]]:
    """Which sources are sent to the provider, and that questions are; transcripts only with the user's consent."""
    if host is None:
        return []
    sent = [source for source in index.sources if source not in index.values.private]
    return [{"source": source, "to": host} for source in (*sent, "questions")]
