"""What a host waits for: a server that it has just started, until it has named its tools; and the hooks around a turn.

A host waits 1.5 seconds at least for the tools, and works without them when that was not enough: the server is started
on the machine as it is, and again while programs of ours want a core all the time. `make bench` writes the figures into
docs/performance.md; `python benchmarks/host_waits.py` prints them alone.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from page_parts import markdown_table, publish
from speed.corpus import Corpus
from speed.report import TIMES, times
from speed.resident import plain_environment
from speed.timing import Times, command, lap, machine, summary
from speed.workload import write_files

from plainmind.base.errors import PlainmindError

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
START = "<!-- what hosts wait for: written by `make bench`, edits here are lost -->"
END = "<!-- what hosts wait for: end -->"
LOAD = 8  # programs that want a core all the time
STARTS = 20
WAITED_MS = 1_500  # by the host that waits least
NOTES = Corpus(1_500, fixed_per_file=6)  # what a year of notes comes to
_GREETING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
_SAID = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {"id": 1, "method": "initialize", "params": _GREETING},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    )
).encode()
Rows = list[tuple[str, str]]


def first_answers(environment: Mapping[str, str], *, starts: int, load: int) -> Rows:
    """From the start of a server until it has named its tools, many times on end."""
    server = [*command(), "mcp"]
    lap(server, environment, says=_SAID)  # compiles what is not compiled yet
    # The processor's time is that of its whole life, when it is asked for its tools and nothing else.
    used = [lap(server, environment, says=_SAID)[1] for _ in range(starts)]
    quiet = [_first_answer(server, environment) for _ in range(starts)]
    with _busy(load):
        busy = [_first_answer(server, environment) for _ in range(starts)]
    slowest = max(busy) * 1000
    verdict = f"all within {WAITED_MS:,}" if slowest <= WAITED_MS else f"not within {WAITED_MS:,}"
    return [
        ("`plainmind mcp`, until it has named its tools", times(summary(quiet, used))),
        (
            f"the same while {load} other programs want a core all the time",
            f"{times(summary(busy, used))}; slowest of {starts}: {slowest:,.0f}, {verdict}",
        ),
    ]


def hooks(environment: Mapping[str, str], folder: Path, asked: Sequence[str]) -> Rows:
    """What one hook takes, each in a session of its own."""
    transcript = folder / ".claude" / "projects" / "app" / "said.jsonl"
    transcript.parent.mkdir(parents=True)

    def timed(event: str, **more: str) -> Times:
        laps: list[tuple[float, float]] = []
        for number, text in enumerate(asked):
            _say(transcript, number, text)
            payload = {"hook_event_name": event, "session_id": f"{event}-{number}", "prompt": text, **more}
            laps.append(lap([*command(), "hook"], environment, says=json.dumps(payload).encode()))
        return summary([wall for wall, _ in laps], [cpu for _, cpu in laps])

    timed("UserPromptSubmit")  # compiles, and reads the index for the first time
    return [
        ("`plainmind hook`, before a prompt", times(timed("UserPromptSubmit"))),
        ("`plainmind hook`, at the start of a conversation", times(timed("SessionStart"))),
        (
            "`plainmind hook`, after an answer: a turn more of one conversation",
            times(timed("Stop", session_id="one", transcript_path=str(transcript))),
        ),
    ]


def _say(transcript: Path, number: int, text: str) -> None:
    """A turn more in the transcript of a host."""
    with transcript.open("a") as file:
        for role, content in (("user", text), ("assistant", f"As far as I know: {text}")):
            line = {
                "type": role,
                "uuid": f"{role}-{time.monotonic_ns()}",
                "sessionId": "one",
                "timestamp": f"2026-11-16T09:{number % 60:02}:00.000Z",
                "message": {"role": role, "content": [{"type": "text", "text": content}]},
            }
            file.write(json.dumps(line) + "\n")


def _first_answer(server: Sequence[str], environment: Mapping[str, str]) -> float:
    """Seconds from the start of a server until its list has been read."""
    started = time.perf_counter()
    with subprocess.Popen(
        server, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(_SAID)
        running.stdin.flush()
        told = [json.loads(running.stdout.readline() or b"{}") for _ in range(2)]
        seconds = time.perf_counter() - started
        running.stdin.close()
    if not told[1].get("result", {}).get("tools"):
        raise PlainmindError(f"the server names no tools: {told[1]}")
    return seconds


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """Let programs of ours use the processors during a block."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(1.0)
        yield
    finally:
        for one in spinning:
            one.kill()
            one.wait()


def measure(folder: Path, *, runs: int = 15, starts: int = STARTS, load: int = LOAD) -> Rows:
    """All of it, in a workspace of real size."""
    workspace = folder / "workspace"
    write_files(NOTES, str(workspace))
    environment = {
        **plain_environment(),
        "HOME": str(folder),
        "PLAINMIND_HOME": str(folder / "home"),
        "PLAINMIND_WORKSPACE": str(workspace),
    }
    lap([*command(), "sync"], environment)
    asked = [question.text for question in NOTES.questions(runs)]
    return [*first_answers(environment, starts=starts, load=load), *hooks(environment, folder, asked)]


def part_of(rows: Rows, day: dt.date) -> str:
    """The part of the page that this program writes."""
    facts = machine()
    where = f"{facts['cores']} cores ({facts['processor']}), {facts['system']}"
    return "\n\n".join(
        (
            "## What a host waits for",
            f"{day}, {where}; {NOTES.files} Markdown files, {NOTES.chunks:,} chunks; whole processes, {TIMES}.",
            markdown_table([("what", "times"), *rows]),
        )
    )


def main() -> int:
    """Measure, print, and write it where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the figures into docs/performance.md")
    arguments = parser.parse_args()
    # What a hook leaves to a process of its own may still be at work.
    with tempfile.TemporaryDirectory(prefix="plainmind-bench-", ignore_cleanup_errors=True) as name:
        part = part_of(measure(Path(name)), dt.datetime.now(dt.UTC).date())
    print(part)
    if arguments.record:
        publish(PAGE, part, start=START, end=END)
        print(f"\nwritten to {os.path.relpath(PAGE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
