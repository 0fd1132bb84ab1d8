"""The conversations of one agent: a folder with a registry and one transcript a session."""

from __future__ import annotations

import os
import time

from plainmind.base.errors import ConflictError, NotFound, PlainmindError
from plainmind.base.value import value
from plainmind.files.ids import Clock, new_id
from plainmind.files.system import SYSTEM, System
from plainmind.sessions.entries import FORMATS, Entry, Transcript
from plainmind.sessions.places import REGISTRIES, check_id, check_key
from plainmind.sessions.registry import Sessions
from plainmind.sessions.session import Session
from plainmind.sessions.shelf import STRUCTURE, Shelf, find, refuse_taken
from plainmind.sessions.usage import COUNTERS, counted_to, marked


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

    @property
    def notices(self) -> tuple[str, ...]:
        """What was found damaged, and what became of it."""
        return tuple(self._shelf.registry.notices)

    def create(self, key: str, *, id: str | None = None, **fields: object) -> Session:  # noqa: A002
        """Begin a session under a key that is free; `fields` go into its entry. Raises ConflictError."""
        check_key(key)
        session_id = check_id(id) if id is not None else new_id(self.clock)
        with self._shelf.registry.holding(f"create session {session_id}") as held:
            refuse_taken(held.sessions, key, session_id)
            entry = self._shelf.new_entry(session_id, fields)
            transcript = self._shelf.transcript(entry)
            transcript.create(self._shelf.new_header(key, session_id, fields))
            held.sessions[key] = marked(entry, 0)
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
        raise self._shelf.unknown(name)

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
                size, changed_ms = self._shelf.measured(transcript.path)
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
            entry, _ = self._shelf.counted(found[1])
            path = self._shelf.transcript(entry).path
        _, changed_ms = self._shelf.measured(path)
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
        before = self._shelf.known(self._shelf.registry.read(), name)[1]
        prepared = self._shelf.counted(before)

        def change(sessions: Sessions) -> Entry:
            key, entry = self._shelf.known(sessions, name)
            is_same = counted_to(before) == counted_to(entry)
            fresh, place = prepared if is_same else self._shelf.counted(entry)
            settled = entry | {each: fresh[each] for each in COUNTERS if each in fresh}
            if place is not None:
                settled = marked(settled, place)
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
        from plainmind.sessions import forking

        check_key(key)
        origin = self.open(session) if isinstance(session, str) else session
        session_id, transcript = forking.fork(self._shelf, origin.transcript, key, at, fields)
        return Session(self, key, session_id, transcript)

    def archive(self, name: str) -> str:
        """Put a session away and free its key; the path of the archive, which stays searchable."""
        from plainmind.sessions import removing

        return removing.archive(self._shelf, name)

    def archives(self) -> tuple[str, ...]:
        """The archived transcripts, relative to the folder; `open` and `delete` take these names."""
        return tuple(self._shelf.places.archives())

    def delete(self, name: str) -> None:
        """Remove a session, by key or id, or an archive, by its name: transcript, torn lines, copies, entry."""
        from plainmind.sessions import removing

        removing.delete(self._shelf, name)

    def convert(self, format: str, name: str | None = None) -> int:  # noqa: A002
        """Write a session (all of them, and the registry's name, without `name`) in the other format; how many."""
        from plainmind.sessions import conversion

        _check_format(format)
        names = [name] if name is not None else [row.key for row in self.list()]
        changed = sum(conversion.convert(self._shelf, each, format) for each in names)
        if name is None:
            self._shelf.registry.move_to(REGISTRIES[format])
        return changed

    def transcript_at(self, path: str) -> Transcript:
        """The transcript with a path that `list` gave or that an archive has; the registry is not read for it."""
        return self._shelf.transcript_at(path)

    def transcript_now(self, session: Session) -> Transcript:
        """Find a session's transcript again that is not where it was. Raises NotFound when it is gone."""
        with self._shelf.registry.holding(f"look for session {session.id}") as held:
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
