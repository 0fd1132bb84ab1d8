"""How texts become jobs, and how a job is remembered: pure decisions, and facts that hold no text."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plainmind.guests.remote.batch_results import largest_output
from plainmind.guests.remote.job_records import JobRecord

# A job is `PLANNED` before anything is sent, `UPLOADED` when the id of its file is saved, `RUNNING` when its own id
# is, and `STORED` when its vectors are in the cache and only the provider's files are left to delete.
PLANNED, UPLOADED, RUNNING, STORED = "planned", "uploaded", "running", "stored"

_LARGEST_OUTPUT = 512 * 1024 * 1024  # on our disk, while it is read
_HASH_BYTES = 32


@dataclass(frozen=True, slots=True)
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
        "hashes": packed(portion.hashes),
        "dims": dims,
        "tokens": portion.tokens,
        "cost": cost,
        "attempt": portion.attempt,
    }


def packed(hashes: Iterable[str]) -> str:
    """Write hashes in a third less space than their own."""
    return base64.b64encode(b"".join(map(bytes.fromhex, hashes))).decode("ascii")


def hashes_of(job: JobRecord) -> list[str]:
    """The hashes of the texts that the job was given."""
    joined = base64.b64decode(job.facts["hashes"])
    return [joined[at : at + _HASH_BYTES].hex() for at in range(0, len(joined), _HASH_BYTES)]


def stepped(job: JobRecord, state: str, *, remote_id: str | None = None, **facts: Any) -> JobRecord:
    """The job in its next state."""
    return replace(job, state=state, remote_id=remote_id or job.remote_id, facts={**job.facts, **facts})


def files_of(job: JobRecord) -> Sequence[str]:
    """The provider's files that are known to belong to the job."""
    known = [*job.facts.get("files", ()), job.facts.get("file_id")]
    return list(dict.fromkeys(file for file in known if file))
