"""mem0: memories rather than files, kept in Qdrant on this disk, with our vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from compare.judge import Shown
from compare.peer import RESIDENTS, Peer, Place, install_from_pypi, version_from_pypi
from plainmind.guests.evaluation.dataset import Question

_PACKAGE = "mem0ai"


class Mem0(Peer):
    """Its Python API; it has no command and reads no files."""

    name = "mem0"
    title = "mem0"
    registry = f"PyPI: `{_PACKAGE}`"
    finds_by = "vectors; ours, from the server on loopback"
    stays_open_as = "its Python API, `Memory.search`; `Memory.add` of the new line after an edit"
    fairness = """
    mem0 keeps memories and reads no files. A program of ours cuts each note at its lines into pieces of up
    to 700 characters and adds them with `infer=False`, because there was no language model to make facts of
    them: unfair to mem0, whose facts may be found more easily. It cannot say that nothing has changed, and
    was not asked.

    mem0 searches by words too when a model from a hub is there, which could not be reached: unfair to mem0.
    """

    def install(self, tools: Path) -> None:
        """Into an environment of its own."""
        install_from_pypi(tools, _PACKAGE)

    def version(self, tools: Path) -> str:
        """As its package says."""
        return version_from_pypi(tools, _PACKAGE)

    def environment(self, place: Place) -> dict[str, str]:
        """Without telemetry."""
        return {
            **super().environment(place),
            "MEM0_TELEMETRY": "False",
            "MEM0_DIR": str(place.folder / "mem0"),
            "OPENAI_API_KEY": "none",
        }

    def index(self, place: Place, *, first: bool) -> Sequence[Sequence[str]]:
        """Only once: it does not know files."""
        return [[*self._program(place), "add"]] if first else []

    def search(self, place: Place, question: Question) -> Sequence[str]:
        """A process that opens the memories, searches and ends."""
        return [*self._program(place), "search", question.text]

    def shown(self, place: Place, question: Question, output: str) -> list[Shown]:  # noqa: ARG002
        """Whole memories."""
        return [Shown(**one) for one in json.loads(output.splitlines()[-1])["shown"]]

    def resident(self, place: Place) -> Sequence[str]:
        """The same program, open."""
        return [*self._program(place), "open"]

    def kept(self, place: Place) -> Sequence[Path]:
        """Qdrant's folder, and the history of changes."""
        return [place.folder / "qdrant", place.folder / "history.db"]

    def _program(self, place: Place) -> list[str]:
        python = place.tools / _PACKAGE / "bin" / "python"
        paths = (python, RESIDENTS / "mem0_open.py", place.workspace, place.folder)
        return [*map(str, paths), place.vectors]
