"""`import`: conversations of other programs, from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest
from tests.cli.terminal import COMMAND

SESSION = "5f0c7f0e-1d0a-4f5a-9a53-0d8d1b6f2c11"


def claude_line(uuid, text):
    message = {"role": "user", "content": text}
    return {"type": "user", "uuid": uuid, "timestamp": "2026-02-10T09:30:00.000Z", "message": message}


def as_bytes(*lines):
    return b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)


@pytest.fixture
def claude(tmp_path):
    """`~/.claude`, where the program itself would keep it."""
    path = tmp_path / ".claude" / "projects" / "-boat" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(
        as_bytes(claude_line("u1", "Which wood for the hull?"), claude_line("u2", "And for the keel?"))
    )
    return path


def test_an_import_says_what_came_and_how_to_search_it(cli, workspace, claude):
    answer = cli("import", "claude-code")

    assert (answer.status, answer.out) == (0, "imported 1 new session: 2 messages\n")
    assert answer.err.splitlines() == ['hint: search them: plainmind search "…"']
    assert cli("import", "claude-code").out == "nothing new to import, 1 unchanged\n"


def test_the_commands_that_an_import_offers_find_what_was_imported(cli, workspace, claude):
    cli("import", "claude-code")

    found = cli("sessions", "search", "wood for the hull", "--json").json["results"][0]
    assert (found["source"], found["path"]) == ("sessions", f"sessions/{SESSION}.jsonl")

    hits = cli("search", "which wood for the hull", "--json").json["results"]
    assert f"sessions/{SESSION}.jsonl" in {hit["path"] for hit in hits}
    assert not cli("import", "claude-code", "--again").err


def test_without_a_program_it_says_what_is_here_and_takes_nothing(cli, workspace, claude, home):
    note = claude.parent / "memory" / "wood.md"
    note.parent.mkdir()
    note.write_text("# Wood\n\nThe hull is of larch.\n")

    told = cli("import")
    found = cli("import", "--json").json["found"]

    assert [line.split()[:3] for line in told.out.splitlines()] == [
        ["claude-code", "1", "transcript"],
        ["claude-memory", "1", "note"],
    ]
    assert "plainmind import all" in told.err
    assert [(row["program"], row["files"]) for row in found] == [("claude-code", 1), ("claude-memory", 1)]
    assert not (home / "agents" / "main" / "sessions").exists()


def test_without_anything_to_import_it_says_where_it_looked(cli, workspace):
    answer = cli("import")

    assert answer.out == "no conversations of other programs were found on this machine\n"
    assert "looked for openclaw, claude-code" in answer.err


def test_all_that_is_here_is_imported_once(cli, workspace, claude):
    note = claude.parent / "memory" / "wood.md"
    note.parent.mkdir()
    note.write_text("# Wood\n\nThe hull is of larch. <private>My PIN is 1234.</private>\n")

    first, second = cli("import", "all"), cli("import", "all")

    assert first.out.splitlines() == [
        "claude-code: imported 1 new session: 2 messages",
        "claude-memory: imported 1 note",
    ]
    assert second.out.splitlines() == [
        "claude-code: nothing new to import, 1 unchanged",
        "claude-memory: nothing new to import, 1 unchanged",
    ]
    copy = workspace / "memory/claude-code/boat/wood.md"
    assert "larch" in copy.read_text()
    assert "1234" not in copy.read_text()
    assert "PATH" in cli("import", "all", "/somewhere").err


def test_what_one_program_cannot_give_keeps_no_other_from_being_imported(cli, claude, tmp_path):
    (claude.parent / "memory").mkdir()
    (claude.parent / "memory" / "wood.md").write_text("# Wood\n")
    rollout = tmp_path / ".codex" / "sessions" / f"rollout-{SESSION}.jsonl"
    rollout.parent.mkdir(parents=True)
    rollout.write_bytes(as_bytes({"type": "message", "role": "user", "content": "Which keel?"}))

    answer = cli("import", "all", "--workspace", str(tmp_path / "nowhere"))

    assert [line.partition(":")[0] for line in answer.out.splitlines()] == [
        "claude-code",
        "claude-memory",
        "codex",
    ]
    assert "codex: imported 1 new session: 1 message" in answer.out
    assert "there is no workspace" in answer.err


def test_a_note_of_claude_is_copied_again_but_never_over_what_was_done_here(cli, workspace, claude):
    folder = claude.parent / "memory"
    folder.mkdir()
    for name in ("wood", "keel", "sail"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nfirst\n")
    cli("import", "claude-memory")
    copies = workspace / "memory/claude-code/boat"
    (copies / "keel.md").write_text("# keel\n\nmine\n")
    (copies / "sail.md").unlink()
    for name in ("wood", "keel", "sail"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nsecond\n")

    answer = cli("import", "claude-memory")

    assert answer.out == "imported 1 note\n"
    assert "2 notes left out: edited or deleted here since" in answer.err
    assert "second" in (copies / "wood.md").read_text()
    assert "mine" in (copies / "keel.md").read_text()
    assert not (copies / "sail.md").exists()
    assert cli("import", "claude-memory", "--again").out == "imported 2 notes, 1 unchanged\n"
    assert "second" in (copies / "sail.md").read_text()


def test_an_import_as_json_has_exactly_the_promised_shape(cli, workspace, claude, home):
    with claude.open("ab") as file:
        file.write(b"{damaged\n")

    answer = cli("import", "claude-code", str(claude), "--json").json

    copy = home / "agents" / "main" / "sessions" / f"{SESSION}.jsonl"
    assert answer == {
        "schema_version": 1,
        "path": str(claude),
        "program": "claude-code",
        "dryRun": False,
        "sessions": [
            {
                "key": f"claude-code:{SESSION}",
                "id": SESSION,
                "agent": None,
                "path": str(copy),
                "original": str(claude),
                "isNew": True,
                "entries": 2,
                "messages": 2,
            }
        ],
        "notes": [],
        "messages": 2,
        "unchanged": 0,
        "withoutMessages": 0,
        "damaged": [{"path": str(claude), "line": 3, "reason": "not a JSON object"}],
        "damagedCount": 1,
        "failed": [],
        "leftOut": [],
        "empty": [],
        "searched": True,
    }


def test_a_rehearsal_writes_nothing(cli, workspace, claude, home):
    answer = cli("import", "claude-code", "--dry-run")

    assert answer.out == "would import 1 new session: 2 messages\n"
    assert not (home / "agents").exists()


def test_damage_is_named_and_strict_makes_it_count(cli, workspace, claude):
    with claude.open("ab") as file:
        file.write(b"{damaged\n" * 12)

    answer = cli("import", "claude-code", "--strict")

    assert answer.status == 3
    assert answer.out == "imported 1 new session: 2 messages\n"
    assert f"{claude}:3: not a JSON object" in answer.err
    assert "and 2 more" in answer.err


def test_agents_of_openclaw_keep_their_names_unless_one_is_chosen(cli, workspace, tmp_path, home):
    for agent in ("main", "work"):
        folder = tmp_path / ".openclaw" / "agents" / agent / "sessions"
        folder.mkdir(parents=True)
        message = {"type": "message", "id": "e1", "message": {"role": "user", "content": f"said to {agent}"}}
        (folder / f"{agent}-1.jsonl").write_bytes(as_bytes({"type": "session", "id": f"{agent}-1"}, message))

    answer = cli("import", "openclaw")

    assert "imported 2 new sessions" in answer.out
    assert 'plainmind search --agent work "…"' in answer.err
    assert cli("sessions", "--agent", "work", "-q").out == "openclaw:work-1\n"
    assert cli("sessions", "-q").out == "openclaw:main-1\n"

    all_in_one = cli("import", "openclaw", "--agent", "both")
    assert all_in_one.err.splitlines()[0] == 'hint: search them: plainmind search --agent both "…"'
    assert sorted(cli("sessions", "--agent", "both", "-q").out.split()) == [
        "openclaw:main-1",
        "openclaw:work-1",
    ]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["import", "icq", "x"], "invalid choice: 'icq'"),
        (["import", "massages", "x"], "did you mean `messages`?"),
        (["import", "./chat.json"], "plainmind import messages ./chat.json"),
        (["import", "./chat.json"], "say before it whose conversations lie there"),
        (["import", "messages"], "needs a PATH"),
        (["import", "codex", "nowhere"], "there is no"),
        (["import", "codex"], "there is no"),
        (["import", "codex", "x", "--watch", "--dry-run"], "--watch goes neither with"),
    ],
)
def test_what_cannot_be_imported_is_said_in_a_sentence(cli, workspace, argv, words):
    answer = cli(*argv)

    assert answer.status in {1, 2}
    assert words in answer.err
    assert "hint: " in answer.err


@pytest.mark.parametrize("whose", [["claude-code"], ["all"], []])
def test_watching_imports_what_is_added_until_it_is_told_to_stop(workspace, claude, whose):
    process = subprocess.Popen(
        [COMMAND, "import", *whose, "--watch", "--json"], stdout=subprocess.PIPE, env=os.environ
    )
    try:
        first = json.loads(process.stdout.readline())
        with claude.open("ab") as file:
            file.write(as_bytes(claude_line("u3", "And the mast?")))
        second = json.loads(process.stdout.readline())
    finally:
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout=60)
        process.stdout.close()

    assert (first["messages"], second["messages"], status) == (2, 1, 0)


def test_a_file_of_which_nothing_is_taken_says_why_each_time(cli, workspace, tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"user": "x"}')

    for _ in range(2):
        answer = cli("import", "messages", str(path))
        assert answer.out == "nothing was imported\n"
        assert (
            f"nothing to take in {path}: it is an object with `user`, and no list of messages" in answer.err
        )
        assert "ChatGPT's conversations.json" in answer.err
    assert [empty["path"] for empty in cli("import", "messages", str(path), "--json").json["empty"]] == [
        str(path)
    ]
