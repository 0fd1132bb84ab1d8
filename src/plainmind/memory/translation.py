"""Settings, translated into the small values that the parts of a memory are made of."""

from __future__ import annotations

from plainmind.base.errors import ConfigError
from plainmind.base.guests import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from plainmind.agent.protocol import Limits
    from plainmind.agent.scope import Rule
    from plainmind.config.kinds import ExtraPath as ConfiguredPath
    from plainmind.config.load import Loaded
    from plainmind.config.settings import Settings
    from plainmind.notes.discovery import ExtraPath
    from plainmind.search.engine import SearchSettings
    from plainmind.search.snippets import Weights

# Guests that have settings of their own for what the kernel makes: more places to read, and the options of a store.
_MORE_PATHS = {"qmd": "plainmind.guests.qmd.config:more_paths"}
_STORE_OPTIONS = {
    "lancedb": "plainmind.guests.lancedb.config:store_options",
    "postgres": "plainmind.guests.postgres.config:store_options",
}


def search_settings(loaded: Loaded) -> SearchSettings:
    """Translate the settings of a search. The mix that was measured best holds unless weights were set."""
    from plainmind.search.engine import Diversity, Recency, SearchSettings

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
        proposals=min(200, 12 * query.hybrid.candidate_multiplier),
    )


def _weights(loaded: Loaded) -> Weights:
    from plainmind.search.snippets import Weights

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
    if settings.backend in _MORE_PATHS:
        from plainmind.base.value import replace

        more = named(_MORE_PATHS[settings.backend])(settings)
        paths += [replace(path, under=settings.backend) for path in extra_paths(more)]
    return paths


def store_options(
    driver: str, settings: Settings, environ: Mapping[str, str], **instead: str | None
) -> Mapping[str, str]:
    """What the factory of a store takes beside its folder; `instead` wins over the settings."""
    if driver not in _STORE_OPTIONS:
        return {}
    options: Mapping[str, str | None] = named(_STORE_OPTIONS[driver])(settings, environ, **instead)
    return {name: option for name, option in options.items() if option is not None}


def scope_rules(settings: Settings) -> tuple[Rule, ...]:
    """Translate the rules about who may use the memory."""
    from plainmind.agent.scope import Rule

    return tuple(
        Rule(rule.action, rule.chat_type, rule.channel, rule.key_prefix) for rule in settings.scope.rules
    )


def limits_of(settings: Settings) -> Limits:
    """Translate how much recalled text may reach a model."""
    from plainmind.agent.protocol import Limits

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
