"""An engine that fails is left alone for a while; the index answers meanwhile, and says why."""

from __future__ import annotations

import logging

import pytest

from plainmind.base.errors import StorageFailure
from plainmind.base.model import EVERY_SCOPE, SearchHit, SearchResult, SyncReport
from plainmind.base.value import replace
from plainmind.memory.backend import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    BackendBusy,
    BackendFailed,
    FallbackBackend,
    Pause,
    Question,
    Record,
)

QUESTION = Question("gateway", EVERY_SCOPE, 4.0)


def result(provider, *paths, **more):
    hits = tuple(SearchHit(path, 1, 1, 0.9, "text", "memory") for path in paths)
    return SearchResult("gateway", hits, provider, "", "keyword", **more)


class Engine:
    """An engine whose next answer, or failure, was decided before."""

    name = "qmd"

    def __init__(self):
        self.next = result("qmd", "a.md")
        self.due = 3.0
        self.asked = []
        self.synced = []

    def search(self, question):
        self.asked.append(question)
        if isinstance(self.next, Exception):
            raise self.next
        return self.next

    def sync(self, initiative, *, force=False):
        self.synced.append((initiative, force))
        if isinstance(self.next, Exception):
            raise self.next
        return SyncReport(notes=("synced",))

    def seconds_until_due(self, *, changed):
        if isinstance(self.due, Exception):
            raise self.due
        return self.due

    def describe(self, *, deep):
        return {"name": "qmd", "healthy": True, "version": "1"}


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def backend(engine, clock, tmp_path):
    return FallbackBackend(engine, Pause(Record(str(tmp_path / "pause.json")), clock))


def ask(backend, by_index=None):
    return backend.search(QUESTION, lambda: by_index or result("builtin", "b.md"))


def test_while_it_works_it_answers_alone(backend):
    assert ask(backend).provider == "qmd"
    assert backend.fallback is None


@pytest.mark.parametrize("failure", [BackendFailed("it printed no JSON"), OSError("no more processes")])
def test_when_it_fails_the_index_answers_and_says_why(backend, engine, failure):
    engine.next = failure

    answer = ask(backend)

    assert (answer.provider, answer.hits[0].path) == ("builtin", "b.md")
    assert answer.fallback == {"from": "qmd", "to": "builtin", "reason": str(failure)}
    assert backend.fallback == answer.fallback


def test_a_bug_in_it_costs_no_answer_and_is_told_in_full(backend, engine, caplog):
    engine.next = ZeroDivisionError("division by zero")

    with caplog.at_level(logging.ERROR):
        answer = ask(backend)

    assert answer.fallback["reason"] == "ZeroDivisionError: division by zero"
    assert "Traceback" in caplog.text


def test_after_a_failure_it_is_left_alone_twice_as_long_each_time(backend, engine, clock):
    engine.next = BackendFailed("no")
    pauses = []
    for _ in range(9):
        ask(backend)
        asked = len(engine.asked)
        ask(backend)
        assert len(engine.asked) == asked  # not even tried
        pauses.append(backend.describe(deep=False)["askedAgainInS"])
        clock.now += pauses[-1]

    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S


def test_it_comes_back_by_itself(backend, engine, clock):
    engine.next = BackendFailed("no")
    ask(backend)
    engine.next = result("qmd", "a.md")
    clock.now += FIRST_PAUSE_S

    assert ask(backend).provider == "qmd"
    assert backend.fallback is None
    assert backend.describe(deep=False)["healthy"]


def test_an_engine_that_cannot_even_say_when_it_is_due_is_left_alone_for_a_while(backend, engine):
    engine.due = StorageFailure("the disk is gone")

    assert backend.seconds_until_due(changed=True) == pytest.approx(FIRST_PAUSE_S)
    assert backend.fallback["reason"] == "the disk is gone"


def test_the_next_process_knows_of_the_pause(engine, clock, tmp_path):
    def opened():
        return FallbackBackend(engine, Pause(Record(str(tmp_path / "pause.json")), clock))

    engine.next = BackendFailed("no")
    ask(opened())

    answer = ask(opened())

    assert len(engine.asked) == 1
    assert "asked again in 10 s" in answer.fallback["reason"]


def test_the_pause_of_one_program_is_not_that_of_another(engine, clock, tmp_path):
    def opened(program):
        return FallbackBackend(engine, Pause(Record(str(tmp_path / "pause.json")), clock, program=program))

    engine.next = BackendFailed("there is no program `qdm`", hint="install it")
    ask(opened("qdm"))
    assert opened("qdm").describe(deep=False)["hint"] == "install it"

    corrected = opened("qmd")
    assert corrected.fallback is None
    assert "hint" not in corrected.describe(deep=False)
    engine.next = BackendFailed("it printed no JSON")
    assert ask(corrected).fallback["reason"] == "it printed no JSON"
    assert corrected.describe(deep=False)["askedAgainInS"] == FIRST_PAUSE_S


def test_a_clock_that_was_set_back_makes_no_pause_longer(backend, engine, clock):
    engine.next = BackendFailed("no")
    ask(backend)
    clock.now -= 1_000_000

    assert backend.describe(deep=False)["askedAgainInS"] <= LONGEST_PAUSE_S


def test_being_busy_is_no_failure(backend, engine):
    engine.next = BackendBusy("it is busy")

    assert ask(backend).fallback["reason"] == "it is busy"
    assert backend.fallback is None
    engine.next = result("qmd", "a.md")
    assert ask(backend).provider == "qmd"


def test_time_is_kept_for_the_index_to_answer_in(backend, engine):
    ask(backend)

    assert engine.asked[0].timeout_s == 3.0


def test_without_time_it_is_not_asked_and_not_blamed(backend, engine):
    answer = backend.search(replace(QUESTION, timeout_s=0.01), lambda: result("builtin", "b.md"))

    assert answer.fallback["reason"] == "there was no time left to ask it"
    assert engine.asked == []
    assert backend.fallback is None


def test_where_it_finds_nothing_the_index_is_asked_too(backend, engine):
    engine.next = result("qmd", degraded=("no model",))

    answer = ask(backend)

    assert (answer.provider, answer.fallback) == ("builtin", None)
    assert answer.notes == ("qmd found nothing; this is from the built-in index",)
    assert answer.degraded == ("no model",)


def test_when_nobody_finds_anything_the_engine_has_answered(backend, engine):
    engine.next = result("qmd")

    assert ask(backend, result("builtin")).provider == "qmd"


def test_a_sync_that_fails_is_told_and_breaks_nothing(backend, engine):
    engine.next = BackendFailed("the disk is full")

    report = backend.sync("asked")

    assert report.degraded == ("qmd is not up to date: the disk is full",)
    assert backend.fallback is not None


def test_in_the_background_a_pause_is_kept_and_whoever_asks_ends_it(backend, engine):
    engine.next = BackendFailed("no")
    ask(backend)
    engine.next = result("qmd", "a.md")

    assert backend.sync("background") == SyncReport()
    assert backend.seconds_until_due(changed=True) == pytest.approx(FIRST_PAUSE_S)
    assert backend.sync("asked", force=True).notes == ("synced",)
    assert engine.synced == [("asked", True)]
    assert backend.fallback is None
    assert backend.seconds_until_due(changed=True) == 3.0


def test_a_record_that_cannot_be_written_costs_no_answer(engine, clock, tmp_path):
    (tmp_path / "file").write_text("")
    backend = FallbackBackend(engine, Pause(Record(str(tmp_path / "file" / "pause.json")), clock))
    engine.next = BackendFailed("no")

    assert ask(backend).fallback["reason"] == "no"


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"failures": "many", "until": {}}', "\x00"])
def test_a_damaged_record_is_no_record(engine, clock, tmp_path, damage):
    (tmp_path / "pause.json").write_text(damage)
    backend = FallbackBackend(engine, Pause(Record(str(tmp_path / "pause.json")), clock))

    assert ask(backend).provider == "qmd"
