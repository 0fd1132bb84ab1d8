"""What entries of a transcript mean to each other: ids, times, and which one the next follows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache

from plainmind.base.errors import PlainmindError
from plainmind.files.jsonl import MAX_LINE_BYTES
from plainmind.text.transcripts import Entry, line_of

VERSION = 3  # of the header that we write; OpenClaw wrote 1 to 4, all are read
_MOST_FOR_PARENT = 200

IN_CONTEXT = frozenset({"message", "custom_message", "branch_summary"})


TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Halves: TypeAlias = tuple[bytes, bytes | memoryview]


def _prepared() -> Callable[[Entry, int], Iterable[str]]:
    """The encoder of `json`, made once: made anew for each message it takes as long as the message."""
    plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # another Python than the usual one
        return lambda entry, _: (plain.encode(entry),)
    written = json.encoder.encode_basestring  # what `ensure_ascii=False` uses
    # No look-out for circles: one ends in a RecursionError.
    return make(None, plain.default, written, None, ":", ",", False, False, False)  # type: ignore[no-any-return]  # noqa: FBT003


_pieces = _prepared()


def id_of(entry: Entry) -> str | None:
    """The entry's own id; versions before 2 had none."""
    found = entry.get("id")
    return found if isinstance(found, str) and found else None


def parent_of(entry: Entry) -> str | None:
    """The id of the entry that it follows; None for the first."""
    found = entry.get("parentId")
    return found if isinstance(found, str) and found else None


def leads_to(entry: Entry) -> str | None:
    """Which entry the next one follows: this one, unless it only points at another (`leaf`)."""
    if entry.get("type") != "leaf":
        return id_of(entry)
    target = entry.get("targetId", entry.get("leafId"))
    return target if isinstance(target, str) and target else None


def iso(seconds: float) -> str:
    """Write a moment as transcripts do: `2026-02-10T09:30:00.000Z`."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{_to_the_second(whole)}.{milliseconds:03}Z"


@lru_cache(maxsize=8)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")


def completed(given: Entry, entry_id: str, timestamp: str) -> Entry:
    """Make an entry of a message or of an entry, as `append` takes both."""
    if "role" in given and not isinstance(given.get("message"), dict):
        return {"type": "message", "id": entry_id, "timestamp": timestamp, "message": given}
    kind = given.get("type")
    if not isinstance(kind, str) or kind == "session":
        raise PlainmindError(
            f"an entry needs a type other than `session`, this one has {kind!r}",
            hint='give a message such as {"role": "user", "content": "…"} or an entry such as '
            '{"type": "custom", "customType": "…", "data": …}',
        )
    return {"type": kind, "id": entry_id, "timestamp": timestamp, **_without_id(given)}


def _without_id(given: Entry) -> Entry:
    return {name: found for name, found in given.items() if name not in {"type", "id"}}


def halves(entry: Entry) -> Halves:
    """Write an entry as a line in two halves, between which the id of its parent goes.

    The second is empty when the entry names its parent itself. Done before the lock is taken: what remains under it is
    to put three pieces together.
    """
    try:
        if "parentId" in entry:
            return line_of(_ordered(entry)), b""
        head = f'{{"type":"{entry["type"]}","id":"{entry["id"]}"'.encode()
        line = "".join(_pieces(entry, 0)).encode()
        if line.startswith(head):
            return head, memoryview(line)[len(head) :]  # long ones are copied once less
    except UnicodeEncodeError:
        pass  # half a character can only be escaped
    except (TypeError, ValueError, RecursionError) as error:
        raise PlainmindError(
            f"the message cannot be written as JSON: {error}",
            hint="give strings, finite numbers, lists and dictionaries with string keys",
        ) from error
    return _halves_in_order(entry)


def _halves_in_order(entry: Entry) -> Halves:
    """Write an entry whose fields come in another order, or that has signs in it that must be escaped."""
    head = b'{"type":%s,"id":%s' % (_quoted(entry["type"]), _quoted(entry["id"]))
    rest = {name: found for name, found in entry.items() if name not in {"type", "id"}}
    return head, (b"," if rest else b"") + line_of(rest)[1:-1]


def joined(entry_halves: Halves, parent: str | None) -> bytes:
    """Put the two halves of a line together around the parent."""
    head, tail = entry_halves
    return b'%s,"parentId":%s%s\n' % (head, _quoted(parent), tail) if tail else head


def _quoted(name: str | None) -> bytes:
    """Write a name as JSON; most are letters and digits, and need no encoder."""
    if name is not None and name.isalnum() and name.isascii():
        return b'"%s"' % name.encode()
    return json.dumps(name).encode()


def refuse_too_long(entry_halves: Halves) -> None:
    """Refuse what could be written but not be read again in bounded memory."""
    length = len(entry_halves[0]) + len(entry_halves[1]) + _MOST_FOR_PARENT
    if length > MAX_LINE_BYTES:
        raise PlainmindError(
            f"a message of {length / 1e6:.0f} MB is too long: the limit is {MAX_LINE_BYTES / 1e6:.0f} MB",
            hint="keep such a thing in a file of its own and put its path in the message",
        )


def _ordered(entry: Entry) -> Entry:
    first = {name: entry[name] for name in ("type", "id", "parentId", "timestamp") if name in entry}
    return first | entry
