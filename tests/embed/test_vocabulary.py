"""The two ways to find a piece give the same ranks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plainmind.embed import builtin as vocabulary
from plainmind.embed.builtin import BUNDLED, Vocabulary

DATA = (Path(BUNDLED) / "vocab").read_bytes()
PIECES = DATA.decode().split("\n")


@pytest.fixture
def always_searching(monkeypatch) -> Vocabulary:
    monkeypatch.setattr(vocabulary, "_FEW", 10**9)
    return Vocabulary(DATA)


@pytest.fixture
def always_looking_up(monkeypatch) -> Vocabulary:
    monkeypatch.setattr(vocabulary, "_FEW", 0)
    return Vocabulary(DATA)


def test_pieces_have_their_ids_as_ranks_both_ways(always_searching, always_looking_up):
    some = random.Random(7).sample(range(259, len(PIECES)), 300)
    ids = [id_ for id_ in (259 + 1, *some, len(PIECES) - 1) if set(PIECES[id_]) != {"▁"}]

    assert [always_searching.rank_of(PIECES[id_]) for id_ in ids] == ids
    assert [always_looking_up.rank_of(PIECES[id_]) for id_ in ids] == ids


def test_runs_of_spaces_come_after_everything_else(always_searching, always_looking_up):
    runs = ["▁" * length for length in range(2, 17)]

    ranks = [always_searching.rank_of(run) for run in runs]

    assert ranks == [always_looking_up.rank_of(run) for run in runs]
    assert ranks == [len(PIECES) + PIECES.index(run) for run in runs]


@pytest.mark.parametrize("piece", ["<unk>", "<0x0A>", "\n", "", "nosuchpiece", "er\nin", "\ud800"])
def test_what_nothing_is_joined_to_has_no_rank(piece, always_searching, always_looking_up):
    assert always_searching.rank_of(piece) is None
    assert always_looking_up.rank_of(piece) is None


def test_searching_and_looking_up_agree_on_any_text(always_searching, always_looking_up):
    @settings(max_examples=200, deadline=None)
    @given(st.text(max_size=6) | st.sampled_from(PIECES))
    def same(piece: str) -> None:
        assert always_searching.rank_of(piece) == always_looking_up.rank_of(piece)

    same()


def test_after_a_few_searches_pieces_are_looked_up():
    words = Vocabulary(DATA)
    first = words.rank_of

    for piece in PIECES[1000 : 1000 + vocabulary._FEW + 1]:
        assert first(piece) == PIECES.index(piece)

    assert words.rank_of("▁the") == PIECES.index("▁the")
    assert words.rank_of == words._ranks.get


def test_a_piece_that_was_searched_for_is_remembered():
    words = Vocabulary(DATA)

    for _ in range(vocabulary._FEW + 1):
        assert words.rank_of("▁the") == PIECES.index("▁the")
        assert words.rank_of("nosuchpiece") is None

    assert not words._ranks
