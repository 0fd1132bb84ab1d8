"""Views of many ages at once: each sees its own state of the index, whatever moves, and whatever they share."""

from __future__ import annotations

import random
from contextlib import ExitStack

import numpy as np
import pytest
from tests.support.index_contents import EVERYWHERE, fingerprint, put, vector
from tests.support.plain_store import PlainStore

from plainmind.base.model import EVERY_SCOPE, SearchFilter
from plainmind.index.drivers.sqlite import SqliteStore, vector_copies, writer
from plainmind.index.drivers.sqlite import view as sqlite_view
from plainmind.index.protocol import keyword_candidates, vector_candidates

assert np  # rough copies of vectors are only made once a process has imported it

FILTERS = (
    EVERYWHERE,
    SearchFilter(sources=frozenset({"memory"}), scopes=EVERY_SCOPE),
    SearchFilter(sources=frozenset({"memory", "sessions"}), scopes=frozenset({"shared", "group:1"})),
    SearchFilter(sources=frozenset({"memory"}), scopes=frozenset({"private", "never seen"})),
)
SCOPES = ("private", "private", "private", "shared", "group:1")
WORDS = [*(f"w{number}" for number in range(9)), "absent", "lengths"]


def change(dice, turn, stores):
    """Replace or remove a file, the same in all stores."""
    path, source = f"{dice.randrange(6)}.md", dice.choice(("memory", "memory", "sessions"))
    if dice.random() < 0.15:
        for store in stores:
            store.remove_file(source, path)
        return
    texts = [" ".join(dice.choices(WORDS, k=4)) + f" {turn} {part}" for part in range(dice.randrange(1, 14))]
    options = {"source": source, "without_vector": dice.random() < 0.2, "scope": dice.choice(SCOPES)}
    for store in stores:
        put(store, path, *texts, **options)


def answers(view, terms, query):
    found = [view.counts(), dict(view.files()), view.term_statistics(WORDS, where=EVERYWHERE)]
    for where in FILTERS:
        by_words = keyword_candidates(view, terms, where=where, limit=1_000)
        found.append(sorted((each.score, each.chunk.text) for each in by_words))
        near = vector_candidates(view, query, where=where, limit=5)
        found.append([(each.score, each.chunk.text) for each in near])
    found.append([view.chunks_between("memory", f"{number}.md", 1, 999) for number in range(6)])
    return found


@pytest.mark.parametrize("seed", range(6))
def test_every_view_sees_what_it_began_with(tmp_path, monkeypatch, seed):
    # Small segments, which fill and move all the time, and vectors that are looked for in rough copies, or in a block.
    if seed % 2:
        monkeypatch.setattr(vector_copies, "MOST_BLOCK_BYTES", 0)
    monkeypatch.setattr(writer, "_MANY_HOLES", 8)
    monkeypatch.setattr(writer, "_LEAST_CAPACITY", 16)
    monkeypatch.setattr(writer, "_MOST_CAPACITY", 64)
    monkeypatch.setattr(sqlite_view, "EXACT_UP_TO", 10)
    dice = random.Random(seed)
    store, expected = SqliteStore(str(tmp_path / "index")), PlainStore(fingerprint())
    with store.rebuild(fingerprint(), reason="a test"):
        pass
    views = []
    with ExitStack() as open_views:
        for turn in range(80):
            change(dice, turn, (store, expected))
            if dice.random() < 0.3:
                view = open_views.enter_context(store.reading())
                view._cache.compared(10_000)
                views.append((view, open_views.enter_context(expected.reading())))
            for view, twin in dice.sample(views[-6:], min(2, len(views))):
                asked = dice.sample(WORDS, 3), vector(f"question {turn}")
                assert answers(view, *asked) == answers(twin, *asked), turn
    assert store.digest() == expected.digest()
    store.close()
