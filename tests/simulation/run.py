"""Run lives of a memory with power cuts: `python -m tests.simulation.run --minutes 60`, or one seed again."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence

from tests.simulation.disk import Disk
from tests.simulation.judge import faults_of_bytes, faults_of_recovery
from tests.simulation.life import Life
from tests.support.results import write_down

from plainmind.base.value import record

OPERATIONS = 14
MEMORY_DISK = "/dev/shm"


@record
class Report:
    """What a run saw."""

    lives: int = 0
    cuts: int = 0
    starts: int = 0
    effects: int = 0
    faults: tuple[str, ...] = ()


def simulate(seed: int, report: Report, *, lives: int = 3) -> None:
    """Live, cut the power at every effect, look at what is left; start again on some of it, and go on from the last."""
    root = tempfile.mkdtemp(prefix="plainmind-sim-", dir=MEMORY_DISK if os.path.isdir(MEMORY_DISK) else None)
    try:
        _simulate(seed, os.path.realpath(root), report, lives)
    finally:
        shutil.rmtree(root)


def _simulate(seed: int, root: str, report: Report, lives: int) -> None:
    chance = random.Random(seed)
    for name in ("ws", "home"):
        os.mkdir(os.path.join(root, name))
    life = Life(root, seed, with_index=seed % 4 == 0, with_entries=seed % 4 == 1)
    with life.open() as program:
        program.create_workspace()
    for _ in range(lives):
        disk = Disk(root)
        life.live(disk, OPERATIONS)
        report.lives += 1
        report.effects += len(disk.log)
        for at, durable, pending in disk.states():
            report.cuts += 1
            tree = disk.survivor(durable, pending, chance)
            _tell(report, life, seed, at, faults_of_bytes(life, tree, at))
        for _ in range(4):
            at = chance.randint(0, len(disk.log))
            tree = disk.cut(at, chance)
            disk.put(tree, chance)
            report.starts += 1
            _tell(report, life, seed, at, faults_of_recovery(life, at, chance))
        disk.put(tree, chance)
        life.go_on_after(at)


def _tell(report: Report, life: Life, seed: int, at: int, faults: Iterable[str]) -> None:
    for fault in faults:
        story = "; ".join(life.told)
        report.faults += (f"seed {seed}, cut after {at} effects: {fault}. What happened: {story}",)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate until the time is over; the first faults are printed, with their seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--first", type=int, default=0, help="the first seed of many")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--record", action="store_true", help="write the figures down for docs/proof.md")
    given = parser.parse_args(arguments)
    report, end = Report(), time.monotonic() + given.minutes * 60
    seed = given.first if given.seed is None else given.seed
    while True:
        simulate(seed, report)
        seed += 1
        if given.seed is not None or time.monotonic() > end or len(report.faults) > 5:
            break
    print(
        f"{report.lives} lives, {report.effects} effects, {report.cuts} cuts looked at,"
        f" {report.starts} started again: {len(report.faults)} faults"
    )
    for fault in report.faults:
        print(fault)
    if given.record:
        write_down("simulation", {
            "lives": report.lives,
            "effects": report.effects,
            "cuts": report.cuts,
            "starts": report.starts,
            "faults": len(report.faults),
        })  # fmt: skip
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
