"""The corpus is as wide as its page says, its halves share nothing, and its measurement can tell good from bad."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.redaction.corpus import values
from tests.redaction.corpus.cases import (
    HALVES,
    LANGUAGES,
    MARK,
    MOST_OF_FAMILY,
    cases,
    fill,
    half_of,
    kinds,
    ordinary,
    places,
    rows_of,
    unknown_marks,
)
from tests.redaction.corpus.measurement import lines_below, measure, number_of_words
from tests.redaction.corpus.spellings import SPELLINGS, spell

FEW = 60


def spared(text):
    return text


@pytest.fixture(scope="module")
def blanked():
    """A redaction that knows the answers of the first cases of dev."""
    answers = {fill(case, 1).text: MARK.sub("█", case.text) for case in cases("dev")[:FEW]}
    return lambda text: answers.get(text, text)


@pytest.mark.parametrize("half", HALVES)
def test_a_half_holds_every_kind_in_several_places_and_every_language(half):
    found = cases(half)

    assert len({(case.kind, case.place) for case in found}) == len(found) > 2_000
    assert len(kinds()) > 150
    assert min(Counter(case.kind for case in found)[name] for name in kinds()) >= 3
    assert min(Counter(case.language for case in found)[language] for language in LANGUAGES) >= 50
    assert {kind.family for kind in kinds().values()} == set(MOST_OF_FAMILY)


def test_the_halves_share_no_place_no_wording_and_no_ordinary_line():
    dev, unseen = ({(place.language, place.text) for place in places(half)} for half in HALVES)
    assert not dev & unseen
    assert len(dev) + len(unseen) > 500
    for half in HALVES:
        assert {half_of(place.name) for place in places(half)} == {half}
        assert {half_of(line.text) for line in ordinary(half)} == {half}
        assert len({place.name for place in places(half)}) == len(places(half))


def test_ordinary_text_is_there_in_every_language():
    for half in HALVES:
        languages = Counter(line.language for line in ordinary(half))
        assert min(languages[language] for language in LANGUAGES) >= 8
    assert sum(len(ordinary(half)) for half in HALVES) > 450


@pytest.mark.parametrize("half", HALVES)
def test_every_mark_becomes_a_value_that_stands_nowhere_else(half):
    for case in cases(half):
        filled = fill(case, 1)
        assert unknown_marks(case) == []
        assert not re.search(r"\{(secret|another|ENV|key|camel|kebab|label)\b", filled.text), case.id
        assert filled.secrets, case.id
        assert all(secret.row_in(filled.text) for secret in filled.secrets), case.id
        assert not any(secret.row_in(MARK.sub(" ", case.text)) for secret in filled.secrets), case.id


def test_every_template_is_known_and_makes_another_value_for_another_seed():
    for kind in kinds().values():
        for template in kind.templates:
            assert values.is_template_of_values(template), kind.name
    for case in cases("dev")[::7]:
        one, same, other = fill(case, 1), fill(case, 1), fill(case, 2)
        assert one == same
        assert [secret.value for secret in one.secrets] != [secret.value for secret in other.secrets]


def test_every_spelling_of_a_secret_is_used_and_can_be_read_back():
    used = {mark[1] or "" for half in HALVES for place in places(half) for mark in MARK.finditer(place.text)}
    assert used == set(SPELLINGS)
    given = values.make("-----BEGIN KEY-----\n{pem:3}\n-----END KEY-----", values.Random(1))
    for name in SPELLINGS:
        spelled = spell(given, name)
        assert "".join(spelled.pieces) in spelled.text, name


def test_the_public_parts_of_a_value_are_not_secret():
    made = values.make("https://hooks.example.com/{~digit:9}/{alnum:24}/x", values.Random(1))

    assert re.fullmatch(r"[A-Za-z0-9]{24}", made.secret)
    assert made.text.startswith("https://hooks.example.com/")
    assert made.text.endswith(f"/{made.secret}/x")


def test_eight_characters_in_a_row_or_six_tenths_of_a_short_secret_give_it_away():
    assert rows_of(tuple("abcdefghij")) == ("abcdef", "bcdefg", "cdefgh", "defghi", "efghij")
    assert {len(row) for row in rows_of(tuple("x" * 40))} == {8}
    assert rows_of(tuple("4821")) == ("4821",)


def test_who_hides_nothing_misses_everything_and_raises_no_alarm():
    figures = measure(spared, "dev", limit=FEW)

    assert figures.secrets.well == 0
    assert len(figures.misses) == figures.secrets.tried >= FEW
    assert figures.words.share == 1
    assert figures.alarms == figures.losses == ()
    assert figures.ordinary_words > 1_000


def test_who_hides_exactly_the_secrets_misses_nothing_and_spares_every_word(blanked):
    figures = measure(blanked, "dev", limit=FEW)

    assert figures.secrets.share == figures.words.share == 1
    assert figures.misses == figures.losses == figures.alarms == ()
    assert sum(tally.tried for tally in figures.kinds.values()) == figures.secrets.tried
    assert sum(tally.tried for tally in figures.languages.values()) == figures.secrets.tried


def test_who_hides_everything_loses_the_words_and_raises_an_alarm_at_every_line():
    figures = measure(lambda _text: "█", "dev", limit=FEW)

    assert figures.secrets.share == 1
    assert figures.words.well == 0
    assert len(figures.losses) == FEW
    assert len(figures.alarms) == figures.ordinary_lines


def test_half_a_secret_left_is_a_miss():
    def without_the_second_half_of_long_words(text):
        return re.sub(r"\S{24,}", lambda word: word[0][: len(word[0]) // 2] + "█", text)

    figures = measure(without_the_second_half_of_long_words, "dev", limit=FEW)

    assert any("█" in miss.redacted and miss.row in miss.redacted for miss in figures.misses)


def test_ordinary_text_of_a_folder_can_be_read(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("one two\nthree\n")
    (tmp_path / "b.py").write_text("x = 1\n")

    lines = list(lines_below(tmp_path))

    assert [text for _language, _topic, text in lines] == ["one two", "three"]
    assert number_of_words("one two, 三个字的") == 4


def test_the_set_that_was_written_later_has_places_and_lines_of_its_own():
    older = {(place.language, place.text) for half in HALVES for place in places(half)}

    assert len(cases("fresh")) > 400
    assert not older & {(place.language, place.text) for place in places("fresh")}
    assert {place.language for place in places("fresh")} == set(LANGUAGES)
    assert all(unknown_marks(case) == [] for case in cases("fresh"))
    assert measure(spared, "fresh", limit=FEW).secrets.well == 0
