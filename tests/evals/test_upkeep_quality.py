"""The proposals of `tidy` on notes of six people, in English, Chinese and German, stay as right as the page says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from scripts import measure_upkeep

PAGE = Path(__file__).resolve().parents[2] / "docs" / "upkeep.md"
# Least share that is right, and least share that is found.
FLOORS = {
    "repeated and restated": (0.95, 0.8),
    "superseded": (0.6, 0.6),
    "keep": (0.7, 0.7),
    "stale": (0.9, 0.8),
    "expiry": (0.9, 0.8),
}


@cache
def scores(half: str) -> dict[str, measure_upkeep.Score]:
    return measure_upkeep.measure_all([name for name in measure_upkeep.names() if name.endswith(half)])


PARTS = ["home", "work", "club", "shop", "trip"]


@pytest.mark.parametrize("half", PARTS)
@pytest.mark.parametrize("kind", FLOORS)
def test_enough_of_a_kind_is_right_and_found(half: str, kind: str) -> None:
    right, found = FLOORS[kind]
    score = scores(half)[kind]

    assert score.planted >= 3 or half == "trip"
    assert score.share_right >= right, score.wrong
    assert score.share_found >= found, score.missed


@pytest.mark.parametrize("half", PARTS)
def test_what_stands_in_every_log_is_never_kept_for_good(half: str) -> None:
    assert scores(half)["keep"].wrong == []


def test_the_page_says_what_is_measured() -> None:
    text = PAGE.read_text(encoding="utf-8")

    for half in PARTS:
        for line in measure_upkeep.table(scores(half)):
            assert line in text
