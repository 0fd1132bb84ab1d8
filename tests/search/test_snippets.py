from hypothesis import given
from hypothesis import strategies as st

from plainmind.search.snippets import SAME_FILE, SAME_PASSAGE, Lines, grow_snippets


class ScoredChunk:
    """All lines of a file that have a score, as a chunk that was read."""

    def __init__(self, lines, most):
        self.places = [place for place, _, _ in lines]
        self.page = self
        self.may_be_less = False
        self.units = [text for _, text, _ in lines]
        self.scores = [score for _, _, score in lines]
        self.most = max(self.scores, default=0.0) if most is None else most


class File:
    """A file of numbered lines with scores; those with a score of None only fill up a snippet."""

    def __init__(self, *lines, best=None):
        self._lines = [((number, piece), text, score) for piece, (number, text, score) in enumerate(lines)]
        chunk = ScoredChunk([line for line in self._lines if line[2] is not None], best)
        self.chunks = [chunk] if chunk.places else []
        self.most = chunk.most

    def lines(self):
        lines, unit = Lines(), 0
        for place, text, score in self._lines:
            lines.add([place], [text], [None if score is None else self.chunks[0]], [unit])
            unit += score is not None
        return lines

    def wider(self, _first, _last):
        return None

    def hidden(self, _lines):
        return frozenset()


def file_of(*lines, best=None):
    return File(*((number, text, score) for number, (text, score) in enumerate(lines, 1)), best=best)


def test_a_snippet_grows_towards_the_better_neighbour():
    file = file_of(("worse neighbour", 0.1), ("best", 0.9), ("better neighbour", 0.5))
    (first, *_) = grow_snippets([file], budget=len("best\nbetter neighbour"))

    assert (first.start_line, first.end_line) == (2, 3)
    assert first.text == "best\nbetter neighbour"


def test_between_equals_a_snippet_grows_towards_what_follows():
    file = file_of(("before", 0.0), ("best", 0.9), ("after!", 0.0))
    (first, *_) = grow_snippets([file], budget=len("best\nafter!"))

    assert first.text == "best\nafter!"


def test_no_line_is_shown_twice():
    file = file_of(("one", 0.9), ("two", 0.8), ("three", 0.7))
    snippets = list(grow_snippets([file], budget=len("one\ntwo")))

    assert [snippet.text for snippet in snippets] == ["one\ntwo", "three"]


def test_the_best_comes_first_across_files():
    good, better = file_of(("good", 0.5)), file_of(("better", 0.6))

    assert [snippet.file for snippet in grow_snippets([good, better], budget=50)] == [1, 0]


def test_a_file_that_promises_more_than_it_has_is_not_put_first():
    boasting, better = file_of(("good", 0.5), best=0.9), file_of(("better", 0.6))

    assert [snippet.text for snippet in grow_snippets([boasting, better], budget=50)] == ["better", "good"]


def test_filling_never_starts_a_snippet():
    file = File((1, "filling", None), (2, "seed", 0.4))

    assert [snippet.text for snippet in grow_snippets([file], budget=50)] == ["filling\nseed"]


def test_blank_lines_between_are_kept_so_that_line_numbers_fit():
    file = File((1, "above", 0.4), (3, "below", 0.3))
    (snippet,) = grow_snippets([file], budget=50)

    assert snippet.text == "above\n\nbelow"
    assert (snippet.start_line, snippet.end_line) == (1, 3)


def test_lines_far_apart_are_not_joined():
    file = File((1, "here", 0.4), (9, "there", 0.3))

    assert [snippet.text for snippet in grow_snippets([file], budget=500)] == ["here", "there"]


def test_a_cut_line_says_where_it_was_cut():
    file = File((5, "Before. ", 0.1), (5, "The answer. ", 0.9), (5, "After.", 0.1))
    first = next(iter(grow_snippets([file], budget=14)))

    assert first.text == "…The answer.…"
    assert (first.start_line, first.end_line) == (5, 5)


def test_the_mark_of_a_cut_takes_nothing_from_the_end_of_the_best_line():
    file = File((4, "A long line. ", 0.0), (4, "Its end.", 0.2), (5, "- the code is 4711", 0.9))
    first = next(iter(grow_snippets([file], budget=len("Its end.\n- the code is 4711"))))

    assert first.text == "…ts end.\n- the code is 4711"


def test_a_line_longer_than_the_budget_is_cut_to_it():
    (snippet,) = grow_snippets([file_of(("x" * 900, 0.5))], budget=700)

    assert len(snippet.text) == 700


scored_lines = st.lists(
    st.tuples(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1, max_size=40),
        st.none() | st.floats(0, 1),
    ),
    max_size=30,
)


@given(scored_lines, st.integers(min_value=40, max_value=200))
def test_what_is_cited_is_what_is_shown(lines, budget):
    file = file_of(*lines)
    shown = set()
    for snippet in grow_snippets([file], budget=budget):
        cited = [text for text, _ in lines[snippet.start_line - 1 : snippet.end_line]]
        assert snippet.text == "\n".join(cited)
        assert len(snippet.text) <= budget
        assert not shown & set(range(snippet.start_line, snippet.end_line + 1))
        shown |= set(range(snippet.start_line, snippet.end_line + 1))


@given(scored_lines, st.integers(min_value=1, max_value=5))
def test_the_first_snippets_do_not_depend_on_how_many_are_taken(lines, count):
    file = file_of(*lines)
    everything = [snippet.text for snippet in grow_snippets([file], budget=60)]
    few = [snippet.text for snippet, _ in zip(grow_snippets([file], budget=60), range(count), strict=False)]

    assert few == everything[:count]


def test_another_file_comes_before_the_third_helping_of_the_same_one():
    long = file_of(("Ann: " + "one" * 18, 0.50), ("Ben: " + "two" * 18, 0.50), ("Ann: " + "six" * 18, 0.50))
    other = file_of(("other", 0.46))

    assert [snippet.file for snippet in grow_snippets([long, other], budget=60)] == [0, 0, 1, 0]


def test_another_passage_comes_before_what_is_left_of_the_same_one():
    long = file_of(("one" * 20, 0.50), ("two" * 20, 0.50), ("six" * 20, 0.50))
    other = file_of(("other", 0.44))
    snippets = list(grow_snippets([long, other], budget=60))

    assert [snippet.file for snippet in snippets] == [0, 1, 0, 0]
    # The rest is worth less once: the third part of a passage is no worse than the second.
    assert [
        round(snippet.score / SAME_FILE**taken, 3) for taken, snippet in [(1, snippets[2]), (2, snippets[3])]
    ] == [0.5 * SAME_PASSAGE] * 2


def test_a_message_of_many_pieces_is_one_passage_whoever_says_it():
    message = File((7, "User: " + "one" * 18, 0.50), (7, "two" * 20, 0.50))
    other = file_of(("other", 0.44))

    assert [snippet.file for snippet in grow_snippets([message, other], budget=60)] == [0, 1, 0]


class Note(File):
    """The lines of a Markdown text; those that are named have a score, all others very little."""

    def __init__(self, text, **scores):
        super().__init__()
        texts = text.split("\n")
        worth = {int(name.removeprefix("line")): score for name, score in scores.items()}
        self._lines = [((at, 0), line, worth.get(at, 0.01)) for at, line in enumerate(texts, 1)]
        self.chunks = [ScoredChunk(self._lines, None)]
        self.most = self.chunks[0].most


def texts(note, budget=700):
    return [snippet.text for snippet in grow_snippets([note], budget=budget)]


def test_a_snippet_begins_at_its_heading_and_not_in_the_section_before():
    note = Note("## Shape\n\n- flat\n- round\n\n## Errors\n\n- E1: skew\n- E2: gap", line8=0.9, line4=0.5)

    assert texts(note) == ["## Errors\n\n- E1: skew\n- E2: gap", "## Shape\n\n- flat\n- round"]


def test_headings_that_stand_right_above_each_other_stay_together():
    assert (
        texts(Note("intro\n# Book\n\n## Chapter\n\nwords", line6=0.9))[0] == "# Book\n\n## Chapter\n\nwords"
    )


def test_a_snippet_does_not_end_with_what_begins_something_else():
    note = Note("- the answer\n\n---\n\n## Next\n\n" + "x" * 80, line1=0.9)

    assert texts(note, budget=40)[0] == "- the answer"


def test_a_snippet_does_not_end_with_the_fence_of_code_that_does_not_fit():
    assert texts(Note("answer\n\n```sh\n" + "x" * 80 + "\n```", line1=0.9), budget=20)[0] == "answer"


def test_a_snippet_does_not_begin_with_a_rule_or_with_front_matter():
    note = Note("---\ntags: [a]\n---\nthe answer\nand more", line4=0.9)

    assert texts(note)[0] == "the answer\nand more"


def test_a_snippet_does_not_begin_with_the_end_of_code():
    note = Note("```\n" + "x" * 50 + "\n```\n\nthe answer", line5=0.9, line3=0.8)

    assert texts(note, budget=30)[0] == "the answer"


def test_a_snippet_does_not_begin_in_the_middle_of_an_item():
    note = Note("- a long item " + "x" * 50 + "\n  goes on here\n- the answer", line3=0.9, line2=0.8)

    assert texts(note, budget=40)[0] == "- the answer"


def test_the_best_line_is_shown_even_in_the_middle_of_a_paragraph():
    assert texts(Note("first " + "x" * 50 + "\nthe answer", line2=0.9), budget=20)[0] == "the answer"


def test_a_comment_in_code_is_no_heading():
    note = Note("Run this:\n\n```sh\n# build it\nmake\n```", line5=0.9)

    assert texts(note) == ["Run this:\n\n```sh\n# build it\nmake\n```"]


def test_a_heading_whose_section_was_shown_is_no_snippet_of_its_own():
    note = Note("# Book\n\n" + "y" * 60 + "\n\n## Chapter\n\nwords", line3=0.9, line1=0.5, line5=0.4)

    assert texts(note, budget=62) == ["y" * 60, "## Chapter\n\nwords"]


def test_a_note_that_is_nothing_but_a_heading_is_shown():
    assert texts(Note("# Buy milk", line1=0.9)) == ["# Buy milk"]
