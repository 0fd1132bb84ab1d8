"""Where memory is looked for, how the files found there are cited, and one look at all of them."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter

from plainmind.base.errors import ConfigError, PathNotAllowed, WorkspaceError
from plainmind.base.lazy import IGNORECASE, pattern
from plainmind.base.model import PRIVATE, FileFailure
from plainmind.base.value import field, replace, value
from plainmind.files.safe_open import (
    FOLDER_FLAGS,
    SYMBOLIC_LINK,
    UNCITABLE,
    Root,
    expand_user,
    file_refusal,
    in_words,
    name_refusal,
    printable,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import TypeAlias

    from plainmind.notes.ignore import Ignore


EVERY_NOTE = "**/*.md"

_PART = pattern(r"(?s:(?:\*\*/)+|\*+|\?|\[!?[^\]/]+\]|\{[^{}]*\}|.)")


def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """Make a pattern ready for `fullmatch`; None when it takes every note, which needs no matching at all."""
    if pattern == EVERY_NOTE:
        return None
    import re

    try:
        return re.compile(_as_regex(pattern.removeprefix("./")), re.IGNORECASE)
    except re.error as error:
        raise ConfigError(
            f"the pattern `{pattern}` of an extra path cannot be read: {error.msg}",
            hint=f"use a glob such as `{EVERY_NOTE}` or `projects/*.md`",
        ) from error


def _as_regex(pattern: str) -> str:
    return "".join(map(_translate, _PART.findall(pattern)))


def _translate(part: str) -> str:
    if part.startswith("**"):
        return "(?:[^/]+/)*" if part.endswith("/") else ".*"
    if part == "*":
        return "[^/]*"
    if part == "?":
        return "[^/]"
    if part.startswith("[") and len(part) > 1:
        body = part[1:-1].replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
        return f"(?!/)[^{body[1:]}]" if body.startswith("!") else f"[{body}]"
    if part.startswith("{") and len(part) > 1:
        return "(?:" + "|".join(map(_as_regex, part[1:-1].split(","))) + ")"
    from re import escape

    return escape(part)


# First parts of cited paths that are taken: by the workspace itself, and by transcripts.
_TAKEN = frozenset({"memory", "memory.md", "sessions"})


@value
class ExtraPath:
    """More Markdown to index: a file or a folder, absolute or relative to the workspace, `~` expanded."""

    path: str
    pattern: str = EVERY_NOTE  # which files of a folder, relative to it
    name: str | None = (
        None  # how it is cited when it lies outside the workspace; by default the folder's name
    )
    scope: str = PRIVATE  # who may see it
    under: str = ""  # a folder that its name stands in, when it lies outside the workspace


@value
class Mount:
    """A folder or file beneath a root. What is found at `base/x.md` is cited as `cited/x.md`."""

    root: Root
    base: str  # "" is the root itself
    cited: str  # "" when everything keeps its path
    pattern: re.Pattern[str] | None = None
    expected: bool = True  # missing is worth telling
    scope: str = PRIVATE  # who may see what is found here, if nothing else is said about it
    ignore: Ignore | None = None  # where ignore files are heeded: the rules at its top

    @property
    def real(self) -> str:
        """Where it is on disk."""
        return os.path.join(self.root.real, self.base) if self.base else self.root.real

    def covers(self, real: str) -> bool:
        """Whether it names a file, by where that is on disk."""
        folder = self.real
        if real == folder or self.pattern is None:
            return real == folder or real.startswith(folder + "/")
        return real.startswith(folder + "/") and self.pattern.fullmatch(real, len(folder) + 1) is not None


def mounts_of(workspace: Root, extra_paths: Sequence[ExtraPath]) -> tuple[Mount, ...]:
    """Give every extra path its place. Names depend on the configuration alone, never on what exists today.

    A path that lies in the workspace goes through the workspace's own root, where no link is followed. A path
    outside was chosen by the operator, so links in it are resolved: once, here.
    """
    inside = [_inside(workspace, extra.path) for extra in extra_paths]
    taken = set(_TAKEN) | {path.partition("/")[0].casefold() for path in inside if path}
    taken |= {extra.under.casefold() for extra in extra_paths if extra.under}
    return tuple(
        Mount(workspace, path, path, compile_pattern(extra.pattern), scope=extra.scope)
        if path is not None
        else _outside(workspace, extra, taken)
        for extra, path in zip(extra_paths, inside, strict=True)
    )


def _absolute(workspace: Root, path: str) -> str:
    return os.path.normpath(os.path.join(workspace.path, expand_user(path)))


def _inside(workspace: Root, path: str) -> str | None:
    """Give the path relative to the workspace, or None when it lies outside."""
    absolute = _absolute(workspace, path)
    for candidate in (absolute, os.path.realpath(absolute)):
        for top in (workspace.path, workspace.real):
            if candidate == top:
                return ""
            if candidate.startswith(top.rstrip("/") + "/"):
                return candidate[len(top.rstrip("/")) + 1 :]
    return None


def _outside(workspace: Root, extra: ExtraPath, taken: set[str]) -> Mount:
    """Mount by the parent folder, so that a file and a folder are the same case."""
    path = _absolute(workspace, extra.path)
    is_file = path.lower().endswith(".md") and not os.path.isdir(path)
    folder = os.path.dirname(path) if is_file else path
    own_name = _citable(extra.name or os.path.basename(folder))
    name = _unique(f"{extra.under}/{own_name}" if extra.under else own_name, taken)
    parent, base = os.path.split(os.path.realpath(path))
    cited = f"{name}/{os.path.basename(path)}" if is_file else name
    return Mount(Root(parent), base, cited, compile_pattern(extra.pattern), scope=extra.scope)


def _citable(name: str) -> str:
    return UNCITABLE.sub("-", name.replace("/", "-")).strip(". ")[:60] or "extra"


def _unique(name: str, taken: set[str]) -> str:
    unique = next(option for option in _numbered(name) if option.casefold() not in taken)
    taken.add(unique.casefold())
    return unique


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


# Each level on the way down holds one descriptor open.
MAX_DEPTH = 64
# A folder of notes that has more than this in it is not one: each search would look at all of it.
MOST_ENTRIES = 400_000
RULE_FILES = frozenset({".gitignore", ".plainmindignore"})
_WITH_RULES = RULE_FILES | {".obsidian"}

# Told of each open folder, and how what is in it is cited ("" or with a final slash), before it is listed.
Enter: TypeAlias = "Callable[[int, str], None]"

_by_name = attrgetter("name")


@value
class Reading:
    """How a text is read of which a copy is kept without secrets; an older copy may show one that is known by now."""

    rules: int = 0  # the version of those that find secrets; 0 where nothing is hidden
    known_since: int = 0  # when the newest of the secrets that are known word by word became so

    def __str__(self) -> str:
        return f"@{self.rules}.{self.known_since}" if self.rules else ""

    def is_older_than(self, other: Reading) -> bool:
        """Whether something may show in a copy that was read so, and not in one that is read as the other says."""
        return self.rules < other.rules or self.known_since < other.known_since


AS_IT_IS = Reading()


def reading_in(known_hash: str) -> Reading:
    """How a file was read that the index knows by such a hash."""
    rules, _, known_since = known_hash.partition("@")[2].partition(".")
    return (
        Reading(int(rules), int(known_since)) if rules.isdecimal() and known_since.isdecimal() else AS_IT_IS
    )


@value
class FoundFile:
    """A file of the memory as it was seen, and the way to read it."""

    path: str  # as cited
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int
    root: Root = field(repr=False, compare=False)
    relative: str = field(repr=False, compare=False)
    scope: str = PRIVATE  # who may see it
    reading: Reading = AS_IT_IS

    @property
    def real(self) -> str:
        """Where it is on disk."""
        return os.path.join(self.root.real, self.relative)

    @property
    def changed_at(self) -> str | None:
        """When it was last changed, such as `2026-02-10T09:31:00+00:00`; None for a time that no calendar has."""
        from datetime import UTC, datetime

        try:
            return datetime.fromtimestamp(self.mtime_ns / 1e9, UTC).isoformat(timespec="seconds")
        except (OverflowError, ValueError, OSError):
            return None


@value
class Discovery:
    """What a look at the memory found. `unseen` could not be looked at: there, absence proves nothing."""

    files: tuple[FoundFile, ...]
    skipped: tuple[FileFailure, ...]
    unseen: tuple[str, ...] = ()  # cited folders and files
    root_missing: bool = False
    moment: int | None = None  # when that was, for `TextSource.changed_since`; None when that cannot tell

    def may_hide(self, path: str) -> bool:
        """Whether a file that was not found may still be there: what is known about it must be kept."""
        return self.root_missing or any(
            not place or path == place or path.startswith(place + "/") for place in self.unseen
        )


@value
class _Folder:
    """An open folder on the way down; `relative` and `cited` are empty or end with a slash."""

    mount: Mount
    descriptor: int
    relative: str
    cited: str
    depth: int
    ignore: Ignore | None


class Sweep:
    """Collects files from mounts. With `wanted`, only the way to that one cited path is looked at.

    Folders are opened beneath one another without following links, so that a folder swapped for a link while
    we look shows nothing of what is behind it.
    """

    def __init__(
        self,
        *,
        max_file_bytes: int,
        scope_of: Callable[[str, Root, str], str],
        wanted: str | None = None,
        enter: Enter | None = None,
    ) -> None:
        """`scope_of` tells who may see a file, by how it is cited, its root and its path there."""
        self._max_file_bytes = max_file_bytes
        self._scope_of = scope_of
        self._wanted = wanted
        self._enter_folder = enter
        self._files: dict[str, FoundFile] = {}
        self._skipped: list[FileFailure] = []
        self._unseen: list[str] = []
        self._identities: set[tuple[int, int]] = set()
        self._entry_count = 0

    def result(self, *, root_missing: bool = False) -> Discovery:
        """Everything collected so far."""
        return Discovery(
            tuple(self._files.values()), tuple(self._skipped), tuple(self._unseen), root_missing=root_missing
        )

    def visit_curated(self, root: Root) -> None:
        """Look for `MEMORY.md`, and for `memory.md` when there is no such file."""
        lower_case = Mount(root, "memory.md", "memory.md", expected=False)
        if not self.visit_file(Mount(root, "MEMORY.md", "MEMORY.md", expected=False)):
            self.visit_file(lower_case)
            return
        other = self._status(lower_case)
        # Where case does not matter, both names are the same file.
        if other is not None and (other.st_dev, other.st_ino) not in self._identities:
            self.skip("memory.md", "`MEMORY.md` is used instead")

    def visit(self, mount: Mount) -> None:
        """Collect the files of one mount: a folder with everything beneath, or a single file."""
        if self._wanted is not None and mount.cited and not self._leads_to_wanted(mount.cited):
            return
        try:
            folder = mount.root.open_folder(mount.base)
        except NotADirectoryError:
            self.visit_file(mount)
        except PathNotAllowed as error:
            self.skip(mount.cited, str(error))
        except OSError as error:
            self._could_not_see(mount.cited, error, expected=mount.expected)
        else:
            relative, cited = mount.base and mount.base + "/", mount.cited and mount.cited + "/"
            self._walk(_Folder(mount, folder, relative, cited, 1, mount.ignore))

    def visit_file(self, mount: Mount) -> bool:
        """Look at a single file. Returns whether the memory has it now."""
        status = self._status(mount)
        if status is None:
            return False
        if not mount.cited.lower().endswith(".md"):
            self.skip(mount.cited, "not a `.md` file")
            return False
        return self._take(mount, mount.base, mount.cited, status)

    def skip(self, path: str, reason: str) -> None:
        """Note what was left out on purpose."""
        self._skipped.append(FileFailure(printable(path) or ".", reason))

    def _status(self, mount: Mount) -> os.stat_result | None:
        parent, _, name = mount.base.rpartition("/")
        try:
            folder = mount.root.open_folder(parent)
            try:
                if self._enter_folder is not None:
                    cited = mount.cited.rpartition("/")[0]
                    self._enter_folder(folder, cited and cited + "/")
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
            finally:
                os.close(folder)
        except OSError as error:
            self._could_not_see(mount.cited, error, expected=mount.expected)
            return None

    def _walk(self, folder: _Folder) -> None:
        try:
            if self._enter_folder is not None:
                self._enter_folder(folder.descriptor, folder.cited)
            with os.scandir(folder.descriptor) as listing:
                entries = sorted(listing, key=_by_name, reverse=True)
            names = [entry.name for entry in entries]
            if folder.ignore is not None:
                folder = self._with_rules(folder, names)
            are_ordinary = _are_ordinary(names)
            while entries:
                entry = entries.pop()  # and let go of, for each remembers all that was asked about it
                name = entry.name
                if self._wanted is not None and not self._leads_to_wanted(folder.cited + name):
                    continue
                is_named_so = name[-3:].lower() == ".md"
                if is_named_so and entry.is_file(follow_symlinks=False):
                    self._enter(folder, entry, is_ordinary=are_ordinary)
                elif entry.is_symlink():
                    self.skip(folder.cited + name, SYMBOLIC_LINK)
                elif entry.is_dir(follow_symlinks=False):
                    self._descend(folder, name)
                elif is_named_so:
                    self._enter(folder, entry, is_ordinary=are_ordinary)
        except OSError as error:
            self._could_not_see(folder.cited.removesuffix("/"), error)
        finally:
            os.close(folder.descriptor)

    def _with_rules(self, folder: _Folder, names: Sequence[str]) -> _Folder:
        """An open folder with the ignore files that are in it."""
        self._entry_count += len(names)
        if self._entry_count > MOST_ENTRIES:
            raise WorkspaceError(
                f"`{printable(folder.mount.real)}` has more than {MOST_ENTRIES:,} files and folders in it: that is more"
                " than a folder of notes",
                hint="name a folder further down, or write what holds no notes into `.plainmindignore`",
            )
        rules = _WITH_RULES.intersection(names)
        if not rules or folder.ignore is None:
            return folder
        return replace(folder, ignore=folder.ignore.within(folder.descriptor, folder.relative, sorted(rules)))

    def _leads_to_wanted(self, path: str) -> bool:
        assert self._wanted is not None
        return path == self._wanted or self._wanted.startswith(path + "/")

    def _enter(self, folder: _Folder, entry: os.DirEntry[str], *, is_ordinary: bool) -> None:
        name = entry.name
        cited = folder.cited + name
        reason = None if is_ordinary else _reason_to_skip(name)
        if reason is None and folder.ignore is not None:
            reason = folder.ignore.reason(folder.relative + name, is_folder=False)
        if reason:
            self.skip(cited, reason)
            return
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            self._could_not_see(cited, error, expected=False)  # or deleted while we looked
        else:
            self._take(folder.mount, folder.relative + name, cited, status)

    def _descend(self, folder: _Folder, name: str) -> None:
        relative, cited, depth = folder.relative, folder.cited, folder.depth
        reason = _reason_to_skip(name)
        if reason is None and depth >= MAX_DEPTH:
            reason = f"more than {MAX_DEPTH} folders deep"
        if reason is None and folder.ignore is not None:
            reason = folder.ignore.reason(relative + name, is_folder=True)
        if reason is not None:
            self.skip(cited + name, reason)
            return
        try:
            inner = os.open(name, FOLDER_FLAGS, dir_fd=folder.descriptor)
        except NotADirectoryError:
            self.skip(cited + name, SYMBOLIC_LINK)  # it was a folder when it was listed
        except OSError as error:
            self._could_not_see(cited + name, error, expected=False)
        else:
            below = _Folder(
                folder.mount, inner, f"{relative}{name}/", f"{cited}{name}/", depth + 1, folder.ignore
            )
            self._walk(below)

    def _take(self, mount: Mount, relative: str, cited: str, status: os.stat_result) -> bool:
        """Add a file unless a rule forbids it. Returns whether the memory has it now."""
        if mount.pattern is not None and cited != mount.cited:
            start = len(mount.cited) + 1 if mount.cited else 0
            if not mount.pattern.fullmatch(cited, start):
                return False
        size, inode = status.st_size, status.st_ino
        reason = file_refusal(status)
        if reason is None and size > self._max_file_bytes:
            reason = f"{in_words(size)}, {OVER_THE_LIMIT} of {in_words(self._max_file_bytes)}"
        if reason is not None:
            self.skip(cited, reason)
            return False
        # Some network file systems number no file at all.
        identity = (status.st_dev, inode)
        if inode and identity in self._identities:
            return True
        if cited in self._files:
            self.skip(cited, f"`{mount.real}` has a file of this name too; give that extra path a `name`")
            return False
        self._identities.add(identity)
        self._files[cited] = FoundFile(
            cited,
            size,
            status.st_mtime_ns,
            inode,
            status.st_ctime_ns,
            mount.root,
            relative,
            self._scope_of(cited, mount.root, relative),
        )
        return True

    def _could_not_see(self, path: str, error: OSError, *, expected: bool = True) -> None:
        """Note a place that cannot be looked at. Absence counts only where something was expected."""
        if error.errno == errno.ELOOP:
            self.skip(path, SYMBOLIC_LINK)
        elif error.errno in {errno.ENOENT, errno.ENOTDIR} and not expected:
            return
        else:
            self.skip(path, "does not exist" if error.errno == errno.ENOENT else system_reason(error))
            self._unseen.append(path)


CONFLICT_COPY = "a copy left by a sync conflict"
OVER_THE_LIMIT = "over the limit"
# Syncthing; Dropbox, Nextcloud and Obsidian in some languages; Seafile; Resilio.
_CONFLICT = pattern(
    r"\.sync-conflict-|[(（][^()（）]*(?:conflict(?:ed|ing) copy|in Konflikt stehende Kopie|copie en conflit"
    r"|copia en conflicto|競合コピー|冲突(?:的)?副本)[^()（）]*[)）]|\(SFConflict [^()]*\)|\.Conflict\.md$",
    IGNORECASE,
)
_OF_CONFLICTS = ("onfli", "競合", "冲突")  # one is in every such name


def is_conflict_copy(name: str) -> bool:
    """Whether a program that keeps folders in step gave a file this name, because it was changed in two places."""
    return any(part in name for part in _OF_CONFLICTS) and _CONFLICT.search(name) is not None


def system_reason(error: OSError) -> str:
    """Say in the system's words why it refused."""
    return error.strerror or type(error).__name__


def _reason_to_skip(name: str) -> str | None:
    """Why a name is left out, whatever it stands for."""
    if name.startswith("."):
        return "hidden"
    if is_conflict_copy(name):
        return CONFLICT_COPY
    # Nearly all can be cited, and are seen to be without a call more for each.
    return None if name.isprintable() and "\\" not in name and "#L" not in name else name_refusal(name)


# In none of the names that `_reason_to_skip` lets through; a name cannot have the slash that keeps them apart.
_EXTRAORDINARY = ("/.", "\\", "#L", *_OF_CONFLICTS)


def _are_ordinary(names: Sequence[str]) -> bool:
    """Whether none of some names gives a reason to skip it: looked at together,."""
    together = "/" + "/".join(names)
    return together.isprintable() and not any(mark in together for mark in _EXTRAORDINARY)


# Enough for any real `memory/`; a folder of that name in a large source tree must not cost a walk.
_DEPTH_ASKED = 3
_MOST_ENTRIES_ASKED = 2_000


def holds_markdown(folder: str) -> bool:
    """Whether there is a Markdown file in it, or not far below."""
    found = markdown_in(folder, most_entries=_MOST_ENTRIES_ASKED, depth=_DEPTH_ASKED)
    return next(found, None) is not None


def markdown_in(folder: str, *, most_entries: int, depth: int = MAX_DEPTH) -> Iterator[str]:
    """The Markdown files in and beneath a folder, near ones first, until so many entries were looked at."""
    left = most_entries
    level = [folder]
    for _ in range(depth):
        below: list[str] = []
        for path in level:
            for entry in _entries_in(path):
                left -= 1
                if entry.name.lower().endswith(".md") and entry.is_file(follow_symlinks=False):
                    yield entry.path
                if left <= 0:
                    return
                is_entered = entry.name != "node_modules" and not entry.name.startswith(".")
                if is_entered and entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
        level = below


def _entries_in(folder: str) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as found:  # one that cannot be read is no reason to choose it
        yield from itertools.islice(found, _MOST_ENTRIES_ASKED)


def holds_other_files(folder: str) -> bool:
    """Whether there are files in it, and no Markdown is among them or not far below."""
    if holds_markdown(folder):
        return False
    return any(
        not entry.name.startswith(".") and entry.is_file(follow_symlinks=False)
        for entry in _entries_in(folder)
    )
