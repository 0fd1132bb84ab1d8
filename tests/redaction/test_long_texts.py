"""Long texts are read in pieces: nothing is lost where one ends, and what holds no secret is read once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.redaction.test_crowds import PROSE, has_crowd, one_by_one, shown_though_a_secret, values
from tests.redaction.test_hostile_texts import BEGINNINGS, WORDS, mixed, work_of

from plainmind import redaction
from plainmind.redaction import engine
from plainmind.redaction.engine import _PIECE, Redactor
from plainmind.redaction.page import Page

REDACTOR = Redactor(["Zq8vTr5mLpQx"], key=b"k")
LONG = PROSE * 7_000  # four pieces and more


def found_in(text):
    return [(one.start, one.end, one.kind) for one in REDACTOR.redact(text).found]


@pytest.mark.parametrize("line_end", ["\n", "\n\n", " ", ""])
def test_a_secret_is_hidden_once_and_whole_wherever_a_piece_ends(line_end):
    rng = random.Random(f"ends {line_end!r}")
    calm = PROSE.replace("\n", line_end or "; ")
    secret = "the password is hunter22x, the key ghp_16C7e42F292c6912E7710c838347Ae178B4a. "
    text = calm * (_PIECE // len(calm) - 3)
    while len(text) < 3 * _PIECE:
        text += (secret + calm[: rng.randrange(len(calm))]) * 40 + calm * (_PIECE // len(calm) - 60)

    assert len(one_by_one(text)) >= 160
    assert found_in(text) == one_by_one(text)


@pytest.mark.parametrize(
    ("heading", "first", "row", "last", "secret"),
    [
        ("user,password\n", "eve,lemur7391\n", "bob,house\n", "bob,hunter22x\n", "hunter22x"),
        (
            "| name | password |\n",
            "| eve | lemur7391 |\n",
            "| bob | house |\n",
            "| bob | fox22xyz |\n",
            "fox22xyz",
        ),
        ("name,pin\n", "eve,4711\n", "bob,house\n", "bob,471135\n", "471135"),
        (
            "key ",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a\n",
            "x81Qz93kLm27pRt4\n",
            "y92Rz04lMn38\n",
            "y92Rz04lMn38",
        ),
    ],
)
def test_a_table_and_a_key_go_on_from_piece_to_piece(heading, first, row, last, secret):
    text = f"{PROSE * 1_500}{heading}{first}{row * (3 * _PIECE // len(row))}{last}{PROSE * 800}"

    assert secret in text
    assert secret not in REDACTOR.without_secrets(text)


def test_an_ending_of_a_piece_never_lies_within_a_private_key():
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n" * 8
    key = f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{body}-----END RSA PRIVATE KEY-----\n"
    calm = PROSE.replace("\n", " ")
    for moved in range(0, len(key), 61):
        text = f"{(calm * 2_000)[: _PIECE - moved]}\n{key}{calm * 2_000}"

        assert found_in(text) == one_by_one(text), moved
        assert len(found_in(text)) == 1


def test_a_word_of_another_script_may_stand_far_behind_the_only_odd_sign_of_a_text():
    text = f"Grüße.\n{LONG}la contra es hunter22x, nada mas.\n{LONG}Das mdp ist lemur7391.\n"

    assert [text[start:end] for start, end, _ in found_in(text)] == ["hunter22x", "lemur7391"]


@pytest.mark.parametrize("place", [0.02, 0.3, 0.6, 0.95])
def test_a_crowd_in_a_twentieth_of_a_text_takes_as_much_work_wherever_it_is(place):
    crowd = "".join(f"password: {value}\n" for value in values(1_200))
    lines = LONG.splitlines(keepends=True)
    at = int(len(lines) * place)
    text = "".join((*lines[:at], "\n", crowd, "\n", *lines[at:]))

    assert has_crowd(text)
    assert shown_though_a_secret(text) == []
    assert work_of(text) < work_of(LONG) + 65_000


def test_tables_with_a_heading_every_few_lines_are_a_crowd_that_is_not_looked_for_again_and_again():
    row = "| a | b | c | bob | x | {} | d |\n"
    table = f"| a | b | c | user | token | password | d |\n{row * 3}"
    text = "".join(table.format(*some) for some in zip(*[iter(values(9_000))] * 3, strict=True))

    assert shown_though_a_secret(text) == []
    assert work_of(text) < 300_000


@pytest.mark.parametrize("joint", ["", " ", "=", "\n"])
def test_every_word_of_the_rules_at_once_is_given_up_as_a_crowd_of_names(joint):
    text = mixed(BEGINNINGS + WORDS, joint)

    assert has_crowd(text)
    assert shown_though_a_secret(text) == []


def test_our_own_lists_of_names_are_no_crowd():
    for path in Path(redaction.__path__[0]).glob("*.py"):
        assert not has_crowd(path.read_text("utf-8")), path


@pytest.mark.parametrize("form", ["{} ", "{}\n", "{}, "])
def test_numbers_that_are_nearly_those_of_cards_are_checked_all_at_once(form):
    text = "".join(form.format(number) for number in _nearly_cards(8_000))

    assert found_in(text) == []
    assert work_of(text) < 8_000 * 2


def _nearly_cards(count):
    """Numbers of sixteen digits whose last one is wrong."""
    rng = random.Random("nearly cards")
    for _ in range(count):
        digits = [4, *(rng.randrange(10) for _ in range(14))]
        total = sum(digits[1::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[::2])
        yield "".join(map(str, digits)) + str((-total + rng.randrange(1, 10)) % 10)


def test_a_list_of_tokens_on_lines_takes_no_more_for_each_the_longer_it_is():
    lines = [f"ghp_16C7e42F292c6912E7710c838347Ae1{at:05}\n" for at in range(300)]
    once, twice = work_of("".join(lines[:150])), work_of("".join(lines))

    assert twice <= 2.2 * once


def test_flags_without_one_of_their_programs_are_not_looked_at_one_by_one():
    assert work_of(" -u a:bbbb " * 20_000) < 15_000


def test_what_is_read_for_the_second_time_is_looked_at_as_closely_as_the_first_time():
    table = "| user | password |\n|---|---|\n| bob | {} |\n| ada | {} |\n"
    text = "".join(table.format(*pair) for pair in zip(*[iter(values(4_000))] * 2, strict=True))

    assert shown_though_a_secret(text) == []


ROWS = "bob,house\n" * 20
TABLES = "".join(f"a{at},password\n{ROWS}\n" for at in range(4_000))


def test_what_stands_before_a_crowd_is_not_read_again_and_again(monkeypatch):
    lengths = []

    def page(*given, **more):
        lengths.append(len(given[0]))
        return Page(*given, **more)

    monkeypatch.setattr(engine, "Page", page)

    assert has_crowd(TABLES)
    assert sum(lengths) < len(TABLES) + 2 * _PIECE


@pytest.mark.parametrize(
    "form", ["bob{0},{1}\n", "| bob{0} | {1} |\n", "bob{0}\t{1}\n", "bob{0}  {1}\n", "bob;{1};\r\n"]
)
def test_rows_without_a_secret_are_read_dozens_at_a_time(form):
    words = ["house", "tree", "lake", "boat", "river"]
    heading = form.format("", "password")
    rows = "".join(form.format(at, words[at % 5]) for at in range(20_000))
    text = f"{heading}{form.format(1, 'fox22xyz')}{rows}{form.format(2, 'lemur7391x')}\n{PROSE}"

    assert "lemur" not in REDACTOR.without_secrets(text)
    assert work_of(text) < 30_000


def test_rows_below_many_headings_are_taken_apart_twice_and_no_more():
    names = "x1y2,password,api token,passphrase,secret key,pass,passwd,pwd"
    rows = "bob,house,tree,lake,boat,river,hill,road\n" * 500
    REDACTOR.redact(f"{names}\n{rows}")  # what is made once is not counted
    once, all_of_them = work_of(f"x1y2 password,a,b,c,d,e,f,g\n{rows}"), work_of(f"{names}\n{rows}")

    assert all_of_them < 2 * once


def test_a_crowd_that_begins_within_a_secret_has_its_own_mark():
    lines = "> MIIxvFNQZ1nZ4Y9tuEWJbuMDtimQp4uPXD69XipV3qMAewhFDsgguyFr9DNBX7\n" * 30
    text = f"> -----BEGIN PRIVATE KEY-----\n{lines}> -----END PRIVATE KEY-----\n" * 400

    assert has_crowd(text)
    assert "MII" not in REDACTOR.without_secrets(text)
