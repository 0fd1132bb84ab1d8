"""What tests of entries share: LanceDB, which takes seconds to import on a busy machine, and a look at all bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from plainmind.guests.lancedb.library import load

load()  # before the clock of the first test starts

_FILES_WITH = Path(__file__).parents[2] / "support" / "files_with.py"


def files_with(folder: Path, word: str) -> list[str]:
    """The files that hold a word, seen by a process of its own: this one may have a database open."""
    found = subprocess.run(
        [sys.executable, str(_FILES_WITH), word, str(folder)], capture_output=True, text=True, check=True
    )
    return [Path(line).name for line in found.stdout.splitlines()]
