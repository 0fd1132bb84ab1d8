"""Damage that somebody else does to the tables is noticed, and never shown to whom it does not belong."""

from __future__ import annotations

import psycopg
import pytest
from tests.support.index_contents import fingerprint, found_texts, put, seen_by
from tests.support.postgres_server import SCHEMA, open_postgres_store, running_server

from plainmind import Memory
from plainmind.base.errors import IndexCorrupt, IndexUnavailable
from plainmind.base.model import SHARED
from plainmind.guests.postgres.connections import plain_errors

DAMAGE = [
    "DELETE FROM chunks_{g} WHERE ordinal = 1",
    "DELETE FROM files_{g} WHERE path = 'a.md'",
    "INSERT INTO vectors_{g} SELECT 999, source, scope, vector FROM vectors_{g} LIMIT 1",
    "DELETE FROM postings_{g} WHERE term = 'studio'",
    "DELETE FROM segments_{g} WHERE scope = 'shared'",
    "DELETE FROM positions_{g} WHERE scope = 'shared'",
    "UPDATE chunks_{g} SET scope = 'shared' WHERE ordinal = 1",
    "UPDATE vectors_{g} SET scope = 'shared'",
    "UPDATE chunks_{g} SET length = length + 1 WHERE ordinal = 1",
    "UPDATE chunks_{g} SET end_line = end_line + 50 WHERE ordinal = 1",
    "UPDATE segments_{g} SET living = living - 1",
    "UPDATE postings_{g} SET counts = '\\x00' WHERE term = 'of'",
    "UPDATE postings_{g} SET positions = '\\xffff' WHERE term = 'of'",
    "UPDATE positions_{g} SET ids = ids || ids",
]


@pytest.fixture
def store(tmp_path):
    store = open_postgres_store(tmp_path)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "a studio", "one of two")
        put(fresh, "b.md", "shared studio", scope=SHARED)
    yield store
    store.close()


def damage(store, statement):
    """Change rows as a disk does, which tells no trigger."""
    with psycopg.connect(running_server().dsn) as db:
        db.execute("SET session_replication_role = replica")
        db.execute(f"SET search_path = {SCHEMA}, public")
        db.execute(statement.format(g=store.describe()["generation"]))


@pytest.mark.parametrize("statement", DAMAGE)
def test_tables_that_contradict_each_other_have_no_digest(store, statement):
    store.digest()
    damage(store, statement)
    with pytest.raises(IndexCorrupt) as raised:
        store.digest()
    assert "sync --force" in raised.value.hint


def test_a_segment_of_another_scope_shows_nobody_what_is_not_theirs(store):
    damage(store, "UPDATE segments_{g} SET scope = 'shared' WHERE scope = 'private'")
    with pytest.raises(IndexCorrupt, match="contradicts"):
        found_texts(store, "studio", where=seen_by(SHARED))


def test_a_damaged_index_is_whole_again_after_a_rebuild(store):
    damage(store, "DELETE FROM positions_{g}")
    with pytest.raises(IndexCorrupt):
        found_texts(store, "studio")
    with store.rebuild(fingerprint(), reason="damaged") as fresh:
        put(fresh, "a.md", "a studio")
    assert found_texts(store, "studio") == ["a studio"]


def test_what_is_being_built_can_be_looked_at_and_erased_from(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "a studio", "one of two")
        put(fresh, "b.md", "another studio")
        assert fresh.describe()["building"]
        assert fresh.sizes()["chunks"] == 3
        fresh.erase("memory", "b.md")
        before = fresh.digest()
        with pytest.raises(IndexUnavailable, match="cannot be rebuilt"):
            fresh.rebuild(fingerprint(), reason="again")
        fresh.close()

        def look_inside():
            with fresh.joined():
                fresh.digest()

        with pytest.raises(IndexUnavailable, match="joined"):
            look_inside()
    assert store.digest() == before
    assert found_texts(store, "studio") == ["a studio"]


def test_a_failed_change_takes_those_it_was_joined_with_along(store):
    def build():
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "first")
            with fresh.joined():
                put(fresh, "b.md", "second")
                with pytest.raises(Exception, match="numbers"):
                    put(fresh, "c.md", "third", dims=3)

    with pytest.raises(IndexUnavailable, match="joined with"):
        build()
    assert sorted(found_texts(store, "studio")) == ["a studio", "shared studio"]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("table", ["segments", "files"])
def test_rows_that_a_zeroed_page_has_taken_are_missed_and_the_files_answer(tmp_path, table):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("- The lighthouse is painted vermilion.\n")
    config = {
        "store.driver": "postgres",
        "store.dsn": running_server().app_dsn,
        "store.schema": SCHEMA,
        "store.workspace": str(tmp_path)[-40:],
    }
    with Memory(notes, home=tmp_path / "home", config=config) as memory:
        memory.sync()
        damage(memory.index.store, f"DELETE FROM {table}_{{g}}")

    with Memory(notes, home=tmp_path / "home", config=config) as memory:
        result = memory.search("vermilion")
        assert [hit.path for hit in result.hits] == ["MEMORY.md"]
        (told,) = result.degraded
        assert "was damaged and has been made anew" in told  # at once
        mended = memory.search("vermilion")
        assert [hit.path for hit in mended.hits] == ["MEMORY.md"]
        assert mended.degraded == ()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", [psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted])
def test_a_damaged_file_of_the_server_is_damage_of_the_index(kind):
    with pytest.raises(IndexCorrupt, match="damaged file"), plain_errors("read the index"):
        raise kind("invalid page in block 0 of relation base/5/65573")
