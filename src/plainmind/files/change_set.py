"""Several files changed as one: all of them or none, also when the process is killed on its way, and one undo for all.

Before the first file changes, a small file says what is about to happen: names and hashes, never text. Whoever comes
next and finds it puts back what was changed by then, and the journal of the history knows of both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from plainmind.base.errors import ConflictError, NotFound, PlainmindError, shell_word
from plainmind.base.model import sha256_bytes
from plainmind.base.value import value
from plainmind.files.atomic import write_atomically
from plainmind.files.history import UNDO, History, Version
from plainmind.files.ids import new_id
from plainmind.files.replace import remove, replace
from plainmind.files.system import SYSTEM, System, explain_errors, hold_lock, read_file

_EMPTY = sha256_bytes(b"")


@value
class FileChange:
    """What a file is to become; `base_hash` is what it is now, None when it is not there."""

    name: str  # as cited
    place: str  # on disk
    base_hash: str | None
    new: bytes


@value
class _Intent:
    """What was about to happen to one file."""

    name: str
    place: str
    base: str | None
    new: str


class ChangeSets:
    """The sets of one workspace, one at a time."""

    def __init__(self, *, state_dir: str, history: History, system: System = SYSTEM) -> None:
        self._state_dir = state_dir
        self._history = history
        self._system = system
        self._plan = os.path.join(state_dir, "change-set.json")

    def apply(self, changes: Sequence[FileChange], *, reason: str, set_id: str | None = None) -> str:
        """Change all files or none; what the journal calls it: the reason and an id. ConflictError when one differs.

        Who gives the `set_id` can ask later, by `is_made`, whether it was done.
        """
        operation = f"{reason} {set_id or new_id()}"
        with self._alone(operation):
            self._put_back_unfinished()
            for change in changes:
                if self._hash_of(change.place) != change.base_hash:
                    raise ConflictError(
                        f"`{change.name}` was changed meanwhile; nothing was written", hint="look at it again"
                    )
            self._write_plan(operation, changes)
            try:
                for change in changes:
                    self._replace(change.name, change.place, change.base_hash, change.new, operation)
            except PlainmindError:
                self._put_back_unfinished()
                raise
            self._remove_plan()
        return operation

    def is_made(self, operation: str) -> bool:
        """Whether a set was changed and not taken back since."""
        lines = self._history.versions()
        undone = {line.operation.removeprefix(f"{UNDO} ") for line in lines}
        return any(line.operation == operation and line.id not in undone for line in lines)

    def recover(self) -> tuple[str, ...]:
        """Put back what a killed process had changed of a set; the names of those files."""
        if not os.path.exists(self._plan):
            return ()
        with self._alone("recover"):
            return self._put_back_unfinished()

    def take_back(self, changes: Sequence[Version], places: Sequence[str]) -> None:
        """Give files the content that they had before some changes, newest first; all of them or none.

        ConflictError when one is neither as its change has left it nor as it was before, or that is not kept any more.
        """
        with self._alone("undo"):
            self._put_back_unfinished()
            for change, place in zip(changes, places, strict=True):
                self._require_way_back(change, self._hash_of(place))
            for change, place in zip(changes, places, strict=True):
                self._take_back(change, place)

    def _put_back_unfinished(self) -> tuple[str, ...]:
        operation, intents = self._read_plan()
        put_back: list[str] = []
        for intent in reversed(intents):
            told = self._told(intent, operation)
            if self._hash_of(intent.place) == intent.new and intent.new != intent.base:
                if told is None:  # killed between the change and its line in the journal
                    told = self._history.record(
                        intent.name, operation=operation, new_hash=intent.new, length=0, previous=intent.base
                    )
                put_back.append(intent.name)
            if told is not None and self._is_way_back(told, self._hash_of(intent.place)):
                self._take_back(told, intent.place)
        self._remove_plan()
        return tuple(put_back)

    def _told(self, intent: _Intent, operation: str) -> Version | None:
        """The line of the journal about a change of the set, unless it was taken back."""
        versions = self._history.versions(intent.name)
        found = next((version for version in versions if version.operation == operation), None)
        if found is not None and any(version.operation == f"{UNDO} {found.id}" for version in versions):
            return None
        return found

    def _is_way_back(self, change: Version, now: str | None) -> bool:
        is_as_left = (now or _EMPTY) == change.hash
        is_kept = change.previous is None or self._history.content(change.previous) is not None
        return now == change.previous or (is_as_left and is_kept)

    def _require_way_back(self, change: Version, now: str | None) -> None:
        if self._is_way_back(change, now):
            return
        as_left = (now or _EMPTY) == change.hash
        why = "had a content that is not kept any more" if as_left else "was changed since"
        raise ConflictError(
            f"`{change.path}` {why}; nothing was undone",
            hint=f"`plainmind history {shell_word(change.path)}` lists what can be restored",
        )

    def _take_back(self, change: Version, place: str) -> None:
        reason, now = f"{UNDO} {change.id}", self._hash_of(place)
        if now == change.previous:  # an undo was killed between the change and its line in the journal
            self._history.record(
                change.path, operation=reason, new_hash=now or _EMPTY, length=0, previous=change.hash
            )
        elif change.previous is None:
            remove(
                place,
                base_hash=now,
                state_dir=self._state_dir,
                history=self._history,
                reason=reason,
                name=change.path,
                system=self._system,
            )
        else:
            before = self._history.content(change.previous)
            if before is None:
                raise NotFound(f"what `{change.path}` was is not kept any more", hint="it stays as it is")
            self._replace(change.path, place, now, before, reason)

    def _replace(self, name: str, place: str, base: str | None, new: bytes, reason: str) -> None:
        replace(
            place,
            new,
            base_hash=base,
            state_dir=self._state_dir,
            history=self._history,
            reason=reason,
            name=name,
            allow_shrink=True,
            system=self._system,
        )

    def _hash_of(self, place: str) -> str | None:
        with explain_errors("read", place, outcome="nothing was changed"):
            try:
                return sha256_bytes(read_file(place, system=self._system))
            except FileNotFoundError:
                return None

    def _write_plan(self, operation: str, changes: Sequence[FileChange]) -> None:
        files = [[each.name, each.place, each.base_hash, sha256_bytes(each.new)] for each in changes]
        data = json.dumps({"operation": operation, "files": files}).encode()
        write_atomically(self._plan, data, system=self._system)

    def _read_plan(self) -> tuple[str, list[_Intent]]:
        with explain_errors("read", self._plan, outcome="nothing was changed"):
            try:
                plan = json.loads(read_file(self._plan, system=self._system))
            except FileNotFoundError:
                return "", []
        return plan["operation"], [_Intent(*each) for each in plan["files"]]

    def _remove_plan(self) -> None:
        with explain_errors("remove", self._plan, outcome="the files are written"):
            try:
                self._system.unlink(self._plan)
                self._system.fsync_folder(self._state_dir)
            except FileNotFoundError:
                return

    @contextmanager
    def _alone(self, operation: str) -> Iterator[None]:
        lock = os.path.join(self._state_dir, "change-set.lock")
        with hold_lock(lock, operation=operation, system=self._system):
            yield
