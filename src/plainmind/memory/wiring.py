"""The composition root: settings in, working parts out. Nothing else reads the whole configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from threading import RLock

from plainmind.base.errors import ConfigError
from plainmind.base.model import sha256_text
from plainmind.base.value import value
from plainmind.config.load import Loaded, ResolvedWorkspace, home_folder, index_folder, load_here
from plainmind.files.system import SYSTEM, explain_errors, make_folders
from plainmind.memory.translation import memory_paths, search_settings, store_options, zone_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime, tzinfo
    from typing import Any, TypeVar

    from plainmind.config.settings import Settings
    from plainmind.embed.cache import SqliteEmbeddingCache
    from plainmind.embed.protocol import Embedder
    from plainmind.files.history import History
    from plainmind.files.system import Erasures
    from plainmind.files.tombstones import Tombstones
    from plainmind.index.protocol import IndexStore
    from plainmind.index.sync import Indexer
    from plainmind.memory.asking import Asking
    from plainmind.memory.backend import FallbackBackend
    from plainmind.memory.freshness import Freshness
    from plainmind.memory.policy import Checkpoint
    from plainmind.memory.providers import Providers
    from plainmind.memory.sessions import SessionScopes
    from plainmind.notes.notebook import Notebook
    from plainmind.notes.source import TextSource
    from plainmind.notes.workspace import Workspace
    from plainmind.redaction.engine import Redactor
    from plainmind.search.engine import SearchEngine
    from plainmind.sessions.transcripts import Transcripts

    T = TypeVar("T")
    made_once = cached_property
else:

    class made_once(cached_property):  # noqa: N801 (a decorator)
        """A part that is made when it is first used, and once, however many threads ask for it."""

        def __get__(self, parts, owner=None):
            """Make it with all others kept waiting; later the part itself stands in the way of this."""
            if parts is None:
                return self
            with parts.making:
                return super().__get__(parts, owner)


_OURS = frozenset({"auto", "builtin", "none", "local", "openai", "gemini", "voyage"})


@value
class Places:
    """Where everything of one memory is kept."""

    home: str
    workspace: ResolvedWorkspace
    state: str  # locks, history, tombstones of this workspace
    index: str  # of this agent and workspace
    cache: str  # of this agent, shared by its workspaces
    sessions: str  # of this agent

    @property
    def history(self) -> str:
        """The folder of what files were before."""
        return os.path.join(self.state, "history")

    @property
    def tombstones(self) -> str:
        """The file of what was forgotten."""
        return os.path.join(self.state, "tombstones.jsonl")


class Parts:
    """A memory, taken apart. A command imports and opens only the parts that it uses."""

    def __init__(
        self,
        loaded: Loaded,
        places: Places,
        zone: tzinfo | None,
        more_sources: Sequence[TextSource] = (),
        *,
        environ: Mapping[str, str],
    ) -> None:
        self.loaded = loaded
        self.places = places
        self.zone = zone
        self.environ = environ
        self.making = RLock()  # again and again: parts are made of parts
        self.more_sources = more_sources
        self._indexers: dict[Embedder, Indexer] = {}
        self._engines: dict[Embedder, SearchEngine] = {}

    @made_once
    def workspace(self) -> Workspace:
        """The files that hold the memory."""
        from plainmind.notes.workspace import Workspace

        settings = self.loaded.settings
        return Workspace(
            self.places.workspace.path,
            extra_paths=memory_paths(settings),
            max_file_bytes=settings.max_file_bytes,
        )

    @made_once
    def transcripts(self) -> Transcripts:
        """What was said in the conversations of this agent, without secrets."""
        from plainmind.memory.sessions import transcripts_of

        return transcripts_of(self)

    @made_once
    def redactor(self) -> Redactor:
        """What hides secrets in copies."""
        from plainmind.memory.secrets import redactor_of

        return redactor_of(self)

    @made_once
    def session_scopes(self) -> SessionScopes:
        """Who may see a conversation."""
        from plainmind.memory.sessions import SessionScopes

        return SessionScopes(self.places.sessions)

    @made_once
    def checkpoint(self) -> Checkpoint:
        """What everything that is shown to others must pass."""
        from plainmind.memory.policy import Checkpoint

        return Checkpoint(self.workspace.scope_of, self.session_scopes)

    @made_once
    def history(self) -> History:
        """What the files were before."""
        from plainmind.files.history import History

        settings = self.loaded.settings.history
        return History(
            self.places.history,
            max_age_days=settings.max_age_days,
            max_bytes=settings.max_bytes,
        )

    @made_once
    def tombstones(self) -> Tombstones:
        """What was forgotten lately."""
        from plainmind.files.tombstones import Tombstones

        return Tombstones(self.places.tombstones)

    @made_once
    def erasures(self) -> Erasures:
        """What keeps forgetting and indexing apart."""
        from plainmind.files.system import Erasures

        return Erasures(self.places.state)

    @made_once
    def notebook(self) -> Notebook:
        """What writes into the files."""
        from plainmind.notes.notebook import Notebook

        return Notebook(
            self.workspace, self.history, erasures=self.erasures, state_dir=self.places.state, now=self.now
        )

    @made_once
    def providers(self) -> Providers | None:
        """Who embeds, where that is not settled: None when nothing but the built-in model is configured."""
        if _is_plain(self.loaded.settings, self.environ):
            return None
        from plainmind.memory.providers import Providers

        return Providers(self.loaded, self.places, self.environ, buried=self.tombstones.buried)

    @property
    def cache(self) -> SqliteEmbeddingCache | None:
        """What remembers vectors that took long or cost money; None where computing is faster, or not wanted."""
        providers = self.providers
        if providers is None or providers.choice.provider in {"builtin", "none"}:
            return None
        return providers.cache

    @made_once
    def embedder(self) -> Embedder:
        """What turns text into vectors: the one that was chosen, whether it works or not."""
        if self.providers is not None:
            return self.providers.succession.chosen
        from plainmind.embed.protocol import EmbeddingSettings, create_embedder

        settings = self.loaded.settings
        name = settings.provider if settings.store.vector_enabled else "none"
        try:
            return create_embedder(name, EmbeddingSettings(provider=name, model=settings.model))
        except ConfigError as error:
            from plainmind.memory.provider_access import naming_its_origin

            raise naming_its_origin(error, self.loaded) from error

    @made_once
    def store(self) -> IndexStore:
        """What keeps the index."""
        return self.open_index(self.places.index)

    def open_index(self, folder: str) -> IndexStore:
        """Open the index that belongs to a folder of ours, wherever it is kept."""
        from plainmind.index.store import open_store

        settings = self.loaded.settings
        driver = settings.store.driver
        return open_store(driver, folder=folder, **store_options(driver, settings, self.environ))

    @made_once
    def indexer(self) -> Indexer:
        """What brings the index up to date, with the embedder that was chosen."""
        return self.indexer_with(self.embedder)

    def indexer_with(self, embedder: Embedder) -> Indexer:
        """What brings the index up to date with an embedder: an index is made with one, from end to end."""
        return self._kept(self._indexers, embedder, self._new_indexer)

    def _new_indexer(self, embedder: Embedder) -> Indexer:
        from plainmind.index.plan import ChunkingSettings
        from plainmind.index.sync import Disappearances, Indexer

        settings = self.loaded.settings
        chunking = settings.chunking
        sources: list[TextSource] = [self.workspace, *self.more_sources]
        if "sessions" in settings.sources and not self.more_sources:
            sources.append(self.transcripts)
        return Indexer(
            sources,
            self.store,
            embedder,
            ChunkingSettings(chunking.strategy, chunking.tokens, chunking.overlap),  # type: ignore[arg-type]
            Disappearances(self.places.index),
            erasures=self.erasures,
            private=frozenset() if settings.send_sessions else frozenset({"sessions"}),
        )

    @made_once
    def backend(self) -> FallbackBackend | None:
        """The engine that indexes and searches; None for the built-in one, which is made of these parts."""
        if self.loaded.settings.backend == "builtin":
            return None
        from plainmind.memory.backend_wiring import make_backend

        return make_backend(self)

    @made_once
    def freshness(self) -> Freshness:
        """What keeps the index up to date for all who use it."""
        from plainmind.memory.freshness import Freshness

        return Freshness(self)

    @made_once
    def asking(self) -> Asking:
        """What takes a question from end to end."""
        from plainmind.memory.asking import Asking

        return Asking(self, self.freshness)

    @made_once
    def engine(self) -> SearchEngine:
        """What answers questions."""
        return self.engine_with(self.embedder)

    def engine_with(self, embedder: Embedder) -> SearchEngine:
        """What answers questions with an embedder."""
        return self._kept(self._engines, embedder, self._new_engine)

    def _new_engine(self, embedder: Embedder) -> SearchEngine:
        from plainmind.search.engine import SearchEngine

        return SearchEngine(self.store, embedder, search_settings(self.loaded))

    def _kept(self, made: dict[Embedder, T], embedder: Embedder, make: Callable[[Embedder], T]) -> T:
        """Make something once for each embedder; one that only says why there is none comes and goes."""
        if self.providers is not None:
            from plainmind.embed.silent import Withheld

            if isinstance(embedder, Withheld):
                return make(embedder)
        with self.making:
            if embedder not in made:
                made[embedder] = make(embedder)
            return made[embedder]

    def close(self) -> None:
        """Let go of everything that was opened."""
        for name in ("backend", "workspace", "transcripts", "store", "embedder", "providers"):
            part = vars(self).get(name)
            if part is not None:
                part.close()

    def now(self) -> datetime:
        """The time where the user is."""
        from datetime import datetime

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
    """Make a memory from its configuration. Opens nothing yet.

    `more_sources` are indexed beside the workspace; no setting leads to them.
    """
    if home is not None:
        environ = {**environ, "PLAINMIND_HOME": os.path.abspath(os.path.expanduser(home))}
    loaded, resolved = load_here(workspace_flag=workspace, cwd=cwd, flags=flags, environ=environ)
    places = places_of(loaded.settings, resolved, environ)
    with explain_errors("create", places.home):
        make_folders(SYSTEM, places.home)
    parts = Parts(loaded, places, zone_of(loaded.settings.user_timezone), more_sources, environ=environ)
    if _may_be_missing(loaded.settings):
        _ = parts.engine  # whatever keeps it from working is said now, not by the first search
    return parts


def _may_be_missing(settings: Settings) -> bool:
    """Whether a part was chosen that not every installation has."""
    ours = settings.provider in _OURS and settings.store.driver == "sqlite"
    return not ours or (settings.provider == "builtin" and settings.model is not None)


def _is_plain(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether it is clear without a closer look that only the built-in model can embed, or none at all."""
    from plainmind.embed.protocol import AUTO, KEY_VARIABLES

    if settings.provider in {"builtin", "none"} or not settings.store.vector_enabled:
        return True
    if settings.provider != AUTO or settings.local.model_path or settings.guests.get("remote.apiKey"):
        return False
    names = (name for names in KEY_VARIABLES.values() for name in names)
    return not settings.provider_access and not any(environ.get(name) for name in names)


def places_of(settings: Settings, workspace: ResolvedWorkspace, environ: Mapping[str, str]) -> Places:
    """Decide where state goes: by agent and by workspace, so that neither sees the other's."""
    home = home_folder(environ)
    of_agent = partial(index_folder, home=home, agent_id=settings.agent_id, environ=environ)
    agent = of_agent(settings.store.path)
    real = os.path.realpath(workspace.path)
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in os.path.basename(real))[:40]
    key = f"{name or 'root'}-{sha256_text(real)[:8]}"
    return Places(
        home=home,
        workspace=workspace,
        state=os.path.join(home, "state", key),
        index=os.path.join(agent, key),
        cache=os.path.join(agent, "cache.sqlite"),
        sessions=of_agent(settings.sessions.path),
    )
