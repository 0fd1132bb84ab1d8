"""The Markdown files of a workspace: which there are, what they say, and which may be read at all."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from plainmind.base.errors import NotFound, PathNotAllowed, PlainmindError, WorkspaceError
from plainmind.base.lazy import IGNORECASE, pattern
from plainmind.base.model import (
    PRIVATE,
    SHARED,
    SHARED_FOLDER,
    Document,
    FileState,
    Source,
    date,
    sha256_bytes,
    split_lines,
    time_to_keep,
)
from plainmind.base.value import replace
from plainmind.files.safe_open import Root, check_relative, printable
from plainmind.files.system import hold_lock, lock_path_for, read_file
from plainmind.notes.discovery import (
    Discovery,
    Enter,
    ExtraPath,
    FoundFile,
    Mount,
    Sweep,
    holds_other_files,
    mounts_of,
    system_reason,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

    from plainmind.notes.watcher import ChangeQueue, Since


MAX_FILE_BYTES = 16_000_000

CURATED = ("MEMORY.md", "memory.md")
# What an agent of OpenClaw is told about its person, its tools and itself.
_STANDING = ("USER.md", "TOOLS.md", "IDENTITY.md", "SOUL.md")
_TOP_FILES = (*CURATED, *_STANDING)
OWN_IGNORE = ".plainmindignore"
_MOST_NAMES_COMPARED = 5_000
_MOST_FOLDERS_NAMED = 5

# ASCII digits only: `\d` would also accept the digits of other scripts.
_DATED_NAME = pattern(r"(?:^|/)([0-9]{4})-([0-9]{2})-([0-9]{2})(?:-[^/]+)?\.md\Z", IGNORECASE)

_LEFT_OUT_HINT = "`plainmind status` lists everything that is left out, and why"


class Workspace:
    """The files of a memory, and the extra paths: what discovery lists is all that can be read.

    An agent's workspace has `MEMORY.md`, `memory/**/*.md` and what OpenClaw keeps beside them. Any other folder is a
    folder of notes: all its Markdown, but what its ignore files name. `.plainmindignore` makes one of every folder.
    """

    def __init__(
        self,
        path: str,
        *,
        extra_paths: Sequence[ExtraPath] = (),
        max_file_bytes: int = MAX_FILE_BYTES,
        user_home: str = "",
    ) -> None:
        """`user_home` is too wide to be a folder of notes, and so is all that is above it."""
        self.root = Root(path)
        self.max_file_bytes = max_file_bytes
        self._user_home = user_home
        self._daily = Mount(self.root, "memory", "memory", expected=False)
        self._extras = mounts_of(self.root, extra_paths)
        self._has_shared_mounts = any(mount.scope != PRIVATE for mount in self._extras)
        self._has_looked = False
        self._queues: dict[str, ChangeQueue] = {}  # the one of this workspace, once it is needed

    @property
    def source(self) -> Source:
        """Which source its files are cited as."""
        return "memory"

    @property
    def growing(self) -> None:
        """Nothing: each note is read whole."""

    @property
    def path(self) -> str:
        """The workspace folder as the operator named it, absolute."""
        return self.root.path

    @property
    def is_folder_of_notes(self) -> bool:
        """Whether all Markdown in it is the memory: it is no agent's workspace, or `.plainmindignore` says so."""
        top = self.root.real
        if os.path.lexists(os.path.join(top, OWN_IGNORE)):
            return True
        if any(os.path.lexists(os.path.join(top, name)) for name in CURATED):
            return False
        daily = os.path.join(top, "memory")
        if os.path.islink(daily) or not os.path.isdir(daily):
            return not os.path.lexists(daily)
        return holds_other_files(daily)  # a folder of that name in source code is no memory

    def discover(self) -> Discovery:
        """List the files of the memory, always in the same order. Raises WorkspaceError for a tree that is too wide."""
        changes = self._changes_of_second_look()
        if changes is None:
            return self._find(self._sweep())
        look = changes.begin()
        moment, complete = None, False
        try:
            found = self._find(self._sweep(enter=look.enter if look else None))
            complete = not (found.unseen or found.root_missing)
        finally:
            moment = changes.end(look, complete=complete)
        return replace(found, moment=moment)

    def expect_more_looks(self) -> None:
        """Watch from the first look on: this process is going to look again and again."""
        self._has_looked = True

    def _changes_of_second_look(self) -> ChangeQueue | None:
        """None for the first look: most processes look once, and would load the queue in vain."""
        if self._has_looked:
            return self._changes()
        self._has_looked = True
        return None

    def _changes(self) -> ChangeQueue:
        known = self._queues.get("changes")
        if known is not None:
            return known
        from plainmind.notes.watcher import ChangeQueue

        anchors = partial(_anchors, self.root, (self._daily, *self._extras))
        made = ChangeQueue(anchors, has_looked=self._has_looked)
        return self._queues.setdefault("changes", made)  # one step: threads that come at once get the same

    def changed_since(self, moment: int | None) -> Since | None:
        """What may have changed since a look; None when only another look can tell."""
        return None if moment is None else self._changes().changed_since(moment)

    def look_at(self, path: str) -> FoundFile | None:
        """Look again at a file that discovery has listed; None when it is not as it must be to be listed."""
        sweep = self._sweep()
        root, relative = self.place_of(path)
        try:
            sweep.visit_file(Mount(root, relative, path, expected=False))
        except PathNotAllowed:
            return None
        return next(iter(sweep.result().files), None)

    def is_surely_gone(self, path: str) -> bool:
        """Whether the folder that a file was in still holds files, or was taken out of one that does.

        Where a disk was mounted, an empty folder is left.
        """
        try:
            root, relative = self.place_of(path)
        except NotFound:
            return False
        folder = os.path.dirname(os.path.join(root.real, relative))
        while folder.startswith(root.real):
            try:
                return _holds_something(folder)
            except FileNotFoundError:
                folder = os.path.dirname(folder)
            except OSError:
                return False
        return False

    def describe(self) -> Mapping[str, Any]:
        """Facts for `status`: how changes are noticed."""
        return self._changes().describe()

    def close(self) -> None:
        """Let go of what is watched; the workspace can still be used."""
        for changes in self._queues.values():
            changes.close()

    def locate(self, path: str) -> FoundFile:
        """Find the file that a cited path names, only if discovery lists it.

        Raises PathNotAllowed or NotFound with the reason, WorkspaceError when the memory cannot be looked at.
        """
        wanted = path.removeprefix("./")
        if os.path.isabs(wanted):
            raise self._absolute_path_refused(wanted)
        check_relative(wanted)
        discovery = self._find(self._sweep(wanted=wanted))
        for found in discovery.files:
            if found.path == wanted:
                return found
        raise self._why_not(wanted, discovery)

    def read(self, file: FoundFile | str) -> tuple[Document, FileState]:
        """Read a file that was found, or one by its cited path: the text, and what the file looked like.

        A picture or a program that is called `.md` has no text.
        Raises PathNotAllowed, NotFound or WorkspaceError.
        """
        found = self.locate(file) if isinstance(file, str) else file
        raw, status = found.root.read(found.relative, max_bytes=self.max_file_bytes)
        document = Document(found.path, self.source, decode(raw) if is_text(raw) else "", day_of(found.path))
        hashed = sha256_bytes(raw)
        return document, FileState(
            found.path,
            self.source,
            hashed,
            status.st_size,
            time_to_keep(status.st_mtime_ns),
            status.st_ino,
            found.scope,
        )

    def scope_of(self, path: str) -> str:
        """Who may see a file with this cited path, whether it exists or not; unknown means: its owner alone."""
        try:
            root, relative = self.place_of(path)
        except NotFound:
            return PRIVATE
        return self._scope_at(path, root, relative)

    def _scope_at(self, path: str, root: Root, relative: str) -> str:
        if path.startswith(SHARED_FOLDER):
            from plainmind.notes.scopes import scope_of_path  # most workspaces have no such folder

            return scope_of_path(path)
        if not self._has_shared_mounts or path in _TOP_FILES or path.startswith("memory/"):
            return PRIVATE
        real = os.path.join(root.real, relative)
        if real in (os.path.join(self.root.real, name) for name in _TOP_FILES):
            return PRIVATE
        # Shared only when everything that names it says so: a private folder in a shared one stays private.
        naming = [mount.scope for mount in (self._daily, *self._extras) if mount.covers(real)]
        return SHARED if naming and all(scope == SHARED for scope in naming) else PRIVATE

    def place_of(self, path: str) -> tuple[Root, str]:
        """Where a file with this cited path belongs, also when it is gone. NotFound when no place has its name."""
        if path in _TOP_FILES or _is_beneath(path, self._daily.cited):
            return self.root, path
        is_folder = self.is_folder_of_notes
        if is_folder and os.path.lexists(os.path.join(self.root.real, path)):
            return self.root, path
        for mount in self._extras:
            if _is_beneath(path, mount.cited):
                rest = path.removeprefix(mount.cited).removeprefix("/")
                return mount.root, "/".join(filter(None, (mount.base, rest)))
        if is_folder:
            return self.root, path
        raise NotFound(
            f"`{path}` is not part of the memory any more", hint="name its folder in `extraPaths` again"
        )

    def no_place_for(self, path: str) -> PathNotAllowed:
        """What to say of a new file with this path, where `place_of` finds no place for it."""
        folders = [f"`{mount.cited}/`" for mount in (self._daily, *self._extras) if mount.cited]
        return PathNotAllowed(
            f"`{printable(path[:200])}` is outside of the memory: {self._extent}",
            hint=f"choose a path beneath {' or '.join(folders[:_MOST_FOLDERS_NAMED])}",
        )

    @property
    def _extent(self) -> str:
        extra = ", and the extra paths" if self._extras else ""
        return f"that is `MEMORY.md` and the `.md` files beneath `memory/`{extra}"

    def watched_paths(self) -> tuple[str, ...]:
        """Files and folders where a change may matter, for `watch`."""
        top = self.root.real
        extras = (mount.real for mount in self._extras)
        if self.is_folder_of_notes:
            return tuple(dict.fromkeys((top, *extras)))
        files = (os.path.join(top, name) for name in _TOP_FILES)
        return tuple(dict.fromkeys((*files, self._daily.real, *extras)))

    def _sweep(self, *, wanted: str | None = None, enter: Enter | None = None) -> Sweep:
        return Sweep(max_file_bytes=self.max_file_bytes, scope_of=self._scope_at, wanted=wanted, enter=enter)

    def _find(self, sweep: Sweep) -> Discovery:
        root_missing = False
        try:
            os.close(self.root.open_folder())
        except OSError as error:
            root_missing = True
            if not isinstance(error, FileNotFoundError):
                sweep.skip("", system_reason(error))
        if not root_missing:
            self._visit_own(sweep)
        for mount in self._extras:
            if not (root_missing and mount.root is self.root):
                sweep.visit(mount)
        return sweep.result(root_missing=root_missing)

    def _visit_own(self, sweep: Sweep) -> None:
        if self.is_folder_of_notes:
            from plainmind.notes.ignore import Ignore  # an agent's workspace has none

            self._refuse_what_is_too_wide()
            sweep.visit(Mount(self.root, "", "", ignore=Ignore()))
            return
        sweep.visit_curated(self.root)
        for name in _STANDING:
            if os.path.lexists(os.path.join(self.root.real, name)):
                sweep.visit_file(Mount(self.root, name, name, expected=False))
        sweep.visit(self._daily)

    def _refuse_what_is_too_wide(self) -> None:
        top = self.root.real
        homes = {self._user_home, os.path.realpath(self._user_home)} if self._user_home else set()
        if top == "/" or any(_is_beneath(home, top) for home in homes):
            raise WorkspaceError(
                f"`{printable(top)}` is too wide to be a folder of notes: all Markdown in it would be read",
                hint="name the folder that holds the notes; or `plainmind init --agent-workspace` makes a memory/ here",
            )

    def _absolute_path_refused(self, path: str) -> PathNotAllowed:
        hint = "name a file by its path inside the memory, for example `memory/2026-02-10.md`"
        for top in (self.root.path, self.root.real):
            if path.startswith(top + "/"):
                hint = f"use `{printable(path.removeprefix(top + '/'))}`"
        return PathNotAllowed(f"the path `{printable(path[:200])}` is not allowed: it is absolute", hint=hint)

    def _why_not(self, path: str, discovery: Discovery) -> PlainmindError:
        """Say why discovery does not list a path."""
        if discovery.root_missing:
            reason = next(
                (skipped.reason for skipped in discovery.skipped if skipped.path == "."), "it does not exist"
            )
            return WorkspaceError(
                f"the workspace `{printable(self.path)}` cannot be read: {reason}",
                hint="create it, mount it again, or name another one",
            )
        for skipped in discovery.skipped:
            if path == skipped.path or path.startswith(skipped.path + "/"):
                kind = WorkspaceError if discovery.may_hide(path) else PathNotAllowed
                subject = f"`{path}`" if path == skipped.path else f"`{path}` in `{skipped.path}`"
                return kind(f"{subject} is not read: {skipped.reason}", hint=_LEFT_OUT_HINT)
        if not path.lower().endswith(".md"):
            return PathNotAllowed(
                f"`{path}` is not part of the memory: only `.md` files are", hint=self._hint(path)
            )
        places = (self._daily, *self._extras)
        is_ours = path in _TOP_FILES or any(_is_beneath(path, mount.cited) for mount in places)
        if is_ours or self.is_folder_of_notes:
            return NotFound(f"`{path}` is not in the memory", hint=self._hint(path))
        return PathNotAllowed(f"`{path}` is not part of the memory", hint=self._hint(path))

    def _hint(self, path: str) -> str:
        near = nearest(path, (found.path for found in self.discover().files))
        if near:
            return "did you mean " + " or ".join(f"`{name}`" for name in near) + "?"
        if self.is_folder_of_notes:
            return "`plainmind list` names the notes of this folder"
        return "the memory is `MEMORY.md`, the `.md` files beneath `memory/`, and the extra paths"


def _anchors(root: Root, mounts: Sequence[Mount]) -> tuple[str, ...]:
    """Where looks begin; another file or folder there is a change, whatever happened in the old one."""
    tops = (mount.root.real for mount in mounts)
    return tuple(dict.fromkeys((root.real, *tops, *(mount.real for mount in mounts))))


def _holds_something(folder: str) -> bool:
    """Whether there is a file in it, or a folder that is not empty. Raises OSError."""
    with os.scandir(folder) as listing:
        for entry in listing:
            if not entry.is_dir(follow_symlinks=False):
                return True
            with os.scandir(entry.path) as inner:
                if next(inner, None) is not None:
                    return True
    return False


def _is_beneath(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(folder + "/")


def nearest(path: str, known: Iterable[str], *, limit: int = 3) -> tuple[str, ...]:
    """Name the known paths that were probably meant: the same file name elsewhere, then similar spelling."""
    names = list(known)
    wanted = _fold(os.path.basename(path))
    same_name = [name for name in names if _fold(os.path.basename(name)) == wanted]
    if same_name:
        return tuple(same_name[:limit])
    from difflib import get_close_matches

    return tuple(get_close_matches(path[:300], names[:_MOST_NAMES_COMPARED], n=limit, cutoff=0.75))


def _fold(name: str) -> str:
    import unicodedata

    return unicodedata.normalize("NFC", name).casefold().removesuffix(".md")


def day_of(path: str) -> str | None:
    """ISO day of `2026-02-10.md` and `2026-02-10-a-topic.md`; None for every other name: those are evergreen.

    A date that no calendar has (`2026-02-30.md`) makes a file evergreen, not an error.
    """
    found = _DATED_NAME.search(path)
    if found is None:
        return None
    from datetime import date

    year, month, day = found.groups()
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


_LINE_DAYS_FILE = "line-days.json"
_ID_CHARS = 26
_MOST_CORRECTED = 500  # more lines at once are a text that was brought along, and no correction


class LineDays:
    """Since when a line says what it says: a log's since its day, others by their id or since they were corrected here.

    Of a corrected line its mark and the day are kept, beside the history. A line that an editor changed has the day of
    its id, if it has one.
    """

    def __init__(self, state_dir: str) -> None:
        self._state_dir = state_dir
        self._file = os.path.join(state_dir, _LINE_DAYS_FILE)

    def day_of(self, path: str, line: str) -> str | None:
        """The day since which this line stands in this file; None where nobody can say."""
        if (day := day_of(path)) is not None:
            return day
        from plainmind.text.note_format import mark_of

        corrected = self._read().get(path, {}).get(mark_of(line))
        return max(filter(None, (corrected, noted_on(line))), default=None)

    def tell(self, path: str, before: bytes, after: bytes, day: date) -> None:
        """Remember which lines of a file are new; those of a log have its day."""
        if day_of(path) is not None:
            return
        had, has = _marks_in(before), _marks_in(after)
        new = has - had
        with suppress(PlainmindError), self._changing():  # the file is written, and that counts
            known = self._read()
            days = {mark: day for mark, day in known.get(path, {}).items() if mark in has}
            if 0 < len(new) <= _MOST_CORRECTED:
                days |= dict.fromkeys(new, day.isoformat())
            self._write({**known, path: days}, known)

    def forget(self, content: Callable[[str], bytes | None]) -> None:
        """Leave nothing of lines that are in no file any more; `content` gives what a file is now."""
        with self._changing():
            known = self._read()
            marks = {path: _marks_in(content(path) or b"") for path in known}
            self._write(
                {
                    path: {mark: day for mark, day in days.items() if mark in marks[path]}
                    for path, days in known.items()
                },
                known,
            )

    def _changing(self) -> AbstractContextManager[object]:
        return hold_lock(lock_path_for(self._state_dir, self._file), operation="note since when lines hold")

    def _read(self) -> Mapping[str, Mapping[str, str]]:
        import json

        try:
            found = json.loads(read_file(self._file))
        except (OSError, ValueError):  # none yet, or damaged: then no line is known to be corrected
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, days: Mapping[str, Mapping[str, str]], known: Mapping[str, Mapping[str, str]]) -> None:
        import json

        from plainmind.files.atomic import write_atomically

        kept = {path: lines for path, lines in days.items() if lines}
        if kept != known:
            write_atomically(self._file, json.dumps(kept, ensure_ascii=False, indent=0).encode())


def _marks_in(data: bytes) -> set[str]:
    from plainmind.text.note_format import mark_of

    return {mark_of(line) for line in split_lines(decode(data)) if line.strip()}


def noted_on(line: str) -> str | None:
    """The day on which a line's id was made; None for one that is not ours, or that a clock far ahead has given."""
    from datetime import UTC, datetime

    from plainmind.files.append import time_of
    from plainmind.text.note_format import id_of

    note_id = id_of(line)
    if note_id is None or len(note_id) != _ID_CHARS:
        return None
    with suppress(OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(time_of(note_id), UTC).date().isoformat()
    return None


UTF_8 = "utf-8"
_ASKED_BYTES = 1 << 16
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Bytes that no Western text of one byte a character has.
_NOT_WESTERN = rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\x81\x8d\x8f\x90\x9d\xff]"
_MOST_IN_A_ROW = 3
# Bytes that hardly stand in a text, whatever its encoding; `man` and colours use others that only steer.
_NOT_IN_TEXT = bytes((*range(1, 8), *range(14, 27), *range(28, 32), 127))
_FEWEST_NOT_IN_TEXT = 8  # a line with a bell in it is a line
_FEWEST_WIDE_BYTES = 16


def decode(raw: bytes, encoding: str | None = None) -> str:
    r"""Read the bytes of a note as text, alike for the index and for a reader: their line numbers agree. Never raises.

    In what `encoding_of` tells, without a byte order mark. A byte that does not fit becomes U+FFFD, NUL characters
    disappear, and each of `\r\n`, `\r` and `\n` ends one line and is given as `\n`. Nothing else ends a line.
    """
    text = raw.decode(encoding or encoding_of(raw), "replace").removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    # After the line ends, so that lines of the text are lines of the bytes.
    return text.replace("\0", "") if "\0" in text else text


def encoding_of(raw: bytes) -> str:
    """How the bytes of a note are to be read: UTF-8, unless they are clearly UTF-16 or the Windows code page 1252.

    Latin-1 is read as that code page, which has the same letters. Damaged UTF-8 stays UTF-8.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return encoding
    if b"\0" in raw:
        return _wide_encoding(raw) or UTF_8
    try:
        raw.decode(UTF_8)
    except UnicodeDecodeError:
        return "cp1252" if _is_western(raw) else UTF_8
    return UTF_8


def is_plain_text(data: bytes) -> bool:
    """Whether the text that a file is read as has all of it, but for how its lines end."""
    encoding = encoding_of(data)
    try:
        text = data.decode(encoding)
    except UnicodeError:
        return False
    return "\0" not in text


def encode_text(text: str) -> bytes:
    """The bytes that a text was read from. Raises PlainmindError for half a character, which no file can hold."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X}"
        raise PlainmindError(
            f"the text has half a character at place {error.start + 1}: {half} cannot be written",
            hint="leave it out, or write the whole character",
        ) from error


def as_written(raw: bytes, encoding: str) -> bytes:
    """Bytes that are in an encoding; in UTF-8 instead, when what they are read as would be something else.

    What is left of a file after an edit may have fewer of the letters by which its encoding is known.
    """
    if encoding == UTF_8 or (told := encoding_of(raw)) == encoding:
        return raw
    text = raw.decode(encoding, "replace")
    return raw if raw.decode(told, "replace") == text else text.encode()


_LINE = pattern(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def byte_lines(data: bytes) -> list[bytes]:
    """Cut bytes into lines with their endings, at the same places where the text is cut into lines."""
    encoding = encoding_of(data)
    # Latin-1 has a letter for every byte, and is cut at the same ones.
    one_way = encoding if encoding.startswith("utf-16") else "latin-1"
    return [
        line.encode(one_way, "surrogatepass") for line in _LINE.findall(data.decode(one_way, "surrogatepass"))
    ]


def is_text(raw: bytes) -> bool:
    """Whether the bytes are text in some encoding; zeros do not count, which a crash may have left."""
    asked = raw[:_ASKED_BYTES]
    steering = len(asked) - len(asked.translate(None, _NOT_IN_TEXT))
    zeros = asked.count(0)
    is_rare = steering * 50 <= len(asked) - zeros or (steering < _FEWEST_NOT_IN_TEXT and not zeros)
    return is_rare or encoding_of(raw) != UTF_8


def _wide_encoding(raw: bytes) -> str | None:
    """UTF-16 without a mark: half of its bytes are zero where letters are Latin, and always the same half."""
    asked = raw[: _ASKED_BYTES & ~1]
    low, high = asked[0::2].count(0), asked[1::2].count(0)
    if len(raw) % 2 or len(raw) < _FEWEST_WIDE_BYTES or min(low, high) > max(low, high) // 50:
        return None
    encoding = "utf-16-le" if high > low else "utf-16-be"
    if max(low, high) * 10 >= len(asked) // 2 * 7:
        return encoding
    try:
        raw.decode(UTF_8)
    except UnicodeDecodeError:
        pass
    else:
        return None
    try:
        text = asked.decode(encoding)
    except UnicodeDecodeError:
        return None
    # Chinese, Japanese, Korean and the like: then only spaces, digits and line ends have a zero.
    return (
        encoding
        if all(character.isprintable() or character in "\t\r\n\ufeff" for character in text)
        else None
    )


def _is_western(raw: bytes) -> bool:
    """Whether bytes that are no UTF-8 are words with an accent here and there, and not UTF-8 that was damaged."""
    import re

    if re.search(_NOT_WESTERN, raw) or re.search(rb"[\xc2-\xf4][\x80-\xbf]", raw):
        return False
    runs = [len(run) for run in re.findall(rb"[\x80-\xff]+", raw)]
    letters = sum(map(len, re.findall(rb"[A-Za-z]+", raw)))
    return max(runs) <= _MOST_IN_A_ROW and letters > sum(runs)
