"""Eight real processes add to one session while `kill -9` strikes: nothing acknowledged is lost, doubled or torn."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from tests.support.mortal_process import Mortal, Storm

from plainmind.sessions.store import SessionStore

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
WRITERS = 8
PROGRAM = Path(__file__).with_name("session_writer.py")
ENDLESS = 10**9


class Writer(Mortal):
    """One writer through all its lives: what it tried last, and up to where it was acknowledged."""

    def __init__(self, name: int, folder: Path, role: str, most: int = ENDLESS) -> None:
        super().__init__(PROGRAM)
        self.name = name
        self.tried, self._size = 0, 500
        self.acknowledged = 0  # the numbers below this one
        self._folder, self._role, self._most = folder, role, most

    def begin(self, seed: int) -> None:
        if self.acknowledged > self.tried:
            self.tried, self._size = self.acknowledged, 500
        self.start(self._folder, self._role, self.name, self.tried, self._size, seed, self._most)

    def hear(self, line: str) -> None:
        verb, _, number, *size = line.split()
        if verb == "ack":
            assert int(number) == self.tried
            self.acknowledged = self.tried + 1
        else:
            self.tried, self._size = int(number), int(size[0])


def rage(folder: Path, role: str, kills: int, seed: int) -> list[Writer]:
    """Let the writers write while they are killed."""
    SessionStore(folder).create("storm")
    writers = [Writer(name, folder, role) for name in range(WRITERS)]
    Storm(writers, seed).rage(kills)
    return writers


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
    kills = 2_000 if FULL else 20
    writers = rage(tmp_path, "messages", kills, seed)

    total = check_messages(tmp_path, writers)
    torn = len(list(tmp_path.glob("*.torn-*")))
    acknowledged = sum(writer.acknowledged for writer in writers)
    print(f"{kills} kills, {acknowledged} acknowledged of {total}, {torn} torn lines put aside, seed {seed}")
    assert acknowledged > kills / 5


@pytest.mark.slow
@pytest.mark.timeout(3600 if FULL else 60)
def test_the_registry_is_whole_and_has_every_acknowledged_change(tmp_path: Path, seed: int) -> None:
    kills = 2_000 if FULL else 15
    writers = rage(tmp_path, "registry", kills, seed)

    entry = json.loads((tmp_path / "sessions.json").read_text())["storm"]
    for writer in writers:
        assert writer.acknowledged - 1 <= entry.get(f"w{writer.name}", -1) <= writer.tried
    acknowledged = sum(writer.acknowledged for writer in writers)
    print(f"{kills} kills, {acknowledged} changes acknowledged, seed {seed}")
    assert acknowledged > kills / 5
    store = SessionStore(tmp_path)
    store.update("storm", label="the end")  # sweeps up what the killed left
    assert list(tmp_path.glob("*.corrupt-*")) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


@pytest.mark.slow
@pytest.mark.timeout(600 if FULL else 60)
def test_eight_processes_add_to_one_session_and_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    SessionStore(tmp_path).create("storm")
    each = 1_250 if FULL else 100
    writers = [Writer(name, tmp_path, "messages", each) for name in range(WRITERS)]
    for writer in writers:
        writer.begin(seed)

    assert [writer.bury() for writer in writers] == [0] * WRITERS
    assert [writer.acknowledged for writer in writers] == [each] * WRITERS
    assert check_messages(tmp_path, writers) == each * WRITERS
    assert list(tmp_path.glob("*.torn-*")) == []
