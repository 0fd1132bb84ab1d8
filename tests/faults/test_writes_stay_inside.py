"""A racer that swaps folders and files for links gets no byte of a write, whatever door it goes through."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.base.errors import PlainmindError
from plainmind.base.model import PRIVATE
from plainmind.embed.protocol import NoEmbedder
from plainmind.files.replace import keep_conflict_copy
from plainmind.guests.entries.memory import open_entries
from plainmind.guests.integrations.memory_tool import MemoryTool
from plainmind.memory.workspace_setup import create_workspace, tell_agents
from plainmind.notes.memory_files import MemoryFiles

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SWAPS = 100_000 if FULL else 1_500
SWAPPER = Path(__file__).with_name("folder_swapper.py")

# Folders of the workspace and of the home, and above both: each is swapped for a link to a copy of it outside.
WITHIN = (
    "ws/memory",
    "ws/memory/sub",
    "ws/memory/groups",
    "home/state",
    "home/state/*",
    "home/state/*/history",
    "home/state/*/history/blobs",
    "home/state/*/locks",
    "home/state/*/history/locks",
    "home/index",
    "home/index/main/*",
    "home/agents",
    "home/agents/main/sessions",
    "home/agents/main/sessions/.plainmind",
    "home/agents/main/sessions/.plainmind/locks",
    "home/agents/main/entries",
)
ABOVE = ("ws", "home", ".")
FILES = (
    "ws/MEMORY.md",
    "ws/memory/20*.md",
    "ws/memory/sub/kept.md",
    "home/state/*/history/journal.jsonl",
    "home/state/*/history/history.lock",
    "home/state/*/erasing.lock",
    "home/state/*/locks/*.lock",
    "home/agents/main/sessions/sessions.json",
    "home/agents/main/sessions/.plainmind/locks/*.lock",
    "home/agents/main/entries/entries.jsonl",
    "home/agents/main/entries/entries.lock",
)


class Doors:
    """Everything that writes, to be tried again and again."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.count = 0
        self.kept: dict[str, str] = {}  # the notes that were acknowledged, by id
        self.open()

    def open(self) -> None:
        self.memory = Memory(str(self.top / "ws"), home=str(self.top / "home"))
        notes = self.memory.notes
        files = MemoryFiles(
            notes.workspace, notes.history, erasures=notes.erasures, state_dir=notes.values.state
        )
        self.tool = MemoryTool(files, changed=lambda _: None)
        folder = os.path.join(self.memory.home, "agents", "main", "entries")
        self.entries = open_entries(folder, NoEmbedder(), driver="memory")

    def close(self) -> None:
        self.entries.close()
        self.memory.close()

    def all(self) -> dict[str, Callable[[], object]]:
        tool = self.call_tool
        return {
            "remember": lambda: self.remember(durable=False),
            "remember durably": lambda: self.remember(durable=True),
            "remember for a group": lambda: self.memory.notes.notebook.remember_for("group:g1", self.text()),
            "edit": lambda: self.memory.edit("memory/sub/kept.md", "stays", "stays"),
            "restore": self.restore,
            "keep": lambda: self.memory.keep_version("memory/sub/kept.md", reason="edit"),
            "conflict copy": lambda: keep_conflict_copy(
                self.memory.notes.values.state, "x.md", self.text().encode()
            ),
            "create": lambda: tool("create", path="/memories/sub/made.md", file_text=self.text()),
            "create deep": lambda: tool(
                "create", path=f"/memories/sub/d{self.count % 7}/made.md", file_text=self.text()
            ),
            "str_replace": lambda: tool(
                "str_replace", path="/memories/sub/kept.md", old_str="kept", new_str="kept"
            ),
            "insert": lambda: tool(
                "insert", path="/memories/sub/made.md", insert_line=0, insert_text=self.text()
            ),
            "rename": lambda: tool(
                "rename", old_path="/memories/sub/made.md", new_path=f"/memories/sub/n{self.count % 5}.md"
            ),
            "delete": lambda: tool("delete", path=f"/memories/sub/n{self.count % 5}.md"),
            "delete a folder": lambda: tool("delete", path=f"/memories/sub/d{self.count % 7}"),
            "entry": lambda: self.entries.store(self.text(), scope=PRIVATE, anyway=True),
            "entry forgotten": self.forget_entry,
            "session": self.say,
            "session forked": lambda: self.memory.sessions.fork("main", f"fork-{self.count}"),
            "session archived": lambda: self.memory.sessions.archive(self.any_session()),
            "session deleted": lambda: self.memory.sessions.delete(self.any_session()),
            "session converted": lambda: self.memory.sessions.convert(
                ("json5", "jsonl")[self.count % 2], self.any_session()
            ),
            "tombstone": lambda: self.memory.notes.tombstones.bury([f"{self.count:064x}"]),
            "init": lambda: create_workspace(self.memory.notes),
            "tell agents": lambda: tell_agents(self.memory.notes),
            "history erased": lambda: self.memory.notes.history.erase(lambda data: data[:-1] or None),
            "history pruned": self.memory.notes.history.prune,
            "forget": self.forget,
            "sync": self.memory.sync,
        }

    def text(self) -> str:
        self.count += 1
        return f"note {self.count} of the one who must stay inside"

    def remember(self, *, durable: bool) -> None:
        text = self.text()
        self.kept[self.memory.remember(text, durable=durable).id] = text

    def call_tool(self, command: str, **arguments: object) -> None:
        answer = self.tool.call({"command": command, **arguments})
        if answer.is_error:
            raise PlainmindError(answer.text)

    def restore(self) -> None:
        found = [version for version in self.memory.history("memory/sub/kept.md") if version.available]
        if found:
            self.memory.restore(found[-1].id)

    def say(self) -> None:
        self.memory.sessions.open_or_create(f"k{self.count % 4}").append(
            {"type": "message", "message": {"role": "user", "content": self.text()}}
        )

    def any_session(self) -> str:
        names = [row.key for row in self.memory.sessions.list() if row.key != "main"]
        return names[self.count % len(names)] if names else "none"

    def forget_entry(self) -> None:
        found = self.entries.list(scopes=frozenset({PRIVATE}))
        if found:
            self.entries.forget([found[0].id], scopes=frozenset({PRIVATE}))

    def forget(self) -> None:
        if self.kept:
            note = next(iter(self.kept))
            del self.kept[note]  # whatever comes of it: it may be gone
            self.memory.forget(note)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "above" / "top"
    (top / "ws" / "memory" / "sub").mkdir(parents=True)
    (top / "ws" / "memory" / "sub" / "kept.md").write_text("# kept\n\nwhat stays here\n")
    (top / "ws" / "MEMORY.md").write_text("# Memory\n\n")
    (top / "home").mkdir()
    doors = Doors(top)
    doors.memory.sessions.create("main")
    for door in doors.all().values():  # everything that is swapped must be there
        try:
            door()
        except PlainmindError:
            continue
    doors.close()
    return top


def traps_of(top: Path, places: tuple[str, ...], kind: str) -> list[str]:
    """Lay a link beside each place, to a copy of it outside; the places and their traps in turn."""
    outside = top.parent.parent / "outside"
    outside.mkdir(exist_ok=True)
    found: list[str] = []
    chosen = [place for pattern in places for place in sorted(top.parent.glob(f"top/{pattern}"))]
    for place in dict.fromkeys(chosen):
        copy = outside / f"{len(found)}" / place.name
        copy.parent.mkdir()
        if place.is_dir():
            shutil.copytree(place, copy, symlinks=True)
        else:
            shutil.copy2(place, copy)
        trap = place.with_name(f".trap-{len(found)}")
        if kind == "hard link":
            os.link(copy, trap)
        elif kind == "pipe":
            os.mkfifo(trap)
        else:
            trap.symlink_to(copy)
        found += [str(place), str(trap)]
    return found


def look_at(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What lies in a folder, as it looks from outside."""
    seen = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(parent, name)
            status = os.lstat(path)
            is_file = not os.path.isdir(path)
            seen[path] = (
                status.st_mode,
                status.st_size if is_file else 0,
                status.st_mtime_ns if is_file else 0,
            )
    return seen


@contextmanager
def swapping(pairs: list[str], seed: int, told: list[int]) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, str(SWAPPER), str(seed), "2000", *pairs],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        out, _ = process.communicate("\n", timeout=60)
        told.append(int(out or 0))


def attack(top: Path, places: tuple[str, ...], kind: str, seed: int, swaps: int) -> tuple[Counter[str], int]:
    """Use every door while its places are swapped; how often each was tried, kept, refused and left the folder."""
    doors = Doors(top)
    pairs = traps_of(top, places, kind)
    outside = top.parent.parent / "outside"
    before = look_at(outside)
    chance = random.Random(seed)
    told: list[int] = []
    counts: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    while sum(told) < swaps:
        with swapping(pairs, seed + len(told), told):
            names = list(doors.all())
            for _ in range(20):
                name = chance.choice(names)
                counts["tried"] += 1
                try:
                    doors.all()[name]()
                    counts["kept"] += 1
                except PlainmindError as error:
                    counts["refused"] += 1
                    errors[f"{type(error).__name__}: {name}"] += 1
                except OSError as error:
                    frames = [
                        frame
                        for frame in traceback.extract_tb(error.__traceback__)
                        if "src" in frame.filename
                    ]
                    where = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
                    counts[f"in no words: {name}: {error!r}: {where}"] += 1
                after = look_at(outside)
                if after != before:
                    counts["outside"] += 1
                    others = sorted(path for path, _ in before.items() ^ after.items())
                    counts[f"outside: {name}: {os.path.relpath(others[0], outside)}"] += 1
                    before = after
    doors.close()
    if FULL:
        print(errors.most_common(12))
    # All is in its place again: what was acknowledged is there, and once.
    text = b"".join(
        path.read_bytes() for path in (top / "ws").rglob("*.md") if path.is_file() and not path.is_symlink()
    )
    for note in doors.kept:
        found = text.count(f"m:{note} ".encode())
        counts["lost"] += not found
        counts["doubled"] += found > 1
    return counts, sum(told)


@pytest.mark.parametrize(
    ("places", "kind"),
    [(WITHIN, "link"), (ABOVE, "link"), (FILES, "link"), (FILES, "hard link"), (FILES, "pipe")],
    ids=["folders", "roots", "files for links", "files for hard links", "files for pipes"],
)
def test_no_write_follows_what_is_swapped(top, places, kind, seed, capsys):
    counts, swaps = attack(top, places, kind, seed, SWAPS)
    with capsys.disabled():
        if FULL:
            print(f"\n{kind} {places[0]}: {swaps} swaps, {json.dumps(counts, sort_keys=True)}")
    assert not [name for name in counts if name.startswith(("outside", "in no words"))]
    assert (counts["lost"], counts["doubled"]) == (0, 0)
    assert counts["kept"]
