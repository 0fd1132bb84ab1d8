"""An index whose bytes change on the disk: every answer is right all the same, and says what had to be done for it.

`PLAINMIND_FAULTS=full` strikes every block of an index in every way; the suite takes a sample.
"""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import apsw
import pytest
from tests.support.damage import QUESTIONS, Attack, Specimen

from plainmind.base.errors import IndexCorrupt
from plainmind.index.drivers.sqlite import files as index_files

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SAMPLE = 4
SQLITE = {"store": {"driver": "sqlite"}}


@pytest.fixture
def chance(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.mark.timeout(3600 if FULL else 120)
def test_a_damaged_index_answers_rightly_and_says_so(tmp_path: Path, chance: random.Random) -> None:
    specimen = Specimen(tmp_path, SQLITE, chance, files=24 if FULL else 5, leaves_log=True)
    attacks = list(specimen.attacks("*"))
    kinds = {each.file.partition(".")[2] or each.file for each in attacks}
    assert {"sqlite", "sqlite-wal", "CURRENT"} <= kinds
    outcome = specimen.suffer(attacks if FULL else chance.sample(attacks, SAMPLE))

    print(outcome)
    assert not outcome.failures, str(outcome)


def test_no_bit_of_a_page_can_change_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "gen-000001.sqlite"
    index_files.create(str(path), write_ahead=False).close()
    whole = path.read_bytes()
    file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
    checked = index_files._CheckedFile(
        "", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0]
    )
    start = 2 * 8_192
    for bit in range(0, 8 * 8_192, 1 if FULL else 61):
        at = start + bit // 8
        file.xWrite(bytes([whole[at] ^ 1 << bit % 8]), at)
        with pytest.raises(IndexCorrupt, match="page 3 has changed"):
            checked.xRead(8_192, start)
        with pytest.raises(IndexCorrupt, match="page 3 has changed"):
            checked.xRead(20, start)  # the beginning of a page, too, is only read with all of it
        file.xWrite(whole[at : at + 1], at)
    assert checked.xRead(8_192, start) == whole[start : start + 8_192]


def test_a_page_in_the_place_of_another_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "gen-000001.sqlite"
    index_files.create(str(path), write_ahead=False).close()
    pages = path.read_bytes()
    path.write_bytes(pages[: 2 * 8_192] + pages[3 * 8_192 : 4 * 8_192] + pages[3 * 8_192 :])

    with pytest.raises(IndexCorrupt, match="page 3 has changed"):
        index_files.connect(str(path), for_writing=False).execute("PRAGMA integrity_check").fetchall()


def test_a_search_reads_the_files_when_no_index_can_take_the_place_of_a_damaged_one(
    tmp_path: Path, chance: random.Random
) -> None:
    specimen = Specimen(tmp_path, SQLITE, chance, files=4)
    (database,) = specimen.index.glob("gen-*.sqlite")
    recent = [{"at": time.time() - 60, "reason": "a disk that forgets"}] * 3
    (specimen.index / "recoveries.json").write_text(json.dumps(recent))
    Attack("zeroed", database.name, 0).strike(specimen.index, chance)

    with specimen.open() as memory:
        for number in (0, QUESTIONS - 1):
            result = memory.search(specimen.questions[number])
            assert [hit.path for hit in result.hits] == [path for path, *_ in specimen.expected[number]]
            (told,) = (each for each in result.degraded if "answered from your files alone" in each)
            assert "3 times within an hour" in told


def test_damage_that_is_met_again_by_processes_at_once_is_mended_once(
    tmp_path: Path, chance: random.Random
) -> None:
    specimen = Specimen(tmp_path, SQLITE, chance, files=4)
    (database,) = specimen.index.glob("gen-*.sqlite")
    Attack("zeroed", database.name, 2).strike(specimen.index, chance)
    answers = specimen.ask_elsewhere(specimen.questions[0], processes=3)

    assert answers == [[path for path, *_ in specimen.expected[0]]] * 3
    with specimen.open() as memory:
        assert memory.index.store.describe()["recoveries"] == 1


def test_who_dies_while_an_index_is_set_aside_leaves_nothing_that_is_not_swept_up(tmp_path: Path) -> None:
    folder = index_files.IndexFolder(str(tmp_path))
    (tmp_path / "bad-000001.sqlite-wal").write_bytes(b"text")  # its database had no time to follow

    assert folder.bad() == ["bad-000001.sqlite"]
    folder.delete_bad()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(3600 if FULL else 120)
def test_a_damaged_index_of_lancedb_answers_rightly_and_says_so(
    tmp_path: Path, chance: random.Random
) -> None:
    pytest.importorskip("lancedb")
    specimen = Specimen(tmp_path, {"store": {"driver": "lancedb"}}, chance, files=24 if FULL else 4)
    # Bytes that change without a file's length: of the tables, their manifests and our own checksums and pointer.
    attacks = [each for each in specimen.attacks("*") if not each.file.endswith((".lock", _HINT))]
    kinds = {each.file.rpartition(".")[2] for each in attacks}
    assert {"lance", "manifest", "sums"} <= kinds
    outcome = specimen.suffer(attacks if FULL else chance.sample(attacks, SAMPLE))

    print(outcome)
    assert not outcome.failures, str(outcome)


_HINT = "latest_version_hint.json"  # our pointer names the version: LanceDB's own hint is never read


@pytest.mark.parametrize(("driver", "files"), [("sqlite", "gen-*.sqlite"), ("lancedb", "*.lance")])
@pytest.mark.timeout(300)
def test_doctor_that_verifies_names_the_damage_and_the_next_one_finds_a_whole_index(
    tmp_path: Path, chance: random.Random, driver: str, files: str
) -> None:
    if driver == "lancedb":
        pytest.importorskip("lancedb")
    specimen = Specimen(tmp_path, {"store": {"driver": driver}}, chance, files=3)
    for attack in chance.sample(list(specimen.attacks(files, ["flipped", "zeroed"])), 6 if FULL else 1):
        specimen.restore()
        attack.strike(specimen.index, chance)
        with specimen.open() as memory:
            told = [check for check in memory.doctor(verify=True) if check.name.startswith("index")]
        assert any("damaged" in check.detail and check.verdict != "ok" for check in told), (attack, told)
        with specimen.open() as memory:
            compared = [check for check in memory.doctor(verify=True) if check.name == "index equals files"]
        assert [check.verdict for check in compared] == ["ok"], attack
        assert specimen.ask_all() == specimen.expected
