"""Segments fill, empty and move, and what is searched is always what is there."""

from __future__ import annotations

import random
import threading
from contextlib import nullcontext, suppress

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.index_contents import (
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

from plainmind.base.errors import BadVector, IndexUnavailable
from plainmind.index.drivers.sqlite import SqliteStore, build
from plainmind.index.drivers.sqlite.view import all_segments
from plainmind.index.protocol import keyword_candidates, vector_candidates


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(str(tmp_path / "index"))
    with opened.rebuild(fingerprint(), reason="a test"):
        pass
    yield opened
    opened.close()


def segments_of(store):
    with store.driver._newest() as generation, generation.viewing() as db:
        return all_segments(db)


def ids_of(store, *terms):
    with store.reading() as reader:
        return {each.id for each in keyword_candidates(reader, terms, where=EVERYWHERE, limit=10_000)}


def test_files_of_one_source_share_a_segment_until_it_is_full(store):
    for number in range(6):
        put(store, f"{number}.md", *(f"note {number} {part}" for part in range(100)))
    put(store, "s.jsonl", "a message", source="sessions")

    found = segments_of(store)
    assert [(each.source, each.used) for each in found] == [("memory", 512), ("memory", 88), ("sessions", 1)]
    assert near_texts(store, "note 5 99", limit=1) == ["note 5 99"]
    assert len(found_texts(store, "note", limit=1_000)) == 600
    store.digest()


def test_a_large_file_gets_a_segment_of_its_size(store):
    put(store, "large.md", *(f"part {number}" for number in range(1_500)))

    assert [(each.capacity, each.used) for each in segments_of(store)] == [(1_500, 1_500)]
    assert near_texts(store, "part 1444", limit=1) == ["part 1444"]


def test_a_note_that_is_edited_a_thousand_times_takes_the_room_of_one(store):
    put(store, "other.md", *(f"another note {number}" for number in range(30)))
    sizes = []
    for turn in range(400):
        put(store, "today.md", *(f"turn {turn} entry {part}" for part in range(8)))
        if turn % 100 == 99:
            sizes.append((sum(each.used for each in segments_of(store)), store.sizes()["file"]))

    assert all(used <= 1_600 for used, _ in sizes), sizes
    assert sizes[-1][1] <= 1.5 * sizes[0][1], sizes
    assert len(found_texts(store, "turn", limit=99)) == 8
    assert len(found_texts(store, "note", limit=99)) == 30
    with store.reading() as reader:
        assert reader.term_statistics(["entry", "turn", "399"], where=EVERYWHERE).chunks_with == {
            "entry": 8,
            "turn": 8,
            "399": 8,
        }
    store.digest()


def test_what_lives_moves_out_of_a_segment_of_holes(store):
    for number in range(32):
        put(store, f"{number}.md", *(f"file{number} part{part}" for part in range(16)))
    before = ids_of(store, "file5")
    (full,) = segments_of(store)
    for number in range(32):
        if number != 5:
            put(store, f"{number}.md", f"rewritten {number}")

    assert full.first_id not in {each.first_id for each in segments_of(store)}
    assert before.isdisjoint(ids_of(store, "file5"))
    assert sorted(found_texts(store, "file5", limit=99)) == sorted(f"file5 part{part}" for part in range(16))
    assert near_texts(store, "file5 part7", limit=1) == ["file5 part7"]
    store.digest()


def test_what_moves_into_a_segment_that_empties_at_the_same_time_stays(store):
    put(store, "base.md", *(f"base {number}" for number in range(4_096)))
    put(store, "keep.md", *(f"keep {number}" for number in range(400)))
    put(store, "large.md", *(f"large {number}" for number in range(1_224)))
    assert [(each.capacity, each.used) for each in segments_of(store)] == [
        (4_096, 4_096),
        (1_024, 1_024),  # more than half of it is of the large file
        (1_124, 600),  # and all of this
    ]
    store.remove_file("memory", "large.md")

    assert len(found_texts(store, "keep", limit=1_000)) == 400
    assert near_texts(store, "keep 7", limit=1) == ["keep 7"]
    store.digest()


def test_an_id_never_comes_back(store):
    seen: set[int] = set()
    for turn in range(150):
        put(store, "a.md", *(f"turn {turn} part {part}" for part in range(10)))
        new = ids_of(store, "turn")
        assert len(new) == 10
        assert seen.isdisjoint(new)
        seen |= new


def test_chunks_of_all_scopes_share_segments_and_stay_with_their_readers_when_they_move(store):
    for number in range(32):
        put(
            store,
            f"{number}.md",
            *(f"file{number} part{part}" for part in range(16)),
            scope=f"group:{number}",
        )
    (full,) = segments_of(store)
    for number in range(32):
        if number not in {5, 6}:
            put(store, f"{number}.md", f"rewritten {number}", scope=f"group:{number}")

    assert full.first_id not in {each.first_id for each in segments_of(store)}
    for number in (5, 6):
        own = sorted(f"file{number} part{part}" for part in range(16))
        where = seen_by(f"group:{number}")
        assert sorted(found_texts(store, "part3", *own[0].split(), where=where, limit=99)) == own
        assert sorted(near_texts(store, "file5 part7", where=where, limit=99)) == own
    store.digest()


def steps_to_grow(store, texts):
    """How many instructions SQLite carries out to replace the last chunk of a file by two."""
    put(store, "long.jsonl", *texts[:-1], source="sessions")
    steps = []
    with store.driver._newest() as generation, generation.writing() as db:
        db.set_progress_handler(lambda: bool(steps.append(1)), 1)
    put(store, "long.jsonl", *texts[:-2], "cut anew", texts[-1], source="sessions", keeping=len(texts) - 2)
    with store.driver._newest() as generation, generation.writing() as db:
        db.set_progress_handler(None)
    return len(steps)


def test_a_long_file_grows_as_cheaply_as_a_short_one(store):
    short = steps_to_grow(store, [f"message {number}" for number in range(20)])
    store.remove_file("sessions", "long.jsonl")
    long = steps_to_grow(store, [f"message {number}" for number in range(4_000)])

    assert 0 < long < 1.5 * short


def test_chunks_without_vectors_or_terms_are_no_trouble_when_they_move(store):
    put(store, "keep.md", "kept without a vector", without_vector=True)
    state = file_state("silent.md", "x")
    store.replace_file(state, [each for each in embedded("silent.md", "no words") for each in [each]])
    for turn in range(70):
        put(store, "a.md", *(f"turn {turn} part {part}" for part in range(10)))

    assert found_texts(store, "kept") == ["kept without a vector"]
    assert near_texts(store, "no words", limit=1) == ["no words"]
    store.digest()


def test_an_index_without_dimensions_takes_single_files_too(tmp_path):
    store = SqliteStore(str(tmp_path / "index"))
    with store.rebuild(fingerprint(dims=0), reason="no embedder"):
        pass
    for turn in range(3):
        put(store, "a.md", f"turn {turn}", "second", without_vector=True)
    store.erase("memory", "b.md")

    assert found_texts(store, "turn") == ["turn 2"]
    store.digest()
    store.close()


# --- rebuilding ----------------------------------------------------------------------------------------------


def test_a_rebuild_writes_one_segment_for_each_source(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for number in range(40):
            put(fresh, f"{number}.md", *(f"note {number} {part}" for part in range(20)))
        put(fresh, "s.jsonl", "a message", source="sessions")

    assert [(each.source, each.used, each.capacity) for each in segments_of(store)] == [
        ("memory", 800, 800),
        ("sessions", 1, 1),
    ]
    assert near_texts(store, "note 39 19", limit=1) == ["note 39 19"]


def test_what_is_replaced_or_removed_before_it_is_written_never_is(store, tmp_path):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for number in range(10):
            put(fresh, f"{number}.md", f"first {number}")
        put(fresh, "3.md", "second 3")
        fresh.remove_file("memory", "4.md")
        fresh.remove_file("memory", "never.md")
    expected = PlainStore(fingerprint())
    for number in (0, 1, 2, 5, 6, 7, 8, 9):
        put(expected, f"{number}.md", f"first {number}")
    put(expected, "3.md", "second 3")

    assert store.digest() == expected.digest()
    with store.reading() as reader:
        assert reader.term_statistics(["first", "4"], where=EVERYWHERE).chunks_with == {"first": 8, "4": 0}


def test_a_rebuild_may_be_read_between_files(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for number in range(5):
            put(fresh, f"{number}.md", f"note {number}", f"more {number}")
            assert len(found_texts(fresh, "note", limit=99)) == number + 1
        put(fresh, "2.md", "note again")
        assert near_texts(fresh, "note again", limit=1) == ["note again"]
    store.digest()


def test_a_rebuild_holds_no_more_in_memory_than_it_should(store, monkeypatch):
    monkeypatch.setattr(build, "_MOST_BYTES", 3_000)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for number in range(30):
            put(fresh, f"{number}.md", *(f"note{number} part{part}" for part in range(10)))
            fresh.remove_file("memory", f"{number - 3}.md")

    assert len(segments_of(store)) > 2
    assert len(found_texts(store, "part0", limit=99)) == 3
    store.digest()


def test_a_file_larger_than_a_segment_is_divided(store, monkeypatch):
    monkeypatch.setattr(build, "MOST", 100)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", *(f"part {number}" for number in range(250)))

    assert [each.used for each in segments_of(store)] == [100, 100, 50]
    assert near_texts(store, "part 222", limit=1) == ["part 222"]
    store.digest()


def test_a_failed_file_leaves_a_rebuild_whole(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        with pytest.raises(BadVector):
            put(fresh, "bad.md", "of other dimensions", dims=3)
        put(fresh, "good.md", "a good note")
        with fresh.driver.generation.writing() as db:
            db.execute("CREATE TRIGGER refuse BEFORE INSERT ON vectors BEGIN SELECT RAISE(ABORT, 'no'); END")
        with pytest.raises(Exception, match="no"):
            put(fresh, "refused.md", "a refused note")
        with fresh.driver.generation.writing() as db:
            db.execute("DROP TRIGGER refuse")
        put(fresh, "last.md", "the last note")

    assert sorted(found_texts(store, "note")) == ["a good note", "the last note"]
    store.digest()


def test_text_erased_while_a_rebuild_goes_on_elsewhere_does_not_come_back(store, tmp_path):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "plain words")
        put(fresh, "secret.md", "kwisatzhaderach")
        other = SqliteStore(str(tmp_path / "index"))
        other.erase("memory", "secret.md")
        other.close()
        put(fresh, "b.md", "more plain words")

    assert found_texts(store, "kwisatzhaderach") == []
    store.digest()
    store.close()
    for entry in (tmp_path / "index").iterdir():
        assert b"kwisatzhaderach" not in entry.read_bytes()


def joined_with_a_bad_one(store, around):
    with store.joined():
        put(store, "lost.md", "a lost note")
        put(store, "lost.jsonl", "a lost note", source="sessions")
        with around:
            put(store, "bad.md", "of other dimensions", dims=3)


def test_one_joined_change_that_fails_takes_the_others_with_it(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "before.md", "a note")
        with pytest.raises(BadVector):
            joined_with_a_bad_one(fresh, nullcontext())
        with pytest.raises(IndexUnavailable, match="joined"):
            joined_with_a_bad_one(fresh, suppress(BadVector))
        with fresh.joined():
            put(fresh, "after.md", "another note")
            put(fresh, "after.jsonl", "a third note", source="sessions")

    assert sorted(found_texts(store, "note")) == ["a note", "a third note", "another note"]
    store.digest()


def test_nothing_is_read_while_changes_are_joined(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh, fresh.joined():
        put(fresh, "a.md", "a note")
        with pytest.raises(IndexUnavailable, match="joined"):
            fresh.digest()


def test_joined_changes_that_fill_segments_are_found(store, monkeypatch):
    monkeypatch.setattr(build, "MOST", 100)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        for start in (0, 7):
            with fresh.joined():
                for number in range(start, start + 7):
                    put(fresh, f"{number}.md", *(f"note{number} part{part}" for part in range(60)))

    assert [each.used for each in segments_of(store)] == [100] * 8 + [40]
    assert len(found_texts(store, "part0", limit=99)) == 14
    store.digest()


def test_who_erases_waits_for_changes_that_are_joined(store, tmp_path):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        other = SqliteStore(str(tmp_path / "index"))
        eraser = threading.Thread(target=other.erase, args=("memory", "secret.md"))
        with fresh.joined():
            put(fresh, "secret.md", "kwisatzhaderach")
            eraser.start()
            eraser.join(0.2)
            assert eraser.is_alive()
            put(fresh, "b.md", "plain words")
        eraser.join()
        other.close()

    assert found_texts(store, "kwisatzhaderach", "plain") == ["plain words"]
    store.digest()
    store.close()
    for entry in (tmp_path / "index").iterdir():
        assert b"kwisatzhaderach" not in entry.read_bytes()


def test_a_rebuild_prepares_a_large_file_a_few_chunks_at_a_time(store):
    chunks = embedded("a.md", *(f"part {number}" for number in range(1_300)))
    waiting = []

    class Counted(list):
        def __iter__(self):
            for at, each in enumerate(chunks, 1):
                waiting.append(at - written())
                yield each

    def written():
        return fresh.driver.generation._writer.execute("SELECT count(*) FROM chunks").get

    with store.rebuild(fingerprint(), reason="a test") as fresh:
        fresh.replace_file(file_state("a.md"), Counted(chunks))
    expected = PlainStore(fingerprint())
    expected.replace_file(file_state("a.md"), chunks)

    assert max(waiting) == 512
    assert store.digest() == expected.digest()
    with store.reading() as reader:
        assert len(reader.chunks_between("memory", "a.md", 1, 4_000)) == 1_300


# --- all of it -----------------------------------------------------------------------------------------------

PATHS = st.sampled_from([f"{number}.md" for number in range(6)])
WORDS = [f"w{number}" for number in range(12)]


class BothStores(RuleBasedStateMachine):
    """Whatever happens to a store, it answers as the one in memory does."""

    def __init__(self):
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.memory = PlainStore(fingerprint())
        self.sqlite = SqliteStore(self.folder.name)
        with self.sqlite.rebuild(fingerprint(), reason="a test"):
            pass
        self.fresh = None

    def teardown(self):
        self.sqlite.close()
        self.folder.cleanup()

    def texts(self, seed, count):
        dice = random.Random(seed)
        return [" ".join(dice.choices(WORDS, k=dice.randint(0, 9))) or "-" for _ in range(count)]

    @rule(
        path=PATHS,
        seed=st.integers(0, 10**6),
        count=st.integers(0, 400),
        bare=st.booleans(),
        scope=st.sampled_from(["private", "shared", "group:1"]),
    )
    def replace(self, path, seed, count, bare, scope):
        texts, source = self.texts(seed, count), "memory" if path < "4" else "sessions"
        for store in (self.memory, self.sqlite):
            put(store, path, *texts, source=source, without_vector=bare, scope=scope)

    @rule(path=PATHS, seed=st.integers(0, 10**6), kept=st.floats(0, 1), count=st.integers(0, 40))
    def grow(self, path, seed, kept, count):
        source = "memory" if path < "4" else "sessions"
        state = self.memory._index.states.get((source, path))
        known = self.memory._index.chunks.get((source, path), ())
        if state is not None:
            keeping = int(kept * len(known))
            texts = [each.chunk.text for each in known[:keeping]] + self.texts(seed, count)
            for store in (self.memory, self.sqlite):
                put(store, path, *texts, source=source, scope=state.scope, keeping=keeping)

    @rule(path=PATHS, erase=st.booleans())
    def remove(self, path, erase):
        source = "memory" if path < "4" else "sessions"
        for store in (self.memory, self.sqlite):
            (store.erase if erase else store.remove_file)(source, path)

    @precondition(lambda self: self.memory._index.states)
    @rule(seed=st.integers(0, 10**6))
    def ask(self, seed):
        dice = random.Random(seed)
        terms, query = dice.choices(WORDS, k=3), vector(dice.choice(WORDS))
        where = dice.choice((EVERYWHERE, seen_by("shared", "group:1"), seen_by("private")))
        with self.memory.reading() as one, self.sqlite.reading() as other:
            assert one.term_statistics(terms, where=EVERYWHERE) == other.term_statistics(
                terms, where=EVERYWHERE
            )
            for left, right in (
                (
                    keyword_candidates(one, terms, where=where, limit=4_000),
                    keyword_candidates(other, terms, where=where, limit=4_000),
                ),
                (
                    vector_candidates(one, query, where=where, limit=4_000),
                    vector_candidates(other, query, where=where, limit=4_000),
                ),
            ):
                assert {each.chunk: each.score for each in left} == {each.chunk: each.score for each in right}

    @invariant()
    def equal(self):
        assert self.memory.digest() == self.sqlite.digest()


BothStores.TestCase.settings = settings(
    max_examples=12, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)
)
test_both_stores_live_alike = pytest.mark.slow(pytest.mark.timeout(120)(BothStores.TestCase))
