from hypothesis import given
from hypothesis import strategies as st

from plainmind.text.chunking import cut
from plainmind.text.terms import weight

MIXED = st.text("ab ,.!漢字、。é\u2028", max_size=400)


@given(MIXED, st.integers(32, 80))
def test_pieces_join_to_the_line_and_none_is_over_the_limit(line, limit):
    pieces = list(cut(line, limit))
    assert "".join(pieces) == line
    assert all(0 < weight(piece) <= limit for piece in pieces)


def test_a_line_that_fits_is_one_piece():
    assert list(cut("short", 32)) == ["short"]


def test_cuts_fall_after_sentences_when_there_are_some():
    line = "One sentence is here. Another one is there. A third stands last."
    assert list(cut(line, 50)) == ["One sentence is here. ", "Another one is there. A third stands last."]


def test_cuts_fall_after_clauses_or_words_otherwise():
    assert next(cut("aaaa bbbb cccc dddd, eeee ffff gggg hhhh", 32)) == "aaaa bbbb cccc dddd, "
    assert next(cut("aaaa bbbb cccc dddd eeee ffff gggg hhhh", 32)).endswith(" ")
    assert next(cut("今日は晴れ。明日は雨です。", 32)) == "今日は晴れ。"


def test_what_has_no_pause_is_cut_evenly():
    sizes = [len(piece) for piece in cut("x" * 1000, 400)]
    assert max(sizes) <= 400
    assert min(sizes) >= 190


def test_a_chinese_character_weighs_four():
    assert weight("ab漢") == 6
    assert weight("naïve") == 5
    assert max(len(piece) for piece in cut("漢" * 100, 32)) == 8
