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


def test_every_conversation_that_has_the_text_is_named_and_all_go_at_once(cli, workspace, tmp_path):
    for number in range(5):
        said = [{"role": "user", "content": f"the wombat sleeps, for the {number}th time"}]
        (tmp_path / f"talk-{number}.json").write_text(json.dumps(said))
        cli("import", "messages", str(tmp_path / f"talk-{number}.json"))
    names = sorted(row["key"] for row in cli("sessions", "list", "--json").json["sessions"])
    cli("remember", "the wombat sleeps")

    told = cli("forget", "wombat", "--dry-run").err
    assert len(names) == 5
    assert all(name in told for name in names)

    assert cli("sessions", "delete", *names[:4], "agent:main:nobody", "--yes").status == 1
    assert len(cli("sessions", "list", "--json").json["sessions"]) == 5
    gone = cli("sessions", "delete", *names, names[0], "--yes", "--json").json
    assert [one["key"] for one in gone["removed"]] == names
    assert cli("sessions", "list", "--json").json["sessions"] == []
