"""Processes whose lines count as covered: a server that runs beside the tests, and nowhere in them."""

from __future__ import annotations

import os
from collections.abc import Mapping

TRACES_CHILDREN = "COVERAGE_PROCESS_CONFIG"
_kept: dict[str, str] = {}


def forbid() -> None:
    """Trace no process that is started from now on, unless it is meant to be: that takes longer than to start it."""
    config = os.environ.pop(TRACES_CHILDREN, None)
    if config is not None:
        _kept[TRACES_CHILDREN] = config


def traced(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that is traced where this one is."""
    return {**environment, **_kept}
