"""Eight hosts on one PostgreSQL that is killed and comes back: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.faults.index_worker import FILES, catch_up, index_file, read_once
from tests.faults.postgres_worker import open_shared
from tests.support.index_contents import fingerprint
from tests.support.postgres_server import server_of_its_own

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SECONDS = 60 if FULL else 10
WORKER = Path(__file__).with_name("postgres_worker.py")


@pytest.fixture
def server():
    with server_of_its_own() as server:
        yield server


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 150)
def test_eight_hosts_write_and_search_while_the_server_is_killed_twice(server, tmp_path):
    notes, made = tmp_path / "notes", fingerprint()
    notes.mkdir()
    for number in range(FILES):
        (notes / f"{number}.md").write_text("v-first")
    store = open_shared(server.app_dsn)
    with store.rebuild(made, reason="a test") as fresh:
        for number in range(FILES):
            index_file(fresh, notes, f"{number}.md", made)
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), role, server.app_dsn, str(notes), str(SECONDS), f"{role}{number}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for role in ("write", "search")
        for number in range(4)
    ]
    for _ in range(2):
        time.sleep(SECONDS / 3)
        server.kill()
        time.sleep(1)
        server.start()
    outcomes = [worker.communicate(timeout=SECONDS + 60) for worker in workers]

    assert [errors for _, errors in outcomes if errors] == []
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    done = [json.loads(said) for said, _ in outcomes]
    assert all(each["answered"] > 0 for each in done), done
    catch_up(store, notes, made)
    read_once(store)
    lived = store.digest()
    with store.rebuild(made, reason="to compare") as fresh:
        for number in range(FILES):
            index_file(fresh, notes, f"{number}.md", made)
    assert store.digest() == lived
    generations = store.describe()["generations"]
    store.close()
    assert generations == 1, "what killed hosts left behind was not collected"
