"""Who may see a file, told from where it lies or from whose conversation it is; unknown means: its owner alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plainmind.base.model import PRIVATE, SHARED, SHARED_FOLDER

EVERYONE = "everyone"
# File systems stop at 255 bytes.
MAX_NAME_CHARS = 200

_KINDS = frozenset({"group", "person"})
_MAX_CHANNEL_CHARS = 60
_MANY = frozenset({"group", "channel"})
_ONE = frozenset({"direct", "dm"})
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@+.-")
# In `agent:main:telegram:group:-100123:topic:7` a topic is a part of its group, and is seen by all of it. Ids may hold
# colons themselves (`!room:example.org`), so that only these words end one.
_PARTS_OF_A_CHAT = frozenset({"topic", "thread"})
# What may stand before the channel in a key, and is none.
_NO_CHANNELS = frozenset({"cron", "heartbeat", "hook", "subagent"})


def group_scope(group: str, channel: str = "") -> str:
    """The scope of what a group said and may see: `telegram/group:-100`, or `group:-100` in whatever channel."""
    return f"{_of_channel(channel)}group:{group}"


def person_scope(person: str, channel: str = "") -> str:
    """The scope of what another person than the owner said and may see, in one channel or in whatever one."""
    return f"{_of_channel(channel)}person:{person}"


def folder_of_scope(scope: str) -> str | None:
    """The folder that holds a scope's notes, as cited; None for private ones, which have no folder of their own.

    `telegram/group:-100/7` lies in `memory/shared-with/telegram/group--100%2F7`. None also when an id is too long for a
    name, or when a channel's name is one that means something else there.
    """
    if scope == SHARED:
        return f"{SHARED_FOLDER}/{EVERYONE}"
    head, colon, named = scope.partition(":")
    channel, slash, kind = head.rpartition("/")
    if kind not in _KINDS or not colon or not named or (slash and not _is_channel(channel)):
        return None
    name = f"{kind}-{_escape(named)}"
    return f"{SHARED_FOLDER}/{channel}{slash}{name}" if len(name) <= MAX_NAME_CHARS else None


def scope_of_path(path: str) -> str:
    """The scope of a memory file by its cited path: private, unless it lies in a folder that names others."""
    if not path.startswith(SHARED_FOLDER + "/"):
        return PRIVATE
    first, *below = path.removeprefix(SHARED_FOLDER + "/").split("/")
    if not below:
        return PRIVATE
    if first == EVERYONE:
        return SHARED
    is_channel = len(below) > 1 and not _is_folder_of_audience(first)
    folder, name = (f"{first}/", below[0]) if is_channel else ("", first)
    kind, _, escaped = name.partition("-")
    scope = f"{folder}{kind}:{_unescape(escaped)}"
    # Another spelling of the same id would be a second folder that is never written to: it stays private.
    return scope if folder_of_scope(scope) == f"{SHARED_FOLDER}/{folder}{name}" else PRIVATE


def group_in_key(session_key: str) -> str | None:
    """The group or channel that a session key names."""
    return _id_after(_MANY, session_key)


def hints_at_a_group(session_key: str) -> bool:
    """Whether a key has such a word anywhere: more than one who sees everything may risk."""
    return not _MANY.isdisjoint(_parts(session_key))


def person_in_key(session_key: str) -> str | None:
    """The person that the key of a direct chat names."""
    return _id_after(_ONE, session_key)


def is_key_of_direct_chat(session_key: str) -> bool:
    """Whether a key says that it is of a direct chat with somebody, also when it does not say with whom."""
    parts = _parts(session_key)
    return bool(parts) and parts[_place_of_kind(parts)] in _ONE


def channel_in_key(session_key: str) -> str | None:
    """The channel of the chat that a key names: `telegram` of `agent:main:telegram:work:direct:7`."""
    parts = _parts(session_key)
    kind = _place_of_kind(parts)
    return next((part for part in parts[:kind] if part and part not in _NO_CHANNELS), None)


def scope_of_session(session_key: str, entry: Mapping[str, object]) -> str:
    """The scope of a conversation, by its key and its entry in the registry.

    A group without a known id cannot ask for its conversation: it stays private. A group is in the
    channel that its entry names; a person's chat may move from one to another, and only its key says that it cannot.
    """
    group = entry.get("groupId") or group_in_key(session_key)
    channel = channel_in_key(session_key) or ""
    if group:
        told = entry.get("channel") or ""
        is_known = isinstance(group, str) and isinstance(told, str)
        return group_scope(str(group), str(told).strip() or channel) if is_known else PRIVATE
    if entry.get("chatType") not in (None, "", "direct"):  # whatever it is: a list would not go into a set
        return PRIVATE
    person = person_in_key(session_key)
    return person_scope(person, channel) if person else PRIVATE


def _parts(session_key: str) -> list[str]:
    parts = session_key.split(":")
    return parts[2:] if parts[0] == "agent" else parts  # an agent may be called anything, `group` too


def _place_of_kind(parts: Sequence[str]) -> int:
    """Where it is said what kind of chat it is: by the first such word, for a later one is a part of an id; else 0."""
    return next((place for place, part in enumerate(parts) if part in _MANY | _ONE), 0)


def _id_after(words: frozenset[str], session_key: str) -> str | None:
    parts = _parts(session_key)
    kind = _place_of_kind(parts)
    if not parts or parts[kind] not in words:
        return None
    start = kind + 1
    ends = (place for place, part in enumerate(parts) if place > start and part in _PARTS_OF_A_CHAT)
    return ":".join(parts[start : next(ends, len(parts))]) or None


def _of_channel(channel: str) -> str:
    name = _escape(channel.strip().casefold())
    return f"{name}/" if name else ""


def _is_channel(name: str) -> bool:
    """Whether a folder can be that of a channel: not hidden, and not that of a person, a group or everyone."""
    if (
        not name
        or name[0] == "."
        or len(name) > _MAX_CHANNEL_CHARS
        or name == EVERYONE
        or _is_folder_of_audience(name)
    ):
        return False
    return _of_channel(_unescape(name)) == f"{name}/"


def _is_folder_of_audience(folder: str) -> bool:
    kind, dash, _ = folder.partition("-")
    return kind in _KINDS and bool(dash)


def _escape(name: str) -> str:
    """Write an id so that it is a safe file name, and another name than that of any other id."""
    raw = name.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in raw)


def _unescape(name: str) -> str:
    first, *others = name.encode("utf-8", "surrogatepass").split(b"%")
    try:
        raw = first + b"".join(bytes([int(piece[:2], 16)]) + piece[2:] for piece in others)
        return raw.decode("utf-8", "surrogatepass")
    except ValueError:
        return ""  # no id is written like that
