"""Texts of nothing but secrets: past a few hundred they are hidden as a whole, and never less than one by one."""

from __future__ import annotations

import random

import pytest
from tests.redaction.corpus.cases import cases, fill
from tests.redaction.test_hostile_texts import BEGINNINGS, mixed, work_of

from plainmind.base.model import split_lines
from plainmind.redaction import anchors, around_names
from plainmind.redaction.engine import Redactor
from plainmind.redaction.findings import CROWD
from plainmind.redaction.page import LENGTH_OF_LOOK, Allowance, Page

REDACTOR = Redactor(["Zq8vTr5mLpQx"], key=b"k")
ANY_NUMBER = 1 << 60
PROSE = "We met on Tuesday, talked about the 3 houses by the lake, and went home at 18:30.\n"


def values(count, seed="values"):
    rng = random.Random(seed)
    signs = "abcdefghijkmnpqrstuvwxyzABCDEFGH23456789"
    return [f"{rng.choice('kvxz')}{''.join(rng.choices(signs, k=9))}4Q7" for _ in range(count)]


def one_by_one(text):
    """What is found when each secret is looked for, however many there are and however long it takes."""
    page = Page(text, Allowance(ANY_NUMBER * LENGTH_OF_LOOK))
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(anchors, "_MOST_IN_PART", ANY_NUMBER)
        found = REDACTOR._find_closely(page, ANY_NUMBER)
    assert found is not None
    return found


def shown_though_a_secret(text):
    """What would be hidden one by one, and is not hidden here."""
    hidden = bytearray(len(text))
    for found in REDACTOR.redact(text).found:
        hidden[found.start : found.end] = b"\1" * (found.end - found.start)
    return [text[start:end] for start, end, _ in one_by_one(text) if not all(hidden[start:end])]


def has_crowd(text):
    return any(found.kind == CROWD for found in REDACTOR.redact(text).found)


CORPUS = [fill(case, 1).text for half in ("dev", "fresh") for case in cases(half)]


@pytest.mark.parametrize("joint", ["\n", "\n\n", " "])
def test_no_secret_of_the_corpus_is_shown_because_there_are_many(joint):
    text = joint.join(CORPUS)

    assert has_crowd(text)
    assert shown_though_a_secret(text) == []


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_shown_before_within_or_behind_crowds_that_is_hidden_without_them(seed):
    rng = random.Random(seed)
    pieces = []
    for _ in range(rng.randint(2, 6)):
        crowd = [
            f"{rng.choice(['password', 'token', 'пароль'])}={value}" for value in values(2_000, rng.random())
        ]
        table = [
            "| user | password |",
            "|---|---|",
            *(f"| bob | {value} |" for value in values(900, rng.random())),
        ]
        calm = [PROSE * rng.randint(1, 30) + rng.choice(CORPUS) for _ in range(20)]
        pieces.append(rng.choice(["\n", " "]).join(rng.choice([crowd, table, calm])))
        pieces.append(rng.choice(["\n\n".join(calm), "\n".join(rng.sample(CORPUS, 200))]))
    text = rng.choice(["\n", "\n\n"]).join(pieces)

    assert shown_though_a_secret(text) == []


def test_a_list_of_three_hundred_passwords_and_a_file_of_settings_are_read_one_by_one():
    passwords = "\n".join(f"The password of box {at} is {value}." for at, value in enumerate(values(300)))
    settings = "\n".join(f"SERVICE_{at}_API_KEY={value * 2}" for at, value in enumerate(values(200)))

    for text, count in ((passwords, 300), (settings, 200), (PROSE * 3_000 + settings, 200)):
        found = REDACTOR.redact(text).found
        assert len(found) == count
        assert CROWD not in {one.kind for one in found}


def test_a_long_text_with_few_secrets_is_read_as_if_it_were_short():
    text = "".join(f"{PROSE * 200}password: {value}\n" for value in values(60))

    assert [(one.start, one.end, one.kind) for one in REDACTOR.redact(text).found] == one_by_one(text)
    assert len(one_by_one(text)) == 60


def test_a_crowd_ends_at_an_empty_line_and_what_follows_is_read_again():
    crowd = "".join(f"password={value}\n" for value in values(4_000))
    text = f"Before.\n{crowd}\n{PROSE * 100}My password there is hunter22x by now.\n"

    redacted = REDACTOR.redact(text)

    kinds = [one.kind for one in redacted.found]
    assert kinds.count(CROWD) == 1
    assert kinds[-1] == "password"
    assert redacted.text.startswith("Before.\npassword=[redacted:password#")
    assert redacted.text.count(PROSE) == 100
    assert "hunter22x" not in redacted.text


def test_a_crowd_has_a_mark_and_the_lines_of_the_original():
    text = "".join(f"password={value}\r\n" for value in values(4_000))

    redacted = REDACTOR.redact(text)

    assert redacted.text.count(f"[redacted:{CROWD}#") == 1
    assert len(split_lines(redacted.text)) == len(split_lines(text))
    assert REDACTOR.without_secrets(text) == redacted.text
    assert REDACTOR.without_secrets(redacted.text) == redacted.text


def test_a_table_with_more_words_in_its_heading_is_counted_once():
    rows = "".join(
        f"| bob{at} | {value} | mars, behind the door of the cellar |\n"
        for at, value in enumerate(values(280))
    )
    text = f"| user | api key token secret | where |\n|---|---|---|\n{rows}"

    assert len(text) > 16_384
    assert not has_crowd(text)
    assert len(REDACTOR.redact(text).found) == 280


@pytest.mark.parametrize(
    "form",
    ["password={} ", "pw={},", "密码：{}。", "ada@example.com / {}\n", "| bob | {} |\n", "https://bob:{}@host/ ",
     "mysql -p{}\n", "cookie: sid={}; a=b\n", "Das Passwort lautet {}. "],
)  # fmt: skip
def test_twice_as_many_secrets_take_hardly_more_work_once_they_are_a_crowd(form):
    heading = "| user | password |\n|---|---|\n" if form.startswith("|") else ""
    once, twice = (
        work_of(heading + "".join(form.format(value) for value in values(count)))
        for count in (12_000, 24_000)
    )

    assert twice <= 1.3 * once + 5_000
    assert twice < 24_000 * 10  # one by one each of them takes more than this


def test_nothing_but_names_of_secrets_is_given_up_after_some_pages():
    names = ["password", "token", "secret", "api key", "пароль", "密码", "Passwort", "mot de passe"]
    text = ", ".join(random.Random(1).choices(names, k=40_000))

    assert has_crowd(text)
    assert work_of(text) < 60_000
    assert not has_crowd(", ".join(names * 25))


def test_nothing_but_flags_of_command_lines_is_given_up_too():
    text = " -pa1b2c3 -u a:" * 3_000
    lines = "gcc -c -o main.o main.c -w -p && ls -la -t /var/log | sort -u -k 2\n" * 3_000

    assert has_crowd(text)
    assert not has_crowd(lines)
    assert not has_crowd("- - - - - - - -\n" * 3_000)


def test_what_stands_before_a_crowd_far_behind_is_shown():
    crowd = "user,password\n" + "".join(f"bob,{value}\n" for value in values(8_000))
    text = f"{PROSE * 4_000}\n{crowd}\n{PROSE * 400}"

    shown = REDACTOR.without_secrets(text)

    assert has_crowd(text)
    assert shown.count(PROSE) >= 3_980 + 390


def test_a_long_word_with_many_values_is_gone_through_once():
    passed = 0

    class Counted:
        def match(self, text, *limits):
            nonlocal passed
            found = rest.match(text, *limits)
            passed += found.end() - found.start()
            return found

    rest = around_names._REST
    text = mixed(BEGINNINGS, "=")
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(around_names, "_REST", Counted())
        REDACTOR.without_secrets(text)

    assert 0 < passed <= 3 * len(text)
