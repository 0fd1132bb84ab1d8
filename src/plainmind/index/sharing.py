"""Batches of files prepared one after the other, by two processes when there is enough to do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from plainmind.base.model import Chunk, Document, FileState
from plainmind.base.value import value
from plainmind.index.preparing import COMPUTED_HERE, LARGE, Preparation, Prepared
from plainmind.index.second_process import WORTH_IT_BYTES, SecondProcess, WorkerFailed, can_share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from plainmind.notes.source import Piece

# Enough for many requests to a provider at once; or, where two processes share them, to be worth a message.
REMOTE_CHARACTERS = 250_000
SHARED_CHARACTERS = 125_000
BATCH_FILES = 256
_MOST_WAITING = 12
_AHEAD = 2


@value
class ReadFile:
    """A file that was read and waits to be prepared and written."""

    state: FileState
    document: Document
    replacing: str | None  # the hash that the index held for it
    erasures: object  # what `Erasures.stamp` was before it was read
    known: Sequence[Chunk] = ()  # its chunks in the index, of which the first may stay
    piece: Piece | None = (
        None  # what it is of a transcript; then it has no hash yet, and only the first replaces
    )


Batch: TypeAlias = "list[ReadFile]"


def batches(files: Iterable[ReadFile], most_characters: int) -> Iterator[Batch]:
    """Group files so that requests to an embedder cross file boundaries."""
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


def prepared(
    files: Iterable[ReadFile], here: Preparation, *, total_bytes: int, tell: Callable[[str], None]
) -> Generator[tuple[Batch, Prepared], None, None]:
    """Prepare files, in their order. `tell` hears why a second process did not help though it should have."""
    is_computed_here = here.embedder.identity.provider in COMPUTED_HERE
    read = batches(files, SHARED_CHARACTERS if is_computed_here else REMOTE_CHARACTERS)
    if not is_computed_here and total_bytes > REMOTE_CHARACTERS:
        yield from _prepared_ahead(read, here)
        return
    if total_bytes < WORTH_IT_BYTES or not can_share(here.embedder.identity):
        for batch in read:
            yield batch, _prepared_here(batch, here)
        return
    two = _Two(here, tell)
    try:
        for batch in read:
            two.add(batch)
            yield from two.finished(most_waiting=_MOST_WAITING)
        yield from two.finished(most_waiting=0)
    finally:
        two.close()


def _prepared_ahead(read: Iterable[Batch], here: Preparation) -> Iterator[tuple[Batch, Prepared]]:
    """Prepare the next batches while one is written, so that a provider never waits for us to ask."""
    from concurrent.futures import Future, ThreadPoolExecutor

    waiting: deque[tuple[Batch, Future[Prepared]]] = deque()
    pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="plainmind-prepare")
    try:
        for batch in read:
            waiting.append((batch, pool.submit(_prepared_here, batch, here)))
            if len(waiting) > _AHEAD:
                first, made = waiting.popleft()
                yield first, made.result()
        for last, made in waiting:
            yield last, made.result()
    finally:
        # What is still on its way when somebody gives up ends by itself, or when the embedder is closed.
        pool.shutdown(wait=False, cancel_futures=True)


class _Two:
    """Whoever has time takes the next batch; what is done waits until all before it are done."""

    def __init__(self, here: Preparation, tell: Callable[[str], None]) -> None:
        self._here = here
        self._tell = tell
        self._waiting: deque[tuple[Batch, Prepared | None]] = deque()
        self._other: SecondProcess | None = None
        with _giving_up(self):
            self._other = SecondProcess(here.chunking, here.embedder.identity)

    def add(self, batch: Batch) -> None:
        """Give a batch to the other process, or prepare it here."""
        with _giving_up(self):
            if self._other is not None and self._other.has_room and not _has_large(batch):
                self._other.give(_documents(batch))
                self._waiting.append((batch, None))
                return
        self._waiting.append((batch, _prepared_here(batch, self._here)))

    def finished(self, *, most_waiting: int) -> Iterator[tuple[Batch, Prepared]]:
        """The batches that are done, in order; waits for the first as long as more than so many wait behind it."""
        while self._waiting:
            batch, made = self._waiting[0]
            if made is None:
                made = self._taken(batch, wait=len(self._waiting) > most_waiting)
            if made is None:
                return
            self._waiting.popleft()
            yield batch, made

    def give_up(self, error: WorkerFailed) -> None:
        """Go on alone; what the other process had is prepared here when its turn comes."""
        self.close()
        self._tell(f"indexing took longer than it should: {error}")

    def close(self) -> None:
        """End the other process."""
        other, self._other = self._other, None
        if other is not None:
            other.close()

    def _taken(self, batch: Batch, *, wait: bool) -> Prepared | None:
        with _giving_up(self):
            if self._other is not None:
                return self._other.take(_documents(batch), wait=wait)
        return _prepared_here(batch, self._here)


class _giving_up:  # noqa: N801 (used as a verb)
    """A block in which the other process may turn out to have failed."""

    __slots__ = ("_two",)

    def __init__(self, two: _Two) -> None:
        self._two = two

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, WorkerFailed):
            return False
        self._two.give_up(error)
        return True


def _has_large(batch: Batch) -> bool:
    return any(len(file.document.text) > LARGE for file in batch)


def _prepared_here(batch: Batch, here: Preparation) -> Prepared:
    return here.prepare(_documents(batch), [file.known for file in batch])


def _documents(batch: Batch) -> list[Document]:
    return [file.document for file in batch]
