"""Whole texts through the redactor."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.redaction.samples import PLAIN, TYPES, placed, some
from tests.redaction.test_hostile_texts import WORDS, expressions

from plainmind.base.model import split_lines
from plainmind.redaction.engine import RULES_VERSION, Redactor
from plainmind.redaction.findings import Finding, Redacted
from plainmind.redaction.names import NAMES

REDACTOR = Redactor(key=b"a key for tests")
LETTERS_OF_IDS = frozenset("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def hidden(text, redactor=REDACTOR):
    """What was hidden, in its own words."""
    return [text[found.start : found.end] for found in redactor.redact(text).found]


def secret_of(name, seed=1):
    return TYPES[name](random.Random(seed))[1]


@pytest.mark.parametrize("name", TYPES)
def test_a_secret_is_found_wherever_it_stands(name):
    """None may be left in a hundred: here each of ten secrets of the type, in each of thirty-two places."""
    rng = random.Random(f"corpus {name}")
    for _ in range(10):
        snippet, secret = TYPES[name](rng)
        for place, text in placed(snippet):
            copy = REDACTOR.redact(text).text
            assert secret not in copy, place
            assert secret[-10:] not in copy, place
            assert secret[6:16] not in copy, place
            assert copy.count("\n") == text.count("\n"), place
            assert REDACTOR.redact(copy) == Redacted(copy), place


def test_the_samples_are_as_wide_as_promised():
    assert len(TYPES) >= 60
    assert len(list(placed("x"))) >= 25


def test_a_text_without_secrets_is_returned_as_it_is():
    text = "The gateway is a Mac Studio in the cellar; its token bucket holds 4096 tokens."

    assert REDACTOR.redact(text) == Redacted(text, ())
    assert REDACTOR.redact(text).text is text
    assert REDACTOR.redact("") == Redacted("", ())


@pytest.mark.parametrize(
    "words", ["The guest room key hangs behind the cellar door", "spare key under the mat", "the token"]
)
def test_the_id_of_a_note_is_no_secret(words):
    note = f"- {words} <!-- m:01M7JKJJZ1CWHGBBDT3VK6F4ZA -->"
    secret = secret_of("github")

    assert hidden(note) == []
    assert hidden(f"{note} key={secret}") == [secret]
    assert hidden(f"- the token <!-- m:{secret} -->") == [secret]


# What the rules know that can be spelled with the letters of an id.
IN_IDS = sorted(
    {name.anchor.upper() for name in NAMES if set(name.anchor.upper()) <= LETTERS_OF_IDS}
    | {"PWD", "PWS", "PASSWD", "PASSW0RD", "SECRET", "SECRETS", "KEY", "KEYS", "PAT", "WPAKEY", "CRED", "AE"}
)


def ids_with(word):
    """Ids that say it at their end, behind their time, and between digits."""
    rng = random.Random(word)
    for before in (26 - len(word), 10, 3):
        letters = rng.choices("0123456789" if before == 3 else sorted(LETTERS_OF_IDS), k=26)
        letters[before : before + len(word)] = word
        yield "01M" + "".join(letters)[3:]


@pytest.mark.parametrize("word", IN_IDS)
def test_an_id_that_happens_to_spell_a_name_is_none(word):
    for own in ids_with(word):
        for text in (
            f"- 23:14 The animal of turn 29 is cleo29quokka. <!-- m:{own} -->\n- 23:15 bob30quokka <!-- m:{own} -->",
            f"<!-- m:{own} -->\ncleo29quokka\n",
            f"kettle613x agent:main:{own}",
            f'{{"id":"{own}","text":"cleo29quokka"}}',
            f"- done <!-- m:{own} -->\n  kA93mdR5tqLz81XcQ70bv in store",
        ):
            assert hidden(text) == [], text
        assert hidden(f"- the password is cleo29quokka <!-- m:{own} -->") == ["cleo29quokka"]


@pytest.mark.parametrize("secret", ["hunter22x", "kettle613x", "LEMUR7391X"])
def test_what_only_looks_like_an_id_hides_no_secret_in_it_or_beside_it(secret):
    for text in (
        f"<!-- m:PWD={secret} -->",
        f"<!-- m:0123456789ABCPWD={secret} -->",
        f"the password <!-- m:{secret} -->",
        f"<!-- m:01M7JKJJZ1CWHGBBDT3VK6FPWD={secret} -->",  # an equals sign behind 26 letters
        f"<!-- m:01m7jkjjz1cwhgbbdt3vk6fpwd: {secret} -->",  # small letters
        f"<!-- m:81M7JKJJZ1CWHGBBDT3VK6FPWD: {secret} -->",  # past the last moment that an id can tell
        f"<!-- m:001M7JKJJZ1CWHGBBDT3VK6FPWD: {secret} -->",  # one letter more
    ):
        assert secret not in REDACTOR.without_secrets(text), text


def test_a_finding_says_kind_place_and_mark():
    secret = secret_of("github")
    text = f"deploy with {secret} today"
    redacted = REDACTOR.redact(text)
    (found,) = redacted.found

    assert found == Finding("github", 12, 12 + len(secret), found.mark)
    assert redacted.text == f"deploy with {found.mark} today"


def test_the_same_secret_gets_the_same_mark_in_every_place_and_form():
    password = some(PLAIN, 16)(random.Random(2))
    text = f"postgres://app:{password}@db/x\nDB_PASSWORD={password}\npassword: '{password}'"
    marks = [found.mark for found in REDACTOR.redact(text).found]

    assert len(marks) == 3
    assert len({mark.split("#")[1] for mark in marks}) == 1


def test_another_key_gives_other_marks():
    text = f"export GH={secret_of('github')}"
    marks = {Redactor(key=key).redact(text).text for key in (b"one", b"two", b"three" * 40)}

    assert len(marks) == 3
    assert Redactor(key=b"one").redact(text).text in marks


def test_marks_of_an_earlier_redaction_are_left_alone():
    text = "password = [redacted:password#3f9a]\npostgres://app:[redacted:database-password#00ff]@db/x"

    assert REDACTOR.redact(text) == Redacted(text, ())


def test_a_secret_beside_a_mark_is_still_found():
    secret = secret_of("github")

    assert hidden(f"[redacted:github#3f9a] and {secret} and [redacted:github#3f9a]") == [secret]


def test_overlapping_findings_become_one_of_the_more_certain_kind():
    secret = secret_of("github")
    (found,) = REDACTOR.redact(f"Cookie: theme=dark; token={secret}; lang=en").found
    (named,) = REDACTOR.redact(f"GITHUB_TOKEN={secret}").found

    assert (found.kind, found.start) == ("github", 8)
    assert named.kind == "github"


def test_what_is_configured_comes_first():
    secret = secret_of("github")
    (found,) = Redactor([secret], key=b"k").redact(f"TOKEN={secret}").found

    assert found.kind == "configured"


def test_a_key_of_many_lines_leaves_its_lines_behind():
    body = "\r\n".join(some(PLAIN, 64)(random.Random(line)) for line in range(4))
    text = f"before\r\n-----BEGIN RSA PRIVATE KEY-----\r\n{body}\r\n-----END RSA PRIVATE KEY-----\r\nafter"
    redacted = REDACTOR.redact(text)

    assert len(split_lines(redacted.text)) == len(split_lines(text))
    assert split_lines(redacted.text)[-1] == "after"
    assert redacted.text.count("\r\n") == text.count("\r\n")
    assert body[:20] not in redacted.text


CONTEXT = [
    "password",
    "token",
    "api_key",
    "=",
    ": ",
    '"',
    "'",
    "\\n",
    "\r\n",
    "\n",
    " is ",
    "://",
    ":",
    "@",
    "Bearer ",
    "é",
]
BORDERS = [
    "[redacted:github#3f9a]",
    "[redacted:",
    "Cookie: ",
    "-----BEGIN PRIVATE KEY-----",
    "curl -u ",
    "basic ",
]
SNIPPETS = st.builds(
    lambda name, seed: TYPES[name](random.Random(seed))[0], st.sampled_from(list(TYPES)), st.integers(0, 99)
)
PIECES = st.one_of(st.text(max_size=12), st.sampled_from(CONTEXT), st.sampled_from(BORDERS), SNIPPETS)


def with_plain_line_ends(text):
    return text.replace("\r\n", "\n").replace("\r", "\n")


@example("-----BEGIN PRIVATE KEY-----\r" + "EAA2x3c7E4Z8w3niifX9HRLjge0uIvtNmIBG" * 2)
@example("-----BEGIN PRIVATE KEY-----\r" + "EAA2x3c7E4Z8w3niifX9HRLjge0uIvtNmIBG\n" * 2 + "more")
@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_text_makes_it_raise_or_changes_its_lines(text):
    redacted = REDACTOR.redact(text)
    rebuilt, copied = "", 0
    for found in redacted.found:
        assert copied <= found.start < found.end
        secret = with_plain_line_ends(text[found.start : found.end])
        breaks = "\n" * secret.count("\n")
        rebuilt += text[copied : found.start] + found.mark + breaks
        copied = found.end

    assert with_plain_line_ends(redacted.text) == with_plain_line_ends(rebuilt + text[copied:])
    # Something behind both: a last line that was all secret has nothing left, and would not be counted.
    assert len(split_lines(redacted.text + ".")) == len(split_lines(text + "."))


@given(st.lists(PIECES, max_size=12).map("".join))
def test_a_second_redaction_hides_nothing_that_was_hidden_before(text):
    once = REDACTOR.redact(text)
    twice = REDACTOR.redact(once.text)

    for found in once.found:
        assert twice.text.count(found.mark) >= 1


@given(st.text())
def test_lower_case_keeps_every_character_in_its_place(text):
    from plainmind.redaction.page import Page

    page = Page(text)

    assert len(page.low) == len(page.text)


def test_no_character_moves_others_when_it_becomes_lower_case():
    from plainmind.redaction.page import Page

    page = Page("".join(map(chr, range(0x110000))))

    assert len(page.low) == len(page.text)


def test_a_value_of_json_is_copied_without_its_secrets():
    token, key = secret_of("github"), some(PLAIN, 32)(random.Random(3))
    entry = {
        "tool": "login",
        "arguments": {"user": "bob", "password": "swordfish", "apiKey": key, "retries": 3},
        "said": [
            f"with {token}",
            None,
            True,
            {"note": "", "tokens": "4096", "password": "", "key": "a1b2c3d4e5"},
        ],
        "secrets": ['a1b2"c3d4\\e5f6'],
    }
    copy = REDACTOR.redact_value(entry)

    assert copy["arguments"]["user"] == "bob"
    assert copy["arguments"]["retries"] == 3
    assert copy["arguments"]["password"].startswith("[redacted:password#")
    assert copy["arguments"]["apiKey"].startswith("[redacted:key#")
    assert copy["said"][0].startswith("with [redacted:github#")
    assert copy["said"][1:] == entry["said"][1:]
    assert copy["secrets"][0].startswith("[redacted:secret#")
    assert entry["arguments"]["password"] == "swordfish"
    assert REDACTOR.redact_value(copy) == copy


def test_the_name_of_a_field_can_be_a_secret_too():
    token = secret_of("github")
    copy = REDACTOR.redact_value({token: {"uses": 3}, 7: "seven"})

    assert list(copy) == [REDACTOR.redact(token).text, 7]
    assert copy[REDACTOR.redact(token).text] == {"uses": 3}


def test_a_long_text_under_the_name_of_a_secret_is_read_as_text():
    assert REDACTOR.redact_value({"password": "one\ntwo"}) == {"password": "one\ntwo"}
    assert REDACTOR.redact_value({"token": "a1b2 " * 2000}) == {"token": "a1b2 " * 2000}


@given(
    st.lists(st.sampled_from([*WORDS, "hunter22", "a1b2c3d4e5", " ", "\n", "=", ": "]), max_size=12).map(
        "".join
    )
)
def test_the_quick_copy_is_the_copy(text):
    assert REDACTOR.without_secrets(text) == REDACTOR.redact(text).text


def test_whoever_changes_a_rule_raises_their_version():
    told = hashlib.sha256("\n".join(sorted(set(expressions()))).encode()).hexdigest()[:16]

    assert (RULES_VERSION, told) == (14, "d41ce01b52a6931d"), (
        "rules have changed: raise RULES_VERSION, so that copies are made anew, and note the digest here"
    )
