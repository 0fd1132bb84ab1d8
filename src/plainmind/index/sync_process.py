"""Batches of files prepared one after the other, by two processes when there is enough to do.

The second is a process and not a thread, for cutting and embedding are Python's own work; it is started as a plain
program, so that no `__main__` runs twice. It takes documents from its standard input and answers with prepared chunks:
marshalled tuples behind their length, for both sides are the same Python. It lives as long as its input is open, and
not longer than the process that started it. Without it everything is done all the same, only more slowly.
"""

from __future__ import annotations

import marshal
import os
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from plainmind.base.errors import PlainmindError
from plainmind.base.model import Chunk, Document, EmbeddedChunk, EmbedderIdentity
from plainmind.embed.protocol import COMPUTED_HERE, EmbeddingSettings, create_embedder, usable_cores
from plainmind.index.changed_files import ReadFile
from plainmind.index.chunks import LARGE, Preparation, Prepared
from plainmind.index.plan import ChunkingSettings
from plainmind.text.terms import TERMS_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future
    from queue import SimpleQueue
    from subprocess import Popen
    from typing import IO, Any, BinaryIO, Protocol, Self, TypeAlias

    class Preparer(Protocol):
        """Prepares batches, in their order."""

        def add(self, batch: Batch) -> Iterable[tuple[Batch, Prepared]]:
            """Take one more; those that are done by now."""

        def finish(self) -> Iterable[tuple[Batch, Prepared]]:
            """Those that were not done yet."""

        def close(self) -> None:
            """End what works beside this thread."""


Batch: TypeAlias = "list[ReadFile]"

_LENGTH_BYTES = 8
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_KILL = 9

# Starting takes about as long as preparing a megabyte of text, but this process goes on meanwhile.
WORTH_IT_BYTES = 2_000_000
_MOST_IN_FLIGHT = 5  # it must not run out of work while this process writes
_LONGEST_WAIT_S = 60.0
_END_WITHIN_S = 5.0
_PIPE_BYTES = 1 << 20

# Isolated from the environment and from the working folder, but with our own path: a zip file, an editable folder.
_BOOT = """
import sys
sys.path[:] = sys.argv[2:]
from plainmind.index.sync_process import answer_documents
answer_documents()
"""

# Enough for many requests to a provider at once; or, where two processes share them, to be worth a message.
REMOTE_CHARACTERS = 250_000
SHARED_CHARACTERS = 125_000
BATCH_FILES = 256
_MOST_WAITING = 12
_AHEAD = 2


def send(pipe: BinaryIO, message: Any) -> None:
    """Write one message."""
    data = marshal.dumps(message)
    pipe.write(len(data).to_bytes(_LENGTH_BYTES, "little"))
    pipe.write(data)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read one message. Raises EOFError when the other side is gone."""
    length = int.from_bytes(_exactly(pipe, _LENGTH_BYTES), "little")
    return marshal.loads(_exactly(pipe, length))  # noqa: S302 (from our own process)


def _exactly(pipe: BinaryIO, count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


def greeting(chunking: ChunkingSettings, identity: EmbedderIdentity) -> tuple[str, ...]:
    """What both sides must agree on, or their chunks would not belong into one index."""
    return chunking.fingerprint, TERMS_VERSION, repr(identity)


def pack_documents(documents: Sequence[Document]) -> list[tuple[Any, ...]]:
    """Make documents fit for a message."""
    return [(each.path, each.source, each.text, each.day, each.line_map, each.days) for each in documents]


def pack_chunks(documents: Sequence[Sequence[EmbeddedChunk]]) -> list[list[tuple[Any, ...]]]:
    """Make chunks fit for a message: terms as one string, for none has a space in it; vectors as bytes."""
    return [
        [
            (
                *(
                    each.chunk.start_line,
                    each.chunk.end_line,
                    each.chunk.text,
                    each.chunk.context,
                    each.chunk.day,
                ),
                None if each.vector is None else each.vector.tobytes(),
                " ".join(each.terms),
            )
            for each in chunks
        ]
        for chunks in documents
    ]


def unpack_chunks(documents: Sequence[Document], packed: Any) -> list[list[EmbeddedChunk]]:
    """Undo `pack_chunks`."""
    return [list(_unpack(document, chunks)) for document, chunks in zip(documents, packed, strict=True)]


def _unpack(document: Document, packed: Any) -> Iterator[EmbeddedChunk]:
    path, source = document.path, document.source
    for ordinal, (first, last, text, context, day, vector, terms) in enumerate(packed):
        yield EmbeddedChunk(
            Chunk(path, source, ordinal, first, last, text, context, day),
            None if vector is None else array("f", vector),
            tuple(terms.split(" ")) if terms else (),
        )


def answer_documents() -> None:
    """Be the second process: prepare the documents of one message after the other until the input ends."""
    import signal
    import threading
    from queue import SimpleQueue

    _end_with(int(sys.argv[1]))
    # The process that started this one decides what an interrupt means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told, answers = sys.stdin.buffer, sys.stdout.buffer
    provider, *sizes = receive(told)
    preparation = Preparation(ChunkingSettings(*sizes), create_embedder(provider, EmbeddingSettings()))
    # What it takes to embed is loaded before the other side counts on it.
    preparation.embedder.embed_documents(["ready"])
    send(answers, greeting(preparation.chunking, preparation.embedder.identity))
    # The next documents are taken in while these are prepared, so that neither side waits for the other to read.
    waiting: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(
        target=_take_in, args=(told, waiting), name="plainmind-worker-input", daemon=True
    ).start()
    while (message := waiting.get()) is not None:
        prepared = preparation.prepare([Document(*fields) for fields in message])
        send(answers, (pack_chunks(prepared.documents), prepared.failure))


def _take_in(told: BinaryIO, waiting: Any) -> None:
    try:
        while True:
            waiting.put(receive(told))
    except (EOFError, OSError):
        waiting.put(None)


def _end_with(parent: int) -> None:
    """Ask to be killed when the parent dies: a fork of it could hold our input open."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, _KILL)
    if os.getppid() != parent:
        raise SystemExit(1)


class WorkerFailed(PlainmindError):
    """The second process ended or said something else than was agreed; what it had is to be prepared here."""


def can_share(identity: EmbedderIdentity) -> bool:
    """Whether there is another core, a Python to start, and an embedder that another process can make too."""
    program = os.path.basename(sys.executable or "").lower()
    return (
        identity.provider in COMPUTED_HERE  # the others wait for a network, or have a model of their own
        and usable_cores() > 1
        # Else the program that Python is embedded in would be started.
        and program.startswith(("python", "pypy"))
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
            threading.Thread(target=work, args=(_widen(pipe),), name=f"plainmind-{name}", daemon=True)
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

        if answer is None:
            return
        if answer != greeting(*self._expected):
            raise WorkerFailed("the second process has another model or another version")
        self.is_ready = True

    def _tell(self, told: BinaryIO) -> None:
        """Pass documents on, in a thread of its own: a pipe holds less than a message, and none shall wait for it."""
        chunking, identity = self._expected
        with suppress(OSError), told:  # `_listen` tells why the other side is gone
            send(told, (identity.provider, chunking.strategy, chunking.tokens, chunking.overlap))
            while (job := self._jobs.get()) is not None:
                send(told, pack_documents(job))

    def _listen(self, answers: BinaryIO) -> None:

        try:
            with answers:
                while True:
                    self._answers.put(receive(answers))
        except (EOFError, OSError, ValueError) as error:
            self._answers.put(WorkerFailed(f"the second process ended unexpectedly ({error!r})"))


def _widen(pipe: IO[bytes] | None) -> BinaryIO:
    """Let a pipe take a whole message where the system can: each piece waits for its turn with the interpreter."""
    import fcntl

    assert pipe is not None
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # the user has used up what all pipes may hold together
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return pipe  # type: ignore[return-value]


def batches(files: Iterable[ReadFile], here: Preparation) -> Iterator[Batch]:
    """Group files so that requests to an embedder cross file boundaries."""
    most_characters = SHARED_CHARACTERS if _is_computed_here(here) else REMOTE_CHARACTERS
    batch: list[ReadFile] = []
    characters = 0
    for file in files:
        batch.append(file)
        characters += len(file.document.text)
        if characters >= most_characters or len(batch) >= BATCH_FILES:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _is_computed_here(here: Preparation) -> bool:
    return here.embedder.identity.provider in COMPUTED_HERE


def preparer_for(here: Preparation, *, total_bytes: int, tell: Callable[[str], None]) -> Preparer:
    """What prepares so much text soonest. `tell` hears why a second process did not help though it should have."""
    if not _is_computed_here(here) and total_bytes > REMOTE_CHARACTERS:
        return _Ahead(here)
    if total_bytes < WORTH_IT_BYTES or not can_share(here.embedder.identity):
        return _AtOnce(here)
    return _TwoProcesses(here, tell)


class _AtOnce:
    """Each batch when it comes."""

    def __init__(self, here: Preparation) -> None:
        self._here = here

    def add(self, batch: Batch) -> Iterable[tuple[Batch, Prepared]]:
        """Prepare a batch."""
        return ((batch, _prepare_here(batch, self._here)),)

    def finish(self) -> Iterable[tuple[Batch, Prepared]]:
        """Nothing waits."""
        return ()

    def close(self) -> None:
        """Nothing was opened."""


class _Ahead:
    """The next batches while one is written, so that a provider never waits for us to ask."""

    def __init__(self, here: Preparation) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._here = here
        self._waiting: deque[tuple[Batch, Future[Prepared]]] = deque()
        self._pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="plainmind-prepare")

    def add(self, batch: Batch) -> Iterable[tuple[Batch, Prepared]]:
        """Have a batch prepared; the first that waits, if there are enough behind it."""
        self._waiting.append((batch, self._pool.submit(_prepare_here, batch, self._here)))
        if len(self._waiting) <= _AHEAD:
            return ()
        first, made = self._waiting.popleft()
        return ((first, made.result()),)

    def finish(self) -> Iterable[tuple[Batch, Prepared]]:
        """Wait for the others."""
        for batch, made in self._waiting:
            yield batch, made.result()

    def close(self) -> None:
        """Let go of the threads; what is still on its way ends by itself, or when the embedder is closed."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class _TwoProcesses:
    """The process that has time takes the next batch; what is done waits until all before it are done."""

    def __init__(self, here: Preparation, tell: Callable[[str], None]) -> None:
        self._here = here
        self._tell = tell
        self._waiting: deque[tuple[Batch, Prepared | None]] = deque()
        self._other: SecondProcess | None = None
        try:
            self._other = SecondProcess(here.chunking, here.embedder.identity)
        except WorkerFailed as error:
            self._give_up(error)

    def add(self, batch: Batch) -> Iterable[tuple[Batch, Prepared]]:
        """Give a batch to the other process, or prepare it here; those that are done by now, in order."""
        self._give(batch)
        return self._finished(most_waiting=_MOST_WAITING)

    def finish(self) -> Iterable[tuple[Batch, Prepared]]:
        """Wait for the others."""
        return self._finished(most_waiting=0)

    def _give(self, batch: Batch) -> None:
        try:
            if self._other is not None and self._other.has_room and not _has_large(batch):
                self._other.give(_documents(batch))
                self._waiting.append((batch, None))
                return
        except WorkerFailed as error:
            self._give_up(error)
        self._waiting.append((batch, _prepare_here(batch, self._here)))

    def _finished(self, *, most_waiting: int) -> Iterator[tuple[Batch, Prepared]]:
        """The batches that are done, in order; waits for the first as long as more than so many wait behind it."""
        while self._waiting:
            batch, made = self._waiting[0]
            if made is None:
                made = self._take(batch, wait=len(self._waiting) > most_waiting)
            if made is None:
                return
            self._waiting.popleft()
            yield batch, made

    def _give_up(self, error: WorkerFailed) -> None:
        """Go on alone; what the other process had is prepared here when its turn comes."""
        self.close()
        self._tell(f"indexing took longer than it should: {error}")

    def close(self) -> None:
        """End the other process."""
        other, self._other = self._other, None
        if other is not None:
            other.close()

    def _take(self, batch: Batch, *, wait: bool) -> Prepared | None:
        try:
            if self._other is not None:
                return self._other.take(_documents(batch), wait=wait)
        except WorkerFailed as error:
            self._give_up(error)
        return _prepare_here(batch, self._here)


def _has_large(batch: Batch) -> bool:
    return any(len(file.document.text) > LARGE for file in batch)


def _prepare_here(batch: Batch, here: Preparation) -> Prepared:
    return here.prepare(_documents(batch), [file.known for file in batch])


def _documents(batch: Batch) -> list[Document]:
    return [file.document for file in batch]
