"""Texts come back as they were stored."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import Chunk
from plainmind.base.value import replace
from plainmind.index.drivers.sqlite.view import StoredChunk, deflate_text, inflate_text


@given(st.text(st.characters(), max_size=200))
def test_any_text_comes_back(text):
    assert inflate_text(deflate_text(text)) == text


def test_a_long_text_takes_less_and_a_short_one_no_more():
    assert len(deflate_text("the gateway runs on a Mac Studio, and the gateway is fine. " * 20)) < 200
    assert deflate_text("ok") == "ok"


def test_a_lone_surrogate_is_kept_in_bytes():
    assert isinstance(deflate_text("\ud800"), bytes)


@pytest.mark.parametrize("damaged", [b"", b"\xff\xff", b"\x01\x02"])
def test_a_damaged_text_is_told(damaged):
    with pytest.raises(IndexCorrupt, match="text"):
        inflate_text(damaged)


def test_a_stored_chunk_is_the_chunk_that_was_stored_whoever_compares_copies_or_sends_it():
    plain = Chunk("memory/a.md", "memory", 0, 1, 3, "the gateway " * 40, "Network", "2026-11-15")
    stored = StoredChunk(
        plain.path, plain.source, plain.ordinal, 1, 3, deflate_text(plain.text), plain.context, plain.day
    )

    assert stored == plain
    assert plain == stored
    assert hash(stored) == hash(plain)
    assert stored != replace(plain, ordinal=1)
    assert stored != "memory/a.md"
    assert replace(stored, ordinal=1) == replace(plain, ordinal=1)
    assert pickle.loads(pickle.dumps(stored)) == plain
    assert copy.copy(stored) == plain
    assert repr(stored).endswith(repr(plain).removeprefix("Chunk"))


def test_nobody_can_change_a_stored_chunk():
    stored = StoredChunk("memory/a.md", "memory", 0, 1, 3, "a text")
    with pytest.raises(AttributeError):
        stored.text = "another"
    with pytest.raises(AttributeError):
        stored.path = "memory/b.md"
