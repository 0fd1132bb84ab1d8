"""What a reader of another program's conversations promises, and how entries become ours: ids, origins, content."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_bytes
from plainmind.base.value import field, value
from plainmind.sessions.entries import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol
else:
    Protocol = object


@value
class Original:
    """One file of another program."""

    path: str
    agent: str | None = None  # whose it is, in a program that has several
    rank: int = 0  # of files that hold the same conversation, the lower one is the older part
    is_spare: bool = False  # a copy, worth reading only if no other file has the conversation


@value
class ReadPosition:
    """How far an original was read: where to go on, and how to tell that what was read is still there."""

    at: int = 0
    number: int = 0
    tail: str = ""  # names the bytes before `at`


@value
class ReadPiece:
    """One line, row or message of an original, in our words."""

    number: int  # counted from 1, as a person would
    place: ReadPosition  # where to go on behind it
    entries: tuple[Entry, ...] = ()  # with `id`; without `parentId` they follow each other
    damage: str | None = None  # why some of it could not be read
    is_curable: bool = False  # it may be readable next time, when something is installed


@value
class About:
    """What is known of a conversation before it is read."""

    id: str  # as its program calls it
    header: Entry = field(default_factory=dict)  # for the first line of our copy: timestamp, cwd, …
    fields: Entry = field(default_factory=dict)  # for its entry in the registry


class Conversation(Protocol):
    """A conversation in an original."""

    @property
    def about(self) -> About:
        """What is known of it beforehand."""

    def still_has(self, place: ReadPosition) -> bool:
        """Whether everything before a place is as it was: then reading may go on there."""

    def pieces(self, after: ReadPosition) -> Iterator[ReadPiece]:
        """Give what stands behind a place that it still has, or behind `ReadPosition()`, which is the beginning.

        Never raises for what the original says; raises PlainmindError when it cannot be read at all.
        """


class NothingToTake(PlainmindError):
    """A file that can be read, and holds no conversation of the kind; the message says what it is instead."""


class Reader(Protocol):
    """Reads one program's files, and changes none of them."""

    program: str
    looks_for: str  # in words, for the message about a folder without any

    def folders(self, path: str) -> list[str]:
        """Which folders to look through when this one is given."""

    def original(self, path: str, given: str) -> Original | None:
        """Tell by its name whether a file may hold a conversation; `given` is itself, or a folder above it."""

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """Open a file. Raises PlainmindError when it cannot be read."""


# --- where a copied entry came from, and the id that it gets every time it is read ---

FROM = "imported"  # of an entry: {"file": …, "line": …}
EXPORTED_BY = "exportedBy"  # of a registry's entry: whose export it was, where that can be told
FROM_WHERE = "importedFrom"  # of a header and of a registry's entry: {"program": …, "path": …, "id": …}


def text_in(found: object) -> str | None:
    """What another program wrote down, if it is a text that says something."""
    return found if isinstance(found, str) and found else None


def make_id(number: int, raw: bytes) -> str:
    """Name a line that has no id of its own: by its place and its bytes, so that it is the same at every reading."""
    return "x" + sha256_bytes(b"%d:%s" % (number, raw))[:20]


def number_id(entry_id: str, count: int) -> str:
    """Name the entries that one line becomes: its own id, then `….2`, `….3`."""
    return entry_id if count == 1 else f"{entry_id}.{count}"


def with_origin(entry: Entry, file: str, number: int) -> Entry:
    """Note from which file and line an entry was copied."""
    first = {name: entry[name] for name in ("type", "id", "parentId", "timestamp") if name in entry}
    return first | entry | {FROM: {"file": file, "line": number}}


def line_of_origin(entry: Entry, file: str) -> int | None:
    """The line that an entry was copied from, if it was from this file."""
    mark = entry.get(FROM)
    if not isinstance(mark, dict) or mark.get("file") != file:
        return None
    number = mark.get("line")
    return number if isinstance(number, int) else None


# --- what may be kept of the words in an entry ---

_WORDS = ("message", "content", "summary")  # where an entry has words
_NAMES = frozenset(
    {"id", "type", "role", "toolCallId", "toolName", "name", "provider", "model", "stopReason"}
)


def clean_entry(entry: Entry, clean: Callable[[str], str]) -> Entry:
    """An entry of whose words only what may be kept is left."""
    return entry | {name: _cleaned(entry[name], clean) for name in _WORDS if name in entry}


def _cleaned(found: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(found, str):
        return clean(found)
    if isinstance(found, list):
        return [_cleaned(below, clean) for below in found]
    if isinstance(found, dict):
        return {name: below if name in _NAMES else _cleaned(below, clean) for name, below in found.items()}
    return found


# --- the content of messages, from the blocks of other programs to ours ---

_TEXTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal")
_FILES = ("image", "input_image", "image_url", "document", "input_file", "file", "input_audio")
_CALLS = ("tool_use", "server_tool_use")


def blocks_of(content: object) -> list[Entry]:
    """Translate a message's content; what was in pictures and files stays in the original."""
    if isinstance(content, str):
        return [text_block(content)] if content else []
    blocks = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    return [block for block in map(_block, blocks) if block]


def text_block(text: str) -> Entry:
    """A block of plain text."""
    return {"type": "text", "text": text}


def thinking_block(text: str) -> Entry:
    """What a model thought."""
    return {"type": "thinking", "thinking": text}


def call_block(call_id: object, name: object, arguments: object) -> Entry:
    """A model's call of a tool; arguments that stand in a string are read."""
    return {
        "type": "toolCall",
        "id": call_id if isinstance(call_id, str) else "",
        "name": name if isinstance(name, str) else "",
        "arguments": _arguments(arguments),
    }


def tool_result(call_id: object, content: object, *, name: object = None, is_error: object = False) -> Entry:
    """A tool's answer, as a message of the role `toolResult`."""
    message: Entry = {"role": "toolResult", "toolCallId": call_id if isinstance(call_id, str) else ""}
    if isinstance(name, str) and name:
        message["toolName"] = name
    return message | {"content": blocks_of(content), "isError": is_error is True}


def words_of(content: object) -> str:
    """The plain text in a message's content."""
    return "\n".join(block["text"] for block in blocks_of(content) if block.get("type") == "text")


def _block(block: Any) -> Entry | None:
    if isinstance(block, str):
        return text_block(block) if block else None
    if not isinstance(block, dict):
        return None
    kind = block.get("type")
    translate = _BY_TYPE.get(kind) if isinstance(kind, str) else None
    return translate(block) if translate is not None else block


def _text(block: Entry) -> Entry | None:
    text = block.get("text", block.get("refusal"))
    return text_block(text) if isinstance(text, str) and text else None


def _thinking(block: Entry) -> Entry | None:
    text = block.get("thinking")
    return thinking_block(text) if isinstance(text, str) and text else None


def _call(block: Entry) -> Entry:
    return call_block(block.get("id"), block.get("name"), block.get("input"))


def _image(block: Entry) -> Entry:
    """Keep that there was a picture or a file, and of which kind: its bytes are no text."""
    source = block.get("source")
    found = source if isinstance(source, dict) else block
    kind = found.get("media_type", found.get("mimeType"))
    return {"type": "image", "mimeType": kind if isinstance(kind, str) else "", "isLeftOut": True}


def _arguments(given: object) -> object:
    if not isinstance(given, str):
        return {} if given is None else given
    try:
        found = json.loads(given, parse_constant=str)
    except (ValueError, RecursionError):
        return {"input": given}
    return found if isinstance(found, dict) else {"input": given}


_BY_TYPE: dict[str, Callable[[Entry], Entry | None]] = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_FILES, _image),
    **dict.fromkeys(_CALLS, _call),
    "thinking": _thinking,
    "redacted_thinking": lambda _: None,  # only the provider can read it
}
