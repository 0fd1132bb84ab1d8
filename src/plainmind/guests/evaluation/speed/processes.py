"""Whole processes: how long a command takes from Enter to its answer, and how much memory one that stays open holds."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plainmind.base.errors import PlainmindError
from plainmind.guests.evaluation.speed.opening import plain_environment
from plainmind.guests.evaluation.speed.timing import Times, summary

_RESIDENT = "plainmind.guests.evaluation.speed.resident"


@dataclass(frozen=True, slots=True)
class Cold:
    """A command that starts from nothing, beside a Python that does nothing; both ran by turns."""

    search: Times
    bare: Times

    @property
    def ratio(self) -> float:
        """How many empty processes one search is."""
        return self.search.p50_ms / self.bare.p50_ms


@dataclass(frozen=True, slots=True)
class Residency:
    """Memory of a process in bytes. What is mapped from files can be dropped at any time and read again."""

    peak: int
    anonymous: int | None  # None where the system does not tell
    mapped: int | None
    facts: Mapping[str, Any]


def command() -> list[str]:
    """What a person types: the script beside this Python, or the module where there is none."""
    script = os.path.join(os.path.dirname(sys.executable), "plainmind")
    return [script] if os.access(script, os.X_OK) else [sys.executable, "-m", "plainmind"]


def cold_searches(workspace: str, home: str, questions: Sequence[str], *, runs: int, budget_s: float) -> Cold:
    """Time `plainmind search` and `python -c pass` by turns; modules are compiled and pages cached before."""
    environment = {**plain_environment(), "PLAINMIND_HOME": home, "PLAINMIND_WORKSPACE": workspace}
    searching, bare = [*command(), "search"], [sys.executable, "-c", "pass"]
    for text in questions[:2]:
        lap([*searching, text], environment)
    laps: list[tuple[tuple[float, float], tuple[float, float]]] = []
    deadline = time.perf_counter() + budget_s
    for text in questions[2 : 2 + runs]:
        if len(laps) >= 3 and time.perf_counter() > deadline:
            break
        laps.append((lap(bare, environment), lap([*searching, text], environment)))
    return Cold(
        search=summary([lap[1][0] for lap in laps], [lap[1][1] for lap in laps]),
        bare=summary([lap[0][0] for lap in laps], [lap[0][1] for lap in laps]),
    )


def residency(task: Mapping[str, Any]) -> Residency:
    """Let another process do the work, so that nothing that was measured before is counted."""
    finished = subprocess.run(  # noqa: S603 (our own module)
        [sys.executable, "-m", _RESIDENT],
        input=json.dumps(task),
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise PlainmindError(f"the process whose memory is measured failed: {finished.stderr.strip()[-400:]}")
    return Residency(**json.loads(finished.stdout))


def lap(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds by the wall and by the processor from start to end; raises when the command fails."""
    spent = _children_seconds()
    started = time.perf_counter()
    finished = subprocess.run(  # noqa: S603 (our own command)
        arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    seconds = time.perf_counter() - started
    if finished.returncode:
        said = finished.stderr.decode(errors="replace").strip()
        raise PlainmindError(f"`{' '.join(arguments)}` failed: {said[-400:]}")
    return seconds, _children_seconds() - spent


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
