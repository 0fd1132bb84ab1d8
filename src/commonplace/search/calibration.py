"""From a mix of signals to a score that a person can read and that means the same for every question."""

from __future__ import annotations

import math

# Measured on answered questions: below the middle fewer than one line in twenty was evidence.
MIDDLE = 0.22
STEEPNESS = 9.0
# An exact id, error string or symbol is what was asked for, however little else matches.
EXACT_TOKEN_FLOOR = 0.5


def calibrated(raw: float, *, has_exact_token: bool) -> float:
    """Map a mix of signals to 0..1: 0 for nothing in common, 0.35 where noise begins, 1 for a perfect match."""
    low, high = _logistic(0.0), _logistic(1.0)
    score = (_logistic(max(0.0, min(1.0, raw))) - low) / (high - low)
    return max(score, EXACT_TOKEN_FLOOR) if has_exact_token else score


def _logistic(raw: float) -> float:
    return 1.0 / (1.0 + math.exp(-STEEPNESS * (raw - MIDDLE)))
