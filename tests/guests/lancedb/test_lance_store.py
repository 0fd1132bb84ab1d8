"""What LanceDB as a store promises beyond the contract: no trace of what was erased, one writer, mended damage."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from tests.support.index_contents import (
    EVERYWHERE,
    embedded,
    file_state,
    fingerprint,
    found_texts,
    near_texts,
    put,
    vector,
)

from plainmind.base.errors import ConflictError, IndexCorrupt, IndexUnavailable
from plainmind.base.model import SearchFilter
from plainmind.guests.lancedb import table
from plainmind.guests.lancedb.place import LocalPlace
from plainmind.guests.lancedb.store import LanceStore, open_lance_store
from plainmind.guests.lancedb.table import GenerationTable
from plainmind.index.protocol import keyword_candidates, vector_candidates
from plainmind.index.store import ANY_CONTENT
from plainmind.index.writer import prepare_chunks, replace_file

SECRET = "zanzibar"


def put_into(draft, store, file, chunks):
    portions = prepare_chunks(store.driver, chunks)
    assert replace_file(draft, file, portions, expecting=None, replacing=ANY_CONTENT, keeping=0)


def files_with(folder: Path, word: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


def table_folders(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "lancedb" / "tables").glob("*.lance"))


# --- erasing -------------------------------------------------------------------------------------------------


def test_erased_text_is_in_no_file_even_where_one_row_of_many_goes(store, tmp_path):
    put(store, "many.md", *(f"plain note {number}" for number in range(300)))
    put(store, "a.md", f"the word is {SECRET}")
    put(store, "b.md", "the gateway stays")
    assert files_with(tmp_path, SECRET)
    store.erase("memory", "a.md")

    assert files_with(tmp_path, SECRET) == []
    assert found_texts(store, "gateway") == ["the gateway stays"]
    assert len(found_texts(store, "plain", limit=500)) == 300
    store.digest()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_text_can_be_looked_for_in_the_files_however_much_there_is(store, tmp_path):
    dice = random.Random(1)
    words = [f"w{number}" for number in range(20_000)]
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for number in range(100):
            texts = [" ".join(dice.choices(words, k=170)) for _ in range(100)]
            put(fresh, f"{number}.md", *texts)
    some_of_it = texts[50][100:160]
    assert files_with(tmp_path, some_of_it)
    store.erase("memory", "99.md")

    assert files_with(tmp_path, some_of_it) == []
    assert store.sizes()["chunks"] == 9_900


def test_text_that_was_replaced_long_before_is_gone_after_erasing(store, tmp_path):
    put(store, "a.md", f"first {SECRET}")
    put(store, "a.md", "second")
    store.erase("memory", "a.md")

    assert files_with(tmp_path, SECRET) == []


def test_erasing_reaches_a_generation_that_another_one_builds(store, tmp_path):
    other = LanceStore(str(tmp_path))

    def build():
        with other.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", SECRET)
            fresh.digest()  # writes what waits
            assert files_with(tmp_path, SECRET)
            store.erase("memory", "a.md")
            assert files_with(tmp_path, SECRET) == []

    with pytest.raises(IndexUnavailable, match="erased while the index was rebuilt"):
        build()
    other.close()
    assert files_with(tmp_path, SECRET) == []
    put(store, "b.md", "the gateway stays")
    assert found_texts(store, "gateway") == ["the gateway stays"]


def test_text_that_a_rebuild_has_caught_up_on_losing_is_in_no_file_of_it(store, tmp_path):
    with store.rebuild(
        fingerprint(), reason="a test", catch_up=lambda fresh: fresh.remove_file("memory", "a.md")
    ) as fresh:
        put(fresh, "a.md", SECRET)
        put(fresh, "b.md", "the gateway stays")
        fresh.digest()

    assert files_with(tmp_path, SECRET) == []
    assert found_texts(store, "gateway", SECRET) == ["the gateway stays"]
    store.digest()


def test_a_view_of_erased_text_ends_with_a_clear_word(store, tmp_path, monkeypatch):
    monkeypatch.setattr("plainmind.guests.lancedb.place._READERS_TIMEOUT_S", 0.1)
    put(store, "a.md", SECRET)
    other = LanceStore(str(tmp_path))

    def look():
        with other.reading() as reader:
            store.erase("memory", "a.md")
            keyword_candidates(reader, [SECRET], where=EVERYWHERE, limit=5)

    with pytest.raises(IndexUnavailable, match="replaced"):
        look()
    assert found_texts(other, SECRET) == []
    other.close()


# --- growing -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_many_changes_leave_few_segments_fragments_and_no_old_files(store, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "_TIDY_AFTER", 20)
    monkeypatch.setattr(table, "_KEPT", table.timedelta(milliseconds=1))
    for turn in range(60):
        put(store, f"{turn % 7}.md", f"turn {turn} gateway", f"more of turn {turn}")
    facts = store.describe()

    assert facts["fragments"] <= 40
    assert facts["versions"] <= 45
    assert store.sizes()["segments"] <= 13
    assert len(found_texts(store, "gateway", limit=50)) == 7
    lived = store.digest()
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for turn in range(53, 60):
            put(fresh, f"{turn % 7}.md", f"turn {turn} gateway", f"more of turn {turn}")
    assert store.digest() == lived
    assert len(table_folders(tmp_path)) == 1


@pytest.fixture
def no_block(monkeypatch):
    """Every index is too large to have its vectors compared in memory."""
    monkeypatch.setattr("plainmind.guests.lancedb.overview.MOST_BYTES", -1)


def test_an_index_larger_than_what_is_compared_here_is_searched_by_lancedb_with_the_filter(store, no_block):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "private.md", *(f"note {number}" for number in range(1_500)))
        put(fresh, "group.md", *(f"group note {number}" for number in range(1_200)), scope="group:1")

    seen = SearchFilter(sources=frozenset({"memory"}), scopes=frozenset({"group:1"}))
    with store.reading() as reader:
        found = vector_candidates(reader, vector("note 7"), where=seen, limit=20)
        everything = vector_candidates(reader, vector("note 7"), where=EVERYWHERE, limit=1)
    assert len(found) == 20
    assert all(each.chunk.path == "group.md" for each in found)
    assert everything[0].chunk.text == "note 7"


@pytest.mark.parametrize("where", [EVERYWHERE, SearchFilter(frozenset({"memory"}), frozenset({"group:1"}))])
def test_whichever_way_vectors_are_compared_the_answer_is_the_same(store, monkeypatch, where):
    put(store, "a.md", *(f"note {number}" for number in range(700)))
    put(store, "b.md", *(f"group note {number}" for number in range(700)), scope="group:1")
    put(store, "c.md", "a chunk without a vector", without_vector=True)

    def ask():
        with store.reading() as reader:
            return vector_candidates(reader, vector("note 7"), where=where, limit=25)

    side_by_side = ask()
    put(store, "a.md", *(f"note {number}" for number in range(3, 700)))
    after_a_change = ask()
    monkeypatch.setattr("plainmind.guests.lancedb.overview.MOST_BYTES", -1)
    assert ask() == after_a_change
    monkeypatch.setattr("plainmind.guests.lancedb.view.EXACT_UP_TO", 0)
    assert ask() == after_a_change
    assert [each.score for each in side_by_side][:3] == [each.score for each in after_a_change][:3]
    assert len(after_a_change) == 25


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_large_index_is_searched_through_an_index_and_finds_the_nearest(store, monkeypatch, no_block):
    monkeypatch.setattr("plainmind.guests.lancedb.overview.INDEX_FROM", 3_000)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for part in range(4):
            put(fresh, f"{part}.md", *(f"note {part} {number}" for number in range(1_000)))

    assert store.describe()["vector"]["index"]
    for number in range(10):
        assert near_texts(store, f"note 2 {number}", limit=1) == [f"note 2 {number}"]
    put(store, "new.md", "a note that the index does not know")
    assert near_texts(store, "a note that the index does not know", limit=1) == [
        "a note that the index does not know"
    ]


# --- many writers --------------------------------------------------------------------------------------------

WRITER = textwrap.dedent(
    """
    import sys
    from tests.support.index_contents import put
    from plainmind.guests.lancedb.store import LanceStore, open_lance_store

    if __name__ == "__main__":
        folder, name, turns = sys.argv[1:]
        store = LanceStore(folder)
        for turn in range(int(turns)):
            put(store, f"{name}-{turn}.md", f"{name} turn {turn}", "gateway")
        store.close()
    """
)


def start_writer(folder, name, turns):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(turns)],
        cwd=Path(__file__).parents[3],
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_writer_that_is_killed_leaves_a_whole_index(store, tmp_path):
    writer = start_writer(tmp_path, "w", 1_000)
    while True:
        with store.reading() as reader:
            if len(reader.files()) > 4 or writer.poll() is not None:
                break
        time.sleep(0.05)
    writer.kill()
    writer.communicate()
    store.digest()
    put(store, "after.md", "written after it")
    assert found_texts(store, "written") == ["written after it"]


def test_what_a_dead_writer_never_published_is_undone(store, tmp_path):
    put(store, "a.md", "the gateway")
    before = store.digest()
    place = LocalPlace(str(tmp_path))
    table = GenerationTable.open(place.database(), place.pointer())
    draft = table.draft(table.view())
    put_into(draft, store, file_state("b.md", "x"), embedded("b.md", "half a change gateway"))
    draft.remove("memory", "a.md")
    table.write(draft)  # and dies before it publishes

    assert found_texts(store, "gateway") == ["the gateway"]
    put(store, "c.md", "another gateway")
    assert sorted(found_texts(store, "gateway")) == ["another gateway", "the gateway"]
    store.remove_file("memory", "c.md")
    assert store.digest() == before


def test_a_commit_of_somebody_else_in_between_is_noticed(store, tmp_path):
    place = LocalPlace(str(tmp_path))
    mine = GenerationTable.open(place.database(), place.pointer())
    other = GenerationTable.open(place.database(), place.pointer())
    for writer, name in ((other, "other.md"), (mine, "mine.md")):
        draft = writer.draft(writer.view())
        put_into(draft, store, file_state(name, name), embedded(name, name))
        if writer is other:
            writer.write(draft)
        else:
            with pytest.raises(ConflictError, match="somebody else"):
                writer.write(draft)

    put(store, "a.md", "the gateway")
    with store.reading() as reader:
        assert list(reader.files()) == [("memory", "a.md")]


# --- damage --------------------------------------------------------------------------------------------------


def damage(folder: Path, what: str) -> None:
    tables = folder / "lancedb" / "tables"
    for path in tables.rglob("*.lance"):
        if path.is_file():
            if what == "missing":
                path.unlink()
            else:
                path.write_bytes(path.read_bytes()[: -len(path.read_bytes()) // 2])


@pytest.mark.parametrize("what", ["missing", "cut short"])
def test_a_damaged_index_is_set_aside_and_can_be_rebuilt(store, tmp_path, what):
    put(store, "a.md", "the gateway")
    store.close()
    damage(tmp_path, what)

    with pytest.raises(IndexCorrupt, match="damaged"), store.reading() as reader:
        keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=5)
    with store.reading() as reader:
        assert reader.fingerprint() is None
        assert reader.files() == {}
    assert store.describe()["recovered"]
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway")
    assert found_texts(store, "gateway") == ["the gateway"]
    assert len(table_folders(tmp_path)) == 1


def test_a_damaged_pointer_asks_for_a_rebuild(store, tmp_path):
    put(store, "a.md", "the gateway")
    (tmp_path / "lancedb" / "CURRENT").write_text("{")

    with store.reading() as reader:
        assert reader.fingerprint() is None
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "the gateway again")
    assert found_texts(store, "gateway") == ["the gateway again"]


def test_a_change_to_a_table_that_is_gone_says_so_and_asks_for_a_rebuild(store, tmp_path):
    import shutil

    put(store, "a.md", "the gateway")
    store.close()
    shutil.rmtree(next((tmp_path / "lancedb" / "tables").glob("*.lance")))

    with pytest.raises(IndexCorrupt, match="damaged"):
        put(store, "b.md", "more")
    with store.reading() as reader:
        assert reader.fingerprint() is None


def test_an_error_of_the_caller_stays_what_it_is(store):
    with pytest.raises(ValueError, match="mine"), store.reading():
        raise ValueError("mine")

    def change():
        with store.joined():
            put(store, "a.md", "never written")
            raise OSError("mine")

    with pytest.raises(OSError, match="mine"):
        change()

    with store.reading() as reader:
        assert reader.files() == {}


# --- at rest -------------------------------------------------------------------------------------------------


def test_the_folder_of_an_index_is_private(store, tmp_path):
    put(store, "a.md", "the gateway")

    assert os.stat(tmp_path / "lancedb").st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / "lancedb" / "tables").st_mode & 0o777 == 0o700


def test_old_generations_leave_neither_tables_nor_locks(store, tmp_path):
    for _ in range(3):
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "the gateway")
        assert found_texts(store, "gateway") == ["the gateway"]

    assert len(table_folders(tmp_path)) == 1
    assert len(list((tmp_path / "lancedb").glob("gen-*.lock"))) == 1


def test_an_index_in_an_object_store_is_beneath_the_agent_and_the_workspace():
    folder = "/home/anna/.plainmind/index/main/notes-1f"

    assert (
        open_lance_store(folder, uri="s3://bucket/memory/").driver.place.uri
        == "s3://bucket/memory/main/notes-1f"
    )
    shared = open_lance_store(folder, uri="s3://bucket/memory", workspace="team")
    assert shared.driver.place.uri == "s3://bucket/memory/main/team"
    assert open_lance_store(folder).driver.place.uri == f"{folder}/lancedb/tables"


def test_joined_changes_are_one_commit_pair(store):
    before = store.describe()["version"]
    with store.joined():
        for number in range(10):
            put(store, f"{number}.md", f"gateway {number}")

    assert store.describe()["version"] - before <= 2
    assert len(found_texts(store, "gateway", limit=20)) == 10
