import subprocess
import threading
import zlib
from contextlib import suppress

import pytest

from plainmind import Memory
from plainmind.base.errors import ConflictError, NotFound, PlainmindError

CANARY = "quokkaberry"


def traces(*folders):
    """Every file that still has the canary, compressed history included."""
    found = []
    for folder in folders:
        for path in folder.rglob("*"):
            if not path.is_file():
                continue
            data = path.read_bytes()
            with suppress(zlib.error):
                data += zlib.decompress(data)
            if CANARY.encode() in data:
                found.append(path)
    return found


def test_a_preview_changes_nothing(memory, workspace):
    memory.remember(f"the {CANARY} is ripe")
    before = {path: path.read_bytes() for path in workspace.rglob("*.md")}
    chosen = memory.forget(CANARY, dry_run=True)

    assert not chosen.applied
    assert [CANARY in lines.text for lines in chosen.lines] == [True]
    assert {path: path.read_bytes() for path in workspace.rglob("*.md")} == before


@pytest.mark.parametrize("selector", ["text", "id", "citation"])
def test_what_is_forgotten_is_in_no_file_of_ours(memory, workspace, home, selector):
    note = memory.remember(f"the {CANARY} is in room 12")
    memory.search(CANARY)
    memory.edit(note.path, "room 12", "room 14")
    memory.search(CANARY)
    what = {"text": CANARY, "id": note.id, "citation": f"{note.path}#L{note.start_line}"}[selector]
    forgotten = memory.forget(what)

    assert forgotten.applied
    assert traces(workspace, home) == []
    assert all(CANARY not in hit.snippet for hit in memory.search(CANARY, min_score=0).hits)


@pytest.mark.parametrize("at", [0, 0.3, 0.6, 1])
def test_a_damaged_index_keeps_nothing_back(memory, workspace, home, at):
    memory.remember(f"the {CANARY} is in room 12")
    for number in range(200):
        (workspace / "memory" / f"page{number}.md").write_text(
            f"# Page {number}\n\nA page about harbour {number}.\n"
        )
    memory.sync()
    memory.close()
    (index,) = home.rglob("*.sqlite")
    data = index.read_bytes()
    cut = int(at * (len(data) - 4096)) // 4096 * 4096
    index.write_bytes(data[:cut] + bytes(4096) + data[cut + 4096 :])

    with Memory(workspace, home=home) as again:
        assert again.forget(CANARY).applied
        assert traces(workspace, home) == []
        assert again.search("harbour 17").hits


def test_it_never_comes_back(memory, workspace, home):
    memory.remember(f"{CANARY} once")
    memory.sync()
    memory.forget(CANARY)
    for _ in range(3):
        memory.sync(force=True)

    assert traces(workspace, home) == []


def test_other_lines_keep_their_bytes(memory, workspace):
    target = workspace / "memory" / "mixed.md"
    target.write_bytes(b"\xef\xbb\xbffirst\r\n" + CANARY.encode() + b"\r\nlast \xff\r\n")
    memory.forget(CANARY)

    assert target.read_bytes() == b"\xef\xbb\xbffirst\r\nlast \xff\r\n"


def test_lines_are_chosen_by_citation(memory, workspace):
    memory.forget("memory/2026-02-10.md#L3-L4")

    assert (workspace / "memory" / "2026-02-10.md").read_text() == "# 2026-02-10\n\n"


def test_several_lines_are_forgotten_together(memory, workspace):
    (workspace / "memory" / "poem.md").write_text("keep\none\ntwo\nkeep\none\nthree\n")
    memory.forget("one\ntwo")

    assert (workspace / "memory" / "poem.md").read_text() == "keep\nkeep\none\nthree\n"


@pytest.mark.parametrize("what", ["nobody wrote this", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "MEMORY.md#L90-L99"])
def test_what_is_not_there_cannot_be_forgotten(memory, what):
    with pytest.raises(NotFound):
        memory.forget(what)


def test_a_text_that_would_match_everything_is_refused(memory):
    with pytest.raises(PlainmindError, match="too short"):
        memory.forget("a")


def test_other_notes_keep_their_history(memory, workspace):
    memory.remember(f"the {CANARY}")
    note = memory.remember("the gateway is blue")
    memory.edit(note.path, "blue", "green")
    memory.forget(CANARY)
    old = next(version for version in memory.history(note.path) if version.operation == "before edit")
    memory.restore(old.id)

    assert "the gateway is blue" in (workspace / note.path).read_text()
    assert CANARY not in subprocess.check_output(["cat", workspace / note.path], text=True)


def test_a_spelling_of_the_path_does_not_save_the_text(memory, workspace, home):
    (workspace / "memory" / "b.md").write_text(f"# B\n\n- the {CANARY}\n- another\n")
    memory.sync()
    memory.forget("./memory/b.md#L3")

    assert traces(workspace, home) == []


@pytest.mark.parametrize("line", [b"\xef\xbb\xbf" + CANARY.encode(), CANARY.encode() + b" \xff"])
def test_bytes_that_are_no_plain_text_go_from_the_history_too(memory, workspace, home, line):
    (workspace / "memory" / "b.md").write_bytes(line + b"\nanother\n")
    memory.sync()
    memory.forget("memory/b.md#L1")

    assert traces(workspace, home) == []


def test_every_wording_of_a_long_note_goes_with_its_id(memory, workspace, home):
    note = memory.remember(f"A list:\n\n- the {CANARY}\n- another")
    other = memory.remember("Another list:\n\n- stays\n- too")
    memory.edit(note.path, f"the {CANARY}", "nothing")
    memory.edit(other.path, "stays", "remains")
    memory.forget(note.id)

    assert traces(workspace, home) == []
    kept = [memory.read_version(version.id) for version in memory.history() if version.available]
    assert any(b"- stays\n- too" in data for data in kept)


@pytest.mark.parametrize("selector", ["text", "id", "several lines"])
def test_what_only_older_versions_have_can_still_be_forgotten(memory, workspace, home, selector):
    note = memory.remember(f"First.\n\nthe {CANARY}\nLast.")
    memory.sync()
    place = workspace / note.path
    memory.keep_version(note.path, reason="a test")
    place.write_text("# an editor saved it without the note\n")
    memory.sync()
    what = {"text": CANARY, "id": note.id, "several lines": f"the {CANARY}\nLast."}[selector]
    assert memory.forget(what, dry_run=True).lines == ()
    forgotten = memory.forget(what)

    assert forgotten.versions_cleaned == 1
    assert traces(workspace, home) == []


def test_what_was_kept_aside_in_a_conflict_can_still_be_forgotten(memory, workspace, home):
    with pytest.raises(ConflictError):
        memory.edit("MEMORY.md", "Mac Studio", CANARY, base_hash="0" * 64)
    assert traces(home)
    memory.forget(CANARY)

    assert traces(workspace, home) == []


def test_when_one_file_has_changed_since_nothing_is_removed_from_the_others(memory, workspace, home):
    first, second = workspace / "memory" / "b.md", workspace / "memory" / "c.md"
    first.write_text(f"{CANARY}\nkeep\n")
    second.write_text(f"{CANARY}\nkeep\n")
    chosen = memory.forget(CANARY, dry_run=True)
    second.write_text(f"new\n{CANARY}\nkeep\n")
    with pytest.raises(ConflictError):
        memory.forget(chosen)

    assert first.read_text() == f"{CANARY}\nkeep\n"
    assert traces(home / "state") == []


def test_an_old_version_that_is_brought_back_meanwhile_is_not_forgotten_by_half(memory, workspace, home):
    note = memory.remember(f"the {CANARY}")
    memory.edit(note.path, "the", "one")
    old = next(version for version in memory.history(note.path) if version.operation == "before edit")
    chosen = memory.forget(CANARY, dry_run=True)
    read, outcome = memory.notes.history.read, []

    def forget():
        try:
            outcome.append(memory.forget(chosen))
        except ConflictError as error:
            outcome.append(error)

    forgetting = threading.Thread(target=forget)

    class Slow:
        """The history, which takes so long to read that somebody forgets the text meanwhile."""

        def __getattr__(self, name):
            return getattr(memory.notes.history, name)

        def read(self, version_id):
            data = read(version_id)
            forgetting.start()
            forgetting.join(0.5)
            return data

    memory.notes.notebook._history = Slow()
    memory.restore(old.id)
    forgetting.join()

    assert isinstance(outcome[0], ConflictError) or traces(workspace, home) == []


def test_other_agents_forget_it_too(memory, workspace, home):
    memory.remember(f"the {CANARY} is ripe")
    memory.sync()
    with Memory(workspace, home=home, config={"agentId": "second"}) as second:
        assert second.search(CANARY).hits
    memory.forget(CANARY)

    assert traces(workspace, home) == []
    with Memory(workspace, home=home, config={"agentId": "second"}) as second:
        assert second.search("gateway").hits
        assert all(CANARY not in hit.snippet for hit in second.search(CANARY, min_score=0).hits)


PERSON = "# Anna Kovács\n\n- Lives in Offenburg.\n\n## Work\n\n- Designer.\n\n# Others\n\n- Tomás climbs.\n"


def test_who_forgets_a_person_is_told_what_has_to_do_with_them_and_stays(memory, workspace):
    (workspace / "memory" / "people").mkdir(parents=True)
    (workspace / "memory" / "people" / "anna.md").write_text(PERSON)
    (workspace / "memory" / "team.md").write_text("- ask ANNA KOVACS\n- Johanna sails\n- Anna Kovács draws\n")

    chosen = memory.forget("Anna Kovács", dry_run=True)
    assert [(lines.path, lines.start_line) for lines in chosen.lines] == [
        ("memory/people/anna.md", 1),
        ("memory/team.md", 3),
    ]
    assert chosen.remarks == (
        "1 line has this in other letters, and would stay: memory/team.md#L1",
        "what stands below a heading stays; to forget it too, cite all the lines: memory/people/anna.md#L1-L7",
    )
    by_name = memory.forget("Anna", dry_run=True)
    assert by_name.remarks[-1] == "the name of a file has this, and stays: memory/people/anna.md"
    assert all("Johanna" not in remark for remark in by_name.remarks)


def test_a_text_in_other_letters_is_named_when_no_line_has_it_as_it_was_given(memory, workspace):
    (workspace / "memory").mkdir(exist_ok=True)
    (workspace / "memory" / "team.md").write_text("- Anna Kovács draws\n")
    with pytest.raises(NotFound, match=r"in other letters, and would stay: memory/team\.md#L1"):
        memory.forget("anna kovacs", dry_run=True)


def test_who_names_a_file_is_told_how_to_forget_what_it_says(memory, workspace):
    (workspace / "memory" / "people").mkdir(parents=True)
    (workspace / "memory" / "people" / "anna.md").write_text(PERSON)
    memory.edit("memory/people/anna.md", "Offenburg", "Hamburg")
    memory.search("where does Anna live?")
    with pytest.raises(NotFound) as refused:
        memory.forget("memory/people/anna.md", dry_run=True)
    assert "memory/people/anna.md#L1-L11" in (refused.value.hint or "")


def test_a_file_of_which_everything_was_forgotten_is_gone(memory, workspace, home):
    (workspace / "memory" / "people").mkdir(parents=True)
    (workspace / "memory" / "people" / "anna.md").write_text(f"# {CANARY}\n\n- {CANARY} lives in Offenburg\n")
    (workspace / "MEMORY.md").write_text(f"- {CANARY}\n")
    memory.search(CANARY)

    memory.forget("memory/people/anna.md#L1-L3")
    memory.forget("MEMORY.md#L1")

    assert not (workspace / "memory" / "people" / "anna.md").exists()
    assert (workspace / "MEMORY.md").read_bytes() == b""
    assert traces(workspace, home) == []
    with pytest.raises(PlainmindError, match="for good"):
        memory.undo()


def test_the_name_of_a_file_that_was_forgotten_stands_in_the_journal_alone(memory, workspace, home):
    (workspace / "memory").mkdir(exist_ok=True)
    (workspace / "memory" / f"{CANARY}.md").write_text("# Somebody\n\n- lives in Offenburg\n")
    memory.edit(f"memory/{CANARY}.md", "Offenburg", "Hamburg")
    memory.search("who lives in Hamburg?")

    memory.forget(f"memory/{CANARY}.md#L1-L3")

    assert [path.name for path in traces(workspace, home)] == ["journal.jsonl"]
