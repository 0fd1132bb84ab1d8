"""Eight real processes add to one session while `kill -9` strikes: nothing acknowledged is lost, doubled or torn."""

from __future__ import annotations

import json
import os
import random
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

import commonplace
from commonplace.sessions.store import SessionStore

FULL = os.environ.get("COMMONPLACE_FAULTS") == "full"
WRITERS = 8
SOURCE = str(Path(commonplace.__file__).parents[1])
PROGRAM = str(Path(__file__).with_name("session_writer.py"))
ENDLESS = 10**9


@dataclass
class Writer:
    """One writer through all its lives: what it tried last, and up to where it was acknowledged."""

    name: int
    tried: int = 0
    size: int = 500
    acknowledged: int = 0  # the numbers below this one
    process: subprocess.Popen[bytes] | None = None
    unread: bytes = b""
    dies_at: float = float("inf")

    def start(self, folder: Path, role: str, seed: int, most: int = ENDLESS) -> None:
        arguments = [folder, role, self.name, self.tried, self.size, seed, most]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", PROGRAM, SOURCE, *map(str, arguments)], stdout=subprocess.PIPE
        )
        self.unread, self.dies_at = b"", float("inf")

    @property
    def pipe(self) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def listen(self) -> bool:
        """Take down what it says; False when it has no more to say."""
        heard = os.read(self.pipe, 1 << 16)
        self.unread += heard
        *lines, self.unread = self.unread.split(b"\n")
        for line in lines:
            verb, _, number, *size = line.split()
            if verb == b"ack":
                assert int(number) == self.tried
                self.acknowledged = self.tried + 1
            else:
                self.tried, self.size = int(number), int(size[0])
        return bool(heard)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        while self.listen():
            pass
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert self.process.returncode == -signal.SIGKILL, "a writer ended by itself: see its error above"
        if self.acknowledged > self.tried:
            self.tried, self.size = self.acknowledged, 500


def rage(folder: Path, role: str, kills: int, seed: int) -> list[Writer]:
    """Let the writers write, and kill one after the other at random moments."""
    chance = random.Random(seed)
    writers = [Writer(name) for name in range(WRITERS)]
    selector = selectors.DefaultSelector()
    done = 0

    def begin(writer: Writer) -> None:
        writer.start(folder, role, chance.getrandbits(60))
        selector.register(writer.pipe, selectors.EVENT_READ, writer)

    def end(writer: Writer) -> None:
        selector.unregister(writer.pipe)
        writer.kill()

    for writer in writers:
        begin(writer)
    while done < kills:
        for key, _ in selector.select(0.002):
            writer = key.data
            assert writer.listen(), "a writer ended by itself: see its error above"
            if writer.dies_at == float("inf"):
                writer.dies_at = time.monotonic() + chance.uniform(0, 0.15)
        for writer in writers:
            if time.monotonic() >= writer.dies_at:
                end(writer)
                done += 1
                begin(writer)
    for writer in writers:
        end(writer)
    selector.close()
    return writers


@pytest.fixture
def seed() -> int:
    """Another one each run; a failure shows the line that repeats it."""
    chosen = int(os.environ.get("COMMONPLACE_SEED", time.time_ns() % 1_000_000))
    print(f"COMMONPLACE_SEED={chosen}")
    return chosen


def check_messages(folder: Path, writers: list[Writer]) -> int:
    """Every message once, whole and in order, every line of the file readable; how many there are."""
    session = SessionStore(folder).open("storm")
    session.append(
        {"role": "user", "content": "the end", "writer": -1, "number": 0}
    )  # puts a torn tail aside
    seen: Counter[int] = Counter()
    parent: str | None = None
    *lines, rest = Path(session.path).read_bytes().split(b"\n")
    assert rest == b""
    for line in lines[1:]:
        entry = json.loads(line)
        assert entry["parentId"] == parent
        parent = entry["id"]
        said = entry["message"]
        if said["writer"] >= 0:
            # In order and without a gap means: none lost, none doubled.
            assert said["number"] == seen[said["writer"]]
            seen[said["writer"]] += 1
            mark = f"{said['writer']}-{said['number']} "
            assert said["content"] == mark * (len(said["content"]) // len(mark))
            assert said["content"]
    for writer in writers:
        assert writer.acknowledged <= seen[writer.name] <= writer.tried + 1
    return seen.total()


@pytest.mark.slow
@pytest.mark.timeout(3600 if FULL else 60)
def test_no_acknowledged_message_is_missing_doubled_torn_or_out_of_order(tmp_path: Path, seed: int) -> None:
    SessionStore(tmp_path).create("storm")
    kills = 2_000 if FULL else 40
    writers = rage(tmp_path, "messages", kills, seed)

    total = check_messages(tmp_path, writers)
    torn = len(list(tmp_path.glob("*.torn-*")))
    acknowledged = sum(writer.acknowledged for writer in writers)
    print(f"{kills} kills, {acknowledged} acknowledged of {total}, {torn} torn lines put aside, seed {seed}")
    assert acknowledged > kills / 5


@pytest.mark.slow
@pytest.mark.timeout(3600 if FULL else 60)
def test_the_registry_is_whole_and_has_every_acknowledged_change(tmp_path: Path, seed: int) -> None:
    SessionStore(tmp_path).create("storm")
    kills = 2_000 if FULL else 30
    writers = rage(tmp_path, "registry", kills, seed)

    entry = json.loads((tmp_path / "sessions.json").read_text())["storm"]
    for writer in writers:
        assert writer.acknowledged - 1 <= entry.get(f"w{writer.name}", -1) <= writer.tried
    acknowledged = sum(writer.acknowledged for writer in writers)
    print(f"{kills} kills, {acknowledged} changes acknowledged, seed {seed}")
    assert acknowledged > kills / 5
    store = SessionStore(tmp_path)
    store.update("storm", label="the end")  # sweeps up what the killed left
    assert store.notices == ()
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


@pytest.mark.slow
@pytest.mark.timeout(600 if FULL else 60)
def test_eight_processes_add_to_one_session_and_nothing_is_lost(tmp_path: Path) -> None:
    SessionStore(tmp_path).create("storm")
    each = 1_250 if FULL else 100
    writers = [Writer(name) for name in range(WRITERS)]
    started = time.monotonic()
    for writer in writers:
        writer.start(tmp_path, "messages", writer.name, each)
    for writer in writers:
        while writer.listen():
            pass
        assert writer.process is not None
        assert writer.process.wait() == 0
        assert writer.process.stdout is not None
        writer.process.stdout.close()
    seconds = time.monotonic() - started

    assert [writer.acknowledged for writer in writers] == [each] * WRITERS
    assert check_messages(tmp_path, writers) == each * WRITERS
    print(f"{each * WRITERS} messages of {WRITERS} processes in {seconds:.1f} s")
    assert list(tmp_path.glob("*.torn-*")) == []
