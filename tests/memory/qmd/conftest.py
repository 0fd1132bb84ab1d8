"""A small workspace, and a program in the place of QMD that does what a test says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.qmd_program import QmdProgram


@pytest.fixture
def program(tmp_path: Path) -> QmdProgram:
    return QmdProgram(tmp_path / "program")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Ada\n\nAda likes strong coffee.\n")
    return folder
