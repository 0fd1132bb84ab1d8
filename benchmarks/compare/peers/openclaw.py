"""OpenClaw: its own memory search (`memory-core`), with our vectors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from compare.judge import Shown
from compare.peer import RESIDENTS, RESULTS, Peer, Place, install_from_npm, node, version_from_npm
from plainmind.guests.evaluation.dataset import Question


class OpenClaw(Peer):
    """`openclaw memory`."""

    name = "openclaw"
    title = "OpenClaw"
    registry = "npm: `openclaw`"
    finds_by = "words and vectors; ours, from the server on loopback"
    stays_open_as = "its gateway, `POST /tools/invoke` with `memory_search`"
    fairness = """
    OpenClaw is a whole assistant, of which memory is one part: its gateway keeps much else in memory, and
    its command loads much else before it searches. Unfair to OpenClaw in time and memory; it is what its
    users have.

    OpenClaw asks for vectors file by file. What it scores below 0.35 it leaves out by default, which is
    made for larger models; here `query.minScore` is 0, which favours it.
    """

    def install(self, tools: Path) -> None:
        """From npm, with a Node that is new enough."""
        install_from_npm(tools, "openclaw", "openclaw@latest")

    def version(self, tools: Path) -> str:
        """As its package says."""
        return version_from_npm(tools, "openclaw", "openclaw")

    def environment(self, place: Place) -> dict[str, str]:
        """With a state and settings of its own."""
        return {
            **super().environment(place),
            "PATH": f"{node(place.tools).parent}{os.pathsep}{os.environ['PATH']}",
            "OPENCLAW_STATE_DIR": str(place.folder / "state"),
            "OPENCLAW_CONFIG_PATH": str(place.folder / "openclaw.json"),
            "OPENCLAW_SKIP_CRON": "1",
            "OPENCLAW_GATEWAY_TOKEN": "on-loopback",
        }

    def prepare(self, place: Place) -> None:
        """Say where the notes are, and who makes the vectors."""
        search = {
            "enabled": True,
            "provider": "openai-compatible",
            "model": "plainmind-builtin",
            "fallback": "none",
            "remote": {"baseUrl": place.vectors, "apiKey": "none"},
            "query": {"minScore": 0},
        }
        settings = {
            "agents": {"defaults": {"workspace": str(place.workspace)}},
            "memory": {"search": search},
        }
        (place.folder / "openclaw.json").write_text(json.dumps(settings), encoding="utf-8")

    def index(self, place: Place, *, first: bool) -> Sequence[Sequence[str]]:  # noqa: ARG002
        """One command for all."""
        return [[*self._openclaw(place), "memory", "index"]]

    def search(self, place: Place, question: Question) -> Sequence[str]:
        """As a program would ask."""
        options = ["--json", "--max-results", str(RESULTS)]
        return [*self._openclaw(place), "memory", "search", *options, "--query", question.text]

    def shown(self, place: Place, question: Question, output: str) -> list[Shown]:  # noqa: ARG002
        """Snippets of at most 700 characters."""
        return [Shown(hit["path"], hit["snippet"]) for hit in json.loads(output)["results"]]

    def resident(self, place: Place) -> Sequence[str]:
        """The gateway."""
        return [sys.executable, "-S", str(RESIDENTS / "openclaw_open.py"), *self._openclaw(place)]

    def kept(self, place: Place) -> Sequence[Path]:
        """The database of its agent, which holds more than notes."""
        return list((place.folder / "state" / "agents").glob("*/agent/openclaw-agent.sqlite*"))

    def _openclaw(self, place: Place) -> list[str]:
        program = place.tools / "openclaw" / "node_modules" / "openclaw" / "openclaw.mjs"
        return [str(node(place.tools)), str(program)]
