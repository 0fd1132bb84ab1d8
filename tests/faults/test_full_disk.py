"""A disk that is really full: the old bytes stay, and writing goes on when there is room again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.small_disk import small_disk_at

from plainmind.base.errors import StorageFailure
from plainmind.base.model import sha256_bytes
from plainmind.files.append import Tail, append
from plainmind.files.history import History
from plainmind.files.replace import replace


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """256 KB of memory, mounted as a disk."""
    with small_disk_at(tmp_path / "disk", "256k") as disk:
        yield disk


def add(disk: Path, number: int, size: int) -> None:
    append(
        str(disk / "memory" / "2026-11-15.md"),
        b"- " + b"x" * size + f" m:{number}.\n".encode(),
        state_dir=str(disk / "state"),
        record_id=f"m:{number}.",
        tail=Tail.MARKDOWN,
    )


def test_a_full_disk_takes_nothing_half_and_everything_again_when_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(100_000))
    note = small_disk / "memory" / "2026-11-15.md"
    number = 0
    before = b""
    hint: str | None = None
    while hint is None:
        try:
            add(small_disk, number, 3_000)
        except StorageFailure as error:
            hint = error.hint
        else:
            before = note.read_bytes()
            number += 1

    assert hint == "free some space; nothing was written"
    assert note.read_bytes() == before
    assert len(before.splitlines()) == number > 20

    ballast.unlink()
    add(small_disk, number, 3_000)
    assert [line.split()[-1] for line in note.read_text().splitlines()] == [
        f"m:{n}." for n in range(number + 1)
    ]


def test_a_replace_on_a_full_disk_keeps_the_old_file(small_disk: Path) -> None:
    file = small_disk / "MEMORY.md"
    old, new = os.urandom(40_000), os.urandom(60_000)
    file.write_bytes(old)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(110_000))

    def try_it() -> None:
        replace(
            str(file),
            new,
            base_hash=sha256_bytes(old),
            state_dir=str(small_disk / "state"),
            history=History(str(small_disk / "state" / "history")),
            reason="edit",
        )

    with pytest.raises(StorageFailure, match="No space left"):
        try_it()
    assert file.read_bytes() == old
    assert sorted(os.listdir(small_disk)) == ["MEMORY.md", "ballast", "state"]

    ballast.unlink()
    try_it()
    assert file.read_bytes() == new


LIMITED = """
import resource, sys
from pathlib import Path
from plainmind.base.errors import StorageFailure
from plainmind.files.append import append
from plainmind.files.append import Tail

note, state = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))

def add(number):
    record = b"x" * 3_000 + f" m:{number}.\\n".encode()
    append(note, record, state_dir=state, record_id=f"m:{number}.", tail=Tail.MARKDOWN)

for number in range(3):
    add(number)
before = Path(note).read_bytes()
for _ in range(2):
    try:
        add(3)
    except StorageFailure as error:
        print(error.hint)
    assert Path(note).read_bytes() == before
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
add(3)
assert [line.split()[-1] for line in Path(note).read_text().splitlines()] == ["m:0.", "m:1.", "m:2.", "m:3."]
"""


def test_a_file_size_limit_in_the_middle_of_a_write_is_rolled_back(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "note.md"), str(tmp_path / "state")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["free some space; nothing was written"] * 2
