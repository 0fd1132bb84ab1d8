"""`forget` shows and removes entries together with the lines of notes, after one question."""

from __future__ import annotations

import pytest
from tests.cli.terminal import at_a_terminal


@pytest.fixture
def entry(cli, workspace, monkeypatch):
    """An entry that says what a note says too; its id."""
    monkeypatch.setenv("PLAINMIND_ENTRIES_DRIVER", "sqlite")
    return cli("entries", "store", "the scanner is on VLAN 40", "--json").json["stored"]["id"]


def entries(cli):
    return [entry["text"] for entry in cli("entries", "list", "--json").json["entries"]]


def test_both_are_shown_and_one_answer_removes_both(cli, workspace, entry):
    cli("entries", "store", "Anna prefers tea")
    printed, ended = at_a_terminal(
        "forget", "VLAN 40", question=b"Remove these for good? [y/N]", reply=b"y\n"
    )

    assert ended == 0
    assert "The printer is on VLAN 40." in printed
    assert f"entry {entry}" in printed
    assert "removed 1 line and 1 entry" in printed
    assert entries(cli) == ["Anna prefers tea"]
    assert "VLAN 40" not in (workspace / "MEMORY.md").read_text()


def test_a_program_is_told_what_would_go_and_what_went_where(cli, workspace, entry):
    for argument, applied in (("--dry-run", False), ("--yes", True)):
        answer = cli("forget", "VLAN 40", argument, "--json").json

        assert answer["applied"] is applied
        assert [lines["path"] for lines in answer["lines"]] == ["MEMORY.md"]
        assert answer["entries"] == [{"id": entry, "text": "the scanner is on VLAN 40", "scope": "private"}]
        assert answer["remarks"] == []
        assert answer["stillIn"]["entries"] == []
    assert entries(cli) == []


def test_an_entry_can_be_named_by_its_id(cli, workspace, entry):
    answer = cli("forget", entry, "--yes")

    assert "removed 1 entry" in answer.err + answer.out
    assert entries(cli) == []
    assert "VLAN 40" in (workspace / "MEMORY.md").read_text()


def test_an_entry_that_says_more_than_the_cited_line_stays_and_is_named(cli, workspace, entry):
    cli("entries", "store", "as everybody knows, The printer is on VLAN 40. Or was.", "--anyway")
    answer = cli("forget", "MEMORY.md#L3", "--yes", "--json").json

    assert answer["entries"] == []
    assert len(answer["stillIn"]["entries"]) == 1
    assert len(entries(cli)) == 2


def test_lines_that_are_no_entries_are_mentioned_once(cli, workspace, entry, home):
    with (home / "entries" / "main" / "entries.jsonl").open("a") as file:
        file.write("no entry\n")
    answer = cli("forget", "VLAN 40", "--yes")

    assert answer.status == 0
    assert answer.err.count("not looked into: 1 of the lines") == 1


def test_entries_of_others_say_for_whom_they_are(cli, workspace, entry, home):
    file = home / "entries" / "main" / "entries.jsonl"
    file.write_text(file.read_text().replace('"scope":"private"', '"scope":"telegram/group:-100"'))

    assert f"entry {entry} for telegram/group:-100" in cli("forget", "VLAN 40", "--dry-run").out
