"""What the pages say about sessions is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plainmind.guests.importers.importer import PROGRAMS, reader_of
from plainmind.sessions.entries import LINE_TYPES
from plainmind.sessions.store import SessionStore

DOCS = Path(__file__).parents[3] / "docs"
FORMAT = (DOCS / "reference" / "session-format.md").read_text()
GUIDE = (DOCS / "guides" / "import-conversations.md").read_text()


def test_the_transcript_on_the_page_is_one(tmp_path):
    shown = re.search(r"```jsonl\n(.+?)```", FORMAT, re.DOTALL)[1]
    (tmp_path / "01M7FQNAX9ZVAXQDDPZNTEA14G.jsonl").write_text(shown)
    store = SessionStore(tmp_path)

    session = store.open("agent:main:main")

    assert session.check().damaged == ()
    assert session.context().summary == "They chose larch."
    assert [message["content"][0]["text"] for message in session.context().messages] == ["Larch."]


def test_what_we_write_is_what_the_page_shows(tmp_path):
    store = SessionStore(tmp_path)
    session = store.create("agent:main:main", cwd="/srv")
    session.append({"role": "user", "content": "Which wood for the hull?"})
    session.append(
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Larch."}],
            "usage": {"input": 3, "output": 1},
        }
    )
    session.compact("They chose larch.", keep=1)

    def without_names(text):
        return re.sub(r"[0-7][0-9A-HJKMNP-TV-Z]{25}|\d{4}-\d\d-\d\dT[0-9:.]+Z", "…", text)

    shown = re.search(r"```jsonl\n(.+?)```", FORMAT, re.DOTALL)[1]
    assert without_names(Path(session.path).read_text()) == without_names(shown)


@pytest.mark.parametrize("kind", sorted(LINE_TYPES - {"session"}))
def test_every_type_of_entry_is_on_the_page(kind):
    assert f"| `{kind}` |" in FORMAT


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_that_is_read_is_in_the_guide(program):
    assert f"plainmind import {program}" in GUIDE
    assert reader_of(program).program == program
