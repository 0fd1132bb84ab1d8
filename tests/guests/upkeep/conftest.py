"""A workspace with something to tidy, and the desk that finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.guests.upkeep.desk import Desk

NOTES = """\
# Memory

## Home

- The guest room key hangs behind the cellar door
- Backups run at 02:15 every night to the NAS

## Remembered

- The guest room key hangs behind the cellar door
- Every night at 02:15 the backups run to the NAS
- The parking permit is valid until 1 December 2030
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(NOTES)
    return folder


@pytest.fixture
def open_memory(tmp_path: Path, workspace: Path) -> Iterator[Callable[..., Memory]]:
    opened: list[Memory] = []

    def open_(**config: object) -> Memory:
        memory = Memory(workspace, home=tmp_path / "home", config=config)
        opened.append(memory)
        return memory

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory: Callable[..., Memory]) -> Memory:
    return open_memory()


@pytest.fixture
def desk(memory: Memory) -> Desk:
    return Desk(memory)
