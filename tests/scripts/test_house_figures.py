"""The figures of the house are counted, not guessed."""

from __future__ import annotations

import sys

import house_figures
import pytest


def test_kernel_and_guests_are_counted_apart(tmp_path):
    for path, lines in (("index/engine.py", 3), ("guests/qmd/program.py", 2), ("__init__.py", 1)):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n" * lines)

    assert dict(house_figures.sizes(tmp_path)) == {
        "kernel: files / lines": "2 / 4",
        "guests: files / lines": "1 / 2",
        "both: files / lines": "3 / 6",
    }


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_cold_search_and_a_sync_are_counted():
    figures = dict(house_figures.structure(sys.executable, "plainmind"))

    assert 20 < int(figures["our modules after a cold search"]) < 150
    assert int(figures["views of the store that a cold search opens"]) >= 1
    whole, alone = (int(figure.replace(",", "")) for name, figure in figures.items() if "calls" in name)
    assert whole > alone > 100


def test_the_invented_notes_are_the_same_each_time(monkeypatch):
    monkeypatch.setattr(house_figures, "NOTES", 20)
    first, again = (list(house_figures.invented_notes()) for _ in range(2))

    assert first == again
    assert len(first) == house_figures.NOTES
    assert all(text.count("\n## ") == house_figures.SECTIONS for _, text in first)
