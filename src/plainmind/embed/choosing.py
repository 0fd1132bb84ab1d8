"""Which provider embeds, and why that one: decided from what is configured, before anything is asked or loaded."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import value
from plainmind.embed.settings import AUTO, KEY_VARIABLES


@value
class PassedOver:
    """A provider that came before the chosen one, and why it was not taken.

    `is_configured`: somebody has meant it to be used, so they should hear of it.
    """

    provider: str
    reason: str
    is_configured: bool = False


@value
class Choice:
    """The provider to use. `why` completes "chosen because …"; no key is ever a part of it."""

    provider: str
    why: str
    passed_over: tuple[PassedOver, ...] = ()


@value
class LocalModel:
    """The model of this machine that is configured, if one is: `path` as it was written."""

    path: str | None = None
    exists: bool = False


@value
class KeyFound:
    """Where a provider's key comes from, or why there is none; never the key. `is_named`: one was meant to be there."""

    origin: str | None
    problem: str | None = None
    is_named: bool = False


def choose(requested: str, *, requested_by: str, local: LocalModel, keys: Mapping[str, KeyFound]) -> Choice:
    """Take the provider that was asked for; `auto` takes the first that could work, and the built-in one at last.

    The order of `auto` is: a local model that is there, then OpenAI, Gemini and Voyage by key. Nothing that leaves
    this machine is chosen without a key that somebody has put there for it.
    """
    if requested != AUTO:
        return Choice(requested, f"`provider` is set to it by {requested_by}")
    passed: list[PassedOver] = []
    if local.exists:
        return Choice("local", f"`local.modelPath` names {local.path}, which exists")
    passed.append(
        PassedOver(
            "local",
            "`local.modelPath` is not set" if local.path is None else f"there is no {local.path}",
            is_configured=local.path is not None,
        )
    )
    for name in KEY_VARIABLES:
        found = keys[name]
        if found.origin is not None:
            return Choice(name, f"its key is in {found.origin}", tuple(passed))
        why_not = found.problem or f"no key: {' and '.join(KEY_VARIABLES[name])} not set"
        passed.append(PassedOver(name, why_not, found.is_named))
    return Choice("builtin", "no other provider is configured", tuple(passed))
