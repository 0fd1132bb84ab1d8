import re
import threading
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.growth import grows_evenly

from plainmind.text import terms
from plainmind.text.terms import (
    LONGEST_TERM,
    STOP_WORDS,
    TERMS_VERSION,
    clues,
    document_terms,
    fold,
    letters_of,
    query_terms,
    spaceless_stretches,
    stands_in,
    stem,
    word_terms,
    words_of,
)

WHOLE_AND_PARTS = {
    "memorySearch.query.hybrid": [
        "memorysearch.query.hybrid",
        "memorysearch",
        "memori",
        "search",
        "queri",
        "hybrid",
    ],
    "snake_case": ["snake_case", "snake", "case"],
    "kebab-case": ["kebab-case", "kebab", "case"],
    "src/app/main.py": ["src/app/main.py", "src", "app", "main.py", "main", "py"],
    "a828e60": ["a828e60"],
    "ECONNREFUSED": ["econnrefused", "econnrefus"],
    "LGBTQ": ["lgbtq"],
    "APIs": ["apis", "api"],
    "HTTPServer": ["httpserver", "http", "server"],
    "iPhone": ["iphone", "phone"],
    "v2.3.1": ["v2.3.1", "v2", "3", "1"],
    "foo@bar.com": ["foo@bar.com", "foo", "bar", "com"],
    "10.0.0.7": ["10.0.0.7", "10", "0", "0", "7"],
    "#123": ["#123", "123"],
    "C++": ["c++", "c"],
    "C#": ["c#", "c"],
    "@decorator": ["@decorator", "decor"],
    "__init__": ["__init__", "init"],
    "std::vector": ["std::vector", "std", "vector"],
    "https://example.com/a": ["https://example.com/a", "https", "example.com", "exampl", "com"],
    "python3": ["python3", "python"],
    "to-do": ["to-do"],
    "2026-02-10": ["2026-02-10", "2026", "02", "10"],
    "US": ["us"],
    "18789": ["18789"],
}


@pytest.mark.parametrize("identifier", WHOLE_AND_PARTS)
def test_an_identifier_is_kept_whole_and_filed_under_its_parts(identifier):
    assert document_terms(f"(see `{identifier}`, please)") == ["see", *WHOLE_AND_PARTS[identifier]]
    query = query_terms(identifier)
    assert query.terms == tuple(dict.fromkeys(WHOLE_AND_PARTS[identifier]))
    assert query.exact == {WHOLE_AND_PARTS[identifier][0]}


@pytest.mark.parametrize(
    "word", ["Running", "café", "2026", "10th", "1990s", "5pm", "O'Brien", "東京", "हिन्दी"]
)
def test_an_ordinary_word_is_not_an_identifier(word):
    assert query_terms(word).exact == frozenset()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("memories", "memory"),
        ("Café", "cafe"),
        ("CAFÉ", "cafe\u0301"),
        ("straße", "strasse"),
        ("Łódź", "lodz"),
        ("ＡＢＣＤ", "ABCD"),
        ("1,000", "1000"),
        ("1,234,567.50", "1234567.50"),
        ("Anna's", "Anna’s"),
        ("Anna's", "anna"),
        ("_stressed_", "stressed"),
        ("**stressed**", "stressed"),
        ("ｶﾞｽ", "ガス"),
        ("soft\u00adhyphen", "softhyphen"),
    ],
)
def test_two_spellings_are_one_term(one, other):
    assert document_terms(one) == document_terms(other) != []


def test_stop_words_and_contractions_are_dropped():
    assert document_terms("What's the plan? I don't know; they'll ask, e.g. WHERE it is") == [
        "plan",
        "know",
        "ask",
    ]


def test_numbers_that_are_no_thousands_stay_apart():
    assert document_terms("1,0000 10,20") == ["1", "0000", "10", "20"]


def test_a_query_of_stop_words_keeps_them_and_says_so():
    query = query_terms("Who was that? Don't e.g.")
    assert query.terms == ("who", "was", "that", "don't", "e.g")
    assert query.only_stop_words
    assert not query_terms("who was Ada").only_stop_words


def test_an_empty_query_has_no_terms():
    for text in ("", " \n", "?!", "___", "🙂"):
        assert query_terms(text).terms == ()
        assert not query_terms(text).only_stop_words


def test_query_terms_are_distinct_and_in_order():
    assert query_terms("red fox, red dog").terms == ("red", "fox", "dog")


def test_a_shouted_question_is_no_row_of_acronyms():
    assert query_terms("WHERE DID US STUDENTS MEET").exact == frozenset()
    assert query_terms("US GDP").exact == {"us", "gdp"}


def test_runs_without_spaces_are_filed_by_pairs():
    assert document_terms("東京都に") == ["東京", "京都", "都に"]
    assert document_terms("猫") == ["猫"]
    assert document_terms("한국어") == ["한국", "국어"]
    assert document_terms("ไทย") == ["ไท", "ทย"]
    assert document_terms("が") == ["が"]


def test_mixed_scripts_are_read_run_by_run():
    assert document_terms("東京Tower2は、2026年") == ["東京", "tower2", "tower", "は", "2026", "年"]


def test_marks_belong_to_the_words_of_their_scripts():
    assert document_terms("हिन्दी में") == ["हिन्दी", "में"]


def test_numerals_of_other_scripts_are_terms():
    assert document_terms("፩፪፫ a፩፪ ٣٤") == ["፩፪፫", "a፩፪", "٣٤"]


def test_a_long_word_is_cut_and_still_told_from_others():
    one, other = document_terms("x" * 100), document_terms("x" * 101)
    assert one != other
    assert len(one[0]) == len(other[0]) == LONGEST_TERM


def test_data_is_one_term():
    assert len(document_terms("aB3_" * 100)) == 1


def test_the_memory_of_words_is_bounded(monkeypatch):
    monkeypatch.setattr(terms, "_MOST_KNOWN", 10)
    terms._known.clear()
    document_terms(" ".join(f"word{number}" for number in range(100)) + " " + "y" * 50)
    assert 0 < len(terms._known) <= 10
    assert "y" * 50 not in terms._known


def test_threads_agree():
    text = "running memories of universities relating generally " * 200
    results = []
    threads = [threading.Thread(target=lambda: results.append(document_terms(text))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == document_terms(text) for result in results)
    assert len(results) == 4


def test_the_rules_have_a_version():
    assert TERMS_VERSION == "5"


SAMPLES = [
    *WHOLE_AND_PARTS,
    "running",
    "RUNNING",
    "IT",
    "the",
    "東京Tower2",
    "don’t",
    "1,000",
    "Ünïcödé",
    "ÉCOLE",
]
WORDS = st.one_of(
    st.sampled_from(SAMPLES),
    st.text(max_size=12),
    st.text("aB_-./:@#+'’0,é東が한ไ\u0301\u0307İßﬁ¨", max_size=12),
)
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)


@given(TEXTS)
def test_a_word_copied_from_a_document_finds_it(text):
    filed = set(document_terms(text))
    for word in text.split():
        query = query_terms(word)
        assert query.only_stop_words or filed.issuperset(query.terms)


@given(TEXTS)
def test_a_whole_document_as_query_finds_itself(text):
    for written in (text, text.upper()):
        query = query_terms(written)
        assert query.only_stop_words or set(document_terms(written)).issuperset(query.terms)
        assert query.exact.issubset(query.terms)


@given(TEXTS)
def test_terms_are_short_and_without_whitespace(text):
    for term in document_terms(text):
        assert 0 < len(term) <= LONGEST_TERM
        assert not re.search(r"[\s\x00-\x1f\ud800-\udfff]", term)


@given(TEXTS)
def test_words_known_already_give_the_same_terms(text):
    terms._known.clear()
    assert document_terms(text) == document_terms(text)


@given(TEXTS)
def test_the_terms_of_a_text_are_those_of_its_words(text):
    assert document_terms(text) == [term for word in words_of(text) for term in word_terms(word)]


@example("x1" * 60)
@given(TEXTS)
def test_every_plain_word_with_a_term_has_one_of_its_clues(text):
    for word in words_of(text):
        for term in word_terms(word) if word.isascii() else ():
            assert any(clue in word.lower() for clue in clues(term))


ENDINGS = (
    "s es ies ied y ing ying ed eed er est ly ally ably ency ancy ation ational izer ization ality ility bility "
    "ively iveness fulness ousness ogy ogist icate icity ical ful ness ative alize ement ment ent ence able ible e"
)


@given(
    st.text("abcdefghijklmnopqrstuvwxyz", max_size=8), st.lists(st.sampled_from(ENDINGS.split()), max_size=3)
)
def test_a_word_begins_with_the_clue_of_its_stem(beginning, endings):
    word = beginning + "".join(endings)
    if word:
        assert word.startswith(clues(stem(word)))


def test_every_short_word_begins_with_the_clue_of_its_stem():
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [
        one + two + three
        for one in letters
        for two in letters
        for three in ("", *letters, "ing", "ied", "ies")
    ]

    assert [word for word in words if not word.startswith(clues(stem(word)))] == []


def test_no_plain_word_has_a_term_of_another_script():
    assert clues("東京") == clues("café") == ()


@pytest.mark.parametrize(
    ("word", "stretches"),
    [
        ("gateway", ["gateway"]),
        ("“café”—🙂", ["“café”—🙂"]),
        ("東京Tower", ["", "東京", "Tower"]),
        ("82线a", ["82", "线", "a"]),
    ],
)
def test_what_is_written_without_spaces_stands_apart(word, stretches):
    assert spaceless_stretches(word) == stretches


def test_full_width_marks_are_those_that_unicode_makes_of_them():
    for mark, plain in terms._FULL_WIDTH.items():
        assert unicodedata.normalize("NFKC", mark) == plain


FOLDED = st.text(st.sampled_from("aZéßøŁđðÞæŒħİſŉ5²½ -_.—字が\u0301\u0345")) | st.text()


@given(FOLDED)
@example("Ærø, Łódź und Þingvellir: straße № 5")
def test_a_text_is_folded_as_its_letters_are(text):
    strokes = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ħ": "h"}
    apart = unicodedata.normalize("NFD", text.casefold())
    bare = unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", apart))

    assert fold(text) == "".join(strokes.get(letter, letter) for letter in bare)


@given(FOLDED)
def test_the_letters_of_a_line_are_those_of_any_script(line):
    assert letters_of(line) == "".join(filter(str.isalpha, line)).casefold()


def test_a_word_too_long_to_be_one_is_data_and_matched_as_written():
    assert query_terms("stemming" * 30).exact == frozenset()
    assert query_terms("stemming" * 40).exact


def test_stop_words_are_folded_and_about_as_many_as_english_needs():
    assert all(word == word.casefold() for word in STOP_WORDS)
    assert 120 <= len(STOP_WORDS) <= 220
    assert "may" not in STOP_WORDS


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", "é", "漢", "a.b", "1,000,", "1,", "a_b", "`", "a'", "#", "a+"])
def test_much_of_anything_takes_linear_time(unit):
    assert grows_evenly(lambda size: document_terms(unit * (size // len(unit))))


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("ana paints", True),
        ("so ana", True),
        ("(ana)", True),
        ("ana_b", True),
        ("banana ana", True),
        ("banana", False),
        ("anab", False),
        ("3ana", False),
        ("", False),
    ],
)
def test_a_word_stands_in_a_text_where_no_letter_or_digit_is_beside_it(text, stands):
    assert stands_in(text, "ana") is stands
    assert stands is ("ana" in re.findall(r"[^\W_]+", text))
