"""Running a program that may hang, crash or never stop talking: one at a time, each with a deadline of its own."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from plainmind.base.value import value
from plainmind.memory.backend import BackendBusy, BackendFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from selectors import BaseSelector
    from subprocess import Popen

ENDS_WITHIN_S = 1.0  # after it was asked to, before it is made to
_ENDED_FOR_SURE_S = 2 * ENDS_WITHIN_S + 1.0
_LAST_WORDS = 2000  # of what it says to people
_BLOCK = 1 << 16
_BY_SIGNAL = 128

_FLAGS = ("-I", "-S", *(("-B",) if sys.dont_write_bytecode else ()))
# Isolated from the environment and from the working folder, but with our own path.
_BOOT = (
    "import sys; n = int(sys.argv[1]) + 2; sys.path[:] = sys.argv[2:n]; del sys.argv[1:n];"
    " from plainmind.guests.qmd.keeper import main; main()"
)


class TookTooLong(BackendFailed):
    """The program was ended because its time was over."""


@value
class Outcome:
    """How a program ended, and what it said."""

    status: int  # as a shell tells it: 128 and more for signals
    output: bytes
    complaints: str  # the last of what it wrote to its standard error


class Sidecar:
    """Runs programs one after the other. Whatever one of them starts is gone soon after its deadline."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._starting = threading.Lock()  # or closing: nothing is started that nobody ends
        self._running: Popen[bytes] | None = None
        self._is_closed = False

    def run(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        cwd: str,
        timeout_s: float,
        max_output: int | None = None,
    ) -> Outcome:
        """Run a program to its end. Raises BackendFailed; TookTooLong, at the latest, when the time is over.

        It may say `max_output` bytes; None: as much as it likes, and nobody listens.

        When it raises, the program is still being ended; the next one does not start before that is done.
        """
        deadline = time.monotonic() + timeout_s
        if not self._turn.acquire(timeout=max(0.0, timeout_s)):
            raise BackendBusy("it is busy with something else")
        try:
            self._require_the_last_one_gone(deadline)
            process = self._started(command, environ, cwd, max(0.0, deadline - time.monotonic()))
            try:
                outcome = _Listening(process, deadline, max_output).outcome(command[0])
            finally:
                _let_go(process)
            if self._is_closed:
                raise BackendBusy("it was closed")
            return outcome
        finally:
            self._turn.release()

    def close(self) -> None:
        """End what runs, and wait until it is gone."""
        with self._starting:
            self._is_closed = True
            process = self._running
        if process is not None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            _wait_for(process, _ENDED_FOR_SURE_S)

    def _require_the_last_one_gone(self, deadline: float) -> None:
        process = self._running
        if process is not None and not _wait_for(process, deadline - time.monotonic(), insist=False):
            raise BackendBusy("what it did last is still being ended")
        self._running = None

    def _started(
        self, command: Sequence[str], environ: Mapping[str, str], cwd: str, seconds: float
    ) -> Popen[bytes]:
        import subprocess

        if not os.path.basename(sys.executable or "").lower().startswith(("python", "pypy")):
            raise BackendFailed("there is no Python here to watch over it")
        path = [str(len(sys.path)), *sys.path]
        keeping = [str(os.getpid()), f"{seconds:.3f}", str(ENDS_WITHIN_S)]
        with self._starting:
            if self._is_closed:
                raise BackendBusy("it was closed")
            try:
                self._running = subprocess.Popen(  # noqa: S603 (an absolute path, and never a shell)
                    [sys.executable, *_FLAGS, "-c", _BOOT, *path, *keeping, *command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=cwd,
                    env=dict(environ),
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise BackendFailed(f"it cannot be started: {error}") from error
            return self._running


class _Listening:
    """Takes in what a program says until it has ended, said too much, or its time is over."""

    def __init__(self, process: Popen[bytes], deadline: float, max_output: int | None) -> None:
        self._process = process
        self._deadline = deadline
        self._max_output = max_output
        self._output = bytearray()
        self._complaints = b""

    def outcome(self, name: str) -> Outcome:
        """Wait for the end."""
        from selectors import EVENT_READ, DefaultSelector

        with DefaultSelector() as selector:
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    os.set_blocking(pipe.fileno(), False)
                    selector.register(pipe, EVENT_READ)
            while selector.get_map():
                self._take_in(selector, name)
        left = self._deadline - time.monotonic()
        has_ended = _wait_for(self._process, left, insist=False)
        # Its keeper looks at the time too, and may be faster than we on a machine that is busy.
        if not has_ended or (self._process.returncode > _BY_SIGNAL and time.monotonic() >= self._deadline):
            raise self._too_long(name)
        return Outcome(self._process.returncode, bytes(self._output), self._last_words())

    def _take_in(self, selector: BaseSelector, name: str) -> None:
        left = self._deadline - time.monotonic()
        ready = selector.select(left) if left > 0 else []
        if not ready:
            raise self._too_long(name)
        for key, _ in ready:
            piece = os.read(key.fd, _BLOCK)
            if not piece:
                selector.unregister(key.fileobj)
            elif key.fileobj is self._process.stderr:
                self._complaints = (self._complaints + piece)[-_LAST_WORDS:]
            elif self._max_output is not None:
                self._output += piece
                if len(self._output) > self._max_output:
                    raise BackendFailed(
                        f"{os.path.basename(name)} said more than {self._max_output:,} bytes, and was stopped"
                    )

    def _last_words(self) -> str:
        return self._complaints.decode("utf-8", "replace")

    def _too_long(self, name: str) -> TookTooLong:
        return TookTooLong(f"{os.path.basename(name)} took too long, and was stopped")


def _let_go(process: Popen[bytes]) -> None:
    """Close the pipes: that also ends a program that still runs, and does not wait for it."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _wait_for(process: Popen[bytes], seconds: float, *, insist: bool = True) -> bool:
    """Wait for the end of a keeper; one that does not come to it is killed, if that is what is wanted."""
    import subprocess

    try:
        process.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        if not insist:
            return False
        process.kill()
        process.wait()
    return True
