from __future__ import annotations

import json
import threading
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.providers.batch_clients import TEXTS, Client, Clock, client_of, settings_for
from tests.support.providers.batches import BatchRoutes, serving
from tests.support.providers.server import DIALECTS, KEY, unit_vector_for

from plainmind.base.errors import EmbeddingError, StorageFailure
from plainmind.base.model import Vector, sha256_text
from plainmind.embed.cache import CachedEmbedder, SqliteEmbeddingCache
from plainmind.guests.net.failures import Abandoned
from plainmind.guests.remote.batch_jobs import BatchingEmbedder, create_batching
from plainmind.guests.remote.embedder import transport_for
from plainmind.guests.remote.failures import VectorsPending
from plainmind.guests.remote.ledger import Ledger
from plainmind.guests.remote.wire import wire_for


class Provider(BatchRoutes):
    base_url = ""


@pytest.fixture(params=DIALECTS)
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    routes = Provider(request.param)
    with serving(routes) as routes.base_url:
        yield routes


@pytest.fixture
def openai() -> Iterator[Provider]:
    routes = Provider("openai")
    with serving(routes) as routes.base_url:
        yield routes


def client(provider: Provider, home: Path, clock: Clock | None = None, **changes: Any):
    return client_of(provider.dialect, provider.base_url, home, clock=clock or Clock(), **changes)


def right(texts: Sequence[str]) -> dict[str, Vector]:
    return {text: unit_vector_for(text) for text in texts}


def near(got: dict[str, Vector], wanted: dict[str, Vector]) -> bool:
    return got.keys() == wanted.keys() and all(got[text] == pytest.approx(wanted[text]) for text in wanted)


def remembered(user: Client) -> list[dict[str, Any]]:
    return user.jobs.facts()["jobs"]


# What a job does when all is well.


def test_every_text_gets_its_own_vector_through_one_job(provider: Provider, tmp_path: Path) -> None:
    with client(provider, tmp_path) as user:
        vectors = user.embed([*TEXTS, TEXTS[3]])

    assert [list(vector or ()) for vector in vectors] == [
        pytest.approx(list(unit_vector_for(text))) for text in [*TEXTS, TEXTS[3]]
    ]
    assert provider.created == 1
    assert sorted(provider.texts_submitted) == sorted(TEXTS)
    assert provider.single.seen == []


def test_nothing_is_left_at_the_provider_or_in_the_ledger_afterwards(
    provider: Provider, tmp_path: Path
) -> None:
    provider.faults = {"partial"}
    with client(provider, tmp_path) as user:
        user.jobs.prepare(TEXTS)

        assert provider.files == {}
        assert remembered(user) == []


def test_texts_that_are_known_already_are_not_submitted(provider: Provider, tmp_path: Path) -> None:
    with client(provider, tmp_path) as user:
        user.jobs.prepare(TEXTS[:12])
        prepared = user.jobs.prepare(TEXTS)
        again = user.jobs.prepare(TEXTS)

    assert len(prepared.ready) == len(again.ready) == 20
    assert provider.created == 2
    assert sorted(provider.texts_submitted) == sorted(TEXTS)


def test_blank_texts_are_not_submitted(openai: Provider, tmp_path: Path) -> None:
    with client(openai, tmp_path) as user:
        assert user.embed(["", " \n", TEXTS[0]])[:2] == [None, None]

    assert openai.texts_submitted == [TEXTS[0]]


def test_a_text_with_a_lone_surrogate_does_not_spoil_the_file(provider: Provider, tmp_path: Path) -> None:
    odd = "broken \ud800 half"
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare([*TEXTS, odd])

    assert prepared.missing == frozenset()
    assert len(prepared.ready) == 21


def test_fewer_texts_than_a_job_is_worth_are_left_to_single_requests(
    openai: Provider, tmp_path: Path
) -> None:
    with client(openai, tmp_path, fewest=21) as user:
        prepared = user.jobs.prepare(TEXTS)

    assert len(prepared.missing) == 20
    assert prepared.notes == ()
    assert openai.requests == []


def test_many_texts_become_several_jobs_of_which_two_run_at_once(provider: Provider, tmp_path: Path) -> None:
    most = 0

    def count(moment: str) -> None:
        nonlocal most
        running = sum(batch.state not in {"completed"} for batch in provider.batches.values())
        most = max(most, running)

    provider.at = count
    with client(provider, tmp_path, max_items=3) as user:
        prepared = user.jobs.prepare(TEXTS)

        assert near(user.cached(TEXTS), right(TEXTS))
    assert len(prepared.ready) == 20
    assert provider.created == 7
    assert most == 2


def test_a_model_of_unknown_dimensions_is_first_asked_by_single_requests(
    openai: Provider, tmp_path: Path
) -> None:
    with client(openai, tmp_path, dims=None) as user:
        first = user.jobs.prepare(TEXTS)
        user.embedder.embed_documents(TEXTS[:1])
        second = user.jobs.prepare(TEXTS)

    assert len(first.missing) == 20
    assert "dimensions" in first.notes[0]
    assert len(second.ready) == 20


def test_no_more_is_submitted_than_the_cache_can_hold(openai: Provider, tmp_path: Path) -> None:
    small = SqliteEmbeddingCache(str(tmp_path / "cache.sqlite"), max_entries=5)
    with client(openai, tmp_path, cache=small) as user:
        prepared = user.jobs.prepare(TEXTS)

    assert len(openai.texts_submitted) == len(prepared.ready) == 5


def test_progress_counts_the_vectors_that_have_come(openai: Provider, tmp_path: Path) -> None:
    told = []
    with client(openai, tmp_path, max_items=10) as user:
        user.jobs.prepare(TEXTS, progress=told.append)

    assert told[-1].completed == told[-1].total == 20


# Waiting, and not waiting.


def test_without_waiting_a_job_is_left_running_and_collected_later(
    provider: Provider, tmp_path: Path
) -> None:
    provider.script = ["in_progress"]
    with client(provider, tmp_path) as user:
        first = user.jobs.prepare(TEXTS, wait=False)
        early = user.jobs.prepare((), wait=False)
    assert len(first.waiting) == 20
    assert [(job.items, job.state) for job in first.running] == [(20, "running")]
    assert len(early.running) == 1

    next(iter(provider.batches.values())).script = ["completed"]
    with client(provider, tmp_path) as user:
        later = user.jobs.prepare((), wait=False)

        assert later.running == ()
        assert near(user.cached(TEXTS), right(TEXTS))
    assert provider.created == 1


def test_a_sync_that_waits_goes_on_with_the_job_of_one_that_did_not(
    provider: Provider, tmp_path: Path
) -> None:
    with client(provider, tmp_path) as user:
        user.jobs.prepare(TEXTS, wait=False)
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS, wait=True)

    assert len(prepared.ready) == 20
    assert provider.created == 1


def test_only_texts_of_no_running_job_are_submitted_beside_it(openai: Provider, tmp_path: Path) -> None:
    openai.script = ["in_progress"]
    with client(openai, tmp_path) as user:
        user.jobs.prepare(TEXTS[:5], wait=False)
        user.jobs.prepare(TEXTS, wait=False)

    assert openai.created == 2
    assert sorted(openai.texts_submitted) == sorted(TEXTS)


def test_pauses_between_looks_grow_and_are_bounded(openai: Provider, tmp_path: Path) -> None:
    openai.script = ["in_progress"] * 12 + ["completed"]
    clock = Clock()
    with client(openai, tmp_path, clock) as user:
        user.jobs.prepare(TEXTS)

    assert clock.slept[0] == 2.0
    assert clock.slept == sorted(clock.slept)
    assert clock.slept[-1] == 30.0


def test_closing_ends_the_wait_at_once_and_the_job_is_collected_later(
    openai: Provider, tmp_path: Path
) -> None:
    openai.script = ["in_progress"]
    with client_of("openai", openai.base_url, tmp_path) as user:
        threading.Timer(0.3, user.jobs.close).start()
        with pytest.raises(Abandoned):
            user.jobs.prepare(TEXTS)
        assert len(remembered(user)) == 1

    next(iter(openai.batches.values())).script = ["completed"]
    with client(openai, tmp_path) as user:
        assert user.jobs.prepare((), wait=False).running == ()
        assert near(user.cached(TEXTS), right(TEXTS))
    assert openai.created == 1


def test_two_at_once_do_not_submit_the_same_texts_twice(openai: Provider, tmp_path: Path) -> None:
    changes = {"batch": {"poll_interval_ms": 20}}
    with (
        client_of("openai", openai.base_url, tmp_path, **changes) as one,
        client_of("openai", openai.base_url, tmp_path, **changes) as other,
    ):
        threads = [threading.Thread(target=user.jobs.prepare, args=(TEXTS,)) for user in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert near(other.cached(TEXTS), right(TEXTS))
    assert openai.created == 1


def test_who_does_not_wait_leaves_the_jobs_to_the_process_that_works_on_them(
    openai: Provider, tmp_path: Path
) -> None:
    outcome = []

    def look_in(moment: str) -> None:
        if moment == "created":
            with client(openai, tmp_path) as other:
                outcome.append(other.jobs.prepare(TEXTS, wait=False))

    openai.at = look_in
    with client(openai, tmp_path) as user:
        user.jobs.prepare(TEXTS)

    assert len(outcome[0].waiting) == 20
    assert "another process" in outcome[0].notes[0]


def test_a_small_sync_waits_neither_for_the_jobs_of_others_nor_for_who_works_on_them(
    openai: Provider, tmp_path: Path
) -> None:
    outcome = []

    def look_in(moment: str) -> None:
        if moment == "created":
            with client(openai, tmp_path, fewest=10) as other:
                outcome.append(other.jobs.prepare(["one new note"], wait=True))

    openai.at = look_in
    openai.script = ["in_progress"]
    clock = Clock()
    with client(openai, tmp_path, clock, fewest=10) as user:
        user.jobs.prepare(TEXTS, wait=False)
        outcome.append(user.jobs.prepare(["one new note"], wait=True))

    assert [prepared.missing for prepared in outcome] == [frozenset([sha256_text("one new note")])] * 2
    assert [prepared.waiting for prepared in outcome] == [frozenset()] * 2
    assert clock.slept == []


def test_new_texts_wait_for_their_turn_behind_the_jobs_of_others(openai: Provider, tmp_path: Path) -> None:
    openai.script = ["in_progress", "in_progress", "completed"]
    with client(openai, tmp_path, max_items=5) as user:
        user.jobs.prepare(TEXTS[:10], wait=False)
        prepared = user.jobs.prepare(TEXTS[10:], wait=True)

    assert len(prepared.ready) == 10
    assert openai.created == 4


# What goes wrong inside a job.


def test_answers_in_any_order_with_foreign_lines_and_garbage_are_matched(
    provider: Provider, tmp_path: Path
) -> None:
    provider.faults = {"foreign", "garbage"}
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

        assert near(user.cached(TEXTS), right(TEXTS))
        assert user.cache.describe()["entries"] == 20
    assert prepared.notes == ()


def test_bad_vectors_are_not_kept_and_their_texts_are_missing(provider: Provider, tmp_path: Path) -> None:
    provider.faults = {"bad-vectors"}
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)
        kept = user.cached(TEXTS)

    assert len(prepared.missing) == 7
    assert len(kept) == 13
    assert near(kept, right(list(kept)))


def test_a_text_with_two_different_answers_has_none(provider: Provider, tmp_path: Path) -> None:
    provider.faults = {"duplicate"}
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)
        kept = user.cached(TEXTS)

    assert len(prepared.missing) == 1
    assert near(kept, right(list(kept)))


@pytest.mark.parametrize("silent", [False, True])
def test_what_a_partial_output_leaves_out_is_missing(
    provider: Provider, tmp_path: Path, silent: bool
) -> None:
    provider.faults = {"partial"} | ({"silent"} if silent else set())
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

        assert near(user.cached(TEXTS), right(TEXTS[::2]))
    assert prepared.missing == frozenset(map(sha256_text, TEXTS[1::2]))
    assert "10 of 20" in prepared.notes[0]


@pytest.mark.parametrize("end", ["failed", "expired", "cancelled"])
def test_two_jobs_that_end_badly_turn_batch_jobs_off_for_a_day(
    provider: Provider, tmp_path: Path, end: str
) -> None:
    provider.script = ["in_progress", end]
    clock = Clock()
    with client(provider, tmp_path, clock, max_items=5) as user:
        prepared = user.jobs.prepare(TEXTS)
        assert any(f"`{end}`" in note for note in prepared.notes)
        assert user.jobs.facts()["off"]
        assert end in user.jobs.facts()["lastError"]
    assert provider.created == 2

    with client(provider, tmp_path, clock) as user:
        off = user.jobs.prepare(TEXTS)
        assert provider.created == 2
        assert "off" in off.notes[0]

        clock.at += 86_401
        provider.script = ["completed"]
        back = user.jobs.prepare(TEXTS)
        assert len(back.ready) == 20
        assert not user.jobs.facts()["off"]


def test_one_success_forgets_one_failure(openai: Provider, tmp_path: Path) -> None:
    with client(openai, tmp_path) as user:
        for number, end in enumerate(["failed", "completed", "failed", "completed"]):
            openai.script = [end]
            user.jobs.prepare([f"{end} {number} {text}" for text in TEXTS])

        assert openai.created == 4
        assert not user.jobs.facts()["off"]


def test_a_job_whose_vectors_are_all_bad_is_a_failure(provider: Provider, tmp_path: Path) -> None:
    provider.faults = {"all-bad"}
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

        assert len(prepared.missing) == 20
        assert user.cache.describe()["entries"] == 0
        assert user.jobs.facts()["failures"] == 1


def test_a_state_that_nobody_knows_ends_in_a_time_out_one_retry_and_a_failure(
    provider: Provider, tmp_path: Path
) -> None:
    provider.script = ["unheard-of"]
    provider.faults = {"uncancellable"}
    clock = Clock()
    with client(provider, tmp_path, clock) as user:
        prepared = user.jobs.prepare(TEXTS)

        assert remembered(user) == []
        assert user.jobs.facts()["failures"] == 1
    assert provider.created == 2
    assert len(prepared.missing) == 20
    assert sum(clock.slept) < 2 * (3600 + 600) + 200
    assert provider.files == {}


def test_after_a_time_out_only_what_the_cancelled_job_did_not_give_is_tried_again(
    openai: Provider, tmp_path: Path
) -> None:
    openai.script = ["in_progress"]

    def next_one_works(moment: str) -> None:
        if moment == "created":
            openai.script = ["completed"]

    openai.at = next_one_works
    with client(openai, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

        assert near(user.cached(TEXTS), right(TEXTS))
        assert user.jobs.facts()["failures"] == 0
    assert len(prepared.ready) == 20
    first, second = openai.batches.values()
    assert first.cancelled
    assert [text for _, text in second.params["items"]] == TEXTS[1::2]


def test_a_job_that_the_provider_has_lost_is_a_failure_and_its_texts_are_missing(
    provider: Provider, tmp_path: Path
) -> None:
    provider.faults = {"job-vanishes"}
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

        assert len(prepared.missing) == 20
        assert remembered(user) == []
    assert provider.created == 1


@pytest.mark.parametrize("trouble", ["poll-fails", "download-fails"])
def test_a_provider_that_is_down_for_a_while_costs_only_time(
    provider: Provider, tmp_path: Path, trouble: str
) -> None:
    provider.faults = {trouble}
    clock = Clock()
    sleep = clock.sleep

    def sleep_until_it_is_up(seconds: float) -> None:
        sleep(seconds)
        if sum(clock.slept) > 600:
            provider.faults.clear()

    clock.sleep = sleep_until_it_is_up  # type: ignore[method-assign]
    with client(provider, tmp_path, clock) as user:
        prepared = user.jobs.prepare(TEXTS)

    assert len(prepared.ready) == 20
    assert provider.created == 1


# What goes wrong around a job.


def test_a_job_that_was_started_though_the_answer_said_otherwise_is_found_not_repeated(
    provider: Provider, tmp_path: Path
) -> None:
    provider.faults = {"create-answer-lost"}
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

    assert len(prepared.ready) == 20
    assert provider.created == 1


def test_an_upload_whose_answer_was_lost_leaves_no_second_file(provider: Provider, tmp_path: Path) -> None:
    provider.faults = {"upload-answer-lost"}
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

    assert len(prepared.ready) == 20
    assert provider.created == 1
    assert provider.files == {}


@pytest.mark.parametrize("refusal", ["no-batches", "create-refused"])
def test_a_server_without_batch_jobs_is_asked_once_a_day(
    provider: Provider, tmp_path: Path, refusal: str
) -> None:
    provider.faults = {refusal}
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)
        asked = len(provider.requests)
        user.jobs.prepare(TEXTS)

        assert "no batch jobs" in prepared.notes[0]
        assert len(prepared.missing) == 20
        assert remembered(user) == []
        assert user.ledger.tokens_today() == 0
    assert len(provider.requests) == asked
    assert provider.files == {}


@pytest.mark.parametrize("trouble", ["upload-fails", "create-busy"])
def test_a_job_that_cannot_be_started_leaves_nothing_and_is_a_failure(
    provider: Provider, tmp_path: Path, trouble: str
) -> None:
    provider.faults = {trouble}
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

        assert len(prepared.missing) == 20
        assert remembered(user) == []
        assert user.ledger.tokens_today() == 0
        assert user.jobs.facts()["failures"] == 1
    assert provider.files == {}
    assert provider.created == 0
    assert provider.asked("POST", "files") <= 3


def test_after_a_day_off_one_job_tries_alone(openai: Provider, tmp_path: Path) -> None:
    openai.script = ["failed"]
    clock = Clock()
    with client(openai, tmp_path, clock, max_items=5) as user:
        user.jobs.prepare(TEXTS)
        clock.at += 86_401
        openai.script = ["in_progress"]
        trying = user.jobs.prepare(TEXTS, wait=False)

        assert openai.created == 3
        assert len(trying.waiting) == 5

        openai.script = ["completed"]
        [*openai.batches.values()][-1].script = ["completed"]
        assert len(user.jobs.prepare(TEXTS).ready) == 20


def test_a_job_that_cannot_be_cancelled_is_given_up_in_the_end(openai: Provider, tmp_path: Path) -> None:
    openai.script = ["in_progress"]
    openai.faults = {"cancel-fails"}
    with client(openai, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

        assert remembered(user) == []
    assert any("could not be cancelled" in note for note in prepared.notes)
    assert len(prepared.missing) == 20


def test_why_every_request_of_a_job_failed_is_told_by_its_code(openai: Provider, tmp_path: Path) -> None:
    openai.faults = {"all-refused"}
    with client(openai, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

    assert prepared.notes == ("batch job batch_0002 ended as `completed`: content_refused",)
    assert openai.files == {}


def test_what_cannot_be_downloaded_for_want_of_room_stays_at_the_provider(
    openai: Provider, tmp_path: Path
) -> None:
    with client(openai, tmp_path) as user:
        steps = user.jobs._steps
        user.jobs._steps = replace(steps, folder=str(tmp_path / "gone"))
        full = user.jobs.prepare(TEXTS)
        user.jobs._steps = steps

        assert "cannot be kept" in full.notes[0]
        assert len(full.waiting) == 20
        assert len(user.jobs.prepare(TEXTS).ready) == 20
    assert openai.created == 1


def test_a_refused_key_pauses_everything_and_loses_no_job(provider: Provider, tmp_path: Path) -> None:
    provider.script = ["in_progress", "completed"]
    with client(provider, tmp_path) as user:
        user.jobs.prepare(TEXTS, wait=False)
        provider.key = "another"
        refused = user.jobs.prepare((), wait=False)
        asked = len(provider.requests)
        paused = user.jobs.prepare((), wait=False)

        assert "key" in refused.notes[0]
        assert len(refused.running) == len(paused.running) == 1
        assert len(provider.requests) == asked
        assert user.jobs.facts()["failures"] == 0

        provider.key = KEY
        user.embedder.probe(anyway=True)
        assert user.jobs.prepare(TEXTS).ready == frozenset(map(sha256_text, TEXTS))
    assert provider.created == 1


def test_a_key_that_is_refused_at_the_upload_says_nothing_about_batch_jobs(
    provider: Provider, tmp_path: Path
) -> None:
    provider.key = "another"
    with client(provider, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)
        asked = len(provider.requests)
        paused = user.jobs.prepare(TEXTS)

        assert "key" in prepared.notes[0]
        assert user.jobs.facts()["failures"] == 0
    assert len(prepared.missing) == len(paused.missing) == 20
    assert len(provider.requests) == asked


def test_a_job_beyond_the_daily_budget_is_not_submitted(openai: Provider, tmp_path: Path) -> None:
    with client(openai, tmp_path, max_tokens_per_day=100, max_items=5) as user:
        prepared = user.jobs.prepare(TEXTS)

        assert 0 < user.ledger.tokens_today() <= 100
        assert remembered(user) == []
    assert openai.created == 1
    assert len(prepared.ready) == 5
    assert "limit of 100" in prepared.notes[0]


def test_tokens_are_counted_when_a_job_is_submitted_and_corrected_at_its_end(
    openai: Provider, tmp_path: Path
) -> None:
    openai.script = ["in_progress", "completed"]
    with client(openai, tmp_path) as user:
        user.jobs.prepare(TEXTS, wait=False)
        guessed = user.ledger.tokens_today()
        user.jobs.prepare((), wait=False)

        assert guessed > 60
        assert user.ledger.tokens_today() == 60  # three a text, says the provider


def test_a_full_disk_loses_nothing_that_was_paid_for(provider: Provider, tmp_path: Path) -> None:
    class Full:
        def __init__(self, cache: Any) -> None:
            self.cache, self.full = cache, True

        def insert(self, identity: Any, vectors: Any) -> None:
            if self.full:
                raise StorageFailure("the disk is full")
            self.cache.insert(identity, vectors)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.cache, name)

    full = Full(SqliteEmbeddingCache(str(tmp_path / "cache.sqlite")))
    with client(provider, tmp_path, cache=full) as user:
        prepared = user.jobs.prepare(TEXTS)
        assert "the disk is full" in prepared.notes[0]
        assert len(prepared.waiting) == 20

        full.full = False
        assert len(user.jobs.prepare(TEXTS).ready) == 20
    assert provider.created == 1


def test_without_a_ledger_on_disk_no_job_is_begun(openai: Provider, tmp_path: Path) -> None:
    (tmp_path / "remote.sqlite").mkdir()
    with client(openai, tmp_path) as user:
        prepared = user.jobs.prepare(TEXTS)

    assert len(prepared.missing) == 20
    assert openai.created == 0
    assert "ledger" in prepared.notes[0]


def test_a_job_that_nobody_collected_for_days_is_given_up(openai: Provider, tmp_path: Path) -> None:
    openai.script = ["in_progress"]
    clock = Clock()
    with client(openai, tmp_path, clock) as user:
        user.jobs.prepare(TEXTS, wait=False)
        clock.at += 4 * 86_400
        prepared = user.jobs.prepare((), wait=False)

        assert prepared.running == ()
        assert "not done" in prepared.notes[0]


# Erasing, privacy, and the rest of the program.


def test_forgetting_a_text_cancels_its_job_and_deletes_the_upload(provider: Provider, tmp_path: Path) -> None:
    provider.script = ["in_progress"]
    with client(provider, tmp_path, max_items=10) as user:
        user.jobs.prepare(TEXTS, wait=False)

        assert user.jobs.forget([sha256_text(TEXTS[0])]) == 1
        assert user.jobs.forget([sha256_text("never seen")]) == 0
        assert len(remembered(user)) == 1
    first, second = provider.batches.values()
    assert first.cancelled
    assert not second.cancelled
    assert first.input_file not in provider.files


def test_forgetting_says_when_the_provider_still_has_the_text(openai: Provider, tmp_path: Path) -> None:
    openai.script = ["in_progress"]
    with client(openai, tmp_path) as user:
        user.jobs.prepare(TEXTS, wait=False)
        openai.faults = {"poll-fails"}
        with pytest.raises(EmbeddingError, match="still has an upload"):
            user.jobs.forget([sha256_text(TEXTS[0])])

        openai.faults = {"job-vanishes"}
        assert user.jobs.forget([sha256_text(TEXTS[0])]) == 1
        assert remembered(user) == []
    assert openai.files == {}


def test_jobs_of_another_model_are_shown_and_forgotten_after_a_month(
    openai: Provider, tmp_path: Path
) -> None:
    openai.script = ["in_progress"]
    clock = Clock()
    with client(openai, tmp_path, clock, model="another-model") as user:
        user.jobs.prepare(TEXTS, wait=False)
    with client(openai, tmp_path, clock) as user:
        assert [job["model"] for job in remembered(user)] == ["another-model"]
        assert user.jobs.prepare(TEXTS[:5], wait=False).waiting == frozenset(map(sha256_text, TEXTS[:5]))
        assert len(remembered(user)) == 2

        clock.at += 31 * 86_400
        user.jobs.prepare((), wait=False)
        assert remembered(user) == []


def test_neither_key_nor_text_gets_into_notes_facts_or_the_ledger(provider: Provider, tmp_path: Path) -> None:
    provider.script = ["failed"]
    texts = [f"the secret word is quagga{number}" for number in range(20)]
    with client(provider, tmp_path) as user:
        provider.at = lambda _: [
            setattr(batch, "complaint", f"refused with {KEY}: {texts[0]}")
            for batch in provider.batches.values()
        ]
        prepared = user.jobs.prepare(texts)
        shown = repr(prepared) + json.dumps(user.jobs.facts()) + repr(user.jobs)
        user.ledger.close()

    kept = b"".join(file.read_bytes() for file in tmp_path.glob("remote.sqlite*"))
    assert "refused with" in shown
    for secret in (KEY, "quagga"):
        assert secret not in shown
        assert secret.encode() not in kept


def test_facts_name_each_running_job(provider: Provider, tmp_path: Path) -> None:
    provider.script = ["in_progress"]
    clock = Clock()
    with client(provider, tmp_path, clock) as user:
        user.jobs.prepare(TEXTS, wait=False)
        clock.at += 90
        facts = user.jobs.facts()

    (job,) = facts["jobs"]
    assert job["id"] in provider.batches
    assert (job["provider"], job["items"], job["state"], job["age_s"]) == (
        provider.dialect,
        20,
        "running",
        90,
    )
    assert facts["enabled"]
    assert not facts["off"]


def test_single_requests_take_over_what_jobs_did_not_give(provider: Provider, tmp_path: Path) -> None:
    provider.faults = {"partial"}
    with client(provider, tmp_path) as user:
        batching = BatchingEmbedder(user.embedder, user.jobs)
        batching.prepare(TEXTS)
        vectors = CachedEmbedder(batching, user.cache).embed_documents(TEXTS)

    assert near(dict(zip(TEXTS, vectors, strict=True)), right(TEXTS))  # type: ignore[arg-type]
    assert sorted(provider.single.texts) == sorted(TEXTS[1::2])


def test_single_requests_do_not_ask_for_what_a_job_is_making(openai: Provider, tmp_path: Path) -> None:
    openai.script = ["in_progress"]
    with client(openai, tmp_path) as user:
        batching = BatchingEmbedder(user.embedder, user.jobs)
        batching.prepare(TEXTS, wait=False)
        with pytest.raises(VectorsPending, match="still making"):
            CachedEmbedder(batching, user.cache).embed_documents([*TEXTS, "one more"])

        assert batching.embed_documents(["one more"]) == [
            pytest.approx(array("f", unit_vector_for("one more")))
        ]
    assert openai.single.texts == ["one more"]


def test_the_whole_way_from_settings_to_vectors(provider: Provider, tmp_path: Path) -> None:
    cache = SqliteEmbeddingCache(str(tmp_path / "cache.sqlite"))
    settings = settings_for(provider.base_url, batch={"poll_interval_ms": 10}, api_key=f" {KEY}\n")
    ledger = Ledger(str(tmp_path / "remote.sqlite"))
    embedder = create_batching(provider.dialect, settings, ledger, cache=cache, folder=str(tmp_path))
    texts = [f"{text} {number}" for number in range(50) for text in TEXTS]

    with closing(CachedEmbedder(embedder, cache)) as cached:
        prepared = embedder.prepare(texts)
        vectors = cached.embed_documents(texts)
        question = cached.embed_query("which backups?")

    assert len(prepared.ready) == 1000
    assert near(dict(zip(texts, vectors, strict=True)), right(texts))  # type: ignore[arg-type]
    assert question == pytest.approx(unit_vector_for("which backups?"))
    assert embedder.sends_text_to == "127.0.0.1"
    assert provider.created == 1
    assert len(provider.single.seen) == 1


def test_headers_that_a_person_has_set_win_over_the_key(openai: Provider, tmp_path: Path) -> None:
    settings = settings_for(openai.base_url, api_key="wrong", headers={"authorization": f"Bearer {KEY}"})
    transport = transport_for(wire_for("openai", settings), settings)

    assert transport.json("GET", "files", deadline=time.monotonic() + 60)["data"] == []
    transport.close()
