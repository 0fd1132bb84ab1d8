"""The installed command at a terminal of its own, as a person would see it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("plainmind"))


def at_a_terminal(*argv, question=b"", reply=b"", env=None):
    """Run a command, answer its question if it asks one; what it printed, and its exit status."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [COMMAND, *argv],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **(env or {})},
    )
    os.close(theirs)
    printed = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([ours], [], [], 0.1)
        try:
            printed += os.read(ours, 4096) if ready else b""
        except OSError:  # the other end was closed
            break
        if reply and question in printed:
            os.write(ours, reply)
            reply = b""
    status = running.wait(timeout=60)
    os.close(ours)
    return printed.decode(), status
