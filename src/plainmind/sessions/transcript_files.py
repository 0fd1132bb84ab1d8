"""The two forms of a transcript: lines of JSONL that are only ever added to, and one JSON5 document that people read.

Every change writes a document whole, so it is for short conversations:

    {"sessionId": …, "version": 2, "createdAt": …, "updatedAt": …,
     "messages": [{"id": …, "role": "user", "content": …, "timestamp": …}, …],
     "compactedHistory": [{"position": 7, "role": "system", "content": "what was said", "compactedAt": …}],
     "events": [{"position": 3, "entry": {"type": "model_change", …}}]}

An entry is written in this short form only if reading it gives the same entry again; otherwise what the form cannot say
stands beside it under `entry`. A `position` counts all entries from 0; messages take the positions that are left.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from plainmind.base.errors import ConflictError, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.files.atomic import put_in_place, remove_abandoned, write_atomically
from plainmind.files.group_append import Addition, GroupAppender
from plainmind.files.jsonl import RawLine, backwards, end_of_last_line, forwards, open_plain_file
from plainmind.files.system import (
    SYSTEM,
    System,
    explain_errors,
    hold_lock,
    lock_path_for,
    make_folders,
    read_range,
    write_all,
)
from plainmind.sessions.entries import (
    DECODER,
    LATEST_MS,
    MAX_DOCUMENT_BYTES,
    VERSION,
    Draft,
    Entry,
    Placed,
    entries_in,
    halves,
    id_of,
    iso,
    join_halves,
    leads_to,
    line_of,
    may_count,
    refuse_too_long,
    time_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias


_BLOCK_BYTES = 1 << 20


class JsonlTranscript:
    """One JSONL file. Opening and adding read its end only, however long it is."""

    format = "jsonl"

    def __init__(
        self, path: str, *, state_dir: str, system: System = SYSTEM, timeout_s: float = 10.0
    ) -> None:
        self.path = path
        self._system = system
        self._appender = GroupAppender(
            path,
            state_dir=state_dir,
            # Not a method of ours: each would hold the other, and the file stay open until garbage is looked for.
            read_last=partial(_read_last, system),
            join=join_halves,
            is_record=_has_id,
            system=system,
            timeout_s=timeout_s,
        )

    def create(self, header: Entry) -> None:
        """Make the file with its header; the caller holds the lock of the registry."""
        if os.path.lexists(self.path):
            raise ConflictError(f"{self.path} exists already", hint="choose another session id")
        write_atomically(self.path, line_of(header), system=self._system)

    def header(self) -> Entry | None:
        """Read the first line."""
        with open_plain_file(self.path, system=self._system) as fd:
            line = next(forwards(fd, system=self._system), None)
        found = entries_in(line.data).entries if line is not None else ()
        return found[0] if found and found[0].get("type") == "session" else None

    def add(self, drafts: Sequence[Draft]) -> None:
        """Add lines, with those of other threads, in one write and one sync."""
        additions = list(map(_addition, drafts))
        self._appender.add(additions)
        for draft, addition in zip(drafts, additions, strict=True):
            draft.already_there = addition.already_there

    def entries(self, after: int = 0) -> Iterator[Placed]:
        """Read forwards, one line at a time."""
        with open_plain_file(self.path, system=self._system) as fd:
            for line in forwards(fd, start=after, system=self._system):
                yield from _place(line)

    def backwards(self, before: int | None = None) -> Iterator[Placed]:
        """Read backwards, one line at a time."""
        with open_plain_file(self.path, system=self._system) as fd:
            for line in backwards(fd, end=before, system=self._system):
                yield from reversed(_place(line))

    def countable(self, after: int, before: int) -> Iterator[Entry]:
        """Decode only the lines that could change a counter."""
        with open_plain_file(self.path, system=self._system) as fd:
            for line in forwards(fd, start=after, stop=before, system=self._system):
                if may_count(line.data):
                    yield from entries_in(line.data).entries

    def end(self) -> int:
        """The offset behind the last whole line."""
        with open_plain_file(self.path, system=self._system) as fd:
            return end_of_last_line(fd, self._system.fstat(fd).st_size, system=self._system)

    def rewrite(self, header: Entry, entries: Iterator[Entry]) -> None:
        """Write beside the place in blocks, sync, and rename."""
        folder, name = os.path.split(self.path)
        temporary = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(8).hex()}.tmp")
        with explain_errors("write", self.path):
            make_folders(self._system, folder)
            fd = self._system.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                try:
                    for block in _blocks(header, entries):
                        write_all(self._system, fd, block)
                    self._system.fsync(fd)
                finally:
                    self._system.close(fd)
            except BaseException:
                self._system.unlink(temporary)
                raise
            put_in_place(temporary, self.path, self._system)
            self._system.fsync_folder(folder)


def _read_last(system: System, fd: int, size: int) -> str | None:
    for line in backwards(fd, end=size, system=system):
        for entry in reversed(entries_in(line.data).entries):
            if entry.get("type") == "session":
                return None
            if entry.get("type") == "leaf" or id_of(entry) is not None:
                return leads_to(entry)
    return None


def _addition(draft: Draft) -> Addition:
    entry = draft.entry
    written = halves(entry)
    refuse_too_long(written)
    look_back = draft.look_back_bytes if draft.is_retry else 0
    name = id_of(entry)
    return Addition(name or "", written, leads_to(entry) if entry.get("type") == "leaf" else name, look_back)


def _has_id(line: bytes, entry_id: str) -> bool:
    return any(id_of(entry) == entry_id for entry in entries_in(line).entries)


def _place(line: RawLine) -> list[Placed]:
    found = entries_in(line.data)
    damaged = found.is_damaged or line.is_too_long
    if not line.is_complete and damaged and not found.entries:
        return []  # still being written, or torn: the next append puts it aside
    rows = [
        Placed(entry, line.number, line.start, line.end)
        for entry in found.entries
        if entry.get("type") != "session"
    ]
    if damaged:
        rows.append(Placed(None, line.number, line.start, line.end, line.data))
    return rows


def _blocks(header: Entry, entries: Iterator[Entry]) -> Iterator[bytes]:
    """Gather lines to blocks that are worth a write each."""
    pending = [line_of(header, is_copy=True)]
    length = 0
    for entry in entries:
        pending.append(line_of(entry, is_copy=True))
        length += len(pending[-1])
        if length > _BLOCK_BYTES:
            yield b"".join(pending)
            pending, length = [], 0
    yield b"".join(pending)


JsonObject: TypeAlias = "dict[str, Any]"

_DOCUMENT_VERSION = 2
_OURS = frozenset({"sessionId", "createdAt", "updatedAt", "messages", "compactedHistory", "events", "header"})
_UNREADABLE = "plainmind.unreadable"
_MEMBER = pattern(r'"(?:[^"\\]|\\.){1,1000}"\s{0,100}:\s{0,100}(?=\{)', re.DOTALL)
_OBJECT = pattern(r'\{\s{0,100}"(?:id|role|entry)"\s{0,100}:')


@value
class _Read:
    """A document as it was read; `is_damaged` when only some of its messages could be saved."""

    data: bytes
    header: Entry
    entries: list[Entry]
    is_damaged: bool


def document_entries(data: bytes) -> list[Entry]:
    """What a document says; of a damaged one, the messages that can be saved."""
    document = read_object(data)
    return entries_of({"messages": salvage_messages(data)} if document is None else document)[1]


class Json5Transcript:
    """One document. It is read as JSON5 and written as JSON, which is JSON5 too."""

    format = "json5"

    def __init__(
        self, path: str, *, state_dir: str, system: System = SYSTEM, timeout_s: float = 10.0
    ) -> None:
        self.path = path
        self._lock = lock_path_for(state_dir, path)
        self._system = system
        self._timeout_s = timeout_s

    def create(self, header: Entry) -> None:
        """Make the document without messages; the caller holds the lock of the registry."""
        if os.path.lexists(self.path):
            raise ConflictError(f"{self.path} exists already", hint="choose another session or group id")
        self._write(header, [])

    def header(self) -> Entry | None:
        """What stands outside of the lists."""
        return self._read().header

    def add(self, drafts: Sequence[Draft]) -> None:
        """Write the document anew with the entries at its end."""
        for draft in drafts:
            refuse_too_long(halves(draft.entry))
        operation = f"append to {os.path.basename(self.path)}"
        with hold_lock(self._lock, operation=operation, timeout_s=self._timeout_s, system=self._system):
            read = self._read()
            entries = read.entries
            known = {id_of(entry) for entry in entries}
            for draft in drafts:
                name = id_of(draft.entry)
                draft.already_there = draft.is_retry and name in known
                if not draft.already_there:
                    parent = leads_to(entries[-1]) if entries else None
                    entries.append({"parentId": parent, **draft.entry})
                    known.add(name)
            self._keep_aside(read)
            remove_abandoned(self.path, self._system)
            self._write(read.header, entries)

    def entries(self, after: int = 0) -> Iterator[Placed]:
        """Read the document, and give its entries."""
        read = self._read()
        for place, entry in enumerate(read.entries[after:], after):
            yield Placed(entry, place + 1, place, place + 1)
        if read.is_damaged:
            end = len(read.entries)
            yield Placed(None, end + 1, end, end, read.data)

    def backwards(self, before: int | None = None) -> Iterator[Placed]:
        """Read the document, and give its entries from the end."""
        entries = self._read().entries
        for place in range(len(entries) if before is None else before, 0, -1):
            yield Placed(entries[place - 1], 0, place - 1, place)

    def countable(self, after: int, before: int) -> Iterator[Entry]:
        """Give the entries between two places."""
        yield from self._read().entries[after:before]

    def end(self) -> int:
        """How many entries there are."""
        return len(self._read().entries)

    def rewrite(self, header: Entry, entries: Iterator[Entry]) -> None:
        """Write the document."""
        self._write(header, list(entries))

    def _read(self) -> _Read:
        with open_plain_file(self.path, system=self._system) as fd:
            size = self._system.fstat(fd).st_size
            if size > MAX_DOCUMENT_BYTES:
                raise PlainmindError(
                    f"{self.path} is too large to be read whole: {size / 1e6:.0f} MB",
                    hint="keep long conversations in the format `jsonl`, which is read piece by piece",
                )
            data = read_range(self._system, fd, 0, size)
        document = read_object(data)
        if document is not None:
            return _Read(data, *entries_of(document), is_damaged=False)
        name = os.path.basename(self.path).partition(".")[0]
        saved = {"sessionId": name, "messages": salvage_messages(data)}
        return _Read(data, *entries_of(saved), is_damaged=True)

    def _keep_aside(self, read: _Read) -> None:
        """Keep what the next write would lose: a damaged text for good, the comments of a person in one copy."""
        if read.is_damaged:
            write_atomically(f"{self.path}.corrupt-{time.time_ns()}", read.data, system=self._system)
        elif not is_plain(read.data):
            write_atomically(f"{self.path}.bak", read.data, system=self._system)

    def _write(self, header: Entry, entries: list[Entry]) -> None:
        document = document_of(header, entries, updated_ms=time.time_ns() // 1_000_000)
        try:
            data = json.dumps(document, indent=2, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half a character can only be escaped
            data = json.dumps(document, indent=2).encode()
        if len(data) > MAX_DOCUMENT_BYTES:
            raise PlainmindError(
                f"{self.path} would become too large: {len(data) / 1e6:.0f} MB",
                hint="convert this session to the format `jsonl`; nothing was written",
            )
        write_atomically(self.path, data + b"\n", system=self._system)


# --- a document and its entries: pure, and nothing is lost on either way ---


def document_of(header: Entry, entries: Iterable[Entry], *, updated_ms: int) -> JsonObject:
    """Write a session as a document."""
    document: JsonObject = {
        "sessionId": header.get("id"),
        "version": _DOCUMENT_VERSION,
        "createdAt": time_of(header),
        "updatedAt": updated_ms,
    }
    foreign = header.get("document")
    if isinstance(foreign, dict):
        document |= {name: found for name, found in foreign.items() if name not in _OURS}
    if _header_in(document) != header:
        document["header"] = header
    messages: list[Any] = []
    compacted: list[Any] = []
    events: list[Any] = []
    previous: str | None = None
    for position, entry in enumerate(entries):
        kind = entry.get("type")
        if kind == "message" and isinstance(entry.get("message"), dict):
            messages.append(_message_of(entry, position, previous))
        elif kind == "compaction":
            compacted.append({"position": position, **_compacted_of(entry, position, previous)})
        else:
            events.append({"position": position, "entry": entry})
        previous = leads_to(entry)
    document["messages"] = messages
    document["compactedHistory"] = compacted
    if events:
        document["events"] = events
    return document


def entries_of(document: JsonObject) -> tuple[Entry, list[Entry]]:
    """Read a document, of ours or of another program: its header, and its entries in their order."""
    messages, compacted, events = (
        _items(document, name) for name in ("messages", "compactedHistory", "events")
    )
    length = len(messages) + len(compacted) + len(events)
    placed: dict[int, tuple[str, Any]] = {}
    for kind, items in (("compaction", compacted), ("event", events)):
        for item in items:
            placed[_free_position(item, placed, length, at_front=kind == "compaction")] = (kind, item)
    spoken = iter(messages)
    entries: list[Entry] = []
    previous: str | None = None
    for position in range(length):
        kind, item = placed.get(position) or ("message", next(spoken))
        entry = _READERS[kind](item, position, previous)
        entries.append(entry)
        previous = leads_to(entry)
    return _header_in(document), entries


def _items(document: JsonObject, name: str) -> list[Any]:
    found = document.get(name)
    return found if isinstance(found, list) else []


def _free_position(item: Any, taken: dict[int, tuple[str, Any]], length: int, *, at_front: bool) -> int:
    """Where an item says it stands; without that, what was compacted precedes all and other events follow all."""
    position = item.get("position") if isinstance(item, dict) else None
    if isinstance(position, int) and 0 <= position < length and position not in taken:
        return position
    free = range(length) if at_front else range(length - 1, -1, -1)
    return next(place for place in free if place not in taken)


def _header_in(document: JsonObject) -> Entry:
    header = document.get("header")
    if isinstance(header, dict) and header.get("type") == "session":
        return header
    made: Entry = {"type": "session", "version": VERSION, "id": document.get("sessionId")}
    created = _iso(document.get("createdAt"))
    if created is not None:
        made["timestamp"] = created
    foreign = {name: found for name, found in document.items() if name not in _OURS}
    if foreign.get("version") == _DOCUMENT_VERSION:
        del foreign["version"]
    return made | {"document": foreign} if foreign else made


def _message_of(entry: Entry, position: int, previous: str | None) -> JsonObject:
    message = entry["message"]
    short = {"id": entry.get("id"), **message, **_stamp(entry, "timestamp")}
    if _read_message(short, position, previous) == entry:
        return short
    rest = {name: found for name, found in entry.items() if name not in {"type", "message"}}
    return {"entry": rest, "message": message}


def _read_message(item: Any, position: int, previous: str | None) -> Entry:
    if not isinstance(item, dict):
        return _unreadable(item, position, previous)
    if isinstance(item.get("entry"), dict) and isinstance(item.get("message"), dict):
        return {"type": "message", **item["entry"], "message": item["message"]}
    message = dict(item)
    entry: Entry = {"type": "message", "id": _take_id(message, position), "parentId": previous}
    return entry | _take_time(message, "timestamp") | {"message": message}


def _compacted_of(entry: Entry, position: int, previous: str | None) -> JsonObject:
    rest = {
        name: found
        for name, found in entry.items()
        if name not in {"type", "parentId", "summary", "timestamp"}
    }
    short = {**rest, "role": "system", "content": entry.get("summary"), **_stamp(entry, "compactedAt")}
    if _read_compaction({"position": position, **short}, position, previous) == entry:
        return short
    return {"role": "system", "content": entry.get("summary"), "entry": entry}


def _read_compaction(item: Any, position: int, previous: str | None) -> Entry:
    if not isinstance(item, dict):
        return _unreadable(item, position, previous)
    if isinstance(item.get("entry"), dict):
        return dict(item["entry"])
    rest = {name: found for name, found in item.items() if name not in {"position", "content"}}
    if rest.get("role") == "system":
        del rest["role"]
    entry: Entry = {"type": "compaction", "id": _take_id(rest, position), "parentId": previous}
    return entry | _take_time(rest, "compactedAt") | {"summary": item.get("content")} | rest


def _read_event(item: Any, position: int, previous: str | None) -> Entry:
    if isinstance(item, dict) and isinstance(item.get("entry"), dict):
        return dict(item["entry"])
    return _unreadable(item, position, previous)


def _unreadable(item: Any, position: int, previous: str | None) -> Entry:
    """Keep what another program or a person put there, though its meaning is unknown."""
    return {
        "type": "custom",
        "id": f"m{position}",
        "parentId": previous,
        "customType": _UNREADABLE,
        "data": item,
    }


def _take_id(item: JsonObject, position: int) -> str:
    """Take the id out of an item; one that has none is called by its position, the same at every reading."""
    found = item.get("id")
    if isinstance(found, str) and found:
        del item["id"]
        return found
    return f"m{position}"


def _take_time(item: JsonObject, name: str) -> Entry:
    stamp = _iso(item.get(name))
    if stamp is None:
        return {}
    del item[name]
    return {"timestamp": stamp}


def _stamp(entry: Entry, name: str) -> JsonObject:
    return {name: time_of({"timestamp": entry["timestamp"]})} if "timestamp" in entry else {}


def _iso(stamp: object) -> str | None:
    if isinstance(stamp, bool) or not isinstance(stamp, int) or not 0 < stamp <= LATEST_MS:
        return None
    return iso(stamp / 1000)


_READERS = {"message": _read_message, "compaction": _read_compaction, "event": _read_event}


# --- JSON5 as people and other programs write it, and what can be saved of a damaged text ---


def read_object(data: bytes) -> dict[str, Any] | None:
    """Read an object; None when the bytes are not one."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        found = DECODER.decode(text)
    except (ValueError, RecursionError):
        found = _read_json5(text)
    return found if isinstance(found, dict) else None


def is_plain(data: bytes) -> bool:
    """Whether it is JSON, and so has no comments that writing it again would lose."""
    try:
        DECODER.decode(data.decode())
    except (ValueError, RecursionError):
        return False
    return True


def salvage_members(data: bytes) -> dict[str, dict[str, Any]]:
    """Find the members `"name": {…}` that are whole in the text of a damaged object, not looking into them."""
    text = data.decode("utf-8", "replace")
    saved: dict[str, dict[str, Any]] = {}
    at = 0
    while match := _MEMBER.search(text, at):
        found, at = _object_at(text, match.end())
        if found is not None:
            saved[json.loads(match[0].rstrip().removesuffix(":"), strict=False)] = found
    return saved


def salvage_messages(data: bytes) -> list[dict[str, Any]]:
    """Find the messages that are whole in the text of a damaged document."""
    text = data.decode("utf-8", "replace")
    saved: list[dict[str, Any]] = []
    at = 0
    while match := _OBJECT.search(text, at):
        found, at = _object_at(text, match.start())
        if found is not None and ("role" in found or "entry" in found):
            saved.append(found)
    return saved


def _object_at(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    """Decode the object that begins here; without one, go on behind its brace."""
    try:
        found, end = DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at + 1
    return found, end


def _read_json5(text: str) -> object:
    if not text.strip():
        return None
    import json5

    try:
        return json5.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return None
