"""Conversations with Claude Code: `~/.claude/projects/<project>/<session>.jsonl` and those of its subagents."""

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
    make_id,
    number_id,
    text_block,
    text_in,
    tool_result,
    words_of,
)
from plainmind.sessions.entries import Entry

# What the program itself says in the user's name.
_NOT_THE_USER = (
    "<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>", "<bash-input>", "<bash-stdout>",
    "<bash-stderr>", "<system-reminder>", "<task-notification>", "Caveat: The messages below were generated",
    "[Request interrupted by user",
)  # fmt: skip
_COMMAND = pattern(r"<command-name>(?P<name>[^<]{1,200})</command-name>")
_ARGUMENTS = pattern(r"(?s)<command-args>(?P<text>.{0,100000}?)</command-args>")
_META = "claude-code.meta"
_TASK = "claude-code.task"
_SUMMARY = "claude-code.summary"


class ClaudeCode:
    """Reads the transcripts of Claude Code."""

    program = "claude-code"
    looks_for = "`<project>/<session>.jsonl`, as in ~/.claude/projects"

    def folders(self, path: str) -> list[str]:
        """`~/.claude` itself holds much that is no conversation."""
        below = os.path.join(path, "projects")
        return [below] if os.path.isdir(below) else [path]

    def original(self, path: str, given: str) -> Original | None:  # noqa: ARG002
        """Every JSONL file below a project, subagents too."""
        name = os.path.basename(path)
        return Original(path) if name.endswith(".jsonl") and name != "history.jsonl" else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A file is a conversation."""
        entries = first_entries(original.path)
        yield JsonlConversation(original.path, _about(original.path, entries), Translation)


def _about(path: str, entries: list[Entry]) -> About:
    stem = os.path.basename(path).partition(".jsonl")[0]
    session = _first(entries, "sessionId")
    # A subagent's file is named after the subagent, and says within to whose session it belongs.
    name = f"{session}-{stem}" if stem.startswith("agent-") and session else stem
    header = {"timestamp": _first(entries, "timestamp"), "cwd": _first(entries, "cwd")}
    fields = {"gitBranch": _first(entries, "gitBranch"), "cwd": header["cwd"]}
    return About(
        name,
        {key: found for key, found in header.items() if found},
        {key: found for key, found in fields.items() if found},
    )


def _first(entries: list[Entry], name: str) -> str | None:
    found = (entry.get(name) for entry in entries)
    return next((text for text in found if isinstance(text, str) and text), None)


class Translation:
    """Translates the lines of one file, in their order; total, whatever a line says."""

    def __init__(self) -> None:
        self._skipped: dict[str, str | None] = {}  # lines that are not copied, and what they follow
        self._answer: object = (
            None  # the latest answer: each of its blocks has a line, and repeats what it cost
        )

    def __call__(self, line: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
        """Give the entries that a line becomes: none, one, or one for each tool that answered."""
        own_id = text_in(line.get("uuid")) or make_id(number, raw)
        parent = self._copied_parent(line.get("logicalParentUuid") or line.get("parentUuid"))
        bodies = self._bodies(line)
        if not bodies:
            self._skipped[own_id] = parent
            return ()
        timestamp = text_in(line.get("timestamp"))
        entries: list[Entry] = []
        for count, body in enumerate(bodies, 1):
            entry: Entry = {"type": body["type"], "id": number_id(own_id, count)}
            if "uuid" in line:
                entry["parentId"] = entries[-1]["id"] if entries else parent
            if timestamp:
                entry["timestamp"] = timestamp
            if body["type"] == "compaction":
                entry["firstKeptEntryId"] = entry["id"]
            entries.append(entry | body)
        return tuple(entries)

    def _copied_parent(self, parent: object) -> str | None:
        """The entry that stands for a parent: itself, or the nearest before it that was copied."""
        found = text_in(parent)
        for _ in range(len(self._skipped) + 1):
            if found is None or found not in self._skipped:
                break
            found = self._skipped[found]
        return found

    def _bodies(self, line: Entry) -> list[Entry]:
        kind = line.get("type")
        message = line.get("message")
        if kind == "user" and isinstance(message, dict):
            return _user(line, message.get("content"))
        if kind == "assistant" and isinstance(message, dict):
            return self._assistant(line, message)
        if kind == "attachment":
            return _queued_messages(line.get("attachment"))
        if kind == "summary" and isinstance(line.get("summary"), str):
            data = {"summary": line["summary"], "leafUuid": line.get("leafUuid")}
            return [{"type": "custom", "customType": _SUMMARY, "data": data}]
        name = line.get("customTitle", line.get("aiTitle"))
        if kind in ("custom-title", "ai-title") and isinstance(name, str) and name:
            return [{"type": "session_info", "name": name}]
        return []

    def _assistant(self, line: Entry, message: Entry) -> list[Entry]:
        content = blocks_of(message.get("content"))
        if not content or line.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            return []
        answer: Entry = {"role": "assistant", "content": content, "provider": "anthropic"}
        if text_in(message.get("model")):
            answer["model"] = message["model"]
        if message.get("id") is None or message["id"] != self._answer:
            answer |= _usage(message.get("usage"))
        self._answer = message.get("id")
        if text_in(message.get("stop_reason")):
            answer["stopReason"] = message["stop_reason"]
        return [{"type": "message", "message": answer}]


def _user(line: Entry, content: object) -> list[Entry]:
    if line.get("isCompactSummary") is True:
        return [{"type": "compaction", "summary": words_of(content), "tokensBefore": 0}]
    bodies: list[Entry] = []
    rest: list[object] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            answer = tool_result(
                block.get("tool_use_id"), block.get("content"), is_error=block.get("is_error")
            )
            bodies.append({"type": "message", "message": answer})
        else:
            rest.append(block)
    spoken = blocks_of(rest)
    if spoken:
        bodies.append(_spoken(line, spoken))
    return bodies


def _spoken(line: Entry, content: list[Entry]) -> Entry:
    """What stands in the user's name: theirs, a command of theirs, or the program's."""
    if line.get("isMeta") is True:
        return _not_by_the_user(_META, content)
    if line.get("isSidechain") is True:
        return _not_by_the_user(_TASK, content)
    text = words_of(content).lstrip()
    if text.startswith(_NOT_THE_USER):
        return _not_by_the_user(_META, content)
    command = _COMMAND.search(text) if text.startswith("<command-") else None
    if command:
        arguments = _ARGUMENTS.search(text)
        said = f"{command['name']} {arguments['text'] if arguments else ''}".strip()
        content = [text_block(said)]
    return {"type": "message", "message": {"role": "user", "content": content}}


def _not_by_the_user(kind: str, content: list[Entry]) -> Entry:
    return {"type": "custom_message", "customType": kind, "content": content, "display": False}


def _queued_messages(attachment: object) -> list[Entry]:
    """What the user typed while the model was at work."""
    if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
        return []
    content = blocks_of(attachment.get("prompt"))
    if not content or words_of(content).lstrip().startswith(_NOT_THE_USER):
        return []
    return [{"type": "message", "message": {"role": "user", "content": content}}]


def _usage(usage: object) -> Entry:
    if not isinstance(usage, dict):
        return {}
    names = {
        "input": "input_tokens",
        "output": "output_tokens",
        "cacheRead": "cache_read_input_tokens",
        "cacheWrite": "cache_creation_input_tokens",
    }
    counted = {ours: usage[theirs] for ours, theirs in names.items() if isinstance(usage.get(theirs), int)}
    return {"usage": counted} if counted else {}
