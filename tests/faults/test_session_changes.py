"""Sessions are compacted, forked, converted, archived, deleted, and `kill -9` strikes: nothing is lost or doubled."""

from __future__ import annotations

import errno
import os
import random
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.faults.session_changer import CHANGES, MESSAGES, change, said
from tests.support.faulty_system import FaultySystem

import commonplace
from commonplace.errors import CommonplaceError
from commonplace.sessions.store import SessionStore

FULL = os.environ.get("COMMONPLACE_FAULTS") == "full"
WORKERS = 4
SOURCE = str(Path(commonplace.__file__).parents[1])
PROGRAM = str(Path(__file__).with_name("session_changer.py"))
SAID = re.compile(r"<([0-9]+-[0-9]+\.[0-9a-z]+)>")


@dataclass
class Worker:
    """One changer through all its lives, and what it said of each session."""

    name: int
    next_number: int = 0
    process: subprocess.Popen[bytes] | None = None
    unread: bytes = b""
    dies_at: float = float("inf")
    tried: dict[str, list[str]] = field(default_factory=dict)
    done: dict[str, list[str]] = field(default_factory=dict)

    def start(self, folder: Path, seed: int) -> None:
        arguments = [folder, self.name, self.next_number, seed]
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
            verb, key, what = line.decode().split("\t")
            (self.tried if verb == "try" else self.done).setdefault(key, []).append(what)
            self.next_number = int(key.split("-")[1]) + 1
        return bool(heard)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        while self.listen():
            pass
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert self.process.returncode == -signal.SIGKILL, "a changer ended by itself: see its error above"


def rage(folder: Path, kills: int, seed: int) -> list[Worker]:
    """Let them work, and kill one after the other at random moments."""
    chance = random.Random(seed)
    workers = [Worker(name) for name in range(WORKERS)]
    selector = selectors.DefaultSelector()

    def begin(worker: Worker) -> None:
        worker.start(folder, chance.getrandbits(60))
        selector.register(worker.pipe, selectors.EVENT_READ, worker)

    for worker in workers:
        begin(worker)
    done = 0
    while done < kills:
        for key, _ in selector.select(0.002):
            worker = key.data
            assert worker.listen(), "a changer ended by itself: see its error above"
            if worker.dies_at == float("inf"):
                worker.dies_at = time.monotonic() + chance.uniform(0, 0.2)
        for worker in workers:
            if time.monotonic() >= worker.dies_at:
                selector.unregister(worker.pipe)
                worker.kill()
                done += 1
                begin(worker)
    for worker in workers:
        selector.unregister(worker.pipe)
        worker.kill()
    selector.close()
    return workers


def messages_on_disk(folder: Path) -> Counter[str]:
    """How often each message is in a file that is searched: transcripts of both formats, and archives."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*.json*"):
        relative = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not is_hidden and not re.match(r"(sessions|registry)\.json5?", path.name):
            assert ".torn-" not in path.name or path.suffix != ".jsonl"
            if ".torn-" not in path.name:
                found.update(SAID.findall(path.read_text()))
    return found


def check(folder: Path, workers: list[Worker]) -> Counter[str]:
    """What was acknowledged holds, what was only tried is whole or not there; how often each change was made."""
    store = SessionStore(folder, system=FaultySystem())
    store.create("the end")  # whoever changes the registry next finishes what the killed left
    listed = {row.key: row for row in store.list()}
    on_disk = messages_on_disk(folder)
    made: Counter[str] = Counter()
    for worker in workers:
        for key, tried in worker.tried.items():
            done = worker.done.get(key, [])
            made.update(done)
            names = [f"{key}.{each}" for each in range(MESSAGES)]
            fork = f"{key}-fork" in listed
            copies = {on_disk[name] for name in names} if "create" in done else set()
            change = tried[-1]
            if "create" not in done:
                assert max((on_disk[name] for name in names), default=0) <= 1, key
            elif change == "delete":
                assert copies == {0} or ("delete" not in done and copies == {1}), (key, copies)
                assert (key in listed) == (copies == {1})
            elif change == "fork":
                assert fork or "fork" not in done
                assert copies == {2 if fork else 1}, (key, copies)
            else:
                assert copies == {1}, (key, tried, done, copies)
            if change == "archive" and "create" in done:
                archived = [name for name in store.archives() if f"<{key}.0>" in (folder / name).read_text()]
                assert (key in listed) == (not archived), key
                assert archived or "archive" not in done
            elif change != "delete" and "create" in done:
                texts = [message["content"] for message in store.open(key).messages()]
                wanted = [f"<{name}>" for name in names]
                assert texts[:MESSAGES] == wanted, key
                if "later" in done:
                    assert texts == [*wanted, f"<{key}.later>"], key
                    assert on_disk[f"{key}.later"] == 1
    for row in listed.values():
        assert Path(row.path).is_file(), row
        assert store.open(row.key).check().damaged == ()
    return made


def check_that_nothing_is_left(folder: Path) -> None:
    SessionStore(folder, system=FaultySystem()).delete("the end")  # whoever deletes sweeps up
    left = [path for path in folder.rglob("*") if path.suffix == ".tmp" or path.parent.name == "drafts"]
    assert left == []


@pytest.mark.slow
@pytest.mark.timeout(3600 if FULL else 60)
def test_a_change_that_is_cut_in_two_is_finished_or_undone(tmp_path: Path) -> None:
    seed = int(os.environ.get("COMMONPLACE_SEED", time.time_ns() % 1_000_000))
    print(f"COMMONPLACE_SEED={seed}")
    kills = 2_000 if FULL else 40
    workers = rage(tmp_path, kills, seed)

    made = check(tmp_path, workers)
    check_that_nothing_is_left(tmp_path)
    print(f"{kills} kills, seed {seed}: {dict(made)}")
    assert made["create"] > kills / 10


def begun(folder: Path, name: str) -> None:
    """Make a folder with one session, ready for a change."""
    store = SessionStore(folder, system=FaultySystem())
    said(store, "0-0").close()
    if name == "convert back":
        store.convert("json5", "0-0")


# A reader that is left in the middle closes its file when it is collected, and here that may fail too.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "one error"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_can_fail_at_every_call_of_the_system(tmp_path: Path, name: str, *, is_killed: bool) -> None:
    """Either all calls from some moment on fail, which is how a kill looks from outside, or one alone."""
    begun(tmp_path / "0", name)
    counting = FaultySystem()
    store = SessionStore(tmp_path / "0", system=counting)
    change(name, store, store.open("0-0"))
    calls = len(counting.calls)
    assert calls > 5
    failed = 0
    for number in range(1, calls + 1):
        folder = tmp_path / str(number)
        begun(folder, name)
        broken = FaultySystem(fail_at=number, code=errno.EIO, sticky=is_killed)
        worker = Worker(0, tried={"0-0": ["create", name]}, done={"0-0": ["create"]})
        try:
            store = SessionStore(folder, system=broken)
            change(name, store, store.open("0-0"))
            worker.done["0-0"].append(name)
        except (CommonplaceError, OSError):
            failed += 1
        check(folder, [worker])
        if not is_killed:
            check_that_nothing_is_left(folder)
    assert failed > 5
