"""Conversations of OpenClaw: transcripts of every version, their archives, and the rows of its SQLite file."""

from __future__ import annotations

import os
from collections.abc import Iterator

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import sha256_text
from plainmind.files.jsonl import open_plain_file
from plainmind.files.system import SYSTEM, read_range
from plainmind.guests.importers.openclaw_database import conversations_in, thaw
from plainmind.guests.importers.originals import JsonlConversation, first_entries
from plainmind.guests.importers.protocol import About, Conversation, Original, make_id
from plainmind.sessions.entries import Entry
from plainmind.sessions.json5_transcript import read_object

_FILE = pattern(
    r"(?P<id>[^.][^/]*?)\.jsonl"
    r"(?P<kind>|\.(?:reset|deleted|archived)\.[^/]+?|\.imported-\d+|\.bak[^/]*|\.[^/]*\.bak)(?:\.zst)?"
)
# Neither is a transcript: a log of what the program did, and a copy that it makes before a compaction.
_NO_TRANSCRIPT = pattern(r".*\.(?:trajectory|checkpoint\.[^/]+)\.jsonl.*")
_UUID = pattern(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?:-topic-.+)?")
_FOLDERS = ("sessions", "session-sqlite-import-archive", "cold")
_DATABASE = "openclaw-agent.sqlite"
_MOST_REGISTRY_BYTES = 64 << 20
# What a registry says of a conversation; the rest is about how the program runs, or was counted by it.
_FIELDS = (
    "channel", "chatType", "displayName", "groupId", "groupChannel", "label", "origin", "provider", "spawnedBy",
    "space", "subject",
)  # fmt: skip
_UPGRADED = 3


class OpenClaw:
    """Reads the sessions of OpenClaw."""

    program = "openclaw"
    looks_for = "`agents/<agent>/sessions/*.jsonl` and `agents/<agent>/agent/openclaw-agent.sqlite`, as in ~/.openclaw"

    def __init__(self) -> None:
        self._registries: dict[str, dict[str, tuple[str, Entry]]] = {}

    def folders(self, path: str) -> list[str]:
        """In a state folder only the agents have conversations."""
        below = os.path.join(path, "agents")
        return [below] if os.path.isdir(below) else [path]

    def original(self, path: str, given: str) -> Original | None:
        """Transcripts and archives of a sessions folder, and the database."""
        folder, name = os.path.split(path)
        agent = _agent_of(path)
        if name == _DATABASE or (path == given and name.endswith((".sqlite", ".db"))):
            return Original(path, agent, rank=3)
        if given not in {path, folder} and os.path.basename(folder) not in _FOLDERS:
            return None
        match = _FILE.fullmatch(name)
        if match is None or _NO_TRANSCRIPT.fullmatch(name):
            return Original(path, agent) if path == given else None
        kind = match["kind"]
        is_spare = kind.endswith(".bak") or kind.startswith(".bak")
        rank = 2 if not kind else 1 if kind.startswith(".imported") else 0
        return Original(path, agent, rank=rank, is_spare=is_spare)

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A file is a conversation; the database holds all of an agent."""
        path = original.path
        if path.endswith((".sqlite", ".db")):
            yield from conversations_in(path, Translation, fields_of)
            return
        first = first_entries(path, 1)
        cold = first[0].get("sessionId") if first and first[0].get("kind") == "header" else None
        if isinstance(cold, str) and cold:
            yield JsonlConversation(path, About(cold), lambda: thaw(Translation()))
            return
        header = first[0] if first and first[0].get("type") == "session" else {}
        session_id = _id_of(path, header)
        key, entry = self._registry_of(os.path.dirname(path)).get(session_id, (None, {}))
        kept = {name: found for name, found in header.items() if name not in {"type", "id"}}
        kept["version"] = (
            max(_UPGRADED, kept["version"]) if isinstance(kept.get("version"), int) else _UPGRADED
        )
        yield JsonlConversation(path, About(session_id, kept, fields_of(key, entry)), Translation)

    def _registry_of(self, folder: str) -> dict[str, tuple[str, Entry]]:
        """What the registry of a folder says, by session id."""
        if folder not in self._registries:
            self._registries[folder] = {
                entry["sessionId"]: (key, entry)
                for key, entry in _read_registry(os.path.join(folder, "sessions.json")).items()
                if isinstance(entry, dict) and isinstance(entry.get("sessionId"), str)
            }
        return self._registries[folder]


def fields_of(key: str | None, entry: Entry) -> Entry:
    """What of a registry's entry goes along with a conversation."""
    kept = {name: entry[name] for name in _FIELDS if entry.get(name) is not None}
    channel = _at(entry, "delivery", "route", "channel")
    if isinstance(channel, str) and "channel" not in kept:
        kept["channel"] = channel
    return kept | {"originalKey": key} if key else kept


def _at(found: object, *names: str) -> object:
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _read_registry(path: str) -> Entry:
    try:
        with open_plain_file(path) as fd:
            return read_object(read_range(SYSTEM, fd, 0, _MOST_REGISTRY_BYTES)) or {}
    except PlainmindError:
        return {}  # the conversations are whole without it


def _agent_of(path: str) -> str | None:
    parts = path.split(os.sep)
    for position in range(len(parts) - 2, 0, -1):
        if parts[position - 1] == "agents":
            return parts[position]
    return None


def _id_of(path: str, header: Entry) -> str:
    """The session's id: that of the file name, which archives keep, if it looks like one; else the header's."""
    match = _FILE.fullmatch(os.path.basename(path))
    in_name = match["id"] if match else os.path.basename(path)
    in_header = header.get("id")
    last = in_name.rpartition(".")[2]  # what moved to the database is called `<key>.<id>.jsonl.imported-…`
    if _UUID.fullmatch(last):
        return last
    if isinstance(in_header, str) and in_header:
        return in_name if in_name.startswith(in_header) else in_header
    return f"{in_name}-{sha256_text(os.path.realpath(path))[:8]}"


class Translation:
    """Copies the entries of one transcript as they are, versions without ids upgraded; total."""

    def __init__(self) -> None:
        self._ids: list[str] | None = None  # by index, for files of version 1; None: not from the beginning

    def __call__(self, found: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
        """Give the entry; the header is none."""
        if found.get("type") == "session":
            self._ids = [""] if number == 1 else self._ids
            return ()
        entry = _with_type(found)
        own_id = found.get("id")
        if not isinstance(own_id, str) or not own_id:
            own_id = make_id(number, raw)
            entry.pop("parentId", None)
        entry["id"] = own_id
        if self._ids is not None:
            self._ids.append(own_id)
        return (self._upgrade(entry),)

    def _upgrade(self, entry: Entry) -> Entry:
        message = entry.get("message")
        if isinstance(message, dict) and message.get("role") == "hookMessage":
            return entry | {"message": message | {"role": "custom"}}
        index = entry.get("firstKeptEntryIndex")
        if isinstance(index, int) and "firstKeptEntryId" not in entry:
            known = self._ids or []
            first = known[index] if 0 < index < len(known) else entry["id"]
            rest = {name: kept for name, kept in entry.items() if name != "firstKeptEntryIndex"}
            return rest | {"firstKeptEntryId": first}
        return entry


def _with_type(found: Entry) -> Entry:
    """An entry of any type, known or not; what has none is a message, or kept as what it is."""
    if isinstance(found.get("type"), str):
        return dict(found)
    if isinstance(found.get("role"), str):
        return {"type": "message", "message": found}
    return {"type": "custom", "customType": "openclaw.unknown", "data": found}
