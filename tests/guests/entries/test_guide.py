"""The guide to entries: its program runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "entries.md").read_text()


@pytest.mark.timeout(60)
def test_the_program_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PLAINMIND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(program, "entries.md", "exec"), names)

    assert names["answer"].content["status"] == "ok"  # type: ignore[attr-defined]
    assert {tool["name"] for tool in names["tools"]} >= {"memory_store", "memory_search"}  # type: ignore[attr-defined]
