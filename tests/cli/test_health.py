"""`status` and `doctor` tell what is known and what is wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

PROMISED = {
    "backend", "provider", "model", "files", "chunks", "dirty", "workspaceDir", "dbPath", "sources", "sourceCounts",
    "cache", "fts", "vector", "fallback",
}  # fmt: skip


def test_status_as_json_has_the_promised_fields(cli, workspace):
    before = cli("status", "--json").json
    cli("sync")
    after = cli("status", "--json").json

    assert before.keys() >= PROMISED
    assert (before["files"], before["dirty"]) == (0, True)
    assert (after["files"], after["dirty"], after["workspaceDir"]) == (3, False, str(workspace))
    assert after["sourceCounts"][0]["files"] == 3


def test_status_says_what_is_kept_where_and_what_leaves_the_machine(cli, workspace, home):
    cli("sync")

    answer = cli("status")

    assert "3 files" in answer.out
    assert str(home) in answer.out
    assert "nothing leaves this machine" in answer.out
    assert answer.err == ""


def test_status_and_doctor_name_the_reranker(cli, workspace):
    line = next(line for line in cli("status").out.splitlines() if line.startswith("reranker"))

    assert line == "reranker   plainmind-reranker-2 reads again for agents, and for people with --deep"
    assert "reads again in every search" in cli("status", "--config", "rerank.mode=always").out
    assert "for people with --deep alone" in cli("status", "--config", "rerank.mode=off").out
    assert cli("status", "--json").json["reranker"]["model"] == "plainmind-reranker-2"
    assert " reranker: plainmind-reranker-2 reads again for agents" in cli("doctor").out


def test_status_says_that_there_is_no_reranker(cli, workspace, monkeypatch):
    monkeypatch.setattr("plainmind.guests.rerank.reranker.PACKAGE", "plainmind_no_such_weights")

    assert "reranker   not installed: agents and people look once" in cli("status").out
    assert (
        "reranker   not installed, and `rerank.mode` is always"
        in cli("status", "--config", "rerank.mode=always").out
    )


def test_status_names_the_host_that_a_chat_is_sent_to(cli, workspace, monkeypatch):
    assert cli("status", "--json").json["chat"] is None

    monkeypatch.setenv("PLAINMIND_CHAT_MODEL", "larch-1")
    assert "recalled to api.openai.com; nothing else leaves this machine" in cli("status").out
    monkeypatch.setenv("PLAINMIND_CHAT_BASEURL", "https://chat.example.org/v1")
    told = cli("status", "--json").json["chat"]
    assert told == {"provider": "openai", "model": "larch-1", "to": "chat.example.org"}


def test_an_address_that_no_chat_can_use_is_a_fact_of_the_status(cli, workspace, monkeypatch):
    monkeypatch.setenv("PLAINMIND_CHAT_MODEL", "larch-1")
    monkeypatch.setenv("PLAINMIND_CHAT_BASEURL", "https://me:mine@chat.example.org/v1")

    answer = cli("status")

    assert answer.status == 0
    assert "`chat.baseUrl` cannot be used" in answer.out
    assert "mine" not in answer.out


def test_status_counts_the_files_of_each_source(cli, workspace):
    cli("sync")

    shown = cli("status", "--config", "sources=memory,sessions").out

    assert "files (3 of memory, 0 of sessions), " in shown


def test_a_deep_status_measures(cli, workspace):
    cli("sync")

    facts = cli("status", "--deep", "--json").json
    assert facts["sizes"]["indexBytes"] > facts["sizes"]["workspaceBytes"] > 0
    assert list(facts["sizes"]) == [
        f"{name}Bytes" for name in ("workspace", "transcripts", "index", "cache", "history", "tombstones")
    ]
    assert facts["bounds"] == {
        "cacheBytes": 512 * 1024**2, "historyBytes": 200 * 1024**2, "tombstonesBytes": 256 * 1024,
    }  # fmt: skip
    assert facts["store"]["parts"]["texts"] > 0
    shown = cli("status", "--deep").out
    assert "cache 0 bytes of 537 MB, history 0 bytes of 210 MB" in shown
    assert "index of   texts " in shown


def test_status_says_that_the_index_is_behind(cli, workspace):
    cli("sync")
    (workspace / "memory" / "new.md").write_text("A quokka.\n")

    assert "the index is behind: 1 changed" in cli("status").err


def test_status_names_what_is_left_out_and_why(cli, workspace):
    for number in range(12):
        (workspace / "memory" / f"link{number}.md").symlink_to(workspace / "MEMORY.md")

    answer = cli("status")

    assert "memory/link0.md: a symbolic link" in answer.out
    assert "and 2 more" in answer.out


def test_status_of_a_missing_workspace_says_how_to_make_one(cli, tmp_path):
    answer = cli("status", "--workspace", "nowhere")

    assert answer.status == 0
    assert "there is no workspace" in answer.err
    assert "plainmind init" in answer.err
    assert cli("status", "--workspace", "nowhere", "--json").json["workspaceMissing"] is True


def test_status_of_an_empty_workspace_says_what_to_do(cli, tmp_path):
    (tmp_path / "empty").mkdir()

    assert "plainmind remember" in cli("status", "--workspace", "empty").err


def test_status_without_vectors_says_that_words_answer(cli, workspace):
    assert "words alone answer" in cli("status", "--config", "provider=none").out


def test_a_healthy_memory_has_no_problem(cli, workspace):
    cli("sync")

    answer = cli("doctor", "--verify")
    checks = cli("doctor", "--json").json

    assert answer.status == 0
    assert "✗" not in answer.out
    assert "✓ workspace" in answer.out
    assert checks["ok"] is True
    assert list(checks["checks"][0]) == ["name", "verdict", "detail", "hint"]


def test_a_missing_workspace_is_a_problem_with_status_1(cli, workspace):
    shutil.rmtree(workspace)

    answer = cli("doctor")

    assert answer.status == 1
    assert "✗ workspace" in answer.out
    assert cli("doctor", "--json").json["ok"] is False


def test_a_quiet_doctor_speaks_only_of_what_is_not_fine(cli, workspace):
    assert "✓" not in cli("doctor", "--quiet").out


def test_a_note_that_vanished_from_its_file_is_found_by_verify(cli, workspace):
    note = cli("remember", "Tea, not coffee.", "--json").json
    (workspace / note["path"]).write_text("# emptied by an editor\n")

    answer = cli("doctor", "--verify")

    assert answer.status == 1
    assert "✗ written notes" in answer.out


def test_status_of_a_vanished_workspace_does_not_advise_to_make_a_new_one(cli, workspace, tmp_path):
    cli("sync")
    workspace.rename(tmp_path / "elsewhere")

    answer = cli("status")

    assert "cannot be read; 3 files answered from the index" in answer.err
    assert "plainmind init" not in answer.err


def test_status_says_that_an_index_was_damaged(cli, workspace, home):
    cli("sync")
    for database in home.glob("index/**/*.sqlite"):
        database.write_bytes(b"this is not a database" * 1000)
    cli("search", "gateway")

    assert "damaged    the index was made anew once" in cli("status").out


def test_a_file_that_may_not_be_read_is_named(process, as_plain_user, workspace):
    (workspace / "MEMORY.md").chmod(0)

    assert "! workspace: no permission to read MEMORY.md" in as_plain_user("doctor").out


def test_status_names_the_entries_where_there_are_any(cli, workspace, home, monkeypatch):
    monkeypatch.setenv("PLAINMIND_ENTRIES_DRIVER", "sqlite")
    assert cli("status", "--json").json["entries"] is None
    assert "\nentries " not in cli("status").out

    cli("entries", "store", "Anna prefers tea")
    file = home / "entries" / "main" / "entries.jsonl"
    with file.open("a") as opened:
        opened.write('{"id": "01W", "text": "Ben prefers milk", "waiting": true}\nno entry\n')

    facts = cli("status", "--json").json["entries"]
    assert facts == {
        "enabled": False, "driver": "sqlite", "path": str(file), "entries": 1, "waiting": 1, "unreadable": 1,
        "problem": None, "hint": None,
    }  # fmt: skip
    told = cli("status").out
    assert f"1 entry, 1 to review in {file} (sqlite, not given to agents)" in told
    assert "1 line of the file cannot be read as an entry" in told
    assert "their index is up to date" in cli("status", "--deep").out


def test_doctor_looks_at_the_entries_and_their_index(cli, workspace, home, monkeypatch):
    monkeypatch.setenv("PLAINMIND_ENTRIES_DRIVER", "sqlite")
    assert " entries: " not in cli("doctor").out

    cli("entries", "store", "Anna prefers tea")
    assert "✓ entries: their index is in sqlite, and up to date" in cli("doctor").out

    file = home / "entries" / "main" / "entries.jsonl"
    with file.open("a") as opened:
        opened.write('{"id": "01K", "text": "Ben prefers milk"}\n')
        opened.write('{"id": "01W", "text": "Eva prefers beer", "waiting": true}\nno entry\n')
    answer = cli("doctor")
    assert answer.status == 0
    assert f"✓ entries: 2 in {file}, not given to agents" in answer.out
    assert "✓ entries: 1 to be reviewed" in answer.out
    assert "! entries: lines" in answer.out
    assert "their index in sqlite lacks 1 change;" in answer.out

    shutil.rmtree(home / "entries" / "main" / "index")
    assert "their index in sqlite is not made yet" in cli("doctor").out


def test_entries_that_are_on_and_cannot_be_read_are_a_problem(cli, workspace, home, monkeypatch):
    monkeypatch.setenv("PLAINMIND_ENTRIES_DRIVER", "sqlite")
    file = home / "entries" / "main" / "entries.jsonl"
    file.mkdir(parents=True)

    assert "! entries: " in cli("doctor").out
    monkeypatch.setenv("PLAINMIND_ENTRIES_ENABLED", "true")
    answer = cli("doctor")
    assert answer.status == 1
    assert "✗ entries: " in answer.out
    told = cli("status").out
    assert f"not known in {file} (sqlite)" in told
    assert "\nproblem " in told


def test_doctor_mentions_folders_that_are_for_an_id_in_whatever_channel_once(cli, workspace):
    shared = workspace / "memory" / "shared-with"
    for folder in ("telegram/group--7", "everyone"):
        (shared / folder).mkdir(parents=True)
        (shared / folder / "trip.md").write_text("# Trip\n")
    assert " sharing: " not in cli("doctor").out

    for folder in ("group--100", "person-anna"):
        (shared / folder).mkdir()
        for name in ("a.md", "b.md"):
            (shared / folder / name).write_text("# Trip\n")
    found = [check for check in cli("doctor", "--json").json["checks"] if check["name"] == "sharing"]
    assert [check["verdict"] for check in found] == ["ok"]
    assert "memory/shared-with/group--100, memory/shared-with/person-anna" in found[0]["detail"]
    assert "CHANNEL" in found[0]["hint"]


def test_a_line_with_two_secrets_is_named_once_and_both_are_counted(cli, workspace):
    (workspace / "MEMORY.md").write_text(
        "# Memory\n\n- db: password=Xq7vR2mPz9Lk and password=Wt5nB8sYd3Jh\n"
    )

    said = cli("doctor").out

    assert said.count("MEMORY.md:3: password") == 1
    assert "2 secrets in notes" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{ query: { maxResults: 'six' } }", "`query.maxResults` must be a whole number"),
        ("{ query: { maxResults: 6 ", "is not valid JSON5 at line 1"),
        ("{ quary: {} }", "unknown setting `quary`"),
        ("", "plainmind.json5 is empty"),
    ],
)
def test_doctor_says_what_is_broken_in_the_settings_and_goes_on(cli, workspace, home, text, said):
    home.mkdir()
    (home / "plainmind.json5").write_text(text)

    answer = cli("doctor")

    assert answer.status == 1
    assert answer.out.startswith("✗ settings: ")
    assert said in answer.out.splitlines()[0]
    assert "✓ workspace: " in answer.out
    assert "✓ embedding: " in answer.out
    assert cli("search", "anything").status == 1  # everybody else is told, and waits


def test_doctor_goes_on_with_a_broken_variable_and_a_broken_file_of_a_project(cli, workspace, monkeypatch):
    monkeypatch.setenv("PLAINMIND_QUERY_MAXRESULTS", "six")
    (workspace / ".plainmind.json5").write_text("{ remote: { apiKey: 'mine' } }")

    lines = [line for line in cli("doctor").out.splitlines() if line.startswith("✗")]

    assert len(lines) == 2
    assert "`query.maxResults` must be a whole number" in lines[0]
    assert "a project file may not set `remote.apiKey`" in lines[1]


WITHOUT_PSYCOPG = """
import sys
sys.modules["psycopg"] = None
from plainmind.cli.main import main
sys.exit(main(["doctor"]))
"""


def test_doctor_goes_on_where_the_chosen_store_is_not_installed(workspace, home):
    home.mkdir()
    (home / "plainmind.json5").write_text(
        "{ store: { driver: 'postgres', dsn: 'postgresql://nobody@127.0.0.1:1/x' } }"
    )

    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_PSYCOPG], capture_output=True, encoding="utf-8", check=False
    )

    assert answer.returncode == 1, answer.stderr
    assert "✓ workspace: " in answer.stdout
    assert "✗ index: " in answer.stdout


def test_a_home_that_cannot_be_made_is_answered_with_another_place_for_it(
    as_plain_user, workspace, tmp_path, monkeypatch
):
    closed = tmp_path / "closed"
    closed.mkdir()
    monkeypatch.setenv("PLAINMIND_HOME", str(closed / "state"))
    closed.chmod(0o555)
    try:
        searched, examined = as_plain_user("search", "printer"), as_plain_user("doctor")
        (tmp_path / "other").mkdir()
        monkeypatch.setenv("PLAINMIND_HOME", str(tmp_path / "other"))
        assert as_plain_user("search", "printer").status == 0
        (tmp_path / "other").chmod(0o555)
        unwritable = as_plain_user("doctor")
    finally:
        closed.chmod(0o755)
        (tmp_path / "other").chmod(0o755)

    assert searched.err.splitlines()[0] == f"error: could not create {closed}/state: Permission denied"
    assert searched.err.rstrip().endswith("or set PLAINMIND_HOME to a folder that you may write")
    lines = examined.out.splitlines()
    assert f"✗ home: could not create {closed}/state: Permission denied" in lines
    assert f"✓ workspace: {workspace}: 3 files (named by PLAINMIND_WORKSPACE)" in lines
    assert (
        f"✗ home: {tmp_path}/other cannot be written: the index and the history are kept there"
        in unwritable.out
    )


@pytest.mark.parametrize("change", ["note", "edit"])
def test_the_history_of_a_workspace_that_was_moved_is_named_with_the_command_that_brings_it_back(
    cli, workspace, tmp_path, monkeypatch, change
):
    if change == "note":
        cli("remember", "The modem is blue.")
    else:
        cli("edit", "MEMORY.md", "--old", "VLAN 40", "--new", "VLAN 41")
    assert "former path" not in cli("doctor").out
    workspace.rename(tmp_path / "moved")
    monkeypatch.setenv("PLAINMIND_WORKSPACE", str(tmp_path / "moved"))
    (tmp_path / "another").mkdir()
    assert "former path" not in cli("doctor", "--workspace", str(tmp_path / "another")).out

    checks = cli("doctor", "--json").json["checks"]
    (former,) = [check for check in checks if check["name"] == "former path"]
    subprocess.run(former["hint"].partition("copied: ")[2], shell=True, check=True)

    assert "former path" not in cli("doctor").out
    assert cli("undo").status == 0
