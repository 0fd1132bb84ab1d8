import pytest

from plainmind.base.model import Chunk
from plainmind.search.pages import Page
from plainmind.text.terms import speaker_of


def page(*lines):
    return Page(Chunk("memory/a.md", "memory", 0, 1, len(lines) + 1, "\n".join(lines)))


def test_ends_tell_where_each_unit_begins_in_the_text():
    lines = page("The gateway", "", "runs here")

    assert [lines.text[start:].split(" ")[0] for start in lines.ends[:3]] == ["The", "", "runs"]
    assert lines.text == "The gateway  runs here "


def test_without_case_a_page_is_as_long_as_before():
    for text in (
        "The GATEWAY\tRuns",
        "“The GATEWAY” — it’s Café\xa0Noir",
        "İstanbul\u2003is far, fAR, far away",
    ):
        assert len(page(text).folded) == len(page(text).text)
        assert not set(page(text).folded) & set("TGRN\t\xa0\u2003")


@pytest.mark.parametrize(
    ("text", "is_plain", "is_foreign"),
    [
        ("the gateway", True, False),
        ("“the gateway” — it’s here…", True, False),
        ("one café in a long line of other words, and more of them", False, False),
        ("все слова здесь другие", False, True),
        ("网关在上海", False, True),
        ("a long line of English words with one 网 in it, and more words", False, True),
    ],
)
def test_a_page_knows_by_which_rules_its_words_are_found(text, is_plain, is_foreign):
    assert (page(text).is_plain, page(text).is_foreign) == (is_plain, is_foreign)


@pytest.mark.parametrize(
    ("line", "speaker"),
    [
        ("Anna: I moved", "anna"),
        ("**Anna:** I moved", "anna"),
        ("- Anna: I moved", "anna"),
        ("陈静：你好", "陈静"),
        ("no one speaks here", None),
        ("a note to: somebody", None),
    ],
)
def test_the_speaker_of_a_line_stands_before_a_colon(line, speaker):
    assert speaker_of(line) == speaker


def test_the_units_that_somebody_speaks_are_found_by_name():
    talk = page("Anna: hello", "Bob: hello Anna", "", "ANNA: bye")

    assert talk.spoken_by(frozenset({"anna"})) == [0, 3]
    assert talk.spoken_by(frozenset({"bob", "zoe"})) == [1]
    assert talk.spoken_by(frozenset()) == []
    assert page("nobody speaks").spoken_by(frozenset({"nobody"})) == []


@pytest.mark.parametrize(
    ("line", "may_speak"),
    [
        ("Anna: hello", True),
        ("see: Anna is here", True),
        ("Anna says hello", False),
        ("Bob: hello", False),
        ("Ánna: hello, Anna", False),
        ("陈静：你好, Anna", False),
        ("- **Anna**：你好", True),
    ],
)
def test_who_may_speak_is_known_before_a_page_is_taken_apart(line, may_speak):
    assert page(line).may_be_spoken_by(frozenset({"anna", "zoe"})) is may_speak


def test_a_page_in_order_knows_who_speaks():
    talk = page("Anna: hello", "Zoe was named")
    talk.put_in_order({})

    assert talk.may_be_spoken_by(frozenset({"anna"}))
    assert not talk.may_be_spoken_by(frozenset({"zoe"}))
