"""The repository that a folder belongs to, known by where it comes from: its clones and worktrees are one project."""

from __future__ import annotations

import os

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import sha256_text
from plainmind.base.value import value

_MOST_BYTES = 1_000_000
_ORIGIN = pattern(r'\s*\[\s*remote\s+"origin"\s*\]\s*')
_SECTION = pattern(r"\s*\[.*")
_URL = pattern(r"\s*url\s*=\s*(.+?)\s*")
# `https://user:secret@host:443/path`, and `user@host:path` as ssh is mostly written.
_ADDRESS = pattern(r"(?:\w[\w+.-]*://)?(?:[^@/]*@)?(?P<host>[^:/]+)(?::\d+(?=/))?[:/](?P<path>.+)")


@value
class Repository:
    """A repository; `identity` is the same wherever it was cloned to."""

    identity: str

    @property
    def name(self) -> str:
        """A name for folders: readable, and no other repository has it."""
        word = os.path.basename(self.identity)
        plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in word).strip(".")[:40]
        return f"{plain or 'project'}-{sha256_text(self.identity)[:8]}"


def project_workspace(folder: str, home: str) -> str:
    """Where the memory of the project is that a folder belongs to. Raises PlainmindError outside of a repository."""
    repository = repository_of(folder)
    if repository is None:
        raise PlainmindError(
            f"`{folder}` is in no git repository, and --project asks for the memory of one",
            hint="start this in a repository, or leave --project out",
        )
    return os.path.join(home, "projects", repository.name)


def repository_of(folder: str) -> Repository | None:
    """The repository that a folder is in; None when there is none."""
    folder = os.path.realpath(folder)
    while True:
        shared = _shared_git_folder(os.path.join(folder, ".git"))
        if shared is not None:
            return Repository(_origin_in(shared) or os.path.dirname(shared))
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _shared_git_folder(path: str) -> str | None:
    """The folder that all worktrees of a repository share, from the `.git` of one of them."""
    if os.path.isdir(path):
        return path
    place = _first_line(path)
    if not place.startswith("gitdir:"):
        return None
    own = os.path.join(os.path.dirname(path), place.removeprefix("gitdir:").strip())
    shared = _first_line(os.path.join(own, "commondir"))  # a worktree has one, a submodule has none
    return os.path.realpath(os.path.join(own, shared))


def _origin_in(git_folder: str) -> str | None:
    is_origin = False
    for line in _text(os.path.join(git_folder, "config")).splitlines():
        if _SECTION.fullmatch(line):
            is_origin = _ORIGIN.fullmatch(line) is not None
        elif is_origin and (found := _URL.fullmatch(line)):
            return _without_spelling(found[1])
    return None


def _without_spelling(url: str) -> str:
    """An address as everybody would write it: who asks, how, and how it ends say nothing about what it is."""
    found = _ADDRESS.fullmatch(url)
    if found is None or url.startswith(("/", ".", "file:")):
        return os.path.normpath(url.removeprefix("file://"))
    return f"{found['host'].lower()}/{found['path'].strip('/').removesuffix('.git')}"


def _first_line(path: str) -> str:
    return _text(path).partition("\n")[0]


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
