"""A folder that nothing done through it can escape: no `..`, no symbolic link, no hard link, no race."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from functools import cache

from plainmind.base.errors import ConfigError, NotFound, PathNotAllowed, PlainmindError, WorkspaceError
from plainmind.base.lazy import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

# Opens a checked relative path beneath an open folder without following any link: (folder, path, flags).
Opener: TypeAlias = Callable[[int, str, int], int]

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4095

READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
# A FIFO without a writer would block a plain open for ever.
FILE_FLAGS = READ_FLAGS | os.O_NONBLOCK
FOLDER_FLAGS = READ_FLAGS | os.O_DIRECTORY
# Passing through a folder needs only the permission to search it, where the platform can say so.
PASSAGE_FLAGS = FOLDER_FLAGS | getattr(os, "O_PATH", 0)
_RESOLVE_FLAGS = PASSAGE_FLAGS & ~os.O_NOFOLLOW

# Control characters, line and paragraph separators, lone surrogates (a name that is not UTF-8), backslash.
UNCITABLE = pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\\\]")

_CITATION = pattern("#L[0-9]")

# Linux tells here which folder a descriptor stands for, by a path without links.
_HANDLES = "/proc/self/fd/"

_OPENAT2 = 437  # the same number on every Linux architecture that CPython supports
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x02, 0x04, 0x08
# What a kernel or a container's system call filter answers when it does not know openat2.
_NO_OPENAT2 = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG, errno.EAGAIN})

_READ_SIZE = 1 << 20
# Loading ctypes for openat2 takes 3 ms: more than it saves for a file or two.
_FEW = 32


def printable(path: str) -> str:
    r"""Make a path fit for one line of a terminal: control characters and broken bytes become `\x0a`."""
    return UNCITABLE.sub(lambda match: ascii(match[0])[1:-1] if match[0] != "\\" else "\\", path)


def check_relative(path: str) -> None:
    """Refuse what is not plainly a relative path, before the disk is asked. Raises PathNotAllowed."""
    if reason := _refusal(path):
        raise PathNotAllowed(
            f"the path `{printable(path[:200])}` is not allowed: {reason}",
            hint="name a file by its path inside the memory, for example `memory/2026-02-10.md`",
        )


def _refusal(path: str) -> str | None:
    """Why a path is refused, or None when it is fine."""
    if not path:
        return "it is empty"
    if path.startswith("/"):
        return "it is absolute"
    if reason := _uncitable_reason(path):
        return reason
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    return next(filter(None, map(_part_refusal, path.split("/"))), None)


def _part_refusal(name: str) -> str | None:
    if not name:
        return "it has an empty part"
    if name in {".", ".."}:
        return f"it has a part `{name}`"
    return f"a part is longer than {MAX_NAME_BYTES} bytes" if len(name.encode()) > MAX_NAME_BYTES else None


def _uncitable_reason(path: str) -> str | None:
    if path.isprintable() and "\\" not in path:
        return None  # as nearly all are: the pattern takes half a millisecond to compile
    found = UNCITABLE.search(path)
    if found is None:
        return None
    character = found[0]
    if character == "\\":
        return "it contains a backslash"
    if character == "\0":
        return "it contains a NUL character"
    if "\ud800" <= character <= "\udfff":
        return "it is not valid UTF-8"
    return "it contains a control character"


def name_refusal(name: str) -> str | None:
    """Why a name found on disk cannot be cited, or None when it can."""
    reason = _uncitable_reason(name)
    if reason is None and "#L" in name and _CITATION.search(name):
        reason = "it reads like a citation of another file"
    return reason and "the name cannot be cited: " + reason


class Root:
    """A folder, and the only way to the files in it.

    The folder itself may be a symbolic link, because the operator chose it: it is resolved once, when it is
    first there, and a link put in its place later is not followed.
    """

    __slots__ = ("_opener", "_real", "path")

    def __init__(self, path: str, *, opener: Opener | None = None) -> None:
        self.path = os.path.abspath(expand_user(path))
        self._opener = opener or ThriftyOpener()
        self._real: str | None = None
        if os.path.isdir(self.path):
            self._real = real_path(self.path)

    def __repr__(self) -> str:
        return f"Root({self.path!r})"

    @property
    def real(self) -> str:
        """The folder without links in its path. Before the folder exists, the path as it was given."""
        if self._real is None:
            if not os.path.isdir(self.path):
                return self.path
            self._real = real_path(self.path)
        return self._real

    def open_folder(self, relative: str = "") -> int:
        """Open a folder beneath the root for listing, "" for the root itself. Raises OSError.

        Never uses openat2, so that a sweep over a workspace does not pay for loading ctypes.
        """
        root = open_real_folder(self.real)
        if not relative:
            return root
        try:
            check_relative(relative)
            return open_by_components(root, relative, FOLDER_FLAGS)
        finally:
            os.close(root)

    def open(self, relative: str) -> int:
        """Open a file for reading: a regular one, with a single name, reached without any link.

        Raises PathNotAllowed, NotFound, or WorkspaceError when the system refuses.
        """
        check_relative(relative)
        root = self._open_root()
        try:
            return self._open_checked(root, relative)
        finally:
            os.close(root)

    def read(self, relative: str, *, max_bytes: int) -> tuple[bytes, os.stat_result]:
        """Read a whole file, and how it looked just before: what changes meanwhile has a later time.

        A file over `max_bytes` is refused, also one that grows past it while it is read.
        """
        descriptor = self.open(relative)
        try:
            status = os.fstat(descriptor)
            data = (
                b"" if status.st_size > max_bytes else _read_up_to(descriptor, max_bytes + 1, status.st_size)
            )
        except OSError as error:
            raise _explanation(error, relative) from error
        finally:
            os.close(descriptor)
        if max(status.st_size, len(data)) > max_bytes:
            raise PathNotAllowed(
                f"`{printable(relative)}` is {in_words(max(status.st_size, len(data)))}, "
                f"over the limit of {in_words(max_bytes)}",
                hint="split the file into smaller ones",
            )
        return data, status

    def _open_root(self) -> int:
        try:
            return open_real_folder(self.real)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise PathNotAllowed(
                    f"the folder `{printable(self.path)}` was replaced by a symbolic link",
                    hint="if you meant it, start the program again: links are resolved once, at the start",
                ) from error
            if error.errno in {errno.ENOENT, errno.ENOTDIR}:
                raise WorkspaceError(
                    f"the folder `{printable(self.path)}` does not exist",
                    hint="create it, mount it again, or name another one",
                ) from error
            raise _explanation(error, self.path) from error

    def _open_checked(self, root: int, relative: str) -> int:
        for attempt in range(3):
            try:
                descriptor = self._opener(root, relative, FILE_FLAGS)
            except OSError as error:
                raise _explanation(error, relative) from error
            status = os.fstat(descriptor)
            if reason := file_refusal(status):
                os.close(descriptor)
                raise PathNotAllowed(
                    f"`{printable(relative)}` is not read: {reason}", hint=_HINTS.get(reason)
                )
            # No name left: an editor replaced the file just now, so its new bytes are one more open away.
            # Some FUSE file systems report no links for any file, so the third answer counts.
            if status.st_nlink == 1 or attempt == 2:
                break
            os.close(descriptor)
        return descriptor


def user_home(environ: Mapping[str, str] = os.environ) -> str:
    """Find the user's own folder. ConfigError when nothing names one: a folder called `~` is never meant."""
    home = environ.get("HOME") or os.environ.get("HOME") or _home_on_record()
    if not home.startswith("/"):
        why = (
            f"HOME is `{home}`, which is not absolute"
            if home
            else "HOME is not set, and the system knows none"
        )
        raise ConfigError(f"the user has no home folder: {why}", hint="set HOME, or PLAINMIND_HOME")
    return os.path.normpath(home)


def user_home_or_root(environ: Mapping[str, str] = os.environ) -> str:
    """The user's own folder; where there is none, `/`, above which nothing is anybody's."""
    try:
        return user_home(environ)
    except ConfigError:
        return "/"


def _home_on_record() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a number without a name, as containers have them
        return ""


def expand_user(path: str, environ: Mapping[str, str] = os.environ) -> str:
    """Put the user's own folder in the place of a `~` at the beginning. ConfigError when there is none."""
    if path == "~" or path.startswith("~/"):
        return user_home(environ).rstrip("/") + path[1:] or "/"
    return os.path.expanduser(path)  # `~ann/notes`


def real_path(path: str) -> str:
    """Resolve the links of a path that the operator chose: done once, and from then on no link is followed."""
    try:
        folder = os.open(path, _RESOLVE_FLAGS)
    except OSError:
        return os.path.realpath(path)  # not there yet, or not a folder
    try:
        real = os.readlink(f"{_HANDLES}{folder}")
    except OSError:
        return os.path.realpath(path)
    finally:
        os.close(folder)
    return real if real.startswith("/") and os.path.lexists(real) else os.path.realpath(path)


def open_real_folder(path: str, flags: int = FOLDER_FLAGS) -> int:
    """Open a folder by its absolute path, in which no part may be a link. Raises OSError.

    What is then done by names in that folder happens there, whatever is put in the place of any folder meanwhile.
    """
    try:
        folder = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError:
        return _open_each(path, flags)  # which says more exactly what is in the way
    try:
        if os.readlink(f"{_HANDLES}{folder}") == path:
            return folder  # one call for all parts: had one of them been a link, it would be another path
    except OSError:
        pass  # not on Linux
    os.close(folder)
    return _open_each(path, flags)


def _open_each(path: str, flags: int) -> int:
    relative = os.path.abspath(path).strip("/")
    top = os.open("/", PASSAGE_FLAGS if relative else flags)
    if not relative:
        return top
    try:
        return open_by_components(top, relative, flags)
    finally:
        os.close(top)


HARD_LINK = "a hard link: the same bytes have another name"
SYMBOLIC_LINK = "a symbolic link, not followed"
_HINTS = {HARD_LINK: "replace the link by a copy of the file"}


def file_refusal(status: os.stat_result) -> str | None:
    """Why what was found may not be read, or None when it may: a regular file with one name."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return HARD_LINK if status.st_nlink > 1 else None
    if stat.S_ISLNK(mode):
        return SYMBOLIC_LINK
    return "a folder, not a file" if stat.S_ISDIR(mode) else "not a regular file"


def in_words(size: int) -> str:
    """Say a number of bytes the way people do: `16.0 MB`."""
    if size < 1_000_000:
        return f"{size:,} bytes"
    return f"{size / 1_000_000:,.1f} MB" if size < 1_000_000_000 else f"{size / 1_000_000_000:,.1f} GB"


class ThriftyOpener:
    """Opens in the way that costs less: the first few files name by name, further ones by openat2."""

    __slots__ = ("_opened",)

    def __init__(self) -> None:
        self._opened = 0

    def __call__(self, folder: int, relative: str, flags: int) -> int:
        """Open a file; both ways are equally safe."""
        if self._opened >= _FEW:
            return open_by_openat2(folder, relative, flags)
        self._opened += 1
        return open_by_components(folder, relative, flags)


def open_by_openat2(folder: int, relative: str, flags: int) -> int:
    """Open by one openat2 call where the kernel has it, else component by component."""
    openat2 = _load_openat2()
    if openat2 is None:
        return open_by_components(folder, relative, flags)
    try:
        return openat2(folder, relative, flags)
    except OSError as error:
        if error.errno not in _NO_OPENAT2:
            raise
        return open_by_components(folder, relative, flags)


def open_by_components(folder: int, relative: str, flags: int) -> int:
    """Open one name after the other, none of them a link; as safe as openat2, for `..` was refused before."""
    *passages, last = relative.split("/")
    current = folder
    try:
        for name in passages:
            following = _open_name(current, name, PASSAGE_FLAGS)
            if current != folder:
                os.close(current)
            current = following
        return _open_name(current, last, flags)
    finally:
        if current != folder:
            os.close(current)


def _open_name(folder: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except NotADirectoryError as error:
        # With O_DIRECTORY, Linux calls a link "not a directory"; we owe the user the real reason.
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from error
        raise


@cache
def _load_openat2() -> Opener | None:
    """Bind the system call, or None where there is none."""
    import sys

    if sys.platform != "linux":
        return None
    import ctypes

    class OpenHow(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    resolve = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
    size = ctypes.c_size_t(ctypes.sizeof(OpenHow))

    def openat2(folder: int, relative: str, flags: int) -> int:
        how = OpenHow(flags, 0, resolve)
        name = os.fsencode(relative)
        for _ in range(64):
            descriptor: int = syscall(
                ctypes.c_long(_OPENAT2), ctypes.c_int(folder), ctypes.c_char_p(name), ctypes.byref(how), size
            )
            if descriptor >= 0:
                return descriptor
            code = ctypes.get_errno()
            # EAGAIN: a rename elsewhere made the kernel unsure that the path stays beneath; ask again.
            if code not in {errno.EINTR, errno.EAGAIN}:
                break
        raise OSError(code, os.strerror(code), relative)

    return openat2


def _read_up_to(descriptor: int, limit: int, expected: int) -> bytes:
    """Read to the end of the file, or `limit` bytes of it."""
    pieces: list[bytes] = []
    remaining = limit
    size = min(limit, expected + 1)
    while remaining > 0 and (piece := os.read(descriptor, size)):
        pieces.append(piece)
        remaining -= len(piece)
        size = min(remaining, _READ_SIZE)
    return b"".join(pieces)


_LINK_FOUND = frozenset({errno.ELOOP, errno.EXDEV, errno.EMLINK})
_NO_FILE = frozenset({errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP})


def _explanation(error: OSError, path: str) -> PlainmindError:
    """Turn what the system said into one of our errors."""
    shown = printable(path)
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return NotFound(f"`{shown}` does not exist", hint="check the spelling; upper and lower case differ")
    if error.errno in _LINK_FOUND:
        return PathNotAllowed(
            f"`{shown}` leads through a symbolic link, and links are not followed",
            hint="put the file itself into the memory, or name the folder it is in as an extra path",
        )
    if error.errno in _NO_FILE:
        return PathNotAllowed(f"`{shown}` is not read: not a regular file", hint="remove it from the memory")
    if error.errno == errno.ENAMETOOLONG:
        return PathNotAllowed(f"the path `{shown[:200]}` is too long", hint="check the spelling")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return WorkspaceError(f"no permission to read `{shown}`", hint="check who owns it: `ls -l` shows it")
    reason = error.strerror or "unknown error"
    return WorkspaceError(
        f"`{shown}` could not be read: {reason}", hint="try again; if it stays, check the disk"
    )
