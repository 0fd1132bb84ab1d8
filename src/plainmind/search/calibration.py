"""From a mix of signals to a score that a person can read and that means the same for every question."""

from __future__ import annotations

import math

# Measured on answered questions: 0.35 is where evidence ends (99 of 100 lines of evidence score more) and 0.8 where
# every second answer is evidence.
STEEPNESS = 3.6
# An exact id, error string or symbol is what was asked for, however little else matches.
EXACT_TOKEN_FLOOR = 0.5


def calibrated(raw: float, *, has_exact_token: bool) -> float:
    """Map a mix of signals to 0..1: 0 for nothing in common, 1 for a perfect match, steep where it matters."""
    score = (1.0 - math.exp(-STEEPNESS * max(0.0, min(1.0, raw)))) / (1.0 - math.exp(-STEEPNESS))
    return max(score, EXACT_TOKEN_FLOOR) if has_exact_token else score
