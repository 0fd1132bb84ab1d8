import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.model import CERTAIN, SearchHit, SearchResult
from plainmind.search.doubts import (
    OF_MISSING_IDENTIFIER,
    OF_MISSING_NUMBER,
    OF_MISSING_PERSON,
    doubt_of,
    lacks_identifier,
    lacks_number,
    lacks_person,
    people_in,
)
from plainmind.search.engine import probability_of_first, probability_of_other

shares = st.floats(0, 1)
anything = st.floats(-3, 30)
NOTHING = {
    "share_of_words": 0.0, "information": 0.0, "meaning": 0.0, "lead": 0.0, "distance": 0.0, "of_named_day": False,
}  # fmt: skip
EVERYTHING = {
    "share_of_words": 1.0, "information": 3.0, "meaning": 0.5, "lead": 0.3, "distance": 0.3, "of_named_day": False,
}  # fmt: skip


def result(*scores):
    hits = tuple(SearchHit("memory/a.md", 1, 2, score, "text", "memory") for score in scores)
    return SearchResult("question", hits, "builtin", "model", "hybrid")


def test_what_has_nothing_in_common_with_the_question_is_no_answer_and_what_has_all_of_it_is():
    assert probability_of_first(**NOTHING) < CERTAIN / 4
    assert probability_of_first(**EVERYTHING) > 0.9


def test_where_two_are_as_good_as_each_other_neither_is_certain():
    alike = probability_of_first(**{**EVERYTHING, "lead": 0.0, "distance": 0.0})

    assert alike < CERTAIN < probability_of_first(**EVERYTHING)


def test_a_named_day_alone_is_not_certain():
    assert probability_of_first(**{**NOTHING, "of_named_day": True, "lead": 0.3}) < CERTAIN / 2


@given(
    st.sampled_from(["share_of_words", "information", "meaning", "lead", "distance"]),
    shares,
    shares,
    st.fixed_dictionaries(
        {name: shares for name in NOTHING if name != "of_named_day"}, optional={"of_named_day": st.booleans()}
    ),
)
def test_more_evidence_never_scores_less(part, one, other, rest):
    low, high = sorted((one, other))
    known = {**NOTHING, **rest}

    assert probability_of_first(**{**known, part: low}) <= probability_of_first(**{**known, part: high})


@given(shares, shares, shares)
def test_what_is_further_behind_the_first_never_scores_more(worth, coverage, behind):
    near = probability_of_other(worth=worth, coverage=coverage, behind=behind / 2)

    assert probability_of_other(worth=worth, coverage=coverage, behind=behind) <= near


@given(shares, anything, anything, anything, anything, st.booleans())
def test_scores_stay_between_zero_and_one(share, information, meaning, lead, distance, of_named_day):
    first = probability_of_first(
        share_of_words=share,
        information=information,
        meaning=meaning,
        lead=lead,
        distance=distance,
        of_named_day=of_named_day,
    )

    assert 0.0 < first < 1.0
    assert 0.0 < probability_of_other(worth=lead, coverage=share, behind=distance) < 1.0


def test_a_result_is_as_certain_as_the_best_of_its_hits():
    assert result(0.8, 0.1).confidence == 0.8
    assert result(CERTAIN, 0.1).is_certain
    assert not result(CERTAIN - 0.01).is_certain
    assert not result().is_certain


@pytest.mark.parametrize("exact", [{"hw-3001"}, {"quiet_hours"}, {"f21", "washer"}])
def test_a_question_that_names_an_identifier_is_not_answered_by_what_does_not_have_it(exact):
    assert lacks_identifier(
        exact, ["`HW-1007` is a blurred picture, `HW-2003` a time-out", "hours of the washer, F2"]
    )
    assert probability_of_first(**EVERYTHING, doubt=OF_MISSING_IDENTIFIER) < CERTAIN


@pytest.mark.parametrize(
    "exact", [{"hw-1007"}, {"time_out"}, {"hw-1007", "hw-2003"}, {"usb-c"}, {"vpn"}, set()]
)
def test_what_has_it_in_whatever_spelling_may(exact):
    assert not lacks_identifier(exact, ["`HW-1007` is a blurred picture", "HW 2003 a time-out, with USB"])


def test_each_identifier_may_be_in_another_text_in_another_spelling():
    assert not lacks_identifier({"hw-2003", "quiet_hours"}, ["HW 2003", "nothing", "quiet hours"])
    assert lacks_identifier({"hw-2003", "quiet_hours"}, ["HW 2003", "nothing", "quiet days"])


@pytest.mark.parametrize(
    ("question", "people"),
    [
        ("when does Emil's passport expire?", {"emil"}),
        ("what is Ole’s shoe size?", {"ole"}),
        ("where does Kate work?", {"kate"}),
        ("which port has the gateway of Lübeck?", {"lübeck"}),
        ("¿cuál es el número de Ana?", {"ana"}),
        ("Wann hat Frau Huber Geburtstag?", {"huber"}),
        ("Wer hat für Kinder Brot von Hand gemacht?", set()),  # nouns have capitals, too
        ("What's new with the passport?", set()),
        ("what happened on Valentine's day?", set()),
        ("what was agreed at the end of April?", set()),
        ("what did I say?", set()),
        ("when does the passport expire?", set()),
    ],
)
def test_a_question_is_about_the_people_whose_something_is_or_who_do_it(question, people):
    assert people_in(question) == people


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("when does Emil's passport expire?", "Hanna's passport expires in 2029."),
        ("who is Hanna's doctor?", "Mother's doctor is Dr. Holm."),
        ("which port has the gateway of Hamburg?", "The gateway of Lübeck runs on port 8080."),
    ],
)
def test_a_question_about_somebody_is_not_answered_by_what_is_known_of_another(question, text):
    assert lacks_person(question, text)
    assert doubt_of(question, (), text, [text, question]) == OF_MISSING_PERSON
    assert doubt_of(question, {"hw-3001"}, text, [text]) == OF_MISSING_PERSON + OF_MISSING_IDENTIFIER
    assert probability_of_first(**EVERYTHING, doubt=OF_MISSING_PERSON) < CERTAIN


@pytest.mark.parametrize(
    "text",
    [
        "The passport expires in 2029. people/Hanna.md",  # by the place, or by a heading
        "HANNAS Reisepass",
        "Hannah's passport",
    ],
)
def test_a_name_may_stand_anywhere_and_be_misspelt_at_its_end(text):
    assert not lacks_person("when does Hanna's passport expire?", text)
    assert doubt_of("when does Hanna's passport expire?", (), text, [text]) == 0.0


ON_CALL = "| Week | Who |\n| W46 | Ana |\n| W47 | Ben |"


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("who is on call in week 52?", ON_CALL),
        ("wer hat in KW 52 Bereitschaft?", ON_CALL),
        ("who sleeps in room no. 12", "Room 2 is Ida's, room 121 is empty."),
    ],
)
def test_one_of_many_that_are_numbered_is_none_of_the_others(question, text):
    assert lacks_number(question, text)
    assert doubt_of(question, (), text, [text]) == OF_MISSING_NUMBER
    assert probability_of_first(**EVERYTHING, doubt=OF_MISSING_NUMBER) < CERTAIN


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("who is on call in week 47?", ON_CALL),
        ("who is on call in KW 07?", "KW 7: Ana"),
        ("what did I do in the last 3 weeks?", "Painted the fence."),
        ("how long is a week?", "Seven days."),
        ("which line has 2.5 mm?", "The red one."),
    ],
)
def test_other_numbers_need_not_be_there(question, text):
    assert not lacks_number(question, text)
