"""What an import did, session by session, and what it could not read."""

from __future__ import annotations

from plainmind.base.model import FileFailure
from plainmind.base.value import record, value


@value
class Imported:
    """One session that was begun or continued."""

    key: str
    id: str
    agent: str | None  # whose store it went to; None: the one that was chosen
    path: str  # of our copy
    original: str
    is_new: bool
    entries: int  # added
    messages: int  # of these, what a person or a model said, and what tools answered


@value
class Damage:
    """A line that could not be read, or not wholly; the others were still copied."""

    path: str
    line: int
    reason: str


@value
class ImportReport:
    """The result of an import; of a rehearsal, what it would be."""

    program: str
    imported: tuple[Imported, ...] = ()
    unchanged: int = 0  # originals that have nothing new
    without_messages: int = 0  # conversations in which nothing was said
    damaged: tuple[Damage, ...] = ()  # the first of them, by name
    damaged_count: int = 0
    failed: tuple[FileFailure, ...] = ()  # originals that could not be read at all
    left_out: tuple[FileFailure, ...] = ()  # what was archived or deleted here since
    is_rehearsal: bool = False

    @property
    def sessions_begun(self) -> int:
        """How many sessions are new."""
        return sum(row.is_new for row in self.imported)

    @property
    def messages(self) -> int:
        """How many messages were added."""
        return sum(row.messages for row in self.imported)


_MOST_NAMED = 200


@record
class Tally:
    """The report while it is being gathered."""

    imported: list[Imported]
    damaged: list[Damage]
    failed: list[FileFailure]
    left_out: list[FileFailure]
    damaged_count: int = 0
    unchanged: int = 0
    without_messages: int = 0

    def damage(self, path: str, line: int, reason: str) -> None:
        """Count a line that could not be read, and name it if it is among the first."""
        self.damaged_count += 1
        if len(self.damaged) < _MOST_NAMED:
            self.damaged.append(Damage(path, line, reason))

    def report(self, program: str, *, is_rehearsal: bool) -> ImportReport:
        """Say what was done."""
        return ImportReport(
            program,
            tuple(self.imported),
            self.unchanged,
            self.without_messages,
            tuple(self.damaged),
            self.damaged_count,
            tuple(self.failed),
            tuple(self.left_out),
            is_rehearsal,
        )
