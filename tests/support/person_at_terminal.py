"""A person at a terminal: types, reads, presses keys, and waits until something appears."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from codecs import getincrementaldecoder
from collections.abc import Mapping, Sequence
from typing import Self

# Makes it the controlling terminal, so that Ctrl-C becomes a signal, and then the program.
_AT_THE_TERMINAL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Person:
    """Runs a program at a terminal of its own."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _AT_THE_TERMINAL, *argv],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", **(env or {})},
        )
        os.close(theirs)
        self.seen = ""
        self._decoded = getincrementaldecoder("utf-8")("replace").decode
        self._read_to = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def type(self, line: str) -> None:
        """Type a line and press return."""
        os.write(self._ours, line.encode() + b"\r")

    def press(self, keys: bytes) -> None:
        """Press keys: b"\\x03" is Ctrl-C, b"\\x04" is Ctrl-D, b"\\x1b[A" is up."""
        os.write(self._ours, keys)

    def insist(self, keys: bytes, text: str) -> None:
        """Press keys, again and again, until a text appears.

        A signal between two keys, when readline does not wait just then, is heard only with the next one.
        """
        for _ in range(60):
            self.press(keys)
            try:
                self.read_until(text, seconds=0.5)
            except AssertionError:
                continue
            return
        raise AssertionError(f"{text!r} did not appear in {self.seen[self._read_to :]!r}")

    def read_until(self, text: str, seconds: float = 30) -> str:
        """Wait until a text appears that was not read yet; what was shown up to there."""
        deadline = time.monotonic() + seconds
        while (at := self.seen.find(text, self._read_to)) < 0:
            if not self._listen(deadline):
                raise AssertionError(f"{text!r} did not appear in {self.seen[self._read_to :]!r}")
        shown = self.seen[self._read_to : at + len(text)]
        self._read_to = at + len(text)
        return shown

    def end(self, seconds: float = 30) -> int:
        """Wait for the program to end."""
        deadline = time.monotonic() + seconds
        while self._listen(deadline):
            pass
        return self.process.wait(timeout=max(0.1, deadline - time.monotonic()))

    def _listen(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        try:
            heard = os.read(self._ours, 65_536) if ready else b""
        except OSError:  # the other end was closed
            heard = b""
        self.seen += self._decoded(heard)
        return bool(heard)
