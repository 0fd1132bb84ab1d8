import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import Chunk
from plainmind.search.pages import QuestionWords, RankedChunk, Shelf, kinds_of
from plainmind.search.snippets import (
    Judge,
    KnownFile,
    ReadChunk,
    Weights,
    grow_snippets,
    ranges_with_margin,
)
from plainmind.text.terms import document_terms

JUDGE = Judge(QuestionWords({"gateway": 1.0}), Weights(), window_chars=700)


def chunk(ordinal, start, *lines):
    return Chunk("memory/a.md", "memory", ordinal, start, start + len(lines) - 1, "\n".join(lines))


def read(of, keywords=0.0):
    ranked = RankedChunk(of, keywords, 0.0, 0.0)
    ranked.term_counts = bytes([document_terms(of.text).count("gateway")])
    item = ReadChunk(ranked, Shelf(), JUDGE)
    item.weigh(Weights(), frozenset(), 1.0)
    return item


def nothing_around(_first, _last):
    return []


def file_of(*chunks, between=nothing_around, with_margin=False):
    file = KnownFile(between)
    for item in chunks:
        file.add(item, with_margin=with_margin)
    return file


class Between:
    """All chunks of a file, and which lines of it were asked for."""

    def __init__(self, *chunks):
        self.chunks = chunks
        self.asked_for = []

    def __call__(self, first, last):
        self.asked_for.append((first, last))
        return [one for one in self.chunks if one.start_line <= last and one.end_line >= first]


@given(
    st.lists(
        st.sampled_from(["", "text", "# A", "- item", "---", "```", "~~~", "  ```sh", "1. one"]),
        min_size=2,
        max_size=12,
    ),
    st.data(),
)
def test_what_lines_are_does_not_depend_on_how_they_were_cut_into_chunks(lines, data):
    cut = data.draw(st.integers(1, len(lines) - 1))
    first, second = chunk(0, 1, *lines[:cut]), chunk(1, cut + 1, *lines[cut:])
    joined = file_of(read(first), read(second)).lines()

    assert list(joined.kinds) == kinds_of(joined.texts, joined.places)


def test_chunks_are_put_together_in_reading_order():
    later, earlier = read(chunk(1, 4, "four", "five"), keywords=0.5), read(chunk(0, 1, "one", "two"))
    file = file_of(later, earlier)
    lines = file.lines()

    assert file.most == later.most > earlier.most
    assert lines.places == [(1, 0), (2, 0), (4, 0), (5, 0)]
    assert lines.texts == ["one", "two", "four", "five"]
    assert list(zip(lines.chunks, lines.units, strict=True)) == [
        (earlier, 0),
        (earlier, 1),
        (later, 0),
        (later, 1),
    ]


def test_a_line_that_two_chunks_have_is_that_of_the_last_one():
    first, second = read(chunk(0, 1, "one", "two")), read(chunk(1, 2, "two", "three"))

    assert file_of(first, second).lines().texts == ["one", "two", "three"]
    assert file_of(first, second).lines().chunks == [first, second, second]
    assert file_of(second, first).lines().chunks == [first, first, second]


def test_a_line_that_two_chunks_have_starts_one_snippet():
    first, second = read(chunk(0, 1, "one", "gateway")), read(chunk(1, 2, "gateway", "three"))
    texts = [snippet.text for snippet in grow_snippets([file_of(first, second)], budget=8)]

    assert sorted(texts) == ["gateway", "one", "three"]


def test_a_blank_line_is_worth_nothing():
    lines = file_of(read(chunk(0, 1, "one", " ", "three"), keywords=0.5)).lines()

    assert [lines.score(at) > 0 for at in range(3)] == [True, False, True]


def test_a_snippet_inside_what_is_known_asks_for_nothing_more():
    between = Between()
    known = [read(chunk(0, 1, "one", "two", "three")), read(chunk(1, 4, "four", "five"))]
    file = file_of(*known, between=between, with_margin=True)
    file.lines()

    assert file.wider(0, 1) is None  # a file begins with its first chunk
    assert file.wider(1, 3) is None
    assert between.asked_for == []


def test_the_lines_around_fill_up_and_never_replace_what_is_known():
    best, other = chunk(1, 3, "three", "four"), chunk(2, 5, "five", "six")
    between = Between(chunk(0, 1, "one", "two"), best, other, chunk(3, 7, "seven", "eight"))
    known = [read(best), read(other)]
    file = file_of(*known, between=between, with_margin=True)
    file.lines()
    wider = file.wider(1, 3)

    assert wider.texts == ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    assert wider.chunks == [None, None, known[0], known[0], known[1], known[1], None, None]
    assert [wider.score(at) for at in (0, 7)] == [0.0, 0.0]
    assert between.asked_for == [(1, 18)]
    assert file.wider(0, 7) is None  # there is no more


@pytest.mark.parametrize(
    ("known", "first", "last"),
    [
        ([chunk(1, 4, "four", "five", "six")], 1, 1),  # line 4 may be shared with what is before
        ([chunk(1, 4, "four", "five")], 0, 0),
        ([chunk(0, 1, "one", "two")], 1, 1),
        ([chunk(0, 1, "one"), chunk(2, 3, "three", "four", "five")], 0, 0),
        ([chunk(0, 1, "one", "two", "three"), chunk(1, 2, "two", "three", "four", "five")], 1, 1),
    ],
)
def test_a_snippet_at_the_edge_of_what_is_known_asks_once(known, first, last):
    between = Between()
    file = file_of(*map(read, known), between=between, with_margin=True)
    file.lines()

    assert file.wider(first, last) is None
    assert file.wider(first, last) is None
    assert len(between.asked_for) >= 1
    assert len(between.asked_for) == len(set(between.asked_for))


def test_without_margins_nothing_is_asked_for():
    between = Between()
    file = file_of(read(chunk(1, 4, "four")), between=between)
    file.lines()

    assert file.wider(0, 0) is None
    assert between.asked_for == []


def test_margins_that_overlap_are_one_range():
    chunks = [chunk(9, 90, "x"), chunk(0, 3, "x"), chunk(1, 20, "x", "y"), chunk(2, 19, "x", "y", "z")]

    assert ranges_with_margin(chunks) == [(1, 33), (78, 102)]


def test_a_chunk_without_any_line_adds_nothing():
    file = file_of(read(Chunk("memory/a.md", "memory", 0, 1, 2, "")))

    assert file.most == 0.0
    assert file.lines().texts == []
    assert list(grow_snippets([file], budget=50)) == []


texts = st.sampled_from(["gateway", "the gateway of old", "other words", "x", " ", "gateway gateway gateway"])
files = st.lists(
    st.tuples(st.lists(texts, min_size=1, max_size=4), st.integers(0, 1), st.booleans(), st.booleans()),
    min_size=1,
    max_size=6,
)


class WidenedAtOnce(KnownFile):
    """Fetches its margins before anything is shown."""

    def _encloses(self, _first, _last):
        return False


def snippets_of(drawn, budget, *, kind=KnownFile, most=None):
    """The snippets of a file of chunks, some of which are known, some with margins."""
    chunks, line = [], 1
    for ordinal, (lines, gap, _, _) in enumerate(drawn):
        chunks.append(chunk(ordinal, line, *lines))
        line += len(lines) + gap
    file = kind(Between(*chunks))
    for one, (_, _, is_known, has_margin) in zip(chunks, drawn, strict=True):
        if is_known:
            item = read(one, keywords=one.ordinal / 10)
            item.most = item.most if most is None else most
            file.add(item, with_margin=has_margin)
    return [
        (one.text, one.start_line, one.end_line, one.score) for one in grow_snippets([file], budget=budget)
    ]


@given(files, st.integers(min_value=5, max_value=90))
def test_what_is_read_first_does_not_change_what_is_shown(drawn, budget):
    assert snippets_of(drawn, budget) == snippets_of(drawn, budget, most=9.0)


@given(files, st.integers(min_value=5, max_value=90))
def test_when_margins_are_fetched_does_not_change_what_is_shown(drawn, budget):
    assert snippets_of(drawn, budget) == snippets_of(drawn, budget, kind=WidenedAtOnce)
