"""What the entry memory offers to forgetting: which entries are meant, and removing them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from plainmind.base.errors import ConflictError, PlainmindError
from plainmind.base.model import EVERY_SCOPE
from plainmind.guests.entries.access import entry_folder, has_entries, require_entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.guests.entries.model import Entry
    from plainmind.memory.memory import Memory
    from plainmind.notes.notebook import ForgottenEntry


class EntryKeeper:
    """The entries of a memory, as `memory/forget.py` asks for them; their index is opened only to remove some."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def everything(self) -> tuple[list[Entry], tuple[str, ...]]:
        """All entries, also those that wait for a review; and what could not be read of them."""
        if not has_entries(self._memory):
            return [], ()
        from plainmind.guests.entries.entry_file import EntryFile

        file = EntryFile(entry_folder(self._memory))
        try:
            _, entries = file.read()
            unreadable = file.unreadable()
        except PlainmindError as error:
            return [], (_not_looked_into(error),)
        remarks = (f"not looked into: {unreadable} of the lines of {file.path}, which are no entries",)
        return list(entries.values()), remarks if unreadable else ()

    def meant_by(self, what: str, among: Sequence[Entry]) -> list[Entry]:
        """Those that have the words of a text."""
        from plainmind.guests.entries.sentences import entries_meant

        return entries_meant(among, what)

    def saying(self, lines: Sequence[str], among: Sequence[Entry]) -> list[Entry]:
        """Those that say the same as a line."""
        from plainmind.guests.entries.sentences import entries_that_say

        return entries_that_say(among, lines)

    def refusal(self) -> PlainmindError | None:
        """Why no entry can be removed now."""
        try:
            require_entries(self._memory.settings)
        except PlainmindError as error:
            return error
        return None

    def erase(self, doomed: Sequence[ForgottenEntry]) -> None:
        """Remove those that are there, and as they were shown: one that is gone by now needs nothing."""
        from plainmind.guests.entries.access import entry_memory_of

        with closing(entry_memory_of(self._memory)) as entries:
            kept = entries.list(scopes=EVERY_SCOPE)
            waiting = entries.list(scopes=EVERY_SCOPE, waiting=True)
            now = {entry.id: entry.text for entry in (*kept, *waiting)}
            for entry in doomed:
                if now.get(entry.id, entry.text) != entry.text:
                    raise ConflictError(
                        f"the entry `{entry.id}` has changed since it was chosen; nothing was removed",
                        hint="choose it again",
                    )
            entries.forget([entry.id for entry in doomed if entry.id in now], scopes=EVERY_SCOPE)

    def catch_up(self, text: str) -> str | None:
        """Take out of their index what is gone from their file; what to say when that did not work."""
        if not has_entries(self._memory):
            return None
        from plainmind.guests.entries.access import entry_memory_of

        try:
            with closing(entry_memory_of(self._memory)) as entries:
                entries.recall(text, scopes=EVERY_SCOPE, limit=1, by_words_only=True)
        except PlainmindError as error:
            return _not_looked_into(error)
        return None

    def ids_with(self, texts: Sequence[str]) -> tuple[str, ...]:
        """The entries that have one of some texts."""
        from plainmind.guests.entries.entry_file import EntryFile

        _, entries = EntryFile(entry_folder(self._memory)).read()
        return tuple(entry.id for entry in entries.values() if any(text in entry.text for text in texts))


def _not_looked_into(error: PlainmindError) -> str:
    return f"the entries could not be looked into: {error}" + (f" ({error.hint})" if error.hint else "")
