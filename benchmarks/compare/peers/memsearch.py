"""memsearch: Markdown in Milvus Lite, with our vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from compare.judge import Shown
from compare.peer import (
    RESIDENTS,
    RESULTS,
    Peer,
    Place,
    install_from_pypi,
    relative,
    version_from_pypi,
)
from plainmind.guests.evaluation.dataset import Question

_PACKAGE = "memsearch"


class Memsearch(Peer):
    """`memsearch index`, `memsearch search`."""

    name = "memsearch"
    title = "memsearch"
    registry = f"PyPI: `{_PACKAGE}`"
    finds_by = "words (BM25) and vectors; ours, from the server on loopback"
    stays_open_as = "its Python API, `MemSearch.search`; `index_file` before a search after an edit"
    fairness = """
    memsearch asks for vectors file by file. It shows whole chunks of up to 1,500 characters: cut at 700,
    the evidence of some is cut off; the column without a cut is the one that favours it.

    memsearch's reranker and its own local models come from a model hub that could not be reached: unfair to
    it.
    """

    def install(self, tools: Path) -> None:
        """Into an environment of its own."""
        install_from_pypi(tools, _PACKAGE)

    def version(self, tools: Path) -> str:
        """As its package says."""
        return version_from_pypi(tools, _PACKAGE)

    def environment(self, place: Place) -> dict[str, str]:
        """With a key that nobody reads."""
        return {**super().environment(place), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": place.vectors}

    def index(self, place: Place, *, first: bool) -> Sequence[Sequence[str]]:  # noqa: ARG002
        """One command for all."""
        return [[self._program(place), "index", *self._options(place), str(place.workspace)]]

    def search(self, place: Place, question: Question) -> Sequence[str]:
        """As a program would ask."""
        return [
            self._program(place),
            "search",
            *self._options(place),
            "-k",
            str(RESULTS),
            "-j",
            question.text,
        ]

    def shown(self, place: Place, question: Question, output: str) -> list[Shown]:  # noqa: ARG002
        """Whole chunks."""
        return [Shown(relative(place, hit["source"]), hit["content"]) for hit in json.loads(output)]

    def resident(self, place: Place) -> Sequence[str]:
        """The Python API."""
        python = place.tools / _PACKAGE / "bin" / "python"
        paths = (python, RESIDENTS / "memsearch_open.py", place.workspace, self._database(place))
        return [*map(str, paths), place.vectors]

    def kept(self, place: Place) -> Sequence[Path]:
        """What Milvus keeps."""
        return [self._database(place)]

    def _program(self, place: Place) -> str:
        return str(place.tools / _PACKAGE / "bin" / "memsearch")

    def _database(self, place: Place) -> Path:
        return place.folder / "milvus.db"

    def _options(self, place: Place) -> list[str]:
        vectors = ["--provider", "openai", "--model", "plainmind-builtin", "--base-url", place.vectors]
        return [*vectors, "--milvus-uri", str(self._database(place))]
