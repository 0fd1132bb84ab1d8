"""`forget` names the conversations that keep a text, instead of letting anybody believe that it is gone."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def talk(cli, tmp_path):
    (tmp_path / "talk.json").write_text(
        json.dumps([{"role": "user", "content": "the printer is on VLAN 40"}])
    )
    cli("import", "messages", str(tmp_path / "talk.json"))
    return cli("sessions", "list", "--json").json["sessions"][0]["key"]


def test_it_says_so_before_it_asks_and_what_removes_them(cli, workspace, talk):
    answer = cli("forget", "VLAN 40", "--dry-run")

    assert f"note: this text stays in 1 conversation: {talk}" in answer.err
    assert f"`plainmind sessions delete {talk}`" in answer.err


def test_a_program_is_told_too(cli, workspace, talk):
    still = cli("forget", "VLAN 40", "--yes", "--json").json["stillIn"]

    assert (still["sessions"], still["chatHistory"]) == ([talk], None)


def test_of_a_text_that_no_note_has_it_says_where_it_is(cli, workspace, talk):
    cli("forget", "VLAN 40", "--yes")
    answer = cli("forget", "VLAN 40", "--yes")

    assert answer.status == 1
    assert "no line of the memory" in answer.err
    assert f"stays in 1 conversation: {talk}" in answer.err


def test_once_they_are_deleted_too_nothing_is_said(cli, workspace, talk):
    cli("sessions", "delete", talk, "--yes")

    assert "stays" not in cli("forget", "VLAN 40", "--yes").err
