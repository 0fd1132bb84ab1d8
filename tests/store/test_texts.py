"""Texts come back as they were stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import IndexCorrupt
from commonplace.store.sqlite.texts import squeezed, unsqueezed


@given(st.text(st.characters(), max_size=200))
def test_any_text_comes_back(text):
    assert unsqueezed(squeezed(text)) == text


def test_a_long_text_takes_less_and_a_short_one_no_more():
    assert len(squeezed("the gateway runs on a Mac Studio, and the gateway is fine. " * 20)) < 200
    assert squeezed("ok") == "ok"


def test_a_lone_surrogate_is_kept_in_bytes():
    assert isinstance(squeezed("\ud800"), bytes)


@pytest.mark.parametrize("damaged", [b"", b"\xff\xff", b"\x01\x02"])
def test_a_damaged_text_is_told(damaged):
    with pytest.raises(IndexCorrupt, match="text"):
        unsqueezed(damaged)
