"""Engines by name: strings instead of imports, so that nobody pays for an engine they do not use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from plainmind.base.errors import ConfigError
from plainmind.memory.backend import MemoryBackend, Surroundings

ENTRY_POINTS = "plainmind.backends"

_BUILT_IN: Mapping[str, str] = {"qmd": "plainmind.guests.qmd.backend:open_qmd"}


def open_backend(name: str, surroundings: Surroundings) -> MemoryBackend:
    """Make an engine by its name, or by "module:factory". Raises ConfigError."""
    return _factory(name)(surroundings)


def _factory(name: str) -> Callable[[Surroundings], MemoryBackend]:
    target = _BUILT_IN.get(name) or (name if ":" in name else _installed().get(name))
    if target is None:
        known = ", ".join(sorted({"builtin", *_BUILT_IN, *_installed()}))
        raise ConfigError(f"unknown back end: `{name}`", key="backend", hint=f"use one of {known}")
    module, _, attribute = target.partition(":")
    try:
        found: Callable[[Surroundings], MemoryBackend] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"the back end `{name}` cannot be loaded: {error}",
            key="backend",
            hint=f"`{target}` must name a module and a factory in it",
        ) from error
    return found


def _installed() -> Mapping[str, str]:
    """What other packages offer."""
    from importlib.metadata import entry_points

    return {each.name: each.value for each in entry_points(group=ENTRY_POINTS)}
