"""Vectors from a provider on another machine: several requests at once, all good or none at all."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plainmind.base.errors import BadVector, EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector, sha256_text
from plainmind.embed.protocol import FullEmbedder, Keep
from plainmind.guests.net.address import split_base_url
from plainmind.guests.net.failures import Abandoned, AddressRefused, NetFailure, RetryPolicy, TextTooLong
from plainmind.guests.remote.breaker import BreakerState, waiting_s
from plainmind.guests.remote.client import Allowance, Call, ProviderClient
from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.failures import BudgetSpent, ProviderPaused, TextRefused, embedding_error
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.wire import Mode, Wire, price_of, provider_key, wire_for

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


# These say nothing about whether the provider works: most of them are our own decision not to ask.
_NOT_ITS_FAULT = (Abandoned, AddressRefused, BudgetSpent, ProviderPaused, TextRefused, TextTooLong)
_POLICY = RetryPolicy()
_PROBE_S = 60.0


class RemoteEmbedder(FullEmbedder):
    """Implements `Embedder` over one provider's wire. Closing it gives up what is under way; it can be used again."""

    def __init__(
        self,
        wire: Wire,
        settings: RemoteSettings,
        ledger: Ledger,
        *,
        policy: RetryPolicy = _POLICY,
        chance: Callable[[], float] = random.random,
        pause: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        self.key = provider_key(wire, settings)
        self._wire = wire
        self._settings = settings
        self._ledger = ledger
        self._client = ProviderClient(
            wire, self.key, settings, ledger, policy=policy, random=chance, wait=pause
        )
        self._origin = split_base_url(settings.base_url or wire.default_base_url, settings="remote")[0]
        self._turn = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._calls: set[threading.Event] = set()
        self._hurries = 0  # how many blocks of `hurrying` there are

    def __repr__(self) -> str:
        return f"RemoteEmbedder({self.key.provider!r}, {self.key.model!r}, {str(self._origin)!r})"

    @property
    def identity(self) -> EmbedderIdentity:
        """Who makes the vectors; `dims` is 0 before the first answer of a model that we know nothing about."""
        return EmbedderIdentity(self.key.provider, self.key.model, self.key.endpoint, self._client.dims())

    @property
    def sends_text_to(self) -> str:
        """The host that sees the text, this machine included: what it passes on is not ours to know."""
        return self._origin.host

    def embed_query(self, text: str) -> Vector:
        """Embed a question, retries included, within `query_timeout_s`. Raises EmbeddingError."""
        if _is_blank(text):
            raise EmbeddingError("nothing to embed: the query has no words")
        with self._call("query", self._settings.query_timeout_s) as call:
            (vector,) = self._client.vectors([text], call, Allowance(call.timeout_s))
        assert vector is not None  # a refused question is an error
        return vector

    def embed_documents(self, texts: Sequence[str], *, keep: Keep | None = None) -> list[Vector | None]:
        """Embed texts, each once; None for a blank one and for one that the provider does not take.

        Raises EmbeddingError and returns nothing when a single vector is bad. `keep` is given the vectors of every
        good request by text at once, so that they need not be paid for again when another request fails; it is
        called from several threads.
        """
        asked = dict.fromkeys(text for text in texts if not _is_blank(text))
        hashes = {sha256_text(text): text for text in asked}
        for name in self._ledger.refused_texts(self.key, hashes) if hashes else ():
            del asked[hashes[name]]
        groups = requests_of(
            [*asked], max_items=self._wire.max_items, max_tokens=self._settings.tokens_per_request
        )
        vectors: dict[str, Vector | None] = {}
        if groups:
            with self._call("document", self._document_s) as call:
                self._embed_groups(groups, call, vectors, keep)
        return [vectors.get(text) for text in texts]

    def embed_keeping(self, texts: Sequence[str], keep: Keep) -> list[Vector | None]:
        """Embed texts, `keep` is given what each request brings."""
        return self.embed_documents(texts, keep=keep)

    def probe(self, *, anyway: bool = False) -> int:
        """Ask for one vector, and learn its dimensions; `anyway` ends a pause, because a person says so."""
        if anyway:
            self._client.breaker.reset()
        with self._call("document", min(self._document_s, _PROBE_S)) as call:
            return self._client.probe(call)

    @contextmanager
    def hurrying(self) -> Iterator[None]:
        """Within the block somebody waits for an answer: a request of notes has not much longer than a question."""
        with self._turn:
            self._hurries += 1
        try:
            yield
        finally:
            with self._turn:
                self._hurries -= 1

    @property
    def _document_s(self) -> float:
        most = self._settings.batch_timeout_s
        return min(most, 2 * self._settings.query_timeout_s) if self._hurries else most

    def cost_of(self, tokens: int) -> float:
        """What tokens cost, about, in USD; 0 when the price is not known."""
        return price_of(self._wire, self.key.model, tokens)

    def pause(self) -> EmbeddingError | None:
        """Why the provider is not asked at the moment, None when it may be. No request is sent."""
        paused = self._client.breaker.pause()
        return None if paused is None else embedding_error(paused)

    def describe(self) -> Mapping[str, object]:
        """Facts for `status`; never a part of the key."""
        state = self._client.breaker.state()
        now = self._ledger.now()
        today = [usage for usage in self._ledger.usage() if usage.key == self.key]
        remarks = self._client.remarks
        return {
            "provider": self.key.provider,
            "model": self.key.model,
            "origin": str(self._origin),
            "dims": self._client.dims(),
            "key": "set" if self._settings.api_key else "unset",
            "requestsToday": sum(usage.requests for usage in today),
            "failuresToday": sum(usage.failures for usage in today),
            "tokensToday": sum(usage.tokens for usage in today),
            "costTodayUsd": round(sum(usage.cost for usage in today), 6),
            "maxTokensPerDay": self._settings.max_tokens_per_day,
            "pausedForSeconds": round(waiting_s(state, now)) if state.open_until else 0,
            "pausedBecause": state.reason if state.open_until else None,
            "cutTexts": remarks.cut,
            "refusedTexts": remarks.refused,
            "trouble": self._ledger.trouble,
        }

    def close(self) -> None:
        """Give up what is under way, end every thread, close every connection."""
        with self._turn:
            pool, self._pool = self._pool, None
            for stop in self._calls:
                stop.set()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)
        self._client.close()
        self._ledger.close()

    def _embed_groups(
        self, groups: list[list[str]], call: Call, vectors: dict[str, Vector | None], keep: Keep | None
    ) -> None:
        def embed(group: list[str]) -> None:
            made = dict(zip(group, self._client.vectors(group, call, Allowance(call.timeout_s)), strict=True))
            vectors.update(made)
            if keep is not None:
                keep({text: vector for text, vector in made.items() if vector is not None})

        # After a pause one request tries alone; the others would be held back.
        alone = len(groups) if self._settings.concurrency == 1 or len(groups) == 1 else 0
        if not alone and self._client.breaker.state() != BreakerState():
            alone = 1
        for group in groups[:alone]:
            embed(group)
        if groups[alone:]:
            self._embed_at_once(embed, groups[alone:], call)

    def _embed_at_once(self, embed: Callable[[list[str]], None], groups: list[list[str]], call: Call) -> None:
        """Run requests in threads; the first failure stops those that are under way and those that wait."""
        from concurrent.futures import ThreadPoolExecutor, wait  # a question does without

        futures: list[Future[None]] = []
        try:
            with self._turn:
                # Twice as many as may be on their way: while some wait for answers, others read theirs.
                self._pool = self._pool or ThreadPoolExecutor(
                    2 * self._settings.concurrency, thread_name_prefix="plainmind-embed"
                )
                futures += [self._pool.submit(embed, group) for group in groups]
            _wait_for(futures)
        finally:
            call.stop.set()
            for future in futures:
                future.cancel()
            wait([future for future in futures if not future.cancelled()])

    @contextmanager
    def _call(self, mode: Mode, timeout_s: float) -> Iterator[Call]:
        """Begin a call that `close` can end, and count its failure: five in a row pause the provider."""
        call = Call(mode, timeout_s)
        with self._turn:
            self._calls.add(call.stop)
        try:
            yield call
        except (NetFailure, BadVector) as failure:
            if not isinstance(failure, _NOT_ITS_FAULT):
                self._client.breaker.count_failure(failure)
            if isinstance(failure, BadVector):
                raise
            raise embedding_error(failure) from failure
        finally:
            with self._turn:
                self._calls.discard(call.stop)


def _wait_for(futures: Sequence[Future[None]]) -> None:
    """Return when all are done; raise the first failure, not what it caused in others."""
    from concurrent.futures import FIRST_EXCEPTION, wait

    pending: AbstractSet[Future[None]] = {*futures}
    while pending:
        # Looked at again and again, because a future that is cancelled by `close` never counts as done.
        done, pending = wait(pending, timeout=0.25, return_when=FIRST_EXCEPTION)
        if any(future.cancelled() for future in futures):
            raise Abandoned("the embedder was closed")
        failures = [failure for future in done if (failure := future.exception()) is not None]
        if failures:
            raise next((one for one in failures if not isinstance(one, Abandoned)), failures[0])


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def requests_of(texts: Sequence[str], *, max_items: int, max_tokens: int) -> list[list[str]]:
    """Cut into requests; a token is counted for each character, and a text that is too long goes alone."""
    groups: list[list[str]] = []
    size = max_tokens  # nothing fits any more: the first text begins a group
    for text in texts:
        if not groups or size + len(text) > max_tokens or len(groups[-1]) >= max_items:
            groups.append([])
            size = 0
        groups[-1].append(text)
        size += len(text)
    return groups


def create_remote(name: str, settings: RemoteSettings, ledger: Ledger) -> RemoteEmbedder:
    """Make the provider `name`, which takes over the ledger and closes it."""
    return RemoteEmbedder(wire_for(name, settings), settings, ledger)
