"""Eight processes edit one file: every edit is in it, or was refused with a copy of what was wanted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plainmind.files.history import History
from plainmind.files.replace import conflict_copies

EDITOR = """
import random, sys
from pathlib import Path
from plainmind.base.errors import ConflictError
from plainmind.files.history import History
from plainmind.base.model import sha256_bytes
from plainmind.files.replace import (replace)

folder, writer, edits = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
file, state = folder / "MEMORY.md", str(folder / "state")
history = History(state + "/history")
chance = random.Random(writer)
loaded = file.read_bytes()
for number in range(edits):
    if chance.random() < 0.5:
        loaded = file.read_bytes()
    line = f"- edit {writer}/{number}.\\n"
    try:
        wanted = loaded + line.encode()
        base = sha256_bytes(loaded)
        replace(str(file), wanted, base_hash=base, state_dir=state, history=history, reason="edit")
        print("applied", line, end="", flush=True)
    except ConflictError:
        print("refused", line, end="", flush=True)
        loaded = file.read_bytes()
"""


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_every_edit_is_applied_or_refused_with_a_copy(tmp_path: Path) -> None:
    file, state = tmp_path / "MEMORY.md", tmp_path / "state"
    file.write_bytes(b"# Memory\n")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", EDITOR, str(tmp_path), str(writer), "8"], stdout=subprocess.PIPE, text=True
        )
        for writer in range(8)
    ]
    outcomes = [line.split(maxsplit=1) for writer in writers for line in writer.communicate()[0].splitlines()]
    assert [writer.returncode for writer in writers] == [0] * 8

    applied = [line for outcome, line in outcomes if outcome == "applied"]
    refused = [line for outcome, line in outcomes if outcome == "refused"]
    assert len(applied) + len(refused) == 64
    assert len(applied) >= 8
    assert sorted(file.read_text().splitlines()[1:]) == sorted(applied)
    copies = [Path(copy).read_text().splitlines()[-1] for copy in conflict_copies(str(state))]
    assert sorted(copies) == sorted(refused)

    history = History(str(state / "history"))
    kept = {history.read(version.id) for version in history.versions() if version.available}
    assert len(kept) == len(applied), "every state before an edit can be read back"
    assert history.verify(lambda _: file.read_bytes()) == []
