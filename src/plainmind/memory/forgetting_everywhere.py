"""Forgetting in the notes and in the entries at once: chosen together, and removed so that it can be tried again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing

from plainmind.base.errors import ConflictError, NotFound, PlainmindError
from plainmind.base.model import EVERY_SCOPE, split_lines
from plainmind.base.value import replace
from plainmind.guests.entries.place import entry_folder, has_entries, require_entries
from plainmind.memory.forgetting import Forgetting, names_a_place
from plainmind.memory.wiring import Parts
from plainmind.notes.notebook import Forgotten, ForgottenEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.entries.model import Entry


def forget_everywhere(parts: Parts, what: str | Forgotten, *, dry_run: bool) -> Forgotten:
    """Choose what is meant among notes and entries, and unless it is a `dry_run` remove it.

    The entries go first: whatever stops this half-way, the lines that they were chosen with are still there, and the
    same call again does the rest.
    """
    chosen = _select(parts, what) if isinstance(what, str) else what
    return chosen if dry_run else _apply(parts, chosen)


def _select(parts: Parts, what: str) -> Forgotten:
    """A text means all that has it; lines and notes also mean the entries that say the same; an entry means itself."""
    everything, remarks = _entries_of(parts)
    if same := [entry for entry in everything if entry.id == what.strip()]:
        return _with_entries(parts, Forgotten((), is_of_notes=False), same)
    by_text = not names_a_place(what)
    try:
        chosen = Forgetting(parts).select(what)
    except NotFound as error:
        meant = _meant(everything, what) if by_text else []
        if not meant:
            raise _told(error, remarks if by_text else ()) from None
        return _with_entries(parts, Forgotten((), text=what, is_of_notes=False, remarks=remarks), meant)
    meant = _meant(everything, what) if by_text else _saying(everything, chosen)
    return _with_entries(parts, replace(chosen, remarks=remarks), meant)


def _apply(parts: Parts, chosen: Forgotten) -> Forgotten:
    notes = Forgetting(parts)
    notes.require_unchanged(chosen)
    chosen = _without_entries(parts, chosen)
    if not chosen.is_of_notes:
        return replace(chosen, applied=True)
    try:
        return notes.apply(chosen, parts.freshness.in_the_background)
    except PlainmindError as error:
        if not chosen.entries:
            raise
        gone = ", ".join(entry.id for entry in chosen.entries)
        raise PlainmindError(
            f"removed from the entries: {gone}; but then: {error}", hint=error.hint
        ) from error


def _without_entries(parts: Parts, chosen: Forgotten) -> Forgotten:
    """Remove the entries; without any, take out of their index what somebody has taken out of their file."""
    if chosen.entries:
        ids = [entry.id for entry in chosen.entries]
        try:
            _erase(parts, chosen.entries)
        except ConflictError:
            raise
        except PlainmindError as error:
            raise PlainmindError(
                f"nothing was removed from the notes, because the entries {', '.join(ids)} could not be: {error}",
                hint=error.hint,
            ) from error
        return chosen
    if chosen.text is None or not has_entries(parts):
        return chosen
    from plainmind.guests.entries.access import entry_memory_of

    try:
        with closing(entry_memory_of(parts)) as entries:
            entries.recall(chosen.text, scopes=EVERY_SCOPE, limit=1, by_words_only=True)
    except PlainmindError as error:
        return replace(chosen, remarks=_once((*chosen.remarks, _not_looked_into(error))))
    return chosen


def _erase(parts: Parts, doomed: Sequence[ForgottenEntry]) -> None:
    """Remove those that are there, and as they were shown: one that is gone by now needs nothing."""
    from plainmind.guests.entries.access import entry_memory_of

    with closing(entry_memory_of(parts)) as entries:
        kept = entries.list(scopes=EVERY_SCOPE)
        now = {entry.id: entry.text for entry in (*kept, *entries.list(scopes=EVERY_SCOPE, waiting=True))}
        for entry in doomed:
            if now.get(entry.id, entry.text) != entry.text:
                raise ConflictError(
                    f"the entry `{entry.id}` has changed since it was chosen; nothing was removed",
                    hint="choose it again",
                )
        entries.forget([entry.id for entry in doomed if entry.id in now], scopes=EVERY_SCOPE)


def _entries_of(parts: Parts) -> tuple[list[Entry], tuple[str, ...]]:
    """All entries, also those that wait; and what could not be read of them. Their index is not needed for this."""
    if not has_entries(parts):
        return [], ()
    from plainmind.guests.entries.entry_file import EntryFile

    file = EntryFile(entry_folder(parts))
    try:
        _, entries = file.read()
        unreadable = file.unreadable()
    except PlainmindError as error:
        return [], (_not_looked_into(error),)
    remarks = (f"not looked into: {unreadable} of the lines of {file.path}, which are no entries",)
    return list(entries.values()), remarks if unreadable else ()


def _meant(everything: Iterable[Entry], what: str) -> list[Entry]:
    from plainmind.guests.entries.choosing import entries_meant

    return entries_meant(everything, what)


def _saying(everything: Iterable[Entry], chosen: Forgotten) -> list[Entry]:
    from plainmind.guests.entries.choosing import entries_that_say

    return entries_that_say(everything, [line for part in chosen.lines for line in split_lines(part.text)])


def _with_entries(parts: Parts, chosen: Forgotten, entries: Sequence[Entry]) -> Forgotten:
    """Say of them also, before anybody agrees, that they cannot be removed."""
    if not entries:
        return chosen
    remarks = chosen.remarks
    try:
        require_entries(parts.loaded.settings)
    except PlainmindError as error:
        remarks += (f"the entries cannot be removed now: {error} ({error.hint})",)
    shown = tuple(ForgottenEntry(entry.id, entry.text, entry.scope) for entry in entries)
    return replace(chosen, entries=shown, remarks=remarks)


def _told(error: NotFound, remarks: Sequence[str]) -> NotFound:
    return NotFound("; ".join((str(error), *remarks)), hint=error.hint) if remarks else error


def _not_looked_into(error: PlainmindError) -> str:
    return f"the entries could not be looked into: {error}" + (f" ({error.hint})" if error.hint else "")


def _once(remarks: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(remarks))
