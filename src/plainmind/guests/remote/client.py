"""Asks one provider for vectors: each request allowed, counted, retried, checked, and split when it is too much."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from plainmind.base.errors import BadVector
from plainmind.base.model import Vector, sha256_text
from plainmind.base.value import field, record
from plainmind.embed.protocol import check_vectors
from plainmind.guests.net.failures import (
    Abandoned,
    KeyRefused,
    NetFailure,
    RequestRefused,
    RetryPolicy,
    TextTooLong,
)
from plainmind.guests.net.transport import LARGEST_ANSWER, Transport, as_json
from plainmind.guests.remote.breaker import Breaker
from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.failures import BudgetSpent, TextRefused
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.wire import Mode, ProviderKey, Wire, price_of
from plainmind.text.chunking import estimated_tokens

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
