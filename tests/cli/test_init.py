"""`init` makes a workspace once, overwrites nothing, and tells coding agents about it."""

from __future__ import annotations

import pytest

from plainmind.memory.workspace_setup import END, RECALL_INSTRUCTION, START, with_instruction


def test_the_first_workspace_is_made_in_the_home_folder(cli, home):
    answer = cli("init")

    assert answer.status == 0
    assert (home / "workspace" / "MEMORY.md").read_text().startswith("# Memory\n")
    assert (home / "workspace" / "memory").is_dir()
    assert "plainmind remember" in answer.out


def test_what_is_written_after_init_is_found(cli):
    cli("init")
    cli("remember", "The printer is on VLAN 40.")

    assert "VLAN 40" in cli("search", "printer", "VLAN", "-n", "1").out


def test_a_folder_can_be_named_and_the_next_steps_say_how_to_use_it(cli, tmp_path):
    answer = cli("init", "my notes", "--json").json
    again = cli("init", "my notes")

    assert (answer["workspaceDir"], answer["created"]) == (
        str(tmp_path / "my notes"),
        ["MEMORY.md", "memory/"],
    )
    assert "is a workspace already; nothing was changed" in again.out
    assert f"plainmind config set workspace '{tmp_path / 'my notes'}'" in again.out


@pytest.mark.parametrize("name", ["MEMORY.md", "memory.md"])
def test_what_is_there_stays_as_it_is(cli, tmp_path, name):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / name).write_text("mine\n")

    assert cli("init", "notes", "--json").json["created"] == ["memory/"]
    assert (tmp_path / "notes" / name).read_text() == "mine\n"
    assert sorted(path.name for path in (tmp_path / "notes").iterdir()) == sorted([name, "memory"])


def test_a_file_in_the_way_is_a_clear_error(cli, tmp_path):
    (tmp_path / "taken").write_text("mine\n")

    answer = cli("init", "taken")

    assert answer.status == 1
    assert "is not a folder" in answer.err
    assert (tmp_path / "taken").read_text() == "mine\n"


def test_the_instruction_for_agents_can_be_printed(cli):
    assert RECALL_INSTRUCTION in cli("init", "--agents").out


@pytest.mark.parametrize("option", ["--write", "--write-agents-md"])
def test_the_instruction_is_put_into_the_file_of_the_agents_once(cli, tmp_path, option):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "CLAUDE.md").write_text("# Rules\n\nBe kind.\n")

    first = cli("init", "notes", option)
    once = (tmp_path / "notes" / "CLAUDE.md").read_text()
    second = cli("init", "notes", option)

    assert "wrote the instruction into" in first.out
    assert "already in" in second.out
    assert once == f"# Rules\n\nBe kind.\n\n{RECALL_INSTRUCTION}\n"
    assert (tmp_path / "notes" / "CLAUDE.md").read_text() == once
    assert not (tmp_path / "notes" / "AGENTS.md").exists()


def test_without_such_a_file_one_is_made(cli, tmp_path):
    told = cli("init", "notes", "--write", "--json").json["agentsFile"]

    assert told == {"path": str(tmp_path / "notes" / "AGENTS.md"), "changed": True}
    assert (tmp_path / "notes" / "AGENTS.md").read_text() == RECALL_INSTRUCTION + "\n"


def test_an_old_instruction_is_replaced_between_its_markers():
    old = f"before\r\n{START}\r\nold words\r\n{END}\r\nafter\r\n"

    new = with_instruction(old)

    assert new.startswith("before\r\n" + START)
    assert new.endswith(END + "\r\nafter\r\n")
    assert "old words" not in new
    assert "\n" not in new.replace("\r\n", "")


def test_a_file_for_agents_that_is_no_utf_8_is_left_alone(cli, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "AGENTS.md").write_bytes(b"caf\xe9\n")

    answer = cli("init", "notes", "--write")

    assert answer.status == 1
    assert (tmp_path / "notes" / "AGENTS.md").read_bytes() == b"caf\xe9\n"


def test_the_instruction_is_short():
    assert len(RECALL_INSTRUCTION.splitlines()) <= 8
