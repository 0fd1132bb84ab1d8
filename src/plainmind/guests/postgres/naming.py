"""The names of an installation: its schema, the tables of its generations, and its locks."""

from __future__ import annotations

import zlib

from psycopg import sql

from plainmind.base.errors import ConfigError
from plainmind.base.pattern import pattern
from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import LiteralString

DEFAULT_SCHEMA = "plainmind"
KINDS = ("files", "chunks", "vectors", "segments", "positions", "postings")

_SCHEMA = pattern(r"[a-z_][a-z0-9_]{0,47}")


def checked_schema(name: str) -> str:
    """A schema's name that needs no quoting anywhere."""
    if not _SCHEMA.fullmatch(name):
        raise ConfigError(
            f"`{name}` cannot be the name of a schema",
            key="store.schema",
            hint="use small letters, digits and underscores",
        )
    return name


@value
class Locks:
    """The first halves of advisory locks; the second is the number of an index or of a generation."""

    index: int  # held by whoever changes or publishes an index; by a builder with the number of a generation, negated
    generation: int  # shared by those who read or build a generation, so that nobody drops it


def locks_of(schema: str) -> Locks:
    """The locks of one installation: others may share its server."""
    return Locks(_number(f"{schema}.indexes"), _number(f"{schema}.generations"))


def _number(name: str) -> int:
    return zlib.crc32(name.encode()) - 2**31


class Tables:
    """SQL for one generation: the same statements, each with the tables of that generation."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self._names = {kind: sql.Identifier(f"{kind}_{generation}") for kind in KINDS}
        self._texts: dict[tuple[LiteralString, int], LiteralString] = {}

    def __call__(self, statement: LiteralString, *, limit: int = 0) -> LiteralString:
        """A statement in which `{files}` stands for the table of files, and so on.

        Where it has a `{limit}`, that is the number itself: a plan for any number at all is one without a graph.
        """
        found = self._texts.get((statement, limit))
        if found is None:
            made = sql.SQL(statement).format(**self._names, limit=sql.Literal(limit))
            found = self._texts[statement, limit] = made.as_string()
        return found
