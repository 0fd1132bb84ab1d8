"""Two processes that meet a memory without an index: one makes it, and the other finds it made."""

from __future__ import annotations

import threading

import pytest

from plainmind import Memory


@pytest.fixture
def places(tmp_path):
    notes = tmp_path / "notes"
    (notes / "memory").mkdir(parents=True)
    for number in range(5):
        (notes / "memory" / f"note-{number}.md").write_text(f"# Note {number}\n\nBerth {number} is free.\n")
    return {"workspace": str(notes), "home": str(tmp_path / "home")}


def meet(first, second):
    """Let `second` begin while `first` is in the middle of an index; whether it was done before the first one was."""
    is_building, goes_on, is_over = threading.Event(), threading.Event(), threading.Event()

    def hold(_progress):
        is_building.set()
        assert goes_on.wait(60)

    builder = threading.Thread(target=lambda: first(hold))

    def follow():
        second()
        is_over.set()

    follower = threading.Thread(target=follow)
    builder.start()
    assert is_building.wait(60)
    follower.start()
    was_first = is_over.wait(1)
    goes_on.set()
    builder.join(60)
    follower.join(60)
    assert is_over.is_set()
    return was_first


def test_a_second_sync_does_not_make_the_index_that_another_is_making(places):
    reports, told = {}, []
    with Memory(**places) as one, Memory(**places) as other:
        meet(
            lambda hold: reports.update(one=one.sync(progress=hold)),
            lambda: reports.update(other=other.sync(progress=told.append)),
        )
        assert told[0].label == "another process is making the index"
        assert reports["one"].rebuilt == "there is no index yet"
        assert reports["other"].rebuilt is None
        assert reports["other"].indexed == ()
        assert other.search("which berth is free?").hits


def test_a_second_search_waits_for_the_index_that_another_is_making(places):
    found = {}
    with Memory(**places) as one, Memory(**places) as other:
        was_first = meet(
            lambda hold: one.sync(progress=hold),
            lambda: found.update(other=other.search("is berth 3 free?")),
        )
    assert not was_first
    assert found["other"].hits[0].path == "memory/note-3.md"


def test_what_was_asked_for_is_made_anew_though_another_has_just_made_it(places):
    reports = {}
    with Memory(**places) as one, Memory(**places) as other:
        meet(
            lambda hold: reports.update(one=one.sync(progress=hold)),
            lambda: reports.update(other=other.sync(force=True)),
        )
    assert reports["other"].rebuilt == "asked for"
    assert len(reports["other"].indexed) == 5


def test_a_builder_that_hangs_is_not_waited_for_without_end(places, monkeypatch):
    monkeypatch.setattr("plainmind.index.sync._LONGEST_BUILD_S", 0.01)
    reports = {}
    with Memory(**places) as one, Memory(**places) as other:
        meet(
            lambda hold: reports.update(one=one.sync(progress=hold)),
            lambda: reports.update(other=other.sync()),
        )
    assert reports["other"].rebuilt == "there is no index yet"
