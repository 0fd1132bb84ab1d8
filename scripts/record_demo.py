"""Run the demo and keep what it printed, for the README."""

from __future__ import annotations

import re
import subprocess

from install import ROOT

SCRATCH = re.compile(r"/\S*/plainmind-demo\.\w+")
CITED = re.compile(r"\b(?:MEMORY|memory/[^\s:#]+)\.md\b")


def recorded_part() -> str:
    """Return the demo's real output as a console block."""
    run = subprocess.run(
        [str(ROOT / "scripts" / "demo.sh")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # notes and hints stand where a reader will see them
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if run.returncode:
        raise SystemExit(f"error: the demo failed\n{run.stdout}")
    return f"```console\n{SCRATCH.sub('/tmp/plainmind-demo', run.stdout).strip()}\n```"


def story(recording: str) -> list[tuple[str, str]]:
    """Return each command with the first file that its answer cites."""
    told: list[tuple[str, str]] = []
    for line in recording.splitlines():
        if line.startswith("$ "):
            told.append((line, ""))
        elif told and not told[-1][1] and (cited := CITED.search(line)):
            told[-1] = (told[-1][0], cited[0])
    # Today's log has today's name: what `remember` wrote to is the same story on any day.
    return [(command, re.sub(r"\d{4}-\d\d-\d\d\.md", "today.md", cited)) for command, cited in told]


def same_story(old: str, new: str) -> bool:
    """Whether two recordings show the same commands with the same first answers."""
    return story(old) == story(new)
