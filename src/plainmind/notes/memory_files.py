"""A folder of the memory as files to create, rewrite, rename and delete; the history keeps what they were."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from plainmind.base.errors import ConflictError, NotFound, PathNotAllowed, WorkspaceError, shell_word
from plainmind.base.model import date, sha256_bytes
from plainmind.base.value import value
from plainmind.files.history import History
from plainmind.files.replace import remove, replace
from plainmind.files.safe_open import Root, check_relative, file_refusal, name_refusal
from plainmind.files.system import Erasures, explanation
from plainmind.notes.discovery import MAX_DEPTH, is_conflict_copy
from plainmind.notes.notebook import check_new_note, keep_as_folder_of_notes
from plainmind.notes.workspace import (
    CURATED,
    UTF_8,
    LineDays,
    Workspace,
    as_written,
    encode_text,
    encoding_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.redaction.findings import Redacted

DAILY = "memory"


@value
class Entry:
    """A file or folder in a listing."""

    name: str  # relative to what was listed
    size: int
    is_folder: bool


@value
class Content:
    """What a file says, to the letter: line endings as they are, and bytes that are no text kept as surrogates."""

    text: str
    hash: str


class MemoryFiles:
    """The Markdown files in one folder of the workspace, by names relative to it; "" is the folder itself.

    In the folder `memory` the curated memory is a file too: `MEMORY.md`. Nothing else of the workspace is to be seen.
    """

    def __init__(
        self,
        workspace: Workspace,
        history: History,
        *,
        erasures: Erasures,
        state_dir: str,
        folder: str = DAILY,
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._erasures = erasures
        self._state_dir = state_dir
        self._folder = folder

    def is_folder(self, name: str) -> bool | None:
        """Whether a name stands for a folder; None when nothing of the memory has it."""
        self._require_root()
        if not name:
            return True
        if self._curated(name) is not None:
            return False
        found = self._status(self._relative(name))
        if found is None or not _is_visible(name.rpartition("/")[2], found):
            return None
        return stat.S_ISDIR(found.st_mode)

    def size(self, name: str = "") -> int:
        """What the system calls the size of a folder; 0 for one that is not there yet."""
        found = self._status(self._relative(name))
        return 0 if found is None else found.st_size

    def entries(self, name: str = "", *, depth: int = 2) -> tuple[Entry, ...]:
        """List a folder by name, each folder followed by what is in it, `depth` levels down."""
        found = list(self._list(self._relative(name), "", depth))
        if not name and self._folder == DAILY:
            found = [entry for entry in found if entry.name not in CURATED]
            curated = next(filter(None, map(self._curated, CURATED)), None)
            status = curated and self._status(curated)
            if curated and status:
                found.append(Entry(curated, status.st_size, is_folder=False))
                found.sort(key=lambda entry: entry.name.split("/"))
        return tuple(found)

    def read(self, name: str) -> Content:
        """Read a file. NotFound, PathNotAllowed, or WorkspaceError when the system refuses."""
        data = self._bytes(name)
        encoding = encoding_of(data)
        text = data.decode(encoding, "surrogateescape" if encoding == UTF_8 else "replace")
        return Content(text, sha256_bytes(data))

    def _bytes(self, name: str) -> bytes:
        found = self._workspace.locate(self.citation_of(name))
        return found.root.read(found.relative, max_bytes=self._workspace.max_file_bytes)[0]

    def _in_encoding_of(self, name: str, text: str) -> bytes:
        """A text in what the file is written in now; in UTF-8, where that has no letter for it."""
        encoding = encoding_of(self._bytes(name))
        if encoding != UTF_8:
            with suppress(UnicodeEncodeError):
                return as_written(text.encode(encoding), encoding)
        return encode_text(text)

    def create(self, name: str, text: str) -> None:
        """Write a file that does not exist yet. ConflictError when it does."""
        with self._erasures.hold_off():
            self._create(name, encode_text(text), "create")

    def rewrite(self, name: str, text: str, *, base_hash: str, reason: str) -> None:
        """Replace what a file says, if it is still what `base_hash` stands for. ConflictError when it is not."""
        with self._erasures.hold_off():
            before, after = self._bytes(name), self._in_encoding_of(name, text)
            self._replace(name, after, base_hash, reason)
            path = self.citation_of(name)
            if sha256_bytes(before) == base_hash and (written := self._status(path)) is not None:
                LineDays(self._state_dir).tell(path, before, after, date.fromtimestamp(written.st_mtime))

    def delete(self, name: str) -> tuple[str, ...]:
        """Delete a file, or a folder with all its notes, and say which; each can be restored. NotFound when none is."""
        with self._erasures.hold_off():
            return tuple(self._delete(name))

    def rename(self, old: str, new: str) -> tuple[str, ...]:
        """Give a file or folder another name, and say which files are gone. ConflictError when the name is taken.

        Each file is written under the new name before the old one goes: a crash in between leaves it twice, never
        not at all. What others write to it meanwhile moves too.
        """
        if self.is_folder(new) is not None:
            raise ConflictError(f"`{new}` already exists", hint="choose another name")
        if (new + "/").startswith(old + "/"):
            raise PathNotAllowed(f"`{old}` cannot be moved into itself", hint="choose another place")
        with self._erasures.hold_off():
            if not self.is_folder(old):
                return (self._move(old, new),)
            files, folders = self._whole(old)
            for file in files:  # all of them before the first moves
                self._check_name(new + file[len(old) :])
            for folder in (old, *folders):
                self._make_folder(new + folder[len(old) :])
            gone = [self._move(file, new + file[len(old) :]) for file in files]
            self._remove_folders(old, folders)
            return tuple(gone)

    def citation_of(self, name: str) -> str:
        """The path that a file is cited by."""
        return self._curated(name) or f"{self._folder}/{name}"

    def _curated(self, name: str) -> str | None:
        """The curated memory's own name, when that is meant: whichever of the two there is."""
        if self._folder != DAILY or name not in CURATED:
            return None
        there = [one for one in CURATED if self._status(one) is not None]
        return there[0] if there else ("MEMORY.md" if name == "MEMORY.md" else None)

    def _create(self, name: str, data: bytes, reason: str) -> None:
        self._check_name(name)
        if os.path.lexists(self._target(name)):
            raise ConflictError(f"`{name}` already exists", hint="choose another name")
        self._replace(name, data, None, reason)

    def _replace(self, name: str, data: bytes, base_hash: str | None, reason: str) -> None:
        self._check_size(name, data)
        replace(
            self._target(name),
            data,
            base_hash=base_hash,
            state_dir=self._state_dir,
            history=self._history,
            reason=reason,
            name=self.citation_of(name),
            allow_shrink=True,
        )

    def _delete(self, name: str) -> list[str]:
        if not self.is_folder(name):
            return [self._remove(name, self.read(name).hash, "delete")]
        files, folders = self._whole(name)
        gone = [self._remove(file, self.read(file).hash, "delete") for file in files]
        self._remove_folders(name, folders)
        return gone

    def _move(self, old: str, new: str) -> str:
        """Move one file; the path that it was cited by. Who adds to it waits, and adds to what is there then."""
        return self._remove(old, None, "rename", before=lambda data: self._create(new, data, "rename"))

    def _remove(
        self,
        name: str,
        base_hash: str | None,
        reason: str,
        *,
        before: Callable[[bytes], object] | None = None,
    ) -> str:
        """Remove one file; the path that it was cited by."""
        found = self._workspace.locate(self.citation_of(name))
        remove(
            found.real,
            base_hash=base_hash,
            before=before,
            state_dir=self._state_dir,
            history=self._history,
            reason=reason,
            name=found.path,
        )
        return found.path

    def _remove_folders(self, name: str, folders: Sequence[str]) -> None:
        for folder in (*reversed(folders), name):
            self._remove_folder(self._relative(folder))

    def _whole(self, name: str) -> tuple[list[str], list[str]]:
        """Everything in a folder, by name; PathNotAllowed when that includes something that is not of the memory."""
        files: list[str] = []
        folders: list[str] = []
        for entry in self._list(self._relative(name), "", MAX_DEPTH, only_ours=False):
            (folders if entry.is_folder else files).append(f"{name}/{entry.name}")
        return files, folders

    def _list(self, relative: str, prefix: str, depth: int, *, only_ours: bool = True) -> Iterator[Entry]:
        for name, status in self._in_folder(relative):
            if not _is_visible(name, status):
                if only_ours:
                    continue
                raise PathNotAllowed(
                    f"the folder also holds `{name}`, which is not a note", hint="nothing was changed"
                )
            is_folder = stat.S_ISDIR(status.st_mode)
            yield Entry(prefix + name, status.st_size, is_folder)
            if is_folder and depth > 1:
                yield from self._list(
                    f"{relative}/{name}", f"{prefix}{name}/", depth - 1, only_ours=only_ours
                )

    def _in_folder(self, relative: str) -> list[tuple[str, os.stat_result]]:
        try:
            folder = self._root.open_folder(relative)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise explanation(error, "list", relative, outcome="nothing was changed") from error
        try:
            with os.scandir(folder) as listing:
                return sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in listing)
        except OSError as error:
            raise explanation(error, "list", relative, outcome="nothing was changed") from error
        finally:
            os.close(folder)

    @property
    def _root(self) -> Root:
        return self._workspace.root

    def _relative(self, name: str) -> str:
        """Where a name lies in the workspace."""
        curated = self._curated(name)
        return curated or "/".join(filter(None, (self._folder, name)))

    def _status(self, relative: str) -> os.stat_result | None:
        """What stands at a place; None when nothing does, or when a link leads there."""
        check_relative(relative)
        parent, _, name = relative.rpartition("/")
        try:
            folder = self._root.open_folder(parent)
            try:
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
            finally:
                os.close(folder)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
                return None
            raise explanation(error, "look at", relative, outcome="nothing was changed") from error

    def _check_name(self, name: str) -> None:
        """Refuse a name that discovery would leave out: what was written there would never be found."""
        check_new_note(name, depth=self._folder.count("/"))

    def _check_size(self, name: str, data: bytes) -> None:
        most = self._workspace.max_file_bytes
        if len(data) > most:
            raise PathNotAllowed(
                f"`{name}` would have {len(data):,} bytes; the limit is {most:,}", hint="write several files"
            )

    def _target(self, name: str) -> str:
        """The place on disk to write to, which no link leads to."""
        relative = self._relative(name)
        check_relative(relative)
        self._require_root()
        keep_as_folder_of_notes(self._workspace, relative, state_dir=self._state_dir, history=self._history)
        folders = relative.split("/")[:-1]
        for count in range(1, len(folders) + 1):
            folder = "/".join(folders[:count])
            try:
                os.close(self._root.open_folder(folder))
            except FileNotFoundError:
                break  # it will be made
            except NotADirectoryError as error:
                raise PathNotAllowed(
                    f"`{folder}` is a file, not a folder", hint="choose another name"
                ) from error
            except OSError as error:
                raise explanation(error, "write to", folder) from error
        return os.path.join(self._root.real, *relative.split("/"))

    def _require_root(self) -> None:
        # A disk that is not mounted must not look like an empty memory.
        if not os.path.isdir(self._root.real):
            raise WorkspaceError(
                f"the workspace `{self._root.path}` does not exist",
                hint=f"run `plainmind init {shell_word(self._root.path)}`, mount it again, or name another one",
            )

    def _make_folder(self, name: str) -> None:
        from plainmind.files.system import SYSTEM, make_folders

        self._check_name(f"{name}/x.md")  # as for a note in it
        place = os.path.dirname(self._target(f"{name}/x.md"))
        try:
            make_folders(SYSTEM, place)
        except OSError as error:
            raise explanation(error, "create", name) from error

    def _remove_folder(self, relative: str) -> None:
        parent, _, name = relative.rpartition("/")
        try:
            folder = self._root.open_folder(parent)
            try:
                os.rmdir(name, dir_fd=folder)
            finally:
                os.close(folder)
        except FileNotFoundError as error:
            raise NotFound(f"`{relative}` does not exist") from error
        except OSError as error:
            raise explanation(error, "remove", relative, outcome="its notes were removed") from error


class VeiledFiles(MemoryFiles):
    """The same for somebody who edits files and is not to see their secrets: marks stand in their place.

    What is written has the secrets again: a mark that was read here stands for what it hid, in any file.
    """

    def __init__(self, *place: Any, redact: Callable[[str], Redacted], **named: Any) -> None:
        super().__init__(*place, **named)
        self._redact = redact
        self._behind: dict[str, str] = {}  # a secret by what is shown in its place

    def read(self, name: str) -> Content:
        """Read a file, with marks."""
        content = super().read(name)
        redacted = self._redact(content.text)
        for one in redacted.found:
            secret = content.text[one.start : one.end]
            shown = one.mark + "".join(sign for sign in secret if sign in "\r\n")
            if self._behind.setdefault(shown, secret) != secret:
                raise WorkspaceError(
                    f"two secrets have the mark {one.mark}", hint="set `redaction.notes` to false"
                )
        return Content(redacted.text, content.hash)

    def create(self, name: str, text: str) -> None:
        """Write a new file, with the secrets that its marks stand for."""
        super().create(name, self._with_secrets(text))

    def rewrite(self, name: str, text: str, *, base_hash: str, reason: str) -> None:
        """Replace what a file says, with the secrets that its marks stand for."""
        super().rewrite(name, self._with_secrets(text), base_hash=base_hash, reason=reason)

    def _with_secrets(self, text: str) -> str:
        for shown in sorted(self._behind, key=len, reverse=True):
            text = text.replace(shown, self._behind[shown])
        return text


def _is_visible(name: str, status: os.stat_result) -> bool:
    """Whether it is a folder or a note of the memory, as discovery sees it."""
    if name.startswith(".") or is_conflict_copy(name) or name_refusal(name):
        return False
    return stat.S_ISDIR(status.st_mode) or (name.lower().endswith(".md") and file_refusal(status) is None)
