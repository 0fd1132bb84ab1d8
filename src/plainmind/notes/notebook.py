"""The workspace as something to write in: notes are appended, text is edited and lines are removed."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from datetime import datetime

from plainmind.base.errors import (
    ConflictError,
    NotFound,
    PathNotAllowed,
    PlainmindError,
    StorageFailure,
    WorkspaceError,
    check_text,
    check_texts,
    shell_word,
)
from plainmind.base.lazy import pattern
from plainmind.base.model import PRIVATE, sha256_bytes, split_lines
from plainmind.base.value import value
from plainmind.files.append import Appended, Tail, append, new_id
from plainmind.files.history import APPEND, UNDO, History, Version
from plainmind.files.jsonl import open_plain_file
from plainmind.files.replace import ChangeSets, FileChange, remove, replace, settle_changes
from plainmind.files.safe_open import check_relative, name_refusal
from plainmind.files.system import Erasures, explain_errors, hold_lock, lock_path_for
from plainmind.notes.discovery import MAX_DEPTH, is_conflict_copy
from plainmind.notes.scopes import folder_of_scope
from plainmind.notes.workspace import (
    CURATED,
    OWN_IGNORE,
    UTF_8,
    LineDays,
    Workspace,
    as_written,
    byte_lines,
    day_of,
    decode,
    encode_text,
    encoding_of,
    is_plain_text,
)
from plainmind.text.note_format import day_header, find_note, format_note, joins_section

# A note longer than this is a document: it belongs in a file of its own.
MAX_NOTE_CHARS = 200_000

# A try that came to nothing is repeated soon after, on whichever day that is, and whatever the clock did meanwhile.
_MOST_LOGS = 400
_LOG = pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md", re.ASCII)

_BLOCK_BYTES = 1 << 20
_HEAD_BYTES = 1 << 12
_TAIL_BYTES = 1 << 16


@value
class Remembered:
    """Where a note stands now."""

    path: str
    start_line: int
    end_line: int
    id: str
    missing: tuple[
        str, ...
    ] = ()  # ids of notes that were in the file and are not any more: found out on the way


@value
class Edited:
    """What a file is after an edit; `line` is where the new text begins."""

    path: str
    line: int
    hash: str


@value
class Undone:
    """A change that was taken back."""

    path: str
    operation: str  # `append` for a note, else what had changed the file: `edit`, `restore`, …
    text: str = ""  # of a note
    others: tuple[str, ...] = ()  # files that were changed as one with it
    remarks: tuple[str, ...] = ()  # which later notes were gone already


@value
class ForgottenLines:
    """Lines that go, and what they say."""

    path: str
    start_line: int
    end_line: int
    text: str
    base_hash: str  # of the file they were chosen in


@value
class ForgottenEntry:
    """An entry of the entry memory that goes, and what it says."""

    id: str
    text: str
    scope: str


@value
class Forgotten:
    """What was forgotten, or would be."""

    lines: tuple[ForgottenLines, ...]
    text: str | None = None  # what every one of them contains, when they were chosen by a text
    note_id: str | None = None  # of the note that they are, when they were chosen by its id
    applied: bool = False
    versions_cleaned: int = 0
    entries: tuple[ForgottenEntry, ...] = ()
    is_of_notes: bool = True  # whether anything of the notes goes, be it from older versions alone
    remarks: tuple[str, ...] = ()  # what could not be looked into, and what will stand in the way


class Notebook:
    """Writes to one workspace. Every change goes through `files/` and into the history."""

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        *,
        erasures: Erasures,
        state_dir: str,
        now: Callable[[], datetime],
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._erasures = erasures
        self._state_dir = state_dir
        self._now = now
        self._change_sets = ChangeSets(state_dir=state_dir, history=history)
        self.line_days = LineDays(state_dir)

    def remember(self, text: str, *, durable: bool = False, note_id: str | None = None) -> Remembered:
        """Append a note to today's log, or to the curated memory; on disk when this returns.

        A `note_id` that already stands there is not written again, as `remember_for` says.
        """
        if not durable:
            return self.remember_for(PRIVATE, text, note_id=note_id)
        path = self._curated_path()
        if note_id is not None and path in self._history.paths_of(note_id):
            return self._standing_note(path, note_id)
        note_id = note_id or new_id(self._now().timestamp)
        joins = self._joins_section(path, is_durable=True)
        note = format_note(_check_note(text), note_id=note_id, clock_time=None, joins_section=joins)
        return self._append(path, note, note_id, header=_header_of(path))

    def remember_for(self, scope: str, text: str, *, note_id: str | None = None) -> Remembered:
        """Append a note to today's log of a scope: that of a group or a person lies in a folder of their own.

        A `note_id` that already stands in a log of the scope, of whatever day, is not written again: its place is
        answered. Raises ConflictError for one that was written and removed since.
        """
        text = _check_note(text)
        folder = self._folder_for(scope)
        if note_id is None:
            now = self._now()
            return self._append_to_log(text, folder, new_id(now.timestamp), now)
        lock = lock_path_for(self._state_dir, os.path.join(self._workspace.root.real, folder))
        # Two that try the same note, one before and one after midnight, would not meet at the lock of a day.
        with hold_lock(lock, operation=f"append a note to {folder}"):
            standing = find_standing_note(self._workspace, folder, note_id)
            if standing is not None:
                return Remembered(*standing, note_id)
            if any(os.path.dirname(path) == folder for path in self._history.paths_of(note_id)):
                raise _removed_since()
            return self._append_to_log(text, folder, note_id, self._now())

    def _standing_note(self, path: str, note_id: str) -> Remembered:
        found = find_note(split_lines(decode(self.read_bytes(path)[1])), note_id)
        if found is None:
            raise _removed_since()
        return Remembered(path, *found, note_id)

    def _folder_for(self, scope: str) -> str:
        """The folder of a scope's logs, as cited."""
        folder = "memory" if scope == PRIVATE else folder_of_scope(scope)
        if folder is None:
            raise WorkspaceError(
                f"no notes can be kept for `{scope[:80]}`",
                hint="only groups and people with an id have a folder",
            )
        parent, _, name = folder.rpartition("/")
        real = os.path.join(self._workspace.root.real, folder)
        if parent and os.path.isdir(real) and name not in os.listdir(os.path.dirname(real)):
            raise WorkspaceError(
                f"the folder of another one is in the place of `{folder}`: this disk takes both names for the same",
                hint="keep the workspace on a disk that tells upper from lower case",
            )
        return folder

    def _append_to_log(self, text: str, folder: str, note_id: str, now: datetime) -> Remembered:
        path = f"{folder}/{now.date().isoformat()}.md"
        joins = self._joins_section(path, is_durable=False)
        note = format_note(text, note_id=note_id, clock_time=now.strftime("%H:%M"), joins_section=joins)
        return self._append(path, note, note_id, header=_header_of(path))

    def _joins_section(self, path: str, *, is_durable: bool) -> bool:
        """Whether a list item at the end of a file would stand under a heading that is not its own."""
        root, relative = self._workspace.place_of(path)
        target = os.path.join(root.real, relative)
        if not os.path.isfile(target):
            return False
        with open_plain_file(target) as fd, explain_errors("read", target):
            end = os.fstat(fd).st_size
            tail = os.pread(fd, _TAIL_BYTES, max(0, end - _TAIL_BYTES))
        return joins_section(split_lines(decode(tail)), is_durable=is_durable)

    def _append(self, path: str, note: str, note_id: str, *, header: str) -> Remembered:
        record = note.encode("utf-8", "replace")
        target = self._target(path)
        appended = self._append_record(path, target, record, note_id, header)
        try:
            self._history.record(
                path,
                operation=APPEND,
                new_hash=sha256_bytes(record),
                length=len(record),
                previous=None,
                record_id=note_id,
                text=record.decode(),
                made=appended.created,
            )
        except PlainmindError as error:
            raise StorageFailure(
                f"the note is in `{path}`, but the history does not know of it: {error}",
                hint="do not write it again; " + (error.hint or "check the disk"),
            ) from error
        first = _line_at(target, appended.offset)
        # Whoever changed the file since the last note may have had an older one open, and saved over notes.
        missing = self.missing_notes(path) if appended.was_changed else ()
        return Remembered(path, first, first + note.count("\n") - 1, note_id, tuple(v.id for v in missing))

    def missing_notes(self, path: str | None = None) -> tuple[Version, ...]:
        """Notes of the last days that are in no file any more, though nothing of ours removed them."""
        missing = self._history.missing(self._content, path=path)
        if missing:
            files = [self._content(found.path) or b"" for found in self._workspace.discover().files]
            missing = [
                version for version in missing if not any(version.id.encode() in data for data in files)
            ]
        return tuple(missing)

    def _content(self, path: str) -> bytes | None:
        try:
            return self.read_bytes(path)[1]
        except PlainmindError:
            return None  # it is gone with all that was in it, or cannot be read: neither is a save

    def edit(
        self, path: str, old: str, new: str, *, base_hash: str | None = None, allow_shrink: bool = False
    ) -> Edited:
        """Replace a text that stands exactly once in a file; with `base_hash`, only if the file is still that one."""
        check_texts(path=path, old=old, new=new)
        # What is read here is written later, perhaps as a conflict copy: nothing may be forgotten between the two.
        with self._erasures.hold_off():
            return self._edit(path.removeprefix("./"), old, new, base_hash, allow_shrink=allow_shrink)

    def _edit(self, path: str, old: str, new: str, base_hash: str | None, *, allow_shrink: bool) -> Edited:
        target, data = self.read_bytes(path)
        found_hash, was_wide = sha256_bytes(data), _is_wide(data)
        data, encode = _as_utf_8(path, data)
        wanted, wished = _in_endings_of(data, old), _in_endings_of(data, new)
        count = data.count(wanted) if wanted else 0
        if count != 1:
            raise _not_exactly_once(path, data, wanted, count)
        start = data.index(wanted)
        edited = encode(data[:start] + wished + data[start + len(wanted) :])
        if _is_wide(edited) != was_wide:  # without a mark, its bytes alone tell how they are to be read
            raise PlainmindError(
                f"`{path}` would be read in another encoding than now, and say something else",
                hint="save the file as UTF-8 in an editor, then try again; nothing was written",
            )
        base = base_hash or found_hash
        new_hash = self._replace(path, target, edited, base, reason="edit", allow_shrink=allow_shrink)
        self.line_days.tell(path, data, edited, self._now().date())
        return Edited(path, _line_of(data, start), new_hash)

    def change(
        self, wanted: Sequence[tuple[str, str | None, bytes]], *, reason: str, set_id: str | None = None
    ) -> str:
        """Give files new contents, all or none, with one undo for all; what the journal calls it.

        Each is a path, the hash of what it is now (None: it is not there), and what it is to become.
        """
        with self._erasures.hold_off():
            changes = [FileChange(path, self._target(path), base, new) for path, base, new in wanted]
            return self._change_sets.apply(changes, reason=reason, set_id=set_id)

    def is_made(self, operation: str) -> bool:
        """Whether a change that the journal calls so was made and not taken back since."""
        return self._change_sets.is_made(operation)

    def recover(self) -> tuple[str, ...]:
        """Put back what a killed process had changed of several files that belong together; their names.

        Of a single file that it had changed, the journal is told: `undo` knows it.
        """
        put_back = self._change_sets.recover()
        settle_changes(self._state_dir, self._history)
        return put_back

    def write(self, path: str, text: str, *, base_hash: str | None, allow_shrink: bool = False) -> Edited:
        """Give a file a whole new text if it is still what `base_hash` stands for; None: if there is none yet.

        Encoding and line endings stay those of the file. ConflictError when it has changed, or is there already.
        """
        check_texts(path=path, text=text)
        path = path.removeprefix("./")
        with self._erasures.hold_off():
            if base_hash is None:
                return self._create(path, encode_text(_in_plain_lines(text)))
            target, data = self.read_bytes(path)
            if sha256_bytes(data) != base_hash:
                raise ConflictError(
                    f"`{path}` has changed meanwhile; nothing was written", hint="read it again"
                )
            if not is_plain_text(data):
                raise PlainmindError(
                    f"`{path}` has bytes that are no text: written as a whole, it would lose them",
                    hint="replace only a part of it, or save it as UTF-8 in an editor",
                )
            known, encode = _as_utf_8(path, data)
            mark = known[: len(BOM_UTF8)] if known.startswith(BOM_UTF8) else b""
            written = encode(mark + _in_endings_of(known, text))
            new_hash = self._replace(
                path, target, written, base_hash, reason="edit", allow_shrink=allow_shrink
            )
            self.line_days.tell(path, data, written, self._now().date())
            return Edited(path, 1, new_hash)

    def _create(self, path: str, data: bytes) -> Edited:
        check_new_note(path)
        if len(data) > self._workspace.max_file_bytes:
            raise PathNotAllowed(
                f"`{path}` would have {len(data):,} bytes; the limit is {self._workspace.max_file_bytes:,}",
                hint="write several files",
            )
        try:
            target = self._target(path)
        except NotFound as error:  # it never was part of the memory
            raise self._workspace.no_place_for(path) from error
        if os.path.lexists(target):
            raise ConflictError(f"`{path}` already exists", hint="choose another name")
        new_hash = self._replace(path, target, data, None, reason="create")
        try:
            self._workspace.locate(path)
        except PathNotAllowed:  # a rule of the workspace leaves it out: it would never be found
            remove(
                target,
                base_hash=new_hash,
                state_dir=self._state_dir,
                history=self._history,
                reason=f"{UNDO} {self._history.versions(path)[0].id}",
                name=path,
            )
            raise
        self.line_days.tell(path, b"", data, self._now().date())
        return Edited(path, 1, new_hash)

    def _replace(
        self,
        path: str,
        target: str,
        new: bytes,
        base_hash: str | None,
        *,
        reason: str,
        allow_shrink: bool = True,
    ) -> str:
        return replace(
            target,
            new,
            base_hash=base_hash,
            state_dir=self._state_dir,
            history=self._history,
            reason=reason,
            name=path,
            allow_shrink=allow_shrink,
        )

    def undo(self) -> Undone:
        """Take back the latest change that was made through here. Raises NotFound, or ConflictError when it cannot.

        A note that somebody else removed counts as taken back, and the change before it is the latest.
        """
        with self._erasures.hold_off():
            self.recover()
            gone: list[str] = []
            while True:
                changes = self._history.latest_changes()
                try:
                    undone = self._take_back(changes)
                except PlainmindError as error:
                    if gone:
                        raise type(error)("; ".join((str(error), *gone)), hint=error.hint) from error
                    raise
                if undone is not None:
                    return Undone(undone.path, undone.operation, undone.text, undone.others, tuple(gone))
                gone.append(f"a later note was gone from `{changes[0].path}` already")

    def _take_back(self, changes: Sequence[Version]) -> Undone | None:
        """Take back what was changed as one; None for a note that was gone, of which the journal knows now."""
        if not changes:
            raise NotFound("there is nothing to undo", hint="`plainmind history` lists what was changed")
        change = changes[0]
        if change.operation == APPEND:
            return self._take_back_note(change)
        if change.operation == "forget":
            raise PlainmindError(
                f"the latest change has forgotten lines of `{change.path}` for good",
                hint="nothing can bring them back; `plainmind restore` undoes an earlier change",
            )
        self._change_sets.take_back(changes, [self._target(each.path) for each in changes])
        return Undone(
            change.path,
            change.operation.partition(" ")[0],
            others=tuple(each.path for each in changes[1:]),
        )

    def _take_back_note(self, change: Version) -> Undone | None:
        reason, data = f"{UNDO} {change.id}", b""
        is_begun = any(each.operation == f"before {reason}" for each in self._history.versions(change.path))
        try:
            _, data = self.read_bytes(change.path)
        except NotFound:
            # Its disk may not be mounted; we remove a file only where there are others.
            if not self._workspace.discover().files:
                raise
        found = find_note(split_lines(decode(data)), change.id)
        if found is None:
            now = sha256_bytes(data)
            self._history.record(change.path, operation=reason, new_hash=now, length=len(data), previous=now)
            return Undone(change.path, change.operation, change.text or "") if is_begun else None
        self.remove_lines(change.path, [found], base_hash=sha256_bytes(data), reason=reason)
        return Undone(change.path, change.operation, change.text or "")

    def remove_lines(
        self, path: str, ranges: Sequence[tuple[int, int]], *, base_hash: str, reason: str = "forget"
    ) -> None:
        """Take lines out of a file, the bytes of all others unchanged."""
        target, data = self.read_unchanged(path, base_hash)
        doomed = {line for first, last in ranges for line in range(first, last + 1)}
        kept = b"".join(line for number, line in enumerate(byte_lines(data), 1) if number not in doomed)
        kept = as_written(kept, encoding_of(data))
        # What is left of a file that we made is what we wrote above the first note; of another one that is to be
        # forgotten nothing is left, and its name may be what was to be forgotten.
        is_bare = kept == _header_of(path).encode() and self._history.has_made(path, data)
        is_bare = is_bare and self._has_others(path)
        is_forgotten = reason == "forget" and (is_bare or not kept.strip()) and path not in CURATED
        if not (is_forgotten or (is_bare and reason != "forget")):
            self._replace(path, target, kept, base_hash, reason=reason)
        else:
            remove(
                target,
                base_hash=base_hash,
                state_dir=self._state_dir,
                history=self._history,
                reason=reason,
                name=path,
            )

    def _has_others(self, path: str) -> bool:
        """Whether there are other files: without any, an index would wait whether a disk is only not mounted."""
        return any(found.path != path for found in self._workspace.discover().files)

    def restore(self, version_id: str) -> Edited:
        """Bring back what a file was; what it is now goes into the history first."""
        with self._erasures.hold_off():  # or a version that is being forgotten would come back
            return self._restore(version_id)

    def keep(self, path: str, *, reason: str) -> str:
        """Put what a file is now into the history; where it is on disk."""
        with self._erasures.hold_off():
            place, data = self.read_bytes(path)
            self._history.keep(path.removeprefix("./"), data, reason)
        return place

    def tell_edited(self, path: str, *, base_hash: str, reason: str) -> None:
        """Tell the history what an editor has made of a file that was kept, so that it can be undone.

        Where something else was written meanwhile it is not told: undoing the edit would take that back, too.
        """
        path = path.removeprefix("./")
        with self._erasures.hold_off():
            _, data = self.read_bytes(path)
            new_hash, latest = sha256_bytes(data), self._history.versions(path)[:1]
            if new_hash != base_hash and latest and latest[0].hash == base_hash:
                self._history.record(
                    path, operation=reason, new_hash=new_hash, length=len(data), previous=base_hash
                )
                before = self._history.content(base_hash)
                if before is not None:
                    self.line_days.tell(path, before, data, self._now().date())

    def _restore(self, version_id: str) -> Edited:
        version = next((v for v in self._history.versions() if v.id == version_id), None)
        if version is None or not version.available:
            raise NotFound(
                f"there is no version `{version_id}` to bring back",
                hint="`plainmind history` lists the versions that are kept",
            )
        data = self._history.read(version_id)
        if version.operation == APPEND:
            return self._put_back(version, data)
        try:
            target, current = self.read_bytes(version.path)
            base: str | None = sha256_bytes(current)
        except NotFound:
            target, base = self._target(version.path), None
        return Edited(version.path, 1, self._replace(version.path, target, data, base, reason="restore"))

    def _put_back(self, version: Version, record: bytes) -> Edited:
        """Add a note to its file again, unless it is there."""
        target = self._target(version.path)
        appended = self._append_record(version.path, target, record, version.id, _header_of(version.path))
        _, data = self.read_bytes(version.path)
        return Edited(version.path, _line_at(target, appended.offset), sha256_bytes(data))

    def _append_record(self, path: str, target: str, record: bytes, note_id: str, header: str) -> Appended:
        _refuse_wide(target)
        if not record.isascii() and os.path.exists(target):
            self._make_utf_8(path)
        return append(
            target,
            record,
            state_dir=self._state_dir,
            record_id=f"<!-- m:{note_id} -->",
            tail=Tail.MARKDOWN,
            header=header.encode(),
            separator=b"\n" if record.count(b"\n") > 1 else b"",
        )

    def _make_utf_8(self, path: str) -> None:
        """Write a file anew in UTF-8 that has one byte a character: with both in it, neither could be read."""
        target, data = self.read_bytes(path)
        if (encoding := encoding_of(data)) != UTF_8:
            self._replace(
                path, target, data.decode(encoding, "replace").encode(), sha256_bytes(data), reason="utf-8"
            )

    def read_bytes(self, path: str) -> tuple[str, bytes]:
        """Where a file of the memory is, and its bytes."""
        found = self._workspace.locate(path)
        data, _ = found.root.read(found.relative, max_bytes=self._workspace.max_file_bytes)
        return found.real, data

    def read_unchanged(self, path: str, base_hash: str) -> tuple[str, bytes]:
        """Like `read_bytes`; ConflictError when it is not the content any more that lines were chosen in."""
        place, data = self.read_bytes(path)
        if sha256_bytes(data) != base_hash:
            raise ConflictError(
                f"`{path}` has changed since the lines were chosen; they were not removed",
                hint="choose them again",
            )
        return place, data

    def _curated_path(self) -> str:
        listed = {found.path for found in self._workspace.discover().files}
        return "memory.md" if "memory.md" in listed else "MEMORY.md"

    def _target(self, path: str) -> str:
        """The place on disk to write a file of the memory to; never through a link."""
        keep_as_folder_of_notes(self._workspace, path, state_dir=self._state_dir, history=self._history)
        root, relative = self._workspace.place_of(path)
        folder, _, name = relative.rpartition("/")
        try:
            os.close(root.open_folder(folder))
        except FileNotFoundError:
            # `append` makes the folder `memory/`; the workspace itself must be there, or a note would land on
            # the empty mount point of a disk that is not mounted.
            if not os.path.isdir(root.real):
                raise WorkspaceError(
                    f"the workspace `{root.path}` does not exist",
                    hint=f"run `plainmind init {shell_word(root.path)}`, mount it again, or name another one",
                ) from None
        except OSError as error:
            raise WorkspaceError(
                f"`{folder or root.path}` cannot be written to: {error.strerror}",
                hint="it must be a plain folder of the workspace, not a link",
            ) from error
        return os.path.join(root.real, folder, name)


OWN_IGNORE_TEXT = """\
# All Markdown in this folder and beneath is the memory of Plainmind, because this file is here.
# Write below what is left out, in the way of a .gitignore; `!name` takes something back.
# What .gitignore names, hidden folders, templates/ and node_modules/ are left out already.
"""


def keep_as_folder_of_notes(workspace: Workspace, path: str, *, state_dir: str, history: History) -> None:
    """Before the first `MEMORY.md` or `memory/` of a folder of notes: say in a file that it stays one."""
    is_own = path in {"MEMORY.md", "memory.md"} or path.startswith("memory/")
    if not is_own or not workspace.is_folder_of_notes or not workspace.discover().files:
        return
    mark_as_folder_of_notes(workspace, state_dir=state_dir, history=history)


def mark_as_folder_of_notes(workspace: Workspace, *, state_dir: str, history: History) -> bool:
    """Write the file that makes all Markdown of a folder its memory; whether it was not there."""
    place = os.path.join(workspace.root.real, OWN_IGNORE)
    if os.path.lexists(place):
        return False
    try:
        replace(
            place,
            OWN_IGNORE_TEXT.encode(),
            base_hash=None,
            state_dir=state_dir,
            history=history,
            reason="init",
            name=OWN_IGNORE,
        )
    except ConflictError:
        return False  # it was made between our look and our write, and stays
    return True


def _header_of(path: str) -> str:
    """What we write above the first note of a file that is new."""
    if path in CURATED:
        return "# Memory\n\n"
    day = day_of(path)
    return "" if day is None else day_header(day)


def _removed_since() -> ConflictError:
    return ConflictError(
        "this note was written before, and has been removed since",
        hint="nothing was written: what is forgotten stays forgotten",
    )


def _check_note(text: str) -> str:
    check_text(text, "a note")
    text = text.replace("\x00", "").strip()
    if not text:
        raise PlainmindError("there is nothing to remember", hint="give the text of the note")
    if len(text) > MAX_NOTE_CHARS:
        raise PlainmindError(
            f"a note of {len(text):,} characters is too long; the limit is {MAX_NOTE_CHARS:,}",
            hint="save it as a file beneath `memory/` instead",
        )
    return text


def check_new_note(path: str, *, depth: int = 0) -> None:
    """Refuse a name that discovery would leave out: what was written there would never be found."""
    check_relative(path)
    parts = path.split("/")
    refusal = next(filter(None, map(name_refusal, parts)), None)
    if any(part.startswith(".") for part in parts):
        refusal = "hidden files are not part of the memory"
    elif any(map(is_conflict_copy, parts)):
        refusal = "it looks like a copy left by a sync conflict"
    elif not path.lower().endswith(".md"):
        refusal = "the memory holds Markdown files: let the name end with `.md`"
    elif len(parts) + depth >= MAX_DEPTH:
        refusal = f"it is more than {MAX_DEPTH} folders deep"
    if refusal:
        raise PathNotAllowed(f"`{path[:200]}` cannot be created: {refusal}")


def _refuse_wide(target: str) -> None:
    """Keep a note in UTF-8 out of a file in UTF-16."""
    if not os.path.exists(target):
        return
    with open_plain_file(target) as fd, explain_errors("read", target):
        encoding = encoding_of(os.pread(fd, _HEAD_BYTES, 0))
    if encoding.startswith("utf-16"):
        raise WorkspaceError(
            f"`{os.path.basename(target)}` is written in {encoding.upper()}, and notes are added in UTF-8",
            hint="save the file as UTF-8 in an editor, then try again",
        )


def _is_wide(data: bytes) -> bool:
    return encoding_of(data).startswith("utf-16")


def _as_utf_8(path: str, data: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """The text of a file as UTF-8, and the way back to the bytes that the file has."""
    encoding = encoding_of(data)
    if encoding == UTF_8:
        return data, lambda edited: edited

    def encode(edited: bytes) -> bytes:
        try:
            return as_written(edited.decode().encode(encoding), encoding)
        except UnicodeEncodeError as error:
            raise PlainmindError(
                f"`{path}` is written in {encoding}, which has no `{error.object[error.start]}`",
                hint="save the file as UTF-8 in an editor, then try again",
            ) from error

    try:
        return data.decode(encoding).encode(), encode
    except UnicodeError as error:
        raise PlainmindError(
            f"`{path}` is damaged {encoding}: nothing in it can be replaced",
            hint="save the file as UTF-8 in an editor, then try again",
        ) from error


def _in_plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _in_endings_of(data: bytes, text: str) -> bytes:
    """Write a text with the line endings that the file has."""
    raw = encode_text(_in_plain_lines(text))
    if b"\r\n" in data:
        return raw.replace(b"\n", b"\r\n")
    return raw.replace(b"\n", b"\r") if b"\r" in data and b"\n" not in data else raw


def _not_exactly_once(path: str, data: bytes, wanted: bytes, count: int) -> NotFound:
    if not wanted:
        return NotFound("there is no text to replace", hint="give the text that stands in the file now")
    if not count:
        return NotFound(
            f"the text to replace is not in `{path}`",
            hint="it must match to the letter: read the file, and give the text as it stands there",
        )
    lines: list[str] = []
    at = data.find(wanted)
    while at >= 0 and len(lines) < 5:
        lines.append(str(_line_of(data, at)))
        at = data.find(wanted, at + len(wanted))
    return NotFound(
        f"the text to replace stands {count} times in `{path}` (lines {', '.join(lines)})",
        hint="give more of the text around it, so that it stands only once",
    )


def _line_of(data: bytes, start: int) -> int:
    """The number of the line that a place is in; a line ends with a line feed, a carriage return, or both."""
    feeds, returns, both = (data.count(ending, 0, start) for ending in (b"\n", b"\r", b"\r\n"))
    return feeds + returns - both + 1


def _line_at(path: str, offset: int) -> int:
    """The number of the line that begins at an offset."""
    breaks, last, at = 0, b"", 0
    with open_plain_file(path) as fd, explain_errors("read", path, outcome="the note was written"):
        while at < offset and (block := os.pread(fd, min(offset - at, _BLOCK_BYTES), at)):
            # A break of two bytes that the blocks cut apart is one break.
            breaks += block.count(b"\n") + block.count(b"\r") - (last + block).count(b"\r\n")
            last, at = block[-1:], at + len(block)
    return breaks + 1


# --- whether a note already stands in a log, so that trying again never writes it twice ---


def find_standing_note(workspace: Workspace, folder: str, note_id: str) -> tuple[str, int, int] | None:
    """Find a note in the latest logs of a folder: the cited path, its first and its last line."""
    mark = f"<!-- m:{note_id} -->"
    for name in _latest_logs(workspace, folder):
        path = f"{folder}/{name}"
        try:
            data, _ = workspace.root.read(path, max_bytes=workspace.max_file_bytes)
        except (NotFound, PathNotAllowed):
            continue  # no file that a note could have been written to
        if mark.encode() in data:
            lines = split_lines(decode(data))
            line = next(number for number, line in enumerate(lines, 1) if mark in line)
            # A person may have joined it to another note: then the line is all that is sure.
            first, last = find_note(lines, note_id) or (line, line)
            return path, first, last
    return None


def _latest_logs(workspace: Workspace, folder: str) -> list[str]:
    try:
        descriptor = workspace.root.open_folder(folder)
    except OSError:
        return []  # not there yet; if it is something else, writing to it says what
    try:
        names = os.listdir(descriptor)
    finally:
        os.close(descriptor)
    return sorted(filter(_LOG.fullmatch, names), reverse=True)[:_MOST_LOGS]
