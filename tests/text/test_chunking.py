from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.growth import grows_evenly

from plainmind.base.model import Passage, split_lines
from plainmind.text.chunking import chunk, chunk_lines, chunk_markdown, estimated_tokens
from plainmind.text.terms import weight

SHORT_LINES = [
    "", " ", "# A", "## B", "### C", "#", "Title", "===", "---", "...", "- item", "  - nested item", "  more",
    "1. first", "```", "```py", "~~~", "  ```", "| a | b |", "    code", "* * *",
]  # fmt: skip
LONG_LINES = ["word " * 30, "x" * 200, "漢字" * 40, " " * 150, "# " + "long " * 50, "- " + "Item. " * 40]
LINES = st.lists(
    st.one_of(st.sampled_from([*SHORT_LINES, *LONG_LINES]), st.text(max_size=40)), max_size=30
).map("\n".join)
TOKENS = st.sampled_from([1, 8, 12, 20, 50])


def filled_lines(text):
    return {number for number, line in enumerate(split_lines(text), start=1) if line.strip()}


def covered_lines(passages):
    return {number for p in passages for number in range(p.start_line, p.end_line + 1)}


def assert_passages_are_true_to(text, passages, limit):
    lines = split_lines(text)
    assert filled_lines(text) <= covered_lines(passages)
    for passage in passages:
        assert passage.text.strip()
        assert weight(passage.text) <= limit
        cited = "\n".join(lines[passage.start_line - 1 : passage.end_line])
        assert passage.text in cited
        if passage.text != cited:
            assert any(weight(line) > limit // 2 for line in lines[passage.start_line - 1 : passage.end_line])


@example("00000000 00000000000000000000⺀", 1, 0)
@given(LINES, TOKENS, st.integers(0, 60))
def test_every_line_is_in_a_passage_within_the_limit(text, tokens, overlap):
    limit = max(32, tokens * 4)
    assert_passages_are_true_to(text, chunk(text, strategy="lines", tokens=tokens, overlap=overlap), limit)
    assert_passages_are_true_to(text, chunk(text, strategy="markdown", tokens=tokens, overlap=overlap), limit)


@given(LINES, TOKENS)
def test_structure_never_makes_passages_overlap(text, tokens):
    passages = chunk_markdown(text, tokens)
    lines = split_lines(text)
    for one, following in pairwise(passages):
        assert one.end_line < following.start_line or (
            one.end_line == following.start_line == following.end_line and lines[one.end_line - 1] != one.text
        )
    assert sum(len(p.text.replace("\n", "")) for p in passages) <= sum(map(len, lines))


@given(LINES, TOKENS)
def test_passages_of_whole_lines_neither_begin_nor_end_with_a_blank_line(text, tokens):
    for passage in chunk_markdown(text, tokens):
        inside = passage.text.split("\n")
        assert len(inside) == 1 or (inside[0].strip() and inside[-1].strip())


# --- by lines ---


def test_lines_fill_a_passage_and_the_last_ones_are_repeated():
    text = "\n".join(f"line {number:02}" for number in range(1, 11))  # 7 characters and a line break each
    assert chunk_lines(text, tokens=8, overlap=2) == [
        Passage(1, 4, "line 01\nline 02\nline 03\nline 04"),
        Passage(4, 7, "line 04\nline 05\nline 06\nline 07"),
        Passage(7, 10, "line 07\nline 08\nline 09\nline 10"),
    ]


def test_a_long_line_is_cut_into_segments_that_keep_its_number_and_is_never_repeated():
    passages = chunk_lines("before\n" + "x" * 5000 + "\nafter", tokens=400, overlap=80)
    assert all(len(p.text) <= 1600 for p in passages)
    assert sum(p.text.count("x") for p in passages) == 5000
    assert [(p.start_line, p.end_line) for p in passages][1:-1] == [(2, 2)] * (len(passages) - 2)


def test_short_pieces_of_a_long_line_share_a_passage_as_they_stood_in_the_line():
    passages = chunk_lines("Anything twenty-letters-of-it漢", tokens=8)
    assert passages == [Passage(1, 1, "Anything twenty-letters-of-it"), Passage(1, 1, "漢")]


@given(st.lists(st.integers(0, 120), max_size=40), st.integers(0, 1000))
def test_what_is_repeated_stays_within_half_a_passage(lengths, overlap):
    passages = chunk_lines("\n".join("x" * length for length in lengths), tokens=16, overlap=overlap)
    assert sum(p.text.count("x") for p in passages) <= 2 * sum(lengths)
    for one, following in pairwise(passages):
        repeated = max(0, one.end_line - following.start_line + 1)
        assert (
            repeated == 0
            or sum(lengths[following.start_line - 1 : one.end_line]) <= min(32, overlap * 4)
            or (lengths[one.end_line - 1] > 64)
        )


def test_text_without_words_gives_no_passage():
    for text in ("", "\n\n", " \n\t\n" * 100):
        assert chunk_lines(text) == chunk_markdown(text) == []


def test_chinese_lines_fill_a_passage_four_times_as_fast():
    assert len(chunk_lines("漢" * 7 + "\n" + "字" * 7, tokens=8)) == 2
    assert len(chunk_lines("a" * 7 + "\n" + "b" * 7, tokens=8)) == 1


# --- by structure ---


def test_headings_start_passages_and_give_their_context():
    text = (
        "intro\n\n# Network ##\n\nabout\n\n## Gateway <!-- m:01J -->\n\nMac Studio\n\n"
        "### Ports\n18789\n\n# Food\ntea\n"
    )
    assert chunk_markdown(text) == [
        Passage(1, 1, "intro"),
        Passage(3, 5, "# Network ##\n\nabout", "Network"),
        Passage(7, 9, "## Gateway <!-- m:01J -->\n\nMac Studio", "Network › Gateway"),
        Passage(11, 12, "### Ports\n18789", "Network › Gateway › Ports"),
        Passage(14, 15, "# Food\ntea", "Food"),
    ]


def test_a_heading_without_text_stays_with_its_first_child():
    assert chunk_markdown("# A\n\n## B\ntext\n## C\n# D") == [
        Passage(1, 4, "# A\n\n## B\ntext", "A › B"),
        Passage(5, 5, "## C", "A › C"),
        Passage(6, 6, "# D", "D"),
    ]


def test_underlined_headings_count_and_other_rules_do_not():
    text = "Big\n===\none\n\nSmall\n---\ntwo\n\n---\n\nthree\nfour\n---"
    assert [(p.start_line, p.context) for p in chunk_markdown(text)] == [(1, "Big"), (5, "Big › Small")]


def test_hash_signs_in_code_and_tags_are_no_headings():
    text = "```sh\n# comment\n``` \n\n#tag\n\n    # indented\n~~~\n```\n# still code"
    assert chunk_markdown(text) == [Passage(1, 10, text)]


def test_front_matter_is_kept_as_text():
    text = "---\ntitle: x\n# not a heading\n---\n# Heading\ntext"
    assert chunk_markdown(text) == [
        Passage(1, 4, "---\ntitle: x\n# not a heading\n---"),
        Passage(5, 6, "# Heading\ntext", "Heading"),
    ]


def test_a_rule_on_the_first_line_is_no_front_matter():
    assert [p.context for p in chunk_markdown("---\n# Heading\ntext")] == ["", "Heading"]
    assert [p.context for p in chunk_markdown("---\n# Heading\n...\n# B")] == ["", "B"]


def test_blocks_that_fit_are_kept_whole():
    paragraph = "\n".join(["some words here"] * 4)  # 63 characters
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    fence = "```\nfirst\n\nlast\n```"
    text = f"{paragraph}\n\n{table}\n\n{fence}"
    assert [p.text for p in chunk_markdown(text, tokens=16)] == [paragraph, f"{table}\n\n{fence}"]


def test_list_items_stay_whole_with_what_belongs_to_them():
    text = (
        "- one\n  goes on\n\n  and on\n"
        "- two\n  - nested\n    ```\n    - code\n\n    # code\n    ```\n"
        "- three\n\nafter"
    )
    passages = chunk_markdown(text, tokens=15)
    assert [(p.start_line, p.end_line) for p in passages] == [(1, 4), (5, 11), (12, 14)]


def test_an_item_too_long_is_divided_at_its_nested_items():
    text = "- parent\n  - first nested item\n    goes on\n\n  - second nested item\n    goes on"
    assert [(p.start_line, p.end_line) for p in chunk_markdown(text, tokens=11)] == [(1, 3), (5, 6)]


def test_a_paragraph_too_long_is_divided_between_lines():
    text = "\n".join(f"line number {number}" for number in range(6))
    assert [(p.start_line, p.end_line) for p in chunk_markdown(text, tokens=10)] == [(1, 2), (3, 4), (5, 6)]


def test_a_code_block_too_long_is_divided_without_blank_edges():
    text = "```\n" + "a" * 30 + "\n\n" + "b" * 30 + "\n```"
    assert [(p.start_line, p.end_line) for p in chunk_markdown(text, tokens=9)] == [(1, 2), (4, 5)]


def test_a_heading_goes_with_the_first_lines_of_a_block_that_fits_only_alone():
    text = "# A\n" + "\n".join(["0123456789"] * 3)
    assert [(p.start_line, p.end_line) for p in chunk_markdown(text, tokens=8)] == [(1, 3), (4, 4)]


def test_a_heading_goes_with_the_first_piece_of_a_long_line():
    first, *others = chunk_markdown("# A\n\n" + "Some sentence. " * 20, tokens=20)
    assert first.text.startswith("# A\n\nSome sentence.")
    assert (first.start_line, first.end_line) == (1, 3)
    assert {(p.start_line, p.end_line, p.context) for p in others} == {(3, 3, "A")}


def test_a_long_heading_is_a_passage_of_its_own_and_its_title_is_shortened():
    title = "long title " * 10
    passages = chunk_markdown(f"# {title}\n" + "x" * 300, tokens=35)
    assert passages[0].text == f"# {title}".rstrip("\n")
    assert len(passages[0].context) <= 80
    assert passages[0].context.endswith("…")


def test_a_heading_longer_than_a_passage_is_cut_like_any_line():
    passages = chunk_markdown("# A\n## " + "word " * 40 + "\ntext", tokens=20)
    assert [p.start_line for p in passages] == [1, 2, 2, 2, 3]
    assert "".join(p.text for p in passages[1:-1]) == "## " + "word " * 40
    assert passages[-1].context.startswith("A › word word")


def test_a_child_heading_that_does_not_fit_leaves_its_parent_alone():
    passages = chunk_markdown("# " + "a" * 20 + "\n## " + "b" * 20, tokens=8)
    assert [p.context for p in passages] == ["a" * 20, "a" * 20 + " › " + "b" * 20]


@pytest.mark.slow
def test_nothing_is_lost_of_a_line_of_sixteen_megabytes():
    line = "word. " * 2_700_000
    assert "".join(p.text for p in chunk_lines(line)) == line
    assert "".join(p.text for p in chunk_markdown(line)) == line


def test_pieces_of_a_long_line_that_hold_no_words_are_dropped():
    passages = chunk_markdown("first" + " " * 500 + "last", tokens=8)
    assert [p.text.strip() for p in passages] == ["first", "last"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["a", "漢", "é. ", "- [", "`", "# ", "\n", "漢a", "- a\n  - b\n", "```\n", "a\n==\n"]
)
def test_much_of_anything_takes_linear_time(unit):
    assert grows_evenly(lambda size: chunk_lines(unit * (size // len(unit))))
    assert grows_evenly(lambda size: chunk_markdown(unit * (size // len(unit))))


HARDLY_MORE_THAN_HEADINGS = {
    "marks": "#\n", "headings": "# h\n", "deepest": "###### x\n", "underlined": "x\n==\n", "with a word": "# a\nx\n",
    "with a blank line": "## b\n\n", "up and down": "# a\n## b\n### c\n", "items": "# a\n- x\n", "wide": "# 漢\n字\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", HARDLY_MORE_THAN_HEADINGS)
def test_headings_alone_make_no_passage_each(kind):
    text = HARDLY_MORE_THAN_HEADINGS[kind] * 3_000

    passages = chunk_markdown(text)

    assert len(passages) <= len(text) / 32 + 1_000
    assert_passages_are_true_to(text, passages, 800)


def test_a_thousand_short_sections_stay_sections():
    text = "".join(f"## {number}\n\na note\n\n" for number in range(1_000))

    assert [passage.text for passage in chunk_markdown(text)] == [f"## {n}\n\na note" for n in range(1_000)]


def test_tokens_are_guessed_by_script():
    assert estimated_tokens("word " * 100) == 126
    assert estimated_tokens("昨天我们决定把备份移到柏林。") == 15
    assert estimated_tokens("") == 1
