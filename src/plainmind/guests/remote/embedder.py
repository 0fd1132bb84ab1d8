"""Vectors from a provider on another machine: each request allowed, counted, retried and checked; all good or none."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import cached_property

from plainmind.base.errors import BadVector, EmbeddingError
from plainmind.base.model import EmbedderIdentity, Vector, sha256_text
from plainmind.base.value import field, record
from plainmind.embed.protocol import FullEmbedder, Keep, check_vectors
from plainmind.guests.net.address import split_base_url
from plainmind.guests.net.failures import (
    Abandoned,
    AddressRefused,
    KeyRefused,
    NetFailure,
    RequestRefused,
    RetryPolicy,
    TextTooLong,
)
from plainmind.guests.net.transport import LARGEST_ANSWER, Transport, as_json
from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.failures import (
    Breaker,
    BreakerState,
    BudgetSpent,
    ProviderPaused,
    TextRefused,
    embedding_error,
    waiting_s,
)
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.wire import Mode, ProviderKey, Wire, price_of, provider_key, wire_for
from plainmind.text.chunking import estimated_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


_SHORTEST_CUT = 32
_RETRIES_OF_QUESTION = 1  # an answer is waited for, and words alone can give one
_LOOK_UP_S = 0.25
_PROBE = "Does this work?"
# JSON of 4,096 numbers with all their digits has some 100 KB.
_ANSWER_BYTES = 1024 * 1024
_ANSWER_BYTES_A_TEXT = 256 * 1024


@record
class Call:
    """What the requests of one call have in common; setting `stop` ends them all."""

    mode: Mode
    timeout_s: float
    stop: threading.Event = field(default_factory=threading.Event)
    form_is_fine: bool = False  # the provider took a harmless text in this call
    turn: threading.Lock = field(default_factory=threading.Lock)


class Allowance:
    """The time that one request has with all its retries. It begins when the first of them may be sent."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None

    def until(self) -> float:
        """The moment of `time.monotonic` by which the request has ended."""
        if self._until is None:
            self._until = time.monotonic() + self._seconds
        return self._until


@record
class Remarks:
    """What happened to single texts, for `status`."""

    cut: int = 0
    refused: int = 0


class ProviderClient:
    """Asks one provider with one key. Safe to share between threads."""

    def __init__(
        self,
        wire: Wire,
        key: ProviderKey,
        settings: RemoteSettings,
        ledger: Ledger,
        *,
        policy: RetryPolicy,
        random: Callable[[], float],
        wait: Callable[[threading.Event, float], object],
    ) -> None:
        self._wire = wire
        self._key = key
        self._settings = settings
        self._ledger = ledger
        self._policy = policy
        self._random = random
        self._wait = wait
        self._slots = threading.BoundedSemaphore(settings.concurrency)
        self._turn = threading.Lock()
        self._transport: Transport | None = None
        self._learning = threading.Lock()
        self._dims = 0
        self.remarks = Remarks()
        self._credential = (settings.api_key or "").strip()

    @cached_property
    def breaker(self) -> Breaker:
        """What pauses this provider, for every process."""
        return self._ledger.breaker_for(self._key, credential=self._credential)

    def dims(self) -> int:
        """As asked for, as known, as the ledger remembers; 0 before the first answer of an unknown model."""
        if not self._dims:
            base_url = self._settings.base_url
            known = self._wire.known_dims.get(self._key.model.removeprefix("models/"), 0)
            # Another server may serve something else under a famous name.
            own = base_url is None or base_url.rstrip("/") == self._wire.default_base_url
            self._dims = self._settings.dims or (known if own else 0) or self._ledger.dims(self._key) or 0
        return self._dims

    def vectors(self, texts: Sequence[str], call: Call, time_left: Allowance) -> list[Vector | None]:
        """Vectors of one request's texts, None for one that is not taken. Raises NetFailure or BadVector."""
        try:
            return [*self._ask(texts, call, time_left)]
        except TextTooLong:
            return self._halve(texts, call, time_left)
        except RequestRefused as refusal:
            self._check_form(refusal, call, time_left)
            if len(texts) > 1:
                return [vector for text in texts for vector in self.vectors([text], call, time_left)]
            self._leave_out(texts[0], refusal, call)
            return [None]

    def probe(self, call: Call) -> int:
        """Ask for one vector and learn from it how many dimensions this provider has now."""
        self._ask([_PROBE], call, Allowance(call.timeout_s), learn=True)
        return self._dims

    def close(self) -> None:
        """Give up what is under way and close every connection; the next request opens new ones."""
        with self._turn:
            transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def _halve(self, texts: Sequence[str], call: Call, time_left: Allowance) -> list[Vector | None]:
        half = len(texts) // 2
        if half:
            return self.vectors(texts[:half], call, time_left) + self.vectors(texts[half:], call, time_left)
        text = texts[0]
        if len(text) <= _SHORTEST_CUT:
            raise TextTooLong(
                f"{self._key.provider} finds even {len(text)} characters too long",
                hint="check `model`: does it make embeddings?",
            )
        self.remarks.cut += 1
        return self.vectors([text[: len(text) // 2]], call, time_left)

    def _check_form(self, refusal: RequestRefused, call: Call, time_left: Allowance) -> None:
        """Find out whether it was the text: when a harmless one is refused too, raise the refusal."""
        with call.turn:
            if not call.form_is_fine:
                try:
                    self._ask([_PROBE], call, time_left)
                except RequestRefused:
                    raise refusal from None
                call.form_is_fine = True

    def _leave_out(self, text: str, refusal: RequestRefused, call: Call) -> None:
        """Leave a document to keyword search, and do not ask again; a question is an error."""
        if call.mode == "query":
            raise TextRefused(str(refusal), hint="ask in other words", status=refusal.status) from refusal
        self.remarks.refused += 1
        self._ledger.remember_refused(self._key, sha256_text(text))

    def _ask(
        self, texts: Sequence[str], call: Call, time_left: Allowance, *, learn: bool = False
    ) -> list[Vector]:
        """Ask until there is an answer, or no more reason to ask."""
        attempt = 0
        while True:
            attempt += 1
            tries = self.breaker.enter()
            try:
                vectors = self._ask_once(texts, call, time_left, learn=learn)
            except NetFailure as failure:
                remaining = time_left.until() - time.monotonic()
                pause = self._policy.pause_s(
                    failure, attempt=attempt, remaining_s=remaining, random=self._random
                )
                if pause is None or tries or (call.mode == "query" and attempt > _RETRIES_OF_QUESTION):
                    raise
                self._wait(call.stop, pause)
                if call.stop.is_set():
                    raise Abandoned(f"the request to {self._key.provider} was given up") from failure
            else:
                self.breaker.count_success()
                return vectors

    def _ask_once(
        self, texts: Sequence[str], call: Call, time_left: Allowance, *, learn: bool
    ) -> list[Vector]:
        """Ask once, counting the tokens before: a process that dies meanwhile has used them."""
        guess = sum(map(estimated_tokens, texts))
        price = price_of(self._wire, self._key.model, 1_000_000) / 1_000_000
        limit = self._settings.max_tokens_per_day
        if limit is not None and self._ledger.trouble is not None:
            raise BudgetSpent(
                f"the tokens of today cannot be counted: {self._ledger.trouble}",
                hint="`remote.maxTokensPerDay` is set, so nothing is asked without counting",
            )
        if not self._ledger.reserve(self._key, tokens=guess, cost=guess * price, limit=limit):
            raise BudgetSpent(
                f"{self._ledger.tokens_today():,} of {limit:,} tokens of today are used",
                hint="the rest waits for tomorrow (UTC), or for a higher `remote.maxTokensPerDay`",
            )
        try:
            vectors, tokens = self._exchange(texts, call, time_left, learn=learn)
        except (NetFailure, BadVector) as failure:
            is_free = isinstance(failure, NetFailure) and not failure.may_have_worked
            back = -guess if is_free else 0
            self._ledger.add_usage(self._key, failures=1, tokens=back, cost=back * price)
            raise
        if tokens is not None:
            self._ledger.add_usage(self._key, tokens=tokens - guess, cost=(tokens - guess) * price)
        return vectors

    def _exchange(
        self, texts: Sequence[str], call: Call, time_left: Allowance, *, learn: bool
    ) -> tuple[list[Vector], int | None]:
        request = self._wire.request(self._key.model, texts, call.mode, self._settings.dims)
        transport = self._open()
        with self._slot(call):
            answer = transport.send(
                "POST",
                request.path,
                body=as_json(request.payload),
                deadline=time_left.until(),
                cap=min(LARGEST_ANSWER, _ANSWER_BYTES + _ANSWER_BYTES_A_TEXT * len(texts)),
                stopped=call.stop.is_set,
                repeatable=True,
            )
        # Reading the answer is work of our own: meanwhile the next request is on its way.
        payload = transport.success_in(answer, private=texts)
        if isinstance(payload, dict) and payload.get("error"):
            raise transport.failure(answer, private=texts)  # some send errors with the status of a success
        try:
            answered = self._wire.answer(payload, len(texts))
            return self._check(answered.vectors, len(texts), learn=learn), answered.tokens
        except BadVector as error:
            raise BadVector(f"{self._key.provider} answered badly: {error}", hint=self._dims_hint()) from None

    @contextmanager
    def _slot(self, call: Call) -> Iterator[None]:
        """Hold one of the places on the way to the provider. A question does not queue behind documents."""
        if call.mode == "query":
            yield
            return
        while not self._slots.acquire(timeout=_LOOK_UP_S):
            if call.stop.is_set():
                raise Abandoned(f"the request to {self._key.provider} was given up")
        try:
            yield
        finally:
            self._slots.release()

    def _check(self, vectors: Sequence[Sequence[float]], count: int, *, learn: bool) -> list[Vector]:
        expected = self.dims()
        if self._settings.dims or (expected and not learn):
            return check_vectors(vectors, expected_count=count, expected_dims=expected)
        with self._learning:  # of two first answers one teaches, and the other has to fit
            if learn or not self.dims():
                dims = len(vectors[0]) if vectors else 0
                good = check_vectors(vectors, expected_count=count, expected_dims=dims)
                self._dims = dims
                self._ledger.remember_dims(self._key, dims)
                return good
        return check_vectors(vectors, expected_count=count, expected_dims=self.dims())

    def _dims_hint(self) -> str:
        if self._settings.dims:
            return "nothing was stored; some servers ignore `outputDimensionality`: leave it out"
        return "nothing was stored; when the server has another model now, `plainmind status --deep` notices"

    def _open(self) -> Transport:
        with self._turn:
            if self._transport is None:
                self._transport = transport_for(self._wire, self._settings)
            return self._transport


def transport_for(wire: Wire, settings: RemoteSettings) -> Transport:
    """The way to the provider; headers that a person has set win over the provider's own. Raises KeyRefused."""
    key = (settings.api_key or "").strip()
    own = {name.lower() for name in settings.headers}
    shown = wire.headers(key) if key else {}
    headers = {name: value for name, value in shown.items() if name.lower() not in own}
    headers |= settings.headers
    if settings.base_url is None and not headers:
        raise KeyRefused(
            f"there is no API key for {wire.name}",
            hint=f"set {' or '.join(wire.key_variables)}, or `remote.apiKey`",
        )
    return Transport(
        settings.base_url or wire.default_base_url,
        settings="remote",
        headers=headers,
        secrets=[key, *settings.headers.values()],
        allow_private=settings.allow_private,
        proxy=settings.proxy,
    )


# --- several requests at once, all good or none at all ---


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
