"""basic-memory: notes as a graph in SQLite, with our vectors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from compare.judge import Shown
from compare.peer import RESIDENTS, RESULTS, Peer, Place, install_from_pypi, install_more, version_from_pypi
from plainmind.base.errors import PlainmindError
from plainmind.guests.evaluation.dataset import Question

_PACKAGE = "basic-memory"
_PYTHON = ">=3.12"
_CAN_LOAD = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension; print('yes')"
# For a Python that was built without the loading of extensions, which basic-memory needs for vectors.
_REPLACED = (
    "import sys, pysqlite3; sys.modules.update({'sqlite3': pysqlite3, 'sqlite3.dbapi2': pysqlite3.dbapi2})\n"
)


class BasicMemory(Peer):
    """`basic-memory reindex`, `basic-memory tool search-notes`."""

    name = "basic-memory"
    title = "basic-memory"
    registry = f"PyPI: `{_PACKAGE}`"
    finds_by = "words and vectors; ours, from the server on loopback"
    stays_open_as = "its MCP server over stdio, `search_notes`; it watches the folder"
    fairness = """
    basic-memory writes front matter into every note that has none, by its default; it works on a copy here.

    What basic-memory's vectors score below 0.55 it leaves out by default, which is made for larger models;
    here that threshold is 0, which favours it. Its own local model comes from a model hub that could not be
    reached.

    Where the newest Python of a machine cannot load extensions of SQLite, basic-memory gets the SQLite of
    `pysqlite3-binary` in its environment; without it, it has no vectors.
    """

    def install(self, tools: Path) -> None:
        """Into an environment of its own, with a newer Python than we need."""
        install_from_pypi(tools, _PACKAGE, python=newer_python())
        python = tools / _PACKAGE / "bin" / "python"
        if not _says(python, _CAN_LOAD):
            install_more(tools, _PACKAGE, "pysqlite3-binary")
            packages = Path(_says(python, "import sysconfig; print(sysconfig.get_path('purelib'))"))
            (packages / "sqlite_with_extensions.pth").write_text(_REPLACED, encoding="utf-8")

    def version(self, tools: Path) -> str:
        """As its package says."""
        return version_from_pypi(tools, _PACKAGE)

    def environment(self, place: Place) -> dict[str, str]:
        """Settings are variables."""
        prefix = "BASIC_MEMORY_SEMANTIC_"
        return {
            **super().environment(place),
            "BASIC_MEMORY_HOME": str(place.workspace),
            "BASIC_MEMORY_CONFIG_DIR": str(place.folder / "config"),
            "BASIC_MEMORY_LOG_LEVEL": "ERROR",
            "BASIC_MEMORY_NO_PROMOS": "1",
            "BASIC_MEMORY_AUTO_UPDATE": "false",
            f"{prefix}EMBEDDING_PROVIDER": "openai",
            f"{prefix}EMBEDDING_MODEL": "plainmind-builtin",
            f"{prefix}EMBEDDING_DIMENSIONS": "256",
            f"{prefix}MIN_SIMILARITY": "0",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": place.vectors,
        }

    def index(self, place: Place, *, first: bool) -> Sequence[Sequence[str]]:  # noqa: ARG002
        """One command for all."""
        return [[self._program(place), "reindex"]]

    def search(self, place: Place, question: Question) -> Sequence[str]:
        """As a program would ask."""
        options = ["--json", "--page-size", str(RESULTS), "--local"]
        return [self._program(place), "tool", "search-notes", question.text, *options]

    def shown(self, place: Place, question: Question, output: str) -> list[Shown]:  # noqa: ARG002
        """The chunk that matched, or what it shows of a note."""
        return [Shown(one["file_path"], text_of(one)) for one in json.loads(output)["results"]]

    def resident(self, place: Place) -> Sequence[str]:
        """The MCP server."""
        return [sys.executable, "-S", str(RESIDENTS / "basic_memory_open.py"), self._program(place), "mcp"]

    def kept(self, place: Place) -> Sequence[Path]:
        """Its database."""
        return list((place.folder / "config").glob("memory.db*"))

    def _program(self, place: Place) -> str:
        return str(place.tools / _PACKAGE / "bin" / "basic-memory")


def text_of(result: Mapping[str, Any]) -> str:
    """What a result shows."""
    return result.get("matched_chunk") or result.get("content") or ""


def newer_python() -> str:
    """A Python that it runs on, of those that are installed on this machine."""
    uv = Path(sys.executable).with_name("uv")
    found = subprocess.run([uv, "python", "find", _PYTHON], capture_output=True, text=True, check=False)
    places = [
        found.stdout.strip(),
        *map(str, sorted(Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python"))),
    ]
    for place in reversed(places):
        if place and Path(place).exists():
            return place
    raise PlainmindError(f"{_PACKAGE} needs a Python {_PYTHON}, and none was found")


def _says(python: Path, program: str) -> str:
    asked = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False)
    return asked.stdout.strip()
