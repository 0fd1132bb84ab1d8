"""The transcripts of a folder: which there are, who may see them, and what is new in each."""

from __future__ import annotations

import os

import pytest
from tests.support.transcript_files import line, message

from plainmind.base.errors import NotFound, PathNotAllowed
from plainmind.base.model import FileState
from plainmind.base.value import replace
from plainmind.notes.source import START, extent_of
from plainmind.sessions.transcripts import Transcripts


def found_in(source, path="sessions/a.jsonl"):
    return next(file for file in source.discover().files if file.path == path)


def known_as(piece):
    """What an index would hold after a piece."""
    return replace(piece.state, hash="whatever")


def read_on(source, known=None, begin=START):
    (piece,) = source.read_on(found_in(source), known, begin)
    return piece


def test_the_files_of_a_folder_are_cited_as_sessions(tmp_path):
    (tmp_path / "b.jsonl").write_bytes(message("user", "two"))
    (tmp_path / "a.jsonl").write_bytes(b"{nonsense\n" + message("user", "one"))
    (tmp_path / "notes.md").write_text("not a transcript")
    (tmp_path / ".hidden.jsonl").write_bytes(message("user", "three"))
    source = Transcripts(str(tmp_path))

    found = source.discover()
    documents = [source.read(file)[0] for file in found.files]

    assert [document.path for document in documents] == ["sessions/a.jsonl", "sessions/b.jsonl"]
    assert [(document.text, document.line_map) for document in documents] == [
        ("User: one", (2,)),
        ("User: two", (1,)),
    ]
    assert {document.source for document in documents} == {"sessions"} == {source.source}


def test_archives_stay_searchable_and_packed_ones_say_what_to_do(tmp_path):
    for name in (
        "a.jsonl.reset.2026-02-10T09-31-00.000Z",
        "a.jsonl.deleted.1770000000",
        "a.jsonl.archived.x",
        "a.jsonl.deleted.1770000000.zst",
        "a.jsonl.bak",
        "a.jsonl.torn-1",
        "a.json5",
    ):
        (tmp_path / name).write_bytes(line("user", name))

    found = Transcripts(str(tmp_path)).discover()

    assert [file.path for file in found.files] == [
        "sessions/a.jsonl.archived.x",
        "sessions/a.jsonl.deleted.1770000000",
        "sessions/a.jsonl.reset.2026-02-10T09-31-00.000Z",
    ]
    assert [(one.path, one.reason) for one in found.skipped] == [
        ("sessions/a.jsonl.deleted.1770000000.zst", "packed; `plainmind import` reads it")
    ]


def test_links_and_folders_are_left_out_with_a_reason(tmp_path):
    (tmp_path / "elsewhere").write_bytes(line("user", "words"))
    (tmp_path / "link.jsonl").symlink_to("elsewhere")
    os.mkdir(tmp_path / "folder.jsonl")

    source = Transcripts(str(tmp_path))
    found = source.discover()

    assert found.files == ()
    assert {one.path: one.reason for one in found.skipped} == {
        "sessions/folder.jsonl": "a folder, not a file",
        "sessions/link.jsonl": "a symbolic link, not followed",
    }
    assert source.look_at("sessions/link.jsonl") is None


def test_a_folder_that_is_not_there_hides_what_was_known(tmp_path):
    missing = Transcripts(str(tmp_path / "none")).discover()
    (tmp_path / "file").write_text("")
    refused = Transcripts(str(tmp_path / "file")).discover()

    assert (missing.files, missing.skipped, missing.root_missing) == ((), (), True)
    assert (len(refused.skipped), refused.root_missing) == (1, True)


def test_a_file_deleted_since_it_was_listed_is_not_found(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(message("user", "one"))
    source = Transcripts(str(tmp_path))
    found = found_in(source)
    (tmp_path / "a.jsonl").unlink()

    with pytest.raises(NotFound):
        source.read(found)
    with pytest.raises(NotFound):
        next(source.read_on(found, None, START))
    assert source.look_at("sessions/a.jsonl") is None


@pytest.mark.parametrize(
    "path", ["sessions/../a.jsonl", "sessions/b/a.jsonl", "sessions/.a.jsonl", "sessions/a.md"]
)
def test_only_a_transcript_can_be_located(tmp_path, path):
    with pytest.raises(PathNotAllowed):
        Transcripts(str(tmp_path)).locate(path)


def test_a_transcript_is_located_by_what_it_is_cited_as(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(line("user", "one"))
    source = Transcripts(str(tmp_path))

    assert source.locate("sessions/a.jsonl") == found_in(source)
    with pytest.raises(NotFound):
        source.locate("sessions/b.jsonl")


# ── reading on ──


def test_only_what_is_new_is_read(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(line("user", "one"))
    source = Transcripts(str(tmp_path))
    first = read_on(source)
    with file.open("ab") as more:
        more.write(line("assistant", "two"))

    second = read_on(source, known_as(first), first.end)

    assert (second.document.text, second.document.line_map) == ("Assistant: two", (2,))
    assert second.begin == first.end
    assert (second.state.size, second.is_last) == (file.stat().st_size, True)


def test_what_was_replaced_or_cut_off_is_read_from_the_beginning(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(line("user", "one") + line("user", "two"))
    source = Transcripts(str(tmp_path))
    first = read_on(source)

    file.write_bytes(line("user", "one"))
    shrunk = read_on(source, known_as(first), first.end)
    file.write_bytes(line("user", "other") + line("user", "words") + line("user", "more of them"))
    replaced = read_on(source, known_as(first), first.end)

    assert (shrunk.begin, shrunk.document.text) == (START, "User: one")
    assert (replaced.begin, replaced.document.text.count("\n")) == (START, 2)


def test_a_copy_in_its_place_is_compared_byte_by_byte(tmp_path):
    file = tmp_path / "a.jsonl"
    long = b"".join(line("user", f"message {number}") for number in range(500))
    file.write_bytes(long)
    source = Transcripts(str(tmp_path))
    first = read_on(source)
    known = known_as(first)

    with file.open("rb"):  # else the third file could have the number of the first
        put(file, long + line("user", "new"))
        same = read_on(source, known, first.end)
        put(file, long.replace(b"message 3", b"massage 3", 1) + line("user", "new"))
        other = read_on(source, known, first.end)

    assert same.document.text == "User: new"
    assert (other.begin, other.document.text.startswith("User: message 0")) == (START, True)


def put(file, data):
    """Replace a file by another one, as a backup that is played back does."""
    beside = file.with_suffix(".new")
    beside.write_bytes(data)
    os.replace(beside, file)


def test_an_edit_that_leaves_the_length_alone_is_seen_by_its_time(tmp_path):
    file = tmp_path / "a.jsonl"
    long = b"".join(line("user", f"message {number}") for number in range(500))
    file.write_bytes(long)
    os.utime(file, (1_700_000_000, 1_700_000_000))
    source = Transcripts(str(tmp_path))
    first = read_on(source)
    with file.open("r+b") as edited:
        edited.write(long.replace(b"message 0", b"massage 0", 1))

    assert read_on(source, known_as(first), first.end).document.text.startswith("User: massage 0")


def test_a_long_file_comes_in_pieces_that_look_unfinished_until_the_last(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"".join(line("user", "x" * 90) for _ in range(7)))
    source = Transcripts(str(tmp_path), piece_characters=200)

    pieces = list(source.read_on(found_in(source), None, START))

    assert [piece.is_last for piece in pieces] == [False, False, True]
    assert [piece.state.size for piece in pieces] == [piece.end.offset for piece in pieces]
    assert [piece.state.mtime_ns for piece in pieces][:2] == [-1, -1]
    assert [piece.begin.lines for piece in pieces] == [0, 3, 6]


def test_messages_behind_a_mark_are_counted(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(line("user", "one"))
    source = Transcripts(str(tmp_path))
    mark = read_on(source).end
    with file.open("ab") as more:
        more.write(line("assistant", "two") + line("toolResult", "x") + line("user", "three"))

    assert source.messages_after(found_in(source), mark) == 2


def test_the_whole_of_a_file_is_known_by_how_far_it_goes(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(line("user", "one") + message("user", "two"))
    source = Transcripts(str(tmp_path))

    document, state = source.read(found_in(source))

    assert document.text == "User: one\nUser: two"
    extent = extent_of(state.hash)
    assert (extent.whole.lines, bool(extent.rest)) == (1, True)


# ── who may see it, and what has changed ──


def test_the_scope_comes_with_the_file_and_its_state(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(line("user", "one"))
    source = Transcripts(str(tmp_path), scopes=lambda: {"sessions/a.jsonl": "group:7"})

    assert found_in(source).scope == "group:7"
    assert source.look_at("sessions/a.jsonl").scope == "group:7"
    assert read_on(source).state.scope == "group:7"
    assert isinstance(read_on(source).state, FileState)


def watched(tmp_path, **how):
    source = Transcripts(str(tmp_path), **how)
    source.discover()
    moment = source.discover().moment
    if moment is None:
        pytest.skip("the system does not tell of changes here")
    return source, moment


def test_a_search_after_nothing_learns_that_nothing_changed(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(line("user", "one"))
    source, moment = watched(tmp_path)

    assert source.changed_since(moment).files == frozenset()
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(line("user", "two"))
    (tmp_path / "notes.txt").write_text("")
    assert source.changed_since(moment).files == {"sessions/a.jsonl"}
    source.close()


def test_a_registry_that_changes_no_scope_is_no_change(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(line("user", "one"))
    scopes = {"sessions/a.jsonl": "private"}
    source, moment = watched(tmp_path, scopes=lambda: scopes)

    (tmp_path / "sessions.json").write_text("{}")
    assert source.changed_since(moment).files == frozenset()
    scopes["sessions/a.jsonl"] = "group:7"
    (tmp_path / "sessions.json").write_text("{ }")
    assert source.changed_since(moment) is None
    source.close()
