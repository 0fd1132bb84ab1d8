"""One odd file among others: whatever its time stamp, its name, the others are found; so is it, or it is named."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from plainmind import Memory

CENTURY = 100 * 365 * 86_400
# Seconds since 1970: what `touch -d` takes, and what no calendar has.
TIMES = {
    "2400": 13_569_465_600,
    "1600": -11_676_096_000,
    "one nanosecond before 1970": None,
    "the last second of 64 bits of nanoseconds": 9_223_372_036,
    "after it": 9_223_372_037,
    "the year 30000": 300 * CENTURY,
    "before Christ": -40 * CENTURY,
}


def date(path: Path, seconds: int | None) -> None:
    """Give a file a time; skips where the file system cannot keep it."""
    wanted = -1 if seconds is None else seconds * 10**9
    command = [
        "touch",
        "-d",
        "1969-12-31T23:59:59.999999999Z" if seconds is None else f"@{seconds}",
        str(path),
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode or path.stat().st_mtime_ns != wanted:
        pytest.skip(f"this file system keeps no such time: {done.stderr!r}")


MEMORY_DISK = Path("/dev/shm")


@pytest.fixture
def notes() -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as place:
        yield with_notes(Path(place))


def with_notes(place: Path) -> Path:
    folder = place / "notes" / "memory"
    folder.mkdir(parents=True)
    for name in ("first", "last"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe {name} lighthouse stands on the {name} cliff.\n")
    (folder / "middle.md").write_text("# middle\n\nAn armadillo sleeps in the cellar.\n")
    return folder


def open_memory(notes: Path, driver: str = "sqlite") -> Memory:
    if driver == "lancedb":
        pytest.importorskip("lancedb")
    return Memory(notes.parent, notes.parent.parent / "home", {"store": {"driver": driver}})


def found(memory: Memory, query: str) -> list[str]:
    return [hit.path for hit in memory.search(query).hits]


@pytest.mark.parametrize(
    ("driver", "time"), [*(("sqlite", time) for time in TIMES), ("lancedb", "2400"), ("lancedb", "1600")]
)
def test_a_file_of_any_time_is_found_and_its_changes_too(notes: Path, driver: str, time: str) -> None:
    date(notes / "middle.md", TIMES[time])
    with open_memory(notes, driver) as memory:
        assert not memory.sync().failed
        assert found(memory, "armadillo")[0] == "memory/middle.md"
        assert found(memory, "lighthouse on the first cliff")[0] == "memory/first.md"

        (notes / "middle.md").write_text("# middle\n\nA chinchilla sleeps in the cellar.\n")
        date(notes / "middle.md", TIMES[time])
        assert found(memory, "chinchilla")[0] == "memory/middle.md"
        assert memory.sync().indexed == ()


def test_a_time_before_1970_is_not_taken_for_the_mark_of_a_fresh_file(notes: Path) -> None:
    with open_memory(notes) as memory:
        memory.sync()
        status = (notes / "middle.md").stat()
        (notes / "middle.md").write_text("# middle\n\nAn alligators sleep in the cellar.\n")
        os.utime(notes / "middle.md", ns=(-status.st_mtime_ns, -status.st_mtime_ns))

        assert found(memory, "alligators")[0] == "memory/middle.md"


@pytest.mark.parametrize("command", [("list", "--json"), ("doctor", "--verify")])
def test_every_command_takes_a_file_of_the_year_30000(notes: Path, command: tuple[str, ...]) -> None:
    date(notes / "middle.md", TIMES["the year 30000"])
    done = subprocess.run(
        [sys.executable, "-m", "plainmind", *command],
        env={
            **os.environ,
            "PLAINMIND_WORKSPACE": str(notes.parent),
            "PLAINMIND_HOME": f"{notes.parent}-home",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


NAMES = {
    "bytes that are no text": b"memory/caf\xe9.md",
    "a line break": b"memory/two\nlines.md",
    "a carriage return and an escape": b"memory/a\r\x1b[31mb.md",
    "as long as a name can be": b"memory/" + b"n" * 252 + b".md",
    "no visible character": "memory/\u200b\u202e.md".encode(),
    "letters beyond the first plane": "memory/𝔣𝔬𝔬-🦎.md".encode(),
}


@pytest.mark.parametrize(
    ("driver", "name"), [*(("sqlite", name) for name in NAMES), ("lancedb", "bytes that are no text")]
)
def test_a_file_of_any_name_is_found_or_named_and_stops_no_other(notes: Path, driver: str, name: str) -> None:
    path = os.fsencode(notes.parent) + b"/" + NAMES[name]
    with open(path, "w") as file:
        file.write("# odd\n\nA salamander of an odd name.\n")
    with open_memory(notes, driver) as memory:
        report = memory.sync()
        told = [*report.failed, *report.skipped]
        result = memory.search("salamander of an odd name")
        is_found = any("salamander" in hit.snippet for hit in result.hits)

        assert is_found != bool(told)
        assert all(each.path.isprintable() for each in told)
        assert found(memory, "lighthouse on the last cliff")[0] == "memory/last.md"


def test_files_that_come_and_go_while_they_are_read_stop_no_other(notes: Path) -> None:
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            for number in range(5):
                (notes / f"brief-{number}.md").write_text("here for a moment\n")
            for number in range(5):
                (notes / f"brief-{number}.md").unlink()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(15):
            with open_memory(notes) as memory:
                assert found(memory, "lighthouse on the last cliff")[0] == "memory/last.md"
    finally:
        stop.set()
        thread.join()
