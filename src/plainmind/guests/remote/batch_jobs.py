"""Embeds many texts through a provider's batch jobs: cheaper, and in the provider's own time.

Vectors go into the embedding cache, by the hash of their text. A job is remembered from before its upload until
its vectors are there, so the next one goes on with it: this process, another one, or tomorrow's.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

from plainmind.base.errors import EmbeddingError, StorageFailure
from plainmind.base.model import EmbedderIdentity, Progress, ProgressCallback, Vector, sha256_text
from plainmind.base.value import asdict, field, record, value
from plainmind.embed.protocol import EmbeddingCache, FullEmbedder, Keep
from plainmind.files.system import try_lock
from plainmind.guests.net.failures import Abandoned, AnswerTooLarge, KeyRefused, NetFailure, QuotaSpent, mask
from plainmind.guests.net.transport import Transport
from plainmind.guests.remote.config import RemoteSettings
from plainmind.guests.remote.embedder import RemoteEmbedder, transport_for
from plainmind.guests.remote.failures import (
    Breaker,
    BreakerPolicy,
    BudgetSpent,
    ProviderPaused,
    VectorsPending,
    embedding_error,
    permission,
)
from plainmind.guests.remote.job_steps import PLANNED, Portion, Steps, hashes_of, portions
from plainmind.guests.remote.ledger import JobRecord, Ledger
from plainmind.guests.remote.vendors import JobView, endpoint_for
from plainmind.guests.remote.wire import Wire, price_of, provider_key, wire_for
from plainmind.text.chunking import estimated_tokens

_LONGEST_PAUSE_S = 30.0
_PAUSE_GROWTH = 1.5
_CANCELLING_S = 600.0  # providers take up to ten minutes to stop
_OLDEST_S = 3 * 86_400.0  # no provider works longer on a job
_ATTEMPTS = 2
_GONE = {404, 410}
_TIMES_NOT_FOUND = 3
# Not the fault of batch jobs: single requests fail in the same way, and say so to every process.
_OF_THE_ACCOUNT = (KeyRefused, QuotaSpent)
# Two failures turn batch jobs off for a day, in every process; then one job tries whether they work again.
_OFF_S = 86_400.0
_POLICY = BreakerPolicy(
    failures=2,
    first_pause_s=_OFF_S,
    longest_pause_s=_OFF_S,
    terminal_pause_s=_OFF_S,
    longest_terminal_pause_s=_OFF_S,
    trial_s=3600.0,
)
_LANE_PAUSE_S = 0.5
_HASHES_AT_ONCE = 400


@value
class JobFacts:
    """One job, for `status`."""

    id: str  # the provider's; ours while it has none
    provider: str
    model: str
    state: str
    items: int
    submitted: float  # seconds since 1970
    age_s: float


@value
class BatchOutcome:
    """What became of texts: vectors of `ready` ones are in the cache, `waiting` ones are in running jobs.

    The `missing` ones are for single requests, and `notes` say why.
    """

    ready: frozenset[str]
    missing: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    running: tuple[JobFacts, ...] = ()
    notes: tuple[str, ...] = ()


class BatchJobs:
    """The batch jobs of one provider, model and account. One process at a time works on them."""

    def __init__(
        self,
        wire: Wire,
        transport: Transport,
        ledger: Ledger,
        settings: RemoteSettings,
        *,
        cache: EmbeddingCache,
        identity: Callable[[], EmbedderIdentity],
        folder: str,
        fewest: int = 1_000,
        settle_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        """`identity` tells the dimensions that vectors must have; `folder` takes the lock and what is downloaded.

        Fewer than `fewest` texts are not worth a job: they would wait longer than they take.
        """
        self.key = provider_key(wire, settings)
        self._wire = wire
        self._ledger = ledger
        self._settings = settings
        self._cache = cache
        self._identity = identity
        self._fewest = fewest
        self._clock = clock
        self._sleep = sleep or self._wait
        self._closing = threading.Event()
        self._lock_path = os.path.join(folder, f"batch-{self.key.endpoint[:16]}.lock")
        credential = (settings.api_key or "").strip()
        self._requests = ledger.breaker_for(self.key, credential=credential)
        self._breaker = ledger.breaker_for(self.key, credential=credential, of="batch jobs", policy=_POLICY)
        self._steps = Steps(
            endpoint=endpoint_for(wire, transport, settings),
            transport=transport,
            ledger=ledger,
            cache=cache,
            key=self.key,
            folder=folder,
            call_s=settings.batch_timeout_s,
            settle_s=settle_s,
            sleep=self._sleep,
        )

    def prepare(
        self, texts: Iterable[str], *, wait: bool | None = None, progress: ProgressCallback | None = None
    ) -> BatchOutcome:
        """Bring the vectors of texts into the cache through jobs, new ones and those that run already.

        With `wait` (None: as set) it takes until the jobs of these texts have ended; other jobs are left running.
        Raises Abandoned when closed meanwhile, and nothing else: what does not work is in the notes.
        """
        wanted = {sha256_text(text): text for text in texts if text and not text.isspace()}
        wait = self._settings.batch.wait if wait is None else wait
        begun = wanted.keys() & self.hashes_at_work()
        try:
            ready = self._ready(wanted)
            if ready == wanted.keys() and not self._jobs():
                return BatchOutcome(ready)
            # A small sync does not wait for the large one of another process that has nothing to do with it.
            worth = bool(begun) or self._is_worth(len(wanted) - len(ready))
            with self._lane(wait=wait and worth) as is_ours:
                if is_ours:
                    return self._work_on(wanted, wait=wait, progress=progress)
        except StorageFailure as error:
            # Without the cache or the ledger a job could be lost or paid twice, so none is begun.
            missing = frozenset(wanted.keys() - begun)
            return BatchOutcome(frozenset(), missing, frozenset(begun), notes=(f"no batch jobs: {error}",))
        left = frozenset(wanted.keys() - ready)
        if not worth:
            return BatchOutcome(ready, missing=left)
        running = tuple(map(self._fact, self._jobs()))
        return BatchOutcome(
            ready, waiting=left, running=running, notes=("another process works on the batch jobs",)
        )

    def forget(self, hashes: Iterable[str]) -> int:
        """Cancel jobs that hold these texts, and delete what was uploaded; says how many. Raises EmbeddingError."""
        gone = frozenset(hashes)
        holding = [job for job in self._jobs() if not gone.isdisjoint(hashes_of(job))]
        if not holding:
            return 0
        left = holding
        with self._lane(wait=True) as is_ours:
            if is_ours:
                left = [job for job in holding if not self._discard(job)]
        if left:
            raise EmbeddingError(
                f"{self.key.provider} still has an upload that holds this text ({self._fact(left[0]).id})",
                hint="forget it again when the provider can be reached and no other process waits for its jobs",
            )
        return len(holding)

    def facts(self) -> Mapping[str, Any]:
        """Facts for `status`: whether jobs are used, why not, and every job that some provider works on."""
        state = self._breaker.state()
        off = permission(state, self._ledger.now(), _POLICY) == "wait"
        return {
            "enabled": self._settings.batch.enabled,
            "off": off,
            "offUntil": state.open_until if off else None,
            "failures": state.failures,
            "lastError": state.reason or None,
            "jobs": [asdict(self._fact(job)) for job in self._ledger.jobs()],
        }

    def close(self) -> None:
        """Stop waiting; jobs go on at the provider, and the next process collects them."""
        self._closing.set()
        self._steps.transport.close()

    def _discard(self, job: JobRecord) -> bool:
        try:
            return self._steps.discard(job)
        except NetFailure as failure:
            raise embedding_error(failure) from failure

    def _work_on(
        self, wanted: Mapping[str, str], *, wait: bool, progress: ProgressCallback | None
    ) -> BatchOutcome:
        """Work on jobs; only called while the lane is held."""
        round_ = self._round(wanted)
        round_.resume()
        ready = self._ready(wanted)
        known = ready | round_.waiting()
        fresh = {name: text for name, text in wanted.items() if name not in known}
        why_not = self._why_not(fresh)
        if why_not is None:
            round_.submit(self._cut(dict(islice(fresh.items(), self._room())), attempt=1))
        elif why_not:
            round_.notes[why_not] = None
        if wait:
            round_.wait(lambda stored: _tell(progress, len(ready) + stored, len(wanted)))
        ready = self._ready(wanted)
        waiting = round_.waiting() & wanted.keys() - ready
        return BatchOutcome(
            ready=ready,
            missing=frozenset(wanted.keys() - ready - waiting),
            waiting=frozenset(waiting),
            running=tuple(self._fact(job) for job in self._jobs()),
            notes=tuple(round_.notes),
        )

    def _round(self, wanted: Mapping[str, str]) -> Round:
        batch = self._settings.batch
        factor = self._steps.endpoint.price_factor
        return Round(
            steps=self._steps,
            breaker=self._breaker,
            requests=self._requests,
            bounds=JobLimits(
                concurrency=max(1, batch.concurrency),
                poll_s=batch.poll_interval_ms / 1000,
                timeout_s=batch.timeout_minutes * 60.0,
                tokens_a_day=self._settings.max_tokens_per_day,
            ),
            wanted=wanted.keys(),
            dims=self._identity().dims,
            cost=lambda tokens: price_of(self._wire, self.key.model, tokens) * factor,
            again=lambda hashes, attempt: self._cut(self._still_missing(wanted, hashes), attempt=attempt),
            mask=lambda said: mask(said, secrets=[self._settings.api_key or ""], private=wanted.values()),
            clock=self._clock,
        )

    def _why_not(self, fresh: Mapping[str, str]) -> str | None:
        """Why no new job is begun: empty when that needs no words, None when there should be one."""
        if not self._is_worth(len(fresh)):
            return ""
        if not self._identity().dims:
            return "the first texts go by single requests, until the model's dimensions are known"
        now = self._ledger.now()
        for breaker, policy in ((self._breaker, _POLICY), (self._requests, BreakerPolicy())):
            state = breaker.state()
            if permission(state, now, policy) == "wait":
                return f"batch jobs are off: {state.reason}"
        return self._ledger.trouble and f"no batch jobs: {self._ledger.trouble}"

    def _is_worth(self, count: int) -> bool:
        return self._settings.batch.enabled and count >= self._fewest

    def hashes_at_work(self) -> frozenset[str]:
        """Hashes of all texts that the provider may be working on, as far as we know: it is not asked."""
        running = (job for job in self._jobs() if job.state != PLANNED)
        return frozenset(name for job in running for name in hashes_of(job))

    def _cut(self, texts: Mapping[str, str], *, attempt: int) -> Iterator[Portion]:
        endpoint = self._steps.endpoint
        return portions(
            texts,
            endpoint.line,
            estimated_tokens,
            max_items=endpoint.max_items,
            max_bytes=endpoint.max_bytes,
            dims=self._identity().dims,
            attempt=attempt,
        )

    def _room(self) -> int:
        """How many vectors the cache can hold: what it drops again would be paid for twice."""
        caps = self._cache.describe()
        by_bytes = caps.get("maxBytes", sys.maxsize) // (4 * self._identity().dims)
        return min(caps.get("maxEntries", sys.maxsize), by_bytes)

    def _still_missing(self, wanted: Mapping[str, str], hashes: Iterable[str]) -> dict[str, str]:
        texts = {name: wanted[name] for name in hashes if name in wanted}
        ready = self._ready(texts)
        return {name: text for name, text in texts.items() if name not in ready}

    def _ready(self, wanted: Mapping[str, str]) -> frozenset[str]:
        identity = self._identity()
        if not identity.dims:
            return frozenset()
        return frozenset(name for some in _portions(wanted) for name in self._cache.lookup(identity, some))

    def _jobs(self) -> list[JobRecord]:
        return self._ledger.jobs(self.key)

    def _fact(self, job: JobRecord) -> JobFacts:
        age = max(0.0, self._ledger.now() - job.created)
        name = job.remote_id or job.id
        return JobFacts(name, job.key.provider, job.key.model, job.state, job.items, job.created, age)

    @contextmanager
    def _lane(self, *, wait: bool) -> Iterator[bool]:
        """Be the one process that works on these jobs; False when another one is, for longer than we wait."""
        patience = self._clock() + (self._settings.batch.timeout_minutes * 60.0 if wait else 0.0)
        while (held := try_lock(self._lock_path, operation="batch jobs")) is None:
            if self._clock() >= patience:
                yield False
                return
            self._sleep(_LANE_PAUSE_S)
        with held:
            yield True

    def _wait(self, seconds: float) -> None:
        if self._closing.wait(seconds):
            raise Abandoned("stopped waiting for batch jobs", hint="the next sync collects them")


def _portions(hashes: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(hashes)
    while some := list(islice(rest, _HASHES_AT_ONCE)):
        yield some


def _tell(progress: ProgressCallback | None, completed: int, total: int) -> None:
    if progress is not None:
        progress(Progress(min(completed, total), total, "batch jobs"))


class BatchingEmbedder(FullEmbedder):
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
    ) -> BatchOutcome:
        """Let jobs bring the vectors of many texts into the cache; see `BatchJobs.prepare`."""
        try:
            prepared = self.jobs.prepare(texts, wait=wait, progress=progress)
        except NetFailure as failure:
            raise embedding_error(failure) from failure
        self._waiting = prepared.waiting
        return prepared

    def leave_running(self) -> None:
        """Leave to jobs what they have begun, without asking how far they are."""
        self._waiting = self.jobs.hashes_at_work()

    def embed_query(self, text: str) -> Vector:
        """Embed a question. Raises EmbeddingError."""
        return self.embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed by single requests what no job is working on. Raises VectorsPending when one of the texts is."""
        self._refuse_pending(texts)
        return self.embedder.embed_documents(texts)

    def embed_keeping(self, texts: Sequence[str], keep: Keep) -> list[Vector | None]:
        """The same; `keep` is given what each request brings."""
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


def create_batching(
    name: str, settings: RemoteSettings, ledger: Ledger, *, cache: EmbeddingCache, folder: str
) -> BatchingEmbedder:
    """Make the provider `name` with its jobs. It closes the ledger but not the cache, which stands in front of it."""
    wire = wire_for(name, settings)
    embedder = RemoteEmbedder(wire, settings, ledger)
    try:
        transport = transport_for(wire, settings)
    except NetFailure as failure:
        raise embedding_error(failure) from failure
    jobs = BatchJobs(
        wire,
        transport,
        ledger,
        settings,
        cache=cache,
        identity=lambda: embedder.identity,
        folder=folder,
    )
    return BatchingEmbedder(embedder, jobs)


class JobFailed(NetFailure):
    """A batch job ended without what it was asked for."""


@value
class JobLimits:
    """How long, how many, how much."""

    concurrency: int
    poll_s: float
    timeout_s: float
    tokens_a_day: int | None


@record
class Round:
    """Works on the jobs of one provider while this process alone may."""

    steps: Steps
    breaker: Breaker  # of batch jobs
    requests: Breaker  # of everything that the account is asked
    bounds: JobLimits
    wanted: AbstractSet[str]  # hashes of the texts that are waited for
    dims: int
    cost: Callable[[int], float]  # of so many tokens
    again: Callable[
        [Iterable[str], int], Iterator[Portion]
    ]  # hashes that are still missing, as jobs of an attempt
    mask: Callable[[str], str]  # a provider's words without keys and without the texts
    clock: Callable[[], float]
    notes: dict[str, None] = field(default_factory=dict)
    running: dict[str, JobRecord] = field(default_factory=dict)
    stored: int = 0
    _queue: Iterator[Portion] = field(default_factory=lambda: iter(()))
    _until: dict[str, float] = field(default_factory=dict)  # when a job has taken too long, by our own clock
    _not_found: dict[str, int] = field(default_factory=dict)
    _cancelled: set[str] = field(default_factory=set)
    _full: bool = False  # nothing more is submitted in this round
    _halted: bool = False  # nothing more is asked in this round

    def resume(self) -> None:
        """Take up every job that is remembered, and collect those that have ended meanwhile."""
        self.steps.drop_old()
        remembered = self.steps.ledger.jobs(self.steps.key)
        try:
            if remembered:
                self.requests.enter()
        except ProviderPaused as paused:
            self._halt(paused)
            self.running = {job.id: job for job in remembered}
            return
        for job in remembered:
            try:
                adopted = self.steps.recover(job)
            except NetFailure as error:
                # Whether it was started cannot be known now, so nothing new is submitted that may be in it.
                self._halt(error)
                self.running[job.id] = job
                continue
            if adopted is not None:
                self._watch(adopted)
        self._look_at_all()

    def submit(self, queue: Iterator[Portion]) -> None:
        """Submit as many jobs as may run at once; the others follow while `wait` waits."""
        self._queue = chain(self._queue, queue)
        self._fill()

    def wait(self, tell: Callable[[int], None]) -> None:
        """Look at the jobs until those of wanted texts have ended; `tell` hears how many vectors have come."""
        pause = self.bounds.poll_s
        while self.running and not self._halted and (self._has_more() or self._is_awaited()):
            self.steps.sleep(pause)
            before = (len(self.running), self.stored)
            self._look_at_all()
            self._fill()
            moved = before != (len(self.running), self.stored)
            pause = self.bounds.poll_s if moved else min(pause * _PAUSE_GROWTH, _LONGEST_PAUSE_S)
            tell(self.stored)

    def waiting(self) -> set[str]:
        """Hashes of the texts that are in running jobs, or may be."""
        started = [job for job in self.running.values() if job.state != PLANNED]
        return {name for job in started for name in hashes_of(job)}

    def _is_awaited(self) -> bool:
        return any(not self.wanted.isdisjoint(hashes_of(job)) for job in self.running.values())

    def _has_more(self) -> bool:
        portion = next(self._queue, None)
        if portion is not None:
            self._queue = chain([portion], self._queue)
        return portion is not None and not self._full

    def _fill(self) -> None:
        while not (self._halted or self._full) and len(self.running) < self.bounds.concurrency:
            portion = next(self._queue, None)
            if portion is None:
                return
            try:
                self.breaker.enter()
            except ProviderPaused as paused:
                # While one job tries whether they work again, the others wait for it.
                self._queue = chain([portion], self._queue)
                if not self.running:
                    self._note(f"batch jobs are off: {paused}")
                return
            self._submit(portion)

    def _submit(self, portion: Portion) -> None:
        try:
            job = self.steps.submit(
                portion, dims=self.dims, cost=self.cost(portion.tokens), limit=self.bounds.tokens_a_day
            )
        except Abandoned:
            raise
        except _OF_THE_ACCOUNT as error:
            self._halt(error)
        except (BudgetSpent, StorageFailure) as error:
            self._full = True  # those that run are waited for all the same
            self._note(str(error))
        except NetFailure as error:
            self._count_failure(error)
        else:
            self._watch(job)

    def _watch(self, job: JobRecord) -> None:
        self.running[job.id] = job
        self._until[job.id] = self.clock() + self.bounds.timeout_s

    def _look_at_all(self) -> None:
        for job in list(self.running.values()):
            if self._halted:
                return
            try:
                self._look(job)
            except (*_OF_THE_ACCOUNT, StorageFailure) as error:
                # The jobs stay remembered: what they give is collected when the key works, or the disk.
                self._halt(error)

    def _look(self, job: JobRecord) -> None:
        try:
            seen = self.steps.look(job)
            self.requests.count_success()
            if seen.ended:
                self._end(job, seen)
                return
        except (*_OF_THE_ACCOUNT, Abandoned):
            raise
        except NetFailure as error:
            if self._is_gone(job, error):
                self._give_up(job, f"batch job {job.remote_id} cannot be had: {error}")
                return
        self._check_time(job)

    def _is_gone(self, job: JobRecord, error: NetFailure) -> bool:
        """Whether the job is lost for good. A new one may be unknown to some of the provider's servers at first."""
        if error.status in _GONE:
            self._not_found[job.id] = self._not_found.get(job.id, 0) + 1
        return isinstance(error, AnswerTooLarge) or self._not_found.get(job.id, 0) >= _TIMES_NOT_FOUND

    def _end(self, job: JobRecord, seen: JobView) -> None:
        """Keep what the job gave; whatever it did not give is missing, and is asked for one by one."""
        stored, tally = self.steps.take(job, seen)
        self.stored += tally.good
        del self.running[job.id]
        if 0 < tally.good < job.items:
            self._note(f"batch job {seen.job_id} gave {tally.good:,} of {job.items:,} vectors")
        if seen.complete and tally.good:
            self.breaker.count_success()
        elif job.id in self._cancelled:
            self._retry_late_job(job)
        else:
            said = self.mask(self.steps.complaint(seen))
            self._count_failure(
                JobFailed(f"batch job {seen.job_id} ended as `{seen.said}`{said and ': '}{said}")
            )
        self.steps.clean(stored)

    def _check_time(self, job: JobRecord) -> None:
        too_old = self.steps.ledger.now() - job.created > _OLDEST_S
        if not too_old and self.clock() < self._until[job.id]:
            return
        if job.id not in self._cancelled and not too_old:
            self._cancelled.add(job.id)
            self._until[job.id] = self.clock() + _CANCELLING_S
            try:
                self.steps.cancel(job)
            except NetFailure as error:
                self._note(f"batch job {job.remote_id} could not be cancelled: {error}")
            return
        self.steps.give_up(job)
        del self.running[job.id]
        self._retry_late_job(job)

    def _retry_late_job(self, job: JobRecord) -> None:
        """Try once more with what is missing; a second time-out is a failure."""
        attempt = int(job.facts["attempt"])
        missing = list(self.again(hashes_of(job), attempt + 1)) if attempt < _ATTEMPTS else []
        minutes = self.bounds.timeout_s / 60
        late = f"batch job {job.remote_id} was not done within {minutes:g} minutes"
        if missing:
            self._note(f"{late}; it was cancelled and tried once more")
            self._queue = chain(missing, self._queue)
        else:
            self._count_failure(JobFailed(late))

    def _give_up(self, job: JobRecord, reason: str) -> None:
        self.steps.give_up(job)
        del self.running[job.id]
        self._count_failure(JobFailed(reason))

    def _count_failure(self, failure: NetFailure) -> None:
        self.breaker.count_failure(failure)
        self._note(str(failure))

    def _halt(self, error: NetFailure | StorageFailure) -> None:
        self._halted = True
        self._note(str(error))
        if isinstance(error, _OF_THE_ACCOUNT):
            self.requests.count_failure(error)

    def _note(self, text: str) -> None:
        self.notes[text] = None
