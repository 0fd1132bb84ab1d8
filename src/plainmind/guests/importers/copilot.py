"""Conversations with Copilot CLI: `~/.copilot/session-state/<session>/events.jsonl`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from plainmind.base.lazy import pattern
from plainmind.guests.importers.originals import JsonlConversation, first_entries
from plainmind.guests.importers.protocol import (
    About,
    Conversation,
    Original,
    blocks_of,
    call_block,
    make_id,
    text_in,
    thinking_block,
    tool_result,
)
from plainmind.sessions.entries import Entry

_FOLDERS = ("session-state", "history-session-state")
_EVENTS = "events.jsonl"
_OLDER = pattern(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\.jsonl"
)  # one file a session, in the folder itself


class Copilot:
    """Reads the sessions of Copilot CLI."""

    program = "copilot"
    looks_for = "`<session>/events.jsonl`, as in ~/.copilot/session-state"

    def folders(self, path: str) -> list[str]:
        """In `~/.copilot` there is much else."""
        below = [os.path.join(path, name) for name in _FOLDERS]
        return [folder for folder in below if os.path.isdir(folder)] or [path]

    def original(self, path: str, given: str) -> Original | None:
        """Lists of events, by their names; a file that was given itself may have any name."""
        name = os.path.basename(path)
        return Original(path) if path == given or name == _EVENTS or _OLDER.fullmatch(name) else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A file is a conversation."""
        path = original.path
        yield JsonlConversation(path, _about(path, first_entries(path, 8)), lambda: translate)


def _about(path: str, events: list[Entry]) -> About:
    start = next((_data(event) for event in events if event.get("type") == "session.start"), {})
    name = os.path.basename(path)
    in_path = os.path.basename(os.path.dirname(path)) if name == _EVENTS else name.partition(".json")[0]
    context = start.get("context")
    where = context if isinstance(context, dict) else {}
    header = {"timestamp": start.get("startTime"), "cwd": where.get("cwd")}
    fields = {"cwd": where.get("cwd"), "gitBranch": where.get("branch")}
    return About(text_in(start.get("sessionId")) or in_path, _texts(header), _texts(fields))


def translate(event: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
    """Give the entry that an event becomes, or none; total, whatever it says."""
    body = _body(event.get("type"), _data(event))
    if body is None:
        return ()
    entry: Entry = {"type": body["type"], "id": text_in(event.get("id")) or make_id(number, raw)}
    if text_in(event.get("timestamp")):
        entry["timestamp"] = event["timestamp"]
    if body["type"] == "compaction":
        entry["firstKeptEntryId"] = entry["id"]
    return (entry | body,)


def _body(kind: object, data: Entry) -> Entry | None:
    if kind == "user.message":
        content = blocks_of(
            data.get("content")
        )  # as it was typed; `transformedContent` has what hooks put to it
        return {"type": "message", "message": {"role": "user", "content": content}} if content else None
    if kind == "assistant.message":
        return _answer(data)
    if kind == "tool.execution_complete":
        return _result(data)
    summary = text_in(data.get("summaryContent"))
    if kind == "session.compaction_complete" and summary:
        return {"type": "compaction", "summary": summary, "tokensBefore": 0}
    title = text_in(data.get("title"))
    if kind == "session.title_changed" and title:
        return {"type": "session_info", "name": title}
    return None


def _answer(data: Entry) -> Entry | None:
    thought = text_in(data.get("reasoningText"))
    content = [thinking_block(thought)] if thought else []
    content += blocks_of(data.get("content"))
    calls = data.get("toolRequests")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            content.append(call_block(call.get("toolCallId"), call.get("name"), call.get("arguments")))
    if not content:
        return None
    message: Entry = {"role": "assistant", "content": content, "provider": "github-copilot"}
    if text_in(data.get("model")):
        message["model"] = data["model"]
    return {"type": "message", "message": message}


def _result(data: Entry) -> Entry:
    result, error = data.get("result"), data.get("error")
    given = result.get("content") if isinstance(result, dict) else result
    if given is None and isinstance(error, dict):
        given = error.get("message")
    failed = data.get("success") is False
    answer = tool_result(data.get("toolCallId"), given, name=data.get("toolName"), is_error=failed)
    return {"type": "message", "message": answer}


def _data(event: Entry) -> Entry:
    found = event.get("data")
    return found if isinstance(found, dict) else {}


def _texts(found: Entry) -> Entry:
    return {key: text for key, text in found.items() if isinstance(text, str) and text}
