"""Power cuts on a real file system: an image is copied while a memory writes to it, mounted again, and looked at.

The image holds what the file system has given to its device and nothing else: what was not synced is in memory, and
not in the copy. Mounting the copy replays the journal, as after a power cut. Files and the SQLite index are cut alike.
Needs root and loop devices: `python -m tests.simulation.power --cuts 200`, or `make power`.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence

from tests.simulation.disk import is_database
from tests.simulation.judge import inflated
from tests.simulation.life import Life, holds
from tests.support.results import write_down

from plainmind.files.system import System

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FORMATS = {  # the smallest image that each accepts
    "ext4": (48, ["mkfs.ext4", "-q", "-F"]),
    "xfs": (320, ["mkfs.xfs", "-q", "-f"]),
    "btrfs": (120, ["mkfs.btrfs", "-q", "-f"]),
}

_CUTS_OF_A_LIFE = 10  # then another begins on an empty image: this one would be full some day
_ASKED = 12  # words that are searched for after each cut


class Announcer:
    """Stands where a simulated disk stands, and tells another process what begins and what is acknowledged."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def mark(self, name: str, *words: str) -> int:
        """Say it, before anything else happens."""
        self.log.append(name)
        print(json.dumps([name, *words]), flush=True)
        return len(self.log)


def write_for_ever(root: str, seed: int, *, is_careless: bool) -> None:
    """Remember, edit, say, forget and search until somebody ends this; who is careless syncs nothing."""
    if is_careless:
        for name in ("fsync", "fdatasync", "fsync_folder"):
            setattr(System, name, lambda *_: None)
    life = Life(root, seed, with_index=True)
    announcer = Announcer()
    life.disk = announcer  # type: ignore[assignment]
    operations = [life._remember, life._remember_for_good, life._say, life._edit, life._forget, life._search]
    with life.open() as program:
        told: dict[str, int] = {}
        while True:
            life.chance.choices(operations, (5, 2, 5, 3, 1, 2))[0](program)
            now = {word: promise.counts[-1][2] for word, promise in life.promises.items()}
            places = {word: life.promises[word].place for word in now if word not in told}
            changed = {word: count for word, count in now.items() if told.get(word) != count}
            announcer.mark("are", json.dumps([changed, places]))
            told = now


class Ledger:
    """What the writer has said so far: how often each word must be there, and which are being changed."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.places: dict[str, str] = {}
        self.open: set[str] = set()

    def hear(self, line: str) -> None:
        """Take in one line of the writer."""
        name, *words = json.loads(line)
        if name == "begin":
            self.open = set(words)
        elif name == "are":
            counts, places = json.loads(words[0])
            self.counts |= counts
            self.places |= places
            self.open = set()

    def due(self) -> Mapping[str, tuple[str, int]]:
        """The words that nobody is changing, with their places and how often they stand there."""
        return {word: (self.places[word], n) for word, n in self.counts.items() if word not in self.open}


def check(root: str, due: Mapping[str, tuple[str, int]]) -> Iterator[str]:
    """Say what is wrong with a memory after a cut, by its bytes and by its answers."""
    files: dict[str, bytes] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                data = file.read()
            files[os.path.relpath(path, root)] = data if is_database(name) else data + inflated(data)
    for word, (place, count) in due.items():
        token = word.encode()
        if count == -1:
            back = [path for path, data in files.items() if token in data and not is_database(path)]
            if back:
                yield f"{word} was forgotten, and is back in {', '.join(back)}"
            continue
        found = sum(data.count(token) for path, data in files.items() if holds(place, path))
        if found != count:
            yield f"{word} stands {found} times in {place} instead of {count}"
    life = Life(root, 1, with_index=True)
    with life.open() as program:
        program.remember("after the cut")
        program.sync()
        notes = [(word, count) for word, (place, count) in due.items() if place == "notes"]
        for word, count in random.sample(notes, min(_ASKED, len(notes))):
            is_found = any(word in hit.snippet for hit in program.search(word, max_results=3).hits)
            if is_found != (count == 1):
                yield f"{word}: {count} in the notes, and a search says {is_found}"


def _mount(kind: str, image: str, folder: str) -> list[str]:
    options = "loop,nouuid" if kind == "xfs" else "loop"  # XFS refuses a copy beside the first
    return ["mount", "-o", options, image, folder]


def reason_to_leave_out(kind: str) -> str | None:
    """Why a file system cannot be tried here; None when it can."""
    if os.geteuid() or not os.path.exists("/dev/loop-control"):
        return "only root can mount an image"
    if shutil.which(FORMATS[kind][1][0]) is None:
        return f"{FORMATS[kind][1][0]} is not installed"
    return None


def cut_again_and_again(kind: str, cuts: int, seed: int, *, is_careless: bool = False) -> list[str]:
    """Write on an image, and cut the power so many times; what was wrong."""
    chance = random.Random(seed)
    size, make = FORMATS[kind]
    base = tempfile.mkdtemp(prefix="plainmind-power-", dir="/dev/shm" if kind == "ext4" else None)
    image, copy, folder = (os.path.join(base, name) for name in ("image", "copy", "mounted"))
    os.mkdir(folder)
    with open(image, "wb") as file:
        file.truncate(size << 20)
    subprocess.run([*make, image], check=True)
    subprocess.run(_mount(kind, image, folder), check=True)
    faults: list[str] = []
    writer = None
    try:
        for name in ("ws", "home"):
            os.mkdir(os.path.join(folder, name))
        with Life(folder, seed, with_index=True).open() as program:
            program.create_workspace()
        os.sync()
        writer = subprocess.Popen(
            [sys.executable, "-m", "tests.simulation.power", "--write", folder, "--seed", str(seed),
             *(["--careless"] if is_careless else [])],
            cwd=ROOT, stdout=subprocess.PIPE,
        )  # fmt: skip
        ledger = Ledger()
        for number in range(cuts):
            _hear_for(chance.uniform(0.05, 0.5), writer, ledger)
            writer.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
            _hear_for(0, writer, ledger)
            _copy_at_one_moment(image, copy)
            writer.send_signal(signal.SIGCONT)
            faults += [
                f"{kind}, seed {seed}, cut {number}: {fault}"
                for fault in _look(_mount(kind, copy, folder), folder, ledger)
            ]
    finally:
        if writer is not None:
            writer.kill()
            writer.communicate()
        subprocess.run(["umount", folder], check=False)
        shutil.rmtree(base)
    return faults


def _copy_at_one_moment(image: str, copy: str) -> None:
    """Copy until nothing changes meanwhile: a file system goes on writing by itself when its users stand still."""
    shutil.copyfile(image, copy)
    while not filecmp.cmp(image, copy, shallow=False):
        shutil.copyfile(image, copy)


def _hear_for(seconds: float, writer: subprocess.Popen[bytes], ledger: Ledger) -> None:
    """Take in what the writer says, for so long; with 0 all that it has said."""
    assert writer.stdout is not None
    fd = writer.stdout.fileno()
    os.set_blocking(fd, False)
    end = time.monotonic() + seconds
    rest = b""
    while True:
        try:
            part = os.read(fd, 1 << 16)
        except BlockingIOError:
            part = b""
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            ledger.hear(line.decode())
        if not part and not rest:
            if time.monotonic() >= end:
                return
            time.sleep(0.005)
            if writer.poll() is not None:
                raise RuntimeError("the writer has died")


def _look(mount: list[str], folder: str, ledger: Ledger) -> list[str]:
    """Mount the copy at the very place of the first, where only one process sees it, and let that one look."""
    line = f"{' '.join(mount)} && exec {sys.executable} -m tests.simulation.power --check {folder}"
    looked = subprocess.run(
        ["unshare", "--mount", "sh", "-c", line],
        cwd=ROOT, input=json.dumps(ledger.due()), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if looked.returncode:
        return [f"it could not be looked at: {looked.stderr[-1500:]}"]
    faults: list[str] = json.loads(looked.stdout.splitlines()[-1])
    return faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Cut the power on every file system that this machine can make."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--only", choices=tuple(FORMATS), help="only this file system")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--careless", action="store_true", help="let the writer sync nothing: faults must be found"
    )
    parser.add_argument("--record", action="store_true", help="write the figures down for docs/proof.md")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--check", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.write:
        write_for_ever(given.write, given.seed, is_careless=given.careless)
    if given.check:
        print(json.dumps(list(check(given.check, json.load(sys.stdin)))))
        return 0
    faults: list[str] = []
    for kind in FORMATS:
        reason = reason_to_leave_out(kind) if given.only in {None, kind} else f"only {given.only} is wanted"
        if reason is not None:
            print(f"{kind}: left out, {reason}")
            continue
        found = []
        for begun in range(0, given.cuts, _CUTS_OF_A_LIFE):
            cuts = min(_CUTS_OF_A_LIFE, given.cuts - begun)
            found += cut_again_and_again(kind, cuts, given.seed + begun, is_careless=given.careless)
        print(f"{kind}: {given.cuts} cuts, {len(found)} faults", *found, sep="\n  ")
        faults += found
        if given.record and not given.careless:
            write_down("power", {kind: {"cuts": given.cuts, "faults": len(found)}})
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
