"""Sessions are compacted, forked, converted, archived, deleted, and `kill -9` strikes: nothing is lost or doubled."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.faults.session_changer import CHANGES, MESSAGES, change, said
from tests.support.faulty_system import FaultySystem
from tests.support.mortal_process import Mortal, Storm

from plainmind.base.errors import PlainmindError
from plainmind.sessions.store import SessionStore

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
WORKERS = 4
PROGRAM = Path(__file__).with_name("session_changer.py")
SAID = re.compile(r"<([0-9]+-[0-9]+\.[0-9a-z]+)>")


class Worker(Mortal):
    """One changer through all its lives, and what it said of each session."""

    def __init__(self, name: int, folder: Path) -> None:
        super().__init__(PROGRAM)
        self._name, self._folder, self._next_number = name, folder, 0
        self.tried: dict[str, list[str]] = {}
        self.done: dict[str, list[str]] = {}

    def begin(self, seed: int) -> None:
        self.start(self._folder, self._name, self._next_number, seed)

    def hear(self, line: str) -> None:
        verb, key, what = line.split("\t")
        (self.tried if verb == "try" else self.done).setdefault(key, []).append(what)
        self._next_number = int(key.split("-")[1]) + 1


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
def test_a_change_that_is_cut_in_two_is_finished_or_undone(tmp_path: Path, seed: int) -> None:
    kills = 2_000 if FULL else 20
    workers = [Worker(name, tmp_path) for name in range(WORKERS)]
    Storm(workers, seed).rage(kills)

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
    """Either all calls from some moment on fail, which is how a kill looks from outside, or one alone.

    In the small run that is every other call.
    """
    begun(tmp_path / "0", name)
    counting = FaultySystem()
    store = SessionStore(tmp_path / "0", system=counting)
    change(name, store, store.open("0-0"))
    calls = len(counting.calls)
    assert calls > 5
    failed = 0
    for number in range(1, calls + 1, 1 if FULL else 2):
        folder = tmp_path / str(number)
        begun(folder, name)
        broken = FaultySystem(fail_at=number, code=errno.EIO, sticky=is_killed)
        worker = Worker(0, folder)
        worker.tried, worker.done = {"0-0": ["create", name]}, {"0-0": ["create"]}
        try:
            store = SessionStore(folder, system=broken)
            change(name, store, store.open("0-0"))
            worker.done["0-0"].append(name)
        except (PlainmindError, OSError):
            failed += 1
        check(folder, [worker])
        if not is_killed:
            check_that_nothing_is_left(folder)
    assert failed > (5 if FULL else 2)
