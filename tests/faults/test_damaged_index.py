"""An index whose bytes change on the disk: every answer is right all the same, and says what had to be done for it.

`PLAINMIND_FAULTS=full` strikes every block of an index in every way; the suite takes a sample.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.support.damage import QUESTIONS, Specimen

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SAMPLE = 8
# Blocks of files by store: what holds the index, and what says where it is.
STORES = {"sqlite": "gen-*.sqlite"}


@pytest.mark.timeout(3600 if FULL else 120)
@pytest.mark.parametrize("driver", STORES)
def test_a_damaged_index_answers_rightly_and_says_so(tmp_path: Path, seed: int, driver: str) -> None:
    if driver == "lancedb":
        pytest.importorskip("lancedb")
    chance = random.Random(seed)
    config = {"store": {"driver": driver}}
    specimen = Specimen(tmp_path, config, chance, files=QUESTIONS if FULL else 12)
    attacks = list(specimen.attacks(STORES[driver]))
    outcome = specimen.suffer(attacks if FULL else chance.sample(attacks, SAMPLE))

    print(outcome)
    assert not outcome.failures, str(outcome)
