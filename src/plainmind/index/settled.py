"""Remembers when the index held all that the files say, to tell cheaply what may have changed since."""

from __future__ import annotations

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from plainmind.base.model import FileState
    from plainmind.index.tally import FileKey, Tally
    from plainmind.notes.change_queue import Since
    from plainmind.notes.source import TextSource

Revision: TypeAlias = "tuple[int, int]"


@value
class Agreement:
    """What the index was, what it held, and when each source said the same."""

    revision: Revision
    known: Mapping[FileKey, FileState]
    moments: tuple[int | None, ...]


class Settled:
    """The last time at which the sources and the index agreed."""

    def __init__(self, sources: Sequence[TextSource]) -> None:
        self._sources = sources
        self._agreement: Agreement | None = None

    def forget(self) -> None:
        """Have the next look go over everything."""
        self._agreement = None

    def settle(self, before: Agreement, tally: Tally, now: Revision) -> None:
        """Note what holds after a sync, if it does for sure: nothing failed, and nobody else has changed the index."""
        generation, changes = before.revision
        only_we_wrote = now == (generation, changes + tally.changes)
        if not (only_we_wrote and tally.is_clean) or None in before.moments:
            self.forget()
            return
        self._agreement = Agreement(now, tally.after(before.known), before.moments)

    def known_at(self, revision: Revision) -> Mapping[FileKey, FileState] | None:
        """What the index holds, if it is the one that was agreed on."""
        agreement = self._agreement
        return agreement.known if agreement is not None and agreement.revision == revision else None

    def changes(self, revision: Revision) -> tuple[Agreement, list[Since]] | None:
        """What held, and what may have changed in each source; None when only a look at everything can tell."""
        agreement = self._agreement
        if agreement is None or agreement.revision != revision:
            return None
        changes = []
        for source, moment in zip(self._sources, agreement.moments, strict=True):
            since = source.changed_since(moment)
            if since is None:
                return None
            changes.append(since)
        return agreement, changes
