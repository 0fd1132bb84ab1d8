"""Providers that take long, cost money or fail: who embeds, at what cost, which index stays, what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

from plainmind.base.errors import EmbeddingError, StorageFailure
from plainmind.base.model import IndexFingerprint, SyncReport, sha256_text
from plainmind.base.value import replace, value
from plainmind.embed.protocol import COMPUTED_HERE, Embedder, Withheld
from plainmind.embed.succession import Provider
from plainmind.guests.remote.providers import Providers
from plainmind.index.plan import Conditions, RebuildGivenUp
from plainmind.index.sync import NO_INDEX_YET
from plainmind.memory.doctor import Check
from plainmind.memory.index import Index
from plainmind.memory.providers import Asked, Confirm, Cost, EmbeddingStatus, Initiative, in_words
from plainmind.memory.status import facts_of_choice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from plainmind.base.model import IndexFingerprint
    from plainmind.embed.cache import SqliteEmbeddingCache
    from plainmind.guests.remote.providers import Providers
    from plainmind.memory.index import Index


# What a question waits for: some eight seconds of a provider on another machine, or of a model on this one.
MOST_TOKENS_BEFORE_A_SEARCH = {"remote": 200_000, "here": 20_000}
# Less is neither shown nor worth a look into the cache.
WORTH_SHOWING_TOKENS = 50_000
_TOGETHER = 2_000


@value
class Purse:
    """Decides whether texts may be embedded now, for one provider and one sync."""

    provider: Provider
    cache: SqliteEmbeddingCache | None
    initiative: Initiative
    allowed_usd: float
    confirm: Confirm | None
    indexed_chunks: int  # about as many as there will be texts, when all of them are embedded again

    def refusal(self, size: int, texts: Callable[[], Iterator[str]]) -> str | None:
        """Say why texts of so many bytes must not be embedded; None when they may be."""
        most = size // 2  # tokens: two bytes each are fewer than any text has
        if most <= WORTH_SHOWING_TOKENS and self._cost(most).usd <= self.allowed_usd:
            return None
        if self.initiative == "search":
            return self._refusal_before_a_search(most, texts)
        if not self._cost(1_000_000).usd:
            return None
        if not self._cost(most).needs_yes:
            if self.confirm is not None and not self._known_count():
                self.confirm(self._cost(most // 2))  # for show: whoever asked has allowed as much
            return None
        cost = self._cost(self._tokens(texts()))
        agreed = not cost.needs_yes if self.confirm is None else self.confirm(cost)
        if agreed:
            return None
        return (
            f"{in_words(cost)} needs your yes, as `remote.confirmAboveUsd` is {cost.allowed_usd:.2f}:"
            " `plainmind sync --yes`"
        )

    def _refusal_before_a_search(self, most: int, texts: Callable[[], Iterator[str]]) -> str | None:
        allowed = MOST_TOKENS_BEFORE_A_SEARCH["here" if self.provider.remote is None else "remote"]
        tokens = most
        if tokens > allowed or self._cost(tokens).needs_yes:
            # Only where the cache knows about half of it can the rest be little; else reading it all is in vain.
            tokens = self._tokens(texts()) if self._is_known_by_half() else most // 2
        cost = self._cost(tokens)
        if tokens <= allowed and not cost.needs_yes:
            return None
        return f"{in_words(cost)} is too much before a search: `plainmind sync` does it"

    def _cost(self, tokens: int) -> Cost:
        provider = self.provider
        usd = provider.remote.cost_of(tokens) if provider.remote is not None else 0.0
        return Cost(provider.name, provider.model, provider.sends_text_to, tokens, usd, self.allowed_usd)

    def _is_known_by_half(self) -> bool:
        return self._known_count() * 2 >= max(1, self.indexed_chunks)

    def _known_count(self) -> int:
        if self.cache is None:
            return 0
        try:
            return self.cache.count(self.provider.identity)
        except StorageFailure:
            return 0

    def _tokens(self, texts: Iterable[str]) -> int:
        """Count the tokens, about, of texts whose vectors the cache does not know."""
        from plainmind.text.chunking import estimated_tokens

        total = 0
        for some in _portions(texts):
            by_hash = {sha256_text(text): text for text in some}
            known = self._known(list(by_hash))
            total += sum(estimated_tokens(text) for name, text in by_hash.items() if name not in known)
        return total

    def _known(self, hashes: list[str]) -> frozenset[str]:
        if self.cache is None:
            return frozenset()
        try:
            return frozenset(self.cache.lookup(self.provider.identity, hashes))
        except StorageFailure:
            return frozenset()


def _portions(texts: Iterable[str]) -> Iterator[list[str]]:
    some: list[str] = []
    for text in texts:
        some.append(text)
        if len(some) == _TOGETHER:
            yield some
            some = []
    if some:
        yield some


def sync_with(index: Index, providers: Providers, asked: Asked) -> SyncReport:
    """Bring the index up to date. A failing provider never costs an index that works.

    The chosen provider is tried first. When it fails for good or is paused, the fallback makes an index of its own;
    when there is none, the old index stays, and files that changed go in without vectors for now.
    """
    with ExitStack() as hurried:
        if asked.initiative == "search":
            for provider in (providers.succession.chosen, providers.succession.fallback):
                if provider is not None and provider.remote is not None:
                    hurried.enter_context(provider.remote.hurrying())
        return _Sync(index, providers, asked).run()


class _Sync:
    """One sync, and what is to be said about it."""

    def __init__(self, index: Index, providers: Providers, asked: Asked) -> None:
        self._index = index
        self._providers = providers
        self._succession = providers.succession
        self._asked = asked
        self._may_download = asked.initiative != "search"
        self._notes: dict[str, None] = {}
        self._degraded: dict[str, None] = {}
        self._asked_before: set[Provider] = set()
        self._refusals: dict[Provider, str] = {}

    def run(self) -> SyncReport:
        """Try one after the other until somebody has done it."""
        chosen = self._succession.chosen
        self._providers.progress = self._asked.progress
        self._leave_jobs_running()
        trouble = chosen.trouble(may_download=self._may_download)
        report = None
        if trouble is None:
            report = self._attempt(chosen)
            trouble = chosen.fell_out()
            if report is not None and (trouble is None or self._succession.fallback is None):
                return self._told(report)
        if trouble is not None:
            substitute = self._substitute(chosen, trouble)
            if substitute is not None:
                return substitute
        return self._told(self._kept(chosen, trouble) if report is None else report)

    def _attempt(self, provider: Provider) -> SyncReport | None:
        """Sync with one provider; None when a new index would have lacked vectors, so that the old one stays."""
        made = self._made()
        has_vectors = made is not None and made.embedder.dims > 0
        conditions = Conditions("whole" if has_vectors else "freely", self._before_embedding(provider))
        try:
            report = self._synced(provider, conditions, force=self._asked.force)
        except RebuildGivenUp as error:
            self._degraded[f"no new index: {error}"] = None
            return None
        if report.rebuilt and provider.sends_text_to is not None and report.chunks:
            why = (
                f", chosen because {self._providers.choice.why}"
                if provider is self._succession.chosen
                else ""
            )
            self._notes[
                f"the text of your notes is sent to {provider.sends_text_to} ({provider.name} {provider.model}{why})"
            ] = None
        return report

    def _substitute(self, chosen: Provider, trouble: EmbeddingError) -> SyncReport | None:
        """Sync with the fallback; None when there is none, or when it does not work either."""
        fallback = self._succession.fallback
        if fallback is None:
            return None
        also = fallback.trouble(may_download=self._may_download)
        if also is not None:
            self._degraded[f"{fallback.name} cannot take over: {also}"] = None
            return None
        report = self._attempt(fallback)
        if report is None:
            return None
        facts = {"from": chosen.name, "to": fallback.name, "reason": str(trouble)}
        return replace(self._told(report), fallback=facts)

    def _kept(self, chosen: Provider, trouble: EmbeddingError | None) -> SyncReport:
        """Bring the old index up to date, with whoever made it; and without vectors where nobody can."""
        made = self._made()
        if trouble is not None:
            self._degraded[f"{chosen.name} does not embed: {trouble}"] = None
        if made is None:
            embedder = chosen.or_withheld()
            if trouble is not None:
                embedder = Withheld(embedder.identity, trouble)
            return self._synced(embedder, Conditions())
        embedder = self._succession.answering(made.embedder)
        if embedder is chosen and trouble is not None:
            embedder = Withheld(made.embedder, trouble)
        before = self._before_embedding(embedder) if isinstance(embedder, Provider) else None
        return self._synced(embedder, Conditions("never", before))

    def _synced(self, embedder: Embedder, conditions: Conditions, *, force: bool = False) -> SyncReport:
        asked = self._asked
        return self._index.indexer_with(embedder).sync(
            force=force,
            progress=asked.progress,
            thorough=asked.thorough,
            conditions=replace(conditions, patience=asked.patience),
        )

    def _before_embedding(
        self, provider: Provider
    ) -> Callable[[int, Callable[[], Iterator[str]]], str | None] | None:
        """What is done before a provider is asked for many vectors: count the cost, and let jobs do what they can."""
        if provider.name in COMPUTED_HERE:
            return None
        with self._index.store.reading() as reader:
            chunks = sum(reader.counts().chunks.values())
        purse = Purse(
            provider,
            self._providers.cache,
            self._asked.initiative,
            self._providers.confirm_above_usd,
            self._asked.confirm,
            chunks,
        )

        def before(size: int, texts: Callable[[], Iterator[str]]) -> str | None:
            if provider not in self._refusals:  # nobody is asked twice about the same sync
                refusal = purse.refusal(size, texts) or self._refusal_of(provider)
                if refusal is not None:
                    self._refusals[provider] = refusal
                elif provider is self._succession.chosen:
                    self._prepare_by_jobs(texts)
            return self._refusals.get(provider)

        return before

    def _refusal_of(self, provider: Provider) -> str | None:
        """Before an index of somebody else is replaced: ask for one vector, and say why there is none."""
        made = self._made()
        if made is None or made.embedder.agrees_with(provider.identity) or provider in self._asked_before:
            return None
        try:
            provider.probe()
        except EmbeddingError as error:
            return str(error)
        self._asked_before.add(provider)
        return None

    def _leave_jobs_running(self) -> None:
        """Know what jobs have begun; unless somebody waits for an answer, also take in what they have finished."""
        batching = self._providers.batching
        if batching is None:
            return
        if self._asked.initiative == "search":
            batching.leave_running()
        else:
            self._take_in(lambda: batching.prepare((), wait=False).notes)

    def _prepare_by_jobs(self, texts: Callable[[], Iterator[str]]) -> None:
        batching, asked = self._providers.batching, self._asked
        if batching is None or asked.initiative == "search":
            return
        wait = asked.wait if asked.initiative == "asked" else False
        self._take_in(lambda: batching.prepare(texts(), wait=wait, progress=asked.progress).notes)

    def _take_in(self, work: Callable[[], tuple[str, ...]]) -> None:
        try:
            self._notes |= dict.fromkeys(work())
        except EmbeddingError as error:
            self._degraded[f"batch jobs: {error}"] = None

    def _made(self) -> IndexFingerprint | None:
        with self._index.store.reading() as reader:
            return reader.fingerprint()

    def _told(self, report: SyncReport) -> SyncReport:
        return replace(
            report,
            degraded=tuple(dict.fromkeys((*report.degraded, *self._degraded))),
            notes=tuple(self._notes),
        )


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
