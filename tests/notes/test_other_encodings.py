"""Files that are not UTF-8 are read, edited and cut as what they are, and never mixed with it."""

from __future__ import annotations

import pytest

from plainmind.base.errors import NotFound, PlainmindError, WorkspaceError
from plainmind.base.model import sha256_bytes
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


def test_a_note_with_accents_makes_its_file_utf_8_and_what_stood_there_can_still_be_read(memory, tmp_path):
    file = tmp_path / "vault" / "MEMORY.md"
    old = "# Mémoire\n\n- Le café est à côté du bureau.\n"
    file.write_bytes(old.encode("cp1252"))

    memory.remember("Tea is upstairs", durable=True)
    plain = file.read_bytes()
    memory.remember("Le thé est très bon", durable=True)

    assert plain.startswith(old.encode("cp1252"))
    assert file.read_bytes().decode().startswith(old)
    assert "café" in memory.search("Où est le café ?").hits[0].snippet
    assert memory.undo().text.startswith("- Le thé est très bon <!-- m:")


def test_an_edit_after_which_its_bytes_would_be_read_as_something_else_is_refused(memory, tmp_path):
    file = tmp_path / "vault" / "a.md"
    before = b"The first line is\n" + "h".encode("utf-16-le") * 40 + b"\n"
    file.write_bytes(before)

    with pytest.raises(PlainmindError, match="another encoding"):
        memory.edit("a.md", "The first line is", "last")

    assert file.read_bytes() == before
    assert memory.edit("a.md", "The first line is", "The second line is!").line == 1


FEW_LETTERS = "Voilà les accents du clavier\n" + "".join(f"- {n}: é è à\n" for n in range(3))


@pytest.mark.parametrize("act", ["edit", "forget", "write"])
def test_what_is_left_is_read_as_it_was_when_it_has_few_letters(memory, tmp_path, act):
    """By its letters a file of one byte a character is known; with too few of them it is written in UTF-8."""
    file = tmp_path / "vault" / "a.md"
    file.write_bytes(FEW_LETTERS.encode("cp1252"))
    rest = FEW_LETTERS.split("\n", 1)[1]

    if act == "edit":
        memory.edit("a.md", "Voilà les accents du clavier", "1")
    elif act == "forget":
        memory.forget("a.md#L1")
    else:
        memory.write("a.md", rest, base_hash=sha256_bytes(file.read_bytes()), allow_shrink=True)

    assert file.read_bytes().decode() == ("1\n" + rest if act == "edit" else rest)
    assert memory.search("é è à").hits[0].snippet.count("é è à") == 3


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["line feed", "both", "old Mac"])
def test_an_edit_tells_the_line_that_search_tells_however_lines_end(memory, tmp_path, ending):
    lines = ["# Cellar", "", "- the boiler is blue", "- the lamp is old", "- the door is old", ""]
    file = tmp_path / "vault" / "cr.md"
    file.write_bytes(ending.join(lines).encode())

    found = memory.search("boiler").hits[0]
    edited = memory.edit("cr.md", "blue\n- the lamp", "green\n- no lamp")

    assert (edited.line, found.best_line) == (3, 3)
    assert memory.get("cr.md", first_line=3, line_count=1).text.startswith("- the boiler is green")
    assert (
        file.read_bytes()
        == ending.join([*lines[:2], "- the boiler is green", "- no lamp is old", *lines[4:]]).encode()
    )
    with pytest.raises(NotFound, match=r"lines 4, 5\)"):
        memory.edit("cr.md", "is old", "is new")
