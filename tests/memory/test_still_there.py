"""Whoever forgets a text is told where else it stands."""

from __future__ import annotations

import pytest

from plainmind.guests.entries.access import entry_folder
from plainmind.guests.entries.entry_file import EntryFile
from plainmind.guests.entries.model import Entry
from plainmind.memory.forget import StillThere, still_there

NOTHING = StillThere((), ())


@pytest.fixture
def chat(memory):
    def said(text, key="agent:main:main"):
        memory.sessions.open_or_create(key).append({"role": "user", "content": text})

    return said


@pytest.fixture
def entry(memory):
    def kept(id_, text, *, waiting=False):
        EntryFile(entry_folder(memory)).add(
            Entry(id_, text, "fact", 0.7, 1_700_000_000_000, "private", is_waiting=waiting)
        )

    return kept


def test_a_memory_without_conversations_and_entries_has_it_nowhere_else(memory):
    memory.remember("the quokkaberry is ripe")
    assert still_there(memory, memory.forget("quokkaberry", dry_run=True)) == NOTHING


def test_conversations_archives_entries_and_what_was_typed_are_named(memory, home, chat, entry):
    memory.remember("the quokkaberry is ripe")
    chat("is the quokkaberry ripe?")
    chat("the harbour has a crane", key="agent:main:other")
    chat("quokkaberry", key="agent:main:old")
    archived = memory.sessions.archive("agent:main:old")
    entry("01M7GBJGHCAQ9YH728R77N367Q", "a quokkaberry is a fruit")
    entry("01M7GBJGHCAQ9YH728R77N367R", "proposed: quokkaberry jam", waiting=True)
    entry("01M7GBJGHCAQ9YH728R77N367S", "the harbour has a crane")
    (home / "chat-history").write_text("hello\nis the quokkaberry ripe?\n")

    found = still_there(memory, memory.forget("quokkaberry", dry_run=True))

    assert found.entries == ("01M7GBJGHCAQ9YH728R77N367Q", "01M7GBJGHCAQ9YH728R77N367R")
    assert found.sessions[0] == "agent:main:main"
    assert len(found.sessions) == 2
    assert archived.endswith(found.sessions[1])
    assert found.typed == str(home / "chat-history")


@pytest.mark.parametrize(
    "text", ['say "quokkaberry"', "Grüße aus Göteborg", "电池可以用多久", "two\nlines of it"]
)
def test_a_text_is_found_however_the_transcript_spells_it(memory, chat, text):
    chat(f"before {text} after")
    assert still_there(memory, [text]).sessions == ("agent:main:main",)


def test_of_lines_that_were_cited_the_words_count_and_not_the_time_or_the_id(memory, chat):
    note = memory.remember("the quokkaberry is in room 12")
    chat("I think that the quokkaberry is in room 12, or was.")
    for what in (note.id, f"{note.path}#L{note.start_line}"):
        assert still_there(memory, memory.forget(what, dry_run=True)).sessions == ("agent:main:main",)


def test_a_heading_or_a_blank_line_is_looked_for_nowhere(memory, workspace, chat):
    (workspace / "memory" / "short.md").write_text("# Day\n\n- ok\n")
    chat("What a Day, ok?")
    assert still_there(memory, memory.forget("memory/short.md#L1-L3", dry_run=True)) == NOTHING


def test_an_empty_file_has_nothing(memory, home):
    (home / "chat-history").write_text("")
    assert still_there(memory, ["quokkaberry"]).typed is None
