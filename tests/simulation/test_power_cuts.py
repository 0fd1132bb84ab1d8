"""Thousands of power cuts in seeded lives of a memory: nothing acknowledged is lost, nothing forgotten comes back."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.simulation.disk import Disk
from tests.simulation.power import cut_again_and_again, reason_to_leave_out
from tests.simulation.run import Report, simulate

from plainmind.files.replace import ChangeSets

CPU_SECONDS = 4.0  # `make sim` goes on for an hour
LEAST_SEEDS = 4


def test_no_power_cut_loses_what_was_acknowledged_or_brings_back_what_was_forgotten():
    report, begun, seed = Report(), time.process_time(), 0
    first = int(os.environ.get("PLAINMIND_SEED", "0"))

    while seed < LEAST_SEEDS or time.process_time() - begun < CPU_SECONDS:
        simulate(first + seed, report)
        seed += 1

    assert report.faults == ()
    assert report.cuts > 1_000
    assert report.starts > 20


@pytest.mark.parametrize(
    "seed",
    [500_225],  # what a killed process left of a list of proposals was taken away, and not for good
)
def test_a_life_that_went_wrong_once_goes_well(seed):
    report = Report()

    simulate(seed, report)

    assert report.faults == ()


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


def test_several_files_that_are_not_put_back_together_are_found_out(monkeypatch):
    monkeypatch.setattr(ChangeSets, "recover", lambda _sets: ())
    monkeypatch.setattr(ChangeSets, "_put_back_unfinished", lambda _sets: ())
    report = Report()

    for seed in range(15, 23):  # of 46 seeds 13 were cut between two files; 5 of these 8
        simulate(seed, report, lives=2)

    assert any("by halves" in fault for fault in report.faults)


@pytest.mark.skipif(reason_to_leave_out("ext4") is not None, reason=str(reason_to_leave_out("ext4")))
@pytest.mark.parametrize("is_careless", [False, True])
def test_on_a_real_file_system_only_a_program_that_does_not_sync_loses_something(is_careless):
    faults = cut_again_and_again("ext4", 4, 3, is_careless=is_careless)

    assert bool(faults) is is_careless, faults
