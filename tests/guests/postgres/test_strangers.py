"""Rows that another program changes or deletes, tables that it empties or drops: every answer is right all the same.

`PLAINMIND_FAULTS=full` strikes every table in every way; the suite takes a sample.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import psycopg
import pytest
from tests.support.damage import Attack, Specimen
from tests.support.postgres_server import SCHEMA, running_server

from plainmind.guests.postgres.connections import KINDS

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SAMPLE = 3
ONE = "ctid = (SELECT ctid FROM {t} ORDER BY random() LIMIT 1)"
CHANGES = {
    "deleted": f"DELETE FROM {{t}} WHERE {ONE}",
    "emptied": "TRUNCATE {t}",
    "dropped": "DROP TABLE {t}",
    "of another scope": f"UPDATE {{t}} SET scope = 'shared' WHERE {ONE}",
}
BYTES = {"positions": ("ids", "lengths"), "postings": ("positions", "counts")}
ZEROED = "UPDATE {t} SET {c} = decode(repeat('00', length({c})), 'hex') WHERE " + ONE
FLIPPED = "UPDATE {t} SET {c} = set_byte({c}, 0, get_byte({c}, 0) # 1) WHERE " + ONE
CUT = "UPDATE {t} SET {c} = substr({c}, 1, length({c}) / 2) WHERE " + ONE
TEXTS = {
    "another text": f"UPDATE {{t}} SET text = 'nothing of this was ever written' WHERE {ONE}",
    "a text cut off": f"UPDATE {{t}} SET text = left(text, 5) WHERE {ONE}",
    "other lines": f"UPDATE {{t}} SET start_line = start_line + 7, end_line = end_line + 7 WHERE {ONE}",
}


def attacks() -> dict[Attack, str]:
    """Every kind of change, by its name and table."""
    found = {Attack(kind, table, 0): sql for table in KINDS for kind, sql in CHANGES.items()}
    found |= {Attack(kind, "chunks", 0): sql for kind, sql in TEXTS.items()}
    for table, columns in BYTES.items():
        for column in columns:
            for kind, sql in (("zeroed", ZEROED), ("flipped", FLIPPED), ("cut", CUT)):
                found[Attack(kind, table, columns.index(column))] = sql.replace("{c}", column)
    found[Attack("vectors that are others", "vectors", 0)] = (
        "UPDATE {t} a SET vector = b.vector FROM {t} b WHERE a.id <> b.id"
    )
    found[Attack("without its index", "postings", 0)] = "ALTER TABLE {t} DROP CONSTRAINT {t}_pkey"
    return found


@pytest.fixture
def chance() -> random.Random:
    return random.Random(14)


@pytest.fixture
def specimen(tmp_path: Path, chance: random.Random) -> Specimen:
    store = {
        "driver": "postgres",
        "dsn": running_server().app_dsn,
        "schema": SCHEMA,
        "workspace": str(tmp_path)[-40:],
    }
    return Specimen(tmp_path, {"store": store}, chance, files=12 if FULL else 4)


def strike(specimen: Specimen, attack: Attack, sql: str) -> None:
    with specimen.open() as memory:
        memory.sync()
        generation = memory.index.store.describe()["generation"]
    with psycopg.connect(running_server().dsn) as db:
        db.execute(f"SET search_path = {SCHEMA}, public")
        db.execute(sql.replace("{t}", f"{attack.file}_{generation}"))


@pytest.mark.timeout(3600 if FULL else 240)
def test_an_index_that_a_stranger_has_changed_answers_rightly_and_says_so(
    specimen: Specimen, chance: random.Random
) -> None:
    every = attacks()
    chosen = list(every) if FULL else chance.sample(list(every), SAMPLE)
    outcome = specimen.suffer(chosen, spoil=lambda attack: strike(specimen, attack, every[attack]))

    print(outcome)
    assert not outcome.failures, str(outcome)


@pytest.mark.timeout(240)
def test_doctor_that_verifies_names_what_a_stranger_did_and_the_next_one_finds_a_whole_index(
    specimen: Specimen, chance: random.Random
) -> None:
    every = attacks()
    for attack in chance.sample(list(every), 6 if FULL else 1):
        strike(specimen, attack, every[attack])
        with specimen.open() as memory:
            told = [check for check in memory.doctor(verify=True) if check.name.startswith("index")]
        if attack.kind != "without its index":  # which makes a search slow, and no answer wrong
            assert any("damaged" in check.detail and check.verdict != "ok" for check in told), (attack, told)
        with specimen.open() as memory:
            compared = [check for check in memory.doctor(verify=True) if check.name == "index equals files"]
        assert [check.verdict for check in compared] == ["ok"], attack
        assert specimen.ask_all() == specimen.expected
