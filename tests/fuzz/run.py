"""Fuzz for as long as you like: `python -m tests.fuzz.run --cases 1000000`, or `make fuzz`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz.engine import Outcome, fuzz
from tests.fuzz.targets import TARGETS, Target
from tests.support.results import write_down

MEMORY_DISK = "/dev/shm"


def run(
    target: Target,
    *,
    cases: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    keep: bool = False,
) -> Outcome:
    """Fuzz one door in a folder of its own."""
    place = MEMORY_DISK if os.path.isdir(MEMORY_DISK) else None
    with (
        tempfile.TemporaryDirectory(prefix="plainmind-fuzz-", dir=place) as folder,
        target.open(Path(folder)) as attempt,
    ):
        return fuzz(target.name, attempt, target.words, cases=cases, seconds=seconds, seed=seed, keep=keep)


def run_share(name: str, cases: int | None, seconds: float | None, seed: int) -> Outcome:
    """Fuzz one door in a process of its own."""
    target = next(target for target in TARGETS if target.name == name)
    return run(target, cases=cases, seconds=seconds, seed=seed)


def run_together(
    target: Target, processes: int, *, cases: int | None, seconds: float | None, seed: int
) -> Outcome:
    """Share the cases of one door among processes, each with the next seed; the lines are those of the best one."""
    share = None if cases is None else -(-cases // processes)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        tasks = [
            pool.submit(run_share, target.name, share, seconds, seed + each) for each in range(processes)
        ]
        found = [task.result() for task in tasks]
    return Outcome(
        target.name,
        cases=sum(one.cases for one in found),
        lines=max(one.lines for one in found),
        kept=max(one.kept for one in found),
        seconds=sum(one.seconds for one in found),
        faults=tuple(fault for one in found for fault in one.faults),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz every door; what was found is printed with its case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, help="for each target")
    parser.add_argument("--seconds", type=float, help="of CPU for each target")
    parser.add_argument("--only", choices=[target.name for target in TARGETS])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="that share the cases of each target")
    parser.add_argument("--keep", action="store_true", help="write down the cases that reach more lines")
    parser.add_argument("--record", action="store_true", help="write the figures down for docs/proof.md")
    given = parser.parse_args(arguments)
    has_faults = False
    for target in TARGETS:
        if given.only in {None, target.name}:
            if given.processes > 1:
                found = run_together(
                    target, given.processes, cases=given.cases, seconds=given.seconds, seed=given.seed
                )
            else:
                found = run(
                    target, cases=given.cases, seconds=given.seconds, seed=given.seed, keep=given.keep
                )
            print(
                f"{found.target}: {found.cases:,} cases in {found.seconds:.0f} s of CPU, {found.lines:,} lines reached,"
                f" {found.kept:,} cases kept, {len(found.faults)} faults",
                *found.faults,
                sep="\n",
                flush=True,
            )
            has_faults = has_faults or bool(found.faults)
            if given.record:
                figures = {"cases": found.cases, "lines": found.lines, "faults": len(found.faults)}
                write_down("fuzz", {target.name: figures})
    return 1 if has_faults else 0


if __name__ == "__main__":
    sys.exit(main())
