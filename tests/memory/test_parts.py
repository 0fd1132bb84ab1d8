"""The parts of a memory: made when they are used, and once."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from plainmind import Memory
from plainmind.base.errors import ConfigError
from plainmind.memory.index import Index


@pytest.fixture
def memory(workspace, home):
    with opened(workspace, home) as made:
        yield made


def opened(workspace, home):
    return Memory.from_environment({}, workspace=str(workspace), home=str(home), cwd=str(workspace))


def made_of(memory):
    """The parts that are there by now, and what they have made."""
    parts = {name: vars(memory)[name] for name in ("notes", "index", "conversations") if name in vars(memory)}
    inner = (
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
    return {name for part in parts.values() for name in inner if name in vars(part)}


def test_opening_makes_nothing_yet(memory):
    assert not {"notes", "index", "conversations", "policy"} & set(vars(memory))


def test_a_part_is_made_with_what_it_is_made_of_and_nothing_more(memory):
    assert memory.notes.notebook is memory.notes.notebook

    assert made_of(memory) == {"notebook", "workspace", "history", "erasures"}


def test_the_class_tells_what_its_parts_are_for():
    assert Index.engine.__doc__ == "What answers questions."


def test_closing_opens_nothing_and_may_be_done_twice(memory):
    memory.close()
    assert made_of(memory) == set()

    memory.index.indexer.sync()
    memory.close()
    memory.close()


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
        memory = opened(workspace, home)
        start = threading.Barrier(8)
        found = []

        def ask(name, memory=memory, start=start, found=found):
            start.wait(60)
            found.append((name, id(getattr(memory.index, name))))

        threads = [threading.Thread(target=ask, args=(name,)) for name in ("engine", "indexer") * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(found) == 8
        assert len(set(found)) == 2
        assert memory.index.indexer._store is memory.index.engine._store is memory.index.store
        memory.close()


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
        assert made_of(memory) == {"workspace"}
    assert not os.path.exists(memory.places.index)


@pytest.mark.parametrize(
    ("made", "first"),
    [
        ((), ""),
        ((".plainmind",), "rmdir {home}/.plainmind && "),
        ((".plainmind", ".plainmind/index"), "mv {home}/.plainmind {home}/.plainmind-new && "),
    ],
)
def test_doctor_names_the_home_of_the_former_name_and_how_to_move_it(workspace, tmp_path, made, first):
    for folder in (".commonplace", *made):
        (tmp_path / folder).mkdir()
    environ = {"HOME": str(tmp_path), "PLAINMIND_HOME": str(workspace / "elsewhere")}
    with Memory.from_environment(environ, workspace=str(workspace), cwd=str(workspace)) as memory:
        found = [check for check in memory.doctor() if check.name == "former home"]

    assert [check.verdict for check in found] == ["warning"]
    assert "Commonplace" in found[0].detail
    assert "nothing in it is used" in found[0].detail
    move = f"mv {tmp_path}/.commonplace {tmp_path}/.plainmind"
    assert found[0].hint == first.format(home=tmp_path) + move


def test_doctor_says_nothing_of_a_former_home_that_is_not_there(memory):
    assert [check for check in memory.doctor() if check.name == "former home"] == []
