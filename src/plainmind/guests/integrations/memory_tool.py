"""Claude's memory tool, `memory_20250818`, on the notes of a workspace: six commands on `/memories`.

What it answers is worded as in Anthropic's own implementation, because that is what the model has learnt to read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from plainmind.agent.answers import ToolAnswer
from plainmind.base.errors import ConflictError, NotFound, PathNotAllowed, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.notes.memory_files import MemoryFiles


DEFINITION: Mapping[str, str] = {"type": "memory_20250818", "name": "memory"}

ROOT = "/memories"
# A file that is longer is read in parts: it would fill a context window.
MOST_CHARS_VIEWED = 200_000

ARGUMENTS: Mapping[str, Mapping[str, type]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}


_TEXTS = frozenset({"file_text", "old_str", "new_str", "insert_text"})  # what goes into files


class Refused(Exception):
    """A command that cannot be carried out; the message is for the model."""


@value
class Place:
    """A path as the model wrote it, and the name that it stands for."""

    path: str
    name: str  # "" is /memories itself


@value
class Done:
    """What a command answers, and which files of the memory are gone by it."""

    text: str
    gone: tuple[str, ...] = ()  # as cited
    viewed: tuple[str, int, int] | None = None  # name, first and last line of what was read


class MemoryTool:
    """Carries out commands on one folder of notes; a mistake of the model is an answer, never an exception."""

    def __init__(
        self,
        files: MemoryFiles | None,
        *,
        refusal: str = "",
        changing: Callable[[], object] = lambda: None,
        changed: Callable[[Sequence[str]], object] = lambda _gone: None,
        viewed: Callable[[str, int, int, str], object] = lambda _name, _first, _last, _text: None,
    ) -> None:
        """Work on `files`; None when there are none for this conversation, and then `refusal` is the answer.

        `changing` is called before every change, and raises when there must be none now; `changed` after it, with
        the files that are gone, so that a search knows of it. `viewed` is told which lines the model has read.
        """
        self._files = files
        self._refusal = refusal
        self._changing = changing
        self._changed = changed
        self._viewed = viewed
        self._commands: Mapping[str, Callable[[MemoryFiles, Mapping[str, Any]], Done]] = {
            "view": _view,
            "create": _create,
            "str_replace": _str_replace,
            "insert": _insert,
            "delete": _delete,
            "rename": _rename,
        }

    def call(self, given: Mapping[str, Any] | str) -> ToolAnswer:
        """Carry out one command, given as the input of a tool call: an object, or its JSON text."""
        try:
            text = self._carry_out(_check(given))
        except Refused as refused:
            text = _encodable(str(refused))
            return ToolAnswer({"status": "error", "error": text}, text, is_error=True)
        return ToolAnswer({"status": "ok", "text": text}, text)

    def _carry_out(self, command: Mapping[str, Any]) -> str:
        if self._files is None:
            raise Refused(self._refusal or "The memory cannot be used in this conversation.")
        kind = command["command"]
        try:
            if kind != "view":
                self._changing()
            done = self._commands[kind](self._files, command)
        except PlainmindError as error:
            raise _refusal_of(error, str(command.get("path") or command.get("old_path"))) from error
        if kind != "view":
            self._index(done.gone)
        if done.viewed is not None:
            self._viewed(*done.viewed, done.text)
        return _encodable(done.text)

    def _index(self, gone: Sequence[str]) -> None:
        try:
            self._changed(gone)
        except PlainmindError as error:
            import logging

            # The note is on the disk; the next search looks again and says what it could not read.
            logging.getLogger(__name__).warning("not indexed yet: %s", error)


def _check(given: Mapping[str, Any] | str) -> Mapping[str, Any]:
    """Make sure that a command is known and has what it needs."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise Refused(f"The input is not valid JSON: {str(error)[:200]}") from error
    if not isinstance(given, Mapping):
        raise Refused("The input must be an object with a `command`.")
    wanted = ARGUMENTS.get(str(given.get("command")))
    if wanted is None:
        raise Refused(
            f"Unknown command: {str(given.get('command'))[:60]}. Use one of {', '.join(ARGUMENTS)}."
        )
    for name, kind in wanted.items():
        if not _is(kind, given.get(name)):
            said = "a text" if kind is str else "a whole number"
            raise Refused(f"The command {given['command']} needs `{name}`, {said}.")
    return {**given, **{name: _encodable(given[name]) for name in _TEXTS & wanted.keys()}}


def _is(kind: type, value: Any) -> bool:
    """Whether an argument is of a kind; in Python, true is a number too, and some numbers cannot be written out."""
    if isinstance(value, int):
        return kind is int and not isinstance(value, bool) and value.bit_length() <= 64
    return isinstance(value, kind)


def _place(path: str) -> Place:
    """What a path stands for, without asking the disk."""
    if path != ROOT and not path.startswith(ROOT + "/"):
        raise Refused(f"Path must start with /memories, got: {path}")
    parts: list[str] = []
    for part in path[len(ROOT) :].split("/"):
        if part == ".." and not parts:
            raise Refused(f"Path {path} would escape /memories directory")
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return Place(path.rstrip("/"), "/".join(parts))


def _view(files: MemoryFiles, command: Mapping[str, Any]) -> Done:
    place = _place(command["path"])
    is_folder = files.is_folder(place.name)
    if is_folder is None:
        raise Refused(f"The path {place.path} does not exist. Please provide a valid path.")
    if is_folder:
        return Done(_listing(files, place))
    lines = _read(files, place).split("\n")
    if len(lines) > MOST_LINES:
        raise Refused(f"File {place.path} exceeds maximum line limit of 999,999 lines.")
    first, last = range_to_view(command.get("view_range"), len(lines))
    shown = number_lines(lines[first - 1 : last], first)
    if len(shown) > MOST_CHARS_VIEWED:
        raise Refused(
            f"File {place.path} has {len(lines):,} lines and is too long to view at once."
            " Please give a view_range, such as [1, 200]."
        )
    text = f"Here's the content of {place.path} with line numbers:\n{shown}"
    is_seen = first <= len(lines)
    return Done(text, viewed=(place.name, first, min(last, len(lines))) if is_seen else None)


def _listing(files: MemoryFiles, place: Place) -> str:
    rows = [f"{size_in_words(files.size(place.name))}\t{place.path}"]
    rows += [
        f"{size_in_words(entry.size)}\t{place.path}/{entry.name}{'/' if entry.is_folder else ''}"
        for entry in files.entries(place.name)
    ]
    header = f"Here're the files and directories up to 2 levels deep in {place.path}, excluding hidden items:"
    return "\n".join((header, *rows))


def _create(files: MemoryFiles, command: Mapping[str, Any]) -> Done:
    place = _place(command["path"])
    if files.is_folder(place.name) is not None:
        raise Refused(f"File {place.path} already exists")
    try:
        files.create(place.name, command["file_text"])
    except ConflictError as error:
        raise Refused(f"File {place.path} already exists") from error
    return Done(f"File created successfully at: {place.path}")


def _str_replace(files: MemoryFiles, command: Mapping[str, Any]) -> Done:
    place = _file(files, command)
    content = files.read(place.name)
    old, new = command["old_str"], in_ends_of(content.text, command["new_str"])
    if old not in content.text:
        old = in_ends_of(content.text, old)  # a model does not see that lines end with `\r\n`
    count = content.text.count(old)
    if count == 0:
        raise Refused(
            f"No replacement was performed, old_str `{command['old_str']}` did not appear verbatim in {place.path}."
        )
    if count > 1:
        lines = ", ".join(lines_with(content.text, old))
        raise Refused(
            f"No replacement was performed. Multiple occurrences of old_str `{command['old_str']}` in lines: {lines}."
            " Please ensure it is unique"
        )
    edited = content.text.replace(old, new)
    files.rewrite(place.name, edited, base_hash=content.hash, reason="str_replace")
    changed = content.text.count("\n", 0, content.text.find(old))
    first = max(0, changed - 2)
    snippet = number_lines(edited.split("\n")[first : changed + 3], first + 1)
    return Done(
        f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
    )


def _insert(files: MemoryFiles, command: Mapping[str, Any]) -> Done:
    place, after = _file(files, command), command["insert_line"]
    content = files.read(place.name)
    lines = content.text.removesuffix("\n").split("\n") if content.text else []
    if not 0 <= after <= len(lines):
        raise Refused(
            f"Invalid `insert_line` parameter: {after}. It should be within the range [0, {len(lines)}]."
        )
    text = in_ends_of(content.text, command["insert_text"].rstrip("\n"))
    if "\r\n" in content.text:  # what stands before each `\n` here
        text += "\r"
        lines[-1] = lines[-1].removesuffix("\r") + "\r"
    edited = "\n".join((*lines[:after], text, *lines[after:]))
    edited += "" if edited.endswith("\n") else "\n"
    files.rewrite(place.name, edited, base_hash=content.hash, reason="insert")
    return Done(f"The file {place.path} has been edited.")


def _delete(files: MemoryFiles, command: Mapping[str, Any]) -> Done:
    place = _place(command["path"])
    if not place.name:
        raise Refused("Cannot delete the /memories directory itself")
    if files.is_folder(place.name) is None:
        raise Refused(f"The path {place.path} does not exist")
    return Done(f"Successfully deleted {place.path}", files.delete(place.name))


def _rename(files: MemoryFiles, command: Mapping[str, Any]) -> Done:
    old, new = _place(command["old_path"]), _place(command["new_path"])
    if not old.name:
        raise Refused("Cannot rename the /memories directory itself")
    if files.is_folder(new.name) is not None:
        raise Refused(f"The destination {new.path} already exists")
    if files.is_folder(old.name) is None:
        raise Refused(f"The path {old.path} does not exist")
    try:
        gone = files.rename(old.name, new.name)
    except ConflictError as error:
        raise Refused(f"The destination {new.path} already exists") from error
    return Done(f"Successfully renamed {old.path} to {new.path}", gone)


def _file(files: MemoryFiles, command: Mapping[str, Any]) -> Place:
    """The place of a file that must be there."""
    place = _place(command["path"])
    is_folder = files.is_folder(place.name)
    if is_folder is None:
        raise Refused(f"The path {place.path} does not exist. Please provide a valid path.")
    if is_folder:
        raise Refused(f"The path {place.path} is not a file.")
    return place


def _read(files: MemoryFiles, place: Place) -> str:
    try:
        return files.read(place.name).text
    except NotFound as error:
        raise Refused(
            f"The file {place.path} no longer exists (may have been deleted or renamed concurrently)."
        ) from error


def _encodable(text: str) -> str:
    """A text without halves of characters, which come from broken files and broken JSON."""
    return text.encode("utf-8", "replace").decode()


def _refusal_of(error: PlainmindError, path: str) -> Refused:
    """Say what went wrong without naming places on the disk."""
    if isinstance(error, NotFound):
        return Refused(f"The path {path} does not exist. Please provide a valid path.")
    if isinstance(error, ConflictError):
        return Refused(f"The file {path} was changed meanwhile; nothing was overwritten. View it again.")
    if isinstance(error, PathNotAllowed):
        return Refused(f"The path {path} is not allowed: {error}.")
    import logging

    logging.getLogger(__name__).warning("the memory tool failed: %s", error)
    return Refused(
        "The memory cannot do this just now; its owner finds the reason in the log. View the path before you go on."
    )


# --- text as the tool shows it: numbered lines, sizes, places ---

MOST_LINES = 999_999
_NUMBER_WIDTH = len(str(MOST_LINES))
_MOST_PLACES_NAMED = 100
# Some show these as line breaks, and the numbers of lines do not count them.
_BREAKS = pattern("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]|\r(?!\\Z)")


def range_to_view(wanted: Any, count: int) -> tuple[int, int]:
    """The first and last line to view; a range that is no pair of numbers means all of them."""
    if not isinstance(wanted, list | tuple) or len(wanted) != 2:
        return 1, count
    if not all(isinstance(one, int) for one in wanted):
        return 1, count
    first, last = max(1, wanted[0]), count if wanted[1] == -1 else wanted[1]
    return first, max(last, 0)


def in_ends_of(text: str, added: str) -> str:
    """Write a text with the line ends of the file that it goes into."""
    return added.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text else added


def lines_with(text: str, wanted: str) -> list[str]:
    """The numbers of the lines where a text begins."""
    numbers: list[str] = []
    at, line, counted = text.find(wanted), 1, 0
    while at >= 0 and len(numbers) < _MOST_PLACES_NAMED:
        line, counted = line + text.count("\n", counted, at), at
        numbers.append(str(line))
        at = text.find(wanted, at + 1)
    return [*numbers, "…"] if at >= 0 else numbers


def number_lines(lines: Sequence[str], first: int) -> str:
    """Lines as the tool shows them, with their numbers; nothing within a line can look like the next one."""
    shown = (_BREAKS.sub(" ", line) for line in lines)
    return "\n".join(f"{number:>{_NUMBER_WIDTH}}\t{line}" for number, line in enumerate(shown, first))


def size_in_words(count: int) -> str:
    """A number of bytes in a few characters: `0B`, `1.5K`, `4K`."""
    unit = 0
    while unit < 3 and count >= 1 << 10 * (unit + 1):
        unit += 1
    scaled = count / (1 << 10 * unit)
    return (f"{scaled:.0f}" if scaled == int(scaled) else f"{scaled:.1f}") + "BKMG"[unit]
