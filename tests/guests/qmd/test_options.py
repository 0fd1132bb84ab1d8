"""When the engine is due: what it never saw at once, changes when they have settled, the rest by the clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plainmind.guests.qmd.options import (
    Done,
    QmdOptions,
    Wanted,
    embedding_is_due,
    seconds_until_due,
    update_is_due,
)

NOW = 1_000_000.0
OPTIONS = QmdOptions()
WANTED = Wanted("c", "l")


def done(seconds_ago=1.0, *, config="c", listing="l", embedded_ago=1.0):
    return Done(NOW - seconds_ago, NOW - embedded_ago, config, listing)


def due(initiative, what, *, has_booted=True, options=OPTIONS):
    return update_is_due(initiative, what, WANTED, NOW, options, has_booted=has_booted)


@pytest.mark.parametrize("initiative", ["asked", "search", "background"])
def test_what_was_never_seen_or_is_told_anew_cannot_wait(initiative):
    assert due(initiative, Done(0.0, 0.0, "", ""))
    assert due(initiative, done(config="other"))


def test_whoever_asks_gets_an_update():
    assert due("asked", done())


def test_a_search_waits_for_changes_that_have_settled_and_for_nothing_else():
    assert not due("search", done(14.9, listing="other"))
    assert due("search", done(15.1, listing="other"))
    assert not due("search", done(100_000))


def test_in_the_background_the_start_and_the_interval_count_too():
    assert due("background", done(), has_booted=False)
    assert not due("background", done(), has_booted=False, options=QmdOptions(update_on_boot=False))
    assert not due("background", done(299))
    assert due("background", done(301))


def test_a_clock_that_was_set_back_keeps_nothing_waiting():
    assert due("search", done(-5_000, listing="other"))
    assert seconds_until_due(done(-5_000), WANTED, NOW, OPTIONS) == 0


def test_words_alone_need_no_vectors():
    assert not embedding_is_due("asked", Done(0, 0, "", ""), NOW, OPTIONS)


@pytest.mark.parametrize("mode", ["vsearch", "query"])
def test_embedding_is_for_those_who_do_not_wait_for_an_answer(mode):
    options = QmdOptions(search_mode=mode)

    assert embedding_is_due("asked", done(), NOW, options)
    assert not embedding_is_due("search", Done(0, 0, "", ""), NOW, options)
    assert embedding_is_due("background", Done(1, 0, "", ""), NOW, options)
    assert not embedding_is_due("background", done(embedded_ago=3599), NOW, options)
    assert embedding_is_due("background", done(embedded_ago=3601), NOW, options)


def test_embedding_is_waited_for_only_where_it_is_possible():
    options = QmdOptions(search_mode="query")
    never = Done(NOW - 1, 0.0, "c", "l")

    assert seconds_until_due(never, WANTED, NOW, options, can_embed=True) == 0
    assert seconds_until_due(never, WANTED, NOW, options, can_embed=False) == 299
    assert seconds_until_due(never, WANTED, NOW, OPTIONS, can_embed=True) == 299
    assert seconds_until_due(done(embedded_ago=3590), WANTED, NOW, options, can_embed=True) == 10


@given(st.floats(0, 1e4), st.sampled_from(["l", "other"]), st.sampled_from(["c", "other"]))
def test_it_is_due_when_the_time_until_then_is_over(ago, listing, config):
    state = done(ago, listing=listing, config=config)
    wait = seconds_until_due(state, WANTED, NOW, OPTIONS)

    assert wait >= 0
    assert update_is_due("background", state, WANTED, NOW + wait + 0.01, OPTIONS, has_booted=True)
    if wait > 0.01:
        assert not due("background", state)
