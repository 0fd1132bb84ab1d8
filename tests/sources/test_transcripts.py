"""Transcripts become one line a message, whatever stands in the file."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import NotFound
from commonplace.sources.transcripts import Transcripts, read_transcript


def message(role, content, **more):
    return json.dumps({"type": "message", "message": {"role": role, "content": content}, **more}).encode()


def text(words):
    return {"type": "text", "text": words}


def test_messages_become_lines_that_lead_back_to_the_file():
    raw = b"\n".join(
        [
            json.dumps({"type": "session", "id": "x"}).encode(),
            message("user", "where is\n\n the  gateway?"),
            message("system", "be brief"),
            message("assistant", [text("In the"), {"type": "image"}, text("cellar.")]),
            b"",
        ]
    )

    transcript = read_transcript(raw)

    assert transcript.text == "User: where is the gateway?\nAssistant: In the cellar."
    assert transcript.line_map == (2, 4)
    assert (transcript.malformed, transcript.is_unfinished) == (0, False)


def test_malformed_lines_are_skipped_and_counted():
    deep = b"[" * 100_000
    raw = b"\n".join([b"{broken", b"12", b"\xff\xfe", deep, message("user", "hello"), b""])

    transcript = read_transcript(raw)

    assert (transcript.text, transcript.line_map, transcript.malformed) == ("User: hello", (5,), 4)


def test_a_half_written_last_line_waits():
    whole = message("user", "first") + b"\n" + message("assistant", "second")

    half = read_transcript(whole[:-4])

    assert (half.text, half.malformed, half.is_unfinished) == ("User: first", 0, True)
    assert read_transcript(whole).text == "User: first\nAssistant: second"


@pytest.mark.parametrize(
    "line",
    [
        message("user", "  \n "),
        message("user", None),
        message("user", [{"type": "tool_use", "input": {}}, "text"]),
        message(["user"], "text"),
        json.dumps({"type": "message", "message": "text"}).encode(),
        json.dumps({"type": "compaction", "message": {"role": "user", "content": "text"}}).encode(),
    ],
)
def test_what_nobody_said_is_left_out(line):
    transcript = read_transcript(line + b"\n")

    assert (transcript.text, transcript.line_map, transcript.malformed) == ("", (), 0)


def test_characters_that_no_database_takes_are_replaced():
    transcript = read_transcript(
        b'{"type":"message","message":{"role":"user","content":"a\\u0000b \\ud800 c"}}'
    )

    assert transcript.text == "User: ab ? c"


@given(st.lists(st.text()), st.binary())
def test_each_text_line_belongs_to_one_message(texts, rest):
    raw = b"\n".join([*(message("user", text) for text in texts), rest])

    transcript = read_transcript(raw)

    lines = transcript.text.split("\n") if transcript.text else []
    assert len(lines) == len(transcript.line_map)
    assert (
        lines[: len(texts)]
        == ["User: " + said for text in texts if (said := " ".join(text.replace("\0", "").split()))][
            : len(lines)
        ]
    )


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
    assert source.malformed_lines == {"sessions/a.jsonl": 1, "sessions/b.jsonl": 0}


def test_what_a_file_looked_like_comes_with_its_text(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_bytes(message("user", "one"))
    source = Transcripts(str(tmp_path))
    (found,) = source.discover().files

    _, state = source.read(found)
    file.write_bytes(message("user", "other"))
    _, later = source.read(found)

    assert (state.path, state.size, state.inode) == (found.path, found.size, found.inode)
    assert state.hash != later.hash


def test_links_and_overlong_files_are_left_out_with_a_reason(tmp_path):
    (tmp_path / "long.jsonl").write_bytes(b"x" * 50)
    (tmp_path / "link.jsonl").symlink_to("long.jsonl")
    os.mkdir(tmp_path / "folder.jsonl")

    found = Transcripts(str(tmp_path), max_file_bytes=49).discover()

    assert found.files == ()
    assert {one.path: one.reason for one in found.skipped} == {
        "sessions/folder.jsonl": "a folder, not a file",
        "sessions/link.jsonl": "a symbolic link, not followed",
        "sessions/long.jsonl": "50 bytes, over the limit of 49 bytes",
    }


def test_a_folder_that_is_not_there_hides_what_was_known(tmp_path):
    missing = Transcripts(str(tmp_path / "none")).discover()
    (tmp_path / "file").write_text("")
    refused = Transcripts(str(tmp_path / "file")).discover()

    assert (missing.files, missing.skipped, missing.root_missing) == ((), (), True)
    assert (len(refused.skipped), refused.root_missing) == (1, True)


def test_a_file_deleted_since_it_was_listed_is_not_found(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(message("user", "one"))
    source = Transcripts(str(tmp_path))
    (found,) = source.discover().files
    (tmp_path / "a.jsonl").unlink()

    with pytest.raises(NotFound):
        source.read(found)
