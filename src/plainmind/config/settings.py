"""The settings of the kernel: default, range and meaning of each, and whether a project file may set it."""

# ruff: noqa: FBT003 -- the first argument of `setting` is the default, often True or False

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import Field, field, fields, value
from plainmind.config.kinds import (
    ALLOWED,
    KEEPS,
    READS,
    RUNS,
    SENDS,
    SHOWS,
    SPENDS,
    ExtraPath,
    Flag,
    Number,
    OneOf,
    Paths,
    ProviderAccess,
    Providers,
    Rules,
    ScopeRule,
    SomeOf,
    Text,
    Whole,
    group,
    setting,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

_MEMBERS: dict[type, Mapping[str, Field]] = {}

# Sections that guests declare, by the first word of their settings. A guest's module is imported when a layer of the
# configuration, a command or the guest itself names the section: a plain search builds none of them.
GUEST_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "remote": ("plainmind.guests.remote.config:RemoteConfig",),
    "store": (
        "plainmind.guests.lancedb.config:LanceConfig",
        "plainmind.guests.postgres.config:PostgresConfig",
    ),
    "memoryFlush": ("plainmind.guests.chat.config:FlushConfig",),
    "chat": ("plainmind.guests.chat.config:ChatConfig",),
    "entries": ("plainmind.guests.entries.config:EntryConfig",),
    "qmd": ("plainmind.guests.qmd.config:QmdConfig",),
    "tidy": ("plainmind.guests.upkeep.config:TidyConfig",),
}

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
    vector_weight: float | None = setting(
        None,
        Number(0, 1_000_000, optional=True),
        ALLOWED,
        "The share of meaning in a score, 0 to 1; with `textWeight`, both are scaled to sum to 1."
        " Unset, each signal weighs what was measured to find most.",
    )
    text_weight: float | None = setting(
        None,
        Number(0, 1_000_000, optional=True),
        ALLOWED,
        "The share of words in a score, 0 to 1; with `vectorWeight`, both are scaled to sum to 1."
        " Unset, each signal weighs what was measured to find most.",
    )
    candidate_multiplier: int = setting(
        4,
        Whole(1, 20),
        ALLOWED,
        "How many candidates are taken from each side: 12 times as many, at most 200.",
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
    min_score: float = setting(0.0, Number(0, 1), ALLOWED, "Results that score less are left out.")
    hybrid: HybridSettings = group(HybridSettings)
    temporal_decay: TemporalDecaySettings = group(TemporalDecaySettings)
    mmr: MmrSettings = group(MmrSettings)


@value
class RerankSettings:
    """A second look at the best results by a model that reads them together with the question; it is an extra."""

    mode: str = setting(
        "auto",
        OneOf("auto", "always", "off"),
        ALLOWED,
        "`auto`: for agents where it is installed, and for people who ask for it with `--deep`; `always`; `off`.",
    )
    deadline_ms: int = setting(
        300,
        Whole(10, 60_000),
        ALLOWED,
        "Longest time to read for; what was read by then counts, and an answer says so when that was little.",
    )
    results: int = setting(24, Whole(2, 64), ALLOWED, "How many of the best results are read.")


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
class RecallSettings:
    """What is written down about what agents were given."""

    enabled: bool = setting(
        True, Flag(), KEEPS, "Write down what agents asked and were given; `plainmind recalls` shows it."
    )
    days: int = setting(90, Whole(1, 36_500), KEEPS, "Days that it is kept.")


@value
class LimitSettings:
    """How much recalled text may reach a model at once."""

    max_results: int = setting(6, Whole(1, 200), ALLOWED, "Most results given to a model.")
    max_snippet_chars: int = setting(700, Whole(40, 20_000), ALLOWED, "Longest snippet.")
    max_injected_chars: int = setting(4000, Whole(40, 1_000_000), ALLOWED, "All snippets together.")
    max_start_chars: int = setting(20_000, Whole(0, 1_000_000), ALLOWED, "What a session begins with.")
    timeout_ms: int = setting(4000, Whole(100, 600_000), ALLOWED, "Longest wait for an answer.")


@value
class ScopeSettings:
    """In which conversations the memory may be seen; the first rule that matches decides."""

    default: str = setting("deny", OneOf("deny", "allow"), SHOWS, "What holds where no rule matches.")
    rules: tuple[ScopeRule, ...] = setting(
        (ScopeRule("allow", chat_type="direct"),),
        Rules(),
        SHOWS,
        "Exceptions by kind of chat, channel or key.",
    )


@value
class Settings:
    """Everything that can be set: here what the kernel reads, in sections of their own what guests do."""

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
        ("memory",),
        SomeOf("memory", "sessions"),
        READS,
        "What is searched: memory files, transcripts. Until you choose, also what was imported.",
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
    redact_notes: bool = setting(
        True,
        Flag(),
        SENDS,
        "Hide secrets of notes in what agents are shown; files stay as they are.",
        name="redaction.notes",
    )
    reserve_tokens_floor: int = setting(
        20_000, Whole(0, 10_000_000), ALLOWED, "Tokens of the context window that stay free."
    )
    provider_access: Mapping[str, ProviderAccess] = setting(
        {}, Providers(), SPENDS, "Keys and addresses by provider.", name="models.providers", secret=True
    )
    send_sessions: bool = setting(
        False,
        Flag(),
        SENDS,
        "Let the provider see transcripts too; else words alone find them.",
        name="remote.sendSessions",
    )
    chunking: ChunkingSettings = group(ChunkingSettings)
    sync: SyncSettings = group(SyncSettings)
    query: QuerySettings = group(QuerySettings)
    rerank: RerankSettings = group(RerankSettings)
    cache: CacheSettings = group(CacheSettings)
    store: StoreSettings = group(StoreSettings)
    sessions: SessionSettings = group(SessionSettings)
    local: LocalSettings = group(LocalSettings)
    limits: LimitSettings = group(LimitSettings)
    history: HistorySettings = group(HistorySettings)
    recalls: RecallSettings = group(RecallSettings)
    scope: ScopeSettings = group(ScopeSettings)
    guests: Mapping[str, Any] = field(
        default_factory=dict, repr=False
    )  # what was set for guests, by full names

    def section(self, kind: type[T]) -> T:
        """The settings of a guest, as it declares them: defaults, and what was set."""
        return build(kind, f"{kind.section}.", self.guests)  # type: ignore[attr-defined]


def build(tree: type[T], prefix: str, values: Mapping[str, Any]) -> T:
    """Make a section from checked values by full name, and defaults for the rest."""
    heads = {name[len(prefix) :].partition(".")[0] for name in values if name.startswith(prefix)}
    given: dict[str, Any] = {}
    for name, each in members(tree).items() if heads else ():
        if "group" in each.metadata:
            if name in heads:
                given[each.name] = build(each.metadata["group"], f"{prefix}{name}.", values)
        elif prefix + name in values:
            given[each.name] = values[prefix + name]
    return tree(**given)


def members(tree: type[Any]) -> Mapping[str, Field]:
    """The settings and groups of a section by the names that files have for them: `maxResults`."""
    if tree not in _MEMBERS:
        declared = (each for each in fields(tree) if each.metadata)
        _MEMBERS[tree] = {each.metadata["name"] or _camel_case(each.name): each for each in declared}
    return _MEMBERS[tree]


def _camel_case(attribute: str) -> str:
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)
