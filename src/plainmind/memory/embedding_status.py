"""Who embeds, why that one, what it has cost, and which text leaves this machine: facts for `status`."""

from __future__ import annotations

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import EmbedderIdentity, IndexFingerprint, known_sources
from plainmind.base.value import value
from plainmind.embed.silent import Withheld
from plainmind.embed.succession import Choice
from plainmind.index.sync import NO_INDEX_YET
from plainmind.memory.provider_access import choice_of
from plainmind.memory.providers import Providers
from plainmind.memory.wiring import Parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class EmbeddingStatus:
    """What is known about the embedder. `identity` is that of whoever answers questions now."""

    identity: EmbedderIdentity
    rebuild: str | None  # why the index has to be made anew
    facts: dict[str, Any]
    leaves: list[dict[str, str]]  # which source is sent where
    fallback: dict[str, str] | None


def embedding_of(parts: Parts, made: IndexFingerprint | None, *, deep: bool) -> EmbeddingStatus:
    """Collect the facts. Asks a provider on another machine only when `deep`, for one vector."""
    providers = parts.providers
    if providers is None:
        return EmbeddingStatus(
            parts.embedder.identity,
            _difference(parts, made),
            _chosen(choice_of(parts.loaded, parts.environ)),
            leaves=[],
            fallback=None,
        )
    facts = _chosen(providers.choice)
    if deep:
        facts["probe"] = _probed(providers)
    facts |= _of_a_provider(providers)
    succession = providers.succession
    stands = None if made is None else made.embedder
    fallback = providers.standing_in(stands)
    rebuild = None
    if isinstance(silent := succession.chosen.or_withheld(), Withheld):
        facts["problem"] = str(silent.refusal)
    elif fallback is None:
        rebuild = _difference(parts, made)
    leaves = _leaving(parts, succession.chosen.sends_text_to)
    return EmbeddingStatus(succession.answering(stands).identity, rebuild, facts, leaves, fallback)


def _difference(parts: Parts, made: IndexFingerprint | None) -> str | None:
    return NO_INDEX_YET if made is None else made.difference(parts.indexer.fingerprint)


def _chosen(choice: Choice) -> dict[str, Any]:
    return {
        "chosen": choice.provider,
        "why": choice.why,
        "passedOver": [
            {"provider": over.provider, "reason": over.reason, "configured": over.is_configured}
            for over in choice.passed_over
        ],
    }


def _probed(providers: Providers) -> dict[str, Any]:
    try:
        providers.succession.chosen.probe()
    except EmbeddingError as error:
        return {"ok": False, "error": str(error), "hint": error.hint}
    return {"ok": True}


def _of_a_provider(providers: Providers) -> dict[str, Any]:
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


def _leaving(parts: Parts, host: str | None) -> list[dict[str, str]]:
    """Which sources are sent to the provider, and that questions are; transcripts only with the user's consent."""
    if host is None:
        return []
    settings = parts.loaded.settings
    sent = [
        source for source in known_sources(settings.sources) if source != "sessions" or settings.send_sessions
    ]
    return [{"source": source, "to": host} for source in (*sent, "questions")]
