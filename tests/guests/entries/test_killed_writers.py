"""A program that is killed in the middle of storing or forgetting: what it acknowledged holds, and nothing is half."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.guests.entries.conftest import files_with
from tests.support.hashing_embedder import HashingEmbedder

from plainmind.base.model import EVERY_SCOPE, PRIVATE
from plainmind.guests.entries.memory import open_entries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = textwrap.dedent(
    """
    import sys
    from tests.support.hashing_embedder import HashingEmbedder
    from plainmind.guests.entries.memory import open_entries

    folder, driver, what = sys.argv[1:4]
    entries = open_entries(folder, HashingEmbedder(), driver=driver)
    print("ready", flush=True)
    for argument in sys.argv[4:]:
        if what == "store":
            print(entries.store(f"canary{argument} sings its song", scope="private").entry.id, flush=True)
        else:
            entries.forget([argument], scopes=frozenset({"*"}))
            print(argument, flush=True)
    """
)


def killed(folder: Path, driver: str, what: str, *arguments: str, after: int) -> list[str]:
    """Run the program until it has acknowledged so much, and kill it at once; what it acknowledged."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), driver, what, *arguments],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        told = [program.stdout.readline().strip() for _ in range(after)]
        program.kill()
        return [*told, *(line.strip() for line in program.stdout if line.endswith("\n"))]


@pytest.mark.parametrize("driver", ["sqlite", "lancedb"])
def test_what_was_acknowledged_holds(tmp_path, driver):
    numbers = [str(number) for number in range(100, 160)]
    stored = killed(tmp_path, driver, "store", *numbers, after=6)
    entries = open_entries(str(tmp_path), HashingEmbedder(), driver=driver)
    there = {entry.id: entry for entry in entries.list(scopes=EVERY_SCOPE)}
    assert set(stored) <= there.keys()
    for entry in there.values():
        word = entry.text.split()[0]
        assert entries.recall(word, scopes=EVERY_SCOPE).found[0].entry == entry
    entries.close()

    gone = killed(tmp_path, driver, "forget", *stored, after=3)
    for id_ in gone:
        assert files_with(tmp_path, there[id_].text.split()[0]) == []
    entries = open_entries(str(tmp_path), HashingEmbedder(), driver=driver)
    left = {entry.id for entry in entries.list(scopes=EVERY_SCOPE)}
    assert left.isdisjoint(gone)
    assert entries.store("another word", scope=PRIVATE).entry is not None
    entries.close()
    for id_ in there.keys() - left:
        assert files_with(tmp_path, there[id_].text.split()[0]) == []
    assert len(left) >= len(there) - len(gone) - 1  # the one that was under way may be gone or not
