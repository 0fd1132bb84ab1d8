"""What one line of a transcript says: bytes to entries, an entry to `User: …`; no input makes it raise.

A transcript is JSONL, one entry a line: a header `{"type":"session",…}`, then messages and what happened between them.
Entries stay plain dictionaries, so that types and fields which this version does not know survive.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

Entry: TypeAlias = "dict[str, Any]"

SPEAKERS = {"user": "User", "assistant": "Assistant"}
LINE_TYPES = frozenset(
    {
        "session", "message", "compaction", "reset", "branch_summary", "custom", "custom_message", "label",
        "session_info", "model_change", "thinking_level_change", "leaf",
    }
)  # fmt: skip

# A raw tab in a string is against the rules of JSON, and found in real transcripts. So is NaN, which becomes a string.
_DECODER = json.JSONDecoder(strict=False, parse_constant=str)
_COMPACT = (",", ":")
_STRICT = json.JSONEncoder(ensure_ascii=False, separators=_COMPACT, allow_nan=False)
_LENIENT = json.JSONEncoder(ensure_ascii=False, separators=_COMPACT)
_AROUND = " \t\r\n\0\ufeff"
_BEGINNING = '{"type"'
_MOST_TRIES = 64
_MOST_EFFORT = 10  # times the length of a line, so that a hostile one does not take for ever
_LATEST_MS = 253_402_300_799_999  # the end of the year 9999, where `datetime` ends
_FIRST_MS = 10**11  # a smaller number counts seconds: as milliseconds it would be before April 1973


@value
class Line:
    """What one line of a transcript holds: one entry, unless it is blank or somebody was cut off while writing."""

    entries: tuple[Entry, ...] = ()
    is_damaged: bool = False  # something in it cannot be read; `entries` is what can


@value
class Said:
    """One message of a person or a model; `text` keeps its own line breaks."""

    speaker: str
    text: str
    time_ms: int | None = None

    @property
    def line(self) -> str:
        """The message as one line, white space normalised: `User: how are you?`."""
        return f"{self.speaker}: {' '.join(self.text.split())}"


_BLANK = Line()
_UNREADABLE = Line(is_damaged=True)


def entries_in(line: bytes) -> Line:
    """Read one line, with or without its newline; whatever can be saved of a damaged one is."""
    try:
        text = line.decode()
        is_damaged = False
    except UnicodeDecodeError:
        text = line.decode("utf-8", "replace")
        is_damaged = True
    found = _decoded(text)
    if isinstance(found, dict):
        return Line((found,), is_damaged)
    bare = text.strip(_AROUND)
    if not bare:
        # A power cut leaves blocks of NUL where a line should have been.
        return _UNREADABLE if "\0" in text else _BLANK
    found = _decoded(bare)
    if isinstance(found, dict):
        return Line((found,), is_damaged or "\0" in text)
    saved = _saved(bare)
    return Line(saved, is_damaged=True) if saved else _UNREADABLE


def said(entry: Entry) -> Said | None:
    """The words of a message by a person or a model; None for tools, thoughts, and everything else."""
    message = entry.get("message")
    if entry.get("type") != "message" or not isinstance(message, dict):
        return None
    role = message.get("role")
    speaker = SPEAKERS.get(role) if isinstance(role, str) else None
    text = text_of(message.get("content")) if speaker else ""
    if speaker is None or not text.strip():
        return None
    return Said(speaker, text, time_of(entry))


def text_of(content: object) -> str:
    """The words in a message's content: a string, or its blocks of type `text` one below the other."""
    if isinstance(content, str):
        return storable(content)
    blocks = content if isinstance(content, list) else ()
    texts = (block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text")
    return storable("\n".join(text for text in texts if isinstance(text, str)))


def time_of(entry: Entry) -> int | None:
    """When it was said, in milliseconds since 1970: by the entry's own timestamp, else by its message's."""
    found = _milliseconds(entry.get("timestamp"))
    message = entry.get("message")
    if found is None and isinstance(message, dict):
        return _milliseconds(message.get("timestamp"))
    return found


def storable(text: str) -> str:
    r"""Drop NUL and half characters: JSON can escape both (`\u0000`, `\ud800`), a database takes neither."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def line_of(entry: Entry, *, is_copy: bool = False) -> bytes:
    """Write an entry as one line. Raises TypeError or ValueError for what JSON cannot say, such as NaN.

    A copy of what was read (`1e999` is infinite) never raises.
    """
    try:
        return (_LENIENT if is_copy else _STRICT).encode(entry).encode() + b"\n"
    except UnicodeEncodeError:  # half a character can only be escaped
        return json.dumps(entry, separators=_COMPACT, allow_nan=is_copy).encode() + b"\n"


def _decoded(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _saved(text: str) -> tuple[Entry, ...]:
    """Find whole entries in a line that is not one: those it begins with, and the one it ends with.

    Where a newline was lost, entries stand side by side; where a writer was killed, the next one's entry stands
    behind the torn one. An object further inside may be an argument of a tool, and is nobody's entry.
    """
    saved: list[Entry] = []
    at = 0
    while (found := _decoded_at(text, at)) is not None:
        saved.append(found[0])
        at = found[1]
        while at < len(text) and text[at] in _AROUND:
            at += 1
    begin = len(text)
    effort = _MOST_EFFORT * len(text)
    for _ in range(_MOST_TRIES):
        begin = text.rfind(_BEGINNING, at, begin)
        effort -= len(text) - begin
        if begin < 0 or effort < 0:
            break
        last = _decoded_at(text, begin)
        if last is not None and last[1] == len(text) and _is_entry(last[0]):
            saved.append(last[0])
            break
    return tuple(saved)


def _decoded_at(text: str, at: int) -> tuple[Entry, int] | None:
    if not text.startswith("{", at):
        return None
    try:
        found, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return (found, end) if isinstance(found, dict) else None


def _is_entry(found: Entry) -> bool:
    kind = found.get("type")
    if not isinstance(kind, str) or kind not in LINE_TYPES:
        return False
    return isinstance(found.get("message"), dict) if kind == "message" else isinstance(found.get("id"), str)


def _milliseconds(stamp: object) -> int | None:
    if isinstance(stamp, str):
        return _read_iso(stamp)
    if isinstance(stamp, bool) or not isinstance(stamp, int | float) or not 0 < stamp <= _LATEST_MS:
        return None
    return int(stamp if stamp >= _FIRST_MS else stamp * 1000)


def _read_iso(stamp: str) -> int | None:
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    found = round(moment.timestamp() * 1000)
    return found if 0 < found <= _LATEST_MS else None
