"""Chance that can be had again."""

from __future__ import annotations

import os
import time

import pytest


@pytest.fixture
def seed() -> int:
    """Another one each run; a failure shows the line that repeats it."""
    chosen = int(os.environ.get("PLAINMIND_SEED", time.time_ns() % 1_000_000))
    print(f"PLAINMIND_SEED={chosen}")
    return chosen
