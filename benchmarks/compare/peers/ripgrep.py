"""ripgrep: every line that has one of the question's words; those with most of them are taken for its first results."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compare.judge import Shown
from compare.peer import RESULTS, Peer, Place, relative
from plainmind.base.errors import PlainmindError
from plainmind.guests.evaluation.dataset import Question
from plainmind.text.terms import STOP_WORDS

_WORD = re.compile(r"\w+")
_LINE = re.compile(r"(.+?):(\d+):(.*)")
_SHORTEST = 3


class Ripgrep(Peer):
    """No index, no ranking."""

    name = "ripgrep"
    title = "ripgrep"
    registry = "Debian: `ripgrep`"
    finds_by = "words, as they are written"
    fairness = """
    ripgrep ranks nothing. Its lines are sorted here by how many of the question's words they have, without
    that being timed; stop words are left out, and a word of Chinese, Japanese or Korean is cut into pairs
    of characters: unfair to the others.
    """

    def install(self, tools: Path) -> None:
        """Take the program that is there, or unpack Debian's package without being root."""
        if shutil.which("rg") or self._program(tools).exists():
            return
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["apt-get", "download", "ripgrep"], cwd=folder, check=True, capture_output=True)
            package = next(Path(folder).glob("*.deb"))
            subprocess.run(["dpkg", "-x", package, tools / "ripgrep"], check=True, capture_output=True)

    def version(self, tools: Path) -> str:
        """Its own word."""
        asked = subprocess.run([self._found(tools), "--version"], check=True, capture_output=True, text=True)
        return asked.stdout.split()[1]

    def index(self, place: Place, *, first: bool) -> Sequence[Sequence[str]]:  # noqa: ARG002
        """There is none."""
        return []

    def search(self, place: Place, question: Question) -> Sequence[str]:
        """Any of the words."""
        asked = [part for word in words_of(question.text) for part in ("-e", word)]
        return [self._found(place.tools), "-i", "-F", "-n", "--no-heading", *asked, str(place.workspace)]

    def shown(self, place: Place, question: Question, output: str) -> list[Shown]:
        """The lines with most words, in the order of their files."""
        words = words_of(question.text)
        lines = [found.groups() for found in map(_LINE.match, output.splitlines()) if found]
        ranked = sorted(lines, key=lambda row: (-_count(words, row[2]), row[0], int(row[1])))
        return [Shown(relative(place, path), text) for path, _, text in ranked[:RESULTS]]

    def kept(self, place: Place) -> Sequence[Path]:  # noqa: ARG002
        """Nothing."""
        return []

    def _found(self, tools: Path) -> str:
        program = shutil.which("rg") or str(self._program(tools))
        if not Path(program).exists():
            raise PlainmindError("ripgrep is not installed", hint="apt install ripgrep")
        return program

    def _program(self, tools: Path) -> Path:
        return tools / "ripgrep" / "usr" / "bin" / "rg"


def words_of(question: str) -> list[str]:
    """The words that a person would look for; all of them when none is left."""
    found: list[str] = []
    for word in _WORD.findall(question.lower()):
        if word.isascii() or word[0] < "⺀":
            found += [word] if len(word) >= _SHORTEST and word not in STOP_WORDS else []
        else:
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
    return list(dict.fromkeys(found)) or [question]


def _count(words: Sequence[str], line: str) -> int:
    lowered = line.lower()
    return sum(word in lowered for word in words)
