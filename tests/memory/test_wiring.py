"""The parts of a memory: made when they are used, and once."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from plainmind import Memory
from plainmind.base.errors import ConfigError
from plainmind.memory.wiring import Parts, wire

PARTS = (
    "cache",
    "embedder",
    "engine",
    "erasures",
    "history",
    "indexer",
    "notebook",
    "store",
    "tombstones",
    "workspace",
)


@pytest.fixture
def parts(workspace, home):
    made = wire(workspace=str(workspace), home=str(home), flags={}, environ={}, cwd=str(workspace))
    yield made
    made.close()


def made_of(parts):
    return {name for name in PARTS if name in vars(parts)}


def test_wiring_makes_nothing_yet(parts):
    assert made_of(parts) == set()


def test_a_part_is_made_with_what_it_is_made_of_and_nothing_more(parts):
    assert parts.notebook is parts.notebook

    assert made_of(parts) == {"notebook", "workspace", "history", "erasures"}


def test_the_class_tells_what_its_parts_are_for():
    assert Parts.engine.__doc__ == "What answers questions."


def test_closing_opens_nothing_and_may_be_done_twice(parts):
    parts.close()
    assert made_of(parts) == set()

    parts.indexer.sync()
    parts.close()
    parts.close()


@pytest.fixture
def restless():
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_threads_that_ask_at_once_get_the_same_part(workspace, home):
    for _ in range(20):
        parts = wire(workspace=str(workspace), home=str(home), flags={}, environ={}, cwd=str(workspace))
        start = threading.Barrier(8)
        found = []

        def ask(name, parts=parts, start=start, found=found):
            start.wait(60)
            found.append((name, id(getattr(parts, name))))

        threads = [threading.Thread(target=ask, args=(name,)) for name in ("engine", "indexer") * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(found) == 8
        assert len(set(found)) == 2
        assert parts.indexer._store is parts.engine._store is parts.store
        parts.close()


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"provider": "builtin", "model": "large"}, "has no model `large`"),
        ({"store": {"driver": "postgres"}}, "dsn"),
    ],
)
def test_a_part_that_is_not_there_is_reported_when_a_memory_is_opened(workspace, home, config, complaint):
    with pytest.raises(ConfigError, match=complaint):
        Memory(workspace, home=home, config=config)


def test_reading_a_file_opens_no_index(workspace, home):
    with Memory(workspace, home=home) as memory:
        assert "Mac Studio" in memory.get("MEMORY.md").text
        assert made_of(memory.parts) == {"workspace"}
    assert not os.path.exists(memory.parts.places.index)
