"""Known secrets, in the forms that programs give them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from plainmind.redaction.engine import Redactor, forms_of
from plainmind.redaction.plausible import is_stand_in

SECRET = 'p@ss/wörd "x"\\+&=?#🔑 end'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1].replace("/", "\\/"),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
    ],
    ids=["raw", "json", "json utf-8", "json slashes", "url", "url lower", "form", "base64", "base64url"],
)
def test_a_known_secret_is_hidden_in_every_form(form):
    redacted = Redactor([SECRET], key=b"k").redact(f"value={form}; end")

    assert form not in redacted.text
    assert redacted.found[0].kind == "configured"


def test_all_forms_get_the_mark_of_the_secret():
    redactor = Redactor([SECRET], key=b"k")
    plain = redactor.redact(f"a {SECRET} b").found[0].mark

    for form in forms_of(SECRET):
        assert redactor.redact(f"a {form} b").found[0].mark == plain


@given(st.binary(max_size=5), st.text("abcdefXYZ0189+/é", min_size=8), st.binary(max_size=5))
def test_a_secret_within_base64_is_found_wherever_it_falls(before, secret, after):
    assume(not is_stand_in(secret))
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    redacted = Redactor([secret], key=b"k").redact(encoded)

    assert redacted.found
    assert max(len(part) for part in redacted.text.replace("]", "[").split("[")[::2]) <= 12


def test_short_secrets_count_only_where_they_stand_alone():
    redactor = Redactor(["tr0y"], key=b"k")

    assert redactor.redact("tr0y!").text.startswith("[redacted:")
    assert redactor.redact("(tr0y) astr0yd tr0ys").text.endswith(" astr0yd tr0ys")


def test_what_is_too_short_or_too_plain_for_a_secret_is_passed_over():
    redactor = Redactor(["", "abc", "ollama", "none", "${OPENAI_API_KEY}", "lm-studio"], key=b"k")
    text = "abc: ollama has none, lm-studio neither; ${OPENAI_API_KEY}"

    assert redactor.redact(text).text == text


def test_a_secret_with_half_a_character_can_be_configured():
    assert Redactor(["secret\ud800here"], key=b"k").redact("a secret\ud800here b").found


def test_each_place_of_a_secret_is_found():
    redacted = Redactor(["Zq8vTr5mLp"], key=b"k").redact("Zq8vTr5mLpZq8vTr5mLp and xZq8vTr5mLpx")

    assert len(redacted.found) == 3


def test_of_a_configured_header_the_credential_is_the_secret():
    redactor = Redactor(["Bearer Zq8vTr5mLpXw", "token"], key=b"k")

    assert redactor.redact("x Zq8vTr5mLpXw y, a token").text.endswith(" y, a token")
    assert redactor.redact("x Zq8vTr5mLpXw y").found


@given(st.text("abcdefXYZ0189+/-", min_size=12, max_size=40), st.integers(6, 39), st.booleans())
def test_of_a_secret_that_a_piece_of_text_cuts_off_nothing_is_left(secret, kept, at_the_end):
    assume(not is_stand_in(secret) and kept < len(secret))
    redactor = Redactor([secret], key=b"k")
    piece = f"opens with {secret[:kept]}…" if at_the_end else f"…{secret[-kept:]} opens it"

    shown = redactor.without_configured(piece)

    assert (secret[:kept] if at_the_end else secret[-kept:]) not in shown
    assert "[redacted:configured#" in shown
    assert shown.startswith("opens with ") if at_the_end else shown.endswith(" opens it")


def test_only_known_secrets_are_hidden_where_nothing_else_is_asked_for():
    redactor = Redactor(["Zq8vTr5mLpXw"], key=b"k")

    assert "Zq8v" not in redactor.without_configured("it is Zq8vTr5mLpXw, said Anna")
    for text in ("", "Zq8v", "password = hunter22", "the gate opens at nine"):
        assert redactor.without_configured(text) == text


def test_digests_tell_secrets_apart_and_nothing_else():
    digests = Redactor(["Bearer Zq8vTr5mLpXw", "swordfish-17", "none"], key=b"k").digests()

    assert len(set(digests)) == 2
    assert sorted(digests) == sorted(Redactor(["swordfish-17", "Zq8vTr5mLpXw"], key=b"k").digests())
    assert not set(digests) & set(Redactor(["swordfish-17"], key=b"another").digests())
