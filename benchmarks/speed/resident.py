"""A process of its own that searches or indexes once, then says how much memory it has taken.

Imports no numpy, which would count.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from plainmind.memory.memory import Memory


def plain_environment() -> dict[str, str]:
    """The environment without our settings and without Python's, which would be measured along."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PLAINMIND_", "PYTHON"))
    }


@contextmanager
def opened(workspace: str, home: str, flags: Mapping[str, Any] | None = None) -> Iterator[Memory]:
    """A memory with the default settings, whatever this user's are."""
    os.makedirs(workspace, exist_ok=True)
    memory = Memory.from_environment(
        plain_environment(),
        workspace=workspace,
        home=home,
        config={"provider": "builtin", **(flags or {})},  # whatever keys there are in the environment
        cwd=workspace,
    )
    with memory:
        yield memory


def main() -> int:
    """Read the task from stdin, do it, print what it took."""
    task = json.load(sys.stdin)
    with opened(task["workspace"], task["home"], task.get("flags")) as memory:
        facts = search(memory, task["questions"]) if "questions" in task else index(memory)
        print(json.dumps({**taken(), "facts": facts}))
    return 0


def search(memory: Memory, questions: Sequence[str]) -> Mapping[str, Any]:
    """Ask every question."""
    return {"questions": len(questions), "hits": sum(len(memory.search(text).hits) for text in questions)}


def index(memory: Memory) -> Mapping[str, Any]:
    """Bring the index up to date."""
    report = memory.sync()
    return {
        "files": len(report.indexed),
        "chunks": report.chunks,
        "left_out": [failure.reason for failure in (*report.skipped, *report.failed)],
        "seconds": report.seconds,
    }


def taken() -> dict[str, int | None]:
    """The most memory that was resident at once, and what is resident now by kind, in bytes."""
    sizes: dict[str, int] = {}
    if os.path.exists("/proc/self/status"):
        with open("/proc/self/status", encoding="utf-8") as lines:
            rows = (line.split() for line in lines)
            sizes = {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if row[-1:] == ["kB"]}
    unit = 1 if sys.platform == "darwin" else 1024
    peak = sizes.get("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {"peak": peak, "anonymous": sizes.get("RssAnon"), "mapped": sizes.get("RssFile")}


if __name__ == "__main__":
    sys.exit(main())
