"""Erased text is in no file of the server's tables; its log and its backups are another matter, and said so."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest
from tests.support.index_contents import fingerprint, found_texts, put
from tests.support.postgres_server import SCHEMA, open_postgres_store, running_server

from plainmind.base.errors import LockTimeout


@pytest.fixture
def words(tmp_path):
    """Words that no other test has: the server is theirs too."""
    own = sha256(str(tmp_path).encode()).hexdigest()[:8]
    return [f"kwisatz{own}haderach{number}z" for number in range(30)]


def files_with(words):
    """The files of tables, indexes and statistics in which one of the words stands."""
    with psycopg.connect(running_server().dsn, autocommit=True) as db:
        db.execute("CHECKPOINT")
        (data,) = db.execute("SHOW data_directory").fetchone()
    wanted = [word.encode() for word in words]
    found = []
    for file in Path(data, "base").rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):  # other tests make tables and drop them
            content = file.read_bytes()
            found += [file for word in wanted if word in content]
    return found


@pytest.fixture
def store(tmp_path, words):
    if not (running_server().folder / "data").exists():
        pytest.skip("the files of this server are not here")
    store = open_postgres_store(tmp_path)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "kept.md", *(f"plain text {number}" for number in range(40)))
        put(fresh, f"{words[0]}.md", *(f"the word is {word}" for word in words))
    yield store
    store.close()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_text_terms_and_names_of_erased_files_are_in_no_file_of_a_table(store, words):
    assert files_with(words[:1]) != []
    put(store, f"{words[0]}.md", *(f"the word was {word}" for word in words))
    store.erase("memory", f"{words[0]}.md")

    assert files_with(words) == []
    assert len(found_texts(store, "plain", limit=100)) == 40
    store.digest()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_what_was_removed_before_is_wiped_without_naming_it(store, words):
    put(store, "kept.md", *(f"plain text {number}" for number in range(40)))
    store.remove_file("memory", f"{words[0]}.md")
    assert files_with(words[:1]) != []

    store.erase("memory")

    assert files_with(words) == []
    assert len(found_texts(store, "plain", limit=100)) == 40
    store.digest()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_long_transaction_of_somebody_else_keeps_nothing(store, words):
    with psycopg.connect(running_server().dsn) as db:
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        db.execute("SELECT 1")
        store.erase("memory", f"{words[0]}.md")
        assert files_with(words) == []
    assert len(found_texts(store, "plain", limit=100)) == 40


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_what_another_host_is_building_is_erased_too(store, words):
    with store.rebuild(fingerprint(), reason="another") as fresh:
        put(fresh, f"{words[0]}.md", *(f"the word is {word}" for word in words))
        store.erase("memory", f"{words[0]}.md")
    assert found_texts(store, "word") == []
    assert files_with(words) == []
    store.digest()


def test_what_one_host_builds_is_erased_though_another_has_published_meanwhile(store, words, monkeypatch):
    monkeypatch.setattr("plainmind.guests.postgres.store._READERS_S", 5.0)
    with store.rebuild(fingerprint(), reason="a slow one") as slow:
        put(slow, "kept.md", "plain text")
        put(slow, f"{words[0]}.md", f"the word is {words[0]}")
        with store.rebuild(fingerprint(), reason="a quick one") as quick:
            put(quick, f"{words[0]}.md", f"the word is {words[0]}")
        store.erase("memory", f"{words[0]}.md")
        assert found_texts(store, "word") == []
    assert found_texts(store, "word", "plain") == ["plain text"]
    store.digest()


def test_a_reader_in_the_way_is_named_and_nothing_is_found_any_more(store, words, monkeypatch):
    monkeypatch.setattr("plainmind.guests.postgres.store._READERS_S", 0.2)
    with store.reading() as reader:
        assert len(reader.chunks_between("memory", "kept.md", 1, 3)) == 1
        with pytest.raises(LockTimeout, match="may be left"):
            store.erase("memory", f"{words[0]}.md")
    assert found_texts(store, "word") == []
    store.erase("memory", f"{words[0]}.md")
    assert files_with(words) == []


GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "postgresql.md"


def test_the_statements_of_the_guide_take_a_whole_index_away(store, words):
    statements = GUIDE.read_text().partition("## Take an index away")[2].split("```")[1].removeprefix("sql")
    facts = store.describe()
    asked = statements.replace("'main'", "%(agent)s").replace("'old-notes'", "%(workspace)s")
    with psycopg.connect(running_server().app_dsn) as db:
        for statement in asked.replace("plainmind;", f"{SCHEMA};").split(";")[:-1]:
            if "SET" in statement and "%(agent)s" in statement:
                db.execute("SELECT set_config('plainmind.agent', %s, false)", (facts["agent"],))
            else:
                db.execute(statement, {"workspace": facts["workspace"]})
    assert store.describe()["generation"] is None
    assert found_texts(store, "plain") == []
    assert files_with(words) == []
