"""Programs that work until `kill -9` strikes: begun again and again, and heard until their last word."""

from __future__ import annotations

import os
import random
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import plainmind

SOURCE = str(Path(plainmind.__file__).parents[1])
_BY_ITSELF = "a process ended by itself: see its error above"


class Mortal:
    """One program through all its lives; it says a line for everything that it tries and that it has done."""

    def __init__(self, program: Path) -> None:
        self._command = [sys.executable, "-I", "-S", str(program), SOURCE]
        self.process: subprocess.Popen[bytes] | None = None
        self.words = 0  # heard in this life
        self._unread = b""

    def begin(self, seed: int) -> None:
        """Start it with the arguments of its next life."""
        raise NotImplementedError

    def hear(self, line: str) -> None:
        """Take down what it says."""
        raise NotImplementedError

    def start(self, *arguments: object) -> None:
        self.words, self._unread = 0, b""
        self.process = subprocess.Popen([*self._command, *map(str, arguments)], stdout=subprocess.PIPE)

    @property
    def pipe(self) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def listen(self) -> bool:
        """Hear its lines; what is less than a line at the end of a life is not heard. False when it has ended."""
        heard = os.read(self.pipe, 1 << 16)
        *lines, self._unread = (self._unread + heard).split(b"\n")
        for line in lines:
            self.words += 1
            self.hear(line.decode())
        return bool(heard)

    def bury(self) -> int:
        """Hear it to the end, and tell with which status it ended."""
        assert self.process is not None
        assert self.process.stdout is not None
        while self.listen():
            pass
        self.process.stdout.close()
        return self.process.wait()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        assert self.bury() == -signal.SIGKILL, _BY_ITSELF

    def freeze(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), _BY_ITSELF

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)


class Storm:
    """Lets programs work side by side, and kills one after the other.

    How long a life lasts is counted in words, so that work is done on a slow machine too, and what is left after
    the last word is a moment of chance, so that it ends anywhere.
    """

    def __init__(self, mortals: Sequence[Mortal], seed: int) -> None:
        self.kills = 0
        self.chance = random.Random(seed)
        self._mortals = mortals
        self._words: dict[Mortal, int] = {}  # after which it dies
        self._dies_at: dict[Mortal, float] = {}
        self._selector = selectors.DefaultSelector()

    def rage(self, kills: int, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Go on for so many kills; at the end everyone is dead."""
        try:
            for mortal in self._mortals:
                self._begin(mortal)
            while self.kills < kills:
                self._listen()
                now = time.monotonic()
                for mortal in [each for each, moment in self._dies_at.items() if now >= moment]:
                    self._kill(mortal)
                    self._begin(mortal)
                meanwhile()
        finally:
            for mortal in list(self._words):
                self._kill(mortal)
            self._selector.close()

    def _begin(self, mortal: Mortal) -> None:
        mortal.begin(self.chance.getrandbits(60))
        self._words[mortal] = self.chance.randint(1, 12)
        self._selector.register(mortal.pipe, selectors.EVENT_READ, mortal)

    def _listen(self) -> None:
        for key, _ in self._selector.select(0.002):
            mortal: Mortal = key.data
            assert mortal.listen(), _BY_ITSELF
            if mortal.words >= self._words[mortal] and mortal not in self._dies_at:
                self._dies_at[mortal] = time.monotonic() + self.chance.uniform(0, 0.03)

    def _kill(self, mortal: Mortal) -> None:
        self._selector.unregister(mortal.pipe)
        del self._words[mortal]
        self._dies_at.pop(mortal, None)
        mortal.kill()
        self.kills += 1
