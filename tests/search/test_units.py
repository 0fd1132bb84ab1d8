from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import Chunk
from plainmind.search import pages as taken_apart
from plainmind.search.pages import is_one_line, pieces, units_of


def chunk(text, start=1, end=None, ordinal=0):
    lines = text.count("\n")
    return Chunk("memory/a.md", "memory", ordinal, start, start + lines if end is None else end, text)


def units(of):
    return units_of(of.text, one_line=is_one_line(of))


def places_of(of):
    return taken_apart.places_of(of, units(of))


def test_each_line_of_a_chunk_is_one_unit_with_its_own_number():
    lines = chunk("first\n\nthird", start=7)

    assert units(lines) == ["first", "", "third"]
    assert places_of(lines) == [(7, 0), (8, 0), (9, 0)]


def test_a_long_line_is_cut_after_sentences():
    long = chunk("The gateway moved to another machine last night. " * 20)

    assert len(units(long)) > 2
    assert {line for line, _ in places_of(long)} == {1}
    assert all(unit.endswith(". ") for unit in units(long))


def test_the_lines_around_a_long_one_keep_their_numbers():
    lines = chunk("before\n" + "The gateway moved. " * 60 + "\nafter", start=4)

    assert places_of(lines)[0] == (4, 0)
    assert places_of(lines)[1:4] == [(5, 0), (5, 1), (5, 2)]
    assert places_of(lines)[-1] == (6, 0)
    assert len(places_of(lines)) == len(units(lines))


def test_a_piece_of_a_longer_line_keeps_the_one_line_that_it_is_cited_by():
    piece = chunk("part one\npart two", start=5, end=5, ordinal=3)

    assert units(piece) == ["part one\npart two"]
    assert places_of(piece) == [(5, 30_000)]


def test_a_text_without_spaces_is_cut_anyway():
    assert [len(piece) for piece in pieces("x" * 700, limit=280)] == [280, 280, 140]


def test_a_text_without_sentences_is_cut_between_words():
    assert all(piece.endswith(" ") for piece in list(pieces("word " * 200, limit=280))[:-1])


@given(st.text(max_size=3000), st.integers(min_value=4, max_value=400))
def test_pieces_joined_are_the_text(text, limit):
    assert "".join(pieces(text, limit)) == text


def test_a_line_break_at_the_end_hides_no_cut():
    ended = chunk("The gateway moved. " * 31 + "\n", start=4, end=5)

    assert len(units(ended)) == 3
    assert places_of(ended) == [(4, 0), (4, 1), (4, 2)]
    assert places_of(chunk("one\r\ntwo\n", start=4)) == [(4, 0), (5, 0)]


@given(st.text("ab. \n\r", max_size=2000), st.booleans())
def test_every_unit_has_a_place_and_no_two_the_same(text, one_line):
    of = chunk(text, start=3, end=3 if one_line else 3 + max(1, text.count("\n")))

    assert len(set(places_of(of))) == len(units(of))
    assert places_of(of) == sorted(places_of(of))
