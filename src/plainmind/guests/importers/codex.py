"""Conversations with Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, and the two shapes before that."""

from __future__ import annotations

import os
from collections.abc import Iterator

from plainmind.base.lazy import pattern
from plainmind.guests.importers.originals import (
    JsonlConversation,
    ListedConversation,
    first_entries,
    read_document,
)
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
    words_of,
)
from plainmind.sessions.entries import Entry

_FILE = pattern(r"rollout-.+\.jsonl?(?:\.zst)?")
_ID = pattern(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
# What the program tells the model in the user's name.
_NOT_THE_USER = (
    "<environment_context>", "<user_instructions>", "<permissions instructions>", "<collaboration_mode>",
    "<turn_aborted>", "<subagent_notification>", "<user_shell_command>", "<skill>", "<skills_instructions>",
    "<apps_instructions>", "<INSTRUCTIONS>", "# AGENTS.md instructions",
)  # fmt: skip
_CONTEXT = "codex.context"
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_ANSWERS = frozenset({"function_call_output", "custom_tool_call_output"})


class Codex:
    """Reads the rollouts of Codex."""

    program = "codex"
    looks_for = "`rollout-*.jsonl`, as in ~/.codex/sessions"

    def folders(self, path: str) -> list[str]:
        """In `~/.codex` there are two folders of conversations, and much else."""
        below = [os.path.join(path, name) for name in ("archived_sessions", "sessions")]
        return [folder for folder in below if os.path.isdir(folder)] or [path]

    def original(self, path: str, given: str) -> Original | None:
        """Rollouts, by their names; a file that was given itself may have any name."""
        return Original(path) if path == given or _FILE.fullmatch(os.path.basename(path)) else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A file is a conversation; the oldest ones are one document."""
        path = original.path
        if path.endswith(".json"):
            yield from _from_document(path)
            return
        yield JsonlConversation(path, _about(path, first_entries(path, 8)), Translation)


def _about(path: str, entries: list[Entry]) -> About:
    """Read the first line: its `payload` today, itself in older files."""
    meta: Entry = next((_payload(entry) for entry in entries if entry.get("type") == "session_meta"), {})
    if not meta and entries and "type" not in entries[0]:
        meta = entries[0]
    name = os.path.basename(path)
    in_name = _ID.findall(name)
    session_id = text_in(meta.get("id")) or (in_name[-1] if in_name else name.partition(".json")[0])
    header = {key: meta[key] for key in ("timestamp", "cwd") if text_in(meta.get(key))}
    fields = {"cwd": header["cwd"]} if "cwd" in header else {}
    git = meta.get("git")
    if isinstance(git, dict) and text_in(git.get("branch")):
        fields["gitBranch"] = git["branch"]
    return About(session_id, header, fields)


def _from_document(path: str) -> Iterator[Conversation]:
    document = read_document(path)
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(items, list):
        return
    session = document.get("session")
    about = _about(path, [session] if isinstance(session, dict) else [])
    yield ListedConversation(path, about, items, Translation())


class Translation:
    """Translates the lines of one rollout, in their order; total, whatever a line says."""

    def __init__(self) -> None:
        self._model: object = None

    def __call__(self, line: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
        """Give the entry that a line becomes, or none: events repeat what the items of the model say."""
        body = self._body(line)
        if body is None:
            return ()
        entry: Entry = {"type": body["type"], "id": make_id(number, raw)}
        if text_in(line.get("timestamp")):
            entry["timestamp"] = line["timestamp"]
        if body["type"] == "compaction":
            entry["firstKeptEntryId"] = entry["id"]
        return (entry | body,)

    def _body(self, line: Entry) -> Entry | None:
        kind = line.get("type")
        if kind == "response_item":
            return _item(_payload(line))
        if kind == "turn_context":
            return self._model_change(_payload(line))
        if kind == "compacted":
            return _compaction(_payload(line))
        return _item(line) if "payload" not in line else None  # before there were envelopes

    def _model_change(self, context: Entry) -> Entry | None:
        model = text_in(context.get("model"))
        if model is None or model == self._model:
            return None
        self._model = model
        return {"type": "model_change", "provider": "openai", "modelId": model}


def _item(item: Entry) -> Entry | None:
    kind = item.get("type")
    if kind == "message":
        return _message(item)
    if kind == "reasoning":
        thought = words_of(item.get("summary")) or words_of(item.get("content"))
        return _by_the_model([thinking_block(thought)]) if thought else None
    if isinstance(kind, str) and kind in _CALLS:
        name = item.get("name") or kind.removesuffix("_call")
        arguments = item.get("arguments", item.get("input", item.get("action")))
        return _by_the_model([call_block(item.get("call_id", item.get("id")), name, arguments)])
    if isinstance(kind, str) and kind in _ANSWERS:
        output = item.get("output")
        if isinstance(output, dict) and "content" in output:
            output = output["content"]
        return {"type": "message", "message": tool_result(item.get("call_id"), output)}
    return None


def _message(item: Entry) -> Entry | None:
    content = blocks_of(item.get("content"))
    if not content:
        return None
    role = item.get("role")
    if role == "assistant":
        return _by_the_model(content)
    if role == "user" and not words_of(content).lstrip().startswith(_NOT_THE_USER):
        return {"type": "message", "message": {"role": "user", "content": content}}
    return {"type": "custom_message", "customType": _CONTEXT, "content": content, "display": False}


def _by_the_model(content: list[Entry]) -> Entry:
    return {"type": "message", "message": {"role": "assistant", "content": content, "provider": "openai"}}


def _compaction(payload: Entry) -> Entry | None:
    summary = text_in(payload.get("message"))
    return {"type": "compaction", "summary": summary, "tokensBefore": 0} if summary else None


def _payload(line: Entry) -> Entry:
    found = line.get("payload")
    return found if isinstance(found, dict) else {}
