"""A seeded life of a memory: several programs and a person write, and every promise is written down with its time."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

from tests.simulation.disk import Disk

from plainmind import Memory
from plainmind.base.errors import ConflictError, NotFound
from plainmind.files.system import SYSTEM, make_folders
from plainmind.guests.entries.access import entry_memory_of
from plainmind.guests.upkeep.desk import Desk
from plainmind.guests.upkeep.model import Cite, Edit
from plainmind.sessions.store import Session

WORDS = [
    "harbour",
    "lantern",
    "walnut",
    "copper",
    "meadow",
    "ribbon",
    "cedar",
    "violin",
    "granite",
    "saffron",
    "orchard",
    "pebble",
]


ENTRIES = "entries"
_SCOPES = frozenset({"private"})
_TOPICS = "memory/topics.md"


class Promise:
    """What a word should be: how many times it stands somewhere, after each acknowledged operation."""

    def __init__(self, place: str) -> None:
        self.place = place  # "notes", "entries", or the key of a session
        self.counts: list[tuple[int, int, int]] = []  # (begun at, acknowledged at, how often from then on)

    def allowed(self, at: int) -> set[int]:
        """How often it may be found after so many effects."""
        count = 0
        for begun, done, then in self.counts:
            if done <= at:
                count = then
            elif begun <= at:
                return {count, then}
        return {count}

    def is_gone_for_good(self, at: int) -> bool:
        """Whether it was forgotten, and that was acknowledged."""
        return bool(self.counts) and self.counts[-1][1] <= at and self.counts[-1][2] == -1


def holds(place: str, path: str) -> bool:
    """Whether a file is of a place where something was promised."""
    if place == "notes":
        return path.startswith("ws/") and path.endswith(".md")
    if place == ENTRIES:
        return path.startswith("home/entries/") and path.endswith("entries.jsonl")
    return "/sessions/" in path and path.endswith(".jsonl")


class Kept:
    """A word that an edit took out: the history has it, until something on its page is forgotten."""

    def __init__(self, word: str, path: str, since: int) -> None:
        self.word, self.path, self.since = word, path, since
        self.until: int | None = None

    def is_due(self, at: int) -> bool:
        """Whether the history must have it after so many effects."""
        return self.since <= at and (self.until is None or at < self.until)


class Together:
    """Words of several files that upkeep changes as one: all of them new, or none."""

    def __init__(self, old: str, new: tuple[str, str], begun: int, done: int) -> None:
        self.old, self.new, self.begun, self.done = old, new, begun, done


class Clock:
    """A clock that somebody sets."""

    def __init__(self, now: datetime) -> None:
        self.now = now


class Program(Memory):
    """A memory whose clock is not the machine's."""

    clock: Clock

    def now(self) -> datetime:
        """The time that the simulation says it is."""
        return self.clock.now


class Life:
    """Operations of several programs on one folder, one after another, as a seed says."""

    def __init__(self, root: str, seed: int, *, with_index: bool, with_entries: bool = False) -> None:
        self.chance = random.Random(seed)
        self.root = root
        self.clock = Clock(datetime(2026, 3, 1, 9, tzinfo=UTC) + timedelta(days=seed % 400))
        self.with_index = with_index
        self.with_entries = with_entries
        self.together: list[Together] = []
        self.promises: dict[str, Promise] = {}
        self.told: list[str] = []  # what was done, for the message of a failure
        self.versions: list[Kept] = []
        self._count = 0
        self._tag = f"{seed:x}".translate(str.maketrans("0123456789abcdef", "ghijklmnopqrstuv"))
        self._standing: list[tuple[str, str]] = []  # (word, file) of lines that may be edited
        self._undoable: list[Callable[[int], None]] = []
        self._entries: list[tuple[str, str]] = []  # (word, id) of entries that stand

    def open(self) -> Program:
        """Start a program."""
        program = Program(os.path.join(self.root, "ws"), home=os.path.join(self.root, "home"))
        program.clock = self.clock
        return program

    def word(self) -> str:
        """A word that stands nowhere else."""
        self._count += 1
        return f"zq{self._tag}x{self._count:03d}w"

    def live(self, disk: Disk, operations: int) -> None:
        """Let so many operations happen."""
        self.disk = disk
        with disk.watch():
            programs = [self.open() for _ in range(self.chance.randint(1, 3))]
            try:
                for _ in range(operations):
                    self._step(self.chance.choice(programs))
            finally:
                for program in programs:
                    program.close()

    def _step(self, program: Program) -> None:
        weighed: list[tuple[int, Callable[[Program], None]]] = [
            (6, self._remember),
            (3, self._remember_for_good),
            (6, self._say),
            (4, self._edit),
            (2, self._undo),
            (2, self._forget),
            (2, self._save_in_editor),
            (3, self._tidy),
            (1, self._jump),
        ]
        if self.with_entries:
            weighed += [(4, self._store_entry), (2, self._change_entry), (2, self._forget_entry)]
        if self.with_index:
            weighed += [(3, self._search)]
        kinds = [kind for weight, kind in weighed for _ in range(weight)]
        self.chance.choice(kinds)(program)

    def go_on_after(self, at: int) -> None:
        """Begin anew with what a cut left: what was under way then has happened or has not."""
        with self.open() as program:
            program.notes.notebook.recover()
            if self.with_entries:
                with closing(entry_memory_of(program)) as entries:
                    self._entries = [
                        (entry.text.rpartition(" ")[2], entry.id) for entry in entries.list(scopes=_SCOPES)
                    ]
        files = self._files()
        for word, promise in self.promises.items():
            is_gone = promise.is_gone_for_good(at)
            found = sum(
                data.count(word.encode()) for path, data in files.items() if holds(promise.place, path)
            )
            promise.counts = [(-1, 0, -1 if is_gone else found)]
        self._standing = [
            (word, path.removeprefix("ws/"))
            for word, promise in self.promises.items()
            for path, data in files.items()
            if promise.place == "notes" and holds("notes", path) and data.count(word.encode()) == 1
        ]
        self.versions = [kept for kept in self.versions if kept.is_due(at)]
        for kept in self.versions:
            kept.since, kept.until = 0, None
        self._undoable.clear()
        self.together.clear()
        self.told.append(f"power is cut after {at} effects")

    def _files(self) -> dict[str, bytes]:
        files = {}
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, self.root)] = file.read()
        return files

    # --- operations ---

    def _promise(self, word: str, place: str, begun: int, count: int) -> None:
        self.promises.setdefault(word, Promise(place)).counts.append((begun, len(self.disk.log), count))

    def _text(self, word: str) -> str:
        filler = " ".join(self.chance.choice(WORDS) for _ in range(self.chance.choice((3, 8, 200))))
        return f"{filler} {word}"

    def _remember(self, program: Program, *, durable: bool = False) -> None:
        word = self.word()
        begun = self.disk.mark("begin", word)
        remembered = program.remember(self._text(word), durable=durable)
        self.disk.mark("done")
        self._promise(word, "notes", begun, 1)
        self._standing.append((word, remembered.path))
        self._undoable.append(lambda begun: self._withdraw(word, begun))
        self.told.append(f"remember {word} in {remembered.path}")

    def _withdraw(self, word: str, begun: int) -> None:
        self._promise(word, "notes", begun, 0)
        self._standing = [one for one in self._standing if one[0] != word]

    def _remember_for_good(self, program: Program) -> None:
        self._remember(program, durable=True)

    def _say(self, program: Program) -> None:
        key = f"agent:main:talk{self.chance.randint(1, 2)}"
        word = self.word()
        begun = self.disk.mark("begin", word)
        session: Session = program.sessions.open_or_create(key)
        session.append({"type": "message", "message": {"role": "user", "content": self._text(word)}})
        self.disk.mark("done")
        self._promise(word, key, begun, 1)
        session.close()
        self.told.append(f"say {word} in {key}")

    def _edit(self, program: Program) -> None:
        if not self._standing:
            return
        old, path = self.chance.choice(self._standing)
        new = self.word()
        begun = self.disk.mark("begin", old, new)
        program.edit(path, old, new)
        self.disk.mark("done")
        self._swap(old, new, path, begun)
        self.versions.append(Kept(old, path, len(self.disk.log)))
        self._undoable.append(lambda begun: self._swap(new, old, path, begun))
        self.told.append(f"edit {old} to {new} in {path}")

    def _swap(self, old: str, new: str, path: str, begun: int) -> None:
        self._promise(old, "notes", begun, 0)
        self._promise(new, "notes", begun, 1)
        self._standing = [one for one in self._standing if one[0] != old] + [(new, path)]

    def _undo(self, program: Program) -> None:
        if not self._undoable:
            return
        begun = self.disk.mark("begin")
        try:
            undone = program.undo()
        except (ConflictError, NotFound) as error:
            self.told.append(f"undo refused: {error}")
            self._undoable.clear()
            return
        self.disk.mark("done")
        self._undoable.pop()(begun)
        self.told.append(f"undo {undone}")

    def _forget(self, program: Program) -> None:
        if not self._standing:
            return
        word, path = self.chance.choice(self._standing)
        begun = self.disk.mark("begin", word)
        program.forget(word)
        self.disk.mark("done")
        self._promise(word, "notes", begun, -1)
        self._standing = [one for one in self._standing if one[0] != word]
        self._undoable.clear()  # a history that had to forget is shorter: what is left of it, other tests say
        for kept in self.versions:
            if kept.path == path and kept.until is None:
                kept.until = begun  # what the line was before goes with it
        self.told.append(f"forget {word} in {path}")

    def _tidy(self, program: Program) -> None:
        """Somebody accepts a proposal about two files, and one of them may be new."""
        lasting = [word for word, path in self._standing if path == "MEMORY.md"]
        if not lasting:
            return
        old, new, more = self.chance.choice(lasting), self.word(), self.word()
        lines = program.get("MEMORY.md").text.split("\n")
        number, line = next((at, line) for at, line in enumerate(lines, 1) if old in line)
        desk = Desk(program)
        edits = [
            Edit("MEMORY.md", number, (line,), (line.replace(old, new),)),
            Edit(_TOPICS, 1, (), (f"- {self._text(more)}",), section="Kept"),
        ]
        begun = self.disk.mark("begin", old, new, more)
        found = desk.propose("stale", [Cite("MEMORY.md", number, line)], edits, "it is over", agent="codex")
        outcome = desk.accept([found.id])
        self.disk.mark("done")
        if not outcome.done:
            raise AssertionError(outcome.void)
        self._swap_together(old, new, more, begun)
        self.together.append(Together(old, (new, more), begun, len(self.disk.log)))
        self.versions.append(Kept(old, "MEMORY.md", len(self.disk.log)))
        self._undoable.append(lambda begun: self._take_apart(old, new, more, begun))
        self.told.append(f"tidy {old} to {new}, and {more} in {_TOPICS}")

    def _swap_together(self, old: str, new: str, more: str, begun: int) -> None:
        self._swap(old, new, "MEMORY.md", begun)
        self._promise(more, "notes", begun, 1)
        self._standing.append((more, _TOPICS))

    def _take_apart(self, old: str, new: str, more: str, begun: int) -> None:
        self._swap(new, old, "MEMORY.md", begun)
        self._withdraw(more, begun)

    def _store_entry(self, program: Program) -> None:
        word = self.word()
        with closing(entry_memory_of(program)) as entries:
            begun = self.disk.mark("begin", word)
            stored = entries.store(f"{self.chance.choice(WORDS)} {word}", scope="private", anyway=True)
            self.disk.mark("done")
        self._promise(word, ENTRIES, begun, 1)
        assert stored.entry is not None
        self._entries.append((word, stored.entry.id))
        self.told.append(f"store entry {word}")

    def _change_entry(self, program: Program) -> None:
        if not self._entries:
            return
        at, new = self.chance.randrange(len(self._entries)), self.word()
        old, name = self._entries[at]
        with closing(entry_memory_of(program)) as entries:
            begun = self.disk.mark("begin", old, new)
            entries.change(name, scopes=_SCOPES, text=f"{self.chance.choice(WORDS)} {new}")
            self.disk.mark("done")
        self._promise(old, ENTRIES, begun, 0)
        self._promise(new, ENTRIES, begun, 1)
        self._entries[at] = new, name
        self.told.append(f"change entry {old} to {new}")

    def _forget_entry(self, program: Program) -> None:
        if not self._entries:
            return
        word, name = self._entries.pop(self.chance.randrange(len(self._entries)))
        with closing(entry_memory_of(program)) as entries:
            begun = self.disk.mark("begin", word)
            entries.forget([name], scopes=_SCOPES)
            self.disk.mark("done")
        self._promise(word, ENTRIES, begun, -1)
        self.told.append(f"forget entry {word}")

    def _save_in_editor(self, program: Program) -> None:
        """A person saves a note of their own by renaming, and does not sync it."""
        word = self.word()
        self.disk.mark("begin", word)
        path = os.path.join(self.root, "ws", "memory", f"page{self.chance.randint(1, 3)}.md")
        make_folders(SYSTEM, os.path.dirname(path))
        fd = SYSTEM.open(path + "~", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        SYSTEM.write(fd, f"# Page\n\n- {self._text(word)}\n".encode())
        SYSTEM.close(fd)
        SYSTEM.replace(path + "~", path)
        self.disk.mark("saved")  # nobody promised anything: an editor need not sync
        self.told.append(f"a person saves {word} in {path}")
        program.list()

    def _jump(self, program: Program) -> None:
        self.clock.now += timedelta(
            seconds=self.chance.choice((-86_400 * 40, -3_600, -1, 1, 60, 86_400, 86_400 * 90))
        )
        self.told.append(f"the clock says {self.clock.now}")

    def _search(self, program: Program) -> None:
        word = self.chance.choice(self._standing)[0] if self._standing else "walnut"
        program.search(word)
        self.told.append(f"search {word}")
