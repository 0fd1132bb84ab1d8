"""Files that are not UTF-8 are read, edited and cut as what they are, and never mixed with it."""

from __future__ import annotations

import pytest

from plainmind.base.errors import PlainmindError, WorkspaceError
from plainmind.memory.memory import Memory


@pytest.fixture
def memory(tmp_path):
    (tmp_path / "vault").mkdir()
    with Memory(tmp_path / "vault", home=tmp_path / "home") as made:
        yield made


ENCODINGS = ["latin-1", "utf-16", "utf-16-le", "utf-16-be"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_its_words_are_found_and_read(memory, tmp_path, encoding):
    (tmp_path / "vault" / "a.md").write_bytes("# Büro\n\nDer Drucker steht im Erdgeschoß.\n".encode(encoding))

    (hit,) = memory.search("Erdgeschoß Drucker").hits

    assert "Erdgeschoß" in hit.snippet
    assert memory.get("a.md", first_line=3).text == "Der Drucker steht im Erdgeschoß."


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_edit_and_a_removed_line_leave_the_other_bytes_alone(memory, tmp_path, encoding, end):
    lines = ["# Büro", "", "Der Drucker steht im Keller.", "Das Gerät ist neu."]
    file = tmp_path / "vault" / "a.md"
    file.write_bytes((end.join(lines) + end).encode(encoding))

    assert memory.edit("a.md", "Keller", "Erdgeschoß").line == 3
    memory.forget("a.md#L4")

    lines = ["# Büro", "", "Der Drucker steht im Erdgeschoß."]
    assert file.read_bytes() == (end.join(lines) + end).encode(encoding)


def test_what_an_encoding_has_no_letter_for_is_refused(memory, tmp_path):
    file = tmp_path / "vault" / "a.md"
    file.write_bytes("Grüße aus Köln\n".encode("latin-1"))

    with pytest.raises(PlainmindError, match="has no `東`"):
        memory.edit("a.md", "Köln", "東京")
    assert file.read_bytes() == "Grüße aus Köln\n".encode("latin-1")


def test_a_note_is_not_added_to_a_file_in_utf_16(memory, tmp_path):
    file = tmp_path / "vault" / "MEMORY.md"
    file.write_bytes("# Memory\n".encode("utf-16"))

    with pytest.raises(WorkspaceError, match="UTF-16"):
        memory.remember("tea", durable=True)
    assert file.read_bytes() == "# Memory\n".encode("utf-16")


def test_an_edit_after_which_its_bytes_would_be_read_as_something_else_is_refused(memory, tmp_path):
    file = tmp_path / "vault" / "a.md"
    before = b"The first line is\n" + "h".encode("utf-16-le") * 40 + b"\n"
    file.write_bytes(before)

    with pytest.raises(PlainmindError, match="another encoding"):
        memory.edit("a.md", "The first line is", "last")

    assert file.read_bytes() == before
    assert memory.edit("a.md", "The first line is", "The second line is!").line == 1
