"""Measure one long conversation: its first indexing, and how soon a new message is found; time and memory.

    python benchmarks/big_transcript.py                 a transcript of 200 MB
    python benchmarks/big_transcript.py --megabytes 100
    python benchmarks/big_transcript.py --huge          5 GB, which takes some minutes and 7 GB of disk
    python benchmarks/big_transcript.py --talk          nothing but messages: no tools, many more chunks
    python benchmarks/big_transcript.py --new           there is no index yet, so that one is made at once

Nothing is asserted: the figures are printed, one line each.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from plainmind.memory.memory import Memory

KEY = "agent:main:main"
HUGE_MB = 5_000
ROUNDS = 30
_BLOCK_BYTES = 4 << 20
_RESULT_BYTES = 32_000  # of a tool, on average: what most bytes of real transcripts are
_TURN_S = 40


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a transcript, index it, add to it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--megabytes", type=int, default=200, metavar="N")
    size.add_argument("--huge", action="store_true", help="5 GB")
    parser.add_argument("--talk", action="store_true", help="messages alone")
    parser.add_argument("--new", action="store_true", help="begin without an index")
    parser.add_argument(
        "--in", dest="folder", metavar="FOLDER", help="where to work; by default a temporary folder"
    )
    chosen = parser.parse_args(arguments)
    megabytes = HUGE_MB if chosen.huge else chosen.megabytes
    with tempfile.TemporaryDirectory(prefix="plainmind-big-", dir=chosen.folder) as folder:
        result_bytes = 0 if chosen.talk else _RESULT_BYTES
        measure(Path(folder), megabytes * 1_000_000, result_bytes=result_bytes, is_new=chosen.new)
    return 0


def measure(folder: Path, size: int, *, result_bytes: int, is_new: bool) -> None:
    """Print what indexing and adding to a transcript of so many bytes takes."""
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("The gateway runs on a Mac Studio.\n")
    settings = {"sources": ["memory", "sessions"], "provider": "builtin"}
    with Memory(workspace, home=folder / "home", config=settings) as memory:
        if not is_new:
            memory.sync()
        session = memory.sessions.create(KEY)
        messages = fill(Path(session.path), size, result_bytes=result_bytes)
        show("transcript", f"{os.path.getsize(session.path) / 1e6:,.0f} MB, {messages:,} messages")
        show("memory before", f"{peak_mb():,.0f} MB at most")

        began = time.perf_counter(), time.process_time()
        report = memory.sync()
        took, computed = time.perf_counter() - began[0], time.process_time() - began[1]
        show(
            "first indexing",
            f"{took:,.1f} s, of which {computed:,.1f} s computing here; {report.chunks:,} chunks",
        )
        show("", f"{size / took / 1e6:,.0f} MB/s, {report.chunks / took:,.0f} chunks/s")
        show(
            "memory after", f"{peak_mb():,.0f} MB at most, second process {peak_mb(of_children=True):,.0f} MB"
        )

        opened = timed(lambda: memory.sessions.open(KEY))
        show("open the session", f"{opened:.1f} ms")
        memory.search("a first search that loads what later ones need")
        spent = [added_and_found(memory, number) for number in range(ROUNDS)]
        appended, found, computing = (sorted(column) for column in zip(*spent, strict=True))
        show("add a message", f"{middle(appended):.1f} ms, slowest {appended[-1]:.1f} ms")
        show(
            "then find it",
            f"{middle(found):.1f} ms, slowest {found[-1]:.1f} ms; computing {middle(computing):.1f} ms",
        )
        alone = sorted(timed(lambda: memory.search("where is the gateway?")) for _ in range(ROUNDS))
        show("find something else", f"{middle(alone):.1f} ms, slowest {alone[-1]:.1f} ms")
        show("memory at the end", f"{peak_mb():,.0f} MB at most")


def added_and_found(memory: Memory, number: int) -> tuple[float, float, float]:
    """Add a message and search for it: milliseconds for each, and of the second those of computing."""
    word = f"zebra{number}quagga"
    session = memory.sessions.open(KEY)
    appending = timed(lambda: session.append({"role": "user", "content": f"we met {word} at the gateway"}))
    began = time.perf_counter(), time.process_time()
    hits = memory.search(f"what is {word}?").hits
    spent = time.perf_counter() - began[0], time.process_time() - began[1]
    if not any(word in hit.snippet for hit in hits):
        raise SystemExit(f"message {number} was not found")
    return appending, spent[0] * 1000, spent[1] * 1000


def fill(path: Path, size: int, *, result_bytes: int) -> int:
    """Add turns to a transcript until it has so many bytes; how many messages they hold."""
    chance = random.Random(7)
    words = [_word(chance) for _ in range(20_000)]
    messages = 0
    written = path.stat().st_size
    with path.open("ab") as file:
        block: list[bytes] = []
        gathered = 0
        for number, entry in enumerate(_entries(chance, words, result_bytes)):
            line = (
                json.dumps({"id": f"e{number:08x}", "parentId": f"e{number - 1:08x}", **entry}).encode()
                + b"\n"
            )
            block.append(line)
            gathered += len(line)
            messages += entry["message"]["role"] != "toolResult"
            if gathered > _BLOCK_BYTES or written + gathered >= size:
                file.write(b"".join(block))
                written += gathered
                block, gathered = [], 0
            if written >= size:
                break
    return messages


def _entries(chance: random.Random, words: Sequence[str], result_bytes: int) -> Iterator[dict[str, Any]]:
    """Question, answer with a call, what the tool said, answer; for ever."""
    spare = _prose(chance, words, 400_000 // 6)
    moment = 1_770_000_000_000
    while True:
        moment += _TURN_S * 1000
        yield _message(moment, "user", _prose(chance, words, chance.randint(5, 60)))
        if result_bytes:
            call = {
                "type": "toolCall",
                "id": "c",
                "name": "read",
                "arguments": {"path": chance.choice(words)},
            }
            yield _message(moment, "assistant", _prose(chance, words, 20), call)
            length = chance.randint(0, 2 * result_bytes)
            start = chance.randrange(len(spare) - length)
            yield _message(moment, "toolResult", spare[start : start + length])
        yield _message(moment, "assistant", _prose(chance, words, chance.randint(20, 200)))


def _message(moment: int, role: str, text: str, *more: dict[str, Any]) -> dict[str, Any]:
    content = [{"type": "text", "text": text}, *more]
    return {"type": "message", "timestamp": moment, "message": {"role": role, "content": content}}


def _word(chance: random.Random) -> str:
    return "".join(
        chance.choice("aeiou" if place % 2 else "bdfgklmnprstvz") for place in range(chance.randint(3, 9))
    )


def _prose(chance: random.Random, words: Sequence[str], count: int) -> str:
    """Words, common ones more often, in sentences."""
    chosen = (words[int(len(words) * chance.random() ** 3)] for _ in range(count))
    return " ".join(word + ("." if place % 12 == 11 else "") for place, word in enumerate(chosen))


def timed(work: Callable[[], object]) -> float:
    """Milliseconds that something takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def middle(ordered: Sequence[float]) -> float:
    """The median of ordered numbers."""
    return ordered[len(ordered) // 2]


def peak_mb(*, of_children: bool = False) -> float:
    """The most memory that this process has had, or one that it started."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN if of_children else resource.RUSAGE_SELF).ru_maxrss
    return usage / (1e6 if sys.platform == "darwin" else 1e3)


def show(name: str, figures: str) -> None:
    """Print one line."""
    print(f"{name:<20} {figures}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
