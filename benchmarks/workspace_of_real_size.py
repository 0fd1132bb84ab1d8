"""Time a workspace of real size: the first sync, one with nothing to do, a cold search, a warm one."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from synthetic_workspace import queries, write_workspace

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
START = "<!-- workspace of real size: written by `make bench`, edits here are lost -->"
END = "<!-- workspace of real size: end -->"
COMMAND = ROOT / ".venv" / "bin" / "commonplace"


@dataclass(frozen=True)
class Row:
    """One line of the table: what was timed, how often, and the seconds of each run."""

    what: str
    seconds: list[float]

    def cells(self) -> str:
        ordered = sorted(self.seconds)
        slow = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        return f"| {self.what} | {len(ordered)} | {shown(statistics.median(ordered))} | {shown(slow)} |"


def shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def timed(work: Callable[..., object], *arguments: object, **named: object) -> float:
    started = time.perf_counter()
    work(*arguments, **named)
    return time.perf_counter() - started


def run(*command: str, environment: dict[str, str]) -> None:
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise SystemExit(f"error: {' '.join(command)} failed\n{finished.stdout}{finished.stderr}")


def processes(workspace: Path, home: Path, asked: list[str]) -> list[Row]:
    """Time whole processes, start-up included."""
    # Compiled modules are kept, as they are on a user's machine, whatever this shell says.
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith(("COMMONPLACE_", "PYTHON"))
    }
    environment = {**plain, "COMMONPLACE_HOME": str(home), "COMMONPLACE_WORKSPACE": str(workspace)}
    command = str(COMMAND)
    run(command, "--help", environment=environment)
    first = timed(run, command, "sync", environment=environment)
    nothing = [timed(run, command, "sync", environment=environment) for _ in range(9)]
    run(command, "search", "warm the page cache", environment=environment)
    searches = [timed(run, command, "search", query, environment=environment) for query in asked[:21]]
    bare = [timed(run, sys.executable, "-c", "pass", environment=environment) for _ in range(9)]
    return [
        Row("`commonplace sync`, first time", [first]),
        Row("`commonplace sync`, nothing changed", nothing),
        Row("`commonplace search`, a new process each time", searches),
        Row("an empty Python process, for comparison", bare),
    ]


def in_process(workspace: Path, home: Path, asked: list[str]) -> list[Row]:
    """Time searches in one process that stays open, the check for changed files included."""
    from commonplace import Memory

    with Memory(workspace, home=home) as memory:
        for query in asked[:5]:
            memory.search(query)
        seconds = [timed(memory.search, query, max_results=6) for query in asked]
    return [Row("`Memory.search` in an open process", seconds)]


def table(rows: list[Row], *, files: int, size: int) -> str:
    """Return the part of the page that this program writes."""
    day = dt.datetime.now(dt.UTC).date()
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    head = "| What | Runs | Median | 95th percentile |\n|---|---|---|---|"
    return (
        f"{files} Markdown files, {size / 1e6:.1f} MB, English, Chinese and Japanese mixed. "
        f"Python {platform.python_version()}, {machine}, {day}.\n\n"
        + "\n".join([head, *(row.cells() for row in rows)])
    )


def publish(part: str) -> None:
    """Put the table between its markers in docs/performance.md."""
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(START)
    _, tail = rest.split(END)
    PAGE.write_text(f"{head}{START}\n{part}\n{END}{tail}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=250)
    parser.add_argument("--bytes", type=int, default=2_000_000)
    parser.add_argument("--print-only", action="store_true", help="leave docs/performance.md as it is")
    arguments = parser.parse_args()
    asked = queries(100)
    with tempfile.TemporaryDirectory() as name:
        workspace, home = Path(name) / "workspace", Path(name) / "home"
        today = dt.datetime.now(dt.UTC).date()
        size = write_workspace(workspace, files=arguments.files, total_bytes=arguments.bytes, last_day=today)
        rows = [*processes(workspace, home, asked), *in_process(workspace, home, asked)]
    part = table(rows, files=arguments.files, size=size)
    print(part)
    if not arguments.print_only:
        publish(part)
    return 0


if __name__ == "__main__":
    sys.exit(main())
