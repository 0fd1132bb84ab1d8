"""Session stores on real files, one of each format."""

from __future__ import annotations

from pathlib import Path

import pytest

from plainmind.sessions.store import SessionStore


@pytest.fixture(params=["jsonl", "json5"])
def written_as(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(tmp_path: Path, written_as: str) -> SessionStore:
    return SessionStore(tmp_path / "sessions", format=written_as)
