"""Both arithmetics do what they say, and the same."""

from __future__ import annotations

import random
import subprocess
import sys
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_store import score

from plainmind.index import arithmetic_numpy as with_numpy
from plainmind.index import bm25, vectors
from plainmind.index.bm25 import Postings, WordPart
from plainmind.index.vectors import Absences, SignPart

BOTH = pytest.mark.parametrize("arithmetic", [bm25, with_numpy], ids=["plain", "numpy"])


def made_part(first_id, size, terms, dice):
    """A segment of random chunks; about one in eight is no more, and its postings are still there."""
    counts = [
        {term: dice.choice([1, 1, 1, 2, 3, 255]) for term in terms if dice.random() < share}
        for _ in range(size)
        for share in [dice.choice([0.02, 0.3, 0.9])]
    ]
    lengths = array("H", [sum(own.values()) + dice.randint(0, 300) for own in counts])
    for position, own in enumerate(counts):
        if not own or dice.random() < 0.12:
            lengths[position] = 0
    postings = []
    for term in terms:
        positions = array("H", [position for position, own in enumerate(counts) if term in own])
        of_term = bytes(own[term] for own in counts if term in own)
        postings.append(Postings(positions.tobytes(), of_term) if positions else None)
    return WordPart(first_id, memoryview(lengths.tobytes()).cast("H"), postings), counts, lengths


def made_parts(seed, sizes, terms):
    dice = random.Random(seed)
    return [made_part(100_000 * (at + 1), size, terms, dice) for at, size in enumerate(sizes)]


def exact_scores(made, weights, average):
    return {
        part.first_id + position: score(weights, own, bm25.length_penalty(lengths[position], average))
        for part, counts, lengths in made
        for position, own in enumerate(counts)
        if own and lengths[position]
    }


@given(
    st.integers(0, 10**9),
    st.lists(st.integers(1, 400), min_size=1, max_size=3),
    st.integers(1, 60),
    st.integers(1, 9),
)
@settings(max_examples=examples(60), deadline=None)
def test_the_best_are_those_of_scoring_every_chunk_to_the_last_bit(seed, sizes, limit, term_count):
    terms = [f"t{number}" for number in range(term_count)]
    made = made_parts(seed, sizes, terms)
    weights = bm25.term_weights(1000, {term: 3**at % 997 for at, term in enumerate(terms)})
    parts = [
        WordPart(part.first_id, part.lengths, [part.postings[terms.index(term)] for term in weights])
        for part, _, _ in made
    ]
    expected = list(bm25.best(exact_scores(made, weights, 55.5), limit))

    assert bm25.best_by_words(parts, list(weights.values()), 55.5, limit) == expected
    assert with_numpy.best_by_words(parts, list(weights.values()), 55.5, limit) == expected


@BOTH
@pytest.mark.parametrize(("size", "is_known"), [(20, True), (3_000, True), (30_000, False)])
def test_what_was_worked_out_for_all_chunks_is_the_score_of_each_to_the_last_bit(arithmetic, size, is_known):
    terms = ["a", "b", "c", "d"]
    ((part, _, _),) = made_parts(size, [size], terms)
    weights = [0.9, 0.06, 0.03, 0.01]
    if not is_known:  # so few have the heavy one that the light ones cannot make others the best
        first = part.postings[0]
        few = array("H", first.positions[:60])
        part.postings = [Postings(few.tobytes(), first.counts[:60]), *part.postings[1:]]

    arithmetic.best_by_words([part], weights, 120.0, size + 1 if is_known else 20)

    assert (part.scores is not None) == is_known
    if part.scores is not None:
        every = list(range(size))
        assert part.scores(every) == bm25.word_scores(part, weights, 120.0, every)


@BOTH
@pytest.mark.parametrize("limit", [1, 10, 48])
def test_pruning_large_segments_loses_nothing(arithmetic, limit):
    terms = ["rare", "less", "common", "everywhere"]
    made = made_parts(4, [9_000, 20_000], terms)
    weights = {"rare": 0.62, "less": 0.3, "common": 0.05, "everywhere": 0.03}
    parts = [part for part, _, _ in made]
    for part, counts, _ in made:
        few = [at for at, own in enumerate(counts) if "rare" in own][::40]
        for at, own in enumerate(counts):
            if at not in set(few):
                own.pop("rare", None)
        part.postings = [
            Postings(array("H", few).tobytes(), bytes(counts[at]["rare"] for at in few)),
            *part.postings[1:],
        ]
    expected = list(bm25.best(exact_scores(made, weights, 120.0), limit))

    assert arithmetic.best_by_words(parts, list(weights.values()), 120.0, limit) == expected


@BOTH
@pytest.mark.parametrize("more", [3, 60])
def test_counts_of_single_positions_are_those_of_the_postings(arithmetic, more):
    terms = ["a", "b", "c", "d"]
    ((part, counts, _),) = made_parts(8, [500], terms)
    part.postings = [*part.postings[:2], None, part.postings[3]]
    positions = [3, 499, 0, *range(250, 250 + more)]

    assert arithmetic.term_counts(part.postings, positions) == [
        bytes([counts[at].get("a", 0), counts[at].get("b", 0), 0, counts[at].get("d", 0)]) for at in positions
    ]
    assert arithmetic.term_counts([], positions) == [b""] * len(positions)


@BOTH
def test_a_position_beyond_the_last_posting_counts_nothing(arithmetic):
    one = Postings(array("H", [14]).tobytes(), b"\7")

    assert arithmetic.term_counts([one], [13, 14, 15]) == [b"\0", b"\7", b"\0"]
    assert arithmetic.term_counts([one], list(range(30))) == [b"\0"] * 14 + [b"\7"] + [b"\0"] * 15


@BOTH
@pytest.mark.parametrize("more", [3, 60])
def test_scores_of_single_positions_are_those_of_scoring_the_chunk(arithmetic, more):
    terms = ["a", "b", "c"]
    ((part, counts, lengths),) = made_parts(7, [500], terms)
    weights = {"a": 0.5, "b": 0.3, "c": 0.2}
    positions = [3, 499, 0, *range(250, 250 + more)]

    found = arithmetic.word_scores(part, list(weights.values()), 80.0, positions)
    assert found == [
        score(weights, counts[at], bm25.length_penalty(lengths[at], 80.0)) if lengths[at] else 0.0
        for at in positions
    ]


@BOTH
def test_chunks_that_are_no_more_are_not_counted(arithmetic):
    ((part, counts, lengths),) = made_parts(9, [300], ["a"])
    living = sum(1 for own, length in zip(counts, lengths, strict=True) if own and length)

    assert arithmetic.count_living(part.postings[0], part.lengths) == living


def made_signs(dice, sizes, width, share_absent):
    parts = []
    for at, size in enumerate(sizes):
        flags = bytes(255 if dice.random() < share_absent else 0 for _ in range(size))
        parts.append(SignPart(1_000 * (at + 1), dice.randbytes(size * width), Absences(flags)))
    return parts


@given(
    st.integers(0, 10**9),
    st.lists(st.integers(1, 90), min_size=1, max_size=4),
    st.sampled_from([1, 2, 26, 32, 192]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(1, 120),
    st.sampled_from([1, 2, 1_000]),
)
@settings(max_examples=examples(120), deadline=None)
def test_the_nearest_by_signs_are_those_of_comparing_all(seed, sizes, width, share_absent, wanted, more):
    dice = random.Random(seed)
    parts = made_signs(dice, sizes, width, share_absent)
    query = [dice.randbytes(width) for _ in range(4)]
    pool = wanted * more
    ids, rows = [], []
    for part in parts:
        for at, flag in enumerate(part.absences.flags):
            if not flag:
                ids.append(part.first_id + at)
                rows.append(part.signs[at * width : (at + 1) * width])
    apart = [[(int.from_bytes(row) ^ int.from_bytes(one)).bit_count() for one in query] for row in rows]
    within = sorted(sorted(range(len(ids)), key=lambda at: (apart[at][0], at))[:pool])
    nearest = sorted(within, key=lambda at: 4 * apart[at][0] + sum(apart[at][1:]))[:wanted]
    expected = [ids[at] for at in nearest]

    assert vectors.nearest_by_signs(query, parts, wanted, pool) == expected
    for part in parts:
        part.signs = with_numpy.prepare_signs(part.signs, width)
    assert with_numpy.nearest_by_signs(query, parts, wanted, pool) == expected


def test_distances_are_the_same_without_simsimd(monkeypatch):
    dice = random.Random(3)
    query, signs = [dice.randbytes(32) for _ in range(2)], dice.randbytes(32 * 100)
    fast = [row.tolist() for row in vectors.sign_distances(query, signs)]
    monkeypatch.setitem(sys.modules, "simsimd", None)

    assert [row.tolist() for row in vectors.sign_distances(query, signs)] == fast


def test_numpy_is_imported_once_it_would_have_paid_for_itself():
    program = """
import sys
from plainmind.index.bm25 import word_arithmetic
from plainmind.index.vectors import sign_arithmetic
assert word_arithmetic(36_000).__name__.endswith("bm25")
assert sign_arithmetic(2_000_000).__name__.endswith("vectors")
assert "numpy" not in sys.modules
assert word_arithmetic(36_000).__name__.endswith("arithmetic_numpy")
assert sign_arithmetic(0).__name__.endswith("arithmetic_numpy")
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_one_large_question_is_reason_enough_for_numpy():
    program = """
from plainmind.index.bm25 import word_arithmetic
assert word_arithmetic(1_400_000).__name__.endswith("arithmetic_numpy")
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
