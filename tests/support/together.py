"""One process of several that use a memory at the same time: python together.py ROLE WORKSPACE HOME SECONDS."""

import os
import subprocess
import sys
import time
from pathlib import Path

from plainmind import Memory


def searching(memory, until):
    count = 0
    while time.monotonic() < until:
        result = memory.search("the gateway and its backups")
        assert result.hits, "a search found nothing"
        assert not result.degraded, result.degraded
        count += 1
    print(f"searched {count}")


def syncing(memory, until):
    count = 0
    while time.monotonic() < until:
        memory.sync(force=True)
        count += 1
    print(f"rebuilt {count}")


def writing(memory, until):
    count = 0
    while time.monotonic() < until or count < 20:
        note = memory.remember(f"note {count} about the gateway")
        print(f"wrote {note.id}", flush=True)
        count += 1
        time.sleep(0.01)


def finding_own_notes(memory, until):
    """Read your writes, whatever the others do."""
    count = 0
    while time.monotonic() < until:
        word = f"quagga{count}x"
        memory.remember(f"seen a {word} today")
        assert any(word in hit.snippet for hit in memory.search(word).hits), f"{word} was not found"
        count += 1
    print(f"found {count}")


def forgetting(memory, until):
    """Say something, have it indexed, forget it, and look for it in every byte that is left."""
    count = 0
    note = Path(memory.workspace, "memory", f"secrets of {os.getpid()}.md")
    while time.monotonic() < until or count < 2:
        word = f"kwisatz{os.getpid()}haderach{count}"
        note.write_text(f"- a plain line\n- the word is {word}\n- another plain line, {count}\n")
        memory.sync()
        memory.forget(word)
        left = files_with(word, memory.workspace, sys.argv[3])
        assert not left, f"{word} is still in {left}"
        count += 1
    print(f"forgot {count}")


def files_with(word, *folders):
    command = [sys.executable, str(Path(__file__).with_name("files_with.py")), word, *map(str, folders)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


if __name__ == "__main__":
    role, workspace, home, seconds = sys.argv[1:]
    with Memory(workspace, home=home) as opened:
        globals()[role](opened, time.monotonic() + float(seconds))
