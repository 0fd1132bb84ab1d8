"""Measure an acknowledged message beside what no program can do without: one write and one sync of the same bytes.

Give a FOLDER to measure the disk that it is on; without one it is that of the temporary folder.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from plainmind.sessions.store import SessionStore  # noqa: E402 (works without being installed)

ROUNDS = 400
SIZES = (200, 2_000, 20_000)


def main(folders: list[str]) -> int:
    """Print a row for each size of a message."""
    with tempfile.TemporaryDirectory(dir=folders[0] if folders else None) as folder:
        print(f"median (quickest tenth) of {ROUNDS} each, in turns, on the disk of {os.path.dirname(folder)}")
        for size in SIZES:
            _print_size(folder, size)
    return 0


def _print_size(folder: str, size: int) -> None:
    store = SessionStore(os.path.join(folder, f"sessions-{size}"))
    session = store.create("agent:main:main")
    message = {"role": "user", "content": "x" * size}
    session.append(message)
    line = _last_line(session.path)
    fd = os.open(os.path.join(folder, f"plain-{size}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    plain, ours, cpu = [], [], []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        os.write(fd, line)
        os.fdatasync(fd)
        ended, busy = time.perf_counter(), time.process_time()
        plain.append(ended - started)
        started = time.perf_counter()
        session.append(message)
        ended, idle = time.perf_counter(), time.process_time()
        ours.append(ended - started)
        cpu.append(idle - busy)
    os.close(fd)
    session.close()
    print(
        f"{size:6} characters: plain {_figures(plain)}, acknowledged {_figures(ours)}, "
        f"{median(ours) / median(plain):.2f} times ({_quick(ours) / _quick(plain):.2f}); "
        f"processor {median(cpu) * 1e6:.0f} µs"
    )


def _last_line(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read().splitlines(keepends=True)[-1]


def _quick(times: list[float]) -> float:
    return sorted(times)[len(times) // 10]


def _figures(times: list[float]) -> str:
    return f"{median(times) * 1e6:.0f} ({_quick(times) * 1e6:.0f}) µs"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
