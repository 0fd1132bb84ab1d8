"""A process is killed at every single effect of a change: undo knows the change if it was made, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest
from tests.faults.test_upkeep_sequences import die_after

from plainmind import Memory
from plainmind.base.errors import NotFound
from plainmind.base.model import sha256_bytes
from plainmind.guests.upkeep.desk import Desk
from plainmind.guests.upkeep.model import Cite, Edit

# The full test kills at every effect, the small one at every third, beginning with each in turn.
EVERY = 1 if os.environ.get("PLAINMIND_FAULTS") == "full" else 3
MOST_EFFECTS = 200
FILE = "memory/house.md"
OLD = "- The boiler is serviced in May"
NEW = "- The boiler is serviced in June"
TEXT = f"# House\n\n{OLD}\n- The key hangs behind the door\n"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Where nothing waits for a disk: a kill does not need one."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    folder = Path(mkdtemp(dir="/dev/shm"))
    yield folder
    rmtree(folder)


def open_memory(folder: Path) -> Memory:
    return Memory(folder / "workspace", home=folder / "home")


def made(folder: Path) -> Memory:
    (folder / "workspace" / "memory").mkdir(parents=True)
    (folder / "workspace" / FILE).write_text(TEXT)
    return open_memory(folder)


def was_killed(act: Callable[[], object], after: int) -> bool:
    """Let a process of its own do something, killed at its effect number `after`; False when it had fewer."""
    child = os.fork()
    if not child:
        code = 1
        try:
            die_after(after)
            act()
            code = 0
        finally:
            os._exit(code)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended <= 0, "it failed instead of being killed"
    return ended < 0


CHANGES: dict[str, Callable[[Memory], object]] = {
    "edit": lambda memory: memory.edit(FILE, OLD, NEW),
    "write": lambda memory: memory.write(FILE, TEXT + NEW, base_hash=sha256_bytes(TEXT.encode())),
    "create": lambda memory: memory.write("memory/garden.md", "# Garden\n", base_hash=None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whenever_a_change_is_killed_undo_knows_it_exactly_if_it_was_made(place: Path, name: str) -> None:
    change, outcomes = CHANGES[name], set()
    for effect in range(0, MOST_EFFECTS, 1 if name == "edit" else EVERY):
        folder = place / f"{name}-{effect}"
        memory = made(folder)
        is_killed = was_killed(lambda memory=memory: change(memory), effect)  # type: ignore[misc]
        notes = {path: path.read_bytes() for path in (folder / "workspace").rglob("*.md")}
        is_changed = notes != {folder / "workspace" / FILE: TEXT.encode()}
        outcomes.add(is_changed)
        with open_memory(folder) as later:
            if is_changed:
                later.undo()
            else:
                with pytest.raises(NotFound):
                    later.undo()
        left = {path: path.read_bytes() for path in (folder / "workspace").rglob("*.md")}
        assert left == {folder / "workspace" / FILE: TEXT.encode()}, effect
        memory.close()
        if not is_killed:
            break
    assert outcomes == {False, True}
    assert effect > 10


def test_a_change_is_told_to_the_journal_once_however_often_it_is_recovered(place: Path) -> None:
    for effect in range(1 % EVERY, MOST_EFFECTS, EVERY):
        folder = place / f"once-{effect}"
        with made(folder) as memory:
            is_killed = was_killed(lambda memory=memory: memory.edit(FILE, OLD, NEW), effect)  # type: ignore[misc]
            for _ in range(3):
                memory.notes.notebook.recover()
            told = [version for version in memory.notes.history.versions() if version.operation == "edit"]
            is_changed = NEW in (folder / "workspace" / FILE).read_text()
            assert len(told) == is_changed, effect
        if not is_killed:
            return


def test_a_file_that_a_person_changed_after_the_kill_is_not_taken_for_ours(place: Path) -> None:
    for effect in range(2 % EVERY, MOST_EFFECTS, EVERY):
        folder = place / f"person-{effect}"
        with made(folder) as memory:
            is_killed = was_killed(lambda memory=memory: memory.edit(FILE, OLD, NEW), effect)  # type: ignore[misc]
            file = folder / "workspace" / FILE
            if not is_killed:
                return
            file.write_text(file.read_text() + "- mine\n")
            memory.notes.notebook.recover()
            assert [v for v in memory.notes.history.versions() if v.length == len(file.read_bytes())] == []
            assert file.read_text().endswith("- mine\n")


def test_an_undo_that_was_killed_is_finished_by_the_next_one_which_takes_back_nothing_else(
    place: Path,
) -> None:
    for effect in range(0, MOST_EFFECTS, EVERY):
        folder = place / f"undo-{effect}"
        with made(folder) as memory:
            memory.edit(FILE, "behind the door", "under the mat")
            memory.edit(FILE, OLD, NEW)
            is_killed = was_killed(memory.undo, effect)
        with open_memory(folder) as later:
            told = [version.operation.partition(" ")[0] for version in later.notes.history.versions()]
            if "undo" not in told:
                later.undo()
            assert (folder / "workspace" / FILE).read_text() == TEXT.replace(
                "behind the door", "under the mat"
            ), effect
        if not is_killed:
            return


@pytest.mark.parametrize("notes", [("one",), ("one", "two")])
def test_an_undo_of_a_note_that_was_killed_is_finished_by_the_next_one_which_takes_back_nothing_else(
    place: Path, notes: tuple[str, ...]
) -> None:
    for effect in range(0, MOST_EFFECTS, EVERY):
        folder = place / f"note-{'-'.join(notes)}-{effect}"
        (folder / "workspace" / "memory").mkdir(parents=True)
        with open_memory(folder) as memory:
            memory.remember("a fact", durable=True)
            (log,) = {memory.remember(text).path for text in notes}
            is_killed = was_killed(memory.undo, effect)
        with open_memory(folder) as later:
            told = [version.operation.partition(" ")[0] for version in later.notes.history.versions()]
            if "undo" not in told:
                assert later.undo().path == log
            file = folder / "workspace" / log
            assert file.exists() is (len(notes) > 1), effect
            assert not file.exists() or ("one" in file.read_text() and "two" not in file.read_text())
            assert "a fact" in (folder / "workspace" / "MEMORY.md").read_text(), effect
        if not is_killed:
            return


@pytest.mark.parametrize("at_once", [False, True])
def test_what_an_agent_proposed_is_done_or_waits_whenever_accepting_is_killed(
    place: Path, at_once: bool
) -> None:
    outcomes = set()
    for effect in range(0, MOST_EFFECTS, EVERY if at_once else 1):
        folder = place / f"accept-{at_once}-{effect}"
        with made(folder) as memory:
            desk = Desk(memory)
            edit = Edit(FILE, 3, (OLD,), (NEW,))
            proposal = desk.propose(
                "superseded", [Cite(FILE, 3, OLD)], [edit], "it is June now", agent="reader"
            )
            is_killed = was_killed(lambda desk=desk, one=proposal: desk.accept([one.id]), effect)  # type: ignore[misc]
            if at_once:
                memory.notes.notebook.recover()
            waiting = [one.id for one in Desk(memory).list().proposals]
            is_done = NEW in (folder / "workspace" / FILE).read_text()
            assert waiting == ([] if is_done else [proposal.id]), effect
            assert Desk(memory).ledger.is_begun() is False
            if is_done:
                memory.undo()
            else:
                assert Desk(memory).accept([proposal.id]).done == (proposal.id,)
                memory.undo()
            assert (folder / "workspace" / FILE).read_text() == TEXT
            outcomes.add(is_done)
        if not is_killed:
            break
    assert outcomes == {False, True}


def test_forgetting_reaches_a_proposal_that_was_being_accepted(place: Path) -> None:
    seen = 0
    for effect in range(2 % EVERY, MOST_EFFECTS, EVERY):
        folder = place / f"forget-{effect}"
        with made(folder) as memory:
            desk = Desk(memory)
            edit = Edit(FILE, 3, (OLD,), ("- The boiler is serviced by Quendolin",))
            proposal = desk.propose("superseded", [Cite(FILE, 3, OLD)], [edit], "so it is", agent="reader")
            is_killed = was_killed(lambda desk=desk, one=proposal: desk.accept([one.id]), effect)  # type: ignore[misc]
            seen += desk.ledger.is_begun()
            (folder / "workspace" / FILE).write_text(TEXT + "- Quendolin was here\n")
            memory.forget("Quendolin")
            for path in (folder / "home").rglob("*"):
                assert not path.is_file() or b"Quendolin" not in path.read_bytes(), (effect, path)
        if not is_killed:
            break
    assert seen
