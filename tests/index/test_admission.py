"""What a filter hides of a segment is hidden from the arithmetic, and nothing else is."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.index_contents import EVERYWHERE, embedded, file_state, fingerprint, put, seen_by, vector
from tests.support.plain_store import PlainStore

from plainmind.index.drivers.sqlite import SqliteStore
from plainmind.index.drivers.sqlite.view import absent_with, hidden_positions, lengths_without
from plainmind.index.protocol import keyword_candidates, vector_candidates

POSITIONS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 65_535), st.sampled_from([0, 255])), min_size=1, max_size=40
)


@given(positions=POSITIONS, admitted=st.frozensets(st.integers(0, 4)))
def test_what_is_hidden_has_neither_length_nor_vector_and_the_rest_is_as_it_was(positions, admitted):
    scopes, lengths, absent = zip(*positions, strict=True)
    hidden = hidden_positions(array("I", scopes).tobytes(), admitted)

    if hidden is None:
        assert admitted.isdisjoint(scopes)
    elif not hidden:
        assert admitted.issuperset(scopes)
    else:
        seen = [scope in admitted for scope in scopes]
        masked = lengths_without(memoryview(array("H", lengths)), hidden)
        assert masked.tolist() == [own if is_seen else 0 for own, is_seen in zip(lengths, seen, strict=True)]
        assert list(absent_with(bytes(absent), hidden)) == [
            own if is_seen else 255 for own, is_seen in zip(absent, seen, strict=True)
        ]


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(str(tmp_path / "index"))
    yield opened
    opened.close()


@pytest.mark.parametrize("way", ["by signs", "by rough copies"])
def test_among_many_vectors_only_the_admitted_ones_are_looked_for(store, way):
    import numpy as np

    assert np  # rough copies are only made once a process has imported it
    expected = PlainStore(fingerprint(64))
    with store.rebuild(fingerprint(64), reason="a test") as fresh:
        for number in range(30):
            scope = ("private", "shared", "group:1")[number % 3]
            chunks = embedded(f"{number}.md", *(f"note {number} {part}" for part in range(150)), dims=64)
            for each in (fresh, expected):
                each.replace_file(file_state(f"{number}.md", scope=scope), chunks)

    missed = 0
    for where in (EVERYWHERE, seen_by("shared", "group:1"), seen_by("private")):
        with store.reading() as reader, expected.reading() as exact:
            if way == "by rough copies":
                reader._cache.compared(10_000)
            for number in range(5):
                query = vector(f"query {number}", 64)
                found = vector_candidates(reader, query, where=where, limit=20)
                right = vector_candidates(exact, query, where=where, limit=20)
                assert len(found) == 20
                assert {each.chunk.path for each in found} <= {
                    path
                    for _, path in reader.files()
                    if where.admits("memory", reader.files()["memory", path].scope)
                }
                missed += len({each.chunk for each in right} - {each.chunk for each in found})
    assert missed <= 0.05 * 15 * 20


def test_a_question_of_a_group_that_was_asked_before_reads_nothing_but_its_scopes(store):
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "mine alone")
        put(fresh, "b.md", "for the group", scope="group:1")
    asked = {"where": seen_by("group:1"), "limit": 5}
    read: list[str] = []
    for _ in range(3):  # the second one reads all vectors, to have them side by side
        read.clear()
        with store.reading() as reader:
            reader._view.db.exec_trace = lambda _cursor, statement, _values: (
                bool(read.append(statement)) or True
            )
            assert len(keyword_candidates(reader, ["the", "mine"], **asked)) == 1
            assert len(vector_candidates(reader, vector("x"), **asked)) == 1
            reader._view.db.exec_trace = None

    assert [statement.split()[1:4] for statement in read] == [
        ["id", "FROM", "scopes"],
        ["DISTINCT", "f.source,", "s.name"],
    ] * 2
