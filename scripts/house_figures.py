"""Count what docs/decisions/0019 is about: files and lines, modules, calls and frames, views, and a cold search.

Also of another checkout: --python names its Python, --source its package. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "plainmind"
GUESTS = "guests"
NOTES, SECTIONS = 1_000, 10  # which make 10,000 chunks
WORDS, WORDS_OF_SECTION = 8_000, 119
LONG_AGO = 1_700_000_000
NOTE = "memory/note.md"

# Each of these runs in a process of its own, with the package's name as its argument.
_COUNT_MODULES = """
import importlib, sys
package = sys.argv[1]
importlib.import_module(f"{package}.cli.main").main(["search", "printer"])
print(sum(name.split(".")[0] == package for name in sys.modules))
"""
_COUNT_VIEWS = """
import importlib, sys
import apsw
package = sys.argv[1]
views = 0
def traced(_cursor, statement, _bindings):
    global views
    views += statement.lstrip().upper().startswith("BEGIN")
    return True
def watch(connection):
    connection.exec_trace = traced
apsw.connection_hooks.append(watch)
importlib.import_module(f"{package}.cli.main").main(["search", "printer"])
print(views)
"""
_COUNT_CALLS = """
import importlib, json, os, sys
package, workspace, home = sys.argv[1:4]
Memory = importlib.import_module(package).Memory
calls, depths, watching = 0, [], False
def is_ours(frame):
    return frame.f_globals.get("__name__", "").split(".")[0] == package
def profile(frame, event, _argument):
    global calls
    calls += event == "call" and is_ours(frame)
def hook(event, arguments):
    if not watching or event != "open" or not str(arguments[0]).endswith("note.md"):
        return
    frame, names = sys._getframe(), []
    while frame:
        if is_ours(frame):
            names.append(frame.f_globals["__name__"].split(".")[1])
        frame = frame.f_back
    below = [name for name in names if name != "files"]
    depths.append((len(below), below.index("memory")))
def edit(text):
    with open(os.path.join(workspace, "memory", "note.md"), "a") as file:
        file.write(text)
def measured(work):
    global calls, watching
    calls, watching = 0, True
    sys.setprofile(profile)
    work()
    sys.setprofile(None)
    watching = False
    return calls
def whole():
    with Memory(workspace=workspace, home=home) as memory:
        memory.sync()
sys.addaudithook(hook)
edit("The scanner is on VLAN 41.\\n")
first = measured(whole)
with Memory(workspace=workspace, home=home) as memory:
    for number in range(3):  # what is built once is not counted
        edit(f"The kettle number {number} is on VLAN 42.\\n")
        memory.sync()
    edit("The heater is on VLAN 43.\\n")
    again = measured(memory.sync)
print(json.dumps([first, again, *max(depths)]))
"""


def sizes(source: Path) -> Iterator[tuple[str, str]]:
    """Files and lines of the kernel, of the guests, and of both."""
    kernel, guests = [0, 0], [0, 0]
    for file in sorted(source.rglob("*.py")):
        counted = guests if file.relative_to(source).parts[0] == GUESTS else kernel
        counted[0] += 1
        counted[1] += file.read_text(encoding="utf-8").count("\n")
    both = [one + other for one, other in zip(kernel, guests, strict=True)]
    for name, (files, lines) in (("kernel", kernel), ("guests", guests), ("both", both)):
        yield f"{name}: files / lines", f"{files:,} / {lines:,}"


class Checkout:
    """Runs the code of one checkout, in a workspace that is thrown away."""

    def __init__(self, python: str, package: str, folder: Path) -> None:
        self.python = python
        self._package = package
        self._workspace, self._home = folder / "workspace", folder / "home"
        (self._workspace / "memory").mkdir(parents=True)
        name = package.upper()
        kept = {
            one: text
            for one, text in os.environ.items()
            if not one.startswith((f"{name}_", "PYTHON")) and not one.endswith("_API_KEY")
        }
        self.environment = {
            **kept,
            f"{name}_HOME": str(self._home),
            f"{name}_WORKSPACE": str(self._workspace),
        }

    def write(self, path: str, text: str) -> None:
        """Write a note as if long ago: one that is only seconds old is read again at the next sync."""
        file = self._workspace / path
        file.write_text(text, encoding="utf-8")
        os.utime(file, (LONG_AGO, LONG_AGO))

    def command(self, *arguments: str) -> list[str]:
        """What a person types."""
        return [str(Path(self.python).parent / self._package), *arguments]

    def run(self, arguments: Sequence[str]) -> str:
        """Run to the end and return what was printed."""
        run = subprocess.run(arguments, env=self.environment, text=True, capture_output=True, check=False)
        if run.returncode:
            raise SystemExit(f"error: {' '.join(arguments[:3])} failed\n{run.stderr}")
        return run.stdout

    def ask(self, code: str) -> str:
        """Run a piece of code; its answer is the last line that it prints."""
        arguments = [self._package, str(self._workspace), str(self._home)]
        return self.run([self.python, "-c", code, *arguments]).splitlines()[-1]


def structure(python: str, package: str) -> Iterator[tuple[str, str]]:
    """Count modules, views, calls and frames in a workspace of one note."""
    with tempfile.TemporaryDirectory() as name:
        checkout = Checkout(python, package, Path(name))
        checkout.write(NOTE, "# A note\n\nThe printer is on VLAN 40.\n")
        checkout.run(checkout.command("sync"))
        yield "our modules after a cold search", checkout.ask(_COUNT_MODULES)
        yield "views of the store that a cold search opens", checkout.ask(_COUNT_VIEWS)
        whole, alone, frames, below = json.loads(checkout.ask(_COUNT_CALLS))
        yield "calls: open, sync one edited note, close, in a new process", f"{whole:,}"
        yield "calls: sync one edited note in a memory that is open", f"{alone:,}"
        yield "frames from `Memory.sync` to the file that is read, those of files/ left out", str(frames)
        yield "of these below memory/", str(below)


def invented_notes() -> Iterator[tuple[str, str]]:
    """Notes of ten sections, each a chunk; the same ones each time."""
    chance = random.Random(7)
    syllables = [
        "ka",
        "lo",
        "mer",
        "tin",
        "va",
        "or",
        "bel",
        "dun",
        "fi",
        "gra",
        "hol",
        "jen",
        "nor",
        "pel",
        "qui",
        "ru",
    ]
    words = ["".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(WORDS)]
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    for number in range(NOTES):
        sections = []
        for section in range(SECTIONS):
            drawn = chance.choices(words, weights, k=WORDS_OF_SECTION)
            lines = [" ".join(drawn[at : at + 17]) for at in range(0, WORDS_OF_SECTION, 17)]
            sections.append(
                f"## Section {section} about {drawn[0]}\n\n" + "\n".join(f"- {one}." for one in lines)
            )
        yield f"memory/note-{number:04}.md", f"# Note {number}\n\n" + "\n\n".join(sections) + "\n"


def cold_search(python: str, package: str, runs: int) -> Iterator[tuple[str, str]]:
    """Time a search in a new process and an empty Python, by turns."""
    with tempfile.TemporaryDirectory() as name:
        checkout = Checkout(python, package, Path(name))
        for path, text in invented_notes():
            checkout.write(path, text)
        checkout.run(checkout.command("sync"))
        chunks = json.loads(checkout.run(checkout.command("status", "--json")))["chunks"]
        search, bare = checkout.command("search", "kalo mertin vaor"), [python, "-c", "pass"]
        laps = {True: [lap(search, checkout.environment)], False: [lap(bare, checkout.environment)]}
        for _ in range(runs):
            laps[False].append(lap(bare, checkout.environment))
            laps[True].append(lap(search, checkout.environment))
        wall, cpu = (
            [statistics.median(one[at] for one in laps[ours][1:]) for ours in (True, False)] for at in (0, 1)
        )
        yield (
            f"cold search, {chunks:,} chunks, over an empty Python: wall / CPU",
            f"{wall[0] / wall[1]:.1f} × / {cpu[0] / cpu[1]:.1f} ×",
        )
        yield (
            "the same in milliseconds, search and empty",
            " / ".join(f"{ours * 1000:.0f} and {empty * 1000:.0f}" for ours, empty in (wall, cpu)),
        )


def lap(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds by the wall and by the processor."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        arguments, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return ended - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Rows of Markdown, each as soon as it is known."""
    yield "| figure | measured |"
    yield "|---|---|"
    for name, figure in rows:
        yield f"| {name} | {figure} |"


def figures(source: Path, python: str, runs: int) -> Iterator[tuple[str, str]]:
    """Everything, the quick figures first."""
    yield from sizes(source)
    yield from structure(python, source.name)
    if runs:
        yield from cold_search(python, source.name, runs)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=SOURCE, help="the folder of the package")
    parser.add_argument("--python", default=sys.executable, help="the Python that it is installed for")
    parser.add_argument("--runs", type=int, default=25, help="cold searches to time; 0 leaves them out")
    arguments = parser.parse_args()
    for line in table(figures(arguments.source, arguments.python, arguments.runs)):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
