"""Any text survives a database that takes no NUL and no lone surrogate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.guests.postgres.connections import from_stored, to_stored

ODD = st.text(st.sampled_from("a\x00\ud800\udfff\U0010fffdf0�é中"), max_size=12)


@given(ODD | st.text())
def test_any_text_comes_back(text):
    stored = to_stored(text)
    stored.encode()
    assert "\x00" not in stored
    assert from_stored(stored) == text


@given(ODD, ODD)
def test_different_texts_are_stored_differently(first, second):
    assert (to_stored(first) == to_stored(second)) == (first == second)


@pytest.mark.parametrize("text", ["", "plain", "Größe 日本 🦊"])
def test_nearly_every_text_is_stored_as_it_is(text):
    assert to_stored(text) is text
