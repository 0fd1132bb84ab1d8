"""What is looked for so many times and no more: nothing that stands behind it is shown."""

from __future__ import annotations

import pytest
from tests.redaction.test_crowds import PROSE, has_crowd, shown_though_a_secret
from tests.redaction.test_hostile_texts import work_of

from plainmind.redaction.engine import Redactor

REDACTOR = Redactor(key=b"k")
# Each has no secret; no two of one kind are alike.
TABLE = "a{0},password\nbob,house\n\n"
TABLE_OF_TOKENS = "| a{0} | token |\n|---|---|\n| x{0} | box |\n\n"
LIST = "Passwords:\nroot{0}: house\n\n"
SENTENCE = "if token.type == x{0}3: return\n"
KINDS = [TABLE, TABLE_OF_TOKENS, LIST, SENTENCE]
SECRETS = [
    "| user | password |\n|---|---|\n| bob | lemur7391x |\n",
    "Passwords:\nroot: lemur7391x\n",
    "my password there is lemur7391x by now\n",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("calm", ["", PROSE], ids=["close", "apart"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [150, 400, 1_500])
def test_a_secret_behind_any_number_of_looks_in_vain_is_hidden(kind, count, calm, secret):
    text = "".join(kind.format(at) + calm for at in range(count)) + f"\n{secret}"

    assert "lemur" not in REDACTOR.without_secrets(text)
    assert shown_though_a_secret(text) == []


@pytest.mark.parametrize("kind", [TABLE, TABLE_OF_TOKENS, SENTENCE])
def test_what_was_not_looked_at_has_the_mark_of_a_crowd_in_a_short_text_too(kind):
    text = "".join(kind.format(at) for at in range(2_000))
    text = text[: min(len(text), 16_384 if kind is TABLE else 40_000)]

    redacted = REDACTOR.redact(text)

    assert [one.kind for one in redacted.found] == ["crowd"]
    assert redacted.text.count("\n") == text.count("\n")
    assert not has_crowd(text[:8_000])


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("calm", ["", PROSE * 300], ids=["short", "long"])
def test_a_secret_among_names_without_end_is_hidden(calm, secret):
    crowd = "key token secret login user auth pass pw " * 120

    assert "lemur" not in REDACTOR.without_secrets(f"{calm}{crowd}\n\n{secret}\n{crowd}\n{calm}")


@pytest.mark.parametrize("names", [200, 245, 250, 255])
def test_a_name_behind_the_beginnings_of_names_is_found_however_many_stand_before(names):
    calm = PROSE * 100
    part = ("key a b c d e \n" * names)[:3_900] + "ật khẩu " * 20 + "密码：lemur7391x\n"

    assert "lemur" not in REDACTOR.without_secrets(f"{calm[:8_192]}{part}{calm}")


def test_a_list_is_read_to_its_end():
    entries = "".join(f"root{at}: house\n" for at in range(1_500))

    assert "lemur" not in REDACTOR.without_secrets(f"Passwords:\n{entries}nas: lemur7391x\n")


def test_a_table_is_read_to_its_end():
    rows = "bob,house\n" * 100_001

    assert "lemur" not in REDACTOR.without_secrets(f"name,password\nbob,fox22xyz\n{rows}bob,lemur7391x\n")


def test_a_list_of_numbers_is_read_behind_any_number_of_names():
    text = "a token here and there, said the man\n" * 400
    table = "name,passcode\n" + "eve,garden\n" * 60 + "joe,471135\n"

    assert "471135" not in REDACTOR.without_secrets(table)
    assert "471135" not in REDACTOR.without_secrets(f"{text}\n{table}")


def test_every_cookie_of_a_request_is_hidden():
    pairs = "; ".join(f"a{at}=b" for at in range(150))

    assert "lemur" not in REDACTOR.without_secrets(f"Cookie: {pairs}; sid=lemur7391x\n")


def test_a_table_within_a_table_is_read_once():
    rows = "".join(f"bob,{word}9x{at}\nbob,passphrase\n" for at, word in enumerate(["house", "tree"] * 100))
    text = f"name,password\n{rows}bob,lemur7391x\n"

    assert "lemur" not in REDACTOR.without_secrets(text)
    assert shown_though_a_secret(text) == []
    assert work_of(text) < 20_000


def test_many_tables_without_a_secret_among_prose_are_no_crowd():
    tables = "".join(f"{TABLE.format(at)}{PROSE * 5}" for at in range(2_000))

    assert REDACTOR.without_secrets(tables) == tables


def test_a_field_whose_name_is_made_of_names_hides_what_it_holds():
    REDACTOR.redact(PROSE * 200)  # from then on all words are looked for at once
    field = {"key pw " * 280 + "password": "lemur7391x"}

    assert "lemur" not in str(REDACTOR.redact_value(field))
