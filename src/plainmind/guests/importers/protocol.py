"""What a reader of another program's conversations promises: which files it knows, and what they say in our format."""

from __future__ import annotations

from collections.abc import Iterator

from plainmind.base.value import field, value
from plainmind.sessions.entries import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object


@value
class Original:
    """One file of another program."""

    path: str
    agent: str | None = None  # whose it is, in a program that has several
    rank: int = 0  # of files that hold the same conversation, the lower one is the older part
    is_spare: bool = False  # a copy, worth reading only if no other file has the conversation


@value
class Place:
    """How far an original was read: where to go on, and how to tell that what was read is still there."""

    at: int = 0
    number: int = 0
    tail: str = ""  # names the bytes before `at`


@value
class Piece:
    """One line, row or message of an original, in our words."""

    number: int  # counted from 1, as a person would
    place: Place  # where to go on behind it
    entries: tuple[Entry, ...] = ()  # with `id`; without `parentId` they follow each other
    damage: str | None = None  # why some of it could not be read
    is_curable: bool = False  # it may be readable next time, when something is installed


@value
class About:
    """What is known of a conversation before it is read."""

    id: str  # as its program calls it
    header: Entry = field(default_factory=dict)  # for the first line of our copy: timestamp, cwd, …
    fields: Entry = field(default_factory=dict)  # for its entry in the registry


class Conversation(Protocol):
    """A conversation in an original."""

    @property
    def about(self) -> About:
        """What is known of it beforehand."""

    def still_has(self, place: Place) -> bool:
        """Whether everything before a place is as it was: then reading may go on there."""

    def pieces(self, after: Place) -> Iterator[Piece]:
        """Give what stands behind a place that it still has, or behind `Place()`, which is the beginning.

        Never raises for what the original says; raises PlainmindError when it cannot be read at all.
        """


class Reader(Protocol):
    """Reads one program's files, and changes none of them."""

    program: str
    looks_for: str  # in words, for the message about a folder without any

    def folders(self, path: str) -> list[str]:
        """Which folders to look through when this one is given."""

    def original(self, path: str, given: str) -> Original | None:
        """Tell by its name whether a file may hold a conversation; `given` is itself, or a folder above it."""

    def conversations(self, original: Original) -> Iterator[Conversation]:
        """Open a file. Raises PlainmindError when it cannot be read."""
