"""The stores that the contract suites run on: a new store adds one line to OPENERS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plainmind.index.protocol import IndexStore
from plainmind.index.store import open_store


def _in_folder(driver: str) -> Callable[[Path], IndexStore]:
    return lambda folder: open_store(driver, folder=str(folder / "index"))


def _on_a_server(folder: Path) -> IndexStore:
    from tests.support.postgres_server import open_postgres_store

    return open_postgres_store(folder)


# By driver: what opens a store of its own, never built, for a test with this folder.
OPENERS: dict[str, Callable[[Path], IndexStore]] = {
    "memory": _in_folder("memory"),
    "sqlite": _in_folder("sqlite"),
    "lancedb": _in_folder("lancedb"),
    "postgres": _on_a_server,
}
DRIVERS = sorted(OPENERS)
# What a dictionary answers in microseconds takes others milliseconds, and some properties ask thousands of times.
_PATIENCE_S = {"postgres": 60, "lancedb": 60}
PARAMS = [
    pytest.param(driver, marks=pytest.mark.timeout(_PATIENCE_S[driver])) if driver in _PATIENCE_S else driver
    for driver in DRIVERS
]


def open_for_test(driver: str, folder: Path) -> IndexStore:
    """A store that was never built, in a place that no other test uses."""
    return OPENERS[driver](folder)
