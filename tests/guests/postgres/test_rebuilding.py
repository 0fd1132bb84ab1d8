"""Rebuilds of several hosts, some of which die: one index answers, and nothing is left lying about."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import psycopg
import pytest
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import SCHEMA, open_postgres_store, running_server

from plainmind.base.errors import IndexUnavailable
from plainmind.guests.postgres.connections import GenerationGone, Session


@pytest.fixture
def store(tmp_path):
    store = open_postgres_store(tmp_path, application_name=f"r{os.getpid()}")
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the old gateway")
    yield store
    store.close()


def generations(store):
    return store.describe()["generations"]


def tables_of(generation):
    with psycopg.connect(running_server().dsn) as db:
        return db.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tablename LIKE %s",
            (SCHEMA, f"%\\_{generation}"),
        ).fetchone()[0]


def test_the_tables_of_an_old_generation_are_dropped(store):
    old = store.describe()["generation"]
    assert tables_of(old) == 6
    with store.rebuild(fingerprint(), reason="a test"):
        pass
    assert tables_of(old) == 0
    assert generations(store) == 1


def test_tables_that_somebody_still_reads_stay_until_the_next_rebuild(store):
    old = store.describe()["generation"]
    with store.reading() as reader:
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "b.md", "the new gateway")
        assert tables_of(old) == 6
        assert [path for _, path in reader.files()] == ["a.md"]
    with store.rebuild(fingerprint(), reason="a test"):
        pass
    assert tables_of(old) == 0


DYING = """
import sys
sys.path.insert(0, {root!r})
from tests.support.index_contents import fingerprint, put
from plainmind.guests.postgres.store import PostgresStore
store = PostgresStore({dsn!r}, agent={agent!r}, workspace="notes", schema={schema!r})
with store.rebuild(fingerprint(), reason="never finished") as fresh:
    put(fresh, "b.md", "half of an index")
    print("building", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_host_was_building_is_dropped_by_the_next(store):
    agent = store.describe()["agent"]
    script = DYING.format(root=os.getcwd(), dsn=running_server().app_dsn, agent=agent, schema=SCHEMA)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout.readline() == "building\n"
        assert generations(store) == 2
        with store.rebuild(fingerprint(), reason="while another builds") as fresh:
            put(fresh, "a.md", "the gateway")
        assert generations(store) == 2, "what somebody still builds must stay"
        host.send_signal(signal.SIGKILL)
        host.wait()
    for _ in range(50):  # the server may take a moment to notice
        with store.rebuild(fingerprint(), reason="after it died") as fresh:
            put(fresh, "a.md", "the gateway")
        if generations(store) == 1:
            break
    assert generations(store) == 1
    assert found_texts(store, "gateway", "half") == ["the gateway"]


def test_a_build_whose_server_was_restarted_is_not_published(store):
    def build():
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "b.md", "the new gateway")
            with psycopg.connect(running_server().dsn, autocommit=True) as db:
                db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
                    (f"r{os.getpid()}",),
                )

    with pytest.raises(IndexUnavailable):
        build()
    assert found_texts(store, "gateway") == ["the old gateway"]
    with store.rebuild(fingerprint(), reason="again"):
        pass
    assert generations(store) == 1


@pytest.mark.timeout(60)
def test_rebuilds_of_many_hosts_at_once_leave_one_whole_index(store, tmp_path):
    errors = []

    def rebuild(number):
        own = open_postgres_store(tmp_path)
        try:
            for _ in range(4):
                with own.rebuild(fingerprint(), reason=f"by {number}") as fresh:
                    put(fresh, "a.md", "the gateway", f"of host {number}")
                texts = sorted(found_texts(own, "gateway", "host"))
                assert len(texts) == 2
        except BaseException as error:  # noqa: BLE001 (told to the test below)
            errors.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=rebuild, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with store.rebuild(fingerprint(), reason="the last") as fresh:
        put(fresh, "a.md", "the gateway")
    assert generations(store) == 1
    store.digest()


def test_a_view_of_a_generation_that_is_being_dropped_looks_again(store, monkeypatch):
    looked = Session.look_up
    times = []

    def look_up(self, db):
        times.append(1)
        if len(times) == 1:
            raise GenerationGone
        return looked(self, db)

    monkeypatch.setattr(Session, "look_up", look_up)
    assert found_texts(store, "gateway") == ["the old gateway"]
    assert len(times) == 2
