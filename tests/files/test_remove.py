"""Removing a file: only what was read, never without a way back, and never half."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.descriptors import open_in
from tests.support.faulty_system import FAULTS, FaultySystem

from plainmind.base.errors import ConflictError, NotFound, PathNotAllowed, PlainmindError
from plainmind.base.model import sha256_bytes
from plainmind.files.history import History
from plainmind.files.replace import remove
from plainmind.files.system import SYSTEM, System

TEXT = b"# Pelican\n\n- lands on Tuesday\n"


def remove_file(folder: Path, base: bytes = TEXT, system: System = SYSTEM) -> None:
    remove(
        str(folder / "pelican.md"),
        base_hash=sha256_bytes(base),
        state_dir=str(folder / "state"),
        history=History(str(folder / "state" / "history"), system=system),
        reason="delete",
        name="memory/pelican.md",
        system=system,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pelican.md").write_bytes(TEXT)
    return tmp_path


def kept(folder: Path) -> list[bytes]:
    history = History(str(folder / "state" / "history"))
    return [
        history.read(version.id) for version in history.versions("memory/pelican.md") if version.available
    ]


def test_a_removed_file_is_in_the_history_and_the_journal_tells_of_it(folder: Path) -> None:
    remove_file(folder)

    assert not (folder / "pelican.md").exists()
    assert kept(folder) == [TEXT]
    history = History(str(folder / "state" / "history"))
    assert [version.operation for version in history.versions()] == ["delete", "before delete"]
    assert history.verify({}.get) == []


def test_a_file_that_changed_is_not_removed(folder: Path) -> None:
    with pytest.raises(ConflictError, match="was changed meanwhile; it was not removed"):
        remove_file(folder, base=b"something else\n")

    assert (folder / "pelican.md").read_bytes() == TEXT


def test_a_file_that_somebody_saves_at_the_last_moment_is_not_removed(folder: Path) -> None:
    def save(name: str, _number: int) -> None:
        if name == "stat" and (folder / "pelican.md").read_bytes() == TEXT and kept_something():
            (folder / "pelican.md").write_bytes(TEXT + b"- a line by hand\n")

    def kept_something() -> bool:
        return (folder / "state" / "history" / "blobs").exists()

    with pytest.raises(ConflictError):
        remove_file(folder, system=FaultySystem(before=save))

    assert (folder / "pelican.md").read_bytes().endswith(b"by hand\n")


def test_removing_what_is_gone_says_so(folder: Path) -> None:
    (folder / "pelican.md").unlink()

    with pytest.raises(NotFound, match="does not exist"):
        remove_file(folder)


def test_a_link_is_not_removed(folder: Path) -> None:
    os.link(folder / "pelican.md", folder / "twin.md")

    with pytest.raises(PathNotAllowed, match="not a plain file with one name"):
        remove_file(folder)

    assert (folder / "pelican.md").exists()


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_fails_the_text_is_in_the_file_or_in_the_history(tmp_path: Path, fault: str) -> None:
    for number in range(1, 200):
        folder, system = tmp_path / str(number), FAULTS[fault](number)
        folder.mkdir()
        file = folder / "pelican.md"
        file.write_bytes(TEXT)

        failure: PlainmindError | None = None
        try:
            remove_file(folder, system=system)
        except PlainmindError as error:
            failure = error
        assert failure.hint if failure else not file.exists(), system.failed

        assert open_in(folder) == [], system.failed
        assert file.exists() or kept(folder) == [TEXT], system.failed
        if file.exists():
            assert file.read_bytes() == TEXT
            remove_file(folder)
        assert kept(folder) == [TEXT], system.failed
        if system.failed is None:
            return
    pytest.fail("200 calls and still not one run without a fault")
