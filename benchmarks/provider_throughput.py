"""How close indexing through a remote provider comes to the ideal: 10,000 chunks, 50 ms a request, four in flight.

The provider is a server on loopback, in a process of its own. The ideal time is what the requests take if four are
always on their way and nothing else costs anything.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from speed.corpus import words_of

from plainmind import Memory
from plainmind.base.value import value

KEY = "sk-loopback-0123456789abcdefghijklmnopqrstuvwxyz"
LATENCY_S = 0.05
IN_FLIGHT = 4
CHUNKS_A_FILE = 20


@value
class Figures:
    """What one run took."""

    chunks: int
    characters: int
    requests: int
    most_in_flight: int
    seconds: float

    @property
    def ideal_seconds(self) -> float:
        """The time of the requests alone."""
        return math.ceil(self.requests / IN_FLIGHT) * LATENCY_S

    def as_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "chunks": self.chunks,
            "charactersEach": self.characters,
            "requests": self.requests,
            "mostInFlight": self.most_in_flight,
            "seconds": round(self.seconds, 2),
            "idealSeconds": round(self.ideal_seconds, 2),
            "ratio": round(self.seconds / self.ideal_seconds, 3),
        }


def measure(chunks: int, characters: int, folder: Path) -> Figures:
    """Index a workspace of that many chunks through the server."""
    workspace = folder / "workspace"
    write_workspace(workspace, chunks=chunks, characters=characters)
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("provider_on_loopback.py")), KEY, str(LATENCY_S)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        assert server.stdout is not None
        base_url = server.stdout.readline().strip()
        config = {
            "provider": "openai",
            "model": "measured",
            "remote": {"baseUrl": base_url, "apiKey": KEY, "batch": {"concurrency": IN_FLIGHT}},
        }
        with Memory(workspace, home=folder / "home", config=config) as memory:
            started = time.perf_counter()
            report = memory.sync()
            seconds = time.perf_counter() - started
        told, _ = server.communicate("")
    if report.degraded or report.failed:
        sys.exit(f"not everything was embedded: {report.degraded or report.failed}")
    requests, most = map(int, told.split())
    return Figures(report.chunks, characters, requests, most, seconds)


def write_workspace(workspace: Path, *, chunks: int, characters: int) -> None:
    """Fill a folder with files of sections, each a chunk of about that many characters."""
    chance = Random(3)
    words = words_of("english")
    (workspace / "memory").mkdir(parents=True)
    for number in range(math.ceil(chunks / CHUNKS_A_FILE)):
        sections = []
        for section in range(CHUNKS_A_FILE):
            told: list[str] = []
            while sum(map(len, told)) + len(told) < characters:
                told.append(chance.choice(words))
            lines = (" ".join(told[at : at + 12]) for at in range(0, len(told), 12))
            sections.append(f"## Section {number} {section}\n\n" + "\n".join(lines) + "\n")
        (workspace / "memory" / f"notes-{number:04}.md").write_text("\n".join(sections), encoding="utf-8")


def main() -> int:
    """Print the figures for each length of chunk."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument(
        "--characters",
        type=int,
        nargs="+",
        default=[1200, 500],
        help="length of a chunk; several are measured in turn",
    )
    arguments = parser.parse_args()
    for characters in arguments.characters:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(arguments.chunks, characters, Path(folder)).as_dict()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
