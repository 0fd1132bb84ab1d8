"""Until when a line holds, in the forms that people and `plainmind tidy` write."""

from __future__ import annotations

import pytest

from plainmind.text.validity import (
    Validity,
    expiring,
    mentions_validity,
    superseded,
    validities,
    validity_of,
    without_validity,
)

END = "2026-12-01"


@pytest.mark.parametrize(
    "line",
    [
        "- the guest network is called Lindenblatt (until 2026-12-01)",
        "- 访客网络叫 Lindenblatt（until 2026-12-01）",
        "- parking at the back <!-- expires: 2026-12-01 --> <!-- m:01JD3 -->",
        "parking <!--expires:2026-12-01-->",
        "- (until 2025-01-01) was the first plan, now it is longer (until 2026-12-01)",
    ],
)
def test_a_line_says_until_when_it_holds(line: str) -> None:
    assert validity_of(line) == Validity(END)


@pytest.mark.parametrize(
    "line",
    [
        "- we stay until 2026-12-01",
        "- the ticket (until Friday)",
        "- the ticket (until 2026-13-01)",
        "- the ticket (until 2026-02-30) expires: soon",
        "- the milk expires: 2026-12-01",
        "- plain words",
    ],
)
def test_other_words_say_nothing_of_it(line: str) -> None:
    assert validity_of(line) is None


def test_the_last_day_still_counts() -> None:
    held = Validity(END)

    assert not held.is_expired(END)
    assert held.is_expired("2026-12-02")


def test_a_superseded_line_names_the_newer_one_and_never_expires() -> None:
    found = validity_of("- ~~the office is in Bern~~ (until 2026-11-15, now memory/my office.md#L9-L10)")

    assert found == Validity("2026-11-15", "memory/my office.md", 9)
    assert found is not None
    assert found.is_superseded
    assert not found.is_expired("2030-01-01")
    assert not Validity(END).is_superseded


def test_what_is_written_is_read_again() -> None:
    line = "  - [ ] 14:32 the office is in ~~Bern~~ Basel <!-- m:01JD3 -->"

    old = superseded(line, until="2026-11-15", path="MEMORY.md", number=9)
    ends = expiring(line, until=END)

    assert old == (
        "  - [ ] 14:32 ~~the office is in Bern Basel~~ (until 2026-11-15, now MEMORY.md#L9) <!-- m:01JD3 -->"
    )
    assert validity_of(old) == Validity("2026-11-15", "MEMORY.md", 9)
    assert ends == "  - [ ] 14:32 the office is in ~~Bern~~ Basel (until 2026-12-01) <!-- m:01JD3 -->"
    assert validity_of(ends) == Validity(END)


def test_the_words_alone_are_what_stood_there() -> None:
    plain = "- the office is in Bern"

    assert without_validity(superseded(plain, until=END, path="MEMORY.md", number=9)) == plain
    assert without_validity(expiring(plain, until=END)) == plain
    assert without_validity(f"{plain} <!-- expires: {END} -->") == plain
    assert without_validity("- ~~struck out~~ by hand") == "- ~~struck out~~ by hand"
    assert without_validity("- ~~struck~~ <!-- expires: 2026-12-01 -->") == "- ~~struck~~"
    assert not mentions_validity(plain)


def test_a_form_on_a_heading_is_for_its_section() -> None:
    lines = [
        "# Berlin",
        "",
        "## Flat (until 2026-12-01)",
        "- the key is with Ada",
        "### Cellar",
        "- number 4 (until 2027-01-01)",
        "## Tram",
        "- line 12",
    ]

    assert validities(lines) == {
        3: Validity(END),
        4: Validity(END),
        5: Validity(END),
        6: Validity("2027-01-01"),
    }


def test_a_form_on_an_item_is_for_what_is_indented_beneath() -> None:
    lines = [
        "- trip (until 2026-12-01)",
        "  - hotel Lindenhof",
        "    room 12",
        "  - train (until 2026-11-20)",
        "    seat 4",
        "  - museum",
        "- dentist",
        "  - floor 3 (until 2027-01-01)",
        "  - bring the card",
        "  more words",
    ]

    train = Validity("2026-11-20")
    expected = {1: Validity(END), 2: Validity(END), 3: Validity(END), 4: train, 5: train, 6: Validity(END)}
    assert validities(lines) == expected | {8: Validity("2027-01-01")}


def test_a_comment_of_its_own_is_for_its_paragraph_or_item() -> None:
    lines = [
        "the code of the gate",
        "is 4471",
        "<!-- expires: 2026-12-01 -->",
        "",
        "- item",
        "  <!-- expires: 2026-12-01 -->",
    ]

    assert validities(lines) == dict.fromkeys((1, 2, 3, 5, 6), Validity(END))


def test_a_front_matter_speaks_for_the_file_and_code_for_nothing() -> None:
    lines = [
        "---",
        "title: Fair",
        "expires: '2026-12-01'",
        "---",
        "hall 4",
        "",
        "```",
        "until x (until 2026-01-01)",
        "```",
    ]

    assert validities(lines) == dict.fromkeys((5, 7, 8, 9), Validity(END))
    assert validities(["---", "expires: 2026-99-01", "---", "hall 4"]) == {}
    assert validities(["---", "title: until then", "---", "hall 4"]) == {}


def test_a_text_without_a_form_is_not_looked_at() -> None:
    assert validities(["# Berlin", "- line 12"]) == {}
    assert validities(["Berlin (until 2026-12-01)", "======", "- line 12"]) == dict.fromkeys(
        (1, 2, 3), Validity(END)
    )
