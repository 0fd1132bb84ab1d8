"""Stores by name: strings instead of imports, so that nobody pays for a store they do not use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from plainmind.base.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.index.protocol import IndexStore

ENTRY_POINTS = "plainmind.stores"

_BUILT_IN: Mapping[str, str] = {
    "lancedb": "plainmind.guests.lancedb.store:open_lance_store",
    "memory": "plainmind.index.drivers.memory:open_memory_store",
    "postgres": "plainmind.guests.postgres.store:open_postgres_store",
    "sqlite": "plainmind.index.drivers.sqlite.store:SqliteStore",
}
# The options that a driver takes beside its folder.
_OPTIONS: Mapping[str, frozenset[str]] = {
    "lancedb": frozenset({"uri", "workspace"}),
    "postgres": frozenset({"dsn", "read_dsn", "schema", "workspace"}),
}
# The drivers that need packages which not every installation has: the extra that brings them.
_EXTRAS = frozenset({"lancedb", "postgres"})


def open_store(driver: str, **options: Any) -> IndexStore:
    """Open a store by the name of its driver, or by "module:factory"; `options` go to its factory."""
    return _factory(driver)(**options)


def store_options(driver: str, **settings: str | None) -> Mapping[str, str]:
    """Those of the settings of a store that its factory takes, where they are set."""
    taken = _OPTIONS.get(driver, frozenset())
    return {name: setting for name, setting in settings.items() if name in taken and setting is not None}


def _factory(driver: str) -> Callable[..., IndexStore]:
    target = _BUILT_IN.get(driver) or (driver if ":" in driver else _installed().get(driver))
    if target is None:
        known = ", ".join(sorted({*_BUILT_IN, *_installed()}))
        raise ConfigError(f"unknown store: `{driver}`", key="store.driver", hint=f"use one of {known}")
    module, _, name = target.partition(":")
    try:
        found: Callable[..., IndexStore] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        from plainmind.base.extras import install_hint

        missing = f"install it: {install_hint(driver)}" if driver in _EXTRAS else None
        raise ConfigError(
            f"the store `{driver}` cannot be loaded: {error}",
            key="store.driver",
            hint=missing or f"`{target}` must name a module and a factory in it",
        ) from error
    return found


def _installed() -> Mapping[str, str]:
    """What other packages offer."""
    from importlib.metadata import entry_points

    return {each.name: each.value for each in entry_points(group=ENTRY_POINTS)}
