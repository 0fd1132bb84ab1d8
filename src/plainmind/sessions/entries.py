"""Entries of a transcript: read and written, what they say, which of them lead to the present, and what they have cost.

A transcript is JSONL, one entry a line: a header `{"type":"session",…}`, then messages and what happened between them.
Entries stay plain dictionaries, so that types and fields which this version does not know survive. No input makes
reading raise.

The registry is not rewritten for every message: it holds the counters as of some place in the transcript, and that
place (`plainmind.countedTo`). A reader counts on from there; compacting, resetting, updating and closing
write the result down. So a counter can be old in the file, but never wrong, doubled or lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_text
from plainmind.base.value import record, value
from plainmind.files.jsonl import MAX_LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias

    Halves: TypeAlias = tuple[bytes, bytes | memoryview]
else:
    Protocol = object


Entry: TypeAlias = "dict[str, Any]"

VERSION = 3  # of the header that we write; OpenClaw wrote 1 to 4, all are read
FORMATS = ("jsonl", "json5")
MAX_DOCUMENT_BYTES = 64 << 20  # as JSON5 a session is read and written whole
IN_CONTEXT = frozenset({"message", "custom_message", "branch_summary"})
SPEAKERS = {"user": "User", "assistant": "Assistant"}
LINE_TYPES = frozenset(
    {
        "session", "message", "compaction", "reset", "branch_summary", "custom", "custom_message", "label",
        "session_info", "model_change", "thinking_level_change", "leaf",
    }
)  # fmt: skip

# A raw tab in a string is against the rules of JSON, and found in real transcripts. So is NaN, which becomes a string.
DECODER = json.JSONDecoder(strict=False, parse_constant=str)
_COMPACT = (",", ":")
_STRICT = json.JSONEncoder(ensure_ascii=False, separators=_COMPACT, allow_nan=False)
_LENIENT = json.JSONEncoder(ensure_ascii=False, separators=_COMPACT)
_AROUND = " \t\r\n\0\ufeff"
_BEGINNING = '{"type"'
_MOST_FOR_PARENT = 200  # bytes
_MOST_TRIES = 64
_MOST_EFFORT = 10  # times the length of a line, so that a hostile one does not take for ever
LATEST_MS = 253_402_300_799_999  # the end of the year 9999, where `datetime` ends
_FIRST_MS = 10**11  # a smaller number counts seconds: as milliseconds it would be before April 1973


@value
class Line:
    """What one line of a transcript holds: one entry, unless it is blank or its writer was killed half-way."""

    entries: tuple[Entry, ...] = ()
    is_damaged: bool = False  # something in it cannot be read; `entries` is what can


@value
class Message:
    """One message of a person or a model; `text` keeps its own line breaks."""

    speaker: str
    text: str
    time_ms: int | None = None

    @property
    def line(self) -> str:
        """The message as one line, white space normalised: `User: how are you?`."""
        return f"{self.speaker}: {' '.join(self.text.split())}"


@value
class Placed:
    """One entry and where it stands; without entry it is a line that cannot be read, or not wholly."""

    entry: Entry | None
    number: int  # the line of a JSONL file or the position in a document, from 1; 0 when read backwards
    start: int  # places are offsets in a JSONL file, and counts of entries in a document
    end: int
    raw: bytes = b""  # the bytes of a line that cannot be read


@record
class Draft:
    """An entry on its way into a transcript, complete except for the entry that it follows."""

    entry: Entry  # with `id` and `timestamp`; with `parentId` only if the caller has chosen it
    is_retry: bool = False  # the id was given by the caller: an earlier try may have added it
    look_back_bytes: int | None = None  # in how many of the last bytes; None: anywhere
    already_there: bool = False


class Transcript(Protocol):
    """Keeps the entries of one session in their order; safe to share between threads and processes."""

    path: str
    format: str

    def create(self, header: Entry) -> None:
        """Make the file, which must not exist, with its header."""

    def header(self) -> Entry | None:
        """The header, or None when the first line is not one, or not readable. Raises NotFound."""

    def add(self, drafts: Sequence[Draft]) -> None:
        """Add entries behind the last one, durably, all or none. Raises NotFound when the file is gone."""

    def entries(self, after: int = 0) -> Iterator[Placed]:
        """Give what stands behind a place, the header left out, unreadable lines included."""

    def backwards(self, before: int | None = None) -> Iterator[Placed]:
        """Give what stands before a place, or everything, last one first."""

    def countable(self, after: int, before: int) -> Iterator[Entry]:
        """Give at least those entries between two places that change a counter."""

    def end(self) -> int:
        """The place behind the last entry. Raises NotFound."""

    def rewrite(self, header: Entry, entries: Iterator[Entry]) -> None:
        """Put a new file in its place, all or nothing; for a fork and for a change of format."""


# --- reading a line ---

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
    found = _decode(text)
    if isinstance(found, dict):
        return Line((found,), is_damaged)
    bare = text.strip(_AROUND)
    if not bare:
        # A power cut leaves blocks of NUL where a line should have been.
        return _UNREADABLE if "\0" in text else _BLANK
    found = _decode(bare)
    if isinstance(found, dict):
        return Line((found,), is_damaged or "\0" in text)
    saved = _salvage(bare)
    return Line(saved, is_damaged=True) if saved else _UNREADABLE


def message_of(entry: Entry) -> Message | None:
    """The words of a message by a person or a model; None for tools, thoughts, and everything else."""
    message = entry.get("message")
    if entry.get("type") != "message" or not isinstance(message, dict):
        return None
    role = message.get("role")
    speaker = SPEAKERS.get(role) if isinstance(role, str) else None
    text = text_of(message.get("content")) if speaker else ""
    if speaker is None or not text.strip():
        return None
    return Message(speaker, text, time_of(entry))


def marks_of(entry: Entry) -> tuple[str, ...]:
    """By which ids a message of a person or a model may be kept already, told by a hook or read from a file."""
    spoken = message_of(entry)
    if spoken is None:
        return ()
    own = id_of(entry)
    role = entry["message"]["role"]
    return (*((mark_of(role, "", own),) if own else ()), mark_of(role, spoken.text))


def mark_of(role: str, text: str, told_id: str | None = None) -> str:
    """The id of a message that a host has told: by the host's own id, or else by who said what."""
    return "h" + sha256_text(told_id or f"{role}: {text.strip()}")[:20]


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


def _decode(text: str) -> object:
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _salvage(text: str) -> tuple[Entry, ...]:
    """Find whole entries in a line that is not one: those it begins with, and the one it ends with.

    Where a newline was lost, entries stand side by side; where a writer was killed, the next one's entry stands
    behind the torn one. An object further inside may be an argument of a tool, and is no entry.
    """
    saved: list[Entry] = []
    at = 0
    while (found := _decode_at(text, at)) is not None:
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
        last = _decode_at(text, begin)
        if last is not None and last[1] == len(text) and _is_entry(last[0]):
            saved.append(last[0])
            break
    return tuple(saved)


def _decode_at(text: str, at: int) -> tuple[Entry, int] | None:
    if not text.startswith("{", at):
        return None
    try:
        found, end = DECODER.raw_decode(text, at)
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
    if isinstance(stamp, bool) or not isinstance(stamp, int | float) or not 0 < stamp <= LATEST_MS:
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
    return found if 0 < found <= LATEST_MS else None


# --- writing a line ---


def _prepare_encoder() -> Callable[[Entry, int], Iterable[str]]:
    """The encoder of `json`, made once: made anew for each message it takes as long as the message."""
    plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # another Python than the usual one
        return lambda entry, _: (plain.encode(entry),)
    written = json.encoder.encode_basestring  # what `ensure_ascii=False` uses
    # No look-out for circles: one ends in a RecursionError.
    return make(None, plain.default, written, None, ":", ",", False, False, False)  # type: ignore[no-any-return]  # noqa: FBT003


_encode_pieces = _prepare_encoder()


def id_of(entry: Entry) -> str | None:
    """The entry's own id; versions before 2 had none."""
    found = entry.get("id")
    return found if isinstance(found, str) and found else None


def parent_of(entry: Entry) -> str | None:
    """The id of the entry that it follows; None for the first."""
    found = entry.get("parentId")
    return found if isinstance(found, str) and found else None


def leads_to(entry: Entry) -> str | None:
    """Which entry the next one follows: this one, unless it only points at another (`leaf`)."""
    if entry.get("type") != "leaf":
        return id_of(entry)
    target = entry.get("targetId", entry.get("leafId"))
    return target if isinstance(target, str) and target else None


def iso(seconds: float) -> str:
    """Write a moment as transcripts do: `2026-02-10T09:30:00.000Z`."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{_to_the_second(whole)}.{milliseconds:03}Z"


@lru_cache(maxsize=8)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")


def complete_entry(given: Entry, entry_id: str, timestamp: str) -> Entry:
    """Make an entry of a message or of an entry, as `append` takes both."""
    if "role" in given and not isinstance(given.get("message"), dict):
        return {"type": "message", "id": entry_id, "timestamp": timestamp, "message": given}
    kind = given.get("type")
    if not isinstance(kind, str) or kind == "session":
        raise PlainmindError(
            f"an entry needs a type other than `session`, this one has {kind!r}",
            hint='give a message such as {"role": "user", "content": "…"} or an entry such as '
            '{"type": "custom", "customType": "…", "data": …}',
        )
    return {"type": kind, "id": entry_id, "timestamp": timestamp, **_without_id(given)}


def _without_id(given: Entry) -> Entry:
    return {name: found for name, found in given.items() if name not in {"type", "id"}}


def halves(entry: Entry) -> Halves:
    """Write an entry as a line in two halves, between which the id of its parent goes.

    The second is empty when the entry names its parent itself. Done before the lock is taken: what remains under it is
    to put three pieces together.
    """
    try:
        if "parentId" in entry:
            return line_of(_in_order(entry)), b""
        head = f'{{"type":"{entry["type"]}","id":"{entry["id"]}"'.encode()
        line = "".join(_encode_pieces(entry, 0)).encode()
        if line.startswith(head):
            return head, memoryview(line)[len(head) :]  # long ones are copied once less
    except UnicodeEncodeError:
        pass  # half a character can only be escaped
    except (TypeError, ValueError, RecursionError) as error:
        raise PlainmindError(
            f"the message cannot be written as JSON: {error}",
            hint="give strings, finite numbers, lists and dictionaries with string keys",
        ) from error
    return _halves_in_order(entry)


def _halves_in_order(entry: Entry) -> Halves:
    """Write an entry whose fields come in another order, or that has signs in it that must be escaped."""
    head = b'{"type":%s,"id":%s' % (_quote(entry["type"]), _quote(entry["id"]))
    rest = {name: found for name, found in entry.items() if name not in {"type", "id"}}
    return head, (b"," if rest else b"") + line_of(rest)[1:-1]


def join_halves(entry_halves: Halves, parent: str | None) -> bytes:
    """Put the two halves of a line together around the parent."""
    head, tail = entry_halves
    return b'%s,"parentId":%s%s\n' % (head, _quote(parent), tail) if tail else head


def _quote(name: str | None) -> bytes:
    """Write a name as JSON; most are letters and digits, and need no encoder."""
    if name is not None and name.isalnum() and name.isascii():
        return b'"%s"' % name.encode()
    return json.dumps(name).encode()


def refuse_too_long(entry_halves: Halves) -> None:
    """Refuse what could be written but not be read again in bounded memory."""
    length = len(entry_halves[0]) + len(entry_halves[1]) + _MOST_FOR_PARENT
    if length > MAX_LINE_BYTES:
        raise PlainmindError(
            f"a message of {length / 1e6:.0f} MB is too long: the limit is {MAX_LINE_BYTES / 1e6:.0f} MB",
            hint="keep such a thing in a file of its own and put its path in the message",
        )


def _in_order(entry: Entry) -> Entry:
    first = {name: entry[name] for name in ("type", "id", "parentId", "timestamp") if name in entry}
    return first | entry


# Entries before a place, or all, last one first.
ReadBackwards: TypeAlias = "Callable[[int | None], Iterator[Placed]]"

_ANY = object()  # whichever comes next is wanted


@value
class Context:
    """What a model would be given: the summary of what was compacted, then the entries since, oldest first."""

    summary: str | None
    entries: tuple[Entry, ...]

    @property
    def messages(self) -> tuple[dict[str, Any], ...]:
        """The entries as messages; what a program or another branch had to say comes in the user's role."""
        return tuple(_as_message(entry) for entry in self.entries)


def branch(read: ReadBackwards, *, leaf: str | None = None) -> Iterator[Placed]:
    """Follow `parentId` from an entry (the newest by default) to the first, newest first.

    Entries of other branches are passed over. Where the trail is lost, because a line is damaged or was deleted by
    hand, the entry that stands before it in the file is taken for its parent: better one too many than the rest lost.
    """
    wanted: object = _ANY if leaf is None else leaf
    place: int | None = None
    is_found = leaf is None
    is_lost_once = False
    while True:
        trail = _Trail(wanted, is_lost_once=is_lost_once)
        for placed in read(place):
            if trail.passes(placed):
                is_found = True
                place = placed.start
                yield placed
            if trail.is_over:
                return
        if not trail.is_lost or not is_found:
            return
        wanted, is_lost_once = _ANY, True


class _Trail:
    """Where we are on the way back."""

    def __init__(self, wanted: object, *, is_lost_once: bool) -> None:
        self._wanted = wanted
        self._is_lost_once = is_lost_once
        self._has_passed_others = False
        self.is_over = False

    @property
    def is_lost(self) -> bool:
        return isinstance(self._wanted, str)

    def passes(self, placed: Placed) -> bool:
        """Whether this entry, earlier than all before, is on the branch."""
        entry = placed.entry
        if entry is None:
            if self.is_lost and not self._has_passed_others:
                self._wanted = _ANY  # in a file without branches the unreadable line was the parent
            return False
        name = id_of(entry)
        if self._wanted is None and name is not None:
            self.is_over = True
            return False
        if self._wanted is _ANY and entry.get("type") == "leaf":
            if not self._is_lost_once:  # or the same pointer would lead astray for ever
                self._wanted = leads_to(entry)
            return False
        if self._wanted is not None and self._wanted is not _ANY and name != self._wanted:
            self._has_passed_others = True
            return False
        # An entry without id is of a version that had no branches: all before it lead to it.
        self._wanted = _ANY if name is None else parent_of(entry)
        self._has_passed_others = False
        return True


def context_of(read: ReadBackwards, nth: Callable[[int], int | None]) -> Context:
    """Gather what follows the last compaction or reset, and what that one kept; `nth` gives the place of an entry."""
    reading = ContextBackwards(read, nth)
    entries = tuple(reading)[::-1]
    summary = reading.boundary.get("summary") if reading.boundary is not None else None
    return Context(summary if isinstance(summary, str) else None, entries)


class ContextBackwards:
    """The entries of a context, newest first, read as they are asked for."""

    def __init__(self, read: ReadBackwards, nth: Callable[[int], int | None]) -> None:
        self.boundary: Entry | None = (
            None  # the compaction or reset that it begins with, once that is reached
        )
        self._read = read
        self._nth = nth

    def __iter__(self) -> Iterator[Entry]:
        path = branch(self._read)
        for placed in path:
            entry = placed.entry or {}
            if entry.get("type") in {"compaction", "reset"}:
                self.boundary = entry
                yield from _entries_kept(path, _first_kept(entry, self._nth))
                return
            if entry.get("type") in IN_CONTEXT:
                yield entry


def _entries_kept(path: Iterator[Placed], first: object) -> list[Entry]:
    """What a boundary kept of the entries before it; what is said to be kept but is not there keeps nothing."""
    kept: list[Entry] = []
    for placed in path if first is not None else ():
        entry = placed.entry or {}
        if entry.get("type") in IN_CONTEXT:
            kept.append(entry)
        if id_of(entry) == first or placed.start == first:
            return kept
    return []


def _first_kept(boundary: Entry, nth: Callable[[int], int | None]) -> object:
    """The id of the first entry that stays, or its place (version 1 counted entries); None when none stays."""
    name = boundary.get("firstKeptEntryId")
    if isinstance(name, str) and name and name != id_of(boundary):
        return name
    index = boundary.get("firstKeptEntryIndex")
    return nth(index) if isinstance(index, int) and name is None else None


def _as_message(entry: Entry) -> dict[str, Any]:
    message = entry.get("message")
    if isinstance(message, dict):
        return message
    content = entry.get("content") if entry.get("type") == "custom_message" else entry.get("summary")
    return {"role": "user", "content": content if content is not None else ""}


COUNTERS = ("inputTokens", "outputTokens", "totalTokens", "compactionCount")
_MARK = "plainmind"
_INPUT = ("input", "inputTokens", "input_tokens")
_OUTPUT = ("output", "outputTokens", "output_tokens")
_TOTAL = ("totalTokens", "total_tokens")
_CACHED = ("cacheRead", "cacheWrite")


def place_of_count(entry: Entry) -> int | None:
    """Up to which place the counters are counted; None when another program keeps them."""
    mark = entry.get(_MARK)
    found = mark.get("countedTo") if isinstance(mark, dict) else None
    return found if isinstance(found, int) and found >= 0 else None


def with_place_of_count(entry: Entry, place: int) -> Entry:
    """Note up to which place the counters are counted."""
    mark = entry.get(_MARK)
    return {**entry, _MARK: {**(mark if isinstance(mark, dict) else {}), "countedTo": place}}


def count_on(entry: Entry, lines: Iterable[Entry]) -> Entry:
    """Count on: sums of what went in and out, and how full the context was at the last answer (`totalTokens`)."""
    counters = {name: _number(entry.get(name)) for name in COUNTERS}
    for line in lines:
        kind = line.get("type")
        if kind == "message":
            _count_message(counters, line.get("message"))
        elif kind == "compaction":
            counters["compactionCount"] += 1
            counters["totalTokens"] = _number(line.get("tokensAfter"))
        elif kind == "reset":
            counters["totalTokens"] = 0
    return entry | {name: count for name, count in counters.items() if count or name in entry}


def may_count(line: bytes) -> bool:
    """Whether a line could change a counter: most cannot, and need not be decoded."""
    return b'"usage"' in line or b'"compaction"' in line or b'"reset"' in line


def _count_message(counters: dict[str, int], message: Any) -> None:
    usage = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(usage, dict):
        return
    read, written = _first(usage, _INPUT), _first(usage, _OUTPUT)
    counters["inputTokens"] += read
    counters["outputTokens"] += written
    cached = sum(_number(usage.get(name)) for name in _CACHED)
    counters["totalTokens"] = _first(usage, _TOTAL) or read + written + cached


def _first(usage: dict[str, Any], names: tuple[str, ...]) -> int:
    return next((_number(usage[name]) for name in names if name in usage), 0)


def _number(found: object) -> int:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return 0
    return int(found) if 0 <= found < 1e15 else 0
