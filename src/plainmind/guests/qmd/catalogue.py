"""The file in which QMD keeps its collections: where it is, what stands in it, and how it is written.

It is QMD's own file: collections that were made with QMD are here too. It is YAML; what we write is JSON, which YAML
has as a part of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from plainmind.base.errors import ConfigError, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.value import field, value
from plainmind.files.atomic import write_atomically
from plainmind.files.safe_open import expand_user, user_home
from plainmind.files.system import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EVERY_NOTE = "**/*.md"
DEFAULT_INDEX = "index"
_LOCAL = ".qmd"
_LOCAL_FILES = ("index.yaml", "index.yml")
_MOST_BYTES = 10_000_000


@value
class Shelf:
    """One collection: a folder, and which of its files."""

    name: str
    path: str
    pattern: str
    ignore: tuple[str, ...] = ()
    update: str | None = None  # a command that its owner wants to be run before each update
    is_default: bool = True  # asked when a question names no collection
    contexts: Mapping[str, str] = field(
        default_factory=dict
    )  # by the beginning of a path, what the files there are about


@value
class Whereabouts:
    """Where the files of one index are."""

    config: str
    cache: str  # the folder
    index: str = DEFAULT_INDEX
    project: str | None = None  # whose own index it is; then nothing outside of it is read

    @property
    def ledger(self) -> str:
        """The database that other programs look into."""
        return os.path.join(self.cache, f"{self.index}.sqlite")

    @property
    def home(self) -> str:
        """Where our own index is."""
        return os.path.join(self.cache, "plainmind", self.index)


def whereabouts(environ: Mapping[str, str], cwd: str, index: str | None) -> Whereabouts:
    """Find the index that is meant: one by name, else that of the project, else the only one."""
    if index is None:
        local = _local_config(cwd)
        if local is not None:
            folder = os.path.dirname(local)
            return Whereabouts(local, folder, project=os.path.dirname(folder))
    name = index or DEFAULT_INDEX
    if "/" in name:
        name = os.path.abspath(os.path.join(cwd, name)).replace("/", "_").removeprefix("_")
    config = environ.get("QMD_CONFIG_DIR") or os.path.join(
        environ.get("XDG_CONFIG_HOME") or os.path.join(user_home(environ), ".config"), "qmd"
    )
    cache = os.path.join(environ.get("XDG_CACHE_HOME") or os.path.join(user_home(environ), ".cache"), "qmd")
    return Whereabouts(os.path.join(config, f"{name}.yml"), cache, name)


def known_indexes(environ: Mapping[str, str], folder: str) -> list[Whereabouts]:
    """The indexes that we made for this user: those by name, and that of the project which a folder is in."""
    own = whereabouts(environ, folder, None)
    found = [own] if own.project else []
    try:
        usual = whereabouts(environ, folder, DEFAULT_INDEX)
        names = sorted(os.listdir(os.path.dirname(usual.home)))
    except (ConfigError, FileNotFoundError, NotADirectoryError):  # there is not even a place for them
        names = []
    found += [whereabouts(environ, folder, name) for name in names]
    return [where for where in found if os.path.isdir(where.home)]


def _local_config(folder: str) -> str | None:
    while True:
        for name in _LOCAL_FILES:
            path = os.path.join(folder, _LOCAL, name)
            if os.path.isfile(path):
                return path
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


class Catalogue:
    """The collections of one index."""

    def __init__(self, where: Whereabouts) -> None:
        self.where = where
        self._found = _read(where.config)

    @property
    def shelves(self) -> dict[str, Shelf]:
        """The collections by name, in the order in which they were made."""
        return {
            name: _shelf(name, entry) for name, entry in self._entries().items() if isinstance(entry, dict)
        }

    @property
    def outside(self) -> list[Shelf]:
        """Collections of a project's own index that lie elsewhere: whoever wrote them, they are not read."""
        project = self.where.project
        if project is None:
            return []
        top = os.path.realpath(project)
        return [
            shelf
            for shelf in self.shelves.values()
            if not f"{os.path.realpath(shelf.path)}/".startswith(f"{top}/")
        ]

    @property
    def readable(self) -> dict[str, Shelf]:
        """The collections whose files are read."""
        outside = {shelf.name for shelf in self.outside}
        return {name: shelf for name, shelf in self.shelves.items() if name not in outside}

    @property
    def global_context(self) -> str | None:
        """What all files are about."""
        found = self._found.get("global_context")
        return found if isinstance(found, str) and found else None

    def context_of(self, name: str, path: str) -> str | None:
        """What a file is about: all that is said of it, the most general first."""
        shelf = self.shelves.get(name)
        contexts = shelf.contexts if shelf is not None else {}
        full = f"/{path}"
        fitting = sorted(
            (f"/{prefix.lstrip('/')}", text)
            for prefix, text in contexts.items()
            if full.startswith(f"/{prefix.lstrip('/')}")
        )
        fitting.sort(key=lambda each: len(each[0]))
        texts = [self.global_context, *(text for _, text in fitting)]
        return "\n\n".join(text for text in texts if text) or None

    def add(self, name: str, path: str, mask: str) -> None:
        """Make a collection."""
        self._entries()[name] = {"path": path, "pattern": mask}
        self._write()

    def remove(self, name: str) -> None:
        """Take a collection out."""
        del self._entries()[name]
        self._write()

    def rename(self, old: str, new: str) -> None:
        """Give a collection another name."""
        entries = self._entries()
        entries[new] = entries.pop(old)
        self._write()

    def change(self, name: str, **settings: object) -> None:
        """Change settings of a collection; None takes one out."""
        entry = self._entries()[name]
        for key, given in settings.items():
            if given is None:
                entry.pop(key, None)
            else:
                entry[key] = given
        self._write()

    def set_context(self, name: str | None, prefix: str, text: str | None) -> None:
        """Say what files are about, everywhere when no collection is named; with None, say it no more."""
        entry = self._found if name is None else self._entries()[name]
        contexts, key = (
            (entry, "global_context") if name is None else (entry.setdefault("context", {}), prefix)
        )
        if text is not None:
            contexts[key] = text
        else:
            contexts.pop(key, None)
        if not contexts and name is not None:
            del entry["context"]
        self._write()

    def create(self) -> None:
        """Write an index without collections, unless there is one."""
        if not os.path.exists(self.where.config):
            self._entries()
            self._write()

    def _entries(self) -> dict[str, Any]:
        entries = self._found.get("collections")
        if not isinstance(entries, dict):
            entries = self._found["collections"] = {}
        return entries

    def _write(self) -> None:
        text = json.dumps(self._found, indent=2, ensure_ascii=False) + "\n"
        write_atomically(self.where.config, text.encode("utf-8", "surrogateescape"))


def _shelf(name: str, entry: Mapping[str, Any]) -> Shelf:
    ignore, contexts, update = entry.get("ignore"), entry.get("context"), entry.get("update")
    path, mask = entry.get("path"), entry.get("pattern")
    return Shelf(
        name,
        expand_user(path) if isinstance(path, str) else "",
        mask if isinstance(mask, str) and mask else EVERY_NOTE,
        tuple(each for each in ignore if isinstance(each, str)) if isinstance(ignore, list) else (),
        update if isinstance(update, str) and update else None,
        entry.get("includeByDefault") is not False,
        {str(prefix): str(text) for prefix, text in contexts.items()} if isinstance(contexts, dict) else {},
    )


def _read(path: str) -> dict[str, Any]:
    try:
        data = read_file(path, most=_MOST_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise PlainmindError(
            f"{path} cannot be read: {error.strerror}", hint="check its permissions"
        ) from error
    text = data.decode("utf-8-sig", "surrogateescape")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        try:
            found = read_yaml(text)
        except ValueError as error:
            raise PlainmindError(
                f"{path} cannot be read: {error}", hint="correct it by hand; nothing was changed"
            ) from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise PlainmindError(
            f"{path} cannot be read: it has no settings by name",
            hint="correct it by hand; nothing was changed",
        )
    return found


# --- as much of YAML as is in such files: maps, lists, texts on one line or in a block ---

_KEY = pattern(
    r"""(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#'"\[\]{},&*!|>%@`-][^#]*?|-\S[^#]*?)\s*:(?:\s+(?P<rest>.*))?"""
)
_BLOCK = pattern(r"(?P<style>[|>])(?P<chomp>[+-]?)\s*(?:#.*)?")
_NO_PLAIN = ("&", "*", "!", "%", "@", "`")
_WORDS: Mapping[str, object] = {"true": True, "false": False, "null": None, "~": None, "": None}


def read_yaml(text: str) -> object:
    """Read a document. Raises ValueError, which names the line, for what is not understood."""
    reader = _Yaml(text.split("\n"))
    found = reader.node(0)
    reader.skip()
    if reader.at < len(reader.lines):
        raise ValueError(f"line {reader.at + 1} does not belong to what stands before it")
    return found


class _Yaml:
    """Reads lines by how far they are indented."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = [line.rstrip("\r") for line in lines]
        self.at = 0

    def skip(self) -> None:
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if line and not line.startswith("#") and line not in {"---", "..."}:
                return
            self.at += 1

    def node(self, least: int) -> object:
        """Read what begins at the next line, if that is indented enough."""
        self.skip()
        if self.at >= len(self.lines) or self._depth() < least:
            return None
        depth = self._depth()
        if self._line().startswith("- ") or self._line() == "-":
            return self._list(depth)
        if _KEY.fullmatch(self._line()):
            return self._map(depth)
        scalar = self._scalar(self._line())
        self.at += 1
        return scalar

    def _map(self, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        while True:
            self.skip()
            if self.at >= len(self.lines) or self._depth() < depth:
                return found
            match = _KEY.fullmatch(self._line()) if self._depth() == depth else None
            if match is None:
                raise ValueError(f"line {self.at + 1} is not understood")
            rest = (match["rest"] or "").strip()
            key = str(self._scalar(match["key"]))
            block = _BLOCK.fullmatch(rest)
            self.at += 1
            if block is not None:
                found[key] = self._block(depth, block["style"], block["chomp"])
            elif rest and not rest.startswith("#"):
                self.at -= 1
                found[key] = self._scalar(rest)
                self.at += 1
            else:
                found[key] = self._below(depth)

    def _below(self, depth: int) -> object:
        self.skip()
        is_list = self.at < len(self.lines) and self._line().startswith("-") and self._depth() == depth
        return self._list(depth) if is_list else self.node(depth + 1)

    def _list(self, depth: int) -> list[object]:
        found: list[object] = []
        while True:
            self.skip()
            if self.at >= len(self.lines) or self._depth() != depth or not self._line().startswith("-"):
                return found
            found.append(self._scalar(self._line()[1:].strip()))
            self.at += 1

    def _block(self, depth: int, style: str, chomp: str) -> str:
        lines: list[str] = []
        while self.at < len(self.lines) and (not self.lines[self.at].strip() or self._depth() > depth):
            lines.append(self.lines[self.at])
            self.at += 1
        inner = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
        text = "\n".join(line[inner:] for line in lines).rstrip("\n")
        if style == ">":
            text = "\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))
        return text if chomp == "-" or not text else f"{text}\n"

    def _scalar(self, text: str) -> object:
        if text.startswith('"') or text[:1] in {"[", "{"}:
            try:
                return json.JSONDecoder(strict=False).raw_decode(text)[0]
            except ValueError as error:
                raise ValueError(f"line {self.at + 1} is not understood") from error
        if text.startswith("'"):
            end = text.replace("''", "\0\0").find("'", 1)
            if end < 0:
                raise ValueError(f"line {self.at + 1} has no closing quote")
            return text[1:end].replace("''", "'")
        if text.startswith(_NO_PLAIN):
            raise ValueError(f"line {self.at + 1} has `{text[:1]}`, which is not understood")
        plain = text.partition(" #")[0].strip()
        return _WORDS.get(plain, plain)

    def _line(self) -> str:
        return self.lines[self.at].strip()

    def _depth(self) -> int:
        line = self.lines[self.at]
        return len(line) - len(line.lstrip(" "))
