"""Eight real processes write daily notes, people save the same files, and `kill -9` strikes at random."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.faults.note_writer import jsonl_note, markdown_note
from tests.support.mortal_process import Mortal, Storm

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
WRITERS = 8
KILLS_A_DAY = 25  # then a new file begins, as at midnight
PROGRAM = Path(__file__).with_name("note_writer.py")


@dataclass
class Note:
    """What one process said about one note."""

    name: str
    file: str
    size: int
    tries: int = 0
    acknowledged: int = 0


@dataclass
class Ledger:
    """Every note that was tried, and which of them were acknowledged."""

    notes: dict[str, Note] = field(default_factory=dict)

    def hear(self, line: str) -> Note | None:
        """Take down one message; the note that its sender is busy with now."""
        verb, name, *rest = line.split()
        if verb == "ack":
            self.notes[name].acknowledged += 1
            return None
        note = self.notes.setdefault(name, Note(name, rest[0], int(rest[1])))
        note.tries += 1
        return note

    @property
    def acknowledged(self) -> list[Note]:
        return [note for note in self.notes.values() if note.acknowledged]


class Writer(Mortal):
    """One process, and what it was about to write when it died."""

    def __init__(self, storm: NoteStorm) -> None:
        super().__init__(PROGRAM)
        self._storm = storm
        self._busy_with: Note | None = None

    def begin(self, seed: int) -> None:
        storm, unfinished = self._storm, self._busy_with
        retry = (unfinished.name, unfinished.file, unfinished.size) if unfinished else ("", "", 0)
        self.start(storm.tail, storm.folder, f"day-{storm.kills // KILLS_A_DAY:03}", seed, *retry)

    def hear(self, line: str) -> None:
        self._busy_with = self._storm.ledger.hear(line)


class Person:
    """Saves a file as editors do, without our lock.

    Every writer stands still, wherever it is in its append, from the moment the person's editor has loaded
    the newest text until it has saved it. Saving an older text over a newer one would be the person's own
    decision.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.lines: list[tuple[Path, bytes]] = []

    def save(self, file: Path) -> None:
        line = f"a person's line {len(self.lines)}.".encode()
        text = file.read_bytes()
        how = self._chance.choice(["rename", "in place", "at the end"])
        if how == "rename":
            beside = file.with_name(f"{file.name}~")
            beside.write_bytes(line + b"\n" + text)
            os.replace(beside, file)
        elif how == "in place":
            file.write_bytes(line + b"\n" + text)
        elif text.endswith(b"\n"):
            file.write_bytes(text + line)  # and no newline, as people leave it
        else:
            return
        self.lines.append((file, line))


class NoteStorm(Storm):
    """Writers, people and kills."""

    def __init__(self, tail: str, folder: Path, seed: int) -> None:
        self._writers = [Writer(self) for _ in range(WRITERS)]
        super().__init__(self._writers, seed)
        self.tail, self.folder = tail, folder
        self.ledger = Ledger()
        self.person = Person(self.chance)
        self._next_save = time.monotonic() + 0.1

    def let_a_person_save(self) -> None:
        """From time to time."""
        files = sorted((self.folder / "memory").glob("day-???"))[-2:]
        if not files or time.monotonic() < self._next_save:
            return
        for writer in self._writers:
            writer.freeze()
        self.person.save(self.chance.choice(files))
        for writer in self._writers:
            writer.thaw()
        self._next_save = time.monotonic() + self.chance.uniform(0.005, 0.08)


@pytest.mark.slow
@pytest.mark.timeout(1800 if FULL else 60)
def test_no_acknowledged_note_is_missing_doubled_or_torn(tmp_path: Path, seed: int) -> None:
    storm = NoteStorm("markdown", tmp_path, seed)
    storm.rage(2_000 if FULL else 50, meanwhile=storm.let_a_person_save)

    texts = defaultdict(bytes) | {path.name: path.read_bytes() for path in (tmp_path / "memory").iterdir()}
    notes = storm.ledger.notes.values()
    copies = {note.name: texts[note.file].count(markdown_note(note.name, note.size)[:-1]) for note in notes}
    marks = Counter((file, mark) for file, text in texts.items() for mark in re.findall(rb"m:(\w{16})", text))
    astray = [(file, mark) for file, mark in marks if storm.ledger.notes[mark.decode()].file != file]
    fragments = marks.total() - sum(copies.values())
    acknowledged = storm.ledger.acknowledged
    print(
        f"{storm.kills} kills, {len(acknowledged)} notes acknowledged, {fragments} fragments with an id, "
        f"{len(storm.person.lines)} saves by a person, seed {seed}"
    )
    assert len(acknowledged) > storm.kills / 5
    assert [note for note in acknowledged if copies[note.name] != 1] == []
    assert [name for name, count in copies.items() if count > 1] == []
    assert astray == []
    assert [line for file, line in storm.person.lines if texts[file.name].count(line) != 1] == []


@pytest.mark.slow
@pytest.mark.timeout(1800 if FULL else 60)
def test_every_line_of_a_jsonl_file_parses_and_every_acknowledged_one_is_there_once(
    tmp_path: Path, seed: int
) -> None:
    storm = NoteStorm("jsonl", tmp_path, seed)
    storm.rage(1_000 if FULL else 20)

    seen: dict[str, int] = {}
    for path in (tmp_path / "memory").glob("day-???"):
        *lines, unfinished = path.read_bytes().split(b"\n")
        for line in lines:
            name = json.loads(line)["id"]
            seen[name] = seen.get(name, 0) + 1
            assert line + b"\n" == jsonl_note(name, storm.ledger.notes[name].size)
        assert (
            unfinished == b""
            or not storm.ledger.notes[unfinished[8:24].decode(errors="replace")].acknowledged
        )
    torn = len(list((tmp_path / "memory").glob("*.torn-*")))
    acknowledged = storm.ledger.acknowledged
    print(f"{storm.kills} kills, {len(acknowledged)} acknowledged, {torn} put aside, seed {seed}")
    assert len(acknowledged) > storm.kills / 5
    assert [note for note in acknowledged if seen.get(note.name) != 1] == []
    assert [name for name, count in seen.items() if count != 1] == []
