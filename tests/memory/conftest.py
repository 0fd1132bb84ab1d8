from collections.abc import Iterator
from pathlib import Path

import pytest

from plainmind import Memory


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Memory\n\n- The gateway runs on a Mac Studio in the hall.\n")
    (folder / "memory" / "2026-02-10.md").write_text(
        "# 2026-02-10\n\n- Decided to move the backups to Hetzner.\n- Error E4021 came from the tariff table.\n"
    )
    (folder / "memory" / "people.md").write_text("# People\n\n- Anna feeds the cat while we are away.\n")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def memory(workspace: Path, home: Path) -> Iterator[Memory]:
    with Memory(workspace, home=home) as opened:
        yield opened
