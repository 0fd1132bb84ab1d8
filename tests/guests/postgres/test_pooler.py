"""Behind PgBouncer in transaction mode, where nothing outlives a transaction, everything works as without it."""

from __future__ import annotations

import threading

import psycopg
import pytest
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.pooler import pooled, pooler_program
from tests.support.postgres_server import SCHEMA, open_postgres_store, running_server

from plainmind.base.errors import IndexUnavailable
from plainmind.guests.postgres.connections import locks_of
from plainmind.guests.postgres.store import PostgresStore

pytestmark = [
    pytest.mark.timeout(90),
    pytest.mark.skipif(pooler_program() is None, reason="pgbouncer is not installed"),
]


@pytest.fixture
def dsn():
    if not (running_server().folder / "data").exists():
        pytest.skip("the socket of this server is not known")
    with pooled(running_server().folder) as dsn:
        yield dsn


@pytest.fixture
def opened(dsn, tmp_path):
    stores = []

    def open_one():
        stores.append(
            PostgresStore(dsn, agent=f"agent of {tmp_path}", workspace="notes", schema=SCHEMA, wait_s=60)
        )
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


def test_an_index_is_built_searched_changed_erased_and_rebuilt(opened):
    store = opened()
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    for number in range(12):  # often enough for statements to be prepared
        put(store, f"{number}.md", f"note {number}")
        assert found_texts(store, f"{number}") == [f"note {number}"]
    store.erase("memory", "3.md")
    assert found_texts(store, "3") == []
    before = store.digest()
    with store.rebuild(fingerprint(), reason="again") as fresh:
        put(fresh, "a.md", "the gateway")
        for number in set(range(12)) - {3}:
            put(fresh, f"{number}.md", f"note {number}")
    assert store.digest() == before
    assert store.describe()["generations"] == 1


def test_many_threads_share_few_connections(opened):
    first = opened()
    with first.rebuild(fingerprint(), reason="a test"):
        pass
    failures = []

    def work(number):
        store = opened()
        try:
            for turn in range(6):
                put(store, f"{number}.md", f"thread {number} turn {turn}")
                assert f"thread {number} turn {turn}" in found_texts(store, "turn", limit=50)
        except BaseException as error:  # noqa: BLE001 (told to the test below)
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(found_texts(first, "turn", limit=50)) == 6
    first.digest()


def test_what_somebody_builds_behind_a_pooler_stays_until_it_is_done(opened, tmp_path):
    store, direct = opened(), open_postgres_store(tmp_path)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "slowly built")
        for _ in range(3):  # each collects what nobody reads or builds
            with direct.rebuild(fingerprint(), reason="meanwhile") as other:
                put(other, "a.md", "built meanwhile")
        put(fresh, "b.md", "and still there")
    assert sorted(found_texts(store, "built", "still")) == ["and still there", "slowly built"]
    direct.close()


def test_no_lock_is_left_behind_in_the_connections_of_the_pooler(opened):
    store = opened()
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    built = [store.describe()["generation"]]

    def fail():
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            built.append(fresh.describe()["generation"])
            raise IndexUnavailable("on purpose")

    with pytest.raises(IndexUnavailable, match="on purpose"):
        fail()
    with psycopg.connect(running_server().dsn) as db:
        held = db.execute(
            """SELECT objid FROM pg_locks
                WHERE locktype = 'advisory' AND classid::bigint = %s AND objid::bigint = ANY(%s)""",
            (locks_of(SCHEMA).generation % 2**32, built),
        ).fetchall()
    assert held == []
