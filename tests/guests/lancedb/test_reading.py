"""How a view is read: ids before texts, neighbours along with what is read, vectors from memory."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.index_contents import EVERYWHERE, fingerprint, near_texts, put, vector
from tests.support.s3_server import running_object_store

from plainmind.guests.lancedb import overview
from plainmind.guests.lancedb.overview import VectorBlock, fits, read_block
from plainmind.guests.lancedb.store import LanceStore
from plainmind.index.protocol import keyword_candidates, vector_candidates

DIMS = 16


def test_proposals_are_the_ids_and_the_chunks_of_the_candidates(store):
    put(store, "memory/a.md", "the gateway", "a printer", "gateway and printer")
    put(store, "memory/b.md", "the harbour", "a gateway gateway")
    with store.reading() as reader:
        by_words = keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=2)
        by_vector = vector_candidates(reader, vector("the harbour"), where=EVERYWHERE, limit=2)

        assert reader.by_words(["gateway"], where=EVERYWHERE, limit=2) == [each.id for each in by_words]
        near = reader.by_vector(vector("the harbour"), where=EVERYWHERE, limit=2)
        assert near == [each.id for each in by_vector]
        assert reader.chunks(near) == [each.chunk for each in by_vector]
        assert reader.chunks([]) == []


def test_words_are_counted_in_every_segment(store):
    put(store, "memory/a.md", "gateway gateway", "a printer and a gateway")
    put(store, "memory/b.md", "gateway " * 300)
    with store.reading() as reader:
        found = keyword_candidates(reader, ["gateway"], where=EVERYWHERE, limit=5)
        counts = reader.term_counts(["printer", "Gateway", "nothing"], [each.id for each in found])

        assert {each.chunk.text[:17]: count for each, count in zip(found, counts, strict=True)} == {
            "gateway gateway": b"\0\2\0",
            "a printer and a g": b"\1\1\0",
            "gateway gateway g": b"\0\xff\0",
        }
        assert reader.term_counts([], [found[0].id]) == [b""]


def test_the_chunks_beside_those_that_are_read_come_along():
    with running_object_store() as server:
        store = LanceStore("s3://bucket/memory", storage_options=server.options)
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", *(f"part {number}" for number in range(9)))
            put(fresh, "b.md", "another")
        with store.reading() as reader:
            [found] = reader.by_words(["4"], where=EVERYWHERE, limit=5)
            reader.chunks([found])
            before = len(server.requests)
            near = reader.chunks_between("memory", "a.md", 10, 18)
            assert [chunk.text for chunk in near] == ["part 3", "part 4", "part 5"]
            assert len(server.requests) == before
        store.close()


# --- vectors in memory ---------------------------------------------------------------------------------------


def unit_rows(count: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, DIMS))
    return (rows / np.linalg.norm(rows, axis=1)[:, None]).astype(np.float16)


def filled(rows: np.ndarray, absent: set[int]) -> VectorBlock:
    there = np.array([at for at in range(len(rows)) if at not in absent], dtype=np.int64)
    return read_block(np.arange(len(rows)) * 3 + 5, DIMS, lambda _: [(there, rows[there])], None)


@given(
    count=st.integers(1, 200),
    seed=st.integers(0, 9),
    share=st.floats(0.01, 1),
    absent=st.sets(st.integers(0, 199), max_size=20),
)
@settings(max_examples=examples(60))
def test_twice_the_wanted_by_bytes_have_the_wanted_among_them(count, seed, share, absent):
    rows = unit_rows(count, seed)
    block = filled(rows, absent)
    asked = unit_rows(1, seed + 100)[0]
    admitted = np.flatnonzero(np.random.default_rng(seed).random(count) <= share)
    near = set(block.near(asked.tobytes(), admitted, 20).tolist())

    living = [at for at in admitted.tolist() if at not in absent]
    assert near <= set(living)
    assert len(near) == min(20, len(living))
    cosines = rows.astype(np.float32) @ asked.astype(np.float32)
    assert set(sorted(living, key=lambda at: -cosines[at])[:5]) <= near


@pytest.mark.parametrize("with_exact", [True, False])
def test_a_block_takes_over_what_the_one_before_it_had(monkeypatch, with_exact):
    if not with_exact:
        monkeypatch.setattr(overview, "MOST_BYTES", 50 * (DIMS + 4))
    rows = unit_rows(40, 1)
    before = filled(rows, {7})
    ids = np.concatenate(
        [before.ids[1:], [200, 201]]
    )  # the last one without a vector, as the one with index 6
    read = []

    def fresh(indexes):
        read.extend(indexes.tolist())
        return [(np.array([39]), rows[:1])]

    after = read_block(ids, DIMS, fresh, before)
    assert read == [39, 40]
    assert np.flatnonzero(after.scales == 0).tolist() == [6, 40]
    assert after.numbers[39].tolist() == before.numbers[0].tolist()
    assert after.numbers[:39].tolist() == before.numbers[1:].tolist()
    kept = after.vectors([8, 26, 200])
    assert kept == ({8: rows[1].tobytes(), 200: rows[0].tobytes()} if with_exact else None)


def test_vectors_that_are_kept_as_they_are_come_from_where_they_were_not(monkeypatch):
    rows = unit_rows(40, 1)
    with monkeypatch.context() as patched:
        patched.setattr(overview, "MOST_BYTES", 50 * (DIMS + 4))
        before = filled(rows, set())
    after = read_block(before.ids, DIMS, lambda wanted: [(wanted, rows[wanted])], before)

    assert after.vectors([5, 8]) == {5: rows[0].tobytes(), 8: rows[1].tobytes()}


def test_without_simsimd_bytes_compare_alike(monkeypatch):
    block = filled(unit_rows(100, 3), set())
    asked = unit_rows(1, 4)[0].tobytes()
    quick = sorted(block.near(asked, np.arange(100), 10).tolist())
    monkeypatch.setitem(sys.modules, "simsimd", None)

    assert sorted(block.near(asked, np.arange(100), 10).tolist()) == quick


def test_how_many_vectors_are_kept():
    assert fits(150_000, 256)
    assert not fits(160_000, 256)


@pytest.mark.timeout(60)
def test_more_vectors_than_are_taken_one_by_one_are_read_at_once_and_none_is_missed(store, monkeypatch):
    monkeypatch.setattr("plainmind.guests.lancedb.view._MOST_TAKEN", 100)
    monkeypatch.setattr("plainmind.guests.lancedb.view._READ_AT_A_TIME", 64)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", *(f"note {number}" for number in range(1_300)))
        put(fresh, "b.md", "no vector", without_vector=True)
    for number in (0, 700, 1_299):
        assert near_texts(store, f"note {number}", limit=1) == [f"note {number}"]
