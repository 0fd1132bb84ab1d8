"""What is kept of an index stays within its budget, and is never older than it may be."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.index_contents import EVERYWHERE, fingerprint, found_texts, near_texts, put, vector

from plainmind.base.value import replace
from plainmind.index import arithmetic_numpy, vectors
from plainmind.index import reader as reader_module
from plainmind.index.drivers.sqlite import SqliteStore, vector_copies, view
from plainmind.index.protocol import keyword_candidates, vector_candidates
from plainmind.index.reader import RecentlyUsed


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(str(tmp_path / "index"))
    with opened.rebuild(fingerprint(), reason="a test") as fresh:
        for number in range(50):
            put(fresh, f"{number}.md", *(f"note {number} part {part}" for part in range(4)))
    yield opened
    opened.close()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40), st.booleans())))
def test_the_budget_is_kept_and_what_was_used_last_stays(steps):
    kept = RecentlyUsed(100)
    model: dict[int, int] = {}
    for key, size, ask in steps:
        if ask:
            assert kept.get(key) == model.get(key)
            if key in model:
                model[key] = model.pop(key)
        else:
            model.pop(key, None)
            model[key] = size
            while sum(model.values()) > 100:
                del model[next(iter(model))]
            kept.put(key, size, size)
    found, missing = kept.get_all(range(10))
    assert found == model
    assert missing == [key for key in range(10) if key not in model]


def test_what_is_larger_than_the_budget_is_not_kept():
    kept = RecentlyUsed(10)
    kept.put("small", 1, 5)
    kept.put("large", 2, 11)

    assert kept.get("large") is None


def statements_of(store, ask):
    """What SQLite is asked to do for one view."""
    with store.driver._newest() as generation:
        for db in generation._idle:
            db.exec_trace = lambda _cursor, statement, values: seen.append((statement, values)) or True
        seen: list[tuple[str, object]] = []
        with store.reading() as reader:
            ask(reader)
        for db in generation._idle:
            db.exec_trace = None
    return [(statement, values) for statement, values in seen if statement not in {"BEGIN", "COMMIT"}]


def everything_twice(reader):
    """Until the process knows all that it is going to remember."""
    everything(reader)
    everything(reader)


def everything(reader):
    reader.fingerprint()
    reader.files()
    reader.counts()
    found = keyword_candidates(reader, ["note", "7"], where=EVERYWHERE, limit=10)
    found += vector_candidates(reader, vector("note 7 part 1"), where=EVERYWHERE, limit=10)
    reader.keyword_scores(["part"], [each.id for each in found], where=EVERYWHERE)
    reader.similarities(vector("x"), [each.id for each in found])


def test_a_question_that_was_asked_before_reads_nothing_but_the_revision(store):
    with store.reading() as reader:
        everything_twice(reader)

    assert [statement for statement, _ in statements_of(store, everything)] == [
        "SELECT value, contents FROM revision"
    ]


@pytest.mark.parametrize("word", ["absent", "lengths", "signs", "postings", "count", "chunk"])
def test_no_word_is_taken_for_another_thing_that_is_kept(store, word):
    put(store, "other.md", f"{word} friends")
    for _ in range(2):
        near_texts(store, "friends")
        assert found_texts(store, "friends") == found_texts(store, word) == [f"{word} friends"]


def test_signs_are_kept_only_as_they_are_compared_now(store, monkeypatch):
    monkeypatch.setattr(view, "EXACT_UP_TO", 10)  # so that signs choose
    for room in ("MOST_BLOCK_BYTES", "MOST_BYTES"):
        monkeypatch.setattr(vector_copies, room, 0)
    stand_in = []
    for arithmetic in (vectors, arithmetic_numpy):
        monkeypatch.setattr(view, "sign_arithmetic", lambda _, chosen=arithmetic: chosen)
        with store.reading() as reader:
            assert vector_candidates(reader, vector("note 7 part 1"), where=EVERYWHERE, limit=3)
            keys = reader._cache.kept.keys()
        stand_in.append([key[-1] for key in keys if not isinstance(key, int) and key[0] == "signs"])
    assert stand_in == [["rows"], ["columns"]]


def test_touching_a_file_makes_only_the_files_be_read_again(store):
    with store.reading() as reader:
        everything_twice(reader)
        state = reader.files()["memory", "3.md"]
    store.touch_file(replace(state, mtime_ns=77))

    again = statements_of(store, everything)
    assert [statement.partition("FROM ")[2] for statement, _ in again] == ["revision", "scopes", "files"]


def test_an_edit_leaves_what_it_did_not_change_in_memory(store):
    with store.reading() as reader:
        everything_twice(reader)
    put(store, "new.md", "something else")

    again = statements_of(store, everything)
    assert not any("FROM chunks" in statement for statement, _ in again)
    ((new,),) = [values for statement, values in again if "FROM vectors" in statement]
    assert len(json.loads(new)) == 1


def test_vectors_of_an_index_that_has_more_than_fit_push_nothing_else_out(store, monkeypatch):
    monkeypatch.setattr(view, "BESIDE_SIGNS", 100)  # hardly one vector
    monkeypatch.setattr(vector_copies, "MOST_BLOCK_BYTES", 100)
    put(store, "new.md", "something else")

    def asked_again(reader):
        for _ in range(2):
            vector_candidates(reader, vector("note 7 part 1"), where=EVERYWHERE, limit=3)

    twice = [statements_of(store, asked_again) for _ in range(2)]
    read = [sum("FROM vectors" in statement for statement, _ in once) for once in twice]
    assert read == [1, 1]  # once for each view


def test_a_view_sees_what_it_began_with_while_the_cache_moves_on(store):
    with store.reading() as before:
        put(store, "3.md", "zanzibar")
        assert found_texts(store, "zanzibar") == ["zanzibar"]
        assert near_texts(store, "zanzibar", limit=1) == ["zanzibar"]
        assert keyword_candidates(before, ["zanzibar"], where=EVERYWHERE, limit=5) == []
        assert before.term_statistics(["3"], where=EVERYWHERE).chunks_with["3"] == 53
    assert found_texts(store, "zanzibar") == ["zanzibar"]


def test_what_belongs_to_chunks_that_are_gone_does_not_stay(store, monkeypatch):
    """A file that is edited again and again leaves no more behind than one that was edited a few times."""
    monkeypatch.setattr(reader_module, "WORTH_SWEEPING", 20_000)
    with store.driver._newest() as generation:
        kept = generation._cache.kept
        sizes = []
        for number in range(120):
            put(store, "7.md", *(f"edition {number} part {part} " + "and on " * 40 for part in range(4)))
            assert len(found_texts(store, "edition")) == 4
            assert near_texts(store, f"edition {number}")
            sizes.append(kept._size)
        assert max(sizes[60:]) < 1.5 * max(sizes[:60])
        assert kept._size == sum(size for _, size in kept._entries.values())
    with store.reading() as reader:
        everything_twice(reader)
    assert len(statements_of(store, everything)) == 1  # what is still there is still known
