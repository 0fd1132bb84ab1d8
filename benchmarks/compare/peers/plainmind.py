"""This project, as its defaults are."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from speed.timing import command

from compare.judge import Shown
from compare.peer import RESIDENTS, RESULTS, Peer, Place
from plainmind import __version__
from plainmind.guests.evaluation.dataset import Question


class Plainmind(Peer):
    """Words and vectors in this process."""

    name = "plainmind"
    title = "Plainmind"
    registry = "this checkout"
    finds_by = "words and vectors; its own model, in its own process"
    stays_open_as = "the Python API, `Memory.search`, looking for changed files before each answer"
    fairness = """
    Plainmind computes its vectors in its own process; the others that use them ask a server on loopback.
    What the server works is counted for them, and so is what it takes to ask: that is unfair to them, and
    it is what a provider of vectors costs.

    The model was chosen, and the ranking tuned, on the `dev` questions that are asked here: unfair to the
    others.

    Plainmind is told on which day a question is asked, which only it can use.
    """

    def install(self, tools: Path) -> None:
        """It is here."""

    def version(self, tools: Path) -> str:  # noqa: ARG002
        """Of the package that runs this program."""
        return __version__

    def environment(self, place: Place) -> dict[str, str]:
        """With a home and the notes of its own."""
        return {
            **super().environment(place),
            "PLAINMIND_HOME": str(place.folder / "home"),
            "PLAINMIND_WORKSPACE": str(place.workspace),
        }

    def index(self, place: Place, *, first: bool) -> Sequence[Sequence[str]]:  # noqa: ARG002
        """One command for all."""
        return [[*command(), "sync"]]

    def search(self, place: Place, question: Question) -> Sequence[str]:  # noqa: ARG002
        """As a program would ask."""
        today = question.today.isoformat()
        return [*command(), "search", "--json", "-n", str(RESULTS), "--today", today, question.text]

    def shown(self, place: Place, question: Question, output: str) -> list[Shown]:  # noqa: ARG002
        """Snippets."""
        return [Shown(hit["path"], hit["snippet"]) for hit in json.loads(output)["results"]]

    def resident(self, place: Place) -> Sequence[str]:  # noqa: ARG002
        """The Python API."""
        return [sys.executable, str(RESIDENTS / "plainmind_open.py")]

    def kept(self, place: Place) -> Sequence[Path]:
        """Everything that can be thrown away."""
        return [place.home / "index"]
