"""Whatever the moment at which a process is killed, the next one goes on with its job and nothing is paid twice."""

from __future__ import annotations

import multiprocessing
import random
import signal
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest
from tests.support.providers.batch_clients import TEXTS, client_of
from tests.support.providers.batch_worker import work
from tests.support.providers.batches import BatchRoutes, serving
from tests.support.providers.server import unit_vector_for

# In the order in which a job comes through them. The last three happen in the process itself.
AT_THE_PROVIDER = (
    "uploading",
    "uploaded",
    "creating",
    "created",
    "polled",
    "completed",
    "downloaded",
    "downloading",
    "deleting",
)
IN_THE_PROCESS = ("parsed", "half-stored", "stored")
MOMENTS = AT_THE_PROVIDER + IN_THE_PROCESS
# Real processes, of one that has imported everything already: to start each anew takes longer than what it does.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.support.providers.batch_worker"])

DIALECTS = ("openai", "gemini", "voyage")
# Voyage takes OpenAI's steps with other lines.
CASES = [(dialect, moment) for dialect in DIALECTS[:2] for moment in MOMENTS]
CASES += [("voyage", "created"), ("voyage", "downloading")]


def run(
    provider: BatchRoutes, base_url: str, home: Path, moment: str | int, *, max_items: int = 100
) -> tuple[int, str]:
    """Run a process that is killed at `moment`, or at so many moments from its start, or ends by itself."""
    out, err = home / "out", home / "err"
    process = FORKS.Process(
        target=work, args=(provider.dialect, base_url, str(home), str(moment), max_items, str(out), str(err))
    )
    process.start()
    passed = 0

    def kill(now: str) -> None:
        nonlocal passed
        passed += 1
        if moment in {now, passed}:
            process.kill()
            wait([process.sentinel])  # how it ended can be read once, and that is done below
            if now == "creating":
                raise ConnectionResetError  # the provider never got to read the request

    provider.at = kill
    process.join(60)
    provider.at = str
    assert err.read_text() == ""
    assert process.exitcode is not None
    return process.exitcode, out.read_text()


def faults_of(provider: BatchRoutes, base_url: str, home: Path, *, jobs: int = 1) -> Iterator[str]:
    with client_of(provider.dialect, base_url, home) as user:
        vectors = user.cached(TEXTS)
        if user.jobs.facts()["jobs"]:
            yield "a job is still remembered"
    if provider.created != jobs:
        yield f"{provider.created} jobs were submitted"
    if sorted(provider.texts_submitted) != sorted(TEXTS):
        yield "the jobs do not hold each text once"
    if provider.single.seen:
        yield "texts were paid for again by single requests"
    if provider.files:
        yield f"files were left: {provider.files.keys()}"
    if vectors.keys() != set(TEXTS):
        yield f"{len(vectors)} of {len(TEXTS)} vectors came"
    for text, vector in vectors.items():
        if vector != pytest.approx(unit_vector_for(text)):
            yield f"the vector of {text!r} belongs to another text"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("dialect", "moment"), CASES)
def test_a_process_killed_at_any_moment_is_followed_by_one_that_finishes_its_job(
    dialect: str, moment: str, tmp_path: Path
) -> None:
    provider = BatchRoutes(dialect)
    with serving(provider) as base_url:
        killed, _ = run(provider, base_url, tmp_path, moment)
        ended, said = run(provider, base_url, tmp_path, "")

        assert killed == -signal.SIGKILL
        assert (ended, said) == (0, "20 0 0\n")
        assert [*faults_of(provider, base_url, tmp_path)] == []


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_job_survives_being_killed_at_every_moment_in_turn(dialect: str, tmp_path: Path) -> None:
    provider = BatchRoutes(dialect)
    with serving(provider) as base_url:
        killed = [run(provider, base_url, tmp_path, moment)[0] for moment in MOMENTS if moment != "deleting"]
        ended, said = run(provider, base_url, tmp_path, "")

        # Uploads that were broken off or undone come again; a job that was started does not.
        assert killed == [-signal.SIGKILL] * (len(MOMENTS) - 1)
        assert (ended, said) == (0, "20 0 0\n")
        assert [*faults_of(provider, base_url, tmp_path)] == []


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("dialect", "seed"), [("openai", 1), ("openai", 2), ("gemini", 3)])
def test_several_jobs_survive_a_dozen_killed_processes(dialect: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    provider = BatchRoutes(dialect)
    with serving(provider) as base_url:
        for _ in range(12):
            run(provider, base_url, tmp_path, chance.randint(1, 12), max_items=5)
        ended, said = run(provider, base_url, tmp_path, "", max_items=5)

        assert (ended, said) == (0, "20 0 0\n")
        assert [*faults_of(provider, base_url, tmp_path, jobs=4)] == []


@pytest.mark.timeout(60)
def test_a_job_that_was_started_is_found_even_when_a_later_process_may_not_wait(tmp_path: Path) -> None:
    provider = BatchRoutes("openai")
    provider.script = ["in_progress"]
    with serving(provider) as base_url:
        run(provider, base_url, tmp_path, "created")
        with client_of("openai", base_url, tmp_path, settle_s=0.05) as user:
            prepared = user.jobs.prepare(TEXTS, wait=False)

    assert len(prepared.waiting) == 20
    assert provider.created == 1


@pytest.mark.timeout(60)
def test_where_jobs_cannot_be_listed_a_job_of_unknown_fate_is_undone(tmp_path: Path) -> None:
    provider = BatchRoutes("openai")
    provider.faults = {"no-list"}
    with serving(provider) as base_url:
        run(provider, base_url, tmp_path, "created")
        abandoned = next(iter(provider.batches.values())).input_file
        ended, said = run(provider, base_url, tmp_path, "")

    assert (ended, said) == (0, "20 0 0\n")
    assert abandoned not in provider.files
    assert provider.created == 2


@pytest.mark.timeout(60)
def test_nothing_is_submitted_while_it_cannot_be_known_whether_it_was_already(tmp_path: Path) -> None:
    provider = BatchRoutes("openai")
    with serving(provider) as base_url:
        run(provider, base_url, tmp_path, "created")
    # The provider is gone: nobody listens at this port any more.
    with client_of("openai", base_url, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS, wait=True)

    assert len(prepared.waiting) == 20
    assert prepared.missing == frozenset()
    assert "cannot be reached" in prepared.notes[0]
