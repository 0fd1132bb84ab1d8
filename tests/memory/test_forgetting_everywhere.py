"""What is forgotten is gone from the notes and from the entries, or it is said what is in the way."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.guests.entries.conftest import files_with

from plainmind import Memory
from plainmind.base.errors import ConflictError, NotFound, PlainmindError
from plainmind.base.model import EVERY_SCOPE, PRIVATE
from plainmind.guests.entries.access import entry_memory_of

CANARY = "quokkaberry"
DRIVERS = ["sqlite", "lancedb"]


def opened(workspace, home, driver="sqlite", **entries):
    return Memory(workspace, home=home, config={"entries": {"driver": driver, **entries}})


@pytest.fixture
def memory(workspace, home):
    with opened(workspace, home) as memory:
        yield memory


def stored(memory, *texts, scope=PRIVATE):
    with closing(entry_memory_of(memory)) as entries:
        ids = [entries.store(text, scope=scope, anyway=True).entry.id for text in texts]
        entries.recall(texts[0], scopes=EVERY_SCOPE)
    return ids


def left(memory):
    with closing(entry_memory_of(memory)) as entries:
        kept = entries.list(scopes=EVERY_SCOPE)
        return [entry.text for entry in (*kept, *entries.list(scopes=EVERY_SCOPE, waiting=True))]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_text_goes_from_notes_and_entries_at_once(workspace, home, driver, enabled):
    with opened(workspace, home, driver, enabled=enabled) as memory:
        note = memory.remember(f"the {CANARY} is ripe")
        mine, others = stored(memory, f"Anna likes {CANARY}"), stored(memory, f"a {CANARY}", scope="group:7")
        stored(memory, "Anna likes tea")
        memory.search(CANARY)
        chosen = memory.forget(CANARY, dry_run=True)

        assert [entry.id for entry in chosen.entries] == [*mine, *others]
        assert [lines.path for lines in chosen.lines] == [note.path]
        assert not chosen.applied
        assert not chosen.remarks
        assert len(left(memory)) == 3

        gone = memory.forget(chosen)

        assert gone.applied
        assert gone.entries == chosen.entries
        assert left(memory) == ["Anna likes tea"]
    assert files_with(workspace, CANARY) == files_with(home, CANARY) == []


def test_what_waits_to_be_accepted_goes_too(memory, home):
    with closing(entry_memory_of(memory)) as entries:
        assert entries.capture([f"I always prefer the {CANARY} to tea"], scope=PRIVATE)

    memory.forget(CANARY)

    assert left(memory) == []
    assert files_with(home, CANARY) == []


def test_a_text_that_only_entries_have_is_found_there(memory, home):
    stored(memory, f"Anna likes {CANARY}")
    gone = memory.forget(f"{CANARY} anna")

    assert gone.applied
    assert gone.lines == ()
    assert files_with(home, CANARY) == []


def test_the_id_of_an_entry_means_it_alone(memory):
    first, _ = stored(memory, "Anna likes tea", "Ben likes tea")
    note = memory.remember(f"about {first}")
    memory.forget(first)

    assert left(memory) == ["Ben likes tea"]
    assert first in memory.get(note.path).text


@pytest.mark.parametrize("by_id", [True, False])
def test_a_note_takes_the_entry_along_that_says_the_same(memory, workspace, home, by_id):
    note = memory.remember(f"the {CANARY} is ripe")
    stored(memory, f"The {CANARY} is ripe", "the apple is ripe")
    memory.forget(note.id if by_id else f"{note.path}#L{note.start_line}")

    assert left(memory) == ["the apple is ripe"]
    assert files_with(workspace, CANARY) == files_with(home, CANARY) == []


def test_without_entries_nothing_is_said_of_them_and_nothing_made(memory, home):
    memory.remember(f"the {CANARY} is ripe")
    gone = memory.forget(CANARY)

    assert (gone.entries, gone.remarks) == ((), ())
    assert not (home / "entries").exists()


def test_what_neither_has_is_not_found(memory):
    stored(memory, "Anna likes tea")
    with pytest.raises(NotFound):
        memory.forget("zebrafish")
    with pytest.raises(PlainmindError, match="too short"):
        memory.forget("te")
    assert left(memory) == ["Anna likes tea"]


def test_an_entry_that_changed_since_it_was_shown_stays_and_so_do_the_lines(memory, workspace, home):
    note = memory.remember(f"the {CANARY} is ripe")
    stored(memory, f"Anna likes {CANARY}")
    chosen = memory.forget(CANARY, dry_run=True)
    file = home / "entries" / "main" / "entries.jsonl"
    file.write_text(file.read_text().replace("Anna", "Maria"))

    with pytest.raises(ConflictError):
        memory.forget(chosen)

    assert left(memory) == [f"Maria likes {CANARY}"]
    assert CANARY in memory.get(note.path).text


def test_a_file_that_changed_since_it_was_shown_keeps_the_entries(memory, workspace):
    note = memory.remember(f"the {CANARY} is ripe")
    stored(memory, f"Anna likes {CANARY}")
    chosen = memory.forget(CANARY, dry_run=True)
    (workspace / note.path).write_text("# another text\n\n" + (workspace / note.path).read_text())

    with pytest.raises(ConflictError):
        memory.forget(chosen)

    assert left(memory) == [f"Anna likes {CANARY}"]
    assert CANARY in memory.get(note.path).text


def test_what_others_add_meanwhile_stays_and_the_lines_that_were_shown_go(memory, workspace):
    note = memory.remember(f"the {CANARY} is ripe")
    chosen = memory.forget(CANARY, dry_run=True)
    memory.remember("something else")
    memory.forget(chosen)

    assert CANARY not in memory.get(note.path).text
    assert "something else" in memory.get(note.path).text


def test_an_entry_that_somebody_removed_meanwhile_is_no_obstacle(memory, workspace, home):
    memory.remember(f"the {CANARY} is ripe")
    ids = stored(memory, f"Anna likes {CANARY}")
    chosen = memory.forget(CANARY, dry_run=True)
    with closing(entry_memory_of(memory)) as entries:
        entries.forget(ids, scopes=EVERY_SCOPE)

    assert memory.forget(chosen).applied
    assert files_with(workspace, CANARY) == files_with(home, CANARY) == []


@pytest.fixture
def without_lancedb(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "lancedb" else found(name))


def test_without_lancedb_the_preview_says_so_and_nothing_goes(workspace, home, without_lancedb):
    with opened(workspace, home) as memory:
        note = memory.remember(f"the {CANARY} is ripe")
        stored(memory, f"Anna likes {CANARY}")
    with opened(workspace, home, "lancedb") as memory:
        chosen = memory.forget(CANARY, dry_run=True)
        assert len(chosen.entries) == len(chosen.lines) == 1
        assert "LanceDB, which is not installed" in chosen.remarks[0]

        with pytest.raises(PlainmindError, match="nothing was removed from the notes") as refused:
            memory.forget(chosen)

        assert "entries.driver sqlite" in (refused.value.hint or "")
        assert CANARY in memory.get(note.path).text
    with opened(workspace, home) as memory:
        memory.forget(CANARY)
        assert left(memory) == []
    assert files_with(workspace, CANARY) == files_with(home, CANARY) == []


def test_without_lancedb_notes_that_no_entry_repeats_can_go_and_it_is_said(workspace, home, without_lancedb):
    with opened(workspace, home) as memory:
        stored(memory, "Anna likes tea")
    with opened(workspace, home, "lancedb") as memory:
        memory.remember(f"the {CANARY} is ripe")
        gone = memory.forget(CANARY)

    assert gone.applied
    assert "LanceDB, which is not installed" in gone.remarks[0]
    assert files_with(workspace, CANARY) == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_damaged_index_of_entries_keeps_nothing_back(workspace, home, driver):
    with opened(workspace, home, driver) as memory:
        memory.remember(f"the {CANARY} is ripe")
        stored(memory, f"Anna likes {CANARY}", "Anna likes tea")
    index = home / "entries" / "main" / "index"
    for path in (index / "CURRENT", index / "lancedb" / "CURRENT", *index.glob("gen-*.sqlite")):
        if path.exists():
            path.write_bytes(b"no index at all" * 100)

    with opened(workspace, home, driver) as memory:
        memory.forget(CANARY)
        assert left(memory) == ["Anna likes tea"]
    assert files_with(workspace, CANARY) == files_with(home, CANARY) == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize("driver", DRIVERS)
def test_an_entry_that_was_deleted_by_hand_leaves_the_index_with_the_notes(workspace, home, driver):
    with opened(workspace, home, driver) as memory:
        memory.remember(f"the {CANARY} is ripe")
        stored(memory, f"Anna likes {CANARY}", "Anna likes tea")
    file = home / "entries" / "main" / "entries.jsonl"
    file.write_text(
        "".join(line for line in file.read_text().splitlines(keepends=True) if CANARY not in line)
    )
    assert files_with(home / "entries", CANARY)

    with opened(workspace, home, driver) as memory:
        assert memory.forget(CANARY).entries == ()
    assert files_with(workspace, CANARY) == files_with(home, CANARY) == []


def test_lines_that_are_no_entries_are_mentioned(memory, home):
    memory.remember(f"the {CANARY} is ripe")
    stored(memory, "Anna likes tea")
    file = home / "entries" / "main" / "entries.jsonl"
    with file.open("a") as opened_file:
        opened_file.write(f"a line about {CANARY}\n")

    gone = memory.forget(CANARY)

    assert gone.applied
    assert str(file) in gone.remarks[0]
    with pytest.raises(NotFound, match=r"entries\.jsonl"):
        memory.forget("zebrafish")


def test_entries_that_cannot_be_read_are_told_of(memory, home):
    memory.remember(f"the {CANARY} is ripe")
    (home / "entries" / "main" / "entries.jsonl").mkdir(parents=True)

    assert "could not be looked into" in memory.forget(CANARY, dry_run=True).remarks[0]
    gone = memory.forget(CANARY)
    assert gone.applied
    assert len(gone.remarks) == 1


def test_what_fails_after_the_entries_are_gone_says_so(memory, workspace, home):
    memory.remember(f"the {CANARY} is ripe")
    (entry,) = stored(memory, f"Anna likes {CANARY}")
    lock = Path(memory.places.state, "erasing.lock")
    lock.mkdir()

    with pytest.raises(PlainmindError, match=f"removed from the entries: {entry}; but then: "):
        memory.forget(CANARY)

    lock.rmdir()
    memory.forget(CANARY)
    assert files_with(workspace, CANARY) == files_with(home, CANARY) == []


KILLED_AT_A_STEP = """
import os, signal, sys
from importlib import import_module
from plainmind import Memory

workspace, home, driver, what, module, at = sys.argv[1:]
place, step = import_module(module), at
while "." in step:
    owner, _, step = step.partition(".")
    place = getattr(place, owner)
setattr(place, step, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
with Memory(workspace, home=home, config={"entries": {"driver": driver}}) as memory:
    memory.forget(what)
"""


def die_at(workspace, home, driver, what, module, step):
    """Forget in a process that kills itself when it comes to a step."""
    program = [sys.executable, "-c", KILLED_AT_A_STEP, workspace, home, driver, what, module, step]
    assert subprocess.run(program, cwd=Path(__file__).parents[2], check=False).returncode == -9


@pytest.mark.slow
@pytest.mark.timeout(120)
# How the text is named and where the entries are kept have nothing to do with each other.
@pytest.mark.parametrize(
    ("by", "driver"), [("id", "sqlite"), ("citation", "sqlite"), *(("text", driver) for driver in DRIVERS)]
)
def test_killed_between_the_halves_the_same_again_does_the_rest(workspace, home, driver, by):
    with opened(workspace, home, driver) as memory:
        note = memory.remember(f"the {CANARY} is ripe")
        stored(memory, f"the {CANARY} is ripe", "Anna likes tea")
    what = {"text": CANARY, "id": note.id, "citation": f"{note.path}#L{note.start_line}"}[by]
    die_at(workspace, home, driver, what, "plainmind.memory.forget", "Forgetting.apply")
    assert files_with(home / "entries", CANARY) == []
    assert files_with(workspace, CANARY) != []

    with opened(workspace, home, driver) as memory:
        assert memory.forget(what).entries == ()
        assert left(memory) == ["Anna likes tea"]
    assert files_with(workspace, CANARY) == files_with(home, CANARY) == []


STEPS = (
    ("plainmind.guests.entries.entry_file", "EntryFile.remove"),
    ("plainmind.files.history", "Tombstones.bury"),
    ("plainmind.memory.forget", "erase_conflict_copies"),
    ("plainmind.memory.index", "Index.forget_vectors"),
    ("plainmind.memory.forget", "Forgetting._erase_for_other_agents"),
    ("plainmind.memory.forget", "erase_in_engines"),
    ("plainmind.files.history", "History.erase"),
)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("module", "step"), STEPS, ids=[step for _, step in STEPS])
def test_killed_at_any_step_the_text_can_be_forgotten_again_and_leaves_no_byte(workspace, home, module, step):
    with opened(workspace, home) as memory:
        memory.remember(f"the {CANARY} is ripe")
        memory.search(CANARY)
        stored(memory, f"Anna likes {CANARY}", "Anna likes tea")
    die_at(workspace, home, "sqlite", CANARY, module, step)

    with opened(workspace, home) as memory:
        assert memory.forget(CANARY).applied
        assert left(memory) == ["Anna likes tea"]
        assert all(CANARY not in hit.snippet for hit in memory.search(CANARY, min_score=0).hits)
        kept = [version.id for version in memory.history() if version.available]
        assert all(CANARY.encode() not in memory.read_version(version) for version in kept)
    assert files_with(workspace, CANARY) == files_with(home, CANARY) == []
