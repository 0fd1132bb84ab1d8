from hypothesis import given
from hypothesis import strategies as st

from commonplace.model import Chunk
from commonplace.search.units import pieces, read, units_of


def chunk(text, start=1, end=None, ordinal=0):
    lines = text.count("\n")
    return Chunk("memory/a.md", "memory", ordinal, start, start + lines if end is None else end, text)


def test_each_line_of_a_chunk_is_one_unit_with_its_own_number():
    units = units_of(chunk("first\n\nthird", start=7))

    assert [(unit.line, unit.text) for unit in units] == [(7, "first"), (8, ""), (9, "third")]


def test_a_long_line_is_cut_after_sentences():
    sentence = "The gateway moved to another machine last night. "
    units = units_of(chunk(sentence * 20))

    assert len(units) > 2
    assert {unit.line for unit in units} == {1}
    assert all(unit.text.endswith(". ") for unit in units)


def test_a_piece_of_a_longer_line_keeps_the_one_line_that_it_is_cited_by():
    units = units_of(chunk("part one\npart two", start=5, end=5, ordinal=3))

    assert {unit.line for unit in units} == {5}
    assert units[0].piece >= 30_000


def test_a_text_without_spaces_is_cut_anyway():
    assert [len(piece) for piece in pieces("x" * 700, limit=280)] == [280, 280, 140]


def test_a_text_without_sentences_is_cut_between_words():
    assert all(piece.endswith(" ") for piece in list(pieces("word " * 200, limit=280))[:-1])


@given(st.text(max_size=3000), st.integers(min_value=4, max_value=400))
def test_pieces_joined_are_the_text(text, limit):
    assert "".join(pieces(text, limit)) == text


def test_terms_are_counted_unit_by_unit_whatever_their_ending():
    units, terms = read(chunk("Painting, painted and paints;\nnothing else."))

    assert [unit.line for unit in units] == [1, 2]
    assert [own["paint"] for own in terms] == [3, 0]
