"""How many examples a property is tried with: some in each run of the tests, all of them by `make faults`."""

from __future__ import annotations

import os

SHARE = 1.0 if os.environ.get("PLAINMIND_FAULTS") == "full" else 0.4
USUAL = 100  # of a property that asks for no number


def examples(count: int = USUAL) -> int:
    """So many of `count` examples as this run has time for."""
    return max(1, round(SHARE * count))
