"""Copies of conversations: named one to one, made once, and removed when their time is over."""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.transcript_files import line

from commonplace.backends.qmd.exports import Exports, erase_copies, export_name
from commonplace.files.erasures import Erasures
from commonplace.sources.transcripts import Transcripts

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


def copies(tmp_path):
    found = (path for path in (tmp_path / "out").rglob("*") if path.is_file())
    return {path.relative_to(tmp_path / "out").as_posix(): path.read_text() for path in found}


def test_a_copy_has_a_name_of_its_own_even_if_two_are_of_one_session(exports, tmp_path):
    assert exports.bring_up_to_date(NOW) == ()

    assert copies(tmp_path) == {
        "private/abc.md": "# Session abc\n\nUser: hello\n",
        "private/abc.jsonl.reset.2026-01-01.md": "# Session abc.jsonl.reset.2026-01-01\n\nUser: before\n",
    }


def test_a_copy_is_made_again_only_when_its_original_has_changed(exports, tmp_path, sessions):
    exports.bring_up_to_date(NOW)
    copy = tmp_path / "out/private/abc.md"
    inode = copy.stat().st_ino
    exports.bring_up_to_date(NOW)
    assert copy.stat().st_ino == inode

    with (sessions / "abc.jsonl").open("ab") as file:
        file.write(line("assistant", "good day"))
    exports.bring_up_to_date(NOW)

    assert copy.read_text().endswith("User: hello\nAssistant: good day\n")


def test_a_conversation_that_changes_hands_leaves_nothing_where_it_was(exports, tmp_path, sessions):
    exports.bring_up_to_date(NOW)
    names = ("abc.jsonl", "abc.jsonl.reset.2026-01-01")
    for_all = exports_of(tmp_path, sessions, scopes=lambda: {f"sessions/{name}": "group:7" for name in names})

    for_all.bring_up_to_date(NOW)

    assert {path.split("/")[0] for path in copies(tmp_path)} == {
        for_all.collections()[1].folder.split("/")[-1]
    }


def test_only_copies_are_removed(exports, tmp_path):
    exports.bring_up_to_date(NOW)
    for name in ("notes.md", "private/kept.txt", "other/abc.md"):
        (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "out" / name).write_text("mine")

    erase_copies(str(tmp_path / "out"))

    assert set(copies(tmp_path)) == {"notes.md", "private/kept.txt", "other/abc.md"}


def test_what_cannot_be_read_is_told_and_has_no_copy(exports, tmp_path, sessions):
    exports.bring_up_to_date(NOW)
    (sessions / "abc.jsonl").write_bytes(HEAD + line("user", "changed"))
    os.utime(sessions / "abc.jsonl", (NOW, NOW))
    reads = exports_of(tmp_path, sessions, redact=_refuse)

    (failure, *_) = reads.bring_up_to_date(NOW)

    assert (failure.path, failure.reason) == ("sessions/abc.jsonl", "no")
    assert "private/abc.md" not in copies(tmp_path)


def _refuse(_text):
    from commonplace.errors import WorkspaceError

    raise WorkspaceError("no")


@given(st.lists(st.text("ab%/.jsonlmd", min_size=1, max_size=12), min_size=2, max_size=6, unique=True))
def test_no_two_conversations_have_the_same_copy(names):
    exported = [export_name(f"sessions/{name}") for name in names]

    assert len(set(exported)) == len(names)
    assert all("/" not in name and name.endswith(".md") for name in exported)
