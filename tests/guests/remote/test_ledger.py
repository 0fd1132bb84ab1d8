"""What is remembered about providers, by every process that shares the home."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from plainmind.base.errors import StorageFailure
from plainmind.guests.net.failures import QuotaSpent, ServerTrouble
from plainmind.guests.remote.failures import BreakerPolicy, ProviderPaused
from plainmind.guests.remote.ledger import JobRecord, Ledger, Usage
from plainmind.guests.remote.wire import ProviderKey

KEY = ProviderKey("openai", "text-embedding-3-small", "e" * 64)
OTHER = ProviderKey("voyage", "voyage-4-large", "f" * 64)
DAY = 86_400.0


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "home" / "remote.sqlite")


def test_usage_is_counted_by_day_and_provider(path: str) -> None:
    clock = [20_000 * DAY]
    ledger = Ledger(path, now=lambda: clock[0])
    ledger.add_usage(KEY, requests=1, tokens=100, cost=0.5)
    ledger.add_usage(KEY, requests=2, failures=1, tokens=-30, cost=-0.1)
    ledger.add_usage(OTHER, requests=1, tokens=7)
    clock[0] += DAY
    ledger.add_usage(KEY, requests=1, tokens=1)

    assert ledger.usage() == [Usage("2024-10-05", KEY, 1, 0, 1, 0.0)]
    assert ledger.usage(days=2) == [
        Usage("2024-10-04", KEY, 3, 1, 70, pytest.approx(0.4)),  # type: ignore[arg-type]
        Usage("2024-10-04", OTHER, 1, 0, 7, 0.0),
        Usage("2024-10-05", KEY, 1, 0, 1, 0.0),
    ]
    ledger.close()


def test_a_limit_holds_over_all_providers_and_threads(path: str) -> None:
    ledger = Ledger(path)

    def reserve(number: int) -> bool:
        return ledger.reserve(KEY if number % 2 else OTHER, tokens=10, cost=0.0, limit=255)

    with ThreadPoolExecutor(8) as pool:
        granted = sum(pool.map(reserve, range(60)))

    assert granted == 25
    assert ledger.tokens_today() == 250
    ledger.close()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_limit_holds_over_processes(path: str) -> None:
    program = f"""
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.wire import ProviderKey
ledger = Ledger({path!r})
print(sum(ledger.reserve(ProviderKey("a", "b", "c"), tokens=10, cost=0.0, limit=255) for _ in range(20)))
assert ledger.trouble is None, ledger.trouble
ledger.close()
"""
    running = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    granted = sum(int(process.communicate(timeout=60)[0]) for process in running)

    assert granted == 25


def test_a_pause_is_seen_by_who_opens_the_ledger_later(path: str) -> None:
    clock = [1_000_000.0]
    first = Ledger(path, now=lambda: clock[0])
    first.breaker_for(KEY, credential="k").count_failure(QuotaSpent("no credit", hint="add some"))
    first.close()

    second = Ledger(path, now=lambda: clock[0])
    with pytest.raises(ProviderPaused, match="15 min because no credit") as caught:
        second.breaker_for(KEY, credential="k").enter()
    assert caught.value.hint == "add some"
    assert caught.value.retry_after == 900
    assert second.breaker_for(OTHER, credential="k").enter() is False
    assert second.breaker_for(KEY, credential="another").enter() is False
    assert second.breaker_for(KEY, credential="k", of="jobs").enter() is False

    clock[0] += 901
    assert second.breaker_for(KEY, credential="k").enter() is True
    with pytest.raises(ProviderPaused):
        second.breaker_for(KEY, credential="k").enter()
    second.breaker_for(KEY, credential="k").count_success()
    assert second.breaker_for(KEY, credential="k").enter() is False
    second.close()


def test_a_pause_has_its_own_policy_and_a_person_can_end_it(path: str) -> None:
    ledger = Ledger(path, now=lambda: 1_000_000.0)
    policy = BreakerPolicy(failures=2, first_pause_s=DAY, longest_pause_s=DAY)
    breaker = ledger.breaker_for(KEY, of="jobs", policy=policy)
    breaker.count_failure(ServerTrouble("down"))
    assert breaker.enter() is False
    breaker.count_failure(ServerTrouble("down"))
    with pytest.raises(ProviderPaused, match="1440 min"):
        breaker.enter()
    breaker.reset()
    assert breaker.enter() is False
    ledger.close()


def test_no_credential_is_in_the_file(path: str) -> None:
    ledger = Ledger(path)
    ledger.breaker_for(KEY, credential="sk-very-secret").count_failure(ServerTrouble("down"))
    ledger.close()

    home = Path(path).parent
    stored = b"".join(file.read_bytes() for file in home.iterdir())
    assert b"secret" not in stored
    assert all(stat.S_IMODE(os.stat(file).st_mode) == 0o600 for file in home.iterdir())
    assert stat.S_IMODE(os.stat(home).st_mode) == 0o700


def test_dimensions_are_kept_by_provider_model_and_endpoint(path: str) -> None:
    ledger = Ledger(path)
    assert ledger.dims(KEY) is None
    ledger.remember_dims(KEY, 768)
    ledger.remember_dims(KEY, 1024)
    assert ledger.dims(KEY) == 1024
    assert ledger.dims(OTHER) is None
    ledger.close()


def test_a_refused_text_is_remembered_for_a_day(path: str) -> None:
    clock = [1_000_000.0]
    ledger = Ledger(path, now=lambda: clock[0])
    ledger.remember_refused(KEY, "a")
    assert ledger.refused_texts(KEY, ["a", "b"]) == {"a"}
    assert ledger.refused_texts(OTHER, ["a", "b"]) == set()
    clock[0] += DAY + 1
    assert ledger.refused_texts(KEY, ["a", "b"]) == set()
    ledger.close()


def test_jobs_outlive_processes(path: str) -> None:
    clock = [1_000_000.0]
    ledger = Ledger(path, now=lambda: clock[0])
    ledger.save_job(JobRecord("j1", KEY, "planned", 3, facts={"hashes": ["a", "b"]}))
    clock[0] += 5
    ledger.save_job(JobRecord("j2", OTHER, "planned", 1))
    (first,) = ledger.jobs(KEY)
    ledger.save_job(JobRecord("j1", KEY, "running", 3, remote_id="batch_1", created=first.created))
    ledger.close()

    again = Ledger(path, now=lambda: clock[0])
    first, second = again.jobs()
    assert (first.id, first.state, first.remote_id, first.items) == ("j1", "running", "batch_1", 3)
    assert (first.created, first.updated) == (1_000_000.0, 1_000_005.0)
    assert second.key == OTHER

    again.drop_job("j1")
    assert [job.id for job in again.jobs()] == ["j2"]
    again.close()


def test_a_damaged_file_is_set_aside_and_begun_anew(path: str) -> None:
    ledger = Ledger(path)
    ledger.add_usage(KEY, requests=1)
    ledger.close()
    Path(path).write_bytes(b"not a database at all" * 500)

    ledger = Ledger(path)
    assert ledger.usage() == []
    ledger.add_usage(KEY, requests=1)
    assert ledger.trouble is None
    ledger.close()
    assert [name for name in os.listdir(os.path.dirname(path)) if ".bad-" in name]


def test_without_a_file_it_goes_on_in_memory_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "remote.sqlite").mkdir()
    ledger = Ledger(str(tmp_path / "remote.sqlite"))
    ledger.add_usage(KEY, requests=1, tokens=5)
    assert ledger.tokens_today() == 5
    ledger.breaker_for(KEY).count_failure(QuotaSpent("no credit"))
    with pytest.raises(ProviderPaused):
        ledger.breaker_for(KEY).enter()
    assert "cannot be used" in str(ledger.trouble)
    with pytest.raises(StorageFailure):
        ledger.save_job(JobRecord("j1", KEY, "planned", 3))
    ledger.close()


def test_a_ledger_of_a_later_version_is_left_alone(path: str) -> None:
    Ledger(path).usage()
    connection = apsw.Connection(path)
    connection.pragma("user_version", 99)
    connection.close()

    ledger = Ledger(path)
    assert ledger.usage() == []
    assert "version 99" in str(ledger.trouble)
    ledger.close()
    assert apsw.Connection(path).pragma("user_version") == 99
