"""Propose, accept, reject, edit by hand, undo and kill -9 in any order: no line is lost, none doubled, undo is exact.

PLAINMIND_FAULTS=full plays 10,000 sequences and says how far it is (RECORD=1 writes it down for docs/proof.md); without
it a few of them run.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.results import write_down

from plainmind import Memory
from plainmind.base.errors import ConflictError, NotFound, PlainmindError
from plainmind.files.system import System
from plainmind.guests.upkeep.changes import Plan
from plainmind.guests.upkeep.desk import Desk, Files
from plainmind.guests.upkeep.model import Cite, Edit, Outcome, Proposal

SEQUENCES = 10_000 if os.environ.get("PLAINMIND_FAULTS") == "full" else 8
STEPS = 9
EFFECTS = ("write", "replace", "unlink", "ftruncate", "link", "fsync", "fdatasync", "fsync_folder", "mkdir")
MADE_BY_SECTIONS = {"", "# Memory", "## Remembered"}
LINES = [
    "- The guest room key hangs behind the cellar door",
    "- Behind the cellar door hangs the guest room key",
    "- Backups run at 02:15 every night to the NAS",
    "- Every night at 02:15 the backups run to the NAS",
    "- The office network: Lindenblatt (2024-01-02)",
    "- The office network: Rosenduft (2026-05-02)",
    "- The parking permit is valid until 1 December 2030",
    "- The fair in hall 4 is closed until 2025-03-01",
    "- Ben does not eat olives with his bread",
    "- 备用钥匙在二楼的王阿姨那里",
    "- 每月三号转账房租 #Haus",
    "- Der Apfelbaum wird im Februar geschnitten #haus",
    "- notes about the boat #haus",
    "- see [[hous]] about the cellar",
    "- lunch with Frida Lindqvist about the boat",
]
CELLAR = [
    "",
    "## Cellar",
    "",
    *(f"- box {number} of the cellar holds old papers and maps" for number in range(12)),
]

Bytes = dict[str, bytes]


class World:
    """A workspace that everything happens to, and what it was before each change that was acknowledged."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder / "workspace"
        self.home = folder / "home"
        (self.folder / "memory").mkdir(parents=True)
        self.write(
            "MEMORY.md",
            [
                *("# Memory", "", "## Home", "", *self.some(6), "", "## Remembered", "", *self.some(5)),
                *(CELLAR if self.random.random() < 0.3 else ()),
            ],
        )
        self.write("memory/house.md", ["# House", "", *self.some(6)])
        self.write(
            "memory/2026-05-01.md",
            [
                "# 2026-05-01",
                "",
                "- 10:02 we decided to keep the boat in Bregenz",
                "- Frida Lindqvist said yes",
            ],
        )
        self.before: list[tuple[Bytes, Bytes]] = []  # what changed files were, and what they became
        self.open()

    def some(self, count: int) -> list[str]:
        return [self.random.choice(LINES) for _ in range(count)]

    def write(self, name: str, lines: list[str]) -> None:
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def open(self, **tidy: object) -> None:
        self.memory = Memory(self.folder, home=self.home, config={"tidy": {"largeChars": 1_000, **tidy}})
        self.desk = Desk(self.memory)

    def state(self) -> Bytes:
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*.md")
            if path.is_file()
        }

    # --- what may happen ---

    def propose(self) -> None:
        before = self.state()
        self.desk.run()
        assert self.state() == before

    def let_an_agent_propose(self) -> None:
        before = self.state()
        name = self.random.choice([name for name in before if "/2026-" not in name])
        lines = before[name].decode().split("\n")
        at = self.random.choice([at for at, line in enumerate(lines) if line.startswith("- ")] or [0])
        new = self.random.choice([(), (f"{lines[at]} (said {self.random.randrange(1000)})",)])
        cite, edit = Cite(name, at + 1, lines[at]), Edit(name, at + 1, (lines[at],), new)
        with suppress(PlainmindError):  # rejected before, or another one about this line waits
            self.desk.propose("stale", [cite], [edit], "an agent thinks so", agent="codex")
        assert self.state() == before

    def accept_by_rule(self) -> None:
        before = self.state()
        self.memory.close()
        self.open(accept=["repeated", "tags"])
        waiting = {one.id for one in self.desk.list().proposals}
        run = self.desk.run()
        after = self.state()
        self.check_logs(before, after)
        if not run.accepted:
            assert after == before
        assert waiting.isdisjoint(run.accepted)  # what a person was asked is not decided by a rule
        lost = plain(lines_of(before)) - plain(lines_of(after))
        assert {line.casefold() for line in lost} <= {line.casefold() for line in plain(lines_of(after))}
        if before != after:
            self.remember(before, after)
        self.memory.close()
        self.open()

    def chosen(self) -> list[Proposal]:
        waiting = self.desk.ledger.waiting()
        return self.random.sample(waiting, min(len(waiting), self.random.randint(1, 4)))

    def accept(self) -> None:
        chosen = self.chosen()
        if chosen:
            before = self.state()
            self.check_accepted(before, chosen, self.desk.accept([one.id for one in chosen]))

    def check_accepted(self, before: Bytes, chosen: list[Proposal], outcome: Outcome) -> None:
        after = self.state()
        done = {one.id: one for one in chosen if one.id in outcome.done}
        assert len(done) + len(outcome.void) == len(chosen)
        gone, come = Counter[str](), Counter[str]()
        for proposal in done.values():
            for edit in proposal.edits:
                gone.update(edit.old)
                come.update(edit.new)
        was, now, out, new = plain(lines_of(before)), plain(lines_of(after)), plain(gone), plain(come)
        assert was - now == out - new, (was - now, out - new)
        assert set((now - was) - (new - out)) <= MADE_BY_SECTIONS, now - was
        assert (new - out) - (now - was) == Counter()
        self.check_logs(before, after)
        if before != after:
            self.remember(before, after)

    def check_logs(self, before: Bytes, after: Bytes) -> None:
        assert {n: d for n, d in before.items() if "/2026-" in n} == {
            n: d for n, d in after.items() if "/2026-" in n
        }

    def remember(self, before: Bytes, after: Bytes) -> None:
        names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        self.before.append(
            ({n: before[n] for n in names if n in before}, {n: after[n] for n in names if n in after})
        )

    def reject(self) -> None:
        chosen = self.chosen()
        if chosen:
            before = self.state()
            self.desk.reject([one.id for one in chosen])
            assert self.state() == before
            self.desk.run()
            waiting = {one.fingerprint for one in self.desk.ledger.waiting()}
            assert waiting.isdisjoint(one.fingerprint for one in chosen)

    def edit_by_hand(self) -> None:
        name = self.random.choice([name for name in self.state() if "/2026-" not in name])
        file = self.folder / name
        lines = file.read_text().split("\n")
        at = self.random.randrange(len(lines))
        what = self.random.randrange(4)
        if what == 0:
            lines.insert(at, self.random.choice(LINES))
        elif what == 1 and lines[at].startswith("-"):
            del lines[at]
        elif what == 2 and lines[at].startswith("-"):
            lines[at] += f" ({self.random.randrange(1000)})"
        else:
            lines.insert(at, "")
        file.write_text("\n".join(lines))

    def undo(self) -> None:
        before = self.state()
        try:
            self.memory.undo()
        except NotFound:
            assert self.before == []
            return
        except ConflictError:
            was, became = self.before[-1]
            assert any(before.get(name) != became.get(name) for name in {*was, *became})
            assert self.state() == before
            return
        self.check_undone(before)

    def check_undone(self, before: Bytes) -> None:
        was, became = self.before.pop()
        after = self.state()
        for name in {*before, *after, *was, *became}:
            expected = was.get(name) if name in was or name in became else before.get(name)
            assert after.get(name) == expected, name

    def die_while_accepting(self) -> None:
        chosen = self.chosen()
        if not chosen:
            return
        before = self.state()
        plan = Plan(Files(self.memory), self.desk._paths_with_citations)
        for proposal in chosen:
            plan.add(proposal)
        wanted = before | {path: new for path, _, new in plan.changes()}
        ids = [one.id for one in chosen]
        self.kill(lambda: self.desk.accept(ids))
        self.open()
        self.memory.notes.notebook.recover()
        after = self.state()
        assert after in (before, wanted)
        if after != before:
            self.remember(before, after)
            # What was done does not wait any more: it cannot be done a second time.
            assert {one.id for one in self.desk.ledger.waiting()}.isdisjoint(ids)

    def die_while_undoing(self) -> None:
        if not self.before:
            return
        before = self.state()
        was, became = self.before[-1]
        if any(before.get(name) != became.get(name) for name in {*was, *became}):
            return
        operation = self.memory.notes.history.latest_changes()[0].operation
        self.kill(self.memory.undo)
        self.open()
        latest = self.memory.notes.history.latest_changes()
        if latest and latest[0].operation == operation:
            self.memory.undo()  # goes on where the other one was killed
        self.check_undone(before)

    def kill(self, act: Callable[[], object]) -> None:
        """Let a process of its own do something, and kill it at some effect."""
        left = self.random.randrange(70)
        child = os.fork()
        if not child:
            try:
                die_after(left)
                act()
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    def close(self) -> None:
        self.memory.close()


def die_after(left: int) -> None:
    """Let this process kill itself instead of its effect number `left`."""
    count = left

    def mortal(name: str) -> None:
        original = getattr(System, name)

        def act(self: System, *given: object, **named: object) -> object:
            nonlocal count
            count -= 1
            if count < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(self, *given, **named)

        setattr(System, name, act)

    for name in EFFECTS:
        mortal(name)


def lines_of(state: Bytes) -> Counter[str]:
    return Counter(line for data in state.values() for line in data.decode().split("\n"))


def plain(lines: Counter[str]) -> Counter[str]:
    """Without what names line numbers, which follow their lines, and without blank lines."""
    found: Counter[str] = Counter()
    for line, count in lines.items():
        if line.strip():
            found[line.partition(", now ")[0]] += count
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return Path("/dev/shm") / tmp_path.name if os.access("/dev/shm", os.W_OK) else tmp_path


def test_whatever_happens_no_line_is_lost_or_doubled_and_undo_is_exact(place: Path) -> None:
    steps = (
        ["propose"] * 3
        + ["accept"] * 3
        + [
            "reject",
            "let_an_agent_propose",
            "accept_by_rule",
            "edit_by_hand",
            "edit_by_hand",
            "undo",
            "undo",
            "die_while_accepting",
            "die_while_undoing",
        ]
    )
    for seed in range(SEQUENCES):
        folder = place / str(seed)
        world = World(folder, seed)
        done = []
        try:
            world.propose()
            for _ in range(STEPS):
                name = world.random.choice(steps)
                done.append(name)
                getattr(world, name)()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, after {done}: {error}") from error
        finally:
            world.close()
            shutil.rmtree(folder, ignore_errors=True)
        if (seed + 1) % 500 == 0:
            print(f"{seed + 1:,} sequences, no failure", file=sys.__stderr__, flush=True)
    if os.environ.get("RECORD") == "1":
        write_down("upkeep", {"sequences": SEQUENCES, "steps": STEPS + 1, "faults": 0})
