"""Conversations with Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, and `.json` before that."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.files.system import read_file
from plainmind.guests.importers.originals import JsonlConversation, ListedConversation, read_document
from plainmind.guests.importers.protocol import (
    About,
    Conversation,
    NothingToTake,
    Original,
    ReadPiece,
    ReadPosition,
    call_block,
    make_id,
    text_block,
    thinking_block,
    tool_result,
)
from plainmind.sessions.entries import Entry

_FILE = pattern(r"session-.+\.jsonl?")
# What hooks put before and behind a prompt; what they recalled is taken out of it anyway.
_OF_HOOKS = pattern(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
# What the program tells the model in the user's name.
_NOT_THE_USER = ("<session_context>", "<environment_context>", "<state_snapshot>", "System: ")
_CONTEXT = "gemini.context"
_ROOT = ".project_root"
_MOST_ROOT_BYTES = 10_000


class Gemini:
    """Reads the sessions of Gemini CLI."""

    program = "gemini"
    looks_for = "`<project>/chats/session-*.jsonl`, as in ~/.gemini/tmp"

    def folders(self, path: str) -> list[str]:
        """Conversations lie among what else a project has for a while."""
        below = os.path.join(path, "tmp")
        return [below] if os.path.isdir(below) else [path]

    def original(self, path: str, given: str) -> Original | None:
        """Sessions, by their names; a file that was given itself may have any name."""
        return Original(path) if path == given or _FILE.fullmatch(os.path.basename(path)) else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A file is a conversation: lines that are added to, or one document in older ones."""
        path = original.path
        if path.endswith(".json"):
            document = read_document(path)
            messages = document.get("messages") if isinstance(document, dict) else None
            if not isinstance(document, dict) or not isinstance(messages, list):
                raise NothingToTake("it has no `messages`")
            yield ListedConversation(path, _about(path, document), messages, translate)
            return
        records = list(JsonlConversation(path, About(""), lambda: _as_it_is).pieces(ReadPosition()))
        head: Entry = {}
        for piece in records:
            for found in piece.entries:
                changes = found.get("$set")
                head |= changes if isinstance(changes, dict) else {} if "id" in found else found
        yield RecordedConversation(_about(path, head), tuple(records))


def _as_it_is(found: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:  # noqa: ARG001
    return (found,)


def _about(path: str, head: Entry) -> About:
    session = head.get("sessionId")
    name = os.path.basename(path).partition(".json")[0]
    root = _project_of(path)
    header = {"timestamp": head.get("startTime"), "cwd": root}
    fields: Entry = {"cwd": root} if root else {}
    summary = head.get("summary")
    if isinstance(summary, str) and summary:
        fields["displayName"] = summary
    return About(
        session if isinstance(session, str) and session else name,
        {key: found for key, found in header.items() if isinstance(found, str) and found},
        fields,
    )


def _project_of(path: str) -> str | None:
    """The folder that the agent worked in: a file beside the conversations says it."""
    beside = os.path.join(os.path.dirname(os.path.dirname(path)), _ROOT)
    try:
        return read_file(beside, most=_MOST_ROOT_BYTES).decode("utf-8", "replace").strip() or None
    except OSError:
        return None  # the conversation is whole without it


@value
class RecordedConversation:
    """A conversation as a log: a message that is told again, with what its tools answered, is still one message.

    What was taken back later was said, and is kept.
    """

    about: About
    records: tuple[ReadPiece, ...]

    def still_has(self, place: ReadPosition) -> bool:
        """Only of the beginning one can be sure: what was said may be told again."""
        return place == ReadPosition()

    def pieces(self, after: ReadPosition) -> Iterator[ReadPiece]:  # noqa: ARG002 (always the beginning)
        """Fold the log into messages, then translate them."""
        messages: dict[str, Entry] = {}
        lines: dict[str, int] = {}
        for piece in self.records:
            if piece.damage is not None:
                yield ReadPiece(piece.number, ReadPosition(), damage=piece.damage)
            for found in piece.entries:
                changes = found.get("$set")
                told = changes.get("messages") if isinstance(changes, dict) else [found]
                for message in told if isinstance(told, list) else ():
                    if isinstance(message, dict) and "type" in message:
                        own_id = message.get("id")
                        key = own_id if isinstance(own_id, str) and own_id else f"{piece.number}"
                        messages[key] = messages.get(key, {}) | message
                        lines.setdefault(key, piece.number)
        for key, message in messages.items():
            yield ReadPiece(lines[key], ReadPosition(), translate(message, key.encode(), lines[key]))


def translate(message: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
    """Give the entries that a message becomes: what was said, calls of tools, and what each answered; total."""
    own_id = message.get("id")
    own_id = own_id if isinstance(own_id, str) and own_id else make_id(number, raw)
    when = message.get("timestamp")
    entries: list[Entry] = []
    for name, body in _bodies(message):
        entry: Entry = {"type": body["type"], "id": f"{own_id}{name}"}
        if isinstance(when, str) and when:
            entry["timestamp"] = when
        entries.append(entry | body)
    return tuple(entries)


def _bodies(message: Entry) -> Iterator[tuple[str, Entry]]:
    kind = message.get("type")
    text = _words(message.get("content"))
    if kind == "user" and text:
        if text.startswith(_NOT_THE_USER):
            content = [text_block(text)]
            yield "", {"type": "custom_message", "customType": _CONTEXT, "content": content, "display": False}
        else:
            yield "", {"type": "message", "message": {"role": "user", "content": [text_block(text)]}}
    if kind != "gemini":
        return
    thoughts = message.get("thoughts")
    thought = "\n".join(_thoughts(thoughts if isinstance(thoughts, list) else []))
    if thought:
        yield ".thoughts", _by_the_model([thinking_block(thought)], message)
    if text:
        yield "", _by_the_model([text_block(text)], message)
    listed = message.get("toolCalls")
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    for count, call in enumerate(calls, 1):
        block = call_block(call.get("id"), call.get("name"), call.get("args"))
        yield f".call{count}", _by_the_model([block], message)
        answer = _answer(call.get("result"))
        if answer:
            failed = call.get("status") == "error"
            result = tool_result(call.get("id"), answer, name=call.get("name"), is_error=failed)
            yield f".answer{count}", {"type": "message", "message": result}


def _by_the_model(content: list[Entry], message: Entry) -> Entry:
    answer: Entry = {"role": "assistant", "content": content, "provider": "google"}
    if isinstance(message.get("model"), str):
        answer["model"] = message["model"]
    return {"type": "message", "message": answer}


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


def _answer(result: object) -> str:
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
