"""Chats as many programs export them: lists of `{role, content}`, a document or a line each, and ChatGPT's trees."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from plainmind.base.errors import PlainmindError
from plainmind.base.model import sha256_text
from plainmind.guests.importers.originals import (
    EXPORTED_BY,
    MOST_DOCUMENT_BYTES,
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
    decode_document,
    first_entries,
    lines_as_they_are,
    listed_conversation,
    make_id,
    number_id,
    read_document,
    spoken,
    tool_result,
    unspoken,
)
from plainmind.sessions.entries import Entry, iso, time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_ROLES = {
    "user": "user", "human": "user", "person": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "bot": "assistant", "gpt": "assistant",
    "tool": "tool", "function": "tool", "system": "system", "developer": "system",
}  # fmt: skip
_LISTS = ("messages", "chat_messages", "conversation", "conversations")
_TIMES = ("timestamp", "create_time", "created_at", "createdAt", "date", "ts")
_IDS = ("id", "uuid", "message_id", "messageId")
_SYSTEM = "messages.system"
_NO_ROLE = "no `role`, `sender` or `author`"
# What lies in the folder of an export besides the conversations.
_BESIDE_AN_EXPORT = frozenset(
    {
        "user.json", "users.json", "user_settings.json", "message_feedback.json", "model_comparisons.json",
        "shared_conversations.json", "projects.json", "memories.json", "group_chats.json", "shopping.json",
        "sora.json", "export_manifest.json",
    }
)  # fmt: skip


class Messages:
    """Reads exported chats: ChatGPT's `conversations.json`, Claude's, and lists in the manner of OpenAI."""

    program = "messages"
    looks_for = "`*.json`, `*.jsonl` and `*.zip` files that hold messages"

    def folders(self, path: str) -> list[str]:
        """Wherever they were put."""
        return [path]

    def original(self, path: str, given: str) -> Original | None:
        """JSON, JSONL and archives, by their names; what else an export consists of is no conversation."""
        if path == given:
            return Original(path)
        is_ours = (
            path.endswith((".json", ".jsonl", ".zip")) and os.path.basename(path) not in _BESIDE_AN_EXPORT
        )
        return Original(path) if is_ours else None

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """A document may hold many; a JSONL file is one, or one a line. Raises NothingToTake when there is none."""
        path = original.path
        stem = _stem(path)
        if path.endswith(".zip"):
            yield from _in_archive(path)
        elif not path.endswith(".jsonl"):
            document = read_document(path)
            yield from _in_document(stem, document)
            if (reason := _reason_for_nothing(document)) is not None:
                raise NothingToTake(reason)
        elif any(_messages_of(entry) is not None for entry in first_entries(path, 8)):
            yield from _one_a_line(path, stem)
        else:
            yield JsonlConversation(path, About(stem), lambda: translate_message)


def _in_archive(path: str) -> Iterator[Conversation]:
    """The conversations in the archive that ChatGPT or Claude sends."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            pages = [info for info in archive.infolist() if _is_export(info.filename)]
            for info in pages:
                if info.file_size > MOST_DOCUMENT_BYTES:
                    raise PlainmindError(f"{info.filename} is too large", hint="unpack it and split it")
                with archive.open(info) as file:
                    document = decode_document(file.read(MOST_DOCUMENT_BYTES), f"{path}:{info.filename}")
                yield from _in_document(f"{_stem(path)}-{_stem(info.filename)}", document)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise PlainmindError(f"{path} cannot be unpacked: {error}", hint="unpack it by hand") from error
    if not pages:
        raise NothingToTake("it is an archive without a `conversations.json`")


def _is_export(name: str) -> bool:
    name = os.path.basename(name)
    return name.startswith("conversations") and name.endswith(".json")


def _reason_for_nothing(document: object) -> str | None:
    """What a document is, when nothing in it can be taken for something that was said."""
    if isinstance(document, dict):
        inner = document.get("conversations")
        if isinstance(inner, list) and any(map(_is_conversation, inner)):
            return _reason_of_list(inner)
        if _is_conversation(document):
            return _reason_of_list([document])
        names = ", ".join(f"`{name}`" for name in list(document)[:4])
        return f"it is an object with {names}, and no list of messages" if names else "it is an empty object"
    if isinstance(document, list):
        return _reason_of_list(document)
    return f"it is {'a text' if isinstance(document, str) else 'a number' if document is not None else 'nothing'}"


def _reason_of_list(listed: list[object]) -> str | None:
    if not listed:
        return "it is an empty list"
    talks = [found for found in listed if isinstance(found, dict) and _is_conversation(found)]
    items = [item for talk in talks for item in _messages_of(talk) or ()] if talks else listed
    if any(isinstance(item, dict) and translate_message(item, b"", 1) for item in items):
        return None
    if not items:
        return _of("conversation", len(talks), "has no messages", "has messages")
    if not any(isinstance(item, dict) and _role({**item, **_inner(item)}) for item in items):
        return _of("item", len(items), f"does not say who speaks: {_NO_ROLE}", f"says who speaks: {_NO_ROLE}")
    return _of("item", len(items), "says nothing", "says anything")


def _of(what: str, count: int, verb: str, negated: str) -> str:
    return f"its only {what} {verb}" if count == 1 else f"none of its {count:,} {what}s {negated}"


def _inner(item: Entry) -> Entry:
    message = item.get("message")
    return message if isinstance(message, dict) else {}


def _stem(path: str) -> str:
    """Name a file that names no conversation: by its own name and its whole path."""
    name = os.path.basename(path).partition(".json")[0]
    return f"{name}-{sha256_text(os.path.realpath(path))[:8]}"


def _in_document(stem: str, document: object) -> Iterator[Conversation]:
    if isinstance(document, dict):
        inner = document.get("conversations")
        if isinstance(inner, list) and any(_is_conversation(item) for item in inner):
            document = inner
        else:
            yield from _conversation(stem, document)
            return
    items = document if isinstance(document, list) else []
    if any(_is_conversation(item) for item in items):
        for position, item in enumerate(items, 1):
            yield from _conversation(f"{stem}-{position}", item)
    elif items:
        yield listed_conversation(About(stem), items, translate_message)


def _one_a_line(path: str, stem: str) -> Iterator[Conversation]:
    for piece in lines_as_they_are(path):
        for found in piece.entries:
            yield from _conversation(f"{stem}-{piece.number}", found)
        if piece.damage is not None:
            damaged = ReadPiece(piece.number, ReadPosition(), damage=piece.damage)
            yield WholeConversation(About(f"{stem}-{piece.number}"), partial(iter, [damaged]))


def _is_conversation(found: object) -> bool:
    return isinstance(found, dict) and _messages_of(found) is not None


def _conversation(fallback: str, found: object) -> Iterator[Conversation]:
    messages = _messages_of(found) if isinstance(found, dict) else None
    if messages is None or not isinstance(found, dict):
        return
    title = found.get("title", found.get("name"))
    header = _time(found)
    fields: Entry = {"displayName": title} if isinstance(title, str) and title else {}
    exporter = (
        "ChatGPT" if isinstance(found.get("mapping"), dict) else "Claude" if "chat_messages" in found else ""
    )
    fields |= {EXPORTED_BY: exporter} if exporter else {}
    name = next((found[key] for key in ("conversation_id", *_IDS) if _is_name(found.get(key))), fallback)
    yield listed_conversation(About(str(name), header, fields), messages, translate_message)


def _messages_of(found: Entry) -> list[object] | None:
    mapping = found.get("mapping")
    if isinstance(mapping, dict):
        return messages_of_mapping(mapping, found.get("current_node"))
    for name in _LISTS:
        listed = found.get(name)
        if isinstance(listed, list):
            return listed
    return None


def translate_message(found: Entry, raw: bytes, number: int) -> tuple[Entry, ...]:
    """Give the entries that a message becomes; total, whatever it says."""
    inner = found.get("message")
    if isinstance(inner, dict) and "role" in inner and "role" not in found:
        found = inner | found
    given = next((found[key] for key in _IDS if _is_name(found.get(key))), None)
    own_id = str(given) if given is not None else make_id(number, raw)
    entries: list[Entry] = []
    for count, body in enumerate(_bodies(found), 1):
        entry: Entry = {"type": body["type"], "id": number_id(own_id, count), **_time(found)}
        if "parentId" in found:
            entry["parentId"] = entries[-1]["id"] if entries else found["parentId"]
        entries.append(entry | body)
    return tuple(entries)


def _bodies(found: Entry) -> list[Entry]:
    content = _content(found)
    role = _role(found)
    if role == "tool":
        call = found.get("tool_call_id", found.get("name"))
        return [tool_result(call, content, name=found.get("name"))]
    blocks = [*blocks_of(content), *_calls(found)]
    if role is None or not blocks:
        return []
    if role == "system":
        return [unspoken(_SYSTEM, blocks)]
    return [spoken(role, blocks, model=found.get("model"))]


def _role(found: Entry) -> str | None:
    author = found.get("author")
    named = author.get("role") if isinstance(author, dict) else author
    for given in (found.get("role"), found.get("sender"), found.get("from"), named):
        if isinstance(given, str) and given.casefold() in _ROLES:
            return _ROLES[given.casefold()]
    return None


def _content(found: Entry) -> object:
    for name in ("content", "text", "value", "message"):
        given = found.get(name)
        if isinstance(given, str | list) and given:
            return given
    parts = found.get("content")
    return parts.get("parts") if isinstance(parts, dict) else None


def _calls(found: Entry) -> list[Entry]:
    calls = found.get("tool_calls")
    listed = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    if isinstance(found.get("function_call"), dict):
        listed.append({"function": found["function_call"]})
    blocks = []
    for call in listed:
        function = call.get("function")
        called = function if isinstance(function, dict) else call
        blocks.append(call_block(call.get("id"), called.get("name"), called.get("arguments")))
    return blocks


def _time(found: Entry) -> Entry:
    """When it was said, if that is known: nothing is dated by the day of its import."""
    for name in _TIMES:
        moment = time_of({"timestamp": found.get(name)})
        if moment is not None:
            return {"timestamp": iso(moment / 1000)}
    return {}


def _is_name(found: object) -> bool:
    return (isinstance(found, str) and bool(found)) or (
        isinstance(found, int) and not isinstance(found, bool)
    )


# --- ChatGPT's export: a tree of nodes, of which the current branch is what a person sees ---

_LATE = float("inf")
_NOT_SAID = frozenset({"user_editable_context", "model_editable_context", "reasoning_recap"})


def messages_of_mapping(mapping: dict[str, Any], current: object) -> list[object]:
    """List the messages, parents before children and the current branch last; total, whatever the mapping says."""
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    shown = _branch(nodes, current)
    children: dict[str | None, list[str]] = {}
    for name, node in nodes.items():
        parent = node.get("parent")
        children.setdefault(parent if isinstance(parent, str) and parent in nodes else None, []).append(name)
    for names in children.values():
        names.sort(key=lambda name: (name in shown, _creation_time(nodes[name])))
    listed: list[object] = []
    waiting: list[tuple[str, str | None]] = [(name, None) for name in reversed(children.get(None, []))]
    done: set[str] = set()
    while waiting:
        name, parent = waiting.pop()
        if name in done:
            continue
        done.add(name)
        message = _message(name, nodes[name], parent)
        if message is not None:
            listed.append(message)
            parent = message["id"]
        waiting += [(child, parent) for child in reversed(children.get(name, []))]
    return listed


def _branch(nodes: dict[str, Entry], current: object) -> set[str]:
    shown: set[str] = set()
    name = current
    while isinstance(name, str) and name in nodes and name not in shown:
        shown.add(name)
        name = nodes[name].get("parent")
    return shown


def _creation_time(node: Entry) -> float:
    message = node.get("message")
    moment = message.get("create_time") if isinstance(message, dict) else None
    return float(moment) if isinstance(moment, int | float) else _LATE


def _message(name: str, node: Entry, parent: str | None) -> Entry | None:
    """One node as a message of role and content; None for what no person has written or read."""
    message = node.get("message")
    if not isinstance(message, dict) or _is_hidden(message):
        return None
    author = message.get("author")
    role = author.get("role") if isinstance(author, dict) else None
    content = _content_of_node(message.get("content"))
    if not isinstance(role, str) or not content:
        return None
    found: Entry = {"id": name, "parentId": parent, "role": role, "content": content}
    if isinstance(message.get("create_time"), int | float):
        found["create_time"] = message["create_time"]
    metadata = message.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("model_slug"), str):
        found["model"] = metadata["model_slug"]
    if role == "tool" and isinstance(author, dict):
        found["name"] = author.get("name")
    return found


def _is_hidden(message: Entry) -> bool:
    metadata = message.get("metadata")
    return isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True


def _content_of_node(content: object) -> list[Entry]:
    if not isinstance(content, dict):
        return []
    kind = content.get("content_type")
    if kind == "thoughts":
        thoughts = content.get("thoughts")
        texts = (
            [thought.get("content") for thought in thoughts if isinstance(thought, dict)]
            if isinstance(thoughts, list)
            else []
        )
        return [{"type": "thinking", "thinking": text} for text in texts if isinstance(text, str) and text]
    if isinstance(kind, str) and kind in _NOT_SAID:
        return []
    parts = content.get("parts")
    listed = parts if isinstance(parts, list) else [content.get("text")]
    return [block for block in map(_block, listed) if block is not None]


def _block(part: object) -> Entry | None:
    if isinstance(part, str):
        return {"type": "text", "text": part} if part else None
    if not isinstance(part, dict):
        return None
    text = part.get("text")  # of what was said aloud
    return {"type": "text", "text": text} if isinstance(text, str) and text else {"type": "image"}
