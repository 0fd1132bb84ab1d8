"""From another program's conversation to a session of ours: begun whole, or continued with what is new."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice

from plainmind.base.errors import NotFound
from plainmind.base.value import record
from plainmind.files.jsonl import MAX_LINE_BYTES
from plainmind.guests.importers.marks import FROM_WHERE, line_of_origin, with_origin
from plainmind.guests.importers.protocol import Conversation, Piece, Place
from plainmind.guests.importers.target import Target
from plainmind.sessions.entries import VERSION, Draft, Entry, Transcript, id_of, line_of, message_of, time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

TOO_LONG = "too long to be kept: more than 16 MB"
_ENTRIES_A_WRITE = 256
_TITLE_CHARS = 80

# The number of a line, and what is wrong with it.
NoteDamage: TypeAlias = Callable[[int, str], None]


@record
class Copying:
    """One conversation on its way: what is copied of it, and what is learned meanwhile."""

    conversation: Conversation
    file: str  # the name of the original
    note_damage: NoteDamage
    place: Place
    entries: int = 0
    messages: int = 0
    title: str = ""
    first_words: str = ""
    latest_ms: int = 0
    is_curable: bool = False

    def fresh(self, known: Iterable[str]) -> Iterator[Entry]:
        """Read on, and give the entries that are not known yet."""
        have = set(known)
        here: set[str] = set()
        for piece in self.conversation.pieces(self.place):
            self._note(piece)
            for given in piece.entries:
                entry = given
                if given["id"] in here:  # two lines of the original have the same id, and neither may be lost
                    entry = given | {"id": f"{given['id']}~{piece.number}"}
                here.add(entry["id"])
                if entry["id"] not in have:
                    yield from self._kept(with_origin(entry, self.file, piece.number), piece.number)

    def rehearse(self, known: Iterable[str]) -> list[str]:
        """Read on, and only count; the ids that are new."""
        return [entry["id"] for entry in self.fresh(known)]

    @property
    def name(self) -> str:
        """What a person would call the conversation."""
        return self.title or self.first_words

    def _note(self, piece: Piece) -> None:
        self.is_curable = self.is_curable or piece.is_curable
        self.place = piece.place
        if piece.damage is not None:
            self.note_damage(piece.number, piece.damage)

    def _kept(self, entry: Entry, number: int) -> Iterator[Entry]:
        if len(line_of(entry, is_copy=True)) > MAX_LINE_BYTES:
            self.note_damage(number, TOO_LONG)
            return
        self.entries += 1
        self.messages += entry["type"] == "message"
        self.latest_ms = max(self.latest_ms, time_of(entry) or 0)
        if entry["type"] == "session_info" and isinstance(entry.get("name"), str):
            self.title = entry["name"]
        spoken = message_of(entry) if not self.first_words else None
        if spoken is not None and spoken.speaker == "User":
            self.first_words = _title(spoken.text)
        yield entry


def _title(text: str) -> str:
    """The first words of a text, as many as a line of a list has room for."""
    words = " ".join(text[: 4 * _TITLE_CHARS].split())
    if len(words) <= _TITLE_CHARS:
        return words
    kept = words[: _TITLE_CHARS - 1]
    return f"{kept.rpartition(' ')[0] or kept}…"


def begin(copying: Copying, target: Target, known: Iterable[str] = ()) -> bool:
    """Write a new transcript, whole or not at all; False when the conversation has nothing to say."""
    fresh = copying.fresh(known)
    first = next(fresh, None)
    if first is None:
        return False
    about = copying.conversation.about
    header: Entry = {"type": "session", "version": VERSION, "id": target.id}
    header |= {name: found for name, found in about.header.items() if found is not None}
    header |= {"sessionKey": target.key, FROM_WHERE: target.origin}
    target.transcript.rewrite(header, _linked(chain([first], fresh)))
    _date(target.transcript.path, copying.latest_ms)
    return True


def go_on(copying: Copying, transcript: Transcript) -> bool:
    """Add what is new to a transcript; False when it has been archived or deleted meanwhile."""
    known = ids_since(transcript, copying.file, copying.place)
    try:
        fresh = copying.fresh(known)
        while batch := [Draft(entry) for entry in islice(fresh, _ENTRIES_A_WRITE)]:
            transcript.add(batch)
    except NotFound:
        return False
    if copying.entries:
        _date(transcript.path, copying.latest_ms)
    return True


def ids_since(transcript: Transcript, file: str, place: Place) -> list[str]:
    """The ids of our copy that an original may give again, read on from a place.

    That is little: an import that was killed has copied more than it has noted.
    """
    ids: list[str] = []
    with suppress(NotFound):
        for placed in transcript.backwards():
            name = id_of(placed.entry) if placed.entry is not None else None
            if placed.entry is None or name is None:
                continue
            number = line_of_origin(placed.entry, file)
            if number is not None and number <= place.number:
                break
            ids.append(name)
    return ids


def _linked(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Let entries that name no parent follow the one before them."""
    previous: str | None = None
    for entry in entries:
        yield entry if "parentId" in entry else _with_parent(entry, previous)
        previous = id_of(entry)


def _with_parent(entry: Entry, parent: str | None) -> Entry:
    first = {name: entry[name] for name in ("type", "id")}
    return first | {"parentId": parent} | entry


def _date(path: str, latest_ms: int) -> None:
    """Give our copy the time of its last message: so it stands among the others where it belongs."""
    if latest_ms > 0:
        with suppress(OSError):  # only the order of a list
            os.utime(path, ns=(latest_ms * 1_000_000, latest_ms * 1_000_000))
