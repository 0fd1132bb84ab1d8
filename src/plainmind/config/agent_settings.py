"""The settings of an agent's side: who may see the memory, how much of it at once, flush, chat model, and entries."""

# ruff: noqa: FBT003 -- the first argument of `setting` is the default, often True or False

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import value
from plainmind.config.groups import ALLOWED, KEEPS, SENDS, SHOWS, SPEAKS, SPENDS, setting
from plainmind.config.kinds import Flag, Number, OneOf, Text, TextTable, Whole
from plainmind.config.structured import Rules, ScopeRule


@value
class MemoryFlushSettings:
    """The silent turn that saves what lasts before a conversation is compacted."""

    enabled: bool = setting(True, Flag(), ALLOWED, "Ask the model to save what lasts.")
    soft_threshold_tokens: int = setting(
        4000, Whole(0, 10_000_000), ALLOWED, "How long before the compaction to ask, in tokens."
    )
    prompt: str | None = setting(None, Text(optional=True), SPEAKS, "The request, instead of ours.")
    system_prompt: str | None = setting(
        None, Text(optional=True), SPEAKS, "The system prompt of that turn, instead of ours."
    )


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
class ChatSettings:
    """The model that `plainmind chat` and `plainmind flush` talk to."""

    provider: str = setting(
        "openai",
        OneOf("openai", "anthropic"),
        SENDS,
        "The language of the endpoint: `openai` for every compatible server, or `anthropic`.",
    )
    model: str | None = setting(None, Text(optional=True), SPENDS, "The model; there is no default.")
    base_url: str | None = setting(
        None,
        Text("an http:// or https:// address", shape=r"https?://[^\s/]\S*", optional=True),
        SENDS,
        "Address of the endpoint, instead of the provider's own, such as http://127.0.0.1:11434/v1.",
    )
    api_key: str | None = setting(
        None,
        Text(optional=True),
        SPENDS,
        "The key, or `env:NAME`; unset: OPENAI_API_KEY or ANTHROPIC_API_KEY, for the provider's own address.",
        secret=True,
    )
    headers: Mapping[str, str] = setting(
        {}, TextTable(), SENDS, "Headers sent with each request.", secret=True
    )
    proxy: str | None = setting(
        None,
        Text("an http:// address", shape=r"http://[^\s/]\S*", optional=True),
        SENDS,
        "A proxy on the way to the endpoint; none is ever taken from the environment.",
        secret=True,
    )
    context_window: int | None = setting(
        None,
        Whole(1_000, 100_000_000, optional=True),
        SPENDS,
        "Tokens that the model takes; unset is 128,000, for Anthropic 200,000.",
    )
    max_output_tokens: int | None = setting(
        None,
        Whole(1, 10_000_000, optional=True),
        SPENDS,
        "Longest answer; unset is what the server gives, for Anthropic 8,192.",
    )
    timeout_ms: int = setting(
        300_000, Whole(1000, 3_600_000), SPENDS, "Longest silence of the endpoint before it is given up."
    )
    max_tool_rounds: int = setting(
        12, Whole(1, 200), SPENDS, "How often in one turn the model may use tools before it has to answer."
    )
    keep_messages: int = setting(
        8, Whole(0, 1000), SPENDS, "Messages that stay in the context, word for word, when it is compacted."
    )
    system_prompt: str | None = setting(
        None, Text(optional=True), SPEAKS, "The system prompt, instead of ours."
    )


@value
class EntrySettings:
    """The entry memory: single sentences with a category and an importance."""

    enabled: bool = setting(
        False, Flag(), SENDS, "Give agents the tools of the entry memory, beside those of the notes."
    )
    driver: str = setting(
        "lancedb", OneOf("lancedb", "sqlite"), KEEPS, "What finds entries again; LanceDB is an extra."
    )
    path: str = setting(
        "{home}/entries/{agentId}",
        Text(
            "a path in which nothing but {home} and {agentId} is filled in",
            shape=r"(?:[^{}]|\{home\}|\{agentId\})+",
        ),
        KEEPS,
        "Folder of the entries; `{home}` and `{agentId}` are filled in.",
    )
    auto_recall: bool = setting(
        True, Flag(), SENDS, "Begin a turn of `chat` with the entries that it is clearly about."
    )
    recall_max_results: int = setting(3, Whole(1, 20), ALLOWED, "Most entries that a turn begins with.")
    recall_min_score: float = setting(
        0.5, Number(0, 1), ALLOWED, "Entries that score less are not given without being asked for."
    )
    auto_capture: bool = setting(
        False, Flag(), KEEPS, "Propose what you say in `chat` for keeping; it waits until you accept it."
    )
    capture_max_chars: int = setting(500, Whole(100, 2_000), ALLOWED, "Longer messages are not proposed.")
    duplicate_from: float = setting(
        0.95, Number(0.5, 1), ALLOWED, "Similarity from which an entry may say the same as another."
    )
