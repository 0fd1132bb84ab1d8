"""Who may see a file, told from where it lies or from whose conversation it is; unknown means: its owner alone."""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.model import PRIVATE, SHARED

SHARED_FOLDER = "memory/shared-with"
EVERYONE = "everyone"
# File systems stop at 255 bytes.
MAX_NAME_CHARS = 200

_KINDS = frozenset({"group", "person"})
_MANY = frozenset({"group", "channel"})
_ONE = frozenset({"direct", "dm"})
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@+.-")
# In `agent:main:telegram:group:-100123:topic:7` a topic is a part of its group, and is seen by all of it. Ids may hold
# colons themselves (`!room:example.org`), so that only these words end one.
_PARTS_OF_A_CHAT = frozenset({"topic", "thread"})


def group_scope(group: str) -> str:
    """The scope of what a group or channel said and may see."""
    return f"group:{group}"


def person_scope(person: str) -> str:
    """The scope of what another person than the owner said and may see."""
    return f"person:{person}"


def folder_of_scope(scope: str) -> str | None:
    """The folder that holds a scope's notes, as cited; None for private ones, which have no folder of their own.

    `group:-100/7` lies in `memory/shared-with/group--100%2F7`. None also when an id is too long for a name.
    """
    if scope == SHARED:
        return f"{SHARED_FOLDER}/{EVERYONE}"
    kind, colon, named = scope.partition(":")
    if kind not in _KINDS or not colon or not named:
        return None
    name = f"{kind}-{_escaped(named)}"
    return f"{SHARED_FOLDER}/{name}" if len(name) <= MAX_NAME_CHARS else None


def scope_of_path(path: str) -> str:
    """The scope of a memory file by its cited path: private, unless it lies in a folder that names others."""
    if not path.startswith(SHARED_FOLDER + "/"):
        return PRIVATE
    name, slash, _ = path.removeprefix(SHARED_FOLDER + "/").partition("/")
    if not slash:
        return PRIVATE
    if name == EVERYONE:
        return SHARED
    kind, dash, escaped = name.partition("-")
    if kind not in _KINDS or not dash or not escaped:
        return PRIVATE
    scope = f"{kind}:{_unescaped(escaped)}"
    # Another spelling of the same id would be a second folder that nobody writes to: it is for nobody else either.
    return scope if folder_of_scope(scope) == f"{SHARED_FOLDER}/{name}" else PRIVATE


def group_in_key(session_key: str) -> str | None:
    """The group or channel that a session key names."""
    return _id_after(_MANY, session_key)


def hints_at_a_group(session_key: str) -> bool:
    """Whether a key has such a word anywhere: more than one who sees everything may risk."""
    return not _MANY.isdisjoint(_parts(session_key))


def person_in_key(session_key: str) -> str | None:
    """The person that the key of a direct chat names."""
    return _id_after(_ONE, session_key)


def scope_of_session(session_key: str, entry: Mapping[str, object]) -> str:
    """The scope of a conversation, by its key and its entry in the registry.

    A group whose id nobody knows is no group that could ask for it: its conversation stays private.
    """
    group = entry.get("groupId") or group_in_key(session_key)
    if group:
        return group_scope(group) if isinstance(group, str) else PRIVATE
    if entry.get("chatType") not in (None, "", "direct"):  # whatever it is: a list would not go into a set
        return PRIVATE
    person = person_in_key(session_key)
    return person_scope(person) if person else PRIVATE


def _parts(session_key: str) -> list[str]:
    parts = session_key.split(":")
    return parts[2:] if parts[0] == "agent" else parts  # an agent may be called anything, `group` too


def _id_after(words: frozenset[str], session_key: str) -> str | None:
    parts = _parts(session_key)
    # The first such word says what kind of chat it is; a later one is a part of an id.
    kind = next((place for place, part in enumerate(parts) if part in _MANY | _ONE), None)
    if kind is None or parts[kind] not in words:
        return None
    start = kind + 1
    ends = (place for place, part in enumerate(parts) if place > start and part in _PARTS_OF_A_CHAT)
    return ":".join(parts[start : next(ends, len(parts))]) or None


def _escaped(name: str) -> str:
    """Write an id so that it is a safe file name, and another name than that of any other id."""
    raw = name.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in raw)


def _unescaped(name: str) -> str:
    first, *others = name.encode("utf-8", "surrogatepass").split(b"%")
    try:
        raw = first + b"".join(bytes([int(piece[:2], 16)]) + piece[2:] for piece in others)
        return raw.decode("utf-8", "surrogatepass")
    except ValueError:
        return ""  # nobody wrote it like that
