"""The indexes beside ours: of other agents and workspaces, and in another store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager

from plainmind.base.errors import ConfigError, NotFound, PlainmindError
from plainmind.base.model import EVERY_SCOPE, SearchFilter, SearchHit, SearchResult, Source, known_sources
from plainmind.base.value import replace, value
from plainmind.index.index_copy import Copied, copy_index
from plainmind.index.left_behind import erase_left_behind
from plainmind.memory.translation import store_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date

    from plainmind.base.model import ProgressCallback
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
    from plainmind.memory.translation import search_settings
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


def of_other_agents(parts: Parts) -> Iterator[IndexStore]:
    """What other agents have indexed of the same workspace; each is closed when the next is asked for.

    A server knows them all; in folders they are those of this machine.
    """
    if parts.store.neighbours is not None:
        yield from _closing(parts.store.neighbours.of_other_agents())
    else:
        yield from _opened_in(parts, _beside(parts.places.index))


def of_other_workspaces(parts: Parts) -> Iterator[IndexStore]:
    """What the same agent has indexed of other workspaces: they hold the same conversations."""
    if parts.store.neighbours is not None:
        yield from _closing(parts.store.neighbours.of_other_workspaces())
    else:
        own = parts.places.index
        yield from _opened_in(parts, _folders(os.path.dirname(own), own))


def erase_notes_left_behind(parts: Parts, paths: Sequence[str]) -> None:
    """Take files of the workspace out of what other stores, in use before this one, hold of them for any agent."""
    own = parts.places.index
    for folder in (own, *_beside(own)):
        erase_left_behind(folder, parts.loaded.settings.store.driver, "memory", paths)


def erase_sessions_left_behind(parts: Parts, paths: Sequence[str]) -> None:
    """The same for conversations of the agent, which stand beside the notes of any workspace."""
    own = parts.places.index
    for folder in (own, *_folders(os.path.dirname(own), own)):
        erase_left_behind(folder, parts.loaded.settings.store.driver, "sessions", paths)


def _opened_in(parts: Parts, folders: Sequence[str]) -> Iterator[IndexStore]:
    return _closing(parts.open_index(folder) for folder in folders)


def _closing(stores: Iterable[IndexStore]) -> Iterator[IndexStore]:
    for store in stores:
        with closing(store):
            yield store


def _beside(index: str) -> list[str]:
    agent, key = os.path.split(index)
    folders = (os.path.join(folder, key) for folder in _folders(os.path.dirname(agent), agent))
    return [folder for folder in folders if os.path.isdir(folder)]


def _folders(place: str, own: str) -> list[str]:
    """The folders in a place, but for our own."""
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return []  # the index is kept in a place of its own
    folders = (os.path.join(place, name) for name in names)
    return [folder for folder in folders if folder != own and os.path.isdir(folder)]


def move_index(
    parts: Parts, driver: str, *, dsn: str | None = None, progress: ProgressCallback | None = None
) -> Copied:
    """Copy the index to the store that `driver` names, and make sure that both are equal.

    The old index stays as it is; which of them answers is for the settings to say.
    """
    now = parts.loaded.settings.store.driver
    if driver == now:
        raise ConfigError(f"the index is in {now} already", key="store.driver", hint="name another store")
    target = _open(parts, driver, dsn)
    try:
        return copy_index(parts.store, target, progress=progress)
    finally:
        target.close()


def prepare_server(parts: Parts, dsn: str | None, *, role: str | None, is_operator: bool = False) -> str:
    """Make the schema of this installation, or bring it up to date, and let a role use it; returns its name."""
    from plainmind.guests.postgres.migrations import prepare

    options = store_options("postgres", parts.loaded.settings, parts.environ, dsn=dsn)
    if not options.get("dsn"):
        raise ConfigError(
            "which server is to be prepared?", key="store.dsn", hint="name it with --dsn, or set `store.dsn`"
        )
    schema = options["schema"]
    prepare(options["dsn"], schema=schema, role=role, is_operator=is_operator)
    return schema


def _open(parts: Parts, driver: str, dsn: str | None) -> IndexStore:
    from plainmind.index.store import open_store

    # A replica may be behind, and both indexes are compared.
    options = dict(store_options(driver, parts.loaded.settings, parts.environ, dsn=dsn))
    options.pop("read_dsn", None)
    return open_store(driver, folder=parts.places.index, **options)
