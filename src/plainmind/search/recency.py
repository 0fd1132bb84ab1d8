"""How age changes a score: newer wins between equals, and old answers are never buried."""

from __future__ import annotations

import math
from datetime import date

from plainmind.base.value import value


@value
class Recency:
    """Exponential decay with a floor.

    With `floor` 0 it is the plain `score × 2^(-age / half_life)`, which takes a year-old answer to nothing: on
    conversations a year old it loses half of what could be found. With the default a perfect old answer
    loses at most a twentieth, so age only decides between answers that are about as good.
    """

    enabled: bool = True
    half_life_days: float = 30.0
    floor: float = 0.95
    floor_when_asked: float = 0.85  # for questions about what is lately, latest or current

    def factor(self, day: str | None, *, today: date, asked_for_recent: bool = False) -> float:
        """What to multiply a score with; 1 for evergreen text and for days to come."""
        if not self.enabled or day is None:
            return 1.0
        try:
            age_days = (today - date.fromisoformat(day)).days
        except ValueError:
            return 1.0
        if age_days <= 0:
            return 1.0
        decayed = math.exp(-math.log(2) / self.half_life_days * age_days)
        floor = min(self.floor, self.floor_when_asked) if asked_for_recent else self.floor
        return floor + (1.0 - floor) * decayed
