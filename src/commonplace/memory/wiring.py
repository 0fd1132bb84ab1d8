"""The composition root: settings in, working parts out. Nothing else reads the whole configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from commonplace.config.load import Loaded, load_here
from commonplace.config.locations import ResolvedWorkspace, home_folder, index_folder
from commonplace.config.settings import Settings
from commonplace.embedding.protocol import Embedder, EmbeddingCache
from commonplace.embedding.registry import create_embedder
from commonplace.embedding.settings import EmbeddingSettings
from commonplace.errors import ConfigError
from commonplace.files.erasures import Erasures
from commonplace.files.failures import explaining
from commonplace.files.history import History
from commonplace.files.system import SYSTEM, make_folders
from commonplace.files.tombstones import Tombstones
from commonplace.indexing.chunks import ChunkingSettings
from commonplace.indexing.disappearances import Disappearances
from commonplace.indexing.indexer import Indexer
from commonplace.search.diversity import Diversity
from commonplace.search.engine import SearchEngine
from commonplace.search.recency import Recency
from commonplace.search.relevance import Weights
from commonplace.search.settings import SearchSettings
from commonplace.sources.mounts import ExtraPath
from commonplace.sources.notebook import Notebook
from commonplace.sources.protocol import TextSource
from commonplace.sources.workspace import Workspace
from commonplace.store.opening import open_store
from commonplace.store.protocol import IndexStore
from commonplace.text.hashing import sha256_text


@dataclass(frozen=True, slots=True)
class Places:
    """Where everything of one memory is kept."""

    home: str
    workspace: ResolvedWorkspace
    state: str  # locks, history, tombstones of this workspace
    index: str  # of this agent and workspace
    cache: str  # of this agent, shared by its workspaces

    def indexes_of_other_agents(self) -> list[str]:
        """The folders beside ours in which other agents index the same workspace."""
        agent, key = os.path.split(self.index)
        beside = os.path.dirname(agent)
        try:
            agents = sorted(os.listdir(beside))
        except OSError:
            return []  # the index is kept in a place of its own
        folders = (os.path.join(beside, name, key) for name in agents)
        return [folder for folder in folders if folder != self.index and os.path.isdir(folder)]


@dataclass(frozen=True, slots=True)
class Parts:
    """A memory, taken apart."""

    loaded: Loaded
    places: Places
    zone: tzinfo | None
    workspace: Workspace
    history: History
    tombstones: Tombstones
    erasures: Erasures
    notebook: Notebook
    embedder: Embedder
    cache: EmbeddingCache | None
    store: IndexStore
    indexer: Indexer
    engine: SearchEngine

    def close(self) -> None:
        """Let go of everything that was opened."""
        self.store.close()
        self.embedder.close()
        if self.cache is not None:
            self.cache.close()

    def now(self) -> datetime:
        """The time where the user is."""
        return datetime.now(self.zone).astimezone(self.zone)


def wire(
    *,
    workspace: str | None,
    home: str | None,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    cwd: str,
    more_sources: Sequence[TextSource] = (),
) -> Parts:
    """Make a memory from its configuration. Opens nothing that is not needed to answer.

    `more_sources` are indexed beside the workspace; no setting leads to them.
    """
    if home is not None:
        environ = {**environ, "COMMONPLACE_HOME": os.path.abspath(os.path.expanduser(home))}
    loaded, resolved = load_here(workspace_flag=workspace, cwd=cwd, flags=flags, environ=environ)
    settings = loaded.settings
    places = places_of(settings, resolved, environ)
    with explaining("create", places.home):
        make_folders(SYSTEM, places.home)
    zone = _zone(settings.user_timezone)
    files = Workspace(
        resolved.path,
        extra_paths=[
            ExtraPath(path.path, name=path.name, **({"pattern": path.pattern} if path.pattern else {}))
            for path in settings.extra_paths
        ],
        max_file_bytes=settings.max_file_bytes,
    )
    history = History(
        os.path.join(places.state, "history"),
        max_age_days=settings.history.max_age_days,
        max_bytes=settings.history.max_bytes,
    )
    erasures = Erasures(places.state)
    tombstones = Tombstones(os.path.join(places.state, "tombstones.jsonl"))
    embedder, cache = _embedder(loaded, places, tombstones)
    store = open_store(settings.store.driver, folder=places.index)
    return Parts(
        loaded=loaded,
        places=places,
        zone=zone,
        workspace=files,
        history=history,
        tombstones=tombstones,
        erasures=erasures,
        notebook=Notebook(
            files,
            history,
            erasures=erasures,
            state_dir=places.state,
            now=lambda: datetime.now(zone).astimezone(zone),
        ),
        embedder=embedder,
        cache=cache,
        store=store,
        indexer=Indexer(
            [files, *more_sources],
            store,
            embedder,
            ChunkingSettings(
                settings.chunking.strategy,  # type: ignore[arg-type]
                settings.chunking.tokens,
                settings.chunking.overlap,
            ),
            Disappearances(places.index),
            erasures=erasures,
        ),
        engine=SearchEngine(store, embedder, search_settings(loaded)),
    )


def places_of(settings: Settings, workspace: ResolvedWorkspace, environ: Mapping[str, str]) -> Places:
    """Decide where state goes: by agent and by workspace, so that neither sees the other's."""
    home = home_folder(environ)
    agent = index_folder(settings.store.path, home=home, agent_id=settings.agent_id, environ=environ)
    real = os.path.realpath(workspace.path)
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in os.path.basename(real))[:40]
    key = f"{name or 'root'}-{sha256_text(real)[:8]}"
    return Places(
        home=home,
        workspace=workspace,
        state=os.path.join(home, "state", key),
        index=os.path.join(agent, key),
        cache=os.path.join(agent, "cache.sqlite"),
    )


def search_settings(loaded: Loaded) -> SearchSettings:
    """Translate the settings of a search. The mix that was measured best holds unless weights were set."""
    settings = loaded.settings
    query = settings.query
    return SearchSettings(
        max_results=query.max_results,
        min_score=query.min_score,
        snippet_chars=settings.limits.max_snippet_chars,
        use_vectors=settings.store.vector_enabled,
        use_keywords=query.hybrid.enabled or not settings.store.vector_enabled,
        weights=_weights(loaded),
        recency=Recency(
            enabled=query.temporal_decay.enabled,
            half_life_days=query.temporal_decay.half_life_days,
            floor=query.temporal_decay.floor,
        ),
        diversity=Diversity(query.mmr.enabled, query.mmr.relevance),
        proposals=min(200, 30 * query.hybrid.candidate_multiplier),
    )


def _weights(loaded: Loaded) -> Weights:
    measured = Weights()
    hybrid = loaded.settings.query.hybrid
    chosen = (loaded.origins[f"query.hybrid.{name}"].kind for name in ("vectorWeight", "textWeight"))
    if all(kind == "default" for kind in chosen):
        return measured
    words = measured.coverage + measured.passage + measured.keywords
    share = hybrid.text_weight / words
    return Weights(
        coverage=measured.coverage * share,
        passage=measured.passage * share,
        keywords=measured.keywords * share,
        meaning=hybrid.vector_weight,
    )


def _embedder(
    loaded: Loaded, places: Places, tombstones: Tombstones
) -> tuple[Embedder, EmbeddingCache | None]:
    settings = loaded.settings
    name = settings.provider if settings.store.vector_enabled else "none"
    wanted = EmbeddingSettings(provider=name, model=settings.model, fallback=settings.fallback)
    try:
        embedder = create_embedder(name, wanted)
    except ConfigError as error:
        # A provider may have come from a file that was written for another program: say which one.
        raise ConfigError(
            f"{error} (set by {loaded.origins['provider']})",
            key=error.key,
            hint=f"{error.hint}; `--config provider=builtin` works offline",
        ) from error
    if not settings.cache.enabled or embedder.identity.provider in {"builtin", "none"}:
        return embedder, None
    from commonplace.embedding.cache import SqliteEmbeddingCache
    from commonplace.embedding.cached import CachedEmbedder

    cache = SqliteEmbeddingCache(
        places.cache,
        max_entries=settings.cache.max_entries,
        max_bytes=settings.cache.max_bytes,
        buried=tombstones.buried,
    )
    return CachedEmbedder(embedder, cache), cache


def _zone(name: str | None) -> tzinfo | None:
    """The user's time zone; None is the system's own, which also knows when summer time begins."""
    if name is None:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"unknown time zone: `{name}`", key="userTimezone", hint="use a name such as `Europe/Vienna`"
        ) from error
