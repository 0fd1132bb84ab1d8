"""Replacing or removing whole files: in one step, only if unchanged meanwhile, never for good; several of them as one.

Before a file changes, a small file says what is about to happen: names and hashes, never text. Whoever comes next and
finds it tells the journal of a change that a killed process could not tell it of, so that `undo` knows every change.
Before the first of several files changes, another one does the same for all of them: who finds that puts back what was
changed by then, and the journal knows of both.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from plainmind.base.errors import (
    ConflictError,
    NotFound,
    PathNotAllowed,
    PlainmindError,
    StorageFailure,
    WouldShrink,
    shell_word,
)
from plainmind.base.model import sha256_bytes
from plainmind.base.value import value
from plainmind.files.append import new_id
from plainmind.files.atomic import put_in_place, remove_abandoned, write_atomically, write_temporary
from plainmind.files.history import UNDO, History, Version, scrub
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    hold_lock,
    lock_path_for,
    make_folders,
    read_file,
    read_range,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_EMPTY = sha256_bytes(b"")
_SMALL_BYTES = 200  # a file of a few lines may lose half of them without a mistake


@value
class _Current:
    """The file as it was read under the lock."""

    data: bytes
    hash: str
    status: os.stat_result


def replace(
    path: str,
    new: bytes,
    *,
    base_hash: str | None,
    state_dir: str,
    history: History,
    reason: str,
    name: str | None = None,
    allow_shrink: bool = False,
    system: System = SYSTEM,
    timeout_s: float = 10.0,
) -> str:
    """Replace a file that still has the content `base_hash` (None: that does not exist yet); the hash of the new one.

    The old bytes go into the history first, under `name` (the path as cited; by default the path itself).
    When the content is another one by now, ConflictError: nothing is overwritten and `new` is kept as a
    conflict copy. When it already is `new`, the call succeeds, so that a retry after an error is harmless.
    `reason` is journalled: a few words about the operation, never text of the file. WouldShrink when most of
    the file would go without `allow_shrink`; PathNotAllowed for symlinks and hard links.
    """
    name = name or path
    new_hash = sha256_bytes(new)
    operation = f"replace {os.path.basename(path)}"
    with hold_lock(lock_path_for(state_dir, path), operation=operation, timeout_s=timeout_s, system=system):
        with explain_errors("read", path):
            current = _read_current(path, system, change="replaced")
        intent = _intent_of(state_dir, path)
        _settle(intent, None if current is None else current.hash, history, system)
        old_hash = current.hash if current is not None else None
        if old_hash not in {base_hash, new_hash}:
            raise _conflict(path, new, state_dir, system)
        if current is not None and not allow_shrink:
            _refuse_to_shrink(name, len(current.data), new)
        if current is not None:
            history.keep(name, current.data, reason)
        if old_hash != new_hash:
            facts = {"place": path, "name": name, "operation": reason, "base": old_hash}
            _intend(intent, system, **facts, new=new_hash, length=len(new))
        _swap_in(path, new, current, state_dir, system)
        history.record(name, operation=reason, new_hash=new_hash, length=len(new), previous=old_hash)
        _drop(intent, system)
    return new_hash


def _read_current(path: str, system: System, *, change: str) -> _Current | None:
    try:
        fd = system.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        status = system.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise PathNotAllowed(
                f"{path} is not a plain file with one name",
                hint=f"make it a file of its own: folders, devices and hard links are not {change}",
            )
        data = read_range(system, fd, 0, status.st_size)
    finally:
        system.close(fd)
    return _Current(data, sha256_bytes(data), status)


def _refuse_to_shrink(name: str, old_length: int, new: bytes) -> None:
    emptied = bool(old_length) and not new.strip()
    halved = old_length > _SMALL_BYTES and len(new) * 2 < old_length
    if emptied or halved:
        raise WouldShrink(
            f"{name} would shrink from {old_length} to {len(new)} bytes",
            hint="if that is meant, allow it explicitly (`allow_shrink`); nothing was written",
        )


def _swap_in(path: str, new: bytes, current: _Current | None, state_dir: str, system: System) -> None:
    folder = os.path.dirname(path) or "."
    with explain_errors("replace", path):
        make_folders(system, folder)
        remove_abandoned(path, system)
        temporary = write_temporary(path, new, 0o600, None if current is None else current.status, system)
        # People save without our lock. What they saved since we read it is theirs to keep.
        if not _is_unchanged(path, current, system):
            system.unlink(temporary)
            raise _conflict(path, new, state_dir, system)
        put_in_place(temporary, path, system)
    with explain_errors("replace", path, outcome="the new text is in place but may not survive a power cut"):
        system.fsync_folder(folder)


def _is_unchanged(path: str, current: _Current | None, system: System) -> bool:
    try:
        now = system.stat(path)
    except FileNotFoundError:
        return current is None
    if current is None:
        return False
    then = current.status
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (then.st_ino, then.st_size, then.st_mtime_ns)


def _conflict(path: str, wanted: bytes, state_dir: str, system: System) -> ConflictError:
    try:
        copy = keep_conflict_copy(state_dir, path, wanted, system=system)
    except PlainmindError as error:
        kept = f"your version could not be kept ({error})"
    else:
        kept = f"your version is kept in {copy}"
    return ConflictError(
        f"{path} was changed meanwhile; nothing was overwritten", hint=f"read it again; {kept}"
    )


def remove(
    path: str,
    *,
    base_hash: str | None,
    before: Callable[[bytes], object] | None = None,
    state_dir: str,
    history: History,
    reason: str,
    name: str | None = None,
    system: System = SYSTEM,
    timeout_s: float = 10.0,
) -> None:
    """Remove a file that still has the content `base_hash` (None: any); the history keeps it under `name`, as cited.

    `before` is called with the content while no other process can add to it; when it raises, nothing is removed.
    NotFound when it is gone already, ConflictError when it has changed, PathNotAllowed for symlinks and hard links:
    then nothing is removed. When the name is gone but the journal could not be told, the error says so.
    """
    name = name or path
    operation = "remove a file"  # the lock keeps the word, and the name may be what is to be forgotten
    with hold_lock(lock_path_for(state_dir, path), operation=operation, timeout_s=timeout_s, system=system):
        with explain_errors("read", path, outcome="nothing was removed"):
            current = _read_current(path, system, change="removed")
        intent = _intent_of(state_dir, path)
        _settle(intent, None if current is None else current.hash, history, system)
        if current is None:
            raise NotFound(f"{path} does not exist", hint="it may have been removed or renamed meanwhile")
        if base_hash not in {None, current.hash}:
            raise _refusal_to_remove(path)
        if before is not None:
            before(current.data)
        history.keep(name, current.data, reason)
        facts = {"place": path, "name": name, "operation": reason, "base": current.hash}
        _intend(intent, system, **facts, new=None, length=0)
        with explain_errors("remove", path, outcome="nothing was removed"):
            # People save without our lock; what they saved since is theirs to keep.
            if not _is_unchanged(path, current, system):
                raise _refusal_to_remove(path)
            system.unlink(path)
        with explain_errors("remove", path, outcome="it is removed, but may come back after a power cut"):
            system.fsync_folder(os.path.dirname(path) or ".")
        try:
            history.record(
                name, operation=reason, new_hash=sha256_bytes(b""), length=0, previous=current.hash
            )
        except PlainmindError as error:
            raise StorageFailure(
                f"{name} is removed and kept, but the journal does not know that: {error}",
                hint="do not remove it again; " + (error.hint or "check the disk"),
            ) from error
        _drop(intent, system)


def _refusal_to_remove(path: str) -> ConflictError:
    return ConflictError(f"{path} was changed meanwhile; it was not removed", hint="read it again")


# --- what is about to happen to a file ---


def settle_changes(state_dir: str, history: History, *, system: System = SYSTEM) -> None:
    """Tell the journal of every change that a process made before it was killed, and could not tell it of."""
    folder = os.path.join(state_dir, _INTENTS)
    with explain_errors("list", folder, outcome="nothing was changed"):
        try:
            names = [name for name in system.listdir(folder) if name.endswith(".json") and name[0] != "."]
        except FileNotFoundError:
            return
    for name in names:
        intent = os.path.join(folder, name)
        path = str(_read_intent(intent, system).get("place") or "")
        if not path or _intent_of(state_dir, path) != intent:
            _drop(intent, system)
            continue
        with hold_lock(lock_path_for(state_dir, path), operation="recover", system=system):
            with explain_errors("read", path, outcome="nothing was changed"):
                try:
                    now = sha256_bytes(read_file(path, system=system))
                except FileNotFoundError:
                    now = None
            _settle(intent, now, history, system)


_INTENTS = "changing"


def _intent_of(state_dir: str, path: str) -> str:
    lock = os.path.basename(lock_path_for(state_dir, path))
    return os.path.join(state_dir, _INTENTS, lock.removesuffix(".lock") + ".json")


def _intend(intent: str, system: System, **facts: str | int | None) -> None:
    """Say which file is about to become what; without a hash of the new content it is to go."""
    write_atomically(intent, json.dumps(facts).encode(), system=system)


def _settle(intent: str, now: str | None, history: History, system: System) -> None:
    """Tell the journal of a change that was made and not told; a file that is something else by now was not ours."""
    facts = _read_intent(intent, system)
    if not facts:
        return
    base, new = facts.get("base"), facts.get("new")
    # An undo that was killed is finished by the next one, which tells the journal of it.
    if now == new and now != base and not str(facts["operation"]).startswith(f"{UNDO} "):
        name, operation = str(facts["name"]), str(facts["operation"])
        told = next(iter(history.versions(name)), None)
        if told is None or (told.hash, told.operation) != (new or _EMPTY, operation):
            history.record(
                name, operation=operation, new_hash=new or _EMPTY, length=int(facts["length"]), previous=base
            )
    _drop(intent, system)


def _read_intent(intent: str, system: System) -> Mapping[str, Any]:
    with explain_errors("read", intent, outcome="nothing was changed"):
        try:
            facts = json.loads(read_file(intent, system=system))
        except FileNotFoundError:
            return {}
        except ValueError:  # written by something else: ours are there whole or not at all
            return {}
    return facts if isinstance(facts, dict) else {}


def _drop(intent: str, system: System) -> None:
    """Take back that something is about to happen; one that comes back after a power cut is settled again."""
    with explain_errors("remove", intent, outcome="the file is written"), suppress(FileNotFoundError):
        system.unlink(intent)


# --- texts that could not be saved because their file had changed, kept outside the workspace ---


def keep_conflict_copy(state_dir: str, path: str, wanted: bytes, *, system: System = SYSTEM) -> str:
    """Keep the text that was to be saved at `path`; the name of the copy."""
    stem, extension = os.path.splitext(os.path.basename(path))
    copy = os.path.join(state_dir, "conflicts", f"{stem[:100]}.conflict-{new_id()}{extension}")
    write_atomically(copy, wanted, system=system)
    return copy


def conflict_copies(state_dir: str, *, system: System = SYSTEM) -> list[str]:
    """List the copies that wait to be read, oldest first."""
    folder = os.path.join(state_dir, "conflicts")
    with explain_errors("list", folder, outcome="nothing was changed"):
        try:
            names = system.listdir(folder)
        except FileNotFoundError:
            return []
    return [os.path.join(folder, name) for name in sorted(names, key=_age)]


def erase_conflict_copies(
    state_dir: str, matches: Callable[[bytes], bool], *, system: System = SYSTEM
) -> int:
    """Destroy the copies that contain forgotten text; how many there were."""
    erased = 0
    for copy in conflict_copies(state_dir, system=system):
        with explain_errors("erase", copy, outcome="its bytes are still on the disk"):
            if matches(read_file(copy, system=system)):
                scrub(copy, system)
                erased += 1
    return erased


def _age(name: str) -> str:
    return name.rpartition(".conflict-")[2]


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
