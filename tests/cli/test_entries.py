"""`entries`: what a person stores, recalls, forgets and reviews at the command line."""

from __future__ import annotations

import json

import pytest
from tests.cli.terminal import at_a_terminal

from plainmind.guests.lancedb.library import load

load()  # takes seconds on a busy machine: before the clock of the first test starts


@pytest.fixture
def stored(cli, workspace):
    answer = cli("entries", "store", "Ana prefers tea over coffee", "--category", "preference", "--json")
    assert answer.status == 0
    return answer.json["stored"]["id"]


def proposed(home, text):
    """Put a captured entry into the file, as an agent's hook does."""
    line = {"id": "01K0WAITING", "text": text, "origin": "captured", "waiting": True, "category": "fact"}
    with (home / "entries" / "main" / "entries.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def test_an_entry_is_stored_recalled_and_listed(cli, stored):
    recalled = cli("entries", "recall", "what", "does", "Ana", "like", "to", "drink")
    assert "Ana prefers tea over coffee" in recalled.out
    assert "preference" in recalled.out
    facts = cli("entries", "recall", "Ana tea", "--json").json
    assert facts["entries"][0]["id"] == stored
    assert facts["entries"][0]["score"] > 0.3
    assert [entry["id"] for entry in cli("entries", "list", "--json").json["entries"]] == [stored]
    assert stored in cli("entries").out


def test_a_twin_is_refused_with_status_1_and_can_be_replaced(cli, stored):
    again = cli("entries", "store", "Ana prefers tea over coffee.")
    assert again.status == 1
    assert stored in again.out
    assert "--replacing" in again.err
    assert cli("entries", "store", "Ana prefers cocoa", "--replacing", stored[:20]).status == 0
    assert "tea" not in cli("entries", "list").out


def test_a_forgotten_entry_is_in_no_file(cli, stored, home):
    assert cli("entries", "forget", stored.lower(), "--yes").status == 0

    assert "there are no entries yet" in cli("entries", "list").out
    assert [path for path in home.rglob("*") if path.is_file() and b"prefers tea" in path.read_bytes()] == []
    assert cli("entries", "forget", stored, "--yes").status == 1


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_no_entry_goes_when_nobody_is_there_to_ask(cli, stored, more):
    answer = cli("entries", "forget", stored, *more)
    assert answer.status == 1
    assert "nothing was removed" in answer.out + answer.err
    assert "--yes removes it" in answer.out + answer.err
    assert "prefers tea" in cli("entries", "list").out


def test_what_was_captured_is_reviewed(cli, stored, home):
    proposed(home, "The backups run at 02:15 on the gateway")
    assert "1 captured entry to review" in cli("entries", "list").err
    assert "backups" in cli("entries", "review").out
    assert "backups" not in cli("entries", "recall", "backups gateway").out

    assert "kept 01K0WAITING" in cli("entries", "review", "--accept", "01K0WAIT").out
    assert "backups" in cli("entries", "recall", "backups gateway").out
    assert "nothing waits" in cli("entries", "review").out


def test_all_that_was_captured_can_be_dropped(cli, stored, home):
    proposed(home, "The backups run at 02:15 on the gateway")
    answer = cli("entries", "review", "--reject-all", "--json").json

    assert answer["rejected"] == ["01K0WAITING"]
    assert answer["waiting"] == []


def test_stats_say_how_many_there_are_and_where(cli, stored, home):
    text = cli("entries", "stats").out
    facts = cli("entries", "stats", "--json").json

    assert "1 entry" in text
    assert "preference: 1" in text
    assert facts["path"] == str(home / "entries" / "main" / "entries.jsonl")
    assert facts["index"]["driver"] == "lancedb"


def test_what_is_no_entry_is_refused(cli, workspace):
    assert cli("entries", "store", " ").status == 1
    assert cli("entries", "store", "x", "--importance", "7").status == 2
    assert cli("entries", "store", "x", "--category", "rumour").status == 2


def test_agents_have_entries_of_their_own(cli, stored):
    assert cli("entries", "list", "--agent", "other", "--json").json["entries"] == []


def test_a_review_does_not_reject_what_was_kept_long_ago(cli, stored, home):
    proposed(home, "we decided that backups run at night")
    answer = cli("entries", "review", "--reject", stored)

    assert answer.status == 1
    assert "no entry that waits" in answer.err
    assert "plainmind entries forget" in answer.err
    assert stored in cli("entries", "list").out


@pytest.mark.parametrize(
    ("choices", "status"),
    [(("--accept-all", "--reject-all"), 2), (("--accept", "01K0WAIT", "--reject", "01K0WAITING"), 1)],
)
def test_what_is_accepted_and_rejected_at_once_goes_on_waiting(cli, stored, home, choices, status):
    proposed(home, "we decided that backups run at night")

    assert cli("entries", "review", *choices).status == status
    assert [each["id"] for each in cli("entries", "review", "--json").json["waiting"]] == ["01K0WAITING"]


def test_at_a_terminal_it_is_asked_before_an_entry_goes_unless_yes_was_said(cli, stored):
    printed, status = at_a_terminal("entries", "forget", stored, question=b"[y/N]", reply=b"n\n")
    assert (status, "nothing was removed" in printed) == (1, True)

    printed, status = at_a_terminal("entries", "forget", stored, "-y")
    assert (status, "forgot 1 entry for good" in printed) == (0, True)
