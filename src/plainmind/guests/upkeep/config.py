"""The settings of upkeep, `tidy.*`."""

# ruff: noqa: FBT003 -- the first argument of `setting` is the default, often True or False

from __future__ import annotations

from plainmind.base.value import value
from plainmind.config.kinds import ALLOWED, KEEPS, SPENDS, Flag, SomeOf, Whole, setting
from plainmind.config.settings import Settings
from plainmind.guests.upkeep.model import KINDS


@value
class TidyConfig:
    """What `plainmind tidy` may do by itself, and when it looks."""

    section = "tidy"

    accept: tuple[str, ...] = setting(
        (),
        SomeOf(*(kind for kind in KINDS if kind != "superseded"), may_be_empty=True),
        KEEPS,
        "Kinds of proposals that a run accepts by itself; `undo` takes a run back. `superseded` is always asked.",
    )
    after_chat: bool = setting(True, Flag(), ALLOWED, "Look for proposals when a `chat` ends.")
    by_hook: bool = setting(
        True, Flag(), ALLOWED, "Look for proposals once a day when a connected agent ends a conversation."
    )
    use_model: bool = setting(
        False, Flag(), SPENDS, "Let the model of `chat.model` choose among lines too, in every run."
    )
    max_tokens: int = setting(
        20_000, Whole(500, 10_000_000), SPENDS, "Most tokens that a run may ask of the model."
    )
    model_timeout_ms: int = setting(
        60_000, Whole(1_000, 3_600_000), SPENDS, "Longest that a run waits for the model."
    )
    large_chars: int = setting(
        16_000,
        Whole(1_000, 10_000_000),
        ALLOWED,
        "Characters from which MEMORY.md is too large: a conversation begins with at most 20,000.",
    )


@value
class TidyValues:
    """The settings as upkeep takes them."""

    accept: tuple[str, ...]
    after_chat: bool
    by_hook: bool
    use_model: bool
    max_tokens: int
    model_timeout_s: float
    large_chars: int


def tidy_values(settings: Settings) -> TidyValues:
    """Translate them."""
    tidy = settings.section(TidyConfig)
    return TidyValues(
        accept=tidy.accept,
        after_chat=tidy.after_chat,
        by_hook=tidy.by_hook,
        use_model=tidy.use_model,
        max_tokens=tidy.max_tokens,
        model_timeout_s=tidy.model_timeout_ms / 1000,
        large_chars=tidy.large_chars,
    )
