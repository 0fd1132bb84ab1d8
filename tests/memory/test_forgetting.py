import subprocess
import zlib
from contextlib import suppress

import pytest

from commonplace.errors import CommonplaceError, NotFound

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
    with pytest.raises(CommonplaceError, match="too short"):
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
