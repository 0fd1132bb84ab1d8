"""QMD: with words only, and with vectors of a model that can be had without its own."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from compare.judge import Shown
from compare.peer import RESIDENTS, RESULTS, Peer, Place, install_from_npm, node, version_from_npm
from plainmind.base.errors import PlainmindError
from plainmind.guests.evaluation.dataset import Question

_PACKAGE = "@tobilu/qmd"
MODEL_VARIABLE = "COMPARE_GGUF"


class Qmd(Peer):
    """`qmd search`."""

    name = "qmd"
    title = "QMD, words"
    registry = f"npm: `{_PACKAGE}`"
    finds_by = "words (BM25)"
    stays_open_as = "its JavaScript API, `store.searchLex`; `store.update()` before a search after an edit"
    fairness = """
    QMD is made to be asked with `qmd query`, which expands the question and reranks with models of some 2
    GB from a model hub. None could be reached here, and without them it does not answer: unfair to QMD.

    `qmd search` wants every word of the question in a note, which questions of people seldom have.

    QMD's snippets have 500 characters here, as at a terminal; its JSON and its MCP server show 300.
    """

    def install(self, tools: Path) -> None:
        """From npm, with a Node that is new enough."""
        install_from_npm(tools, "qmd", f"{_PACKAGE}@latest")

    def version(self, tools: Path) -> str:
        """As its package says."""
        return version_from_npm(tools, "qmd", _PACKAGE)

    def environment(self, place: Place) -> dict[str, str]:
        """With folders of its own."""
        return {
            **super().environment(place),
            "XDG_CACHE_HOME": str(place.folder / "cache"),
            "XDG_CONFIG_HOME": str(place.folder / "config"),
        }

    def index(self, place: Place, *, first: bool) -> Sequence[Sequence[str]]:
        """Adding a collection indexes it."""
        if first:
            return [
                [
                    *self._qmd(place),
                    "collection",
                    "add",
                    str(place.workspace),
                    "--name",
                    "notes",
                    "--mask",
                    "**/*.md",
                ]
            ]
        return [[*self._qmd(place), "update"]]

    def search(self, place: Place, question: Question) -> Sequence[str]:
        """The search by words."""
        return [*self._qmd(place), "search", "--json", "-n", str(RESULTS), question.text]

    def shown(self, place: Place, question: Question, output: str) -> list[Shown]:  # noqa: ARG002
        """Snippets, under a line that says where they are from."""
        rows = json.loads(output[output.find("[") :] or "[]")
        return [Shown(row["file"], row["snippet"]) for row in rows]

    def resident(self, place: Place) -> Sequence[str]:
        """The JavaScript API, on the index of the command."""
        store = place.tools / "qmd" / "node_modules" / _PACKAGE / "dist" / "index.js"
        database = place.folder / "cache" / "qmd" / "index.sqlite"
        config = place.folder / "config" / "qmd" / "index.yml"
        return [
            str(node(place.tools)),
            str(RESIDENTS / "qmd_open.mjs"),
            *map(str, (store, database, config)),
            "lex",
        ]

    def kept(self, place: Place) -> Sequence[Path]:
        """Its database."""
        return list((place.folder / "cache" / "qmd").glob("index.sqlite*"))

    def _qmd(self, place: Place) -> list[str]:
        """The program itself: its launcher starts a second Node."""
        cli = place.tools / "qmd" / "node_modules" / _PACKAGE / "dist" / "cli" / "qmd.js"
        return [str(node(place.tools)), str(cli)]


class QmdWithVectors(Qmd):
    """`qmd query` with both kinds of search written out, so that it needs a model for vectors only."""

    name = "qmd-vectors"
    title = "QMD, words and vectors"
    finds_by = "words and vectors; MiniLM (GGUF), in its own process; no expansion, no reranking"
    stays_open_as = (
        "its JavaScript API, `store.search`; `update()` and `embed()` before a search after an edit"
    )
    fairness = """
    QMD takes vectors from GGUF files alone, so it has another model than the others: all-MiniLM-L6-v2,
    which knows English, gets prompts meant for QMD's own model, and is cut at 500 tokens of QMD's chunks of
    900: unfair to QMD in answers. A transformer also takes longer than our table of vectors: unfair in
    time.
    """

    def install(self, tools: Path) -> None:
        """It also needs a model, by the path in a variable."""
        if not os.path.isfile(os.environ.get(MODEL_VARIABLE, "")):
            raise PlainmindError(
                "there is no model", hint=f"{MODEL_VARIABLE}=/path/to/all-MiniLM-L6-v2.Q8_0.gguf"
            )
        super().install(tools)

    def environment(self, place: Place) -> dict[str, str]:
        """With the model."""
        return {
            **super().environment(place),
            "QMD_EMBED_MODEL": os.environ[MODEL_VARIABLE],
            "QMD_EMBED_CONTEXT_SIZE": "500",
            "QMD_FORCE_CPU": "1",
        }

    def index(self, place: Place, *, first: bool) -> Sequence[Sequence[str]]:
        """Then the vectors."""
        return [*super().index(place, first=first), [*self._qmd(place), "embed"]]

    def search(self, place: Place, question: Question) -> Sequence[str]:
        """Both kinds, fused by rank."""
        both = f"lex: {one_line(question.text)}\nvec: {one_line(question.text)}"
        return [*self._qmd(place), "query", both, "--no-rerank", "--json", "-n", str(RESULTS)]

    def resident(self, place: Place) -> Sequence[str]:
        """The same API, asked for both."""
        return [*super().resident(place)[:-1], "both"]


def one_line(text: str) -> str:
    """A question that cannot be taken for the next search."""
    return " ".join(text.replace(":", " ").split())
