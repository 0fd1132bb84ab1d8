"""One round of work on batch jobs: go on with those that are known, submit what is new, wait as long as we may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain

from plainmind.base.errors import StorageFailure
from plainmind.guests.remote.batch_endpoint import Seen
from plainmind.guests.remote.batch_plan import PLANNED, Portion, hashes_of
from plainmind.guests.remote.batch_steps import Steps
from plainmind.guests.remote.failures import (
    Abandoned,
    AnswerTooLarge,
    BudgetSpent,
    KeyRefused,
    ProviderFailure,
    ProviderPaused,
    QuotaSpent,
)
from plainmind.guests.remote.job_records import JobRecord, jobs
from plainmind.guests.remote.pausing import Breaker

_LONGEST_PAUSE_S = 30.0
_PAUSE_GROWTH = 1.5
_CANCELLING_S = 600.0  # providers take up to ten minutes to stop
_OLDEST_S = 3 * 86_400.0  # no provider works longer on a job
_ATTEMPTS = 2
_GONE = {404, 410}
_TIMES_NOT_FOUND = 3
# Not the fault of batch jobs: single requests fail in the same way, and say so to every process.
_OF_THE_ACCOUNT = (KeyRefused, QuotaSpent)


class JobFailed(ProviderFailure):
    """A batch job ended without what it was asked for."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long, how many, how much."""

    concurrency: int
    poll_s: float
    timeout_s: float
    tokens_a_day: int | None


@dataclass(slots=True)
class Round:
    """Works on the jobs of one provider while this process alone may."""

    steps: Steps
    breaker: Breaker  # of batch jobs
    requests: Breaker  # of everything that the account is asked
    bounds: Bounds
    wanted: AbstractSet[str]  # hashes of the texts that somebody waits for
    dims: int
    cost: Callable[[int], float]  # of so many tokens
    again: Callable[
        [Iterable[str], int], Iterator[Portion]
    ]  # hashes that are still missing, as jobs of an attempt
    masked: Callable[[str], str]  # a provider's words without keys and without the texts
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
        remembered = jobs(self.steps.ledger, self.steps.key)
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
            except ProviderFailure as error:
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
        except ProviderFailure as error:
            self._failed(error)
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
            self.requests.succeeded()
            if seen.ended:
                self._end(job, seen)
                return
        except (*_OF_THE_ACCOUNT, Abandoned):
            raise
        except ProviderFailure as error:
            if self._is_gone(job, error):
                self._lost(job, f"batch job {job.remote_id} cannot be had: {error}")
                return
        self._mind_the_time(job)

    def _is_gone(self, job: JobRecord, error: ProviderFailure) -> bool:
        """Whether the job is lost for good. A new one may be unknown to some of the provider's servers at first."""
        if error.status in _GONE:
            self._not_found[job.id] = self._not_found.get(job.id, 0) + 1
        return isinstance(error, AnswerTooLarge) or self._not_found.get(job.id, 0) >= _TIMES_NOT_FOUND

    def _end(self, job: JobRecord, seen: Seen) -> None:
        """Keep what the job gave; whatever it did not give is missing, and somebody asks for it one by one."""
        stored, tally = self.steps.take(job, seen)
        self.stored += tally.good
        del self.running[job.id]
        if 0 < tally.good < job.items:
            self._note(f"batch job {seen.job_id} gave {tally.good:,} of {job.items:,} vectors")
        if seen.complete and tally.good:
            self.breaker.succeeded()
        elif job.id in self._cancelled:
            self._timed_out(job)
        else:
            said = self.masked(self.steps.complaint(seen))
            self._failed(JobFailed(f"batch job {seen.job_id} ended as `{seen.said}`{said and ': '}{said}"))
        self.steps.clean(stored)

    def _mind_the_time(self, job: JobRecord) -> None:
        too_old = self.steps.ledger.now() - job.created > _OLDEST_S
        if not too_old and self.clock() < self._until[job.id]:
            return
        if job.id not in self._cancelled and not too_old:
            self._cancelled.add(job.id)
            self._until[job.id] = self.clock() + _CANCELLING_S
            try:
                self.steps.cancel(job)
            except ProviderFailure as error:
                self._note(f"batch job {job.remote_id} could not be cancelled: {error}")
            return
        self.steps.give_up(job)
        del self.running[job.id]
        self._timed_out(job)

    def _timed_out(self, job: JobRecord) -> None:
        """Try once more with what is missing; a second time-out is a failure."""
        attempt = int(job.facts["attempt"])
        missing = list(self.again(hashes_of(job), attempt + 1)) if attempt < _ATTEMPTS else []
        minutes = self.bounds.timeout_s / 60
        late = f"batch job {job.remote_id} was not done within {minutes:g} minutes"
        if missing:
            self._note(f"{late}; it was cancelled and tried once more")
            self._queue = chain(missing, self._queue)
        else:
            self._failed(JobFailed(late))

    def _lost(self, job: JobRecord, reason: str) -> None:
        self.steps.give_up(job)
        del self.running[job.id]
        self._failed(JobFailed(reason))

    def _failed(self, failure: ProviderFailure) -> None:
        self.breaker.failed(failure)
        self._note(str(failure))

    def _halt(self, error: ProviderFailure | StorageFailure) -> None:
        self._halted = True
        self._note(str(error))
        if isinstance(error, _OF_THE_ACCOUNT):
            self.requests.failed(error)

    def _note(self, text: str) -> None:
        self.notes[text] = None
