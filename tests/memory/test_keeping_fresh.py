"""What lives long keeps its index up to date: at its beginning, after changes, and by the clock."""

from __future__ import annotations

import threading

import pytest
from tests.support.mcp_process import McpProcess
from tests.support.waiting import until

from plainmind import Memory
from plainmind.memory.background import BackgroundSync
from plainmind.memory.translation import upkeep_values

NOTHING = {"onSessionStart": False, "watch": False, "intervalMinutes": 0}


@pytest.fixture
def memory_with(tmp_path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/MEMORY.md").write_text("The gateway is called tern.\n")
    opened = []

    def make(**sync):
        memory = Memory(tmp_path / "ws", tmp_path / "home", {"provider": "none", "sync": NOTHING | sync})
        opened.append(memory)
        return memory

    yield make
    for memory in opened:
        memory.close()


def keeping(memory, told=None, **quick):
    tell = (lambda _: None) if told is None else told.append
    return BackgroundSync(
        upkeep_values(memory.settings), lambda: memory.index, tell, begins_after_s=0, **quick
    )


def indexed(memory):
    with memory.index.store.reading() as reader:
        return {path for _, path in reader.files()}


def test_it_begins_with_a_sync_and_is_done(memory_with):
    memory = memory_with(onSessionStart=True)

    with keeping(memory) as fresh:
        until(lambda: not fresh.is_running)

    assert indexed(memory) == {"MEMORY.md"}


def test_a_note_is_indexed_though_nobody_asks(memory_with, tmp_path):
    memory = memory_with(watch=True, watchDebounceMs=10)

    with keeping(memory):
        until(lambda: indexed(memory) == {"MEMORY.md"})
        (tmp_path / "ws/memory").mkdir()
        (tmp_path / "ws/memory/tern.md").write_text("It stands in the cellar.\n")
        until(lambda: indexed(memory) == {"MEMORY.md", "memory/tern.md"})


def test_what_is_not_watched_is_looked_at_by_the_clock(memory_with, tmp_path):
    memory = memory_with(intervalMinutes=1)

    with keeping(memory, minute_s=0.01):
        until(lambda: indexed(memory) == {"MEMORY.md"})
        (tmp_path / "ws/MEMORY.md").unlink()
        (tmp_path / "ws/memory").mkdir()
        (tmp_path / "ws/memory/tern.md").write_text("It stands in the cellar.\n")
        until(lambda: "memory/tern.md" in indexed(memory))


def test_who_wants_none_of_it_gets_no_thread(memory_with):
    before = threading.active_count()

    with keeping(memory_with()) as fresh:
        assert not fresh.is_running
        assert threading.active_count() == before


def test_it_ends_with_its_block_even_before_it_has_begun(memory_with):
    memory = memory_with(watch=True)

    with BackgroundSync(
        upkeep_values(memory.settings), lambda: memory.index, print, begins_after_s=600
    ) as fresh:
        assert fresh.is_running

    assert not fresh.is_running
    assert fresh.close()
    assert indexed(memory) == set()


def test_a_problem_is_told_once_and_ends_nothing(memory_with, tmp_path):
    memory = memory_with(intervalMinutes=1)
    (tmp_path / "ws").rename(tmp_path / "elsewhere")
    told = []

    with keeping(memory, told, minute_s=0.01) as fresh:
        until(lambda: told)
        (tmp_path / "elsewhere").rename(tmp_path / "ws")
        until(lambda: indexed(memory) == {"MEMORY.md"})
        assert fresh.is_running

    assert len(told) == 1
    assert str(tmp_path / "ws") in told[0]


def test_a_server_keeps_the_index_up_to_date_for_others(memory_with, tmp_path):
    others = memory_with(onSearch=False)
    env = {"PLAINMIND_HOME": str(tmp_path / "home"), "PLAINMIND_WORKSPACE": str(tmp_path / "ws")}

    with McpProcess("--config", "sync.watchDebounceMs=10", "--config", "provider=none", env=env):
        until(lambda: indexed(others) == {"MEMORY.md"})
        (tmp_path / "ws/MEMORY.md").write_text("The gateway is called skua.\n")
        until(lambda: any("skua" in hit.snippet for hit in others.search("gateway").hits))
