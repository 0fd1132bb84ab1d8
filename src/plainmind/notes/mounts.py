"""The places where memory is looked for, and how the files found there are cited."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from plainmind.base.model import PRIVATE
from plainmind.base.value import value
from plainmind.files.safe_open import UNCITABLE, Root
from plainmind.notes.patterns import EVERY_NOTE, compile_pattern

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
    return os.path.normpath(os.path.join(workspace.path, os.path.expanduser(path)))


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
