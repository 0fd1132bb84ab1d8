"""An editor that saves while notes are added doubles none of them, and what it saves over is noticed and comes back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.editor import KINDS

from plainmind import Memory

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SAVES = 500 if FULL else 25
EDITOR = Path(__file__).with_name("editor.py")


@pytest.mark.parametrize("kind", KINDS)
def test_no_note_is_doubled_or_lost_without_a_word(tmp_path: Path, kind: str, seed: int, capsys) -> None:
    with Memory(str(tmp_path / "ws"), home=str(tmp_path / "home")) as memory:
        (tmp_path / "ws" / "memory").mkdir(parents=True)
        path = tmp_path / "ws" / memory.notes.notebook.remember("the first").path
        with path.open("ab") as file:
            file.write(b"edited 0 times\n" + b"a line of a person\n" * 200)
        arguments = [sys.executable, str(EDITOR), kind, str(path), str(SAVES), str(seed)]
        kept: dict[str, str] = {}
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as editor:
            assert editor.stdout is not None
            editor.stdout.readline()
            while editor.poll() is None:
                text = f"number {len(kept)} of what must not be lost"
                kept[memory.remember(text).id] = text

        def counted() -> tuple[int, set[str]]:
            data = path.read_bytes()
            times = {note: data.count(f"m:{note} ".encode()) for note in kept}
            return sum(count > 1 for count in times.values()), {n for n, count in times.items() if not count}

        doubled, gone = counted()
        noticed = {note.id for note in memory.missing_notes()}
        if FULL:
            with capsys.disabled():
                print(f"\n{kind}: {SAVES} saves, {len(kept)} notes, {doubled} doubled, {len(gone)} gone,"
                      f" {len(gone - noticed)} of them unnoticed")  # fmt: skip
        assert doubled == 0
        assert noticed == gone
        for note in sorted(gone):
            memory.restore(note)
        assert counted() == (0, set())
        data = path.read_text()
        assert [note for note, text in kept.items() if data.count(text) != 1] == []
        assert data.count("a line of a person\n") == 200
        assert not memory.missing_notes()
