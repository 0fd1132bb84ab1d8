"""ChatGPT's export: a conversation is a tree of nodes, of which the current branch is what a person sees."""

from __future__ import annotations

from plainmind.sessions.entries import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
        names.sort(key=lambda name: (name in shown, _created(nodes[name])))
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


def _created(node: Entry) -> float:
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
    content = _content(message.get("content"))
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


def _content(content: object) -> list[Entry]:
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
