"""What is forgotten, or would be."""

from __future__ import annotations

from plainmind.base.value import value


@value
class ForgottenLines:
    """Lines that go, and what they say."""

    path: str
    start_line: int
    end_line: int
    text: str
    base_hash: str  # of the file they were chosen in


@value
class ForgottenEntry:
    """An entry of the entry memory that goes, and what it says."""

    id: str
    text: str
    scope: str


@value
class Forgotten:
    """What was forgotten, or would be."""

    lines: tuple[ForgottenLines, ...]
    text: str | None = None  # what every one of them contains, when they were chosen by a text
    note_id: str | None = None  # of the note that they are, when they were chosen by its id
    applied: bool = False
    versions_cleaned: int = 0
    entries: tuple[ForgottenEntry, ...] = ()
    is_of_notes: bool = True  # whether anything of the notes goes, be it from older versions alone
    remarks: tuple[str, ...] = ()  # what could not be looked into, and what will stand in the way
