"""Conversations with agents of the command line: Codex, Copilot CLI, Gemini CLI."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial

from plainmind.base.lazy import pattern
from plainmind.files.system import read_file
from plainmind.guests.importers.originals import (
    About,
    Conversation,
    JsonlConversation,
    NothingToTake,
    Original,
    ReadPiece,
    ReadPosition,
    WholeConversation,
    blocks_of,
    call_block,
    first_entries,
    folders_below,
    lines_as_they_are,
    listed_conversation,
    make_id,
    read_document,
    spoken,
    text_block,
    text_in,
    texts_in,
    thinking_block,
    tool_result,
    unspoken,
    with_name,
    words_of,
)
from plainmind.sessions.entries import Entry

# --- Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`, and the two shapes before that ---


_CODEX_FILE = pattern(r"rollout-.+\.jsonl?(?:\.zst)?")
_ID = pattern(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
# What the program tells the model in the user's name.
_CODEX_TELLS = (
    "<environment_context>", "<user_instructions>", "<permissions instructions>", "<collaboration_mode>",
    "<turn_aborted>", "<subagent_notification>", "<user_shell_command>", "<skill>", "<skills_instructions>",
    "<apps_instructions>", "<INSTRUCTIONS>", "# AGENTS.md instructions",
)  # fmt: skip
_CODEX_CONTEXT = "codex.context"
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_ANSWERS = frozenset({"function_call_output", "custom_tool_call_output"})


class Codex:
    """Reads the rollouts of Codex."""

    program = "codex"
    looks_for = "`rollout-*.jsonl`, as in ~/.codex/sessions"

    def folders(self, path: str) -> list[str]:
        """In `~/.codex` there are two folders of conversations, and much else."""
        return folders_below(path, "archived_sessions", "sessions")

    def original(self, path: str, given: str) -> Original | None:
        """Rollouts, by their names; a file that was given itself may have any name."""
        return Original(path) if path == given or _CODEX_FILE.fullmatch(os.path.basename(path)) else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A file is a conversation; the oldest ones are one document."""
        path = original.path
        if path.endswith(".json"):
            yield from _from_document(path)
            return
        yield JsonlConversation(path, _about_codex(path, first_entries(path, 8)), CodexTranslation)


def _about_codex(path: str, entries: list[Entry]) -> About:
    """Read the first line: its `payload` today, itself in older files."""
    meta: Entry = next((_payload(entry) for entry in entries if entry.get("type") == "session_meta"), {})
    if not meta and entries and "type" not in entries[0]:
        meta = entries[0]
    name = os.path.basename(path)
    in_name = _ID.findall(name)
    session_id = text_in(meta.get("id")) or (in_name[-1] if in_name else name.partition(".json")[0])
    git = meta.get("git")
    branch = git.get("branch") if isinstance(git, dict) else None
    header = {"timestamp": meta.get("timestamp"), "cwd": meta.get("cwd")}
    return About(session_id, texts_in(header), texts_in({"cwd": meta.get("cwd"), "gitBranch": branch}))


def _from_document(path: str) -> Iterator[Conversation]:
    document = read_document(path)
    items = document.get("items") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(items, list):
        return
    session = document.get("session")
    about = _about_codex(path, [session] if isinstance(session, dict) else [])
    yield listed_conversation(about, items, CodexTranslation())


class CodexTranslation:
    """Translates the lines of one rollout, in their order; total, whatever a line says."""

    def __init__(self) -> None:
        self._model: object = None

    def __call__(self, line: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
        """Give the entry that a line becomes, or none: events repeat what the items of the model say."""
        body = self._body(line)
        return () if body is None else (with_name(body, make_id(number, raw), line.get("timestamp")),)

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
        return _by_codex([thinking_block(thought)]) if thought else None
    if isinstance(kind, str) and kind in _CALLS:
        name = item.get("name") or kind.removesuffix("_call")
        arguments = item.get("arguments", item.get("input", item.get("action")))
        return _by_codex([call_block(item.get("call_id", item.get("id")), name, arguments)])
    if isinstance(kind, str) and kind in _ANSWERS:
        output = item.get("output")
        if isinstance(output, dict) and "content" in output:
            output = output["content"]
        return tool_result(item.get("call_id"), output)
    return None


def _message(item: Entry) -> Entry | None:
    content = blocks_of(item.get("content"))
    if not content:
        return None
    role = item.get("role")
    if role == "assistant":
        return _by_codex(content)
    if role == "user" and not words_of(content).lstrip().startswith(_CODEX_TELLS):
        return spoken("user", content)
    return unspoken(_CODEX_CONTEXT, content)


def _by_codex(content: list[Entry]) -> Entry:
    return spoken("assistant", content, provider="openai")


def _compaction(payload: Entry) -> Entry | None:
    summary = text_in(payload.get("message"))
    return {"type": "compaction", "summary": summary, "tokensBefore": 0} if summary else None


def _payload(line: Entry) -> Entry:
    found = line.get("payload")
    return found if isinstance(found, dict) else {}


# --- Copilot CLI: `~/.copilot/session-state/<session>/events.jsonl` ---


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
        return folders_below(path, "session-state", "history-session-state")

    def original(self, path: str, given: str) -> Original | None:
        """Lists of events, by their names; a file that was given itself may have any name."""
        name = os.path.basename(path)
        return Original(path) if path == given or name == _EVENTS or _OLDER.fullmatch(name) else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A file is a conversation."""
        path = original.path
        yield JsonlConversation(path, _about_copilot(path, first_entries(path, 8)), lambda: translate_copilot)


def _about_copilot(path: str, events: list[Entry]) -> About:
    start = next((_data(event) for event in events if event.get("type") == "session.start"), {})
    name = os.path.basename(path)
    in_path = os.path.basename(os.path.dirname(path)) if name == _EVENTS else name.partition(".json")[0]
    context = start.get("context")
    where = context if isinstance(context, dict) else {}
    header = {"timestamp": start.get("startTime"), "cwd": where.get("cwd")}
    fields = {"cwd": where.get("cwd"), "gitBranch": where.get("branch")}
    return About(text_in(start.get("sessionId")) or in_path, texts_in(header), texts_in(fields))


def translate_copilot(event: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
    """Give the entry that an event becomes, or none; total, whatever it says."""
    body = _body(event.get("type"), _data(event))
    own_id = text_in(event.get("id")) or make_id(number, raw)
    return () if body is None else (with_name(body, own_id, event.get("timestamp")),)


def _body(kind: object, data: Entry) -> Entry | None:
    if kind == "user.message":
        # As it was typed; `transformedContent` has what hooks put to it.
        content = blocks_of(data.get("content"))
        return spoken("user", content) if content else None
    if kind == "assistant.message":
        return _answer_of_copilot(data)
    if kind == "tool.execution_complete":
        return _result(data)
    summary = text_in(data.get("summaryContent"))
    if kind == "session.compaction_complete" and summary:
        return {"type": "compaction", "summary": summary, "tokensBefore": 0}
    title = text_in(data.get("title"))
    if kind == "session.title_changed" and title:
        return {"type": "session_info", "name": title}
    return None


def _answer_of_copilot(data: Entry) -> Entry | None:
    thought = text_in(data.get("reasoningText"))
    content = [thinking_block(thought)] if thought else []
    content += blocks_of(data.get("content"))
    calls = data.get("toolRequests")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            content.append(call_block(call.get("toolCallId"), call.get("name"), call.get("arguments")))
    if not content:
        return None
    return spoken("assistant", content, provider="github-copilot", model=data.get("model"))


def _result(data: Entry) -> Entry:
    result, error = data.get("result"), data.get("error")
    given = result.get("content") if isinstance(result, dict) else result
    if given is None and isinstance(error, dict):
        given = error.get("message")
    failed = data.get("success") is False
    return tool_result(data.get("toolCallId"), given, name=data.get("toolName"), is_error=failed)


def _data(event: Entry) -> Entry:
    found = event.get("data")
    return found if isinstance(found, dict) else {}


# --- Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, and `.json` before that ---


_GEMINI_FILE = pattern(r"session-.+\.jsonl?")
# What hooks put before and behind a prompt; what they recalled is taken out of it anyway.
_OF_HOOKS = pattern(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
# What the program tells the model in the user's name.
_GEMINI_TELLS = ("<session_context>", "<environment_context>", "<state_snapshot>", "System: ")
_GEMINI_CONTEXT = "gemini.context"
_ROOT = ".project_root"
_MOST_ROOT_BYTES = 10_000


class Gemini:
    """Reads the sessions of Gemini CLI."""

    program = "gemini"
    looks_for = "`<project>/chats/session-*.jsonl`, as in ~/.gemini/tmp"

    def folders(self, path: str) -> list[str]:
        """Conversations lie among what else a project has for a while."""
        return folders_below(path, "tmp")

    def original(self, path: str, given: str) -> Original | None:
        """Sessions, by their names; a file that was given itself may have any name."""
        return Original(path) if path == given or _GEMINI_FILE.fullmatch(os.path.basename(path)) else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A file is a conversation: lines that are added to, or one document in older ones."""
        path = original.path
        if path.endswith(".json"):
            document = read_document(path)
            messages = document.get("messages") if isinstance(document, dict) else None
            if not isinstance(document, dict) or not isinstance(messages, list):
                raise NothingToTake("it has no `messages`")
            yield listed_conversation(_about_gemini(path, document), messages, translate_gemini)
            return
        records = list(lines_as_they_are(path))
        head: Entry = {}
        for piece in records:
            for found in piece.entries:
                changes = found.get("$set")
                head |= changes if isinstance(changes, dict) else {} if "id" in found else found
        yield WholeConversation(_about_gemini(path, head), partial(_fold, records))


def _about_gemini(path: str, head: Entry) -> About:
    name = os.path.basename(path).partition(".json")[0]
    root = _project_of(path)
    header = {"timestamp": head.get("startTime"), "cwd": root}
    fields = {"cwd": root, "displayName": head.get("summary")}
    return About(text_in(head.get("sessionId")) or name, texts_in(header), texts_in(fields))


def _project_of(path: str) -> str | None:
    """The folder that the agent worked in: a file beside the conversations says it."""
    beside = os.path.join(os.path.dirname(os.path.dirname(path)), _ROOT)
    try:
        return read_file(beside, most=_MOST_ROOT_BYTES).decode("utf-8", "replace").strip() or None
    except OSError:
        return None  # the conversation is whole without it


def _fold(records: Sequence[ReadPiece]) -> Iterator[ReadPiece]:
    """The messages of a log: one that is told again, with what its tools answered, is still one message.

    What was taken back later was said, and is kept.
    """
    messages: dict[str, Entry] = {}
    lines: dict[str, int] = {}
    for piece in records:
        if piece.damage is not None:
            yield ReadPiece(piece.number, ReadPosition(), damage=piece.damage)
        for found in piece.entries:
            changes = found.get("$set")
            told = changes.get("messages") if isinstance(changes, dict) else [found]
            for message in told if isinstance(told, list) else ():
                if isinstance(message, dict) and "type" in message:
                    key = text_in(message.get("id")) or f"{piece.number}"
                    messages[key] = messages.get(key, {}) | message
                    lines.setdefault(key, piece.number)
    for key, message in messages.items():
        yield ReadPiece(lines[key], ReadPosition(), translate_gemini(message, key.encode(), lines[key]))


def translate_gemini(message: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
    """Give the entries that a message becomes: what was said, calls of tools, and what each answered; total."""
    own_id = text_in(message.get("id")) or make_id(number, raw)
    return tuple(
        with_name(body, f"{own_id}{name}", message.get("timestamp")) for name, body in _bodies(message)
    )


def _bodies(message: Entry) -> Iterator[tuple[str, Entry]]:
    kind = message.get("type")
    text = _words(message.get("content"))
    if kind == "user" and text:
        content = [text_block(text)]
        told = text.startswith(_GEMINI_TELLS)
        yield "", unspoken(_GEMINI_CONTEXT, content) if told else spoken("user", content)
    if kind != "gemini":
        return
    thoughts = message.get("thoughts")
    thought = "\n".join(_thoughts(thoughts if isinstance(thoughts, list) else []))
    if thought:
        yield ".thoughts", _by_gemini([thinking_block(thought)], message)
    if text:
        yield "", _by_gemini([text_block(text)], message)
    listed = message.get("toolCalls")
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    for count, call in enumerate(calls, 1):
        block = call_block(call.get("id"), call.get("name"), call.get("args"))
        yield f".call{count}", _by_gemini([block], message)
        answer = _words_of_answer(call.get("result"))
        if answer:
            failed = call.get("status") == "error"
            result = tool_result(call.get("id"), answer, name=call.get("name"), is_error=failed)
            yield f".answer{count}", result


def _by_gemini(content: list[Entry], message: Entry) -> Entry:
    return spoken("assistant", content, provider="google", model=message.get("model"))


def _words(content: object) -> str:
    """The plain text of a message, without what hooks have put around it."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    joined = "\n".join(text for text in texts if isinstance(text, str) and text)
    return (_OF_HOOKS.sub("", joined) if "<hook_context>" in joined else joined).strip()


def _thoughts(thoughts: list[object]) -> Iterator[str]:
    for thought in thoughts:
        if isinstance(thought, dict):
            said = (thought.get("subject"), thought.get("description"))
            yield ": ".join(text for text in said if isinstance(text, str) and text)


def _words_of_answer(result: object) -> str:
    """What a tool answered, in words."""
    texts: list[str] = []
    for part in result if isinstance(result, list) else [result]:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        given = response.get("response") if isinstance(response, dict) else part
        if isinstance(given, dict):
            given = given.get("output", given.get("error", given.get("text")))
        if isinstance(given, str) and given:
            texts.append(given)
    return "\n".join(texts)
