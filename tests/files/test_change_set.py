"""Several files changed as one: all or none, and one way back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plainmind.base.errors import ConflictError, StorageFailure
from plainmind.base.model import sha256_bytes
from plainmind.files.history import History
from plainmind.files.replace import ChangeSets, FileChange
from plainmind.files.system import System


class Desk:
    """Two files, their history and what changes them."""

    def __init__(self, folder: Path, system: System | None = None) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.history = History(str(self.state / "history"))
        given = {} if system is None else {"system": system}
        self.sets = ChangeSets(state_dir=str(self.state), history=self.history, **given)

    def change(self, name: str, new: str) -> FileChange:
        place = self.folder / name
        base = sha256_bytes(place.read_bytes()) if place.exists() else None
        return FileChange(name, str(place), base, new.encode())

    def text(self, name: str) -> str | None:
        place = self.folder / name
        return place.read_text() if place.exists() else None

    def undo(self) -> None:
        changes = self.history.latest_changes()
        self.sets.take_back(changes, [str(self.folder / change.path) for change in changes])


class Dying(System):
    """A system that stops, as `kill -9` does, at a certain rename."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def replace(self, source: str, target: str) -> None:
        if target.endswith(".md"):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        super().replace(source, target)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "a.md").write_text("a\n")
    (tmp_path / "b.md").write_text("b\n")
    return Desk(tmp_path)


def test_one_undo_takes_all_of_them_back(desk: Desk) -> None:
    desk.sets.apply([desk.change("a.md", "A\n")], reason="edit")
    desk.sets.apply([desk.change("a.md", "a2\n"), desk.change("new.md", "n\n")], reason="tidy")

    desk.undo()

    assert (desk.text("a.md"), desk.text("new.md")) == ("A\n", None)
    desk.undo()
    assert desk.text("a.md") == "a\n"
    assert desk.history.latest_changes() == []


def test_nothing_changes_when_one_of_them_has_changed(desk: Desk) -> None:
    changes = [desk.change("a.md", "A\n"), desk.change("b.md", "B\n")]
    (desk.folder / "b.md").write_text("by hand\n")

    with pytest.raises(ConflictError, match=r"b\.md"):
        desk.sets.apply(changes, reason="tidy")

    assert (desk.text("a.md"), desk.text("b.md")) == ("a\n", "by hand\n")


def test_an_undo_is_for_all_or_none(desk: Desk) -> None:
    desk.sets.apply([desk.change("a.md", "A\n"), desk.change("b.md", "B\n")], reason="tidy")
    (desk.folder / "a.md").write_text("by hand\n")

    with pytest.raises(ConflictError, match="was changed since"):
        desk.undo()

    assert (desk.text("a.md"), desk.text("b.md")) == ("by hand\n", "B\n")


@pytest.mark.parametrize("survived", [0, 1, 2])
def test_what_a_killed_process_had_changed_is_put_back(tmp_path: Path, survived: int) -> None:
    (tmp_path / "a.md").write_text("a\n")
    dying = Desk(tmp_path, Dying(survived))
    changes = [dying.change("new.md", "n\n"), dying.change("a.md", "A\n"), dying.change("b.md", "B\n")]
    with pytest.raises(KeyboardInterrupt):
        dying.sets.apply(changes, reason="tidy")

    desk = Desk(tmp_path)
    put_back = desk.sets.recover()

    assert len(put_back) == survived
    assert [desk.text(name) for name in ("a.md", "b.md", "new.md")] == ["a\n", None, None]
    assert desk.history.latest_changes() == []
    assert desk.sets.recover() == ()


def test_a_change_that_the_journal_never_heard_of_is_put_back_too(desk: Desk) -> None:
    """Killed between the rename and the line in the journal."""
    base, new = sha256_bytes(b"a\n"), sha256_bytes(b"A\n")
    desk.history.keep("a.md", b"a\n", "tidy")
    (desk.folder / "a.md").write_text("A\n")
    plan = {"operation": "tidy 01K", "files": [["a.md", str(desk.folder / "a.md"), base, new]]}
    (desk.state / "change-set.json").write_text(json.dumps(plan))

    assert desk.sets.recover() == ("a.md",)
    assert desk.text("a.md") == "a\n"
    assert desk.history.latest_changes() == []


def test_an_undo_that_was_killed_goes_on(desk: Desk) -> None:
    desk.sets.apply([desk.change("a.md", "A\n"), desk.change("b.md", "B\n")], reason="tidy")
    (desk.folder / "b.md").write_text("b\n")  # taken back, and killed before the journal was told

    desk.undo()

    assert (desk.text("a.md"), desk.text("b.md")) == ("a\n", "b\n")
    assert desk.history.latest_changes() == []


def test_what_a_person_changed_after_a_crash_stays(desk: Desk) -> None:
    changes = [desk.change("a.md", "A\n"), desk.change("b.md", "B\n")]
    dying = Desk(desk.folder, Dying(1))
    with pytest.raises(KeyboardInterrupt):
        dying.sets.apply(changes, reason="tidy")
    (desk.folder / "a.md").write_text("by hand\n")

    assert desk.sets.recover() == ()
    assert (desk.text("a.md"), desk.text("b.md")) == ("by hand\n", "b\n")


def test_a_failure_on_the_way_puts_all_back(desk: Desk) -> None:
    class Full(Dying):
        def replace(self, source: str, target: str) -> None:
            try:
                super().replace(source, target)
            except KeyboardInterrupt:
                self.left = 100  # there is room again
                raise OSError(28, "No space left on device") from None

    full = Desk(desk.folder, Full(1))
    with pytest.raises(StorageFailure):
        full.sets.apply([full.change("a.md", "A\n"), full.change("b.md", "B\n")], reason="tidy")

    assert (desk.text("a.md"), desk.text("b.md")) == ("a\n", "b\n")
