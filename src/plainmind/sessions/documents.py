"""A transcript as one readable document, and back: pure, and nothing is lost on either way.

    {"sessionId": …, "version": 2, "createdAt": …, "updatedAt": …,
     "messages": [{"id": …, "role": "user", "content": …, "timestamp": …}, …],
     "compactedHistory": [{"position": 7, "role": "system", "content": "what was said", "compactedAt": …}],
     "events": [{"position": 3, "entry": {"type": "model_change", …}}]}

An entry is written in this short form only if reading it gives the same entry again; otherwise what the form cannot say
stands beside it under `entry`. A `position` counts all entries from 0; messages take the positions that are left.
"""

from __future__ import annotations

from collections.abc import Iterable

from plainmind.sessions.entries import VERSION, Entry, iso, leads_to, time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

Document: TypeAlias = "dict[str, Any]"

_DOCUMENT_VERSION = 2
_OURS = frozenset({"sessionId", "createdAt", "updatedAt", "messages", "compactedHistory", "events", "header"})
_LATEST_MS = 253_402_300_799_999  # the end of the year 9999
_UNREADABLE = "plainmind.unreadable"


def document_of(header: Entry, entries: Iterable[Entry], *, updated_ms: int) -> Document:
    """Write a session as a document."""
    document: Document = {
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


def entries_of(document: Document) -> tuple[Entry, list[Entry]]:
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


def _items(document: Document, name: str) -> list[Any]:
    found = document.get(name)
    return found if isinstance(found, list) else []


def _free_position(item: Any, taken: dict[int, tuple[str, Any]], length: int, *, at_front: bool) -> int:
    """Where an item says it stands; without that, what was compacted precedes all and other events follow all."""
    position = item.get("position") if isinstance(item, dict) else None
    if isinstance(position, int) and 0 <= position < length and position not in taken:
        return position
    free = range(length) if at_front else range(length - 1, -1, -1)
    return next(place for place in free if place not in taken)


def _header_in(document: Document) -> Entry:
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


def _message_of(entry: Entry, position: int, previous: str | None) -> Document:
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
    entry: Entry = {"type": "message", "id": _taken_id(message, position), "parentId": previous}
    return entry | _taken_time(message, "timestamp") | {"message": message}


def _compacted_of(entry: Entry, position: int, previous: str | None) -> Document:
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
    entry: Entry = {"type": "compaction", "id": _taken_id(rest, position), "parentId": previous}
    return entry | _taken_time(rest, "compactedAt") | {"summary": item.get("content")} | rest


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


def _taken_id(item: Document, position: int) -> str:
    """Take the id out of an item; one that has none is called by its position, the same at every reading."""
    found = item.get("id")
    if isinstance(found, str) and found:
        del item["id"]
        return found
    return f"m{position}"


def _taken_time(item: Document, name: str) -> Entry:
    stamp = _iso(item.get(name))
    if stamp is None:
        return {}
    del item[name]
    return {"timestamp": stamp}


def _stamp(entry: Entry, name: str) -> Document:
    return {name: time_of({"timestamp": entry["timestamp"]})} if "timestamp" in entry else {}


def _iso(stamp: object) -> str | None:
    if isinstance(stamp, bool) or not isinstance(stamp, int) or not 0 < stamp <= _LATEST_MS:
        return None
    return iso(stamp / 1000)


_READERS = {"message": _read_message, "compaction": _read_compaction, "event": _read_event}
