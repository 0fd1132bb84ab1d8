"""What a folder of notes leaves out: the rules of `.gitignore` and `.plainmindignore` as git reads them, and ours."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from plainmind.base.value import value

OWN_FILE = ".plainmindignore"
GIT_FILE = ".gitignore"
OBSIDIAN = ".obsidian"

_MOST_BYTES = 1_000_000
# What no folder of notes means by its notes. Either file can take one of them back: `!templates/`.
_ALWAYS = """\
node_modules/
bower_components/
site-packages/
__pycache__/
venv/
templates/
Templates/
_templates/
"""
# Where a vault says which folder its templates are in, and the name of the field.
_TEMPLATE_SETTINGS = {
    ".obsidian/templates.json": "folder",
    ".obsidian/plugins/templater-obsidian/data.json": "templates_folder",
}
_ALWAYS_NAME = "the list of what is never a note"
_WILD = frozenset("*?[\\")
_PIECE = r"(?s:\\.|\*\*|\*|\?|\[[!^]?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|.)"
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_NEVER = re.compile(r"(?!)")


@value
class _Rule:
    is_exception: bool
    only_folders: bool
    is_anchored: bool  # it stands for a path from the folder of its file, not for a name wherever that is
    text: str


class IgnoreFile:
    """The rules of one file, for what lies beneath the folder that it is in; the last that fits decides."""

    __slots__ = ("_base", "_is_for_folders", "_names", "_paths", "_patterns", "_rules", "name")

    def __init__(self, text: str, *, folder: str = "", name: str = "") -> None:
        """`folder` is that of the file, empty or with a final slash; `name` is how it is told of."""
        self.name = name
        self._base = len(folder)
        self._rules = tuple(_read_rules(text))
        self._is_for_folders = all(rule.only_folders for rule in self._rules)
        # Most rules are plain names: those are looked up, and only the others are compiled.
        self._names: dict[str, list[int]] = {}
        self._paths: dict[str, list[int]] = {}
        self._patterns: list[tuple[int, re.Pattern[str]]] = []
        for number, rule in enumerate(self._rules):
            if not _WILD.isdisjoint(rule.text):
                self._patterns.append((number, _compile(rule.text)))
            else:
                plain = self._paths if rule.is_anchored else self._names
                plain.setdefault(rule.text, []).append(number)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def verdict(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Whether a path is left out; None when no rule is about it."""
        if self._is_for_folders and not is_folder:
            return None
        relative = path[self._base :]
        if not self._patterns and name not in self._names and relative not in self._paths:
            return None
        fitting = [*self._names.get(name, ()), *self._paths.get(relative, ())]
        best = max(
            (number for number in fitting if is_folder or not self._rules[number].only_folders), default=-1
        )
        for number, pattern in reversed(self._patterns):
            if number <= best:
                break
            rule = self._rules[number]
            if (is_folder or not rule.only_folders) and pattern.fullmatch(
                relative if rule.is_anchored else name
            ):
                best = number
                break
        return None if best < 0 else not self._rules[best].is_exception


class Ignore:
    """All rules that hold in a folder, the strongest first: those of `.plainmindignore`, of `.gitignore`, our own."""

    __slots__ = ("_all", "_git", "_own")

    def __init__(self, own: tuple[IgnoreFile, ...] = (), git: tuple[IgnoreFile, ...] = ()) -> None:
        self._own = own  # that of the innermost folder first
        self._git = git
        self._all = (*own, *git, _OURS)

    def within(self, folder: int, path: str, names: Sequence[str]) -> Ignore:
        """The rules in an open folder beneath this one; `names` are in it, `path` is empty or ends with a slash."""
        own = [made for name in names if name == OWN_FILE and (made := _read_file(folder, path, name))]
        git = [made for name in names if name == GIT_FILE and (made := _read_file(folder, path, name))]
        git += _templates_of_obsidian(folder, path) if OBSIDIAN in names else ()
        return Ignore((*own, *self._own), (*git, *self._git)) if own or git else self

    def reason(self, path: str, *, is_folder: bool) -> str | None:
        """Why something is left out, or None when it is not."""
        name = path.rpartition("/")[2]
        for rules in self._all:
            verdict = rules.verdict(path, name, is_folder=is_folder)
            if verdict is not None:
                return f"ignored by {rules.name}" if verdict else None
        return None


def _read_file(folder: int, path: str, name: str) -> IgnoreFile | None:
    """Read one that is listed; None for a link, as for git, for what cannot be read, and where no rule is."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        raw = os.read(descriptor, _MOST_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return IgnoreFile(raw.decode("utf-8-sig", "replace"), folder=path, name=f"`{path}{name}`") or None


def _templates_of_obsidian(folder: int, path: str) -> Iterator[IgnoreFile]:
    """The folders that Obsidian, and its plug-in Templater, take templates from, whatever they are called."""
    for page, field in _TEMPLATE_SETTINGS.items():
        try:
            with open(os.open(page, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
                raw = file.read(_MOST_BYTES)
        except OSError:
            continue
        import json

        try:
            named = json.loads(raw).get(field)
        except (ValueError, AttributeError):
            continue
        if isinstance(named, str) and named.strip("/ "):
            yield IgnoreFile(f"/{named.strip('/ ')}/", folder=path, name=f"`{path}{page}`")


def _read_rules(text: str) -> Iterator[_Rule]:
    for line in text.split("\n"):
        rule = _without_trailing_spaces(line.removesuffix("\r"))
        if not rule or rule[0] == "#":
            continue
        is_exception = rule[0] == "!"
        rule = rule.removeprefix("!")
        only_folders = rule.endswith("/")
        rule = rule.removesuffix("/")
        is_anchored = "/" in rule
        rule = rule.removeprefix("/")
        if rule:
            yield _Rule(is_exception, only_folders, is_anchored, rule)


def _without_trailing_spaces(line: str) -> str:
    """A blank at the end counts only when it is escaped."""
    bare = line.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if escapes % 2 and len(bare) < len(line) else bare


def _compile(rule: str) -> re.Pattern[str]:
    """Make a pattern of git's for `fullmatch`; one that git takes for broken fits nothing."""
    parts = rule.split("/")
    made: list[str] = []
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        has_escape = not is_last and (len(part) - len(part.rstrip("\\"))) % 2 == 1
        part = part[:-1] if has_escape else part  # noqa: PLW2901 (an escaped slash is a slash)
        if len(part) > 1 and not part.strip("*"):
            made.append(".+" if is_last else "(?:[^/]+/)+" if has_escape else "(?:[^/]+/)*")
        else:
            translated = _translate(part)
            if translated is None:
                return _NEVER
            made.append(translated if is_last else translated + "/")
    try:
        return re.compile("".join(made), re.DOTALL)
    except re.error:
        return _NEVER


def _translate(part: str) -> str | None:
    made: list[str] = []
    for piece in re.findall(_PIECE, part):
        if piece in {"*", "**"}:
            made.append("[^/]*")
        elif piece == "?":
            made.append("[^/]")
        elif piece[0] == "\\":
            if len(piece) == 1:
                return None  # nothing is escaped
            made.append(re.escape(piece[1]))
        elif piece[0] == "[":
            if len(piece) == 1:
                return None  # it is never closed
            made.append(_translate_class(piece[1:-1]))
        else:
            made.append(re.escape(piece))
    return "".join(made)


def _translate_class(body: str) -> str:
    is_negated = body[0] in "!^"
    inner = body[1:] if is_negated else body
    made: list[str] = []
    for piece in re.findall(r"(?s:\[:\w+:\]|\\.|.)", inner):
        if piece[:2] == "[:":
            made.append(_CLASSES.get(piece[2:-2], ""))
        elif len(piece) == 2:
            made.append(re.escape(piece[1]))
        else:
            made.append(piece if piece == "-" else re.escape(piece))
    return f"(?!/)[{'^' if is_negated else ''}{''.join(made)}]"


_OURS = IgnoreFile(_ALWAYS, name=_ALWAYS_NAME)
