"""Damage done to the files of an index, one piece at a time, and what fifty exact questions get afterwards."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plainmind import Memory
from plainmind.base.model import SearchResult

BLOCK = 8_192
QUESTIONS = 50
_SCRAMBLED = 256  # bytes
KINDS = ("zeroed", "flipped", "scrambled", "cut", "cut inside")


@dataclass(frozen=True)
class Attack:
    """One kind of damage to one block of one file."""

    kind: str
    file: str
    block: int

    def strike(self, folder: Path, chance: random.Random) -> None:
        """Do it."""
        path = folder / self.file
        size, start = path.stat().st_size, self.block * BLOCK
        end = min(size, start + BLOCK)
        if self.kind == "cut":
            os.truncate(path, start)
        elif self.kind == "cut inside":
            os.truncate(path, (start + end) // 2)
        else:
            with path.open("r+b") as file:
                file.seek(start)
                content = bytearray(file.read(end - start))
                if self.kind == "zeroed":
                    content = bytearray(len(content))
                elif self.kind == "scrambled":
                    at = chance.randrange(max(1, len(content) - _SCRAMBLED))
                    content[at : at + _SCRAMBLED] = chance.randbytes(min(_SCRAMBLED, len(content) - at))
                else:
                    bit = chance.randrange(8 * len(content))
                    content[bit // 8] ^= 1 << bit % 8
                file.seek(start)
                file.write(content)


@dataclass
class Outcome:
    """What became of many attacks."""

    tries: Counter[str] = field(default_factory=Counter)
    failures: dict[Attack, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{sum(self.tries.values())} tries: {dict(self.tries)}, {len(self.failures)} failures"]
        return "\n".join([*lines, *(f"{attack}: {what}" for attack, what in self.failures.items())])


class Specimen:
    """A small memory with an index that has been changed since it was built, and what it answers while it is whole."""

    def __init__(
        self,
        place: Path,
        config: Mapping[str, Any],
        chance: random.Random,
        *,
        files: int,
        leaves_log: bool = False,
    ) -> None:
        self.workspace, self.home, self.config = place / "notes", place / "home", config
        self._whole = place / "whole"
        self._chance, self._files = chance, files
        self._words = ["".join(chance.choices("abcdefgilmnoprstu", k=7)) for _ in range(1_500)]
        (self.workspace / "memory").mkdir(parents=True)
        for number in range(files):
            self._write_note(number)
        with self.open() as memory:
            memory.sync()
            for number in range(0, files, 7):  # holes, and a second segment
                self._write_note(number)
                memory.sync()
            memory.wipe()  # now, and not by the sync that leaves a log
        if leaves_log:
            self._write_note(files)
            self._sync_and_die()
        # Half of them ask for a word that stands in one place, half for one that stands in many.
        self.questions = [f"landmark{number % files}x{number}" for number in range(0, QUESTIONS, 2)]
        self.questions += chance.sample(self._words, QUESTIONS - len(self.questions))
        shutil.copytree(self.home, self._whole)
        self.expected = self.ask_all()
        self.restore()  # whoever has asked has put the log away

    def open(self) -> Memory:
        """A memory that has read nothing yet."""
        return Memory(self.workspace, self.home, self.config)

    def _sync_and_die(self) -> None:
        """Sync in a process that leaves everything as it is, its log too."""
        program = (
            "import json, os, signal, sys; from plainmind import Memory;"
            " memory = Memory(*sys.argv[1:3], json.loads(sys.argv[3])); memory.sync();"
            " os.kill(os.getpid(), signal.SIGKILL)"
        )
        places = [str(self.workspace), str(self.home), json.dumps(dict(self.config))]
        done = subprocess.run([sys.executable, "-c", program, *places], check=False)
        assert done.returncode == -signal.SIGKILL

    def attacks(self, pattern: str, kinds: Iterable[str] = KINDS) -> Iterator[Attack]:
        """Every kind of damage to every block of the files of the index."""
        for path in sorted(self.index.rglob(pattern)):
            if path.is_file():
                for block in range(-(-path.stat().st_size // BLOCK)):
                    for kind in kinds:
                        yield Attack(kind, str(path.relative_to(self.index)), block)

    @property
    def index(self) -> Path:
        """The folder of the index."""
        (folder,) = (self.home / "index" / "main").iterdir()
        return folder

    def restore(self) -> None:
        """Make it what it was when its last writer died."""
        shutil.rmtree(self.home)
        shutil.copytree(self._whole, self.home)

    def ask_all(self) -> list[list[tuple[object, ...]]]:
        """What it answers."""
        with self.open() as memory:
            return [_answer(memory.search(question)) for question in self.questions]

    def ask_elsewhere(self, question: str, *, processes: int) -> list[list[str]]:
        """The paths that each of some processes, all at once, gets for a question."""
        program = (
            "import json, sys; from plainmind import Memory;"
            " memory = Memory(*sys.argv[1:3], json.loads(sys.argv[3]));"
            " print(json.dumps([hit.path for hit in memory.search(sys.argv[4]).hits]))"
        )
        places = [str(self.workspace), str(self.home), json.dumps(dict(self.config)), question]
        begun = [
            subprocess.Popen([sys.executable, "-c", program, *places], stdout=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        return [json.loads(each.communicate()[0]) for each in begun]

    def suffer(self, attacks: Iterable[Attack], *, spoil: Callable[[Attack], None] | None = None) -> Outcome:
        """Try attacks one by one: each answer must be right, and damage that was met must be told."""
        outcome = Outcome()
        for attack in attacks:
            self.restore()
            if spoil is None:
                attack.strike(self.index, self._chance)
            else:
                spoil(attack)
            outcome.tries[attack.kind] += 1
            failure = self._failure()
            if failure:
                outcome.failures[attack] = failure
        self.restore()
        return outcome

    def _failure(self) -> str:
        wrong = crashed = told = 0
        last = ""
        with self.open() as memory:
            for question, expected in zip(self.questions, self.expected, strict=True):
                try:
                    result = memory.search(question)
                except Exception as error:  # noqa: BLE001 (that is what is looked for)
                    crashed += 1
                    last = repr(error)[:200]
                    continue
                told += any("damaged" in each for each in result.degraded)
                wrong += _answer(result) != expected
            recoveries = _recoveries(memory)
        if wrong or crashed:
            return f"{wrong} wrong, {crashed} crashed ({last}), {told} told"
        return "" if told or not recoveries else "mended in silence"

    def _write_note(self, number: int) -> None:
        pick = self._chance.choices
        lines = [f"# Note {number}", ""]
        for landmark in range(number, QUESTIONS, self._files):
            lines += [f"The landmark{number}x{landmark} is {' '.join(pick(self._words, k=9))}.", ""]
        for section in range(8):
            lines += [
                f"## {' '.join(pick(self._words, k=3))} {section}",
                "",
                " ".join(pick(self._words, k=110)),
                "",
            ]
        (self.workspace / "memory" / f"note-{number:03}.md").write_text("\n".join(lines))


def _answer(result: SearchResult) -> list[tuple[object, ...]]:
    return [(hit.path, hit.start_line, hit.end_line, round(hit.score, 9), hit.snippet) for hit in result.hits]


def _recoveries(memory: Memory) -> object:
    return memory.index.store.describe().get("recovered")
