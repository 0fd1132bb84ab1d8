"""The indexes beside ours: of other agents and workspaces, and in another store, to which ours can be copied."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from plainmind.base.errors import ConfigError, IndexUnavailable, NotFound, PlainmindError
from plainmind.base.model import (
    EVERY_SCOPE,
    EmbeddedChunk,
    FileState,
    Progress,
    ProgressCallback,
    SearchFilter,
    SearchHit,
    SearchResult,
    Source,
    known_sources,
)
from plainmind.base.value import replace, value
from plainmind.index.chunks import terms_of
from plainmind.index.remains import erase_left_behind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date, datetime

    from plainmind.index.protocol import IndexReader, IndexStore
    from plainmind.memory.index import Index


@value
class AgentIndex:
    """Where one agent keeps its index of one workspace."""

    agent: str
    workspace: str

    @property
    def name(self) -> str:
        """What stands before the paths of its files."""
        return f"{self.agent}/{self.workspace}"


def indexes(index: Index, agents: Sequence[str] | None) -> list[AgentIndex]:
    """The indexes of some agents, or of all; on a server only an operator may ask for them."""
    neighbours = index.store.neighbours
    if neighbours is None:
        found = _in_folders(index.values.folder)
    else:
        found = [AgentIndex(*names) for names in neighbours.all_indexes()]
    if agents is None:
        return found
    unknown = sorted(set(agents) - {each.agent for each in found})
    if unknown:
        raise NotFound(
            f"there is no index of {', '.join(unknown)}",
            hint=f"those with one: {', '.join(sorted({each.agent for each in found})) or 'none'}",
        )
    return [each for each in found if each.agent in agents]


def search_agents(
    index: Index,
    query: str,
    agents: Sequence[str] | None,
    *,
    sources: Sequence[Source] | None = None,
    max_results: int | None = None,
    min_score: float | None = None,
    snippet_chars: int | None = None,
    explain: bool = False,
    today: date | None = None,
    paths: Sequence[str] = (),
    tags: Sequence[str] = (),
    since: date | str | None = None,
    until: date | str | None = None,
    now: Callable[[], datetime],
) -> SearchResult:
    """Ask the indexes as they are, and put the best answers together; paths begin with the agent and the workspace.

    Nothing is brought up to date: the files of other agents may be on other hosts.
    """
    from plainmind.index.filters import restriction_of
    from plainmind.search.engine import SearchEngine

    values = index.values
    asked = indexes(index, agents)
    if not asked:
        raise NotFound("there is no index to search", hint="run `plainmind sync`")
    wanted = max_results or values.max_results
    today = today or now().date()
    only = restriction_of(today, paths=paths, tags=tags, since=since, until=until)
    where = SearchFilter(frozenset(known_sources(sources or index.sources)), EVERY_SCOPE, only)
    understood: tuple[str, ...] = ()
    hits: list[SearchHit] = []
    degraded: list[str] = []
    for each in asked:
        try:
            with _open_of(index, each) as store:
                result = SearchEngine(store, index.embedder, values.ranking()).search(
                    query,
                    where=where,
                    today=today,
                    max_results=wanted,
                    min_score=min_score,
                    snippet_chars=snippet_chars,
                    explain=explain,
                )
        except PlainmindError as error:
            # The others still answer, and it is said who did not.
            degraded.append(f"{each.name}: {error}")
            continue
        for hit in result.hits:
            also, older = (
                tuple(replace(place, path=f"{each.name}:{place.path}") for place in places)
                for places in (hit.also, hit.older)
            )
            hits.append(replace(hit, path=f"{each.name}:{hit.path}", also=also, older=older))
        degraded += [f"{each.name}: {note}" for note in result.degraded]
        understood = result.understood
    hits.sort(key=lambda hit: -hit.score)
    identity = index.embedder.identity
    return SearchResult(
        query=query,
        hits=tuple(hits[:wanted]),
        provider=identity.provider,
        model=identity.model,
        mode="hybrid" if identity.dims else "keyword",
        degraded=tuple(degraded),
        understood=understood,
    )


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
def _open_of(index: Index, named: AgentIndex) -> Iterator[IndexStore]:
    """Open the index of an agent."""
    if index.store.neighbours is not None:
        store = index.store.neighbours.index_of(named.agent, named.workspace)
    else:
        beside = os.path.dirname(os.path.dirname(index.values.folder))
        store = index.open_at(os.path.join(beside, named.agent, named.workspace))
    try:
        yield store
    finally:
        store.close()


def of_other_agents(index: Index) -> Iterator[IndexStore]:
    """What other agents have indexed of the same workspace; each is closed when the next is asked for.

    A server knows them all; in folders they are those of this machine.
    """
    if index.store.neighbours is not None:
        yield from _closing(index.store.neighbours.of_other_agents())
    else:
        yield from _open_in(index, _beside(index.values.folder))


def of_other_workspaces(index: Index) -> Iterator[IndexStore]:
    """What the same agent has indexed of other workspaces: they hold the same conversations."""
    if index.store.neighbours is not None:
        yield from _closing(index.store.neighbours.of_other_workspaces())
    else:
        own = index.values.folder
        yield from _open_in(index, _folders(os.path.dirname(own), own))


def erase_notes_left_behind(index: Index, paths: Sequence[str]) -> None:
    """Take files of the workspace out of what other stores, in use before this one, hold of them for any agent."""
    own = index.values.folder
    for folder in (own, *_beside(own)):
        erase_left_behind(folder, index.values.driver, "memory", paths)


def erase_sessions_left_behind(index: Index, paths: Sequence[str]) -> None:
    """The same for conversations of the agent, which stand beside the notes of any workspace."""
    own = index.values.folder
    for folder in (own, *_folders(os.path.dirname(own), own)):
        erase_left_behind(folder, index.values.driver, "sessions", paths)


def _open_in(index: Index, folders: Sequence[str]) -> Iterator[IndexStore]:
    return _closing(index.open_at(folder) for folder in folders)


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
    index: Index,
    driver: str,
    options: Callable[[], Mapping[str, str]],
    *,
    progress: ProgressCallback | None = None,
) -> Copied:
    """Copy the index to the store that `driver` names, and make sure that both are equal.

    The old index stays as it is; which of them answers is for the settings to say.
    """
    from plainmind.index.store import open_store

    now = index.values.driver
    if driver == now:
        raise ConfigError(f"the index is in {now} already", key="store.driver", hint="name another store")
    with closing(open_store(driver, folder=index.values.folder, **options())) as target:
        return copy_index(index.store, target, progress=progress)


_LAST_LINE = 2**31 - 1


@value
class Copied:
    """What was brought over, and the digest that both indexes have now."""

    files: int
    chunks: int
    digest: str


def copy_index(source: IndexStore, target: IndexStore, *, progress: ProgressCallback | None = None) -> Copied:
    """Make the index of one store anew in another. Raises IndexUnavailable unless both are equal afterwards."""
    with source.reading() as reader:
        made = reader.fingerprint()
        files = list(reader.files().values())
    if made is None:
        raise IndexUnavailable("there is no index to bring over", hint="run `plainmind sync` first")

    def catch_up(building: IndexStore) -> None:
        _bring_what_changed(source, building)

    with target.rebuild(made, reason="brought from another store", catch_up=catch_up) as building:
        for number, file in enumerate(files):
            if progress is not None:
                progress(Progress(number, len(files), file.path))
            with source.reading() as reader:
                _bring(reader, building, file)
    return _compare(source, target)


def _bring(reader: IndexReader, target: IndexStore, file: FileState) -> None:
    chunks = reader.chunks_between(file.source, file.path, 0, _LAST_LINE)
    vectors = reader.vectors_of(file.source, file.path)
    if file != reader.files().get((file.source, file.path)) or len(vectors) != len(chunks):
        return  # changed since: `catch_up` brings it
    # The terms of a chunk follow from its text: the fingerprint says by which rules.
    target.replace_file(
        file,
        [
            EmbeddedChunk(chunk, vector, terms_of(chunk))
            for chunk, vector in zip(chunks, vectors, strict=True)
        ],
    )


def _bring_what_changed(source: IndexStore, target: IndexStore) -> None:
    with target.reading() as reader:
        there = dict(reader.files())
    with source.reading() as reader:
        here = reader.files()
        for key in there.keys() - here.keys():
            target.remove_file(*key)
        for key, file in here.items():
            if there.get(key) != file:
                _bring(reader, target, file)


def _compare(source: IndexStore, target: IndexStore) -> Copied:
    for _ in range(3):
        digest = source.digest()
        if target.digest() == digest:
            with target.reading() as reader:
                counts = reader.counts()
            return Copied(sum(counts.files.values()), sum(counts.chunks.values()), digest)
        _bring_what_changed(source, target)  # the old one has been written to meanwhile
    raise IndexUnavailable(
        "the copy of the index does not equal the index, so nothing was switched over",
        hint="stop what writes to this memory, or run `plainmind sync --force`, and try again",
    )
