"""The second core of a large sync: another Python that prepares documents while this one writes to the index.

A process and not a thread, for cutting and embedding are Python's own work; started as a plain program, so that no
`__main__` of anybody runs twice. Without it everything is done all the same, only more slowly.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from plainmind.base.errors import PlainmindError
from plainmind.base.model import EmbedderIdentity
from plainmind.index.preparing import COMPUTED_HERE, Prepared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from queue import SimpleQueue
    from subprocess import Popen
    from typing import IO, Any, BinaryIO, Self

    from plainmind.base.model import Document
    from plainmind.index.chunks import ChunkingSettings

# Starting takes about as long as preparing a megabyte of text.
WORTH_IT_BYTES = 3_000_000
_MOST_IN_FLIGHT = 5  # it must not run out of work while this process writes
_LONGEST_WAIT_S = 60.0
_END_WITHIN_S = 5.0
_PIPE_BYTES = 1 << 20

# Isolated from the environment and from the working folder, but with our own path: a zip file, an editable folder.
_BOOT = "import sys; sys.path[:] = sys.argv[2:]; from plainmind.index.worker import main; main()"


class WorkerFailed(PlainmindError):
    """The second process ended or said something else than was agreed; what it had is to be prepared here."""


def can_share(identity: EmbedderIdentity) -> bool:
    """Whether there is another core, a Python to start, and an embedder that another process can make too."""
    program = os.path.basename(sys.executable or "").lower()
    return (
        identity.provider in COMPUTED_HERE  # the others wait for a network, or have a model of their own
        and _usable_cores() > 1
        and program.startswith(
            ("python", "pypy")
        )  # else the program that Python is embedded in would be started
        and not getattr(sys, "frozen", False)
    )


class SecondProcess:
    """Takes documents and gives them back prepared, in the same order."""

    def __init__(self, chunking: ChunkingSettings, identity: EmbedderIdentity) -> None:
        """Start it without waiting. Raises WorkerFailed when the system has no process for us."""
        import subprocess
        import threading
        from queue import SimpleQueue

        self._expected = (chunking, identity)
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._in_flight = 0
        self.is_ready = False
        flags = ["-I", *(["-B"] if sys.dont_write_bytecode else [])]
        try:
            self._process: Popen[bytes] = subprocess.Popen(  # noqa: S603 (our own Python)
                [sys.executable, *flags, "-c", _BOOT, str(os.getpid()), *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise WorkerFailed(f"a second process could not be started: {error}") from error
        self._threads = [
            threading.Thread(target=work, args=(_widened(pipe),), name=f"plainmind-{name}", daemon=True)
            for work, pipe, name in (
                (self._tell, self._process.stdin, "telling"),
                (self._listen, self._process.stdout, "listening"),
            )
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def has_room(self) -> bool:
        """Whether it would begin soon with what it is given now."""
        if not self.is_ready:
            self._hear(self._next_answer(wait=False))
        return self.is_ready and self._in_flight < _MOST_IN_FLIGHT

    def give(self, documents: Sequence[Document]) -> None:
        """Hand documents over."""
        self._in_flight += 1
        self._jobs.put(documents)

    def take(self, documents: Sequence[Document], *, wait: bool) -> Prepared | None:
        """What became of the documents given first; None when it is not there yet. Raises WorkerFailed."""
        from plainmind.index.worker import unpack_chunks

        answer = self._next_answer(wait=wait)
        if answer is None:
            return None
        self._in_flight -= 1
        packed, failure = answer
        if failure is not None:
            raise WorkerFailed(failure)
        return Prepared(unpack_chunks(documents, packed))

    def close(self) -> None:
        """End it, at once when it is busy; nothing stays behind."""
        import subprocess

        self._jobs.put(None)
        if self._in_flight or not self.is_ready:
            self._process.kill()
        try:
            self._process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join()

    def _next_answer(self, *, wait: bool) -> Any:
        from queue import Empty

        try:
            answer = self._answers.get(block=wait, timeout=_LONGEST_WAIT_S)
        except Empty:
            if wait:
                raise WorkerFailed(f"the second process was silent for {_LONGEST_WAIT_S:g} s") from None
            return None
        if isinstance(answer, WorkerFailed):
            raise answer
        return answer

    def _hear(self, answer: Any) -> None:
        from plainmind.index.worker import greeting

        if answer is None:
            return
        if answer != greeting(*self._expected):
            raise WorkerFailed("the second process has another model or another version")
        self.is_ready = True

    def _tell(self, told: BinaryIO) -> None:
        """Pass documents on, in a thread of its own: a pipe holds less than a message, and nobody shall wait for it."""
        from plainmind.index.worker import pack_documents, send

        chunking, identity = self._expected
        with suppress(OSError), told:  # whoever listens tells why the other side is gone
            send(told, (identity.provider, chunking.strategy, chunking.tokens, chunking.overlap))
            while (job := self._jobs.get()) is not None:
                send(told, pack_documents(job))

    def _listen(self, answers: BinaryIO) -> None:
        from plainmind.index.worker import receive

        try:
            with answers:
                while True:
                    self._answers.put(receive(answers))
        except (EOFError, OSError, ValueError) as error:
            self._answers.put(WorkerFailed(f"the second process ended unexpectedly ({error!r})"))


def _widened(pipe: IO[bytes] | None) -> BinaryIO:
    """Let a pipe take a whole message where the system can: each piece waits for its turn with the interpreter."""
    import fcntl

    assert pipe is not None
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # the user has used up what all pipes may hold together
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return pipe  # type: ignore[return-value]


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
