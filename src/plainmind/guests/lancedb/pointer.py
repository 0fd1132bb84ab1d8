"""Which version of which table answers: the one small thing that is replaced when an index changes.

A change may take several commits of LanceDB. Readers look at the version that the pointer names, so they see all of a
change or nothing; what a dead writer has left behind it is undone by the next one.
"""

from __future__ import annotations

import json
import time
import zlib
from contextlib import AbstractContextManager

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import IndexFingerprint
from plainmind.base.value import asdict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol
else:
    Protocol = object


@value
class Pointer:
    """One state of an index."""

    generation: int = 0
    version: int = 0  # of the table; 0: there is no table, and nothing was ever built
    revision: int = 0
    fingerprint: IndexFingerprint | None = None
    next_id: int = 1
    next_owner: int = 1
    tidied: int = 0  # the version after the last compaction
    recovered: str | None = None  # what was wrong with the index before this one

    @property
    def table(self) -> str:
        """The name of its table."""
        return table_name(self.generation)

    @property
    def dims(self) -> int:
        """How many numbers a vector has."""
        return self.fingerprint.embedder.dims if self.fingerprint else 0


NOTHING = Pointer()


class Turn(Protocol):
    """The right to change an index, for the length of a block."""

    @property
    def pointer(self) -> Pointer:
        """The state that is to be changed."""

    def publish(self, pointer: Pointer) -> None:
        """Let another state answer from now on. Raises ConflictError when the right was lost meanwhile."""


class Place(Protocol):
    """Where an index is: its tables, its pointer, and who may change it."""

    @property
    def uri(self) -> str:
        """Where its tables are."""

    def database(self) -> Any:
        """The connection to its tables."""

    def pointer(self) -> Pointer:
        """The state that answers now."""

    def current(self) -> AbstractContextManager[Pointer]:
        """The state that answers now, kept from being dropped for the length of a block, where that is possible."""

    def turn(self, operation: str) -> AbstractContextManager[Turn]:
        """Wait to be the only one who changes the index."""

    def check(self, pointer: Pointer) -> None:
        """Make sure that the files of a state are what was written, where the place does not see to it itself.

        Raises IndexCorrupt.
        """

    def using(self, generation: int) -> AbstractContextManager[None]:
        """Keep the table of a generation from being dropped, where that is possible."""

    def drop(self, generation: int) -> None:
        """Drop a table with all its files; one that is not there is fine."""

    def drop_unused(self, current: int) -> None:
        """Drop the tables that neither answer nor are read or built. Needs a turn."""

    def drop_others(self, current: int, replaced: int) -> None:
        """Drop all tables but one; readers of the one that it has just replaced are given a moment. Needs a turn."""

    def close(self) -> None:
        """Let go of the connection."""


def table_name(generation: int) -> str:
    """The name of a generation's table."""
    return f"gen_{generation:06d}"


def generation_of(name: str) -> int | None:
    """The generation that a table is of; None for tables that are none of ours."""
    number = name.removeprefix("gen_")
    return int(number) if number != name and number.isdecimal() else None


def empty_pointer(reason: str) -> Pointer:
    """A pointer to nothing, for the place of one that cannot be read."""
    # A number that no table has had: what is left of the old ones is dropped by the next rebuild.
    return replace(NOTHING, generation=int(time.time()) % 900_000 + 100_000, recovered=reason)


def pointer_json(pointer: Pointer) -> str:
    """A pointer as it is kept, with its checksum."""
    facts = asdict(pointer)
    return json.dumps({**facts, "sum": _checksum(facts)})


def pointer_of_json(kept: str) -> Pointer:
    """A kept pointer; raises IndexCorrupt when it is none."""
    try:
        facts = json.loads(kept)
        is_whole = facts.pop("sum", None) in {None, _checksum(facts)}  # earlier versions wrote no checksum
        made = facts.pop("fingerprint")
        if made is not None:
            made = IndexFingerprint.from_facts(made)
        pointer = Pointer(**facts, fingerprint=made)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _pointer_damage() from error
    if not is_whole:
        raise _pointer_damage()
    return pointer


def _pointer_damage() -> IndexCorrupt:
    return IndexCorrupt("the pointer to the index is damaged", hint="run `plainmind sync`")


def _checksum(facts: object) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode("ascii"))
