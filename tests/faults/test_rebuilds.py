"""Rebuilds while processes read and write the index, and `kill -9` strikes builders and writers."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.faults.index_worker import FILES, catch_up, read_once, rebuild
from tests.support.index_contents import fingerprint

from plainmind.index.drivers.sqlite import SqliteStore

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
REBUILDS = 200 if FULL else 15
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(__file__).with_name("index_worker.py"))


@dataclass
class Worker:
    """One process and what it said; started again under the same name after each kill."""

    role: str
    name: str
    command: list[str]
    heard: Counter[str]
    errors: list[str]
    process: subprocess.Popen[str] = field(init=False)
    listener: threading.Thread = field(init=False)
    killed: bool = False

    def start(self) -> None:
        self.killed = False
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )  # fmt: skip
        self.listener = threading.Thread(target=self._listen, args=(self.process,), daemon=True)
        self.listener.start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                if line.endswith("\n"):
                    self.heard[json.loads(line)["role"]] += 1

    def kill(self) -> None:
        self.killed = True
        self.process.send_signal(signal.SIGKILL)
        self.reap()

    def reap(self) -> None:
        self.process.wait(timeout=60)
        self.listener.join()
        assert self.process.stderr is not None
        if self.process.stderr.closed:
            return  # it ended by itself, and has been heard
        complaint = self.process.stderr.read()
        self.process.stderr.close()
        if not self.killed or complaint:
            self.errors.append(f"{self.role} {self.name}: {self.process.returncode} {complaint}")


@pytest.fixture
def workers(tmp_path):
    """Two rebuilders, two writers and three readers, all at work."""
    folder, notes = tmp_path / "index", tmp_path / "notes"
    notes.mkdir()
    for number in range(FILES):
        (notes / f"{number}.md").write_text(f"v-first-{number}")
    store = SqliteStore(str(folder))
    rebuild(store, notes, fingerprint())
    store.close()
    heard: Counter[str] = Counter()
    errors: list[str] = []
    started = []
    for role, name in [
        ("rebuild", "a"), ("rebuild", "b"), ("write", "a"), ("write", "b"),
        ("read", "a"), ("read", "b"), ("read", "c"),
    ]:  # fmt: skip
        command = [sys.executable, PROGRAM, role, str(folder), str(notes), name]
        worker = Worker(role, name, command, heard, errors)
        worker.start()
        started.append(worker)
    yield started
    for worker in started:
        if worker.process.poll() is None:
            worker.kill()


@pytest.mark.slow
@pytest.mark.timeout(3_000 if FULL else 300)
def test_readers_see_whole_generations_while_builders_and_writers_are_killed(workers, tmp_path):
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    heard, errors = workers[0].heard, workers[0].errors
    victims = [worker for worker in workers if worker.role != "read"]
    kills = 0
    deadline = time.monotonic() + (2_400 if FULL else 240)
    while not errors and time.monotonic() < deadline:
        if heard["rebuild"] >= REBUILDS and kills >= REBUILDS and heard["read"] >= REBUILDS:
            break
        time.sleep(dice.uniform(0.02, 0.4))
        # Builders are killed less often than they finish, or none would ever publish.
        if heard["rebuild"] + 3 > kills:
            victim = dice.choice(victims)
            victim.kill()
            victim.start()
            kills += 1
        for worker in workers:
            if worker.process.poll() is not None and not worker.killed:
                worker.reap()
    for worker in workers:
        worker.kill()

    assert errors == [], f"seed {seed}"
    assert heard["rebuild"] >= REBUILDS, f"seed {seed}: {heard}, {kills} kills"
    assert heard["write"] >= REBUILDS, f"seed {seed}: {heard}"
    _check_what_is_left(tmp_path, seed)


def _check_what_is_left(tmp_path: Path, seed: int) -> None:
    folder, notes = tmp_path / "index", tmp_path / "notes"
    store = SqliteStore(str(folder))
    read_once(store)
    assert store.describe()["recoveries"] == 0, f"seed {seed}"
    catch_up(store, notes, fingerprint())  # files that were saved, and whose writer died before indexing them
    lived = store.digest()
    left = [entry.name for entry in folder.iterdir() if entry.name.endswith(".sqlite")]
    rebuild(store, notes, fingerprint())

    assert store.digest() == lived, f"seed {seed}: the index is not that of its files"
    assert [entry.name for entry in folder.iterdir() if entry.name.endswith(".tmp")] == []
    assert len([entry.name for entry in folder.iterdir() if entry.name.endswith(".sqlite")]) == 1, left
    store.close()
