"""One conversation: added to, read, compacted and forked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from types import TracebackType

from plainmind.base.errors import LockTimeout, NotFound, PlainmindError, StorageFailure, WorkspaceError
from plainmind.base.value import value
from plainmind.files.ids import new_id
from plainmind.sessions.branch import Context, ContextBackwards, branch, context_of
from plainmind.sessions.entries import Draft, Entry, Placed, Transcript, complete_entry, id_of, iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from plainmind.sessions.store import SessionStore

_ENTRIES_A_WRITE = 256
_ANSWERS = frozenset({"toolResult", "tool"})  # worth nothing without the call that they answer


@value
class Health:
    """What a reading of the whole transcript found; `damaged` are the numbers of lines that cannot be read."""

    entries: int
    messages: int
    damaged: tuple[int, ...]


class Session:
    """A session of a store. Safe to share between threads; other processes may add to the same one."""

    def __init__(self, store: SessionStore, key: str | None, session_id: str, transcript: Transcript) -> None:
        self.key = key  # None: only the transcript is there, the registry does not know it
        self.id = session_id
        self._store = store
        self.transcript = transcript

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def path(self) -> str:
        """Where its transcript is."""
        return self.transcript.path

    @property
    def format(self) -> str:
        """`jsonl` or `json5`."""
        return self.transcript.format

    def append(self, given: Entry, *, id: str | None = None, look_back_bytes: int | None = None) -> str:  # noqa: A002
        """Add a message, or an entry of any type; its id. When this returns, it is on the disk.

        Give an `id` to be able to try again after an error or a crash without doubling the message: it is then looked
        for first, in the whole transcript or in its last `look_back_bytes`.
        """
        draft = self._draft(given, id, look_back_bytes)
        self._add([draft])
        return draft.entry["id"]  # type: ignore[no-any-return]

    def extend(self, many: Iterable[Entry], *, look_back_bytes: int | None = None) -> list[str]:
        """Add several in their order, some hundreds with one write and one sync; entries that have an `id` keep it."""
        ids: list[str] = []
        drafts = (self._draft(given, None, look_back_bytes) for given in many)
        while batch := list(islice(drafts, _ENTRIES_A_WRITE)):
            self._add(batch)
            ids += [draft.entry["id"] for draft in batch]
        return ids

    def read(self) -> Iterator[Placed]:
        """Give all entries with their line numbers, oldest first; lines that cannot be read come without entry."""
        return self.transcript.entries()

    def entries(self) -> Iterator[Entry]:
        """Give all entries that can be read, of every type and branch, oldest first."""
        return (placed.entry for placed in self.read() if placed.entry is not None)

    def messages(self) -> Iterator[dict[str, Any]]:
        """Give all messages, also those before a compaction, oldest first."""
        for entry in self.entries():
            message = entry.get("message")
            if entry.get("type") == "message" and isinstance(message, dict):
                yield message

    def tail(self, count: int) -> list[Entry]:
        """The entries of the last messages, oldest of them first; only the end of the transcript is read."""
        found = (
            placed.entry
            for placed in self.transcript.backwards()
            if placed.entry is not None and placed.entry.get("type") == "message"
        )
        return list(islice(found, max(0, count)))[::-1]

    def context(self) -> Context:
        """What a model would be given: the last summary, what it kept, and everything on this branch since.

        Only that much of the transcript is read, from its end, and held in memory.
        """
        return context_of(self.transcript.backwards, self._place_of)

    def compact(
        self,
        summary: str,
        *,
        keep: int = 0,
        through: str | None = None,
        tokens_before: int | None = None,
        tokens_after: int | None = None,
        details: object = None,
    ) -> str:
        """Replace in the context what was said so far by a summary, except the last `keep` messages; nothing is cut.

        Give as `through` the id of the last entry that the summary covers: what was added while it was written stays in
        the context too. A tool's answer is never kept without its call.
        """
        if not summary.strip():
            raise PlainmindError("a summary must say something", hint="nothing was compacted")
        own_id = new_id(self._store.clock)
        first = self._first_kept(keep, through)
        if tokens_before is None:
            tokens_before = self.entry().get("totalTokens", 0)
        entry: Entry = {
            "type": "compaction",
            "summary": summary,
            "firstKeptEntryId": first or own_id,
            "tokensBefore": tokens_before,
        }
        if tokens_after is not None:
            entry["tokensAfter"] = tokens_after
        if details is not None:
            entry["details"] = details
        self._add([self._draft(entry, own_id, 0)])
        self._settle()
        return own_id

    def reset(self, reason: str = "", *, first_kept: str | None = None) -> str:
        """Begin the context anew, from `first_kept` on or from nothing; the transcript keeps everything."""
        entry: Entry = {"type": "reset", "reason": reason}
        if first_kept is not None:
            entry["firstKeptEntryId"] = first_kept
        added = self.append(entry)
        self._settle()
        return added

    def back_to(self, entry_id: str | None) -> str:
        """Continue from an earlier entry, None for before the first: what came after it becomes another branch."""
        if entry_id is not None and not any(True for _ in branch(self.transcript.backwards, leaf=entry_id)):
            raise NotFound(f"there is no entry {entry_id} in {self.path}", hint="`entries()` lists them")
        return self.append({"type": "leaf", "targetId": entry_id})

    def fork(self, key: str, *, at: str | None = None, **fields: object) -> Session:
        """Begin another session with the branch up to an entry (the newest by default)."""
        return self._store.fork(self, key, at=at, **fields)

    def entry(self) -> Entry:
        """Its fields in the registry, counters and `updatedAt` as of now."""
        return self._store.entry(self.key or self.id)

    def check(self) -> Health:
        """Read everything once and count what cannot be read."""
        entries = messages = 0
        damaged: list[int] = []
        for placed in self.read():
            if placed.entry is None:
                damaged.append(placed.number)
            else:
                entries += 1
                messages += placed.entry.get("type") == "message"
        return Health(entries, messages, tuple(damaged))

    def close(self) -> None:
        """Write the counters down; a session that was never closed is only slower to count later."""
        self._settle()

    def path_to(self, at: str | None = None) -> Iterator[Placed]:
        """The branch that ends at an entry (the newest by default), newest first."""
        return branch(self.transcript.backwards, leaf=at)

    def _draft(self, given: Entry, chosen: str | None, look_back_bytes: int | None) -> Draft:
        clock = self._store.clock
        name = chosen if chosen or "role" in given else id_of(given)
        entry = complete_entry(given, name or new_id(clock), iso(clock()))
        return Draft(entry, name is not None and look_back_bytes != 0, look_back_bytes)

    def _add(self, drafts: list[Draft]) -> None:
        for _ in range(3):
            try:
                self.transcript.add(drafts)
            except NotFound:
                # Converted, or deleted: an earlier try may have got into what it was converted to.
                self.transcript = self._store.transcript_now(self)
                for draft in drafts:
                    draft.is_retry, draft.look_back_bytes = True, None
            else:
                return
        self.transcript.add(drafts)

    def _first_kept(self, keep: int, through: str | None) -> str | None:
        """The id of the first entry that a compaction leaves in the context; None when it leaves none."""
        later = self._later_than(through) if through is not None else set()
        first: Entry = {}
        name: str | None = None
        kept = 0
        for entry in ContextBackwards(self.transcript.backwards, self._place_of):
            if id_of(entry) not in later:
                if kept >= keep and not _is_answer(first):
                    break
                kept += 1
            first, name = entry, id_of(entry) or name
        return name

    def _later_than(self, through: str) -> set[str]:
        """The ids of what was added after the last entry that a summary covers."""
        later: set[str] = set()
        for placed in branch(self.transcript.backwards):
            name = id_of(placed.entry or {})
            if name == through:
                return later
            if name is not None:
                later.add(name)
        raise NotFound(
            f"there is no entry {through} in the present branch of {self.path}",
            hint="give the id of the last entry that the summary covers; nothing was compacted",
        )

    def _place_of(self, index: int) -> int | None:
        """Where the entry with an index of version 1 stands, which counts the header as 0."""
        found = next(islice(self.transcript.entries(), max(0, index - 1), None), None)
        return found.start if found is not None and index > 0 else None

    def _settle(self) -> None:
        if self.key is None:
            return
        try:
            self._store.settle(self.key)
        except (LockTimeout, StorageFailure, WorkspaceError) as error:
            # The transcript has it all: the next reader counts on from the old place. Failing here would only make
            # the caller believe that his compaction was not written, and write it twice.
            import logging

            logging.getLogger(__name__).warning(
                "the counters of %s are not written down yet: %s", self.key, error
            )


def _is_answer(entry: Entry) -> bool:
    message = entry.get("message")
    return isinstance(message, dict) and message.get("role") in _ANSWERS
