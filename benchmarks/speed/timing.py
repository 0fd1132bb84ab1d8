"""What work takes: in this process, in whole processes, and on which machine."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata, util
from typing import Any, Self, TypeVar

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value
from speed.resident import plain_environment

BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # where `python -m speed.…` works
BYTES_READ = 256 * 1024 * 1024  # more than any cache holds
_PACKAGES = ("plainmind", "apsw", "numpy", "simsimd", "sqlite-vec", "tantivy", "usearch", "faiss-cpu")
Asked = TypeVar("Asked")


@value
class Times:
    """What one piece of work took, over so many runs. The processor's time is of all threads together."""

    runs: int
    p50_ms: float
    p95_ms: float
    cpu_p50_ms: float


@value
class Bulk:
    """A long piece of work on many chunks, done once."""

    chunks: int
    seconds: float
    cpu_seconds: float

    @property
    def chunks_per_second(self) -> float:
        """How many chunks went through in a second of waiting."""
        return self.chunks / self.seconds if self.seconds else 0.0


class Stopwatch:
    """Adds up the time that is spent inside its blocks."""

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0
        self._since = (0.0, 0.0)

    def __enter__(self) -> Self:
        self._since = (time.perf_counter(), time.process_time())
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._since[0]
        self.cpu_seconds += time.process_time() - self._since[1]


def measure(
    work: Callable[[Asked], object], over: Iterable[Asked], *, budget_s: float, least: int = 3
) -> Times:
    """Time one run for each value, until the budget is spent and `least` runs are done."""
    laps: list[tuple[float, float]] = []
    deadline = time.perf_counter() + budget_s
    for one in over:
        if len(laps) >= least and time.perf_counter() > deadline:
            break
        with Stopwatch() as lap:
            work(one)
        laps.append((lap.seconds, lap.cpu_seconds))
    return summary([wall for wall, _ in laps], [cpu for _, cpu in laps])


def summary(seconds: Sequence[float], cpu_seconds: Sequence[float]) -> Times:
    """The percentiles of some laps."""
    return Times(
        runs=len(seconds),
        p50_ms=percentile(seconds, 0.5) * 1000,
        p95_ms=percentile(seconds, 0.95) * 1000,
        cpu_p50_ms=percentile(cpu_seconds, 0.5) * 1000,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values lies, in between two where it falls between them."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def machine() -> Mapping[str, object]:
    """Facts about this computer."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memoryBytes": _memory_bytes(),
    }


def versions() -> Mapping[str, str]:
    """Versions of everything that was measured."""
    import apsw

    found = {"python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def is_installed(module: str) -> bool:
    """Whether a module could be imported, without doing it."""
    return module in sys.modules or util.find_spec(module) is not None


def read_bandwidth(size: int = BYTES_READ) -> float:
    """Bytes a second that one core reads, at best: no search that looks at every vector can be faster."""
    import numpy as np

    numbers = np.ones(size // 8, dtype=np.int64)
    best = 0.0
    for _ in range(6):
        started = time.perf_counter()
        np.bitwise_or.reduce(numbers)
        best = max(best, numbers.nbytes / (time.perf_counter() - started))
    return best


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


@value
class Cold:
    """A command that starts from nothing, beside a Python that does nothing; both ran by turns."""

    search: Times
    bare: Times

    @property
    def ratio(self) -> float:
        """How many empty processes one search is."""
        return self.search.p50_ms / self.bare.p50_ms


@value
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


_BEGIN = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
_FIRST_WORDS = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {"id": 1, "method": "initialize", "params": _BEGIN},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    )
).encode()


def first_tool_lists(home: str, *, runs: int, budget_s: float) -> Times:
    """Time whole servers for MCP: each is started, asked for its tools, and ends with its client."""
    environment = {**plain_environment(), "PLAINMIND_HOME": home}
    serving = [*command(), "mcp"]
    lap(serving, environment, says=_FIRST_WORDS)  # makes the workspace
    laps: list[tuple[float, float]] = []
    deadline = time.perf_counter() + budget_s
    while len(laps) < runs and (len(laps) < 3 or time.perf_counter() < deadline):
        laps.append(lap(serving, environment, says=_FIRST_WORDS))
    return summary([one[0] for one in laps], [one[1] for one in laps])


def residency(task: Mapping[str, Any]) -> Residency:
    """Let another process do the work, so that nothing that was measured before is counted."""
    finished = subprocess.run(
        [sys.executable, "-m", "speed.resident"],
        cwd=BENCHMARKS,
        input=json.dumps(task),
        env=plain_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise PlainmindError(f"the process whose memory is measured failed: {finished.stderr.strip()[-400:]}")
    return Residency(**json.loads(finished.stdout))


def lap(
    arguments: Sequence[str], environment: Mapping[str, str], *, says: bytes = b""
) -> tuple[float, float]:
    """Seconds by the wall and by the processor from start to end; raises when the command fails."""
    spent = _children_seconds()
    started = time.perf_counter()
    finished = subprocess.run(arguments, env=environment, input=says, capture_output=True, check=False)
    seconds = time.perf_counter() - started
    if finished.returncode:
        said = finished.stderr.decode(errors="replace").strip()
        raise PlainmindError(f"`{' '.join(arguments)}` failed: {said[-400:]}")
    return seconds, _children_seconds() - spent


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
