"""Replacing a file: only what was read, never most of it by accident, never without a way back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.faulty_system import FaultySystem

from plainmind.base.errors import ConflictError, PathNotAllowed, StorageFailure, WouldShrink
from plainmind.files.atomic import write_atomically
from plainmind.files.history import History
from plainmind.files.replace import conflict_copies, erase_conflict_copies, replace, sha256_bytes
from plainmind.files.system import SYSTEM, System

OLD = b"# Memory\n" + b"- a fact that matters\n" * 20
NEW = OLD + b"- a new fact\n"


class Desk:
    """A workspace with one file, its state folder and its history."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "workspace" / "MEMORY.md"
        self.state = folder / "state"
        self.history = History(str(self.state / "history"))

    def replace(self, new: bytes, base: bytes | None, system: System = SYSTEM, **options: bool) -> str:
        return replace(
            str(self.file),
            new,
            base_hash=None if base is None else sha256_bytes(base),
            state_dir=str(self.state),
            history=self.history,
            reason="edit",
            name="MEMORY.md",
            system=system,
            **options,
        )

    def write(self, data: bytes) -> None:
        self.file.parent.mkdir(exist_ok=True, parents=True)
        self.file.write_bytes(data)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.write(OLD)
    return desk


def test_a_replaced_file_keeps_its_mode_and_its_old_text_is_in_the_history(desk: Desk) -> None:
    desk.file.chmod(0o664)

    assert desk.replace(NEW, OLD) == sha256_bytes(NEW)

    assert desk.file.read_bytes() == NEW
    assert desk.file.stat().st_mode & 0o777 == 0o664
    written, before = desk.history.versions("MEMORY.md")
    assert (written.operation, written.hash, written.previous) == (
        "edit",
        sha256_bytes(NEW),
        sha256_bytes(OLD),
    )
    assert (before.operation, before.available) == ("before edit", True)
    assert desk.history.read(before.id) == OLD
    assert os.listdir(desk.file.parent) == ["MEMORY.md"]


def test_a_new_file_is_private_and_so_is_its_folder(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    assert desk.replace(NEW, None) == sha256_bytes(NEW)

    assert desk.file.stat().st_mode & 0o777 == 0o600
    assert desk.file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("base", [None, b"what it was yesterday"])
def test_a_file_that_changed_meanwhile_is_not_touched_and_the_wanted_text_is_kept(
    desk: Desk, base: bytes | None
) -> None:
    with pytest.raises(ConflictError) as caught:
        desk.replace(NEW, base)

    assert desk.file.read_bytes() == OLD
    (copy,) = conflict_copies(str(desk.state))
    assert copy in str(caught.value.hint)
    assert Path(copy).read_bytes() == NEW
    assert os.stat(copy).st_mode & 0o777 == 0o600
    assert desk.history.versions() == []


def test_a_file_that_was_deleted_meanwhile_is_a_conflict(desk: Desk) -> None:
    desk.file.unlink()
    with pytest.raises(ConflictError):
        desk.replace(NEW, OLD)
    assert not desk.file.exists()


def test_a_conflict_is_reported_even_if_its_copy_cannot_be_kept(desk: Desk) -> None:
    desk.state.mkdir()
    (desk.state / "conflicts").write_bytes(b"a file in the way")

    with pytest.raises(ConflictError) as caught:
        desk.replace(NEW, b"stale")

    assert "could not be kept" in str(caught.value.hint)


def test_trying_again_after_the_change_was_made_is_no_conflict(desk: Desk) -> None:
    desk.replace(NEW, OLD)
    assert desk.replace(NEW, OLD) == sha256_bytes(NEW)
    assert desk.file.read_bytes() == NEW


@pytest.mark.parametrize("moment", ["write", "fsync"])
@pytest.mark.parametrize("saved", [b"a person's newer text\n", None], ids=["saved", "deleted"])
def test_a_save_while_we_write_is_not_overwritten(desk: Desk, moment: str, saved: bytes | None) -> None:
    def save(name: str, _: int) -> None:
        if name == moment:
            desk.file.unlink(missing_ok=True)
            if saved is not None:
                desk.file.write_bytes(saved)

    with pytest.raises(ConflictError):
        desk.replace(NEW, OLD, FaultySystem(before=save))

    assert (desk.file.read_bytes() if desk.file.exists() else None) == saved
    assert os.listdir(desk.file.parent) == (["MEMORY.md"] if saved is not None else [])
    assert len(conflict_copies(str(desk.state))) == 1


def test_a_file_that_appears_while_we_make_it_is_not_overwritten(tmp_path: Path) -> None:
    desk = Desk(tmp_path)

    def save(name: str, _: int) -> None:
        if name == "fsync":
            desk.write(b"theirs")

    with pytest.raises(ConflictError):
        desk.replace(NEW, None, FaultySystem(before=save))
    assert desk.file.read_bytes() == b"theirs"


@pytest.mark.parametrize("new", [b"", b" \n\n", OLD[: len(OLD) // 2 - 1]])
def test_losing_most_of_a_file_must_be_asked_for(desk: Desk, new: bytes) -> None:
    with pytest.raises(WouldShrink, match=r"^MEMORY\.md would shrink from"):
        desk.replace(new, OLD)
    assert desk.file.read_bytes() == OLD

    desk.replace(new, OLD, allow_shrink=True)
    assert desk.file.read_bytes() == new


def test_small_files_and_halves_may_shrink_but_not_to_nothing(desk: Desk) -> None:
    desk.replace(OLD[: len(OLD) // 2 + 1], OLD)
    desk.write(b"x" * 200)
    desk.replace(b"x", b"x" * 200)
    with pytest.raises(WouldShrink):
        desk.replace(b"", b"x")
    desk.write(b"")
    desk.replace(b"\n", b"")
    assert desk.file.read_bytes() == b"\n"


def test_links_and_folders_are_refused(desk: Desk) -> None:
    elsewhere = desk.file.with_name("elsewhere.md")
    desk.file.rename(elsewhere)
    desk.file.symlink_to(elsewhere)
    with pytest.raises(PathNotAllowed):
        desk.replace(NEW, OLD)
    desk.file.unlink()
    os.link(elsewhere, desk.file)
    with pytest.raises(PathNotAllowed, match="one name"):
        desk.replace(NEW, OLD)
    desk.file.unlink()
    desk.file.mkdir()
    with pytest.raises(PathNotAllowed):
        desk.replace(NEW, OLD)
    assert elsewhere.read_bytes() == OLD


def test_what_killed_processes_left_is_swept_up_and_nothing_else(desk: Desk) -> None:
    left = desk.file.with_name(".MEMORY.md.4711.0123456789abcdef.tmp")
    others = desk.file.with_name(".OTHER.md.4711.0123456789abcdef.tmp")
    mine = desk.file.with_name(".MEMORY.md.draft.tmp")
    for path in (left, others, mine):
        path.touch()

    desk.replace(NEW, OLD)

    assert not left.exists()
    assert others.exists()
    assert mine.exists()


def test_a_file_of_another_owner_stays_theirs_if_that_can_be_done(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[int, int]] = []

    class Owners(System):
        def fchown(self, fd: int, uid: int, gid: int) -> None:
            given.append((uid, gid))
            raise PermissionError

    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    desk.replace(NEW, OLD, Owners())

    status = desk.file.stat()
    assert given == [(status.st_uid, status.st_gid)]


def test_an_atomic_write_needs_no_folder_and_sets_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomically("CURRENT", b"gen-1", mode=0o644)
    write_atomically("deep/er/CURRENT", b"gen-2")
    assert (tmp_path / "CURRENT").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "deep" / "er" / "CURRENT").stat().st_mode & 0o777 == 0o600


def test_an_atomic_write_over_a_folder_leaves_no_temporary(tmp_path: Path) -> None:
    (tmp_path / "CURRENT" / "full").mkdir(parents=True)
    with pytest.raises((StorageFailure, PathNotAllowed)):
        write_atomically(str(tmp_path / "CURRENT"), b"gen-1")
    assert os.listdir(tmp_path) == ["CURRENT"]


def test_conflict_copies_with_forgotten_text_can_be_erased(desk: Desk) -> None:
    assert conflict_copies(str(desk.state)) == []
    for text in (b"a secret", b"harmless"):
        with pytest.raises(ConflictError):
            desk.replace(text, b"stale", allow_shrink=True)
    secret, harmless = conflict_copies(str(desk.state))

    assert erase_conflict_copies(str(desk.state), lambda data: b"secret" in data) == 1

    assert not os.path.exists(secret)
    assert os.path.exists(harmless)
