"""What processes take: time by the wall and by the processor, and memory, of whole trees of them (Linux)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from plainmind.base.errors import PlainmindError
from plainmind.base.value import value

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_OURS = Path("/proc/self/cmdline").read_bytes()
LONGEST_S = 1_800.0


@value
class Taken:
    """One piece of work. `served` is what the server of vectors worked for it; memory is the most at once."""

    seconds: float
    cpu_seconds: float
    served_seconds: float
    peak_bytes: int
    output: str = ""


def seconds_of(pid: int) -> float:
    """What a process has worked since its start, with all its threads, to the nanosecond."""
    return time.clock_gettime(
        (~pid << 3) | 2
    )  # the number of another process's clock, see clock_getcpuclockid(3)


def tree(pid: int) -> Iterator[int]:
    """A process and all that came from it, as far as they are there."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (row := _stat(int(name))):
            children.setdefault(int(row[1]), []).append(int(name))
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += children.get(one, [])


def seconds_of_tree(pid: int) -> float:
    """What a tree has worked; of those that have ended, what their parents were told."""
    total = 0.0
    for one in tree(pid):
        row = _stat(one)
        with suppress(OSError):  # one that has ended since then has no clock
            total += seconds_of(one)
        if row:
            total += (int(row[13]) + int(row[14])) / _TICKS
    return total


def bytes_of_tree(pid: int) -> int:
    """What is resident of a tree now; what several of them share counts for each.

    A process that is about to become another program still looks like this one, and does not count.
    """
    total = 0
    for one in tree(pid):
        try:
            if Path(f"/proc/{one}/cmdline").read_bytes() != _OURS:
                total += int(Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
        except (OSError, IndexError):
            continue
    return total


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on: parent is 1, children's time is 13 and 14."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return []


class Ear:
    """Looks at the memory of a tree every few hundredths of a second, from a thread of its own."""

    def __init__(self, pid: int, every_s: float = 0.05) -> None:
        self.most = 0
        self._pid, self._every = pid, every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _listen(self) -> None:
        while True:
            self.most = max(self.most, bytes_of_tree(self._pid))
            if self._ended.wait(self._every):
                return


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    *,
    server: int | None = None,
    may_find_nothing: bool = False,
    every_s: float = 0.05,
    most_s: float = LONGEST_S,
) -> Taken:
    """Run a command to its end; raises when it fails, or takes longer than it may.

    `server` is the process whose work is told apart.
    """
    served = seconds_of(server) if server else 0.0
    started = time.perf_counter()
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(
            command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=complaints, start_new_session=True,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        killer = threading.Timer(most_s, end_group, [process.pid])
        killer.start()
        with Ear(process.pid, every_s) as ear:
            output = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
        killer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        complaints.seek(0)
        said = (complaints.read() or output).decode(errors="replace").strip()
    if process.returncode == -signal.SIGKILL and seconds >= most_s:
        raise PlainmindError(f"`{' '.join(command)[:200]}` was ended: it took more than {most_s:,.0f} s")
    if process.returncode and not (may_find_nothing and process.returncode == 1):
        raise PlainmindError(f"`{' '.join(command)[:200]}` failed ({process.returncode}): {said[-600:]}")
    return Taken(
        seconds,
        used.ru_utime + used.ru_stime,
        seconds_of(server) - served if server else 0.0,
        ear.most,
        output.decode(errors="replace"),
    )


def end_group(pid: int) -> None:
    """End a process that leads a group, with all of it."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


class Resident:
    """A program that stays open and answers one line of JSON with another."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path,
        complaints: Path,
        *,
        server: int | None = None,
    ) -> None:
        self._server = server
        self._complaints = complaints
        with complaints.open("wb") as stderr:
            self._process = subprocess.Popen(
                command, env=environment, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=stderr, start_new_session=True,
            )  # fmt: skip
        self.peak_bytes = 0
        try:
            self._read()  # that it is ready
        except PlainmindError:
            self.close()
            raise

    def ask(self, **request: Any) -> tuple[dict[str, Any], Taken]:
        """Ask, and wait for the answer."""
        assert self._process.stdin is not None
        pid = self._process.pid
        served = seconds_of(self._server) if self._server else 0.0
        worked = seconds_of_tree(pid)
        line = json.dumps(request).encode() + b"\n"
        started = time.perf_counter()
        self._process.stdin.write(line)
        self._process.stdin.flush()
        answer = self._read()
        seconds = time.perf_counter() - started
        resident = bytes_of_tree(pid)
        self.peak_bytes = max(self.peak_bytes, resident)
        return answer, Taken(
            seconds,
            max(0.0, seconds_of_tree(pid) - worked),
            seconds_of(self._server) - served if self._server else 0.0,
            resident,
        )

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            answer = json.loads(line)
        except ValueError:
            said = self._complaints.read_text(encoding="utf-8", errors="replace").strip()
            raise PlainmindError(
                f"a program that stays open ended or said {line[:200]!r}: {said[-600:]}"
            ) from None
        if not isinstance(answer, dict) or "error" in answer:
            raise PlainmindError(f"a program that stays open says: {answer}")
        return answer

    def close(self) -> None:
        """Let it end by itself, then end what is left of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10.0)
        end_group(self._process.pid)
        self._process.wait()
        self._process.stdout.close()
