"""Vectors that are near to another: proposed by the server, compared again by whoever asks."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from plainmind.base.model import EVERY_SCOPE, SearchFilter, Source
from plainmind.guests.postgres.cache import GenerationCache
from plainmind.guests.postgres.segments import Segment
from plainmind.guests.postgres.session import only_scopes
from plainmind.guests.postgres.wire import HalfVector, Ids, from_stored, to_stored
from plainmind.guests.postgres.writer import GRAPH_FROM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, LiteralString

    from plainmind.guests.postgres.connections import Connection

# The server compares in single precision and its graph finds hardly all: so many more are compared again.
_MARGIN = 16

# So many that a filter admits are sooner compared one by one than found in a graph of all, and none is missed.
COMPARED = 32_768
# How many candidates a search in the graph keeps, by how many vectors there are: so that it finds 98 of 100, and more.
_EFFORTS = ((50_000, "400"), (200_000, "550"))
_MOST_EFFORT = "1000"  # that pgvector takes; for a filter, which hides some of them

_SET_EFFORT = "SELECT set_config('hnsw.ef_search', %s, true)"
_ADMITTED = """SELECT id, vector, source, scope FROM {vectors}
                WHERE source = ANY(%(sources)s) AND (%(all)s OR scope = ANY(%(scopes)s))
                ORDER BY vector <=> %(query)s, id LIMIT {limit}"""
_OF_IDS = """SELECT id, vector, source, scope FROM {vectors} WHERE id = ANY(%(ids)s)
              ORDER BY vector <=> %(query)s, id LIMIT {limit}"""
_BY_GRAPH = "SELECT id, vector, source, scope FROM {vectors} ORDER BY vector <=> %(query)s LIMIT {limit}"
_ADMITTED_BY_GRAPH = """SELECT id, vector, source, scope FROM {vectors}
                         WHERE source = ANY(%(sources)s) AND (%(all)s OR scope = ANY(%(scopes)s))
                         ORDER BY vector <=> %(query)s LIMIT {limit}"""


class Look:
    """One look among the vectors. The server begins at once; whoever asks can do something else until it answers."""

    def __init__(
        self,
        db: Connection,
        cache: GenerationCache,
        query: bytes,
        segments: Sequence[Segment],
        where: SearchFilter,
        *,
        limit: int,
        vectors: int,
        by_graph: bool,
        is_all: bool,
    ) -> None:
        asked: dict[str, Any] = {
            "query": HalfVector(query),
            "sources": list(where.sources),
            "all": where.scopes == EVERY_SCOPE,
            "scopes": [to_stored(scope) for scope in where.scopes],
        }
        if not by_graph:
            statement: LiteralString = _ADMITTED
        elif sum(each.used for each in segments) <= (GRAPH_FROM if is_all else COMPARED):
            statement = _OF_IDS
            cache.fetch(db, segments, ())
            ids = array("q")
            for each in segments:
                ids += cache.positions(db, each).ids
            asked["ids"] = Ids(ids)
        else:
            statement = _BY_GRAPH if is_all else _ADMITTED_BY_GRAPH
        self._db = db
        self._cache = cache
        with ExitStack() as stack:
            stack.enter_context(db.pipeline())  # in which a statement is sent at once, and not waited for
            stack.enter_context(only_scopes(db, where.scopes))
            if by_graph:
                db.execute(_SET_EFFORT, (effort_for(vectors) if is_all else _MOST_EFFORT,))
            self._near = db.execute(cache.tables(statement, limit=limit + _MARGIN), asked, binary=True)
            self._open = stack.pop_all()

    def found(self, besides: Sequence[int]) -> Mapping[int, tuple[Source, str]]:
        """The source and scope of chunks that are near, some more than wanted; where there are few, none is missed.

        Their vectors are in the cache afterwards, and those of `besides` too: both come in one round trip.
        """
        with self._open:
            self._cache.vectors(self._db, besides)
            rows = self._near.fetchall()
        self._cache.keep_vectors({id_: vector for id_, vector, _, _ in rows})
        return {id_: (source, from_stored(scope)) for id_, _, source, scope in rows}

    def close(self) -> None:
        """Wait for an answer that nobody wants any more."""
        self._open.close()


def effort_for(vectors: int) -> str:
    """How hard to look among so many."""
    return next((effort for most, effort in _EFFORTS if vectors <= most), _MOST_EFFORT)
