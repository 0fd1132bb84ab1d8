"""`forget` shows what would go, asks, and removes it everywhere."""

from __future__ import annotations

import json

import pytest
from tests.cli.terminal import at_a_terminal


def test_without_anybody_to_ask_it_only_shows(cli, workspace):
    answer = cli("forget", "VLAN", "40", stdin="y\n")

    assert answer.status == 1
    assert "  - The printer is on VLAN 40." in answer.out
    assert "--yes" in answer.err
    assert "VLAN 40" in (workspace / "MEMORY.md").read_text()


def test_a_dry_run_changes_nothing(cli, workspace):
    answer = cli("forget", "MEMORY.md#L3", "--dry-run", "--json").json

    assert answer["applied"] is False
    assert answer["lines"] == [
        {"path": "MEMORY.md", "startLine": 3, "endLine": 3, "text": "- The printer is on VLAN 40."}
    ]
    assert "VLAN 40" in (workspace / "MEMORY.md").read_text()


def test_yes_removes_it_from_files_search_and_history(cli, workspace, home):
    cli("sync")
    cli("edit", "MEMORY.md", "--old", "one line", "--new", "two lines")

    answer = cli("forget", "VLAN 40", "--yes", "--json").json

    assert answer["applied"] is True
    assert "VLAN 40" not in (workspace / "MEMORY.md").read_text()
    assert "VLAN 40" not in json.dumps(
        cli("search", "printer VLAN 40", "--min-score", "0", "--json").json["results"]
    )
    for version in cli("history", "--json").json["versions"]:
        if version["available"]:
            assert "VLAN 40" not in cli("history", "--show", version["id"], "--json").json["text"]


def test_under_json_it_does_not_ask(cli, workspace):
    answer = cli("forget", "VLAN 40", "--json")

    assert answer.status == 1
    assert "--yes" in answer.json["error"]["hint"]


@pytest.mark.parametrize("what", ["zebrafish", "ab", "MEMORY.md#L90", "../MEMORY.md#L1"])
def test_what_is_not_there_cannot_be_forgotten(cli, workspace, what):
    answer = cli("forget", what, "--yes")

    assert answer.status == 1
    assert [line.split(":")[0] for line in answer.err.splitlines()] == ["error", "hint"]


@pytest.mark.parametrize(
    ("reply", "status", "gone"), [(b"y\n", 0, True), (b"n\n", 1, False), (b"\n", 1, False)]
)
def test_at_a_terminal_it_asks_first(workspace, reply, status, gone):
    printed, ended = at_a_terminal("forget", "VLAN 40", question=b"[y/N]", reply=reply)

    assert "The printer is on VLAN 40." in printed
    assert ended == status
    assert ("VLAN 40" not in (workspace / "MEMORY.md").read_text()) is gone


def test_what_is_shown_before_it_goes_has_no_ids(cli, workspace):
    cli("remember", "The spare key hangs behind the barometer.")

    shown = cli("forget", "barometer", "--dry-run").out

    assert "The spare key hangs behind the barometer." in shown
    assert "<!--" not in shown


def test_what_only_older_versions_have_is_asked_for_in_words(cli, workspace):
    cli("remember", "The spare key hangs behind the barometer.")
    cli("undo")

    answer = cli("forget", "barometer")

    assert answer.status == 1
    assert "whether what is left of it may go" in answer.err
    assert "removed it from 1 older version" in cli("forget", "barometer", "--yes").out
