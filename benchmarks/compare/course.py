"""One run of everything, by turns, so that whatever else this machine does is everybody's burden alike."""

from __future__ import annotations

import filecmp
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from speed.resident import plain_environment
from speed.timing import percentile

from compare.judge import Judge, Judgement, Shown
from compare.peer import Peer, Place, paragraphs
from compare.processes import LONGEST_S, Resident, Taken, run
from compare.work import Work
from plainmind.base.errors import PlainmindError
from plainmind.base.value import replace, value
from plainmind.guests.evaluation.dataset import Question

WARM_UP = 5
FOUND_WITHIN_S = 30.0
_LOOK_AGAIN_S = 0.02
LONGEST_AGAIN_S = 300.0  # when nothing has changed
SLOW_S = 30.0  # by the processor: an index that takes longer is made, or brought up to date, once
Tell = Callable[[str], None]


@value
class Rounds:
    """How often things are done."""

    first: int = 3
    cold: int = 7
    edits: int = 5


class Runner:
    """A peer on the course: where it works, and what was measured."""

    def __init__(
        self, peer: Peer, *, tools: Path, folder: Path, base: Path, vectors: str, server: int
    ) -> None:
        self.peer = peer
        self._tools, self._folder, self._base, self._vectors = tools, folder, base, vectors
        self.server = server  # the process that makes the vectors
        self.place = self._fresh()
        self.resident: Resident | None = None
        self.failure = ""
        self.laps: dict[str, list[Taken]] = defaultdict(list)
        self.judged: dict[str, tuple[str, Judgement]] = {}
        self.facts: dict[str, Any] = {}

    def _fresh(self) -> Place:
        """A new copy of the notes, and nothing else."""
        shutil.rmtree(self._folder, ignore_errors=True)
        workspace = self._folder / "notes"
        shutil.copytree(self._base, workspace)
        place = Place(self._tools, self._folder / "own", workspace, self._vectors)
        place.home.mkdir(parents=True)
        return place

    def command(self, words: Sequence[str], *, every_s: float = 0.05, most_s: float = LONGEST_S) -> Taken:
        """Run one of its commands."""
        return run(
            words, self.peer.environment(self.place), self.place.folder, server=self.server,
            may_find_nothing=self.peer.name == "ripgrep", every_s=every_s, most_s=most_s,
        )  # fmt: skip

    def index_first(self, *, again: bool) -> None:
        """Index from nothing."""
        if again:
            self.place = self._fresh()
        self.peer.prepare(self.place)
        commands = self.peer.index(self.place, first=True)
        if not commands:
            return
        self.laps["first"].append(together(self.command(words) for words in commands))
        self.facts["kept_bytes"] = sum(size_of(path) for path in self.peer.kept(self.place))
        self.facts["changed_files"] = sum(
            not filecmp.cmp(note, self._base / note.relative_to(self.place.workspace), shallow=False)
            for note in self.place.workspace.rglob("*.md")
        )

    def index_again(self) -> None:
        """Index when nothing has changed."""
        if self._is_slow("again"):
            return
        if commands := self.peer.index(self.place, first=False):
            self.laps["again"].append(
                together(self.command(words, most_s=LONGEST_AGAIN_S) for words in commands)
            )

    def _is_slow(self, what: str) -> bool:
        return any(lap.cpu_seconds > SLOW_S for lap in self.laps[what])

    def search_cold(self, question: Question, into: str = "cold") -> list[Shown]:
        """A process that searches and ends."""
        taken = self.command(self.peer.search(self.place, question), every_s=0.01)
        self.laps[into].append(replace(taken, output=""))
        return self.peer.shown(self.place, question, taken.output)

    def open(self) -> None:
        """Let it stay open, where it can."""
        if words := self.peer.resident(self.place):
            complaints = self.place.folder / "complaints.txt"
            self.resident = Resident(
                words, self.peer.environment(self.place), self.place.folder, complaints, server=self.server
            )

    def ask(self, question: Question, into: str) -> list[Shown]:
        """Ask the one that is open; one that cannot stay open is started for each question."""
        if self.resident is None:
            return self.search_cold(question, into)
        answer, taken = self.resident.ask(search=question.text, today=question.today.isoformat())
        self.laps[into].append(taken)
        return [Shown(**one) for one in answer["shown"]]

    def edit(self, number: int, question: Question, *, by_commands: bool = False) -> None:
        """Append a line to a note, and look for it until it is found."""
        if by_commands and self._is_slow("again"):
            return
        commands = self.peer.index(self.place, first=False) if by_commands else ()
        if by_commands and not commands and self.peer.kept(self.place):
            return  # it has an index, and no command that brings it up to date
        word = f"{'korvel' if by_commands else 'zanzir'}{number}ole"
        line = f"- The name of the new boat is {word}."
        note = sorted(self.place.workspace.rglob("*.md"))[0]
        asked = replace(question, text=word)  # a sentence would ask for its ranking too
        into = "edit by commands" if by_commands else "edit"
        started = time.perf_counter()
        with note.open("a", encoding="utf-8") as opened:
            opened.write(f"{line}\n")
        parts: list[Taken] = []
        if by_commands:
            parts += [self.command(words) for words in commands]
        elif self.resident is not None:
            path = str(note.relative_to(self.place.workspace))
            parts.append(self.resident.ask(sync=path, line=line)[1])
        while True:
            shown = self.search_cold(asked, "looks") if by_commands else self.ask(asked, "looks")
            parts += self.laps.pop("looks")
            seconds = time.perf_counter() - started
            if any(word in one.text for one in shown):
                self.laps[into].append(replace(together(parts), seconds=seconds))
                return
            if by_commands or seconds > FOUND_WITHIN_S:
                self.facts.setdefault("not_found", []).append(into)
                return
            time.sleep(_LOOK_AGAIN_S)

    def close(self) -> None:
        """End what is open."""
        if self.resident is not None:
            self.facts["open_bytes"] = self.resident.peak_bytes
            self.resident.close()
            self.resident = None


class Course:
    """Everybody who takes part, and what they are asked."""

    def __init__(
        self, runners: Sequence[Runner], work: Work, *, rounds: Rounds, tell: Tell, keep: Callable[[], None]
    ) -> None:
        self.runners, self._work, self._rounds = runners, work, rounds
        self._tell, self._keep = tell, keep

    def run(self) -> None:
        """Everything, in this order: some cannot be asked by a command while they are open."""
        questions, rounds = self._work.questions, self._rounds
        for number in range(rounds.first):
            self._turn(f"first index {number + 1}", partial(_first, number))
        self._keep()
        with ExitStack() as stack:
            for one in self.runners:
                stack.callback(one.close)
            self._turn("opening", Runner.open)
            self._ask_all(questions)
            for number in range(rounds.edits):
                self._turn(f"edit {number + 1}", partial(Runner.edit, number=number, question=questions[0]))
        self._keep()
        for number in range(rounds.cold):
            asked = questions[number % len(questions)]
            self._turn(f"cold search {number + 1}", partial(Runner.search_cold, question=asked))
            self._turn(f"nothing changed {number + 1}", Runner.index_again)
            self._keep()
        for number in range(rounds.edits):
            self._turn(
                f"edit by commands {number + 1}",
                partial(Runner.edit, number=number, question=questions[0], by_commands=True),
            )
            self._keep()

    def _ask_all(self, questions: Sequence[Question]) -> None:
        judge = Judge(self._work.workspace)
        for question in questions[:WARM_UP]:
            again = replace(question, text=f"{question.text} again")
            self._turn("warming up", partial(Runner.ask, question=again, into="warming up"))
        for number, question in enumerate(questions):
            told = f"question {number + 1} of {len(questions)}" if number % 50 == 0 else ""
            self._turn(told, partial(_judge, question, judge), first=number)

    def _turn(self, what: str, act: Callable[[Runner], object], *, first: int = 0) -> None:
        """Let everybody do it, each time beginning with another; who fails is left out from here on."""
        able = [one for one in self.runners if not one.failure]
        for at in range(len(able)):
            one = able[(at + first) % len(able)]
            if what:
                self._tell(f"{what}: {one.peer.title}")
            try:
                act(one)
            except (PlainmindError, OSError, ValueError, KeyError) as error:
                one.failure = f"{what or 'a question'}: {error}"
                self._tell(f"{one.peer.title} is left out from here on: {one.failure}")


def _first(number: int, one: Runner) -> None:
    before = one.laps["first"]
    if number and (not before or before[-1].cpu_seconds > SLOW_S):
        return
    one.index_first(again=number > 0)


def _judge(question: Question, judge: Judge, one: Runner) -> None:
    shown = one.ask(question, "warm")
    one.judged[f"{question.id}"] = (question.category, judge.judge(question, shown))


def together(parts: Iterable[Taken]) -> Taken:
    """Several commands as one piece of work."""
    whole = list(parts)
    return Taken(
        sum(part.seconds for part in whole),
        sum(part.cpu_seconds for part in whole),
        sum(part.served_seconds for part in whole),
        max(part.peak_bytes for part in whole),
    )


def size_of(path: Path) -> int:
    """What a file, or all files of a folder, take on the disk."""
    if path.is_file():
        return path.stat().st_blocks * 512
    return sum(one.stat().st_blocks * 512 for one in path.rglob("*") if one.is_file())


@contextmanager
def vectors_on_loopback() -> Iterator[tuple[str, int]]:
    """Serve our embedder; yields the address and the process."""
    program = Path(__file__).with_name("embedder_on_loopback.py")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=plain_environment()
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        if not address:
            raise PlainmindError("the server of vectors did not start")
        yield address, process.pid


def figures_of(one: Runner) -> dict[str, Any]:
    """Everything about one peer, for the file that is kept."""
    peer, place = one.peer, one.place
    asked = Question("", "QUESTION", "", date(2026, 1, 1), ())
    commands = {
        "index": [shown_line(place, words) for words in peer.index(place, first=True)],
        "again": [shown_line(place, words) for words in peer.index(place, first=False)],
        "search": [shown_line(place, peer.search(place, asked))],
    }
    return {
        "name": peer.name,
        "title": peer.title,
        "version": peer.version(place.tools),
        "registry": peer.registry,
        "finds_by": peer.finds_by,
        "stays_open_as": peer.stays_open_as,
        "fairness": paragraphs(peer.fairness),
        "commands": commands,
        "failure": one.failure,
        **one.facts,
        "index_peak_bytes": max((lap.peak_bytes for lap in one.laps["first"]), default=0),
        "cold_peak_bytes": max((lap.peak_bytes for lap in one.laps["cold"]), default=0),
        "times": {
            what: summary_of(one.laps[what])
            for what in ("first", "again", "cold", "warm", "edit by commands", "edit")
            if one.laps[what]
        },
        "answers": answers_of(one.judged),
    }


def summary_of(laps: Sequence[Taken]) -> dict[str, float]:
    """Milliseconds, by the wall and by the processor with what the server of vectors did."""
    wall = [lap.seconds * 1000 for lap in laps]
    cpu = [(lap.cpu_seconds + lap.served_seconds) * 1000 for lap in laps]
    return {
        "runs": len(laps),
        "wall_p50": round(statistics.median(wall), 2),
        "wall_p95": round(percentile(wall, 0.95), 2),
        "cpu_p50": round(statistics.median(cpu), 2),
        "cpu_p95": round(percentile(cpu, 0.95), 2),
        "served_p50": round(statistics.median(lap.served_seconds * 1000 for lap in laps), 2),
    }


def answers_of(judged: Mapping[str, tuple[str, Judgement]]) -> dict[str, Any]:
    """The means over all questions, and of each category recall and hits within the same budget."""
    if not judged:
        return {}
    rows = [judgement for _, judgement in judged.values()]
    by_category: dict[str, list[Judgement]] = defaultdict(list)
    for category, judgement in judged.values():
        by_category[category].append(judgement)
    return {
        "questions": len(rows),
        "recall": _mean(row.recall for row in rows),
        "hit": _mean(row.hit for row in rows),
        "recall_cut": _mean(row.recall_cut for row in rows),
        "hit_cut": _mean(row.hit_cut for row in rows),
        "characters": round(statistics.fmean(row.characters for row in rows)),
        "categories": {
            name: [len(some), _mean(row.recall_cut for row in some), _mean(row.hit_cut for row in some)]
            for name, some in sorted(by_category.items())
        },
    }


def _mean(values: Iterable[float]) -> float:
    return round(statistics.fmean(values), 4)


def shown_line(place: Place, words: Sequence[str]) -> str:
    """A command as the page shows it, with names for places."""
    places = {
        str(place.workspace): "NOTES",
        place.vectors: "URL",
        str(place.folder): "OWN",
        str(place.tools): "TOOLS",
        os.path.dirname(sys.executable): "BIN",
        str(Path(__file__).resolve().parent): "benchmarks/compare",
    }
    line = " ".join(words).replace("\n", "\\n")
    for path, name in places.items():
        line = line.replace(path, name)
    return line
