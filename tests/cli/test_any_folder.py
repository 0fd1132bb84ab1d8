"""A vault, a `docs/`, a zettelkasten: searched at once, and not a byte is written into it unasked."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def vault(tmp_path, monkeypatch):
    folder = tmp_path / "vault"
    (folder / "Home").mkdir(parents=True)
    (folder / "Home" / "Printer.md").write_text("# Printer\n\nIt is on VLAN 40.\n")
    (folder / "templates").mkdir()
    (folder / "templates" / "daily.md").write_text("# VLAN template\n")
    monkeypatch.chdir(folder)
    return folder


def contents(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.stat().st_mtime_ns, path.read_text()) for path in files}


def test_the_folder_one_is_in_is_searched_and_stays_as_it_is(cli, vault):
    before = contents(vault)

    answer = cli("search", "which VLAN is the printer on", "--json").json

    assert [hit["path"] for hit in answer["results"]] == ["Home/Printer.md"]
    assert cli("status", "--json").json["workspaceDir"] == str(vault)
    assert contents(vault) == before


def test_a_vault_is_found_from_the_folders_in_it(cli, vault, monkeypatch):
    (vault / ".obsidian").mkdir()
    (vault / "Empty").mkdir()
    monkeypatch.chdir(vault / "Empty")

    assert "VLAN 40" in cli("search", "printer VLAN").out


def test_one_who_has_a_workspace_of_their_own_keeps_it_in_a_folder_with_markdown(
    cli, vault, home, monkeypatch
):
    monkeypatch.chdir(home.parent)
    cli("init")
    cli("remember", "The modem is blue.")
    monkeypatch.chdir(vault)

    assert "modem" in cli("search", "modem blue").out
    assert "--workspace ." in cli("search", "zeppelin").err
    assert "VLAN 40" in cli("search", "printer VLAN", "--workspace", ".").out


def test_whoever_looks_for_a_note_beside_their_own_workspace_is_told_where_it_may_be(
    cli, vault, home, monkeypatch
):
    monkeypatch.chdir(home.parent)
    cli("init")
    monkeypatch.chdir(vault)

    for command in (("get", "Home/Printer.md"), ("links", "Printer"), ("get", "[[Printer]]")):
        answer = cli(*command)
        assert answer.status == 1
        assert str(home / "workspace") in answer.err
        assert "--workspace ." in answer.err
        assert cli(*command, "--workspace", ".").status == 0
    assert "--workspace ." not in cli("get", "nope.md", "--workspace", ".").err


def test_whoever_remembers_beside_their_own_workspace_is_told_where_it_went(cli, vault, home, monkeypatch):
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "MEMORY.md").write_text("# Memory\n")

    beside = cli("remember", "The boiler is serviced in May.")
    monkeypatch.chdir(home / "workspace")
    within = cli("remember", "The boiler is green.")

    assert f"that is in {home / 'workspace'}; `plainmind init .` makes a memory" in beside.err
    assert "that is in" not in within.err


def test_init_beside_ones_own_workspace_says_how_the_folder_becomes_one(cli, vault, home, monkeypatch):
    monkeypatch.chdir(home.parent)
    assert "init ." not in cli("init").err
    monkeypatch.chdir(vault)

    assert "`plainmind init .`" in cli("init").err
    assert not (vault / ".plainmindignore").exists()
    assert cli("init", ".").status == 0
    assert "VLAN 40" in cli("search", "printer VLAN").out


def test_a_workspace_that_a_program_has_made_and_nobody_used_is_in_nobodys_way(cli, vault, home):
    (home / "workspace" / "memory").mkdir(parents=True)

    assert "VLAN 40" in cli("search", "printer VLAN").out
    (home / "workspace" / "memory" / "2026-02-03.md").write_text("# 2026-02-03\n\n- The modem is blue.\n")
    assert cli("status", "--json").json["workspaceDir"] == str(home / "workspace")


def test_a_vault_that_happens_to_have_a_memory_folder_says_what_it_does_not_read(cli, vault):
    (vault / "memory").mkdir()
    (vault / "memory" / "palace.md").write_text("# Palace\n\nThe method of places.\n")
    (vault / "Pasta.md").write_text("# Pasta\n\nBoil it for eleven minutes.\n")

    answer = cli("search", "how long does pasta boil?")

    assert "3 Markdown files are not read" in answer.err
    assert "`.plainmindignore`" in answer.err
    (vault / ".plainmindignore").touch()
    answer = cli("search", "how long does pasta boil?")
    assert "eleven minutes" in answer.out
    assert "not read" not in answer.err


def test_an_agents_workspace_speaks_of_a_few_other_files_only_where_nothing_is_found(cli, vault):
    (vault / "memory").mkdir()
    for number in range(5):
        (vault / "memory" / f"{number}.md").write_text(f"# Palace {number}\n\nThe method of places.\n")

    found = cli("search", "where is the zeppelin of the palace moored?")
    assert found.out
    assert "nothing certain" in found.err
    assert "not read" not in found.err
    assert "2 Markdown files are not read" in cli("search", "zeppelin").err


def test_a_folder_that_is_too_wide_is_not_recommended(cli, home, monkeypatch):
    cli("init")
    cli("remember", "The modem is blue.")
    (home.parent / "letter.md").write_text("# Letter\n")
    monkeypatch.chdir(home.parent)
    monkeypatch.setenv("HOME", str(home.parent))

    assert "--workspace ." not in cli("search", "zeppelin").err


def test_nothing_is_written_into_a_folder_that_nobody_chose(cli, vault):
    before = contents(vault)

    answer = cli("remember", "The modem is blue.")

    assert answer.status == 1
    assert f"plainmind init {vault}" in answer.err
    assert contents(vault) == before


def test_init_says_what_it_will_index_and_what_not(cli, vault):
    said = cli("init").out
    told = cli("init", "--json").json

    assert "made .plainmindignore" in said
    assert "1 note" in said
    assert "left out: templates" in said
    assert told["created"] == []
    assert (told["isFolderOfNotes"], told["notes"]) == (True, 1)
    assert [left["path"] for left in told["leftOut"]] == ["templates"]
    assert sorted(os.listdir(vault)) == [".plainmindignore", "Home", "templates"]


def test_init_says_of_a_vault_with_a_memory_folder_what_it_does_not_read_and_how_it_would(cli, vault):
    (vault / "memory").mkdir()
    (vault / "memory" / "palace.md").write_text("# Palace\n\nThe method of places.\n")
    (vault / "node_modules" / "left-pad").mkdir(parents=True)
    (vault / "node_modules" / "left-pad" / "README.md").write_text("# left-pad\n")
    (vault / "node_modules notes").mkdir()
    (vault / "node_modules notes" / "npm.md").write_text("# npm\n")

    said = cli("init", ".").out

    assert "made MEMORY.md" in said
    assert "only MEMORY.md and memory/ are the memory: 2 notes" in said
    assert "3 Markdown files are not read, such as Home/Printer.md" in said
    assert f"touch {vault}/.plainmindignore" in said
    assert cli("init", ".", "--json").json["notRead"] == 3
    (vault / ".plainmindignore").touch()
    assert "all Markdown in it is the memory: 4 notes" in cli("init", ".").out


def test_init_does_not_speak_of_other_notes_where_there_are_none(cli, tmp_path):
    assert "not read" not in cli("init", "notes", "--write").out
    assert "not read" not in cli("init", "notes", "--write").out


def test_what_is_remembered_in_a_vault_lies_beside_its_notes_and_both_are_found(cli, vault):
    cli("init")
    cli("remember", "The modem is blue.")
    cli("remember", "--durable", "Prefers tea.")

    assert sorted(os.listdir(vault)) == [".plainmindignore", "Home", "MEMORY.md", "memory", "templates"]
    assert "VLAN 40" in cli("search", "printer VLAN").out
    assert "blue" in cli("search", "modem blue").out


def test_a_note_for_a_folder_named_by_its_path_keeps_the_others_in_the_memory(cli, vault):
    cli("remember", "The modem is blue.", "--workspace", str(vault))

    assert "VLAN 40" in cli("search", "printer VLAN", "--workspace", str(vault)).out
    assert "All Markdown" in (vault / ".plainmindignore").read_text()


def test_an_agents_workspace_can_be_made_in_a_folder_with_notes(cli, vault):
    assert cli("init", ".", "--agent-workspace", "--json").json["created"] == ["MEMORY.md", "memory/"]
    assert cli("list", "--json").json["files"][0]["path"] == "MEMORY.md"


def test_a_folder_of_notes_becomes_no_agents_workspace_by_accident(cli, vault):
    cli("init")

    refused = cli("init", ".", "--agent-workspace")

    assert refused.status == 1
    assert "delete that file first" in refused.err
    assert not (vault / "MEMORY.md").exists()


def test_a_readme_makes_no_folder_of_notes(cli, tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "README.md").write_text("# Project\n")

    assert cli("init", "project", "--json").json["created"] == ["MEMORY.md", "memory/"]


def test_a_home_is_refused_with_a_way_out(cli, tmp_path, monkeypatch):
    (tmp_path / "person").mkdir()
    (tmp_path / "person" / "note.md").write_text("x\n")
    monkeypatch.setenv("HOME", str(tmp_path / "person"))

    answer = cli("search", "x", "--workspace", str(tmp_path / "person"))

    assert answer.status == 1
    assert "too wide" in answer.err
    monkeypatch.chdir(tmp_path / "person")
    assert cli("status", "--json").json["workspaceDir"] != str(tmp_path / "person")


def test_links_of_a_note_and_to_it_are_shown(cli, vault):
    (vault / "Index.md").write_text("- [[Printer|the printer]] and [[Nothing]]\n")
    (vault / "Home" / "Printer.md").write_text("---\naliases: [laser]\n---\n# Printer\n\n[[Index]] #office\n")

    printer, index = cli("links", "laser"), cli("links", "Index.md", "--json").json

    assert printer.out.splitlines() == [
        "Home/Printer.md",
        "  called: Printer, laser",
        "  tags: #office",
        "links to 1 place",
        "  line 6: Index.md",
        "linked from 1 place",
        "  Index.md:1  - [[Printer|the printer]] and [[Nothing]]",
    ]
    assert index["links"][0] == {
        "line": 1,
        "target": "Printer",
        "path": "Home/Printer.md",
        "embed": False,
        "label": "the printer",
    }
    assert index["links"][1]["path"] is None
    assert [back["path"] for back in index["backlinks"]] == ["Home/Printer.md"]
    assert "no such note" in cli("links", "Index").out
    assert cli("links", "Nowhere").status == 1
    assert cli("get", "[[laser]]", "--lines", "1").out == "---\n"


def test_a_folder_of_that_name_is_not_taken_for_conversations(cli, vault):
    (vault / "sessions").mkdir()
    (vault / "sessions" / "Dragons.md").write_text("# Dragons\n\nThe party met a green dragon.\n")

    assert cli("search", "green dragon", "--json").json["results"][0]["path"] == "sessions/Dragons.md"
    assert cli("get", "sessions/Dragons.md#L3").out == "The party met a green dragon.\n"


COPIES = [
    "Printer.sync-conflict-20260210-120000-ABCDEF.md",
    "Printer (Anna's conflicted copy 2026-02-10).md",
    "Printer (conflicted copy 2026-02-10 120000).md",
    "Printer (Conflicted copy laptop 202602101200).md",
    "Printer (in Konflikt stehende Kopie von Anna 2026-02-10).md",
    "Printer (Annaの競合コピー 2026-02-10).md",
    "Printer (SFConflict anna@x.org 2026-02-10-12-00-00).md",
]


@pytest.mark.parametrize("name", COPIES)
def test_a_conflicted_copy_is_not_read_and_told(cli, vault, name):
    (vault / "Home" / name).write_text("# Printer\n\nIt is on VLAN 41.\n")

    told = [check for check in cli("doctor", "--json").json["checks"] if check["name"] == "conflicted copies"]

    assert [(check["verdict"], name in check["detail"]) for check in told] == [("warning", True)]
    assert "merge it" in told[0]["hint"]
    assert "41" not in cli("search", "printer VLAN").out


def test_a_numbered_copy_is_told_when_it_says_the_same_and_a_second_part_is_not(cli, vault):
    (vault / "Home" / "Printer 2.md").write_text("# Printer\n\nIt is on VLAN 40.\nNew toner.\n")
    (vault / "Part.md").write_text("# One\n")
    (vault / "Part 2.md").write_text("# Two\n")
    (vault / "Marx (conflict theory).md").write_text("# Conflict\n\nClasses.\n")

    told = [check for check in cli("doctor", "--json").json["checks"] if check["name"] == "conflicted copies"]

    assert [
        "Home/Printer 2.md says much the same as Home/Printer.md" in check["detail"] for check in told
    ] == [True]
    assert "Marx" in cli("list").out


def test_what_is_left_out_on_purpose_is_no_warning(cli, vault):
    (vault / ".obsidian").mkdir()
    (vault / "link.md").symlink_to("Home/Printer.md")

    told = [check for check in cli("doctor", "--json").json["checks"] if check["name"] == "skipped files"]

    assert [(check["verdict"], check["detail"]) for check in told] == [
        ("warning", "link.md: a symbolic link, not followed"),
        ("ok", "2 names are hidden or ignored; `plainmind status` lists them"),
    ]


def test_the_notes_beside_an_agents_memory_are_told(cli, vault):
    (vault / "MEMORY.md").write_text("# Memory\n")

    (told,) = [check for check in cli("doctor", "--json").json["checks"] if check["name"] == "notes beside"]

    assert "2 Markdown files are not read" in told["detail"]
    assert ".plainmindignore" in told["hint"]


def test_a_note_that_is_linked_twice_in_a_line_is_shown_once(cli, vault):
    (vault / "Recall.md").write_text("# Recall\n")
    (vault / "Precision.md").write_text("High [[Recall]] is low [[Precision]], and low [[Recall]] is high.\n")

    leads = cli("links", "Precision").out
    led_to = cli("links", "Recall").out

    assert leads.count("line 1: Recall.md") == 1
    assert "links to 2 places" in leads
    assert led_to.count("Precision.md:1") == 1
    assert "linked from 1 place" in led_to
