"""Collections, which decide who may see what; and copies of conversations, made once, a piece at a time."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.transcript_files import line

from plainmind.base.model import EVERY_SCOPE, SHARED, SOURCES
from plainmind.files.safe_open import Root
from plainmind.files.system import Erasures
from plainmind.guests.qmd.territory import (
    Exports,
    askable,
    collections_of,
    config_text,
    conversation_of,
    erase_copies,
    export_name,
    folded,
    key_of_scope,
    part_path,
)
from plainmind.memory.backend import BackendBusy, Place
from plainmind.notes.discovery import ExtraPath, mounts_of
from plainmind.sessions.transcripts import Transcripts


def collections(workspace, *extra, include_default=True):
    root = Root(str(workspace))
    places = [Place(mount, path.pattern) for mount, path in zip(mounts_of(root, extra), extra, strict=True)]
    return collections_of(root, places, agent_id="main", include_default=include_default)


def names(found):
    return [collection.name for collection in found]


def test_the_memory_is_two_collections(tmp_path):
    root, folder = collections(tmp_path)

    assert (root.name, root.folder, root.cited) == ("memory-root-main", str(tmp_path), "")
    assert (folder.name, folder.folder, folder.pattern) == (
        "memory-dir-main",
        f"{tmp_path}/memory",
        "**/*.md",
    )


def test_the_memory_can_be_left_out(tmp_path):
    assert collections(tmp_path, include_default=False) == ()


def test_a_group_is_a_collection_of_its_own_that_the_owner_need_not_ask(tmp_path):
    for name in (
        "everyone",
        "group--100",
        "person-bob",
        "nobody",
        "group-",
        "stray.md",
        "irc/group--100",
        "irc/x/group-7",
    ):
        (tmp_path / "memory/shared-with" / name).mkdir(parents=True)

    found = collections(tmp_path)

    assert {collection.scope for collection in found} == {
        "private",
        SHARED,
        "group:-100",
        "irc/group:-100",
        "person:bob",
    }
    assert names(askable(found, EVERY_SCOPE, SOURCES)) == ["memory-root-main", "memory-dir-main"]
    for_group = askable(found, frozenset({SHARED, "group:-100", "irc/group:-100"}), SOURCES)
    assert {collection.cited for collection in for_group} == {
        "memory/shared-with/everyone/",
        "memory/shared-with/group--100/",
        "memory/shared-with/irc/group--100/",
    }
    assert not any("100" in name or "bob" in name for name in names(found))


def test_a_shared_folder_that_is_a_link_is_nobodys(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "memory/shared-with").mkdir(parents=True)
    (tmp_path / "memory/shared-with/everyone").symlink_to(tmp_path / "elsewhere")

    assert {collection.scope for collection in collections(tmp_path)} == {"private"}


def test_other_paths_keep_their_names_patterns_and_scopes(tmp_path):
    workspace, outside = tmp_path / "ws", tmp_path / "My Docs (new)"
    (workspace / "docs").mkdir(parents=True)
    outside.mkdir()

    found = collections(
        workspace,
        ExtraPath("docs", "**/*.md"),
        ExtraPath(str(outside), "plans/*.md", scope=SHARED, under="qmd"),
        ExtraPath(str(outside), under="qmd"),
        include_default=False,
    )

    assert [(each.name, each.cited, each.pattern, each.scope) for each in found] == [
        ("docs", "docs/", "**/*.md", "private"),
        ("My-Docs-new", "qmd/My Docs (new)/", "plans/*.md", SHARED),
        ("My-Docs-new-2", "qmd/My Docs (new)-2/", found[2].pattern, "private"),
    ]


def test_a_single_file_is_a_folder_with_one_file(tmp_path):
    (tmp_path / "notes [old].md").write_text("x")

    (found,) = collections(tmp_path, ExtraPath("notes [old].md"), include_default=False)

    assert (found.folder, found.pattern, found.cited) == (str(tmp_path), r"notes \[old\].md", "")


def test_the_configuration_is_json_with_the_models_in_it(tmp_path):
    text = config_text(collections(tmp_path), {"embed": "/m.gguf"})

    assert json.loads(text) == {
        "collections": {
            "memory-root-main": {
                "path": str(tmp_path),
                "pattern": "{MEMORY,memory,USER,TOOLS,IDENTITY,SOUL}.md",
            },
            "memory-dir-main": {"path": f"{tmp_path}/memory", "pattern": "**/*.md"},
        },
        "models": {"embed": "/m.gguf"},
    }


def test_paths_are_known_again_as_older_versions_wrote_them():
    assert folded("Projects/Foo Bar (1).md") == folded("projects/foo-bar-1.md")
    assert folded("a/b.md") != folded("a-b.md")


@given(st.lists(st.text(min_size=1), min_size=2, max_size=6, unique=True))
def test_no_two_scopes_have_the_same_name(scopes):
    assert len({key_of_scope(f"group:{scope}") for scope in scopes}) == len(scopes)


def test_no_other_folder_takes_the_name_that_others_stand_in(tmp_path):
    workspace, other, docs = tmp_path / "ws", tmp_path / "qmd", tmp_path / "docs"
    for folder in (workspace, other, docs):
        folder.mkdir()

    mounts = mounts_of(Root(str(workspace)), [ExtraPath(str(other)), ExtraPath(str(docs), under="qmd")])

    assert [mount.cited for mount in mounts] == ["qmd-2", "qmd/docs"]


NOW = time.time()
HEAD = b'{"type": "session", "id": "abc"}\n'


@pytest.fixture
def sessions(tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "abc.jsonl").write_bytes(HEAD + line("user", "hello"))
    (folder / "abc.jsonl.reset.2026-01-01").write_bytes(HEAD + line("user", "before"))
    return folder


@pytest.fixture
def exports(tmp_path, sessions):
    return exports_of(tmp_path, sessions)


def exports_of(tmp_path, sessions, **more):
    transcripts = Transcripts(str(sessions), **more)
    erasures = Erasures(str(tmp_path / "state"))
    return Exports(transcripts, str(tmp_path / "out"), erasures, agent_id="main", retention_days=30)


def brought(exports, *, deadline=math.inf, now=NOW):
    return exports.bring_up_to_date(exports.wanted(exports.discover(), now), deadline)


def talk(path, *said):
    path.write_bytes(HEAD + b"".join(line("user", text) for text in said))


def copies(tmp_path):
    found = (path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.suffix != ".parts")
    return {path.relative_to(tmp_path / "out").as_posix(): path.read_text() for path in found}


def looks(tmp_path):
    """What tells that a file was written: reading it changes the time of access alone."""
    states = {path: path.stat() for path in (tmp_path / "out").rglob("*")}
    return {
        path: (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        for path, state in states.items()
    }


def test_a_copy_has_a_name_of_its_own_even_if_two_are_of_one_session(exports, tmp_path):
    assert brought(exports) == ()

    assert copies(tmp_path) == {
        "private/abc.md": "# Session abc\n\nUser: hello\n",
        "private/abc.jsonl.reset.2026-01-01.md": "# Session abc.jsonl.reset.2026-01-01\n\nUser: before\n",
    }


def test_a_copy_is_made_again_only_when_its_original_has_changed(exports, tmp_path, sessions):
    brought(exports)
    copy = tmp_path / "out/private/abc.md"
    inode = copy.stat().st_ino
    brought(exports)
    assert copy.stat().st_ino == inode

    with (sessions / "abc.jsonl").open("ab") as file:
        file.write(line("assistant", "good day"))
    brought(exports)

    assert copy.read_text().endswith("User: hello\nAssistant: good day\n")


def test_a_conversation_that_changes_hands_leaves_nothing_where_it_was(exports, tmp_path, sessions):
    brought(exports)
    names = ("abc.jsonl", "abc.jsonl.reset.2026-01-01")
    for_all = exports_of(tmp_path, sessions, scopes=lambda: {f"sessions/{name}": "group:7" for name in names})

    brought(for_all)

    assert {path.split("/")[0] for path in copies(tmp_path)} == {
        for_all.collections(for_all.discover())[1].folder.split("/")[-1]
    }


def test_only_copies_are_removed(exports, tmp_path):
    brought(exports)
    for name in ("notes.md", "private/kept.txt", "other/abc.md"):
        (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "out" / name).write_text("mine")

    erase_copies(str(tmp_path / "out"))

    assert set(copies(tmp_path)) == {"notes.md", "private/kept.txt", "other/abc.md"}


def test_what_cannot_be_read_is_told_and_has_no_copy(exports, tmp_path, sessions):
    brought(exports)
    (sessions / "abc.jsonl").write_bytes(HEAD + line("user", "changed"))
    os.utime(sessions / "abc.jsonl", (NOW, NOW))
    reads = exports_of(tmp_path, sessions, redact=_refuse)

    (failure, *_) = brought(reads)

    assert (failure.path, failure.reason) == ("sessions/abc.jsonl", "no")
    assert "private/abc.md" not in copies(tmp_path)


def _refuse(_text):
    from plainmind.base.errors import WorkspaceError

    raise WorkspaceError("no")


@given(st.lists(st.text("ab%/.jsonlmd", min_size=1, max_size=12), min_size=2, max_size=6, unique=True))
def test_no_two_conversations_have_the_same_copy(names):
    exported = [export_name(f"sessions/{name}") for name in names]

    assert len(set(exported)) == len(names)
    assert all("/" not in name and name.endswith(".md") for name in exported)


@given(st.text("ab%/.jsonlmd", min_size=1, max_size=12), st.integers(1, 10**6))
def test_a_part_leads_back_to_its_conversation(name, number):
    first = f"/out/private/{export_name(f'sessions/a{name}')}"

    assert conversation_of(part_path(first, number)) == (first, number)


@pytest.fixture
def in_pieces(tmp_path, sessions):
    """Copies of which a part has about two messages."""
    (sessions / "abc.jsonl.reset.2026-01-01").unlink()
    talk(sessions / "abc.jsonl", *(f"message {number} {'x' * 40}" for number in range(5)))
    return exports_of(tmp_path, sessions, piece_characters=100)


def numbers_in(text):
    return [int(part.split()[0]) for part in text.split("message ")[1:]]


def test_a_long_conversation_has_as_many_parts_as_pieces(in_pieces, tmp_path):
    brought(in_pieces)

    found = copies(tmp_path)
    assert {name: numbers_in(text) for name, text in found.items()} == {
        "private/abc.md": [0, 1],
        "private/abc%part2.md": [2, 3],
        "private/abc%part3.md": [4],
    }
    assert all(text.startswith("# Session abc\n\nUser: ") for text in found.values())


def test_of_a_conversation_that_grew_only_the_last_part_is_made_again(in_pieces, tmp_path, sessions):
    brought(in_pieces)
    inodes = {path.name: path.stat().st_ino for path in (tmp_path / "out/private").iterdir()}
    with (sessions / "abc.jsonl").open("ab") as file:
        file.write(
            line("user", "message 5") + line("user", f"message 6 {'x' * 90}") + line("user", "message 7")
        )

    brought(in_pieces)

    assert {name: numbers_in(text) for name, text in copies(tmp_path).items()} == {
        "private/abc.md": [0, 1],
        "private/abc%part2.md": [2, 3],
        "private/abc%part3.md": [4, 5, 6],
        "private/abc%part4.md": [7],
    }
    assert (tmp_path / "out/private/abc.md").stat().st_ino == inodes["abc.md"]
    assert (tmp_path / "out/private/abc%part2.md").stat().st_ino == inodes["abc%part2.md"]


def test_a_conversation_that_became_shorter_leaves_no_part_behind(in_pieces, tmp_path, sessions):
    brought(in_pieces)
    talk(sessions / "abc.jsonl", "all is new")

    brought(in_pieces)

    assert copies(tmp_path) == {"private/abc.md": "# Session abc\n\nUser: all is new\n"}


def test_when_time_is_over_the_next_time_goes_on(in_pieces, tmp_path):
    for _ in range(20):
        try:
            brought(in_pieces, deadline=0.0)
            break
        except BackendBusy:
            continue

    said = sorted(number for text in copies(tmp_path).values() for number in numbers_in(text))
    assert said == [0, 1, 2, 3, 4]
    before = looks(tmp_path)
    brought(in_pieces)
    assert looks(tmp_path) == before


def test_a_part_that_was_deleted_is_made_again(in_pieces, tmp_path):
    brought(in_pieces)
    (tmp_path / "out/private/abc%part2.md").unlink()

    brought(in_pieces)

    assert len(copies(tmp_path)) == 3


@pytest.mark.parametrize("damage", [b"", b"{}", b"[[", b'{"begins": ["x"], "seen": [1, 2, 3]}', b"\xff"])
def test_a_ledger_that_is_damaged_costs_a_copy_and_nothing_else(in_pieces, tmp_path, damage):
    brought(in_pieces)
    before = copies(tmp_path)
    (tmp_path / "out/private/abc.parts").write_bytes(damage)

    brought(in_pieces)

    assert copies(tmp_path) == before
    assert (tmp_path / "out/private/abc.parts").read_bytes() != damage


def test_the_lines_of_a_part_are_read_from_the_conversation_and_no_others(in_pieces, tmp_path):
    brought(in_pieces)
    wanted = in_pieces.wanted(in_pieces.discover(), NOW)
    folder = tmp_path / "out/private"

    second = in_pieces.piece(str(folder / "abc%part2.md"), wanted)

    assert numbers_in(second.text) == [2, 3]
    assert second.line_map == (4, 5)
    for none in ("abc%part4.md", "abc%part0.md", "other.md", "../private/abc.md", "abc%part99999999999.md"):
        assert in_pieces.piece(str(folder / none), wanted) is None


def test_what_a_killed_process_has_left_is_removed(exports, tmp_path):
    brought(exports)
    left = tmp_path / "out/private/.abc.md.4711.0123456789abcdef.tmp"
    left.write_text("a conversation that is deleted by now")

    brought(exports)

    assert not left.exists()


def test_copies_that_are_erased_take_everything_with_them(exports, tmp_path):
    brought(exports)
    (tmp_path / "out/private/.abc.md.4711.0123456789abcdef.tmp").write_text("secret")

    erase_copies(str(tmp_path / "out"))

    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_nothing_that_was_read_before_an_erasure_is_written_after_it(tmp_path, sessions):
    erasures = Erasures(str(tmp_path / "state"))

    def erase_meanwhile(text):
        with erasures.run_alone():
            erase_copies(str(tmp_path / "out"))
        return text

    exports = exports_of(tmp_path, sessions, redact=erase_meanwhile)

    with pytest.raises(BackendBusy):
        brought(exports)

    assert copies(tmp_path) == {}


SMALL_MEMORY = """
import math, sys, time
from tests.support.peak_memory import peak_memory
from plainmind.guests.qmd.territory import Exports
from plainmind.files.system import Erasures
from plainmind.sessions.transcripts import Transcripts
exports = Exports(Transcripts(sys.argv[1]), sys.argv[2], Erasures(sys.argv[3]), agent_id="main", retention_days=30)
wanted = exports.wanted(exports.discover(), time.time())
before = peak_memory()
exports.bring_up_to_date(wanted, math.inf)
parts = sorted(exports.piece(path, wanted).text[:20] for path in wanted)
print(peak_memory() - before, parts)
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_long_conversation_needs_no_more_memory_than_a_piece_of_it(tmp_path, sessions):
    said = line("user", "word " * 2_000)
    with (sessions / "abc.jsonl").open("wb") as file:
        file.write(HEAD)
        for _ in range(2_000):
            file.write(said)
    assert (sessions / "abc.jsonl").stat().st_size > 20_000_000

    ran = subprocess.run(
        [sys.executable, "-c", SMALL_MEMORY, str(sessions), str(tmp_path / "out"), str(tmp_path / "state")],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3],
    )  # fmt: skip

    assert int(ran.stdout.split()[0]) < 20_000_000, ran.stdout
    assert len(copies(tmp_path)) > 70
