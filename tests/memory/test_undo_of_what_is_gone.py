"""A note that somebody else removed does not keep the one before it from being taken back."""

from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.base.errors import NotFound, PlainmindError


def without(file: Path, text: str) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if text not in line))


def test_a_note_removed_by_hand_counts_as_undone_and_the_one_before_is_taken_back(memory, workspace):
    note = memory.remember("log one")
    memory.remember("log two")
    memory.remember("log three")
    file = workspace / note.path
    without(file, "log two")
    without(file, "log three")

    undone = memory.undo()

    assert ("log one" in undone.text, file.exists()) == (True, False)
    assert [note.path in remark for remark in undone.remarks] == [True, True]
    with pytest.raises(NotFound, match="nothing to undo"):
        memory.undo()


@pytest.mark.parametrize("is_forgotten", [False, True], ids=["by hand", "then forgotten"])
def test_a_note_that_is_gone_with_nothing_before_it_is_said_and_counted_once(memory, workspace, is_forgotten):
    note = memory.remember("log one")
    without(workspace / note.path, "log one")
    if is_forgotten:
        memory.forget(note.id)

    with pytest.raises(NotFound, match=r"nothing to undo; .* gone from `memory/.*` already"):
        memory.undo()
    with pytest.raises(NotFound, match=r"nothing to undo(?!;)"):
        memory.undo()
    memory.remember("log two")
    assert "log two" in memory.undo().text


def test_a_log_that_was_deleted_keeps_no_earlier_note_from_being_taken_back(memory, workspace):
    memory.remember("a fact", durable=True)
    note = memory.remember("log one")
    (workspace / note.path).unlink()

    undone = memory.undo()

    assert (undone.path, len(undone.remarks)) == ("MEMORY.md", 1)
    assert "a fact" not in (workspace / "MEMORY.md").read_text()
    assert not (workspace / note.path).exists()


def test_an_older_copy_that_was_saved_over_the_log_is_no_end_of_undoing(memory, workspace):
    note = memory.remember("log one")
    file = workspace / note.path
    older = file.read_text()
    lost = memory.remember("log two")
    file.write_text(older)

    assert "log one" in memory.undo().text
    memory.restore(lost.id)
    assert "log two" in file.read_text()


def test_who_takes_back_a_note_that_is_gone_still_hears_of_the_others_that_went_with_it(memory, workspace):
    lost = memory.remember("log one")
    memory.edit("MEMORY.md", "hall", "cellar")
    memory.remember("log two")
    (workspace / lost.path).write_text("saved over\n")

    assert memory.undo().path == "MEMORY.md"

    assert [version.id for version in memory.missing_notes()] == [lost.id]


def test_on_the_empty_place_of_a_disk_that_is_not_mounted_no_note_counts_as_undone(memory, workspace, home):
    note = memory.remember("log one")
    away = workspace.with_name("away")
    workspace.rename(away)
    workspace.mkdir()

    with Memory(workspace, home=home) as bare, pytest.raises(PlainmindError):
        bare.undo()

    workspace.rmdir()
    away.rename(workspace)
    with Memory(workspace, home=home) as again:
        undone = again.undo()
        assert (undone.path, undone.remarks) == (note.path, ())


def test_what_was_forgotten_for_good_still_ends_the_undoing(memory, workspace):
    memory.remember("log one")
    memory.remember("the code is 1234")
    memory.forget("the code is 1234")
    note = memory.remember("log two")
    without(workspace / note.path, "log two")

    with pytest.raises(PlainmindError, match=r"for good; .* already") as refused:
        memory.undo()
    assert "nothing can bring them back" in refused.value.hint


def test_a_note_that_is_gone_keeps_the_words_of_a_conflict(memory, workspace):
    memory.edit("MEMORY.md", "hall", "cellar")
    (workspace / "MEMORY.md").write_text("another text\n")
    note = memory.remember("log one")
    without(workspace / note.path, "log one")

    with pytest.raises(PlainmindError, match=r"`MEMORY.md` was changed since; .* already"):
        memory.undo()


def test_undo_of_the_first_note_of_a_day_leaves_no_file_behind(memory, workspace):
    note = memory.remember("log one")

    memory.undo()

    assert not (workspace / note.path).exists()
    assert note.path not in [hit.path for hit in memory.search("what happened today?").hits]
    memory.restore(note.id)
    assert "log one" in (workspace / note.path).read_text()


def test_undo_of_all_notes_of_a_day_leaves_no_file_behind_and_undo_of_one_the_others(memory, workspace):
    note = memory.remember("log one")
    memory.remember("log two")
    file = workspace / note.path

    memory.undo()
    assert "log one" in file.read_text()
    memory.undo()
    assert not file.exists()


def test_undo_of_the_first_lasting_note_leaves_no_file_behind(memory, workspace):
    (workspace / "MEMORY.md").unlink()
    memory.remember("a fact", durable=True)

    memory.undo()

    assert not (workspace / "MEMORY.md").exists()


@pytest.mark.parametrize("before", ["# {day}\n\n", ""], ids=["with the same heading", "empty"])
def test_undo_keeps_a_file_that_somebody_else_has_made(memory, workspace, before):
    path = memory.remember("log one").path
    memory.undo()
    file = workspace / path
    text = before.format(day=file.stem)
    file.write_text(text)
    note = memory.remember("log two")

    memory.undo()

    assert note.path == path
    assert file.read_text().startswith(text)


def test_undo_keeps_a_file_that_somebody_has_written_anew_below_the_same_heading(memory, workspace):
    file = workspace / memory.remember("log one").path
    file.unlink()
    file.write_text(f"# {file.stem}\n\n")
    memory.remember("log two")

    memory.undo()

    assert file.read_text() == f"# {file.stem}\n\n"


def test_undo_of_the_only_note_of_a_memory_is_seen_by_the_next_search(home, tmp_path):
    (tmp_path / "empty").mkdir()
    with Memory(tmp_path / "empty", home=home) as memory:
        note = memory.remember("the parrot is green")
        assert memory.search("parrot").hits

        memory.undo()

        assert memory.search("parrot").hits == ()
        assert (tmp_path / "empty" / note.path).read_text().startswith("# ")


def test_an_undo_that_was_killed_is_not_finished_where_the_disk_is_not_mounted(home, tmp_path):
    workspace = tmp_path / "mounted"
    workspace.mkdir()
    with Memory(workspace, home=home) as memory:
        note = memory.remember("the parrot is green")
        memory.notes.history.keep(note.path, (workspace / note.path).read_bytes(), f"undo {note.id}")
        (workspace / "memory").rename(tmp_path / "memory")
        with pytest.raises(NotFound):
            memory.undo()
        (tmp_path / "memory").rename(workspace / "memory")

        assert note.id in memory.undo().text


@pytest.mark.parametrize("change", ["- mine\n", "\n", "<!-- mine -->\n"])
def test_undo_keeps_a_file_to_which_somebody_else_has_added(memory, workspace, change):
    file = workspace / memory.remember("log one").path
    file.write_text(file.read_text() + change)

    memory.undo()

    assert file.read_text() == f"# {file.stem}\n\n{change}"


def test_forgetting_the_only_note_of_a_day_leaves_no_heading_behind(memory, workspace):
    note = memory.remember("the code is 1234")

    memory.forget("the code is 1234")

    assert not (workspace / note.path).exists()
