"""Which folders are meant: the home of our state, the workspace, the index."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterator, Mapping

from plainmind.base.errors import ConfigError
from plainmind.base.value import value
from plainmind.config.origin import Origin

# Enough for any real `memory/`; a folder of that name in a large source tree must not cost a walk.
_MAX_DEPTH = 3
_MAX_ENTRIES = 2_000


@value
class ResolvedWorkspace:
    """The workspace, and why it is this one. It need not exist."""

    path: str
    origin: Origin


def home_folder(environ: Mapping[str, str]) -> str:
    """Where our state is kept: `PLAINMIND_HOME`, or `~/.plainmind`."""
    return os.path.abspath(absolute(environ.get("PLAINMIND_HOME") or "~/.plainmind", "", environ))


def resolve_workspace(
    flag: str | None,
    environ: Mapping[str, str],
    configured: str | None,
    cwd: str,
    home: str,
    *,
    configured_by: Origin | None = None,
) -> ResolvedWorkspace:
    """Flag, then environment, then configuration, then the nearest one above `cwd`, then ours in `home`."""
    if flag is not None:
        if not flag or "\0" in flag:
            raise ConfigError("`--workspace` must name a folder", key="workspace", hint="it is empty")
        return ResolvedWorkspace(absolute(flag, cwd, environ), Origin("flag", "--workspace"))
    if environ.get("PLAINMIND_WORKSPACE"):
        path = absolute(environ["PLAINMIND_WORKSPACE"], cwd, environ)
        return ResolvedWorkspace(path, Origin("environment", "PLAINMIND_WORKSPACE"))
    if configured:
        return ResolvedWorkspace(absolute(configured, home, environ), configured_by or Origin("user"))
    for folder in _upwards(cwd, user_home(environ)):
        marker = _marker_in(folder)
        if marker is not None:
            return ResolvedWorkspace(folder, Origin("found", marker))
    return ResolvedWorkspace(os.path.join(home, "workspace"), Origin("default"))


def index_folder(template: str, *, home: str, agent_id: str, environ: Mapping[str, str]) -> str:
    """Fill in the folder that `store.path` means."""
    filled = template.replace("{home}", home).replace("{agentId}", agent_id)
    return absolute(filled, home, environ)


def absolute(path: str, base: str, environ: Mapping[str, str]) -> str:
    """Make a path absolute: `~` is the user's home, relative ones start at `base`."""
    if path == "~" or path.startswith("~/"):
        path = user_home(environ) + path[1:]
    return os.path.normpath(os.path.join(base, path))


def user_home(environ: Mapping[str, str]) -> str:
    """Find the user's home folder in this environment."""
    return os.path.normpath(environ.get("HOME") or os.path.expanduser("~"))


def _upwards(folder: str, last: str) -> Iterator[str]:
    """Give the folder and those above it, up to the user's home: what is above that is not theirs."""
    folder = os.path.normpath(folder)
    ends = {last, os.path.realpath(last)}
    while True:
        yield folder
        above = os.path.dirname(folder)
        if folder in ends or above == folder:
            return
        folder = above


def _marker_in(folder: str) -> str | None:
    """Find what makes the folder a workspace."""
    try:
        shared = os.stat(folder).st_mode & (stat.S_ISVTX | stat.S_IWOTH)
    except OSError:
        return None
    # In a folder like /tmp anybody may put a MEMORY.md above the work of others.
    if shared == stat.S_ISVTX | stat.S_IWOTH:
        return None
    for name in ("MEMORY.md", "memory.md"):
        path = os.path.join(folder, name)
        if _is(path, stat.S_ISREG):
            return path
    path = os.path.join(folder, "memory")
    return path if _is(path, stat.S_ISDIR) and _holds_markdown(path) else None


def _is(path: str, of_type: Callable[[int], bool]) -> bool:
    try:
        return of_type(os.lstat(path).st_mode)  # a link does not count: links are never followed
    except OSError:
        return False


def _holds_markdown(folder: str) -> bool:
    """Whether there is a Markdown file in it, or not far below."""
    left = _MAX_ENTRIES
    level = [folder]
    for _ in range(_MAX_DEPTH):
        below: list[str] = []
        for path in level:
            for entry in _entries(path):
                left -= 1
                if entry.name.lower().endswith(".md") and entry.is_file(follow_symlinks=False):
                    return True
                if left <= 0:
                    return False
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    below.append(entry.path)
        level = below
    return False


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(itertools.islice(found, _MAX_ENTRIES))
    except OSError:
        return []  # a folder that cannot be read is no reason to choose it
