"""The one place where settings are read: in come the settings, out the small value that each part of a memory takes."""

from __future__ import annotations

import os
from functools import partial

from plainmind.base.errors import ConfigError
from plainmind.base.lazy import find_by_name
from plainmind.base.model import SystemZone, known_sources, sha256_text
from plainmind.base.value import field, value
from plainmind.config.load import home_folder, index_folder
from plainmind.files.safe_open import real_path, user_home_or_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import tzinfo
    from typing import Any

    from plainmind.agent.recalls import RecallValues
    from plainmind.agent.scope import Limits, Rule
    from plainmind.base.model import Source
    from plainmind.config.kinds import ExtraPath as ConfiguredPath
    from plainmind.config.load import Loaded, ResolvedWorkspace
    from plainmind.config.settings import HybridSettings, Settings
    from plainmind.index.plan import ChunkingSettings
    from plainmind.notes.discovery import ExtraPath
    from plainmind.search.engine import SearchSettings
    from plainmind.search.snippets import Weights

# Guests that have settings of their own for what the kernel makes: what an engine asks for, and the options of a store.
_WISHES = {"qmd": "plainmind.guests.qmd.config:wishes"}
_STORE_OPTIONS = {
    "lancedb": "plainmind.guests.lancedb.config:store_options",
    "postgres": "plainmind.guests.postgres.config:store_options",
}

# Providers that are always there; what else is named must be looked for before the first search.
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
    user_home: str  # the person's own folder, in which all of these may lie

    @property
    def history(self) -> str:
        """The folder of what files were before."""
        return os.path.join(self.state, "history")

    @property
    def tombstones(self) -> str:
        """The file of what was forgotten."""
        return os.path.join(self.state, "tombstones.jsonl")

    @property
    def recalls(self) -> str:
        """The folder of what agents were given."""
        return os.path.join(self.state, "recalls")

    @property
    def verdicts(self) -> str:
        """The file of what a person thought of it."""
        return os.path.join(self.recalls, "verdicts.jsonl")


@value
class MemoryValues:
    """What a memory says of itself."""

    agent_id: str
    sources: tuple[str, ...]
    imports: (
        str | None
    )  # a file that stands for conversations to be searched; None where `sources` was chosen
    shows_citations: bool  # outside of conversations
    driver: str
    backend: str
    zone: tzinfo | None


@value
class EngineValues:
    """What an engine beside the index is made of."""

    name: str
    agent_id: str
    folder: str  # its own, for this agent and this workspace
    sources: tuple[Source, ...]
    knows_sessions: bool
    program: str


@value
class NotesValues:
    """What the notes of a memory are made of."""

    workspace: str
    user_home: str
    extra_paths: tuple[ExtraPath, ...]
    max_file_bytes: int
    state: str
    history: str
    history_days: int
    history_bytes: int
    tombstones: str


@value
class Growth:
    """How much more must be said in a conversation before it is indexed again."""

    more_bytes: int
    more_messages: int


@value
class CacheValues:
    """The cache of embeddings: where it is, and how much it may hold."""

    path: str
    enabled: bool
    max_entries: int
    max_bytes: int


@value
class RerankValues:
    """When there is a second look, at how many results, and for how long."""

    mode: str
    results: int
    seconds: float


@value
class IndexValues:
    """What the index of a memory is made of, how it is kept up to date, and what is asked of it by default."""

    folder: str
    driver: str
    options: Mapping[str, str] = field(repr=False)  # of the driver
    embedder: str  # by its name; `none` where no vectors are kept
    model: str | None
    cache: CacheValues
    chunking: ChunkingSettings
    ranking: Callable[[], SearchSettings] = field(repr=False)  # nothing of a search is imported by a sync
    sources: tuple[Source, ...]
    private: frozenset[Source]  # what no provider on another machine may see
    growth: Growth  # of conversations
    imports: (
        str | None
    )  # a file that stands for conversations to be searched; None where `sources` was chosen
    watch_debounce_ms: int
    syncs_before_search: bool
    timeout_s: float
    max_results: int
    snippet_chars: int
    rerank: RerankValues
    verdicts: str  # a file; mostly there is none


@value
class ConversationValues:
    """What the conversations of a memory are made of."""

    home: str
    folder: str
    folder_of: Callable[[str], str] = field(repr=False)  # of another agent
    secrets: Callable[[], Sequence[str]] = field(repr=False)  # which the settings hold or refer to
    zone: tzinfo | None


@value
class PolicyValues:
    """Who may use the memory where, and how much of it reaches a model at once."""

    enabled: bool  # whether agents get it at all
    rules: tuple[Rule, ...]
    default: str
    citations: str
    limits: Limits
    hides_secrets: bool  # of notes, in what agents are shown


@value
class UpkeepValues:
    """When a memory that stays open catches up by itself."""

    at_start: bool
    watches: bool
    interval_minutes: int


@value
class Wishes:
    """What an engine other than the built-in one asks for in its own settings."""

    paths: tuple[ConfiguredPath, ...] = ()  # more places to read
    sessions: bool | None = None  # None: as `sources` says
    program: str = ""  # which one it runs: when another is named, what failed before does not count


def places_of(settings: Settings, workspace: ResolvedWorkspace, environ: Mapping[str, str]) -> Places:
    """Decide where state goes: by agent and by workspace, so that neither sees the other's."""
    home = home_folder(environ)
    of_agent = partial(index_folder, home=home, agent_id=settings.agent_id, environ=environ)
    agent = of_agent(settings.store.path)
    real = real_path(workspace.path)
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in os.path.basename(real))[:40]
    key = f"{name or 'root'}-{sha256_text(real)[:8]}"
    return Places(
        home=home,
        workspace=workspace,
        state=os.path.join(home, "state", key),
        index=os.path.join(agent, key),
        cache=os.path.join(agent, "cache.sqlite"),
        sessions=of_agent(settings.sessions.path),
        user_home=user_home_or_root(environ),
    )


def memory_values(loaded: Loaded, places: Places) -> MemoryValues:
    """Translate what concerns the memory as a whole. Raises ConfigError for a time zone that is none."""
    settings = loaded.settings
    return MemoryValues(
        agent_id=settings.agent_id,
        sources=settings.sources,
        imports=_imports(loaded, places),
        shows_citations=settings.citations != "off",
        driver=settings.store.driver,
        backend=settings.backend,
        zone=zone_of(settings.user_timezone) or SystemZone(),
    )


def recall_values(settings: Settings, places: Places) -> RecallValues:
    """Translate what concerns the recall log."""
    from plainmind.agent.recalls import RecallValues

    return RecallValues(settings.recalls.enabled, settings.recalls.days, places.recalls)


def engine_values(settings: Settings, places: Places) -> EngineValues:
    """Translate what concerns the engine that `backend` names."""
    wishes = wishes_of(settings)
    in_sources = "sessions" in settings.sources
    return EngineValues(
        name=settings.backend,
        agent_id=settings.agent_id,
        folder=engine_folder(places, settings.agent_id, settings.backend),
        sources=known_sources(settings.sources),
        knows_sessions=in_sources if wishes.sessions is None else wishes.sessions,
        program=wishes.program,
    )


def engine_folder(places: Places, agent_id: str, engine: str) -> str:
    """Where an engine keeps its own: by agent and by workspace, as the index is."""
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in engine)
    return os.path.join(places.home, "agents", agent_id, name, os.path.basename(places.index))


def notes_values(settings: Settings, places: Places) -> NotesValues:
    """Translate what concerns the files."""
    return NotesValues(
        workspace=places.workspace.path,
        user_home=places.user_home,
        extra_paths=tuple(memory_paths(settings)),
        max_file_bytes=settings.max_file_bytes,
        state=places.state,
        history=places.history,
        history_days=settings.history.max_age_days,
        history_bytes=settings.history.max_bytes,
        tombstones=places.tombstones,
    )


def index_values(loaded: Loaded, places: Places, environ: Mapping[str, str]) -> IndexValues:
    """Translate what concerns the index. Raises ConfigError for a secret that is not there."""
    from plainmind.index.plan import ChunkingSettings

    settings = loaded.settings
    chunking, sync = settings.chunking, settings.sync
    growth = Growth(sync.sessions.delta_bytes, sync.sessions.delta_messages)
    return IndexValues(
        folder=places.index,
        driver=settings.store.driver,
        options=store_options(settings.store.driver, settings, environ),
        embedder=settings.provider if settings.store.vector_enabled else "none",
        model=settings.model,
        cache=cache_values(settings, places),
        chunking=ChunkingSettings(chunking.strategy, chunking.tokens, chunking.overlap),  # type: ignore[arg-type]
        ranking=partial(search_settings, settings),
        sources=known_sources(settings.sources),
        private=frozenset() if settings.send_sessions else frozenset({"sessions"}),
        growth=growth,
        imports=_imports(loaded, places),
        watch_debounce_ms=sync.watch_debounce_ms,
        syncs_before_search=sync.on_search,
        timeout_s=settings.limits.timeout_ms / 1000,
        max_results=settings.query.max_results,
        snippet_chars=settings.limits.max_snippet_chars,
        rerank=RerankValues(
            settings.rerank.mode, settings.rerank.results, settings.rerank.deadline_ms / 1000
        ),
        verdicts=places.verdicts,
    )


def _imports(loaded: Loaded, places: Places) -> str | None:
    """The list of what was imported: who imports conversations wants them found, unless they said otherwise."""
    is_chosen = loaded.origins["sources"].kind != "default"
    return None if is_chosen else os.path.join(places.sessions, ".plainmind", "imports.json")


def with_imports(sources: tuple[str, ...], imports: str | None) -> tuple[str, ...]:
    """What is searched when a question does not say, as things are now."""
    return (*sources, "sessions") if imports is not None and os.path.exists(imports) else sources


def cache_values(settings: Settings, places: Places) -> CacheValues:
    """Translate what concerns the cache of embeddings."""
    cache = settings.cache
    return CacheValues(places.cache, cache.enabled, cache.max_entries, cache.max_bytes)


def conversation_values(loaded: Loaded, places: Places, environ: Mapping[str, str]) -> ConversationValues:
    """Translate what concerns conversations."""
    settings = loaded.settings

    def folder_of(agent: str) -> str:
        return index_folder(settings.sessions.path, home=places.home, agent_id=agent, environ=environ)

    return ConversationValues(
        home=places.home,
        folder=places.sessions,
        folder_of=folder_of,
        secrets=lambda: list(loaded.secrets(environ)),
        zone=zone_of(settings.user_timezone),
    )


def policy_values(settings: Settings) -> PolicyValues:
    """Translate who may use the memory."""
    return PolicyValues(
        enabled=settings.enabled,
        rules=scope_rules(settings),
        default=settings.scope.default,
        citations=settings.citations,
        limits=limits_of(settings),
        hides_secrets=settings.redact_notes,
    )


def upkeep_values(settings: Settings) -> UpkeepValues:
    """Translate when a memory that stays open catches up."""
    sync = settings.sync
    return UpkeepValues(sync.on_session_start, sync.watch, sync.interval_minutes)


def status_facts(settings: Settings) -> dict[str, Any]:
    """What `status` says of the settings themselves."""
    return {
        "backend": settings.backend,
        "requestedProvider": settings.provider,
        "agentId": settings.agent_id,
        "extraPaths": [path.path for path in settings.extra_paths],
        "keywords": settings.query.hybrid.enabled,
        "vectors": settings.store.vector_enabled,
    }


def has_parts_that_may_be_missing(settings: Settings) -> bool:
    """Whether something was chosen that not every installation has."""
    ours = settings.provider in _OURS and settings.store.driver == "sqlite"
    return not ours or (settings.provider == "builtin" and settings.model is not None)


def needs_providers(settings: Settings) -> bool:
    """Whether it takes a closer look to tell who embeds; else it is the built-in model, a plug-in, or none."""
    from plainmind.embed.protocol import AUTO

    if settings.provider in {"builtin", "none"} or not settings.store.vector_enabled:
        return False
    if settings.provider != AUTO or settings.local.model_path or settings.guests.get("remote.apiKey"):
        return True
    return bool(settings.provider_access)


def with_origin_of_provider(error: ConfigError, loaded: Loaded) -> ConfigError:
    """Say who has set a provider that cannot be made: it may come from a file that was written for another program."""
    return ConfigError(
        f"{error} (set by {loaded.origins['provider']})",
        key=error.key,
        hint=f"{error.hint}; `--config provider=builtin` works offline",
    )


def wishes_of(settings: Settings) -> Wishes:
    """What the engine that was chosen asks for."""
    if settings.backend not in _WISHES:
        return Wishes()
    wishes: Wishes = find_by_name(_WISHES[settings.backend])(settings)
    return wishes


def search_settings(settings: Settings) -> SearchSettings:
    """Translate the settings of a search."""
    from plainmind.search.engine import Diversity, Recency, SearchSettings

    query = settings.query
    return SearchSettings(
        max_results=query.max_results,
        min_score=query.min_score,
        snippet_chars=settings.limits.max_snippet_chars,
        use_vectors=settings.store.vector_enabled,
        use_keywords=query.hybrid.enabled or not settings.store.vector_enabled,
        weights=_weights(query.hybrid),
        recency=Recency(
            enabled=query.temporal_decay.enabled,
            half_life_days=query.temporal_decay.half_life_days,
            floor=query.temporal_decay.floor,
        ),
        diversity=Diversity(query.mmr.enabled, query.mmr.relevance),
        proposals=min(200, 12 * query.hybrid.candidate_multiplier),
    )


def _weights(hybrid: HybridSettings) -> Weights:
    """The mix that was measured best; or meaning and words with the shares that were set, words mixed as before."""
    from plainmind.base.value import asdict
    from plainmind.search.snippets import Weights

    measured = Weights()
    if hybrid.vector_weight is None or hybrid.text_weight is None:
        return measured
    words = {name: weight for name, weight in asdict(measured).items() if name != "meaning"}
    share = hybrid.text_weight / sum(words.values())
    return Weights(**{name: weight * share for name, weight in words.items()}, meaning=hybrid.vector_weight)


def extra_paths(configured: Sequence[ConfiguredPath]) -> list[ExtraPath]:
    """Translate more places to read Markdown from; what is left out stays as it is by default."""
    from plainmind.notes.discovery import ExtraPath

    return [
        ExtraPath(
            path.path,
            **{name: given for name in ("pattern", "name", "scope") if (given := getattr(path, name))},
        )
        for path in configured
    ]


def memory_paths(settings: Settings) -> list[ExtraPath]:
    """All places besides the workspace itself; those that were named for an engine are cited as `qmd/<name>/…`.

    The built-in index has them too: it answers when the engine does not.
    """
    paths = extra_paths(settings.extra_paths) if settings.extra_paths else []
    more = wishes_of(settings).paths
    if more:
        from plainmind.base.value import replace

        paths += [replace(path, under=settings.backend) for path in extra_paths(more)]
    return paths


def store_options(
    driver: str, settings: Settings, environ: Mapping[str, str], **instead: str | None
) -> Mapping[str, str]:
    """What the factory of a store takes beside its folder; `instead` wins over the settings."""
    if driver not in _STORE_OPTIONS:
        return {}
    options: Mapping[str, str | None] = find_by_name(_STORE_OPTIONS[driver])(settings, environ, **instead)
    return {name: option for name, option in options.items() if option is not None}


def scope_rules(settings: Settings) -> tuple[Rule, ...]:
    """Translate the rules about who may use the memory."""
    from plainmind.agent.scope import Rule

    return tuple(
        Rule(rule.action, rule.chat_type, rule.channel, rule.key_prefix) for rule in settings.scope.rules
    )


def limits_of(settings: Settings) -> Limits:
    """Translate how much recalled text may reach a model."""
    from plainmind.agent.scope import Limits

    limits = settings.limits
    return Limits(
        max_results=limits.max_results,
        max_snippet_chars=limits.max_snippet_chars,
        max_injected_chars=limits.max_injected_chars,
        max_start_chars=limits.max_start_chars,
        timeout_ms=limits.timeout_ms,
    )


def zone_of(name: str | None) -> tzinfo | None:
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
