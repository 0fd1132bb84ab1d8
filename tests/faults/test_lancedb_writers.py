"""Several processes change one LanceDB index, some of them killed: nothing is lost, doubled or left lying about."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from tests.support.index_contents import fingerprint, found_texts, put

from plainmind.base.errors import IndexUnavailable
from plainmind.guests.lancedb.library import load
from plainmind.guests.lancedb.store import LanceStore

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
WRITERS, TURNS = (8, 8) if FULL else (4, 5)

load()  # takes seconds on a busy machine: before the clock of the test starts

WRITER = textwrap.dedent(
    """
    import sys
    from tests.support.index_contents import put
    from plainmind.guests.lancedb.store import LanceStore

    folder, name, turns = sys.argv[1:]
    store = LanceStore(folder)
    for turn in range(int(turns)):
        put(store, f"{name}-{turn}.md", f"{name} turn {turn}", "gateway")
        print(f"{name}-{turn}.md", flush=True)  # acknowledged: from now on it must be there
    store.close()
    """
)


def start(folder, name, turns, log):
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder), name, str(turns)],
            cwd=Path(__file__).parents[2],
            stdout=out,
            stderr=subprocess.PIPE,
        )


@pytest.fixture
def writers():
    """Processes by name; those that are left are ended with the test."""
    started: dict[str, subprocess.Popen] = {}
    yield started
    for writer in started.values():
        writer.kill()
        writer.communicate()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_many_writers_were_told_is_there_is_there_once_even_when_two_are_killed(tmp_path, writers):
    folder = tmp_path / "index"
    store = LanceStore(str(folder))
    with store.rebuild(fingerprint(), reason="a test"):
        pass
    logs = {f"w{number}": tmp_path / f"w{number}.log" for number in range(WRITERS)}
    writers |= {name: start(folder, name, TURNS, log) for name, log in logs.items()}
    dice = random.Random(7)
    for name in ("w0", "w1"):
        while not logs[name].read_bytes() and writers[name].poll() is None:
            time.sleep(0.01)
        time.sleep(dice.uniform(0, 0.2))
        writers[name].kill()
    for name, writer in writers.items():
        _, errors = writer.communicate(timeout=200)
        assert writer.returncode == 0 or name in {"w0", "w1"}, errors.decode()

    told = {line for log in logs.values() for line in log.read_text().split()}
    with store.reading() as reader:
        files = {path for _, path in reader.files()}
        chunks = reader.counts().chunks["memory"]
        assert reader.revision()[1] == len(files)  # one change each, and none was lost
    assert told <= files
    assert len(files) - len(told) <= 2  # a writer may have been killed between its change and its word
    assert chunks == 2 * len(files)
    lived = store.digest()
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for path in sorted(files):
            name, turn = path.removesuffix(".md").split("-")
            put(fresh, path, f"{name} turn {turn}", "gateway")
    assert store.digest() == lived
    assert len(found_texts(store, "gateway", limit=200)) == len(files)
    assert len(list(folder.rglob("*.lance"))) <= 4  # one table, with the few files of a fresh one
    store.close()


UNTIRING = textwrap.dedent(
    """
    import sys
    from datetime import timedelta
    from tests.support.index_contents import fingerprint, put
    from plainmind.guests.lancedb import place, table
    from plainmind.guests.lancedb.store import LanceStore

    table._TIDY_AFTER, table._KEPT = 2, timedelta(milliseconds=1)
    place._READERS_TIMEOUT_S = 0.05
    store = LanceStore(sys.argv[1])
    for turn in range(40):
        put(store, f"{turn % 3}.md", f"turn {turn}")
        if turn % 5 == 4:
            store.erase("memory", f"{turn % 3}.md")
        if turn % 13 == 12:
            with store.rebuild(fingerprint(), reason="a test") as fresh:
                put(fresh, "a.md", "the gateway")
    store.close()
    """
)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_readers_are_answered_or_told_to_ask_again_while_versions_and_tables_go_from_under_them(
    tmp_path, writers
):
    store = LanceStore(str(tmp_path / "index"))
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    writer = writers["untiring"] = subprocess.Popen(
        [sys.executable, "-c", UNTIRING, str(tmp_path / "index")],
        cwd=Path(__file__).parents[2],
        stderr=subprocess.PIPE,
    )
    answers = []
    while writer.poll() is None:
        cold = LanceStore(str(tmp_path / "index"))
        for each in (store, cold):
            try:
                answers.append(found_texts(each, "gateway"))
            except IndexUnavailable as told:
                answers.append(told.hint)
        cold.close()
    assert writer.returncode == 0, writer.communicate()[1].decode()

    assert {str(answer) for answer in answers} <= {"['the gateway']", "try again"}
    assert found_texts(store, "gateway") == ["the gateway"]
    assert store.describe()["recoveries"] == 0
    store.digest()
    store.close()
