"""Any bytes at every door, for half a second each; and a fault that only coverage leads to is found."""

from __future__ import annotations

import random

import pytest
from tests.fuzz import engine
from tests.fuzz.engine import Corpus, fuzz, mutate
from tests.fuzz.run import run
from tests.fuzz.targets import TARGETS, Target

CPU_SECONDS = 0.5  # `make fuzz` goes on for a million cases


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_bytes_do_more_than_make_it_say_so(target: Target) -> None:
    outcome = run(target, seconds=CPU_SECONDS)

    assert outcome.faults == ()
    assert outcome.cases > len(target.words)


def hide(case: bytes) -> None:
    """A fault behind three steps, of which each can be seen."""
    if case[:1] == b"p":
        if case[1:2] == b"m":
            if case[2:3] == b"!":
                raise LookupError("found")
            return
        return


def test_what_lies_behind_several_steps_is_found_by_going_on_from_each(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "CORPUS", tmp_path)

    led = fuzz("hidden", hide, (b"p", b"m", b"!"), cases=20_000, code="test_fuzz.py", keep=True)

    assert "LookupError: found" in led.faults[0]
    assert b"case b'pm!" in led.faults[0].encode()
    assert led.kept == len(Corpus("hidden").read()) == 3


def test_what_takes_too_long_is_a_fault(monkeypatch):
    monkeypatch.setattr(engine, "MOST_SECONDS", 0.0)

    assert "it took" in fuzz("slow", sum, (b"words",), cases=3).faults[0]


def test_a_case_is_kept_as_it_is(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "CORPUS", tmp_path)
    cases = [b"", b"plain", "漢字\n".encode(), bytes(range(256))]

    Corpus("any").write(cases)

    assert Corpus("any").read() == cases


def test_the_same_chance_changes_a_case_in_the_same_way():
    changed = [mutate(b"words", [b"others"], [b"more"], random.Random(seed)) for seed in (1, 1, 2)]

    assert changed[0] == changed[1]
    assert changed[0] != changed[2]
