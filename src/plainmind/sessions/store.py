"""The conversations of one agent: a folder with a registry and one transcript a session."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from types import TracebackType

from plainmind.base.errors import (
    ConflictError,
    LockTimeout,
    NotFound,
    PlainmindError,
    StorageFailure,
    WorkspaceError,
)
from plainmind.base.value import value
from plainmind.files.append import Clock, new_id
from plainmind.files.system import SYSTEM, System
from plainmind.sessions.entries import (
    COUNTERS,
    FORMATS,
    Context,
    ContextBackwards,
    Draft,
    Entry,
    Placed,
    Transcript,
    branch,
    complete_entry,
    context_of,
    id_of,
    iso,
    place_of_count,
    with_place_of_count,
)
from plainmind.sessions.registry import REGISTRIES, Sessions, check_id, check_key
from plainmind.sessions.shelf import STRUCTURE, Shelf, find, refuse_taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


_ENTRIES_A_WRITE = 256
_ANSWERS = frozenset({"toolResult", "tool"})  # worth nothing without the call that they answer


@value
class Health:
    """What a reading of the whole transcript found; `damaged` are the numbers of lines that cannot be read."""

    entries: int
    messages: int
    damaged: tuple[int, ...]


@value
class SessionInfo:
    """One line of `list()`; `entry` is what the registry says, its counters as of when they were last written."""

    key: str
    id: str
    path: str
    format: str
    updated_ms: int
    size_bytes: int
    entry: Entry


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

    def extend(self, many: Iterable[Entry]) -> list[str]:
        """Add several in their order, some hundreds with one write and one sync; entries that have an `id` keep it."""
        ids: list[str] = []
        drafts = (self._draft(given, None, None) for given in many)
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

    def path_to(self) -> Iterator[Placed]:
        """The branch that ends at the newest entry, newest first."""
        return branch(self.transcript.backwards)

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


class SessionStore:
    """Opens, makes and removes sessions. A folder of OpenClaw's (`agents/<id>/sessions`) works as it is.

    Safe to share between threads and processes. Waiting for a lock ends after `timeout_s` with LockTimeout.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        clock: Clock = time.time,
        timeout_s: float = 10.0,
        system: System = SYSTEM,
    ) -> None:
        _check_format(format)
        self.clock = clock
        self._shelf = Shelf(
            os.fspath(folder), preferred=format, clock=clock, timeout_s=timeout_s, system=system
        )

    @property
    def folder(self) -> str:
        """Where everything is."""
        return self._shelf.places.folder

    def create(self, key: str, *, id: str | None = None, **fields: object) -> Session:  # noqa: A002
        """Begin a session under a key that is free; `fields` go into its entry. Raises ConflictError."""
        check_key(key)
        session_id = check_id(id) if id is not None else new_id(self.clock)
        with self._shelf.registry.hold(f"create session {session_id}") as held:
            refuse_taken(held.sessions, key, session_id)
            entry = self._shelf.new_entry(session_id, fields)
            transcript = self._shelf.transcript(entry)
            transcript.create(self._shelf.new_header(key, session_id, fields))
            held.sessions[key] = with_place_of_count(entry, 0)
            held.write()
        return Session(self, key, session_id, transcript)

    def open(self, name: str) -> Session:
        """Open a session by its key or its id, or an archive by its name. Raises NotFound."""
        found = find(self._shelf.registry.read(), name)
        if found is not None:
            key, entry = found
            return Session(self, key, entry["sessionId"], self._shelf.transcript(entry))
        for file in (f"{name}.jsonl", name):
            if file in self._shelf.places.transcripts() or file in self._shelf.places.archives():
                session_id = os.path.basename(file).partition(".json")[0]
                return Session(self, None, session_id, self._shelf.transcript({"sessionFile": file}))
        raise self._shelf.not_found(name)

    def open_or_create(self, key: str, **fields: object) -> Session:
        """Open the session of a key, or begin it; two processes that do so at once get the same one."""
        if key not in self._shelf.registry.read():
            try:
                return self.create(key, **fields)  # type: ignore[arg-type]
            except ConflictError:
                if key not in self._shelf.registry.read():
                    raise
        return self.open(key)

    def list(self) -> list[SessionInfo]:
        """List the sessions, the one with the newest message first."""
        rows: list[SessionInfo] = []
        for key, entry in self._shelf.registry.read().items():
            if isinstance(entry, dict) and isinstance(entry.get("sessionId"), str):
                transcript = self._shelf.transcript(entry)
                size, changed_ms = self._shelf.measure(transcript.path)
                updated_ms = max(changed_ms, _milliseconds(entry.get("updatedAt")))
                session_id = entry["sessionId"]
                rows.append(
                    SessionInfo(key, session_id, transcript.path, transcript.format, updated_ms, size, entry)
                )
        return sorted(rows, key=lambda row: (-row.updated_ms, row.key))

    def entry(self, name: str) -> Entry:
        """A session's fields in the registry, counters and `updatedAt` as of now."""
        found = find(self._shelf.registry.read(), name)
        if found is None:
            path = self.open(name).path
            session_id = os.path.basename(path).partition(".json")[0]
            entry: Entry = {"sessionId": session_id, "sessionFile": os.path.relpath(path, self.folder)}
        else:
            entry, _ = self._shelf.count(found[1])
            path = self._shelf.transcript(entry).path
        _, changed_ms = self._shelf.measure(path)
        return entry | {"updatedAt": max(changed_ms, _milliseconds(entry.get("updatedAt")))}

    def update(self, name: str, **fields: object) -> Entry:
        """Change fields of an entry (None removes one); all others stay, also those that are not known here."""
        wrong = STRUCTURE & fields.keys()
        if wrong:
            raise PlainmindError(
                f"`{min(wrong)}` says which transcript a key has, and is not changed",
                hint="use `create`, `fork`, `convert` or `archive`",
            )
        # A long transcript is counted before the lock is taken; only if another process did so too, again under it.
        before = self._shelf.require(self._shelf.registry.read(), name)[1]
        prepared = self._shelf.count(before)

        def change(sessions: Sessions) -> Entry:
            key, entry = self._shelf.require(sessions, name)
            is_same = place_of_count(before) == place_of_count(entry)
            fresh, place = prepared if is_same else self._shelf.count(entry)
            settled = entry | {each: fresh[each] for each in COUNTERS if each in fresh}
            if place is not None:
                settled = with_place_of_count(settled, place)
            if fields:
                settled |= {"updatedAt": self._shelf.now_ms(), **fields}
            sessions[key] = {
                each: found for each, found in settled.items() if found is not None or each not in fields
            }
            return dict(sessions[key])

        return self._shelf.registry.change(change, f"update session {name[:30]}")

    def settle(self, name: str) -> None:
        """Write a session's counters down, if it is still there."""
        if find(self._shelf.registry.read(), name) is not None:
            self.update(name)

    def fork(self, session: Session | str, key: str, *, at: str | None = None, **fields: object) -> Session:
        """Begin a session under a free key with the branch of another up to an entry, which stays as it is."""
        from plainmind.sessions.shelf import fork

        check_key(key)
        origin = self.open(session) if isinstance(session, str) else session
        session_id, transcript = fork(self._shelf, origin.transcript, key, at, fields)
        return Session(self, key, session_id, transcript)

    def archive(self, name: str) -> str:
        """Put a session away and free its key; the path of the archive, which stays searchable."""
        from plainmind.sessions.shelf import archive

        return archive(self._shelf, name)

    def archives(self) -> tuple[str, ...]:
        """The archived transcripts, relative to the folder; `open` and `delete` take these names."""
        return tuple(self._shelf.places.archives())

    def delete(self, name: str) -> None:
        """Remove a session, by key or id, or an archive, by its name: transcript, torn lines, copies, entry."""
        from plainmind.sessions.shelf import delete

        delete(self._shelf, name)

    def convert(self, format: str, name: str | None = None) -> int:  # noqa: A002
        """Write a session (all of them, and the registry's name, without `name`) in the other format; how many."""
        from plainmind.sessions.shelf import convert

        _check_format(format)
        names = [name] if name is not None else [row.key for row in self.list()]
        changed = sum(convert(self._shelf, each, format) for each in names)
        if name is None:
            self._shelf.registry.move_to(REGISTRIES[format])
        return changed

    def transcript_at(self, path: str) -> Transcript:
        """The transcript with a path that `list` gave or that an archive has; the registry is not read for it."""
        return self._shelf.transcript_at(path)

    def transcript_now(self, session: Session) -> Transcript:
        """Find a session's transcript again that is not where it was. Raises NotFound when it is gone."""
        with self._shelf.registry.hold(f"look for session {session.id}") as held:
            found = find(held.sessions, session.key) if session.key is not None else None
            if found is None or found[1]["sessionId"] != session.id:
                raise NotFound(
                    f"session {session.key or session.id} was deleted or archived meanwhile",
                    hint="nothing was acknowledged; create the session again to go on",
                )
            transcript = self._shelf.transcript(found[1])
            if not os.path.lexists(transcript.path):
                transcript.create(self._shelf.new_header(found[0], session.id, found[1]))
            return transcript


def _check_format(given: str | None) -> None:
    if given is not None and given not in FORMATS:
        raise PlainmindError(
            f"there is no transcript format `{given}`", hint=f"use one of {', '.join(FORMATS)}"
        )


def _milliseconds(found: object) -> int:
    return int(found) if isinstance(found, int | float) and 0 < found < 1e16 else 0
