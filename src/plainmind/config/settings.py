"""Every setting there is: its default, range and meaning, and whether a project file may set it."""

# ruff: noqa: FBT003 -- the first argument of `setting` is the default, often True or False

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import value
from plainmind.config.agent_settings import (
    ChatSettings,
    EntrySettings,
    LimitSettings,
    MemoryFlushSettings,
    ScopeSettings,
)
from plainmind.config.groups import ALLOWED, KEEPS, READS, RUNS, SENDS, SPENDS, group, setting
from plainmind.config.kinds import Duration, Flag, Number, OneOf, SomeOf, Text, TextTable, Whole
from plainmind.config.structured import ExtraPath, Paths, ProviderAccess, Providers

_MB = 1024 * 1024
_PATH = Text("a path", optional=True)
_PATH_OF_INDEX = Text(
    "a path in which nothing but {home} and {agentId} is filled in",
    shape=r"(?:[^{}]|\{home\}|\{agentId\})+",
)
_TIME_ZONE = Text(
    "the name of a time zone such as Europe/Vienna",
    shape=r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*",
    optional=True,
)
_PROVIDERS = ("builtin", "local", "onnx", "openai", "gemini", "voyage", "none")
_EMBEDDERS = "plainmind.embedders"


@value
class ChunkingSettings:
    """How files are cut into the pieces that a search finds."""

    strategy: str = setting(
        "markdown",
        OneOf("markdown", "lines"),
        ALLOWED,
        "`markdown` cuts along headings and paragraphs, `lines` at a fixed size with an overlap.",
    )
    tokens: int = setting(400, Whole(8, 8192), ALLOWED, "Most tokens in a piece, about four characters each.")
    overlap: int = setting(
        80, Whole(0, 8191), ALLOWED, "Tokens repeated from the piece before; always fewer than `tokens`."
    )


@value
class SessionSyncSettings:
    """How much a transcript must grow before it is indexed again."""

    delta_bytes: int = setting(100_000, Whole(0, 1024 * _MB), ALLOWED, "New bytes that make it due.")
    delta_messages: int = setting(50, Whole(0, 1_000_000), ALLOWED, "New messages that make it due.")


@value
class SyncSettings:
    """When the index catches up with the files."""

    on_session_start: bool = setting(
        True, Flag(), ALLOWED, "Sync when a long-lived process begins: `mcp`, `chat`."
    )
    on_search: bool = setting(True, Flag(), ALLOWED, "Sync what changed before answering a search.")
    watch: bool = setting(
        True,
        Flag(),
        ALLOWED,
        "Watch the files while such a process runs; it begins with a look at all of them.",
    )
    watch_debounce_ms: int = setting(
        1500, Whole(0, 600_000), ALLOWED, "Quiet time after a change before it is indexed."
    )
    interval_minutes: int = setting(
        0, Whole(0, 10_080), ALLOWED, "Where files are not watched, sync this often; 0 is never."
    )
    sessions: SessionSyncSettings = group(SessionSyncSettings)


@value
class HybridSettings:
    """How meaning and words are weighed against each other."""

    enabled: bool = setting(True, Flag(), ALLOWED, "Ask both the vectors and the keywords.")
    vector_weight: float = setting(
        0.7, Number(0, 1_000_000), ALLOWED, "Weight of meaning; both weights are scaled to sum to 1."
    )
    text_weight: float = setting(
        0.3, Number(0, 1_000_000), ALLOWED, "Weight of words; both weights are scaled to sum to 1."
    )
    candidate_multiplier: int = setting(
        4, Whole(1, 20), ALLOWED, "Candidates taken from each side, per result wanted."
    )


@value
class TemporalDecaySettings:
    """How the age of a daily log counts."""

    enabled: bool = setting(True, Flag(), ALLOWED, "Let older daily logs rank lower.")
    half_life_days: float = setting(30.0, Number(0.1, 36_500), ALLOWED, "Age at which that effect is halved.")
    floor: float = setting(
        0.95, Number(0, 1), ALLOWED, "What age leaves of a score at least; 0 lets old logs fade to nothing."
    )


@value
class MmrSettings:
    """How results that say the same thing are spread out."""

    enabled: bool = setting(False, Flag(), ALLOWED, "Prefer results that differ from those above them.")
    relevance: float = setting(
        0.7, Number(0, 1), ALLOWED, "1 looks at relevance only, 0 at difference only.", name="lambda"
    )


@value
class QuerySettings:
    """What a search returns when it is not told otherwise."""

    max_results: int = setting(6, Whole(1, 200), ALLOWED, "Most results of a search.")
    min_score: float = setting(0.35, Number(0, 1), ALLOWED, "Results that score less are left out.")
    hybrid: HybridSettings = group(HybridSettings)
    temporal_decay: TemporalDecaySettings = group(TemporalDecaySettings)
    mmr: MmrSettings = group(MmrSettings)


@value
class CacheSettings:
    """The cache of embeddings, shared by all workspaces."""

    enabled: bool = setting(True, Flag(), KEEPS, "Keep embeddings, so that unchanged text is not sent again.")
    max_entries: int = setting(50_000, Whole(1, 100_000_000), KEEPS, "Embeddings kept before old ones go.")
    max_bytes: int = setting(512 * _MB, Whole(_MB, 1024 * 1024 * _MB), KEEPS, "Size of the cache's file.")


@value
class StoreSettings:
    """Where the index is kept."""

    driver: str = setting(
        "sqlite",
        OneOf("sqlite", "lancedb", "postgres", plugins="plainmind.stores"),
        SENDS,
        "What keeps the index.",
    )
    path: str = setting(
        "{home}/index/{agentId}",
        _PATH_OF_INDEX,
        KEEPS,
        "Folder of the index; `{home}` and `{agentId}` are filled in.",
    )
    vector_enabled: bool = setting(
        True, Flag(), KEEPS, "Keep vectors; without them keywords answer alone.", name="vector.enabled"
    )
    uri: str | None = setting(
        None,
        Text("an address", optional=True),
        SENDS,
        "Where LanceDB keeps it instead, `s3://bucket/folder`.",
    )
    dsn: str | None = setting(
        None,
        Text("an address", optional=True),
        SENDS,
        "How to reach PostgreSQL, `postgresql://role@host/database`; or `env:NAME`.",
        secret=True,
    )
    read_dsn: str | None = setting(
        None, Text("an address", optional=True), SENDS, "A replica of it that answers searches.", secret=True
    )
    schema: str = setting(
        "plainmind",
        Text("letters, digits and `_`", shape=r"[a-z_][a-z0-9_]{0,39}"),
        KEEPS,
        "The schema of this installation in PostgreSQL.",
    )
    workspace_name: str | None = setting(
        None,
        Text(optional=True),
        KEEPS,
        "Name of this workspace on a server, the same on every host that shares it.",
        name="workspace",
    )


@value
class SessionSettings:
    """Where conversations are kept."""

    path: str = setting(
        "{home}/agents/{agentId}/sessions",
        _PATH_OF_INDEX,
        KEEPS,
        "Folder of the conversations; `{home}` and `{agentId}` are filled in.",
    )


@value
class BatchSettings:
    """Bulk embedding jobs of remote providers: cheaper, but not immediate."""

    enabled: bool = setting(False, Flag(), SENDS, "Send large amounts of text as a bulk job.")
    wait: bool = setting(True, Flag(), SPENDS, "Wait for the job before the sync ends.")
    concurrency: int = setting(2, Whole(1, 16), SPENDS, "Jobs at the same time.")
    poll_interval_ms: int = setting(2000, Whole(100, 600_000), SPENDS, "Pause between two looks at a job.")
    timeout_minutes: int = setting(60, Whole(1, 1440), SPENDS, "Longest wait for a job.")


@value
class RemoteSettings:
    """How a remote embedding provider is reached."""

    base_url: str | None = setting(
        None,
        Text("an http:// or https:// address", shape=r"https?://[^\s/]\S*", optional=True),
        SENDS,
        "Address of the provider, or of any server that speaks its language.",
    )
    api_key: str | None = setting(
        None,
        Text(optional=True),
        SPENDS,
        "The key, or `env:NAME` to take it from the environment.",
        secret=True,
    )
    headers: Mapping[str, str] = setting(
        {}, TextTable(), SENDS, "Headers sent with each request.", secret=True
    )
    proxy: str | None = setting(
        None,
        Text("an http:// address", shape=r"http://[^\s/]\S*", optional=True),
        SENDS,
        "A proxy on the way to the provider; none is ever taken from the environment.",
        secret=True,
    )
    send_sessions: bool = setting(
        False, Flag(), SENDS, "Let the provider see transcripts too; else words alone find them."
    )
    concurrency: int = setting(4, Whole(1, 32), SPENDS, "Requests at the same time.")
    query_timeout_ms: int = setting(
        60_000, Whole(100, 600_000), SPENDS, "Longest wait for the vector of a question, retries included."
    )
    document_timeout_ms: int = setting(
        120_000, Whole(100, 3_600_000), SPENDS, "Longest wait for a request of notes, retries included."
    )
    max_tokens_per_day: int | None = setting(
        None,
        Whole(1, 1_000_000_000_000, optional=True),
        SPENDS,
        "Tokens after which no provider is asked any more until tomorrow (UTC).",
    )
    confirm_above_usd: float = setting(
        1.0, Number(0, 1_000_000), SPENDS, "What a sync may cost, about, before it needs your yes."
    )
    batch: BatchSettings = group(BatchSettings)


@value
class LocalSettings:
    """A model that runs on this machine."""

    model_path: str | None = setting(None, _PATH, READS, "GGUF file, or an `hf:` address of one.")
    model_cache_dir: str | None = setting(None, _PATH, KEEPS, "Folder for models that were fetched.")


@value
class HistorySettings:
    """How long old versions of rewritten files can be brought back."""

    max_age_days: int = setting(90, Whole(0, 36_500), KEEPS, "Days that an old version is kept.")
    max_bytes: int = setting(200 * _MB, Whole(0, 1024 * 1024 * _MB), KEEPS, "Size of all old versions.")


@value
class QmdSettings:
    """The external program `qmd`, when it is the `backend`."""

    command: str = setting("qmd", Text("a command"), RUNS, "The program.")
    search_mode: str = setting("search", OneOf("search", "vsearch", "query"), RUNS, "How it searches.")
    include_default_memory: bool = setting(True, Flag(), READS, "Give it `MEMORY.md` and `memory/`.")
    paths: tuple[ExtraPath, ...] = setting((), Paths(), READS, "More folders for it to index.")
    sessions_enabled: bool = setting(False, Flag(), READS, "Give it transcripts.", name="sessions.enabled")
    retention_days: int = setting(
        30, Whole(1, 36_500), KEEPS, "Days that exported transcripts are kept.", name="sessions.retentionDays"
    )
    export_dir: str | None = setting(
        None, _PATH, KEEPS, "Folder of exported transcripts.", name="sessions.exportDir"
    )
    update_interval_s: float = setting(
        300.0, Duration(), RUNS, "How often it updates its index.", name="update.interval"
    )
    embed_interval_s: float = setting(
        3600.0, Duration(), RUNS, "How often it embeds.", name="update.embedInterval"
    )
    debounce_ms: int = setting(
        15_000, Whole(0, 3_600_000), RUNS, "Least time between two updates.", name="update.debounceMs"
    )
    on_boot: bool = setting(True, Flag(), RUNS, "Update it at the start.", name="update.onBoot")
    command_timeout_ms: int = setting(
        30_000, Whole(100, 3_600_000), RUNS, "Longest wait for its version.", name="update.commandTimeoutMs"
    )
    update_timeout_ms: int = setting(
        120_000, Whole(100, 86_400_000), RUNS, "Longest update of its index.", name="update.updateTimeoutMs"
    )
    embed_timeout_ms: int = setting(
        120_000, Whole(100, 86_400_000), RUNS, "Longest it may embed at a time.", name="update.embedTimeoutMs"
    )


@value
class Settings:
    """Everything that can be set."""

    enabled: bool = setting(True, Flag(), ALLOWED, "Whether agents get the memory tools.")
    workspace: str | None = setting(None, _PATH, READS, "The folder that holds `MEMORY.md` and `memory/`.")
    agent_id: str = setting(
        "main",
        Text("letters, digits, `-` and `_`, at most 64", shape=r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"),
        KEEPS,
        "Whose memory it is; each agent has an index of its own.",
    )
    user_timezone: str | None = setting(
        None,
        _TIME_ZONE,
        ALLOWED,
        "Time zone that decides which day it is; unset is the system's.",
    )
    openclaw_config: str | None = setting(
        None, _PATH, READS, "An `openclaw.json` whose settings count just above the defaults."
    )
    backend: str = setting(
        "builtin",
        OneOf("builtin", "qmd", plugins="plainmind.backends"),
        RUNS,
        "What indexes and searches.",
    )
    sources: tuple[str, ...] = setting(
        ("memory",), SomeOf("memory", "sessions"), READS, "What is searched: memory files, transcripts."
    )
    extra_paths: tuple[ExtraPath, ...] = setting(
        (), Paths(), ALLOWED, "More Markdown to index; a project file may only name paths in the workspace."
    )
    max_file_bytes: int = setting(16 * _MB, Whole(1024, 256 * _MB), ALLOWED, "Larger files are skipped.")
    provider: str = setting(
        "auto",
        OneOf("auto", *_PROVIDERS, plugins=_EMBEDDERS),
        SENDS,
        "Who turns text into vectors; `builtin`, `local` and `onnx` keep it on this machine.",
    )
    model: str | None = setting(
        None, Text(optional=True), SPENDS, "The provider's model, instead of its usual one."
    )
    output_dimensionality: int | None = setting(
        None,
        Whole(1, 65_536, optional=True),
        SPENDS,
        "How many dimensions to ask the model for, instead of as many as it has.",
    )
    fallback: str = setting(
        "none", OneOf(*_PROVIDERS, plugins=_EMBEDDERS), SENDS, "The provider to use when the first one fails."
    )
    citations: str = setting(
        "auto", OneOf("auto", "on", "off"), ALLOWED, "Name file and lines; `auto` does so in direct chats."
    )
    reserve_tokens_floor: int = setting(
        20_000, Whole(0, 10_000_000), ALLOWED, "Tokens of the context window that stay free."
    )
    provider_access: Mapping[str, ProviderAccess] = setting(
        {}, Providers(), SPENDS, "Keys and addresses by provider.", name="models.providers", secret=True
    )
    chunking: ChunkingSettings = group(ChunkingSettings)
    sync: SyncSettings = group(SyncSettings)
    query: QuerySettings = group(QuerySettings)
    cache: CacheSettings = group(CacheSettings)
    store: StoreSettings = group(StoreSettings)
    sessions: SessionSettings = group(SessionSettings)
    remote: RemoteSettings = group(RemoteSettings)
    local: LocalSettings = group(LocalSettings)
    memory_flush: MemoryFlushSettings = group(MemoryFlushSettings)
    limits: LimitSettings = group(LimitSettings)
    chat: ChatSettings = group(ChatSettings)
    entries: EntrySettings = group(EntrySettings)
    history: HistorySettings = group(HistorySettings)
    scope: ScopeSettings = group(ScopeSettings)
    qmd: QmdSettings = group(QmdSettings)
