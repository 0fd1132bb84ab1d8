"""When a context is full: the thresholds, to the token."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plainmind.guests.chat.context import RoomSettings, compaction_due, flush_due, is_flushed

ROOM = RoomSettings(context_window=200_000)


@pytest.mark.parametrize(
    ("tokens", "flush", "compaction"),
    [
        (0, False, False),
        (176_000, False, False),
        (176_001, True, False),
        (180_000, True, False),
        (180_001, True, True),
    ],
)
def test_a_flush_comes_before_a_compaction(tokens, flush, compaction):
    entry = {"totalTokens": tokens}

    assert flush_due(entry, ROOM, is_writable=True) is flush
    assert compaction_due(entry, ROOM) is compaction


@pytest.mark.parametrize(
    ("entry", "due"),
    [
        ({}, True),
        ({"compactionCount": 0}, True),
        ({"memoryFlushCompactionCount": 0}, False),
        ({"compactionCount": 3, "memoryFlushCompactionCount": 3}, False),
        ({"compactionCount": 4, "memoryFlushCompactionCount": 3}, True),
        ({"compactionCount": 3, "memoryFlushCompactionCount": None}, True),
        ({"compactionCount": 3, "memoryFlushFailure": {"compactionCount": 3}}, True),
    ],
)
def test_a_cycle_is_flushed_once(entry, due):
    assert flush_due({"totalTokens": 199_000, **entry}, ROOM, is_writable=True) is due


def test_a_flush_that_failed_is_tried_once_more_and_not_at_every_turn():
    failed = {"totalTokens": 176_001, "compactionCount": 3, "memoryFlushFailure": {"compactionCount": 3}}

    assert not flush_due(failed, ROOM, is_writable=True)
    assert flush_due(failed | {"totalTokens": 180_001}, ROOM, is_writable=True)
    assert flush_due(failed | {"compactionCount": 4}, ROOM, is_writable=True)


def test_nothing_is_flushed_where_nothing_can_be_written_or_nobody_wants_it():
    entry = {"totalTokens": 199_000}
    off = RoomSettings(context_window=200_000, flush_enabled=False)

    assert not flush_due(entry, ROOM, is_writable=False)
    assert not flush_due(entry, off, is_writable=True)
    assert compaction_due(entry, off)


def test_what_is_no_number_counts_nothing():
    for tokens in ("many", None, True, [], {}):
        assert not flush_due({"totalTokens": tokens}, ROOM, is_writable=True)
    assert not is_flushed({"memoryFlushCompactionCount": "0"})


@given(
    window=st.integers(1_000, 2_000_000),
    reserve=st.integers(0, 2_000_000),
    soft=st.integers(0, 2_000_000),
    tokens=st.integers(0, 3_000_000),
)
@example(window=1_000, reserve=999, soft=1, tokens=1)
def test_every_window_has_room_for_some_turns_and_no_compaction_comes_before_its_flush(
    window, reserve, soft, tokens
):
    room = RoomSettings(window, reserve, soft)

    assert 0 < room.flushes_above <= room.compacts_above <= window
    if compaction_due({"totalTokens": tokens}, room):
        assert flush_due({"totalTokens": tokens}, room, is_writable=True)


@given(st.integers(100_000, 1_000_000), st.integers(0, 2_000_000))
def test_a_usual_window_follows_the_formula(window, tokens):
    due = flush_due({"totalTokens": tokens}, RoomSettings(window), is_writable=True)

    assert due is (tokens > window - 20_000 - 4_000)
