"""The steps of one batch job, each of which may be the last before the process is killed.

What a step is about to do is in the ledger before it is done: a file or a job at the provider that we do not know
of can then be found by its tag, and nothing is ever submitted a second time because its id was lost.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, NoReturn

from plainmind.base.errors import BadVector, StorageFailure
from plainmind.base.model import EmbedderIdentity, Vector
from plainmind.base.value import field, record, replace, value
from plainmind.embed.protocol import EmbeddingCache, check_vectors
from plainmind.guests.net.failures import AnswerUnreadable, NetFailure
from plainmind.guests.net.transport import Transport
from plainmind.guests.remote.failures import BudgetSpent
from plainmind.guests.remote.ledger import JobRecord, Ledger
from plainmind.guests.remote.vendors import AnswerLine, BatchEndpoint, JobView, Unlisted
from plainmind.guests.remote.wire import ProviderKey

# A job is `PLANNED` before anything is sent, `UPLOADED` when the id of its file is saved, `RUNNING` when its own id
# is, and `STORED` when its vectors are in the cache and only the provider's files are left to delete.
PLANNED, UPLOADED, RUNNING, STORED = "planned", "uploaded", "running", "stored"

_LARGEST_OUTPUT = 512 * 1024 * 1024  # on our disk, while it is read
_HASH_BYTES = 32
_VECTORS_AT_ONCE = 400
_BYTES_A_NUMBER = 26  # `-1.2345678901234567e-10, ` and some
_BYTES_AROUND_IT = 4096
_TRANSFER_S = 900.0
_UPLOADS = 3
_PAUSE_S = 2.0
_LARGEST_ERROR_FILE = 64 * 1024 * 1024
_DAY_S = 86_400
_KEPT_S = 30 * _DAY_S
_GONE = {404, 410}


@value
class Steps:
    """What every step needs. `settle_s` is how long a new job may be missing from the provider's list of jobs."""

    endpoint: BatchEndpoint
    transport: Transport
    ledger: Ledger
    cache: EmbeddingCache
    key: ProviderKey
    folder: str  # for what is downloaded; nameless files, gone with the process
    call_s: float
    settle_s: float
    sleep: Callable[[float], None]

    def submit(self, portion: Portion, *, dims: int, cost: float, limit: int | None) -> JobRecord:
        """Upload the texts and start the job. Raises NetFailure or StorageFailure.

        Then nothing is left of it, except where it cannot be known whether it was started: `recover` finds out later.
        """
        if not self.ledger.reserve(self.key, tokens=portion.tokens, cost=cost, limit=limit):
            raise BudgetSpent(
                f"a job of about {portion.tokens:,} tokens would exceed today's limit of {limit:,}",
                hint="raise `remote.maxTokensPerDay`, or wait until tomorrow",
            )
        facts = facts_of(portion, dims=dims, cost=cost)
        job = JobRecord(
            secrets.token_hex(12),
            self.key,
            PLANNED,
            len(portion.hashes),
            created=self.ledger.now(),
            facts=facts,
        )
        self._save(job)
        try:
            file_id = self._upload(job, portion)
        except NetFailure:
            self.undo(job)
            raise
        return self._start(self._save(in_state(job, UPLOADED, file_id=file_id)))

    def recover(self, job: JobRecord) -> JobRecord | None:
        """Go on with a job that a killed process left: adopt it when it was started, undo it when it was not."""
        if job.state == RUNNING:
            return job
        if job.state == STORED:
            self.clean(job)
        elif job.state == UPLOADED and (seen := self._find(job)) is not None:
            return self._save(in_state(job, RUNNING, remote_id=seen.job_id))
        else:
            self.undo(job)
        return None

    def drop_old(self) -> None:
        """Forget jobs, also of other providers, that are so old that nothing of them is kept there any more."""
        for job in self.ledger.jobs():
            if self.ledger.now() - job.created > _KEPT_S:
                self.ledger.drop_job(job.id)

    def look(self, job: JobRecord) -> JobView:
        """See how far the provider is."""
        return self.endpoint.look(job.remote_id or "", deadline=self._soon())

    def cancel(self, job: JobRecord) -> None:
        """Ask the provider to stop; what it has done by then it still gives."""
        self.endpoint.cancel(job.remote_id or "", deadline=self._soon())

    def take(self, job: JobRecord, seen: JobView) -> tuple[JobRecord, Tally]:
        """Put the vectors of a job that has ended into the cache; `clean` comes next.

        Killed anywhere before the end, it is done once more from the beginning, which changes nothing.
        """
        tally = Tally()
        dims, wanted = int(job.facts["dims"]), frozenset(hashes_of(job))
        identity = EmbedderIdentity(self.key.provider, self.key.model, self.key.endpoint, dims)
        for file_id in seen.outputs:
            with self._scratch() as file:
                self._download(file_id, file, cap=largest_output(job.items, dims))
                for vectors in vectors_in(file, self.endpoint.read, wanted=wanted, dims=dims, tally=tally):
                    self.cache.insert(identity, vectors)
        self.cache.forget(sorted(tally.disputed))
        if tally.tokens:
            self._count(job, tally.tokens)
        return self._save(in_state(job, STORED, files=list(seen.files))), tally

    def complaint(self, seen: JobView) -> str:
        """Why a job gave nothing, in the provider's words."""
        said = seen.trouble or ""
        if not said and seen.errors:
            with suppress(NetFailure), self._scratch() as file:
                self._download(seen.errors, file, cap=_LARGEST_ERROR_FILE)
                said = first_code(file)
        return said

    def undo(self, job: JobRecord) -> bool:
        """Forget a job that was never started: delete what was uploaded, take back what was reserved.

        Where the provider cannot be reached now the job stays remembered, for the next process to undo.
        """
        try:
            for file_id in files_of(job) or self._files_by_tag(job):
                self.endpoint.delete(file_id, deadline=self._soon())
        except NetFailure:
            return False
        self._count(job, 0)
        self.ledger.drop_job(job.id)
        return True

    def clean(self, job: JobRecord) -> bool:
        """Delete the provider's files of a job that is over, then forget it; unreachable ones are left to the next."""
        try:
            for file_id in files_of(job):
                self.endpoint.delete(file_id, deadline=self._soon())
        except NetFailure:
            return False
        self.ledger.drop_job(job.id)
        return True

    def give_up(self, job: JobRecord) -> bool:
        """Expect nothing more of a job; what it may still send is not looked at."""
        return self.clean(self._save(in_state(job, STORED)))

    def discard(self, job: JobRecord) -> bool:
        """Stop a job and delete all its files, whatever they hold; False when some of it could not be done."""
        found = self.recover(job)
        if found is None:
            return all(other.id != job.id for other in self.ledger.jobs(self.key))
        try:
            seen = self.look(found)
            if not seen.ended:
                self.cancel(found)
        except NetFailure as error:
            if error.status not in _GONE:
                return False
            return self.give_up(found)
        return self.clean(self._save(in_state(found, STORED, files=list(seen.files))))

    def _upload(self, job: JobRecord, portion: Portion) -> str:
        for attempt in range(1, _UPLOADS + 1):
            try:
                file_id = self.endpoint.upload(job.id, portion.lines, deadline=time.monotonic() + _TRANSFER_S)
            except NetFailure as error:
                if not error.retryable or attempt == _UPLOADS:
                    raise
                self.sleep(max(_PAUSE_S * attempt, min(error.retry_after or 0.0, 60.0)))
                continue
            if attempt > 1:
                # An upload whose answer was lost may have arrived all the same.
                for other in self._files_by_tag(job):
                    if other != file_id:
                        self.endpoint.delete(other, deadline=self._soon())
            return file_id
        raise AssertionError  # the last attempt returns or raises

    def _start(self, job: JobRecord) -> JobRecord:
        try:
            seen = self.endpoint.create(job.id, job.facts["file_id"], deadline=self._soon())
        except NetFailure as error:
            # Refused is not started; after anything else only the list of jobs can tell.
            found = self._find(job) if error.retryable or error.may_have_worked else None
            if found is None:
                self.undo(job)
                raise
            seen = found
        return self._save(in_state(job, RUNNING, remote_id=seen.job_id))

    def _find(self, job: JobRecord) -> JobView | None:
        """Look for a job that may have been started; None when it was not, or when that cannot be known."""
        file_id = job.facts["file_id"]
        try:
            seen = self.endpoint.find(job.id, file_id, deadline=self._soon())
            if seen is None and self.settle_s:
                self.sleep(self.settle_s)
                seen = self.endpoint.find(job.id, file_id, deadline=self._soon())
        except Unlisted:
            return None
        return seen

    def _files_by_tag(self, job: JobRecord) -> list[str]:
        try:
            return self.endpoint.files_of(job.id, deadline=self._soon())
        except Unlisted:
            return []

    def _download(self, file_id: str, file: IO[bytes], *, cap: int) -> None:
        self.transport.download(
            self.endpoint.content_path(file_id), file, deadline=time.monotonic() + _TRANSFER_S, cap=cap
        )
        file.seek(0)

    def _scratch(self) -> IO[bytes]:
        try:
            return tempfile.TemporaryFile(dir=self.folder)
        except OSError as error:
            raise StorageFailure(
                f"what a batch job gave cannot be kept in {self.folder}: {error.strerror}",
                hint="make room, or make the folder writable; the job waits at the provider",
            ) from error

    def _count(self, job: JobRecord, tokens: int) -> None:
        """Put the tokens that were used in the place of those reserved, unless that was on another day."""
        reserved, cost = int(job.facts["tokens"]), float(job.facts["cost"])
        if reserved and int(job.created // _DAY_S) == int(self.ledger.now() // _DAY_S):
            more = tokens - reserved
            self.ledger.add_usage(self.key, tokens=more, cost=cost * more / reserved)

    def _save(self, job: JobRecord) -> JobRecord:
        self.ledger.save_job(job)
        return job

    def _soon(self) -> float:
        return time.monotonic() + self.call_s


@value
class Portion:
    """The texts of one job: their hashes, the lines of the input file, and about how many tokens they are."""

    hashes: tuple[str, ...]
    lines: tuple[bytes, ...]
    tokens: int
    attempt: int = 1


def portions(
    texts: Mapping[str, str],
    line: Callable[[str, str], bytes],
    tokens: Callable[[str], int],
    *,
    max_items: int,
    max_bytes: int,
    dims: int,
    attempt: int = 1,
) -> Iterator[Portion]:
    """Cut texts (by hash) into jobs that keep the provider's limits, and whose output keeps ours."""
    most = max(1, min(max_items, _LARGEST_OUTPUT // largest_output(1, dims)))
    hashes: list[str] = []
    lines: list[bytes] = []
    size = count = 0
    for name, text in texts.items():
        row = line(name, text)
        if hashes and (len(hashes) >= most or size + len(row) > max_bytes):
            yield Portion(tuple(hashes), tuple(lines), count, attempt)
            hashes, lines, size, count = [], [], 0, 0
        hashes.append(name)
        lines.append(row)
        size += len(row)
        count += tokens(text)
    if hashes:
        yield Portion(tuple(hashes), tuple(lines), count, attempt)


def facts_of(portion: Portion, *, dims: int, cost: float) -> dict[str, Any]:
    """What is remembered of a job besides its state."""
    return {
        "hashes": pack_hashes(portion.hashes),
        "dims": dims,
        "tokens": portion.tokens,
        "cost": cost,
        "attempt": portion.attempt,
    }


def pack_hashes(hashes: Iterable[str]) -> str:
    """Write hashes in a third less space than their own."""
    return base64.b64encode(b"".join(map(bytes.fromhex, hashes))).decode("ascii")


def hashes_of(job: JobRecord) -> list[str]:
    """The hashes of the texts that the job was given."""
    joined = base64.b64decode(job.facts["hashes"])
    return [joined[at : at + _HASH_BYTES].hex() for at in range(0, len(joined), _HASH_BYTES)]


def in_state(job: JobRecord, state: str, *, remote_id: str | None = None, **facts: Any) -> JobRecord:
    """The job in its next state."""
    return replace(job, state=state, remote_id=remote_id or job.remote_id, facts={**job.facts, **facts})


def files_of(job: JobRecord) -> Sequence[str]:
    """The provider's files that are known to belong to the job."""
    known = [*job.facts.get("files", ()), job.facts.get("file_id")]
    return list(dict.fromkeys(file for file in known if file))


@record
class Tally:
    """What an output file held."""

    good: int = 0
    bad: int = 0  # lines without a vector that may be stored
    tokens: int = 0
    disputed: set[str] = field(default_factory=set)  # texts with two different answers: neither is kept


def largest_output(items: int, dims: int) -> int:
    """How many bytes an honest output file can have."""
    return items * (dims * _BYTES_A_NUMBER + _BYTES_AROUND_IT) + _BYTES_AROUND_IT


def vectors_in(
    file: IO[bytes], read: Callable[[Any], AnswerLine], *, wanted: Collection[str], dims: int, tally: Tally
) -> Iterator[dict[str, Vector]]:
    """Give portions of checked vectors by hash; a bad line costs only itself."""
    seen: dict[str, bytes] = {}
    portion: dict[str, Vector] = {}
    for row in file:
        if not row.strip():
            continue
        answer = _read_line(row, read, wanted, dims, tally)
        if answer is None:
            continue
        name, vector = answer
        mark = hashlib.blake2b(vector.tobytes(), digest_size=16).digest()
        if seen.setdefault(name, mark) != mark:
            tally.disputed.add(name)
            continue
        portion[name] = vector
        if len(portion) >= _VECTORS_AT_ONCE:
            yield portion
            portion = {}
    if portion:
        yield portion
    tally.good = len(seen.keys() - tally.disputed)


def first_code(file: IO[bytes]) -> str:
    """The code on the first line of an error file. Its message is left out: those like to quote the text."""
    try:
        payload = json.loads(file.readline(65_536))
    except ValueError:
        return ""
    holders = [payload] if isinstance(payload, dict) else []
    holders += [value for holder in holders for value in holder.values() if isinstance(value, dict)]
    codes = [holder.get(name) for holder in holders for name in ("code", "status_code")]
    return next((str(code) for code in codes if isinstance(code, str | int)), "")


def _read_line(
    row: bytes, read: Callable[[Any], AnswerLine], wanted: Collection[str], dims: int, tally: Tally
) -> tuple[str, Vector] | None:
    try:
        line = read(json.loads(row, parse_constant=_refuse))
        if line.hash not in wanted:
            return None  # an answer to what this job did not ask
        (vector,) = check_vectors([line.values], expected_count=1, expected_dims=dims)
    except (ValueError, RecursionError, AnswerUnreadable, BadVector):
        tally.bad += 1
        return None
    tally.tokens += line.tokens
    return line.hash, vector


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
