"""Whatever a provider does: no bad vector is stored, words answer throughout, and it is not asked for ever."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.providers import chaos
from tests.support.providers.batches import BatchRoutes
from tests.support.providers.batches import serving as serving_batches
from tests.support.providers.server import DIALECTS, KEY, Provider, serving, unit_vector_for

from plainmind import Memory
from plainmind.base.model import EVERY_SCOPE, SearchFilter
from plainmind.index.chunks import embedded_text
from plainmind.index.plan import WITHOUT_VECTORS
from plainmind.index.protocol import vector_candidates

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
ROOT = Path(__file__).resolve().parents[2]
HASTE = {"queryTimeoutMs": 500, "documentTimeoutMs": 1000}
NOTES = 6
EVERYTHING = SearchFilter(frozenset({"memory"}), EVERY_SCOPE)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    for number in range(NOTES):
        (folder / "memory" / f"{number}.md").write_text(
            f"# Note {number}\n\nThe gateway number {number} is in room {number * 7}, beside the bread.\n"
        )
    return folder


@pytest.fixture(params=DIALECTS)
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    with serving(Provider(request.param)) as served:
        yield served


def config(provider: Provider, **changes: Any) -> dict[str, Any]:
    remote = {"baseUrl": provider.base_url, "apiKey": KEY, "queryTimeoutMs": 60_000}
    return {
        "provider": provider.dialect,
        "outputDimensionality": 64,
        "remote": remote | changes.pop("remote", {}),
    } | changes


def wrong_vectors(memory: Memory) -> Iterator[str]:
    """Every chunk must be the nearest to the vector that its text really has, as near as stored numbers can be."""
    with memory.index.store.reading() as reader:
        incomplete = {
            path for (_, path), state in reader.files().items() if state.hash.startswith(WITHOUT_VECTORS)
        }
        for _, path in reader.files():
            for chunk in reader.chunks_between("memory", path, 1, 1_000_000):
                right = unit_vector_for(embedded_text(chunk))
                candidates = vector_candidates(reader, right, where=EVERYTHING, limit=NOTES + 5)
                found = {(near.chunk.path, near.chunk.ordinal): near.score for near in candidates}
                score = found.get((path, chunk.ordinal), 0.0)
                if path in incomplete and score > 0:
                    yield f"{path} has a vector that nobody gave"
                if path not in incomplete and score < 0.995:
                    yield f"the vector of {path} is not that of its text: {score}"


def assert_words_answer(memory: Memory) -> None:
    result = memory.search("gateway number 3", max_results=1)
    assert result.hits[0].path == "memory/3.md"


def mend(memory: Memory, provider: Provider) -> None:
    provider.fault, provider.script = None, []
    assert memory.index.providers is not None
    memory.index.providers.succession.chosen.probe(anyway=True)


# Whoever answers slowly is waited for by the transport, which all dialects share: in the small run one shows it.
FAULTS_BY_DIALECT = [
    (dialect, name)
    for dialect in DIALECTS
    for name in chaos.FAULTS
    if FULL or dialect == DIALECTS[0] or name not in chaos.SLOW
]


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(("provider", "name"), FAULTS_BY_DIALECT, indirect=["provider"])
def test_no_fault_stores_a_bad_vector_or_stops_the_words(
    provider: Provider, workspace: Path, tmp_path: Path, name: str
) -> None:
    provider.fault = chaos.FAULTS[name]
    haste = {} if name in chaos.HARMLESS else HASTE
    with Memory(workspace, home=tmp_path / "home", config=config(provider, remote=haste)) as memory:
        started = time.monotonic()
        memory.sync()
        assert_words_answer(memory)
        # The provider would go on for 16 s and more.
        assert time.monotonic() - started < 12 or name not in chaos.SLOW
        assert [*wrong_vectors(memory)] == []
        if name in chaos.HARMLESS and provider.dialect != "gemini":
            assert memory.status()["withoutVectors"] == 0
    with Memory(workspace, home=tmp_path / "home", config=config(provider)) as memory:
        mend(memory, provider)
        report = memory.sync()

        assert report.degraded == ()
        assert memory.status()["withoutVectors"] == 0
        assert [*wrong_vectors(memory)] == []
        assert memory.search("gateway number 3").mode == "hybrid"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", range(2))
def test_a_seeded_script_of_faults_ends_with_the_right_index(
    workspace: Path, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    faults = [fault for name, fault in chaos.FAULTS.items() if name not in chaos.SLOW and name != "gzip bomb"]
    with serving(Provider("openai")) as provider:
        for step in range(12):
            provider.script = [chance.choice([None, *faults]) for _ in range(6)]
            with Memory(workspace, home=tmp_path / "home", config=config(provider)) as memory:
                (workspace / "memory" / f"{step % NOTES}.md").write_text(
                    f"# Note {step % NOTES}\n\nThe gateway number {step % NOTES} moved in step {step}.\n"
                )
                memory.sync()
                assert memory.search("gateway number 3", max_results=1).hits[0].path == "memory/3.md"
                assert [*wrong_vectors(memory)] == [], f"seed {seed}, step {step}"
        with Memory(workspace, home=tmp_path / "home", config=config(provider)) as memory:
            mend(memory, provider)
            memory.sync()
            assert memory.status()["withoutVectors"] == 0
            assert [*wrong_vectors(memory)] == []


@pytest.mark.timeout(60)
@pytest.mark.parametrize("fallback", ["none", "builtin"])
def test_a_terminal_error_is_asked_about_once_by_all_processes(
    provider: Provider, workspace: Path, tmp_path: Path, fallback: str
) -> None:
    provider.fault = chaos.quota_spent
    program = (
        "import json, sys; from plainmind import Memory; workspace, home, config = sys.argv[1:];"
        "memory = Memory(workspace, home=home, config=json.loads(config)); memory.sync();"
        "print(memory.search('gateway number 3', max_results=1).hits[0].path); memory.close()"
    )
    settings = json.dumps(config(provider, fallback=fallback))
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-c", program, str(workspace), str(tmp_path / "home"), settings],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stdout) == (0, "memory/3.md\n"), ended.stderr

    assert len(provider.seen) == 1


def test_the_key_is_not_sent_to_where_a_redirect_points(
    provider: Provider, workspace: Path, tmp_path: Path
) -> None:
    with serving(Provider(provider.dialect)) as other:
        provider.fault = chaos.redirect(other.base_url + "/embeddings")
        with Memory(workspace, home=tmp_path / "home", config=config(provider)) as memory:
            memory.sync()
            assert_words_answer(memory)

        assert other.seen == []


def test_no_key_and_no_note_is_in_what_is_said_about_failures(
    provider: Provider, workspace: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    provider.poison = "gateway"
    with Memory(workspace, home=tmp_path / "home", config=config(provider)) as memory:
        report = memory.sync()
        provider.poison, provider.key = None, "another"
        (workspace / "memory" / "new.md").write_text("# New\n\nThe gateway is new.\n")
        told = [*report.degraded, *memory.sync().degraded, *memory.search("what is new?").degraded]
        told += [json.dumps(memory.status(deep=True).as_dict()), repr(memory.doctor()), caplog.text]

    assert any("refused the API key" in line for line in told)
    for line in told:
        assert KEY not in line
        assert "beside the bread" not in line


# Batch jobs.

SYNC = """
import json, sys
from plainmind import Memory
workspace, home, config, wait = sys.argv[1:]
with Memory(workspace, home=home, config=json.loads(config)) as memory:
    report = memory.sync(wait=None if wait == "wait" else False)
    print(json.dumps([report.chunks, list(report.degraded), memory.status()["withoutVectors"]]))
"""


@pytest.fixture
def large_workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "large"
    (folder / "memory").mkdir(parents=True)
    for file in range(11):
        sections = (
            f"## Section {file}-{number}\n\n" + f"The gateway {file}-{number} keeps backup {number * 7}. " * 8
            for number in range(100)
        )
        (folder / "memory" / f"{file}.md").write_text("\n\n".join(sections))
    return folder


def batch_config(routes: BatchRoutes, base_url: str) -> dict[str, Any]:
    remote = {
        "baseUrl": base_url,
        "apiKey": KEY,
        "batch": {"enabled": True, "pollIntervalMs": 100},
        "documentTimeoutMs": 20_000,
    }
    return {"provider": routes.dialect, "outputDimensionality": 64, "remote": remote}


def sync_in_a_process(
    routes: BatchRoutes, base_url: str, folder: Path, home: Path, *, wait: str = "wait", kill_at: str = ""
) -> tuple[int, Any]:
    settings = json.dumps(batch_config(routes, base_url))
    process = subprocess.Popen(
        [sys.executable, "-c", SYNC, str(folder), str(home), settings, wait],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def kill(moment: str) -> None:
        if moment == kill_at:
            process.kill()
            process.wait()

    routes.at = kill
    out, err = process.communicate(timeout=60)
    routes.at = str
    assert err == ""
    return process.returncode, json.loads(out) if out else None


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("dialect", "moment"),
    [("openai", "created"), ("openai", "downloading"), ("gemini", "polled"), ("voyage", "uploaded")],
)
def test_a_sync_that_is_killed_in_a_batch_job_is_followed_by_one_that_goes_on_with_it(
    large_workspace: Path, tmp_path: Path, dialect: str, moment: str
) -> None:
    routes = BatchRoutes(dialect)
    with serving_batches(routes) as base_url:
        killed, _ = sync_in_a_process(routes, base_url, large_workspace, tmp_path / "home", kill_at=moment)
        ended, said = sync_in_a_process(routes, base_url, large_workspace, tmp_path / "home")

        assert killed == -signal.SIGKILL
        assert ended == 0
        chunks, degraded, without_vectors = said
        assert (degraded, without_vectors) == ([], 0)
        assert routes.created == 1
        assert len(routes.texts_submitted) == len(set(routes.texts_submitted)) == chunks >= 1000
        assert routes.single.texts == []
        with Memory(large_workspace, home=tmp_path / "home", config=batch_config(routes, base_url)) as memory:
            assert [*wrong_vectors(memory)][:3] == []


@pytest.mark.timeout(60)
def test_jobs_that_are_left_running_are_taken_in_by_a_later_sync(
    large_workspace: Path, tmp_path: Path
) -> None:
    routes = BatchRoutes("openai")
    routes.script = ["validating", "in_progress", "in_progress", "in_progress", "completed"]
    with serving_batches(routes) as base_url:
        settings = batch_config(routes, base_url)
        with Memory(large_workspace, home=tmp_path / "home", config=settings) as memory:
            report = memory.sync(wait=False)
            status = memory.status().as_dict()
            found = memory.search("gateway 7-77 backup", max_results=1)

            assert any("still making" in reason for reason in report.degraded)
            assert status["withoutVectors"] == 11
            (job,) = status["embedding"]["batch"]["jobs"]
            assert job["items"] >= 1000
            assert found.hits[0].path == "memory/7.md"
            assert all("gateway" not in text for text in routes.single.texts[:-1])
        with Memory(large_workspace, home=tmp_path / "home", config=settings) as memory:
            report = memory.sync()

            assert report.degraded == ()
            assert memory.status()["withoutVectors"] == 0
            assert memory.status()["embedding"]["batch"]["jobs"] == []
            assert memory.search("gateway 7-77 backup", max_results=1).mode == "hybrid"
        assert routes.created == 1


@pytest.mark.timeout(60)
def test_batch_jobs_that_do_not_work_leave_the_texts_to_single_requests(
    large_workspace: Path, tmp_path: Path
) -> None:
    routes = BatchRoutes("openai")
    routes.faults = {"create-refused"}
    with serving_batches(routes) as base_url:
        settings = batch_config(routes, base_url)
        with Memory(large_workspace, home=tmp_path / "home", config=settings) as memory:
            report = memory.sync()

            assert memory.status()["withoutVectors"] == 0
            assert any("batch" in note for note in report.notes)
            assert len(routes.single.texts) >= 1000
