"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(happened: Callable[[], object], seconds: float = 60.0) -> None:
    """Look again and again; it fails only where what is waited for does not come."""
    last = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < last, "waited in vain"
        time.sleep(0.005)
