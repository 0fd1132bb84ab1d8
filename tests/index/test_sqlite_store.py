"""What the SQLite store promises beyond the contract: files, generations, processes, erasure."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import suppress
from pathlib import Path

import apsw
import pytest
from tests.support.index_contents import (
    DIMS,
    EVERYWHERE,
    embedded,
    file_state,
    fingerprint,
    found_texts,
    near_texts,
    put,
    seen_by,
    vector,
)
from tests.support.plain_store import PlainStore

from plainmind.base.errors import (
    BadVector,
    IndexCorrupt,
    IndexUnavailable,
    LockTimeout,
    StorageFailure,
    WorkspaceError,
)
from plainmind.files.system import try_lock
from plainmind.index.drivers.sqlite import SqliteStore
from plainmind.index.drivers.sqlite import files as index_files
from plainmind.index.drivers.sqlite.view import all_segments, deflate_text, read_absences, read_signs
from plainmind.index.protocol import keyword_candidates, vector_candidates
from plainmind.index.vectors import pack_vector, signs_width

GATEWAY = "the gateway runs on a Mac Studio"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "state" / "index"


@pytest.fixture
def store(folder):
    opened = SqliteStore(str(folder))
    with opened.rebuild(fingerprint(), reason="there is no index yet"):
        pass
    yield opened
    opened.close()


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def generations(folder):
    return sorted(entry.name for entry in folder.glob("gen-*.sqlite"))


def run_elsewhere(folder, program):
    """Run a program in another process, with the store open as `store`."""
    opening = f"""
import os, signal, sys
from tests.support.index_contents import *
from plainmind.index.drivers.sqlite import SqliteStore
store = SqliteStore({str(folder)!r})
"""
    return subprocess.run(
        [sys.executable, "-c", opening + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )


# --- files ---------------------------------------------------------------------------------------------------


def test_everything_is_private_to_the_user(store, folder):
    put(store, "a.md", GATEWAY)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(entry.stat().st_mode) for entry in folder.iterdir()} == {0o600}


def test_the_settings_that_keep_an_index_whole_are_set(store):
    put(store, "a.md", GATEWAY)
    with store.driver._newest() as generation:
        db = index_files.connect(generation.path, for_writing=True)
    found = {
        name: index_files.setting(db, name)
        for name in (
            "journal_mode",
            "synchronous",
            "secure_delete",
            "cell_size_check",
            "trusted_schema",
            "busy_timeout",
        )
    }
    db.close()

    assert found == {
        "journal_mode": "wal", "synchronous": 1, "secure_delete": 1, "cell_size_check": 1,
        "trusted_schema": 0, "busy_timeout": 5000,
    }  # fmt: skip


def test_a_statement_is_not_prepared_again_for_each_value(store):
    put(store, "a.md", GATEWAY)
    with store.driver._newest() as generation, generation.viewing() as db:
        plan_is_kept = db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1)

    assert plan_is_kept


def test_opening_never_creates_a_database_by_accident(tmp_path):
    with pytest.raises(IndexCorrupt, match="missing"):
        index_files.connect(str(tmp_path / "gen-000009.sqlite"), for_writing=True)
    assert list(tmp_path.iterdir()) == []


def test_an_index_outlives_its_process(store, folder):
    put(store, "a.md", GATEWAY)
    digest = store.digest()
    store.close()

    again = SqliteStore(str(folder))
    assert found_texts(again, "studio") == [GATEWAY]
    assert again.digest() == digest
    again.close()


def test_a_closed_store_opens_again_when_it_is_used(store):
    put(store, "a.md", GATEWAY)
    store.close()

    assert found_texts(store, "studio") == [GATEWAY]


def test_both_stores_answer_alike(store):
    memory = PlainStore(fingerprint())
    dice = random.Random(11)
    words = [f"word{number}" for number in range(40)]
    for _ in range(60):
        path = f"{dice.randrange(25)}.md"
        source = "memory" if int(path[:-3]) % 3 else "sessions"
        texts = [" ".join(dice.choices(words, k=dice.randint(3, 30))) for _ in range(dice.randint(0, 5))]
        for each in (memory, store):
            put(each, path, *texts, source=source)
            if path == "7.md":
                each.remove_file(source, path)

    assert store.digest() == memory.digest()
    for _ in range(30):
        terms, query = dice.choices(words, k=4), vector(dice.choice(words))
        with memory.reading() as one, store.reading() as other:
            assert one.counts() == other.counts()
            assert one.files() == other.files()
            assert one.term_statistics(terms, where=EVERYWHERE) == other.term_statistics(
                terms, where=EVERYWHERE
            )
            for ask, given in ((keyword_candidates, terms), (vector_candidates, query)):
                left = ask(one, given, where=EVERYWHERE, limit=500)
                right = ask(other, given, where=EVERYWHERE, limit=500)
                # To the last bit: the same operations in the same order.
                assert {each.chunk: each.score for each in left} == {each.chunk: each.score for each in right}


def test_vectors_that_another_process_wrote_are_seen_at_once(store, folder):
    put(store, "a.md", GATEWAY)
    assert near_texts(store, "zanzibar") == [GATEWAY]

    done = run_elsewhere(folder, 'put(store, "a.md", "zanzibar"); put(store, "b.md", "other")')
    assert done.returncode == 0, done.stderr
    assert near_texts(store, "zanzibar", limit=1) == ["zanzibar"]
    assert found_texts(store, "zanzibar") == ["zanzibar"]
    assert found_texts(store, "gateway") == []


# --- generations ---------------------------------------------------------------------------------------------


def test_a_rebuild_leaves_one_generation_and_no_temporary_file(store, folder):
    for turn in range(5):
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", f"turn {turn}")

    assert generations(folder) == ["gen-000006.sqlite"]
    assert [name for name in names(folder) if not name.startswith("gen-000006")] == ["CURRENT", "writer.lock"]


def test_an_index_in_a_folder_that_was_deleted_does_not_look_like_the_one_before(store, folder):
    put(store, "a.md", GATEWAY)
    with store.reading() as reader:
        before = reader.revision()
    shutil.rmtree(folder)
    with store.rebuild(fingerprint(), reason="there is no index yet"):
        pass
    put(store, "b.md", GATEWAY)

    with store.reading() as reader:
        generation, _ = reader.revision()
        assert generation == before[0]
        assert reader.revision() != before


def test_a_discarded_rebuild_leaves_nothing(store, folder):
    before = generations(folder)
    with pytest.raises(BadVector), store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", GATEWAY, dims=3)

    assert generations(folder) == before


def test_a_generation_that_is_read_is_not_deleted(store, folder):
    put(store, "a.md", GATEWAY)
    other = SqliteStore(str(folder))
    with other.reading() as reader:
        for _ in range(3):
            with store.rebuild(fingerprint(), reason="a test"):
                pass
        assert generations(folder) == ["gen-000001.sqlite", "gen-000004.sqlite"]
        assert len(keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=5)) == 1
    assert found_texts(other, "gateway") == []
    assert generations(folder) == ["gen-000004.sqlite"]
    other.close()


def test_a_rebuild_by_another_process_is_seen_by_the_next_view(store, folder):
    put(store, "a.md", GATEWAY)
    done = run_elsewhere(
        folder,
        """
        with store.rebuild(fingerprint(model="new"), reason="a test") as fresh:
            put(fresh, "b.md", "from elsewhere")
        """,
    )
    assert done.returncode == 0, done.stderr

    assert found_texts(store, "elsewhere") == ["from elsewhere"]
    put(store, "c.md", "written here")
    assert found_texts(SqliteStore(str(folder)), "written") == ["written here"]


def test_what_a_killed_rebuild_left_is_swept_up(store, folder):
    put(store, "a.md", GATEWAY)
    done = run_elsewhere(
        folder,
        """
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "b.md", "half")
            os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert done.returncode == -9
    assert len(generations(folder)) == 2
    assert found_texts(store, "studio") == [GATEWAY]

    with store.rebuild(fingerprint(), reason="a test"):
        pass
    assert len(generations(folder)) == 1


def test_a_rebuild_in_progress_is_not_taken_for_abandoned(store, folder):
    with store.rebuild(fingerprint(), reason="slow") as slow:
        put(slow, "slow.md", "slow")
        with store.rebuild(fingerprint(), reason="fast") as fast:
            put(fast, "fast.md", "fast")
        assert found_texts(store, "fast") == ["fast"]
        put(slow, "more.md", "slow too")
    assert len(found_texts(store, "slow")) == 2
    assert len(generations(folder)) == 1


# --- erasure -------------------------------------------------------------------------------------------------


def occurrences(folder, *needles):
    return [
        (entry.name, needle)
        for entry in sorted(folder.iterdir())
        for needle in needles
        if (needle if isinstance(needle, bytes) else needle.encode()) in entry.read_bytes()
    ]


SECRET = ("kwisatzhaderach", "muaddibusul", "memory/arrakis.md")


def plant(store):
    for number in range(50):
        put(store, f"{number}.md", f"plain note {number}", f"another of {number}")
    put(store, SECRET[2], f"my {SECRET[0]} is {SECRET[1]}", SECRET[0] * 2_000)


def test_erased_text_is_in_no_byte_of_any_file(store, folder):
    plant(store)
    assert {needle for _, needle in occurrences(folder, *SECRET)} == set(SECRET)
    store.erase("memory", SECRET[2])

    assert occurrences(folder, *SECRET) == []
    assert len(found_texts(store, "plain", limit=99)) == 50
    store.digest()


def test_neither_the_deflated_text_nor_the_vector_nor_its_signs_outlive_an_erasure(store, folder):
    text = "the harbour master keeps the keys of the harbour in the harbour office " * 4
    vectors = [pack_vector(vector(text), DIMS), deflate_text(text)]
    plant(store)
    put(store, "note.md", text, "another")
    store.close()  # brings the log into the file
    assert {needle for _, needle in occurrences(folder, *vectors)} == set(vectors)
    store.erase("memory", "note.md")

    assert occurrences(folder, *vectors, "harbour") == []
    with store.driver._newest() as generation, generation.viewing() as db:
        dead = [segment for segment in all_segments(db) if segment.dead]
        assert dead
        for segment in dead:
            absent = read_absences(db, segment)
            signs, width = read_signs(db, segment, dims=DIMS), signs_width(DIMS)
            assert all(
                not any(signs[at * width : (at + 1) * width]) for at, flag in enumerate(absent) if flag
            )


def test_who_could_see_what_was_erased_is_forgotten(store, folder):
    plant(store)
    put(store, "note.md", "of a person", scope="person:zanzibar")
    put(store, "other.md", "of all", scope="shared")
    store.erase("memory", "note.md")

    assert occurrences(folder, "zanzibar") == []
    assert found_texts(store, "of", where=seen_by("shared")) == ["of all"]
    put(store, "late.md", "of a group", scope="group:late")
    assert found_texts(store, "of", where=seen_by("person:zanzibar", "group:late")) == ["of a group"]
    store.digest()


def test_many_files_are_erased_at_once(store, folder):
    dice = random.Random(8)
    words = ["".join(dice.choices("abcdefgh", k=7)) for _ in range(1_500)]
    secrets = []
    for number in range(90):
        secret = "z" + "".join(dice.choices("qrstuvwxy", k=12))
        texts = [" ".join(dice.choices(words, k=40)) for _ in range(3)]
        if number % 6 == 0:
            secrets.append(secret)
            texts[1] += f" {secret}"
        put(store, f"{number}.md", *texts)
    store.erase("memory", *(f"{number}.md" for number in range(0, 90, 6)))

    assert occurrences(folder, *secrets) == []
    with store.reading() as reader:
        assert len(reader.files()) == 75
    store.digest()


def test_text_that_was_replaced_earlier_is_erased_with_its_file(store, folder):
    plant(store)
    put(store, SECRET[2], "harmless now")
    store.erase("memory", SECRET[2])

    assert occurrences(folder, *SECRET) == []


def test_erasing_reaches_older_generations_that_are_still_read(store, folder):
    plant(store)
    other = SqliteStore(str(folder))
    assert len(found_texts(other, SECRET[0])) == 1  # holds the old generation open
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        plant(fresh)
    assert len(generations(folder)) == 2
    store.erase("memory", SECRET[2])

    assert occurrences(folder, *SECRET) == []
    assert found_texts(other, SECRET[0]) == []
    other.close()


def test_erasing_deletes_damaged_generations_that_were_kept(store, folder):
    plant(store)
    store.close()
    (database,) = folder.glob("gen-*.sqlite")
    with database.open("r+b") as file:
        file.write(b"garbage!")
    assert found_texts(store, SECRET[0]) == []
    assert occurrences(folder, *SECRET) != []
    store.erase("memory", SECRET[2])

    assert occurrences(folder, *SECRET) == []


def test_a_reader_that_keeps_the_log_is_named_as_the_reason(store, monkeypatch):
    plant(store)
    monkeypatch.setattr("plainmind.index.drivers.sqlite.files.BUSY_TIMEOUT_MS", 50)
    monkeypatch.setattr("plainmind.index.drivers.sqlite.writer._LOG_TIMEOUT_S", 0.1)

    with store.reading(), pytest.raises(LockTimeout, match="reader"):
        store.erase("memory", SECRET[2])
    store.erase("memory", SECRET[2])


def test_a_reader_that_keeps_an_erasure_from_writing_over_the_text_is_told_too(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text("1 0 0:1 / / rw - nfs4 server:/ rw\n")
    monkeypatch.setattr("plainmind.index.drivers.sqlite.files.BUSY_TIMEOUT_MS", 50)
    store = SqliteStore(str(tmp_path / "index"), mounts=str(mounts))
    with store.rebuild(fingerprint(), reason="a test"):
        pass
    plant(store)

    with store.reading(), pytest.raises(LockTimeout, match="some of it may be left") as failure:
        store.erase("memory", SECRET[2])
    assert "sync --force" in failure.value.hint
    store.erase("memory", SECRET[2])
    assert occurrences(tmp_path / "index", *SECRET) == []
    store.close()


# --- damage --------------------------------------------------------------------------------------------------


def overwrite_middle(path):
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))


DAMAGES = {
    "header": lambda path: path.write_bytes(b"not a database" * 1000),
    "zero bytes": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
    "cut": lambda path: os.truncate(path, 5000),
    "pages": overwrite_middle,
    "pointer": lambda path: path.with_name("CURRENT").write_bytes(b"\x00\xffgarbage"),
    "empty pointer": lambda path: path.with_name("CURRENT").write_bytes(b""),
    "pointer to nowhere": lambda path: path.with_name("CURRENT").write_bytes(b"gen-000099\n"),
    "another database": lambda path: (path.unlink(), apsw.Connection(str(path)).execute("CREATE TABLE t(x)")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_set_aside_and_asks_for_a_rebuild(store, folder, damage):
    put(store, "a.md", *(f"{GATEWAY} {number}" for number in range(50)))
    store.close()
    (database,) = folder.glob("gen-*.sqlite")
    for log in folder.glob("gen-*-*"):
        log.unlink()
    DAMAGES[damage](database)

    with suppress(IndexCorrupt):  # damage in the middle shows when it is read, at the door when it is opened
        found_texts(store, "studio")
        store.digest()
    with store.reading() as reader:
        assert reader.fingerprint() is None
        assert reader.files() == {}
    facts = store.describe()
    assert facts["recoveries"] == 1
    assert facts["recovered"].startswith("once on 20")
    with store.rebuild(fingerprint(), reason="damage") as fresh:
        put(fresh, "a.md", GATEWAY)
    assert found_texts(store, "studio") == [GATEWAY]
    assert len(generations(folder)) == 1


def test_a_damaged_database_is_kept_under_another_name(store, folder):
    put(store, "a.md", GATEWAY)
    store.close()
    (database,) = folder.glob("gen-*.sqlite")
    database.write_bytes(b"garbage" * 999)
    found_texts(store, "studio")

    assert (folder / "bad-000001.sqlite").read_bytes() == b"garbage" * 999
    assert store.describe()["setAside"] == ["bad-000001.sqlite"]


def test_damage_in_the_middle_of_a_write_is_told_and_repaired(store, folder):
    put(store, "a.md", *(f"{GATEWAY} {number}" for number in range(50)))
    with store.driver._newest() as generation, generation.writing() as db:
        db.execute("DELETE FROM lengths")

    with pytest.raises(IndexCorrupt):
        put(store, "a.md", GATEWAY)
    with pytest.raises(IndexUnavailable, match="not been built"):
        put(store, "a.md", GATEWAY)


@pytest.mark.parametrize(
    "spoil",
    [
        "DELETE FROM chunks WHERE ordinal = 1",
        "DELETE FROM vectors WHERE id = (SELECT id FROM chunks WHERE ordinal = 1)",
        "DELETE FROM postings WHERE term = 'two'",
        "UPDATE postings SET counts = CAST(x'02' AS BLOB) WHERE term = 'two'",
        "UPDATE postings SET positions = CAST(x'0900' AS BLOB) WHERE term = 'two'",
        "UPDATE postings SET positions = CAST(x'01000100' AS BLOB), counts = CAST(x'0101' AS BLOB) WHERE term = 'two'",
        "INSERT INTO postings SELECT segment, 'orphan', positions, counts FROM postings WHERE term = 'two'",
        "INSERT INTO postings SELECT segment, 'none', positions, CAST(x'00' AS BLOB) FROM postings WHERE term = 'two'",
        "UPDATE vectors SET vector = (SELECT max(vector) FROM vectors)",
        "UPDATE chunks SET length = 2 WHERE ordinal = 1",
        "UPDATE lengths SET lengths = zeroblob(length(lengths))",
        "UPDATE absences SET absent = CAST(replace(hex(absent), '00', 'f') AS BLOB)",
        "UPDATE signs SET signs = zeroblob(length(signs))",
        "UPDATE segments SET dead = 1",
        "UPDATE segments SET source = 'sessions'",
        "UPDATE files SET tallest = 0",
        "UPDATE files SET chunks = chunks + 1",
        "UPDATE files SET scope = (SELECT id FROM scopes WHERE name = 'shared')",
        "UPDATE audiences SET scopes = zeroblob(length(scopes))",
        "UPDATE totals SET terms = terms + 1",
        "INSERT INTO vectors SELECT id + 100, vector FROM vectors LIMIT 1",
    ],
)
def test_a_digest_is_not_given_when_the_parts_contradict_each_other(store, spoil):
    put(store, "a.md", "one", "two", "three")
    put(store, "b.md", scope="shared")
    with store.driver._newest() as generation, generation.writing() as db:
        db.execute("PRAGMA foreign_keys = off")
        db.execute(spoil)

    with pytest.raises(IndexCorrupt, match="contradicts itself"):
        store.digest()


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE files SET scope = (SELECT id FROM scopes WHERE name = 'private')",
        "UPDATE files SET scope = 99",
        # The number of the other scope, in all positions.
        "UPDATE audiences SET scopes = CAST(replace(hex(zeroblob(16)), '00', char(2, 0, 0, 0)) AS BLOB)",
    ],
    ids=["another scope", "no scope", "another audience"],
)
def test_a_damaged_segment_shows_nobody_what_is_not_theirs(store, spoil):
    put(store, "a.md", "for me alone")
    put(store, "b.md", "for all of us", scope="shared")  # the second scope that it sees
    assert found_texts(store, "for", where=seen_by("shared")) == ["for all of us"]
    with store.driver._newest() as generation:
        db = index_files.connect(generation.path, for_writing=True)
        db.execute("PRAGMA foreign_keys = off")
        db.execute(spoil)
        db.close()
        generation._cache.__init__()  # as another process would see it

    with pytest.raises(IndexCorrupt, match="contradicts itself"):
        found_texts(store, "for", where=seen_by("shared"))


def test_damage_that_comes_back_again_and_again_stops(store, folder):
    for _ in range(3):
        found_texts(store, "x")
        store.close()
        for database in folder.glob("gen-*.sqlite"):
            database.write_bytes(b"bad")
        found_texts(store, "x")
    store.close()
    for database in folder.glob("gen-*.sqlite"):
        database.write_bytes(b"bad")

    with pytest.raises(IndexUnavailable, match="3 times") as caught:
        found_texts(store, "x")
    assert "delete the index folder" in (caught.value.hint or "")


def test_old_damage_does_not_count(store, folder):
    (folder / "recoveries.json").write_text(
        '[{"at": 1, "reason": "x"}, {"at": 2, "reason": "x"}, {"at": 3, "reason": "x"}]'
    )
    store.close()
    (folder / "CURRENT").write_bytes(b"?")

    assert found_texts(store, "x") == []
    assert store.describe()["recovered"].startswith("4 times, last on 20")


def test_a_damaged_record_of_damage_is_no_obstacle(store, folder):
    (folder / "recoveries.json").write_text("{")
    store.close()
    (folder / "CURRENT").write_bytes(b"?")

    assert found_texts(store, "x") == []
    assert store.describe()["recoveries"] == 2


def test_an_index_of_another_format_is_made_anew(store, folder):
    put(store, "a.md", GATEWAY)
    with store.driver._newest() as generation, generation.writing() as db:
        index_files.setting(db, "user_version = 99")
    store.close()

    with store.reading() as reader:
        assert reader.fingerprint() is None
    assert "format 99" in store.describe()["recovered"]


def test_an_index_of_an_earlier_version_is_made_anew_and_called_damaged_by_nobody(store, folder):
    put(store, "a.md", GATEWAY)
    with store.driver._newest() as generation, generation.writing() as db:
        index_files.setting(db, f"user_version = {index_files.SCHEMA_VERSION - 1}")
    store.close()

    with store.reading() as reader:
        assert reader.fingerprint() is None
    assert store.describe()["recovered"] is None
    assert len(list(folder.glob("*.sqlite"))) == 1


def test_two_processes_recover_from_the_same_damage_once(store, folder):
    store.close()
    (folder / "CURRENT").write_bytes(b"?")
    program = 'found_texts(store, "x"); put_ok = True'
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(run_elsewhere(folder, program))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [done.returncode for done in results] == [0, 0, 0], [done.stderr for done in results]
    assert store.describe()["recoveries"] == 1


# --- refusals ------------------------------------------------------------------------------------------------


def test_a_database_that_stays_locked_is_told_as_such(store, monkeypatch):
    put(store, "a.md", GATEWAY)
    monkeypatch.setattr(index_files, "BUSY_TIMEOUT_MS", 50)
    with store.driver._newest() as generation:
        intruder = apsw.Connection(generation.path)
    intruder.execute("BEGIN IMMEDIATE")
    other = SqliteStore(str(store.driver._folder.path))

    with pytest.raises(LockTimeout, match="locked"):
        put(other, "b.md", "x")
    assert found_texts(other, "studio") == [GATEWAY]
    intruder.execute("ROLLBACK")
    put(other, "b.md", "x")
    intruder.close()
    other.close()


def test_a_held_writer_lock_is_told_with_its_holder(store, monkeypatch):
    monkeypatch.setattr("plainmind.index.drivers.sqlite.files._WRITER_TIMEOUT_S", 0.05)
    with store.driver._folder.writer_lock("a long sync"), pytest.raises(LockTimeout, match="a long sync"):
        put(store, "a.md", GATEWAY)


def test_a_full_disk_leaves_the_old_index_answering(store, folder):
    put(store, "a.md", GATEWAY)
    digest = store.digest()
    store.close()
    done = run_elsewhere(
        folder,
        """
        import resource
        from plainmind.base.errors import StorageFailure
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        found_texts(store, "x")
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        try:
            put(store, "big.md", *(os.urandom(4_000).hex() for number in range(200)))
        except StorageFailure as error:
            print(error, error.hint)
        assert found_texts(store, "studio") == ["the gateway runs on a Mac Studio"]
        try:
            with store.rebuild(fingerprint(), reason="a test") as fresh:
                put(fresh, "big.md", *(os.urandom(4_000).hex() for number in range(200)))
        except StorageFailure as error:
            print(error, error.hint)
        """,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2, done.stdout

    assert store.digest() == digest
    put(store, "b.md", "space again")
    assert found_texts(store, "space") == ["space again"]
    with store.rebuild(fingerprint(), reason="sweep"):
        pass
    assert len(generations(folder)) == 1


def test_on_a_shared_file_system_there_is_no_write_ahead_log(tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text("1 1 0:1 / / rw - nfs4 server:/ rw\n")
    store = SqliteStore(str(tmp_path / "index"), mounts=str(mounts))
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", GATEWAY)
    put(store, "b.md", "zanzibar")

    assert found_texts(store, "studio") == [GATEWAY]
    assert store.describe()["journal"].startswith("truncate")
    assert store.describe()["fileSystem"] == "nfs4"
    assert not [name for name in names(tmp_path / "index") if name.endswith(("-wal", "-shm"))]
    store.erase("memory", "b.md")
    assert occurrences(tmp_path / "index", "zanzibar") == []
    store.close()


def test_a_rebuild_within_a_rebuild_is_refused(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", GATEWAY)
        fresh.erase("memory", "a.md")
        assert fresh.describe()["building"] is True
        assert fresh.digest()
        fresh.close()
        with pytest.raises(IndexUnavailable, match="being built"):
            fresh.rebuild(fingerprint(), reason="again")


def test_a_failed_file_leaves_the_old_one_whole(store):
    put(store, "a.md", GATEWAY)
    digest = store.digest()
    chunks = embedded("a.md", "new one", "new two")
    broken = [chunks[0], object()]

    with pytest.raises(AttributeError):
        store.replace_file(file_state("a.md", "new"), broken)
    assert store.digest() == digest


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = SqliteStore(str(tmp_path / "file" / "index"))

    with pytest.raises(WorkspaceError, match="could not"), store.reading():
        pass


def test_a_rebuild_that_fails_while_another_writes_says_at_once_why(store, folder, monkeypatch):
    monkeypatch.setattr("plainmind.index.drivers.sqlite.files._WRITER_TIMEOUT_S", 600.0)

    def fail_while_another_writes():
        with store.rebuild(fingerprint(), reason="a test"):
            locks.append(try_lock(str(folder / "writer.lock"), operation="a long write"))
            raise ZeroDivisionError

    locks = []
    with pytest.raises(ZeroDivisionError):
        fail_while_another_writes()
    locks[0].release()

    with store.rebuild(fingerprint(), reason="a test"):
        pass
    assert len(generations(folder)) == 1


def test_a_rebuild_that_fails_when_it_is_already_published_still_answers(store, folder, monkeypatch):
    publish = store.driver._folder.publish

    def publish_and_fail(number):
        publish(number)
        raise StorageFailure("the folder could not be synced")

    monkeypatch.setattr(store.driver._folder, "publish", publish_and_fail)
    with pytest.raises(StorageFailure), store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", GATEWAY)
    monkeypatch.undo()

    assert found_texts(store, "studio") == [GATEWAY]
    assert store.describe()["recoveries"] == 0


def test_a_lock_without_a_generation_is_no_damage_for_an_erasure(store, folder):
    put(store, "a.md", GATEWAY)
    put(store, "b.md", "zanzibar")
    with try_lock(str(folder / "gen-000099.lock"), operation="read an old index", shared=True):
        store.erase("memory", "b.md")

    assert found_texts(store, "studio") == [GATEWAY]
    assert store.describe()["recoveries"] == 0


def test_damage_in_an_old_generation_is_told_and_leaves_the_current_one_alone(store, folder):
    put(store, "a.md", GATEWAY)
    (folder / "gen-000099.sqlite").write_bytes(b"no database" * 1000)
    with (
        try_lock(str(folder / "gen-000099.lock"), operation="read an old index", shared=True),
        pytest.raises(IndexUnavailable, match="another process"),
    ):
        store.erase("memory", "b.md")

    assert found_texts(store, "studio") == [GATEWAY]
    assert store.describe()["recoveries"] == 0


def test_a_rebuild_in_another_thread_does_not_take_the_index_from_under_a_reader(store, monkeypatch):
    put(store, "a.md", GATEWAY)
    follow = store.driver._follow_pointer

    def rebuild():
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", GATEWAY)

    def follow_slowly():
        """Let another thread publish a rebuild, and delete the old index, before the first view begins."""
        found = follow()
        monkeypatch.setattr(store.driver, "_follow_pointer", follow)
        thread = threading.Thread(target=rebuild)
        thread.start()
        thread.join()
        return found

    monkeypatch.setattr(store.driver, "_follow_pointer", follow_slowly)

    assert found_texts(store, "studio") == [GATEWAY]


def test_an_index_on_a_read_only_disk_answers():
    # Beneath pytest's own folders another user, who is needed when root runs this, could see nothing.
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "index"
        store = SqliteStore(str(folder))
        with store.rebuild(fingerprint(), reason="a test"):
            pass
        put(store, "a.md", GATEWAY)
        store.close()
        assert not list(folder.glob("*-wal"))
        if os.geteuid() == 0:
            for path in (Path(top), folder, *folder.iterdir()):
                os.chown(path, 65534, 65534)
        folder.chmod(0o500)
        program = """
        import urllib.parse  # now: the other user may not be allowed to read Python's own files
        if os.geteuid() == 0:
            os.setuid(65534)
        print(found_texts(store, "studio"))
        """
        answer = run_elsewhere(folder, program)
        folder.chmod(0o700)

    assert answer.stdout.strip() == str([GATEWAY]), answer.stderr
