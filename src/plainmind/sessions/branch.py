"""Which entries lead to the present: the branch from the newest back to the first, and what of it a model is given."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plainmind.base.value import value
from plainmind.sessions.entries import IN_CONTEXT, Entry, Placed, id_of, leads_to, parent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

# Entries before a place, or all, last one first.
ReadBackwards: TypeAlias = "Callable[[int | None], Iterator[Placed]]"

_ANY = object()  # whichever comes next is wanted


@value
class Context:
    """What a model would be given: the summary of what was compacted, then the entries since, oldest first."""

    summary: str | None
    entries: tuple[Entry, ...]

    @property
    def messages(self) -> tuple[dict[str, Any], ...]:
        """The entries as messages; what a program or another branch had to say comes in the user's role."""
        return tuple(_as_message(entry) for entry in self.entries)


def branch(read: ReadBackwards, *, leaf: str | None = None) -> Iterator[Placed]:
    """Follow `parentId` from an entry (the newest by default) to the first, newest first.

    Entries of other branches are passed over. Where the trail is lost, because a line is damaged or was deleted by
    hand, the entry that stands before it in the file is taken for its parent: better one too many than the rest lost.
    """
    wanted: object = _ANY if leaf is None else leaf
    place: int | None = None
    is_found = leaf is None
    is_lost_once = False
    while True:
        trail = _Trail(wanted, is_lost_once=is_lost_once)
        for placed in read(place):
            if trail.passes(placed):
                is_found = True
                place = placed.start
                yield placed
            if trail.is_over:
                return
        if not trail.is_lost or not is_found:
            return
        wanted, is_lost_once = _ANY, True


class _Trail:
    """Where we are on the way back."""

    def __init__(self, wanted: object, *, is_lost_once: bool) -> None:
        self._wanted = wanted
        self._is_lost_once = is_lost_once
        self._has_passed_others = False
        self.is_over = False

    @property
    def is_lost(self) -> bool:
        return isinstance(self._wanted, str)

    def passes(self, placed: Placed) -> bool:
        """Whether this entry, earlier than all before, is on the branch."""
        entry = placed.entry
        if entry is None:
            if self.is_lost and not self._has_passed_others:
                self._wanted = _ANY  # in a file without branches the unreadable line was the parent
            return False
        name = id_of(entry)
        if self._wanted is None and name is not None:
            self.is_over = True
            return False
        if self._wanted is _ANY and entry.get("type") == "leaf":
            if not self._is_lost_once:  # or the same pointer would lead astray for ever
                self._wanted = leads_to(entry)
            return False
        if self._wanted is not None and self._wanted is not _ANY and name != self._wanted:
            self._has_passed_others = True
            return False
        # An entry without id is of a version that had no branches: all before it lead to it.
        self._wanted = _ANY if name is None else parent_of(entry)
        self._has_passed_others = False
        return True


def context_of(read: ReadBackwards, nth: Callable[[int], int | None]) -> Context:
    """Gather what follows the last compaction or reset, and what that one kept; `nth` gives the place of an entry."""
    reading = ContextBackwards(read, nth)
    entries = tuple(reading)[::-1]
    summary = reading.boundary.get("summary") if reading.boundary is not None else None
    return Context(summary if isinstance(summary, str) else None, entries)


class ContextBackwards:
    """The entries of a context, newest first, read as they are asked for."""

    def __init__(self, read: ReadBackwards, nth: Callable[[int], int | None]) -> None:
        self.boundary: Entry | None = (
            None  # the compaction or reset that it begins with, once that is reached
        )
        self._read = read
        self._nth = nth

    def __iter__(self) -> Iterator[Entry]:
        path = branch(self._read)
        for placed in path:
            entry = placed.entry or {}
            if entry.get("type") in {"compaction", "reset"}:
                self.boundary = entry
                yield from _entries_kept(path, _first_kept(entry, self._nth))
                return
            if entry.get("type") in IN_CONTEXT:
                yield entry


def _entries_kept(path: Iterator[Placed], first: object) -> list[Entry]:
    """What a boundary kept of the entries before it; what is said to be kept but is not there keeps nothing."""
    kept: list[Entry] = []
    for placed in path if first is not None else ():
        entry = placed.entry or {}
        if entry.get("type") in IN_CONTEXT:
            kept.append(entry)
        if id_of(entry) == first or placed.start == first:
            return kept
    return []


def _first_kept(boundary: Entry, nth: Callable[[int], int | None]) -> object:
    """The id of the first entry that stays, or its place (version 1 counted entries); None when none stays."""
    name = boundary.get("firstKeptEntryId")
    if isinstance(name, str) and name and name != id_of(boundary):
        return name
    index = boundary.get("firstKeptEntryIndex")
    return nth(index) if isinstance(index, int) and name is None else None


def _as_message(entry: Entry) -> dict[str, Any]:
    message = entry.get("message")
    if isinstance(message, dict):
        return message
    content = entry.get("content") if entry.get("type") == "custom_message" else entry.get("summary")
    return {"role": "user", "content": content if content is not None else ""}
