"""One question to the indexes of several agents, for an operator who may ask them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.model import EVERY_SCOPE, SearchFilter, SearchHit, SearchResult, Source, known_sources
from plainmind.base.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date

    from plainmind.index.protocol import IndexStore
    from plainmind.memory.wiring import Parts
    from plainmind.search.engine import SearchEngine


@value
class AgentIndex:
    """Where one agent keeps its index of one workspace."""

    agent: str
    workspace: str

    @property
    def name(self) -> str:
        """What stands before the paths of its files."""
        return f"{self.agent}/{self.workspace}"


def indexes(parts: Parts, agents: Sequence[str] | None) -> list[AgentIndex]:
    """The indexes of some agents, or of all; on a server only an operator may ask for them."""
    neighbours = parts.store.neighbours
    if neighbours is None:
        found = _in_folders(parts.places.index)
    else:
        found = [AgentIndex(*names) for names in neighbours.all_indexes()]
    if agents is None:
        return found
    unknown = sorted(set(agents) - {each.agent for each in found})
    if unknown:
        raise NotFound(
            f"there is no index of {', '.join(unknown)}",
            hint=f"those with one: {', '.join(sorted({each.agent for each in found})) or 'nobody'}",
        )
    return [each for each in found if each.agent in agents]


def search_agents(
    parts: Parts,
    query: str,
    agents: Sequence[str] | None,
    *,
    sources: Sequence[Source] | None = None,
    max_results: int | None = None,
    min_score: float | None = None,
    snippet_chars: int | None = None,
    explain: bool = False,
    today: date | None = None,
) -> SearchResult:
    """Ask the indexes as they are, and put the best answers together; paths begin with the agent and the workspace.

    Nothing is brought up to date: the files of other agents may be on other hosts.
    """
    settings = parts.loaded.settings
    asked = indexes(parts, agents)
    if not asked:
        raise NotFound("there is no index to search", hint="run `plainmind sync`")
    wanted = max_results or settings.query.max_results
    where = SearchFilter(frozenset(known_sources(sources or settings.sources)), EVERY_SCOPE)
    hits: list[SearchHit] = []
    degraded: list[str] = []
    for each in asked:
        try:
            with _opened(parts, each) as store:
                result = _engine(parts, store).search(
                    query,
                    where=where,
                    today=today or parts.now().date(),
                    max_results=wanted,
                    min_score=min_score,
                    snippet_chars=snippet_chars,
                    explain=explain,
                )
        except PlainmindError as error:
            # The others still answer, and it is said who did not.
            degraded.append(f"{each.name}: {error}")
            continue
        hits += [replace(hit, path=f"{each.name}:{hit.path}") for hit in result.hits]
        degraded += [f"{each.name}: {note}" for note in result.degraded]
    hits.sort(key=lambda hit: -hit.score)
    identity = parts.embedder.identity
    return SearchResult(
        query=query,
        hits=tuple(hits[:wanted]),
        provider=identity.provider,
        model=identity.model,
        mode="hybrid" if identity.dims else "keyword",
        degraded=tuple(degraded),
    )


def _engine(parts: Parts, store: IndexStore) -> SearchEngine:
    from plainmind.memory.translating import search_settings
    from plainmind.search.engine import SearchEngine

    return SearchEngine(store, parts.embedder, search_settings(parts.loaded))


def _in_folders(own: str) -> list[AgentIndex]:
    """The indexes beside ours: of this workspace, by all agents of this machine."""
    beside, workspace = os.path.dirname(os.path.dirname(own)), os.path.basename(own)
    agents = sorted(os.listdir(beside)) if os.path.isdir(beside) else []
    return [
        AgentIndex(agent, workspace)
        for agent in agents
        if os.path.isdir(os.path.join(beside, agent, workspace))
    ]


@contextmanager
def _opened(parts: Parts, index: AgentIndex) -> Iterator[IndexStore]:
    """Open the index of an agent."""
    if parts.store.neighbours is not None:
        store = parts.store.neighbours.index_of(index.agent, index.workspace)
    else:
        beside = os.path.dirname(os.path.dirname(parts.places.index))
        store = parts.open_index(os.path.join(beside, index.agent, index.workspace))
    try:
        yield store
    finally:
        store.close()
