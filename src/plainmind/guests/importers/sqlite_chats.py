"""Conversations that a program keeps in SQLite: those of opencode, and of Cursor. The databases are only read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.guests.importers.originals import (
    About,
    Conversation,
    NothingToTake,
    Original,
    StoredConversation,
    Translate,
    call_block,
    make_id,
    open_untouched,
    spoken,
    text_block,
    thinking_block,
    tool_result,
    unspoken,
)
from plainmind.sessions.entries import Entry, iso, time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    import apsw

    Read: TypeAlias = "Callable[[apsw.Connection, str], Iterator[Conversation]]"

_COLUMNS = "SELECT name FROM pragma_table_info(:table)"


def _conversations(path: str, program: str, read: Read) -> Iterator[Conversation]:
    """Read a database, each conversation before the next is asked for. Raises PlainmindError when it cannot be read."""
    import apsw

    try:
        with open_untouched(path) as database:
            yield from read(database, path)
    except apsw.Error as error:
        raise PlainmindError(
            f"{path} cannot be read: {error}",
            hint=f"it may be in the middle of a change; try again, or close {program} first",
        ) from error


def _require(database: apsw.Connection, path: str, table: str, columns: frozenset[str]) -> None:
    found = {name for (name,) in database.execute(_COLUMNS, {"table": table})}
    missing = sorted(columns - found)
    if missing:
        raise PlainmindError(
            f"{path} has no `{table}.{missing[0]}`: this version of opencode keeps conversations in another way",
            hint="nothing was changed; a newer Plainmind may be able to read it",
        )


def _object(found: object) -> Entry:
    """What a column holds; empty for anything that is no JSON object."""
    if isinstance(found, bytes):
        found = found.decode("utf-8", "replace")
    try:
        read = json.loads(found, strict=False) if isinstance(found, str) else None
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""


def _time(found: object) -> Entry:
    moment = time_of({"timestamp": found})
    return {"timestamp": iso(moment / 1000)} if moment is not None else {}


def _entries(own_id: str, when: Entry, bodies: Iterable[tuple[str, Entry]]) -> tuple[Entry, ...]:
    """Entries of one message: each has the message's id, and a name when it is not what was said."""
    return tuple({"type": body["type"], "id": f"{own_id}{name}", **when, **body} for name, body in bodies)


# --- opencode: sessions, messages and their parts are rows ---

_OPENCODE_FILE = pattern(r"opencode(?:-[\w.-]+)?\.db")
_OPENCODE_TABLES = {
    "session": frozenset({"id", "directory", "title", "parent_id", "time_created", "time_updated"}),
    "message": frozenset({"id", "session_id", "time_created", "data"}),
    "part": frozenset({"id", "message_id", "session_id", "data"}),
}
_SESSIONS = """
    SELECT s.id, s.directory, s.title, s.parent_id, s.time_created, s.time_updated,
           (SELECT count(*) FROM message AS m WHERE m.session_id = s.id)
      FROM session AS s
  ORDER BY s.time_created, s.id
"""
_MESSAGES = "SELECT id, data FROM message WHERE session_id = :session ORDER BY time_created, id"
_PARTS = "SELECT message_id, data FROM part WHERE session_id = :session ORDER BY id"
_TASK = "opencode.task"


class OpenCode:
    """Reads the database of opencode."""

    program = "opencode"
    looks_for = "`opencode.db`, as in ~/.local/share/opencode"

    def folders(self, path: str) -> list[str]:
        """The database lies in the folder itself."""
        return [path]

    def original(self, path: str, given: str) -> Original | None:
        """The database, by its name; a file that was given itself may have any name."""
        is_database = _OPENCODE_FILE.fullmatch(os.path.basename(path)) is not None
        is_at_top = os.path.dirname(path) == given
        return Original(path) if path == given or (is_database and is_at_top) else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """All sessions of the database, those of subagents too."""
        return _conversations(original.path, self.program, _sessions_of_opencode)


def _sessions_of_opencode(database: apsw.Connection, path: str) -> Iterator[Conversation]:
    for table, columns in _OPENCODE_TABLES.items():
        _require(database, path, table, columns)
    for session, folder, title, parent, created, updated, count in database.execute(_SESSIONS).fetchall():

        def items(session: object = session) -> Iterator[Entry]:
            return _messages_of_opencode(database, session)

        facts = {"cwd": _text(folder), "displayName": _text(title)}
        fields = {name: found for name, found in facts.items() if found}
        header = {**_time(created), **({"cwd": folder} if _text(folder) else {})}
        about = About(str(session), header, fields)
        translate: Translate = _of_subagent if parent is not None else _of_opencode
        yield StoredConversation(about, f"{updated}:{count}", items, translate)


def _messages_of_opencode(database: apsw.Connection, session: object) -> Iterator[Entry]:
    """The messages with their parts; the last is left for the next time while it is being written."""
    parts: dict[object, list[Entry]] = {}
    for message, data in database.execute(_PARTS, {"session": session}):
        parts.setdefault(message, []).append(_object(data))
    rows = database.execute(_MESSAGES, {"session": session}).fetchall()
    for position, (own_id, data) in enumerate(rows, 1):
        message = _object(data)
        times = message.get("time")
        is_done = message.get("role") != "assistant" or "error" in message
        is_done = is_done or (isinstance(times, dict) and "completed" in times)
        if is_done or position < len(rows):
            yield message | {"id": str(own_id), "parts": parts.get(own_id, [])}


def _of_opencode(message: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:  # noqa: ARG001
    times = message.get("time")
    when = _time(times.get("created") if isinstance(times, dict) else None)
    return _entries(message["id"], when, _bodies_of_opencode(message))


def _of_subagent(message: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
    """What an agent told its subagent stands in the user's name, and was said by no user."""
    entries = _of_opencode(message, raw, number)
    if message.get("role") != "user":
        return entries
    kept = ("id", "timestamp")
    return tuple(
        {name: entry[name] for name in kept if name in entry} | unspoken(_TASK, entry["message"]["content"])
        for entry in entries
    )


def _bodies_of_opencode(message: Entry) -> Iterator[tuple[str, Entry]]:
    role = message.get("role")
    parts: list[Entry] = message["parts"]
    texts = [
        _text(part.get("text"))
        for part in parts
        if part.get("type") == "text" and part.get("synthetic") is not True
    ]
    text = "\n".join(text for text in texts if text)
    if role == "user":
        if text:
            yield "", spoken("user", [text_block(text)])
        return
    if role != "assistant":
        return
    made_by = {"provider": message.get("providerID"), "model": message.get("modelID")}
    thoughts = [_text(part.get("text")) for part in parts if part.get("type") == "reasoning"]
    thought = "\n".join(thought for thought in thoughts if thought)
    if thought:
        yield ".thoughts", spoken("assistant", [thinking_block(thought)], **made_by)
    calls = (part for part in parts if part.get("type") == "tool")
    for count, part in enumerate(calls, 1):
        found = part.get("state")
        state = found if isinstance(found, dict) else {}
        block = call_block(part.get("callID"), part.get("tool"), state.get("input"))
        yield f".call{count}", spoken("assistant", [block], **made_by)
        answer = state.get("output", state.get("error"))
        if _text(answer):
            failed = state.get("status") == "error"
            result = tool_result(part.get("callID"), answer, name=part.get("tool"), is_error=failed)
            yield f".answer{count}", result
    if text:
        yield "", spoken("assistant", [text_block(text)], **made_by)


# --- Cursor: values of JSON by key; a conversation names its messages, each of which is a value of its own ---

_CURSOR_FILE = "state.vscdb"
_KEYS = "SELECT key, value FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;'"
_VALUE = "SELECT value FROM cursorDiskKV WHERE key = :key"
_ITEM = "SELECT value FROM ItemTable WHERE key = 'workbench.panel.aichat.view.aichat.chatdata'"
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_CURSOR_ROLES = {1: "user", 2: "assistant", "user": "user", "ai": "assistant"}


class Cursor:
    """Reads the databases of Cursor."""

    program = "cursor"
    looks_for = "`globalStorage/state.vscdb`, as in ~/.config/Cursor/User"

    def folders(self, path: str) -> list[str]:
        """One database for all projects, and one for each, where older versions kept what was said."""
        user = os.path.join(path, "User") if os.path.isdir(os.path.join(path, "User")) else path
        below = [os.path.join(user, name) for name in ("globalStorage", "workspaceStorage")]
        return [folder for folder in below if os.path.isdir(folder)] or [path]

    def original(self, path: str, given: str) -> Original | None:
        """The databases, by their name; a file that was given itself may have any name."""
        return Original(path) if path == given or os.path.basename(path) == _CURSOR_FILE else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """All conversations of a database."""
        return _conversations(original.path, "Cursor", _conversations_of_cursor)


def _conversations_of_cursor(database: apsw.Connection, path: str) -> Iterator[Conversation]:
    tables = {name for (name,) in database.execute(_TABLES)}
    if not tables & {"cursorDiskKV", "ItemTable"}:
        raise PlainmindError(
            f"{path} has neither `cursorDiskKV` nor `ItemTable`: this version of Cursor keeps conversations in"
            " another way",
            hint="nothing was changed; a newer Plainmind may be able to read it",
        )
    count = 0
    if "cursorDiskKV" in tables:
        for key, found in database.execute(_KEYS).fetchall():
            conversation = _composer(database, str(key).partition(":")[2], _object(found))
            if conversation is not None:
                count += 1
                yield conversation
    if "ItemTable" in tables:
        for conversation in _tabs(_object(next(iter(database.execute(_ITEM)), (None,))[0])):
            count += 1
            yield conversation
    if not count:
        raise NothingToTake("it holds no conversation")


def _composer(database: apsw.Connection, own_id: str, found: Entry) -> Conversation | None:
    headers = found.get("fullConversationHeadersOnly")
    inline = found.get("conversation")
    listed = headers if isinstance(headers, list) and headers else inline
    if not isinstance(listed, list) or not listed:
        return None

    def items() -> Iterator[Entry]:
        for header in listed:
            bubble: Entry = header if isinstance(header, dict) else {}
            name = _text(bubble.get("bubbleId"))
            if name and listed is headers:
                row = database.execute(_VALUE, {"key": f"bubbleId:{own_id}:{name}"}).fetchone()
                bubble = bubble | _object(row[0] if row is not None else None)
            yield bubble

    about = _about_cursor(own_id, found.get("name"), found.get("createdAt"))
    digest = f"{found.get('lastUpdatedAt')}:{len(listed)}:{found.get('status')}"
    return StoredConversation(about, digest, items, _of_cursor)


def _tabs(found: Entry) -> Iterator[Conversation]:
    """Chats of the older versions, all in one value."""
    tabs = found.get("tabs")
    for tab in tabs if isinstance(tabs, list) else ():
        bubbles = tab.get("bubbles") if isinstance(tab, dict) else None
        if isinstance(bubbles, list) and bubbles and _text(tab.get("tabId")):
            about = _about_cursor(tab["tabId"], tab.get("chatTitle"), tab.get("lastSendTime"))
            digest = f"{tab.get('lastSendTime')}:{len(bubbles)}"
            listed = [bubble for bubble in bubbles if isinstance(bubble, dict)]
            yield StoredConversation(about, digest, lambda listed=listed: listed, _of_cursor)  # type: ignore[misc]


def _about_cursor(own_id: str, title: object, created: object) -> About:
    return About(own_id, _time(created), {"displayName": title} if _text(title) else {})


def _of_cursor(bubble: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
    timing = bubble.get("timingInfo")
    started = timing.get("clientStartTime") if isinstance(timing, dict) else None
    when = _time(bubble.get("createdAt")) or _time(started)
    own_id = _text(bubble.get("bubbleId")) or _text(bubble.get("id")) or make_id(number, raw)
    return _entries(own_id, when, _bodies_of_cursor(bubble))


def _bodies_of_cursor(bubble: Entry) -> Iterator[tuple[str, Entry]]:
    kind = bubble.get("type")
    role = _CURSOR_ROLES.get(kind) if isinstance(kind, int | str) else None
    if role is None:
        return
    thinking = bubble.get("thinking")
    thought = _text(thinking.get("text")) if isinstance(thinking, dict) else _text(thinking)
    if thought:
        yield ".thoughts", spoken("assistant", [thinking_block(thought)])
    text = _text(bubble.get("text")) or _text(bubble.get("rawText"))
    if text.strip():
        yield "", spoken(role, [text_block(text)])
    tool = bubble.get("toolFormerData")
    if isinstance(tool, dict) and _text(tool.get("name")):
        call = tool.get("toolCallId")
        block = call_block(call, tool["name"], tool.get("rawArgs", tool.get("params")))
        yield ".call", spoken("assistant", [block])
        answer = tool.get("result")
        if _text(answer):
            failed = tool.get("status") == "error"
            result = tool_result(call, answer, name=tool["name"], is_error=failed)
            yield ".answer", result
