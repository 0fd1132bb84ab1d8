"""Every store says which state of the index a view shows."""

import pytest
from tests.support.index_contents import file_state, fingerprint, put
from tests.support.stores import PARAMS, open_for_test


@pytest.fixture(params=PARAMS)
def store(request, tmp_path):
    store = open_for_test(request.param, tmp_path)
    with store.rebuild(fingerprint(), reason="a test") as fresh:
        put(fresh, "a.md", "one")
    yield store
    store.close()


def revision(store):
    with store.reading() as reader:
        return reader.revision()


def test_looking_changes_nothing(store):
    assert revision(store) == revision(store)


def test_every_change_adds_one(store):
    generation, before = revision(store)
    state = put(store, "b.md", "two")
    store.touch_file(state)
    put(store, "b.md", "three")
    store.remove_file("memory", "a.md")

    assert revision(store) == (generation, before + 4)


def test_what_was_refused_is_no_change(store):
    before = revision(store)

    assert not store.replace_file(file_state("a.md", "new"), [], replacing="another hash")
    assert revision(store) == before


def test_a_rebuild_is_another_index_altogether(store):
    seen = {revision(store)}
    for _ in range(3):
        with store.rebuild(fingerprint(), reason="a test") as fresh:
            put(fresh, "a.md", "one")
        seen.add(revision(store))

    assert len(seen) == 4


def test_a_view_keeps_its_revision(store):
    with store.reading() as reader:
        before = reader.revision()
        put(store, "c.md", "three")
        assert reader.revision() == before
    assert revision(store) > before
