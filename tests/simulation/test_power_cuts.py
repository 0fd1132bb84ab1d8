"""Thousands of power cuts in seeded lives of a memory: nothing acknowledged is lost, nothing forgotten comes back."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.disk import Disk
from tests.simulation.run import Report, simulate

CPU_SECONDS = 20.0
LEAST_SEEDS = 4


def test_no_power_cut_loses_what_was_acknowledged_or_brings_back_what_was_forgotten():
    report, begun, seed = Report(), time.process_time(), 0
    first = int(os.environ.get("PLAINMIND_SEED", "0"))

    while seed < LEAST_SEEDS or time.process_time() - begun < CPU_SECONDS:
        simulate(first + seed, report)
        seed += 1

    assert report.faults == ()
    assert report.cuts > 2_000
    assert report.starts > 40


def test_the_same_seed_is_the_same_life():
    first, again = Report(), Report()

    simulate(5, first, lives=1)
    simulate(5, again, lives=1)

    assert (first.effects, first.cuts) == (again.effects, again.cuts)


@pytest.mark.parametrize("call", ["fsync", "fdatasync", "fsync_folder"])
def test_a_program_that_does_not_sync_is_found_out(monkeypatch, call):
    def ignore(disk: Disk, perform: Callable[[], None], *arguments: Any) -> None:
        pass

    monkeypatch.setattr(Disk, f"_{call}", ignore)
    report = Report()

    try:
        for seed in (1, 2, 3):
            simulate(seed, report, lives=1)
    except Exception as error:  # noqa: BLE001 -- a damaged file of ours is found by whoever reads it, in its own words
        report.faults += (str(error),)

    assert report.faults
