"""`sessions`: conversations from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.cli.terminal import at_a_terminal

from plainmind.sessions.store import SessionStore


@pytest.fixture
def store(home):
    return SessionStore(home / "agents" / "main" / "sessions")


@pytest.fixture
def talk(store):
    """A conversation of three messages and a tool."""
    session = store.create("agent:main:main", id="talk-1", displayName="About boats")
    session.append({"role": "user", "content": "Which wood for the hull?"}, id="m1")
    call = {"type": "toolCall", "id": "t1", "name": "look", "arguments": {"at": "shed"}}
    session.append({"role": "assistant", "content": [call]}, id="m2")
    session.append(
        {"role": "toolResult", "toolCallId": "t1", "content": [{"type": "text", "text": "larch"}]}, id="m3"
    )
    session.append(
        {"role": "assistant", "content": [{"type": "text", "text": "Larch, on\noak frames."}]}, id="m4"
    )
    return session


def test_sessions_are_listed_the_latest_first(cli, talk, store):
    older = store.create("agent:main:old", updatedAt=1_700_000_000_000)
    os.utime(older.path, (1.7e9, 1.7e9))

    rows = cli("sessions", "list", "--json").json["sessions"]

    assert [row["key"] for row in rows] == ["agent:main:main", "agent:main:old"]
    assert list(rows[0]) == ["key", "id", "path", "format", "updatedAt", "bytes", "entry"]
    text = cli("sessions").out
    assert "agent:main:main  About boats" in text
    assert cli("sessions", "list", "-n", "1", "-q").out.count("\n") == 1


def test_a_session_is_dated_by_what_was_said_last_and_not_by_its_file(cli, talk, store):
    older = store.create("agent:main:old", id="old-1")
    older.append({"role": "user", "content": "long ago", "timestamp": 1_600_000_000_000})
    older.append({"type": "model_change", "modelId": "new"})
    transcript = Path(older.path)
    lines = [_said_at(line, "2020-09-13T12:26:40Z") for line in transcript.read_text().splitlines()]
    transcript.write_text("\n".join(lines) + "\n")
    store.update("agent:main:old", label="touched just now")

    rows = cli("sessions", "list", "--json").json["sessions"]

    assert [row["key"] for row in rows] == ["agent:main:main", "agent:main:old"]
    assert rows[1]["updatedAt"] == 1_600_000_000_000
    assert cli("sessions", "list").out.splitlines()[1].startswith("2020-09-13")
    cli("sessions", "archive", "agent:main:old")
    cli("sessions", "archive", "agent:main:main")
    shown = cli("sessions", "list", "--archived").out.splitlines()
    assert [line.split("  ")[-2:] for line in shown] == [
        ["agent:main:main", "About boats"],
        ["agent:main:old", "touched just now"],
    ]
    assert shown[1].startswith("2020-09-13")
    assert "old-1.jsonl.reset." in shown[1]
    assert len(cli("sessions", "list", "--archived", "-n", "1").out.splitlines()) == 1


def test_a_list_shows_no_secret(cli, store):
    secret = "ghp_" + "a1B2" * 9
    store.create("agent:main:main", displayName=f"deploy with {secret}", origin={"password": "swordfish"})

    listed = cli("sessions", "list")
    as_json = cli("sessions", "list", "--json")
    refused = cli("sessions", "delete", "agent:main:main")
    cli("sessions", "archive", "agent:main:main")
    archived = cli("sessions", "list", "--archived")
    archived_json = cli("sessions", "list", "--archived", "--json")

    assert "deploy with [redacted:github#" in listed.out
    assert "deploy with [redacted:github#" in as_json.out
    assert "deploy with [redacted:github#" in archived.out
    for answer in (listed, as_json, refused, archived, archived_json):
        assert secret not in answer.out + answer.err
        assert "swordfish" not in answer.out + answer.err


def test_what_cannot_be_read_is_listed_all_the_same(cli, talk, store):
    gone = store.create("agent:main:gone")
    os.unlink(gone.path)
    store.create("agent:main:broken")
    Path(store.archive("agent:main:broken")).write_text("{ no json\n")
    document = Path(store.folder) / "chats" / "x.json5.reset.2026-02-10T10-00-00.000Z"
    document.parent.mkdir()
    document.write_text("{ no json5 [")

    rows = cli("sessions", "list", "--json").json["sessions"]
    assert {row["key"] for row in rows} == {"agent:main:main", "agent:main:gone"}
    archives = cli("sessions", "list", "--archived", "--json").json["archives"]
    assert [archive["key"] for archive in archives] == [None, None]
    assert "agent:main:broken" not in cli("sessions", "list", "--archived").out


def test_an_archive_of_another_program_is_known_by_its_first_line(cli, talk, store):
    other = Path(store.folder) / "other-1.jsonl.reset.2026-02-10T10-00-00.000Z"
    header = {"type": "session", "id": "other-1", "sessionKey": "agent:main:other"}
    message = {"type": "message", "timestamp": "2026-02-10T09:00:00Z", "message": {"role": "user"}}
    other.write_text(f"{json.dumps(header)}\n{json.dumps(message)}\n")

    [archive] = cli("sessions", "list", "--archived", "--json").json["archives"]

    assert (archive["key"], archive["updatedAt"]) == ("agent:main:other", 1_770_714_000_000)
    assert "entry" not in archive


def _said_at(line, when):
    return json.dumps(json.loads(line) | {"timestamp": when})


def test_without_sessions_the_list_says_how_to_get_some(cli, workspace):
    answer = cli("sessions")

    assert (answer.status, answer.out) == (0, "")
    assert "plainmind import claude-code" in answer.err


def test_show_gives_the_lines_that_a_search_cites(cli, talk):
    answer = cli("sessions", "show", "agent:main:main")

    assert "sessions/talk-1.jsonl  About boats" in answer.out
    assert "User  L2" in answer.out
    assert "Assistant  L5" in answer.out
    assert "  Larch, on\n  oak frames.\n" in answer.out
    assert "larch" not in answer.out.replace("Larch", "")


def test_show_has_everything_on_request_and_the_end_alone(cli, talk):
    everything = cli("sessions", "show", "talk-1", "--all", "--json").json["lines"]
    last = cli("sessions", "show", "talk-1", "-n", "1", "--json").json
    later = cli("sessions", "show", "talk-1", "--from", "3", "--json").json["lines"]

    assert [(row["line"], row["speaker"], row["text"]) for row in everything] == [
        (2, "User", "Which wood for the hull?"),
        (3, "assistant", 'look {"at": "shed"}'),
        (4, "toolResult", "larch"),
        (5, "Assistant", "Larch, on\noak frames."),
    ]
    assert [row["id"] for row in last["lines"]] == ["m4"]
    assert [row["id"] for row in later] == ["m4"]
    assert list(last) == ["schema_version", "key", "id", "path", "format", "citation", "entry", "lines"]


def test_a_summary_and_a_damaged_line_are_shown_for_what_they_are(cli, talk):
    talk.compact("They chose larch.", keep=1)
    with open(talk.path, "ab") as file:
        file.write(b"{damaged\n")

    out = cli("sessions", "show", "talk-1").out

    assert "summary  L6" in out
    assert "They chose larch." in out
    assert "damaged  L7\n  a line that cannot be read" in out


def test_everything_includes_what_no_model_is_shown(cli, talk):
    talk.append({"type": "model_change", "provider": "p", "modelId": "m"})
    talk.append({"type": "custom_message", "customType": "note", "content": "Mind the step."})
    talk.append({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]})
    talk.reset("new day")

    rows = cli("sessions", "show", "talk-1", "--all", "--from", "6", "--json").json["lines"]

    assert [(row["speaker"], row["text"]) for row in rows] == [
        ("model_change", '{"provider": "p", "modelId": "m"}'),
        ("custom_message", "Mind the step."),
        ("assistant", "hm"),
        ("reset", "new day"),
    ]
    assert [
        row["speaker"] for row in cli("sessions", "show", "talk-1", "--from", "6", "--json").json["lines"]
    ] == ["reset"]


def test_the_beginning_of_a_name_is_enough_if_only_one_begins_so(cli, talk, store):
    assert cli("sessions", "show", "talk").status == 0
    store.create("agent:main:more", id="talk-2")

    answer = cli("sessions", "show", "talk")

    assert answer.status == 1
    assert "`talk` could be 2 sessions" in answer.err
    assert cli("sessions", "show", "nothing").status == 1


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("sessions/talk-1.jsonl", [2, 5]),
        ("sessions/talk-1.jsonl:5", [5]),
        ("sessions/talk-1.jsonl:3-4", [5]),
        ("sessions/talk-1.jsonl#L2", [2, 5]),
        ("talk-1.jsonl#L5-L6", [5]),
    ],
)
def test_what_a_search_cites_can_be_shown(cli, talk, name, lines):
    answer = cli("sessions", "show", name, "--json").json

    assert (answer["key"], [row["line"] for row in answer["lines"]]) == ("agent:main:main", lines)
    assert len(cli("sessions", "show", name, "--from", "1", "--json").json["lines"]) == 2


def test_an_archive_can_be_shown_by_what_a_search_cites(cli, talk, store):
    archived = os.path.basename(store.archive("agent:main:main"))

    assert cli("sessions", "show", f"sessions/{archived}:5", "--json").json["lines"][0]["line"] == 5


def test_a_name_that_nothing_has_is_answered_with_where_to_look(cli, talk):
    answer = cli("sessions", "export", "sessions/other.jsonl:5")

    assert answer.status == 1
    assert "there is no session `sessions/other.jsonl:5`" in answer.err
    assert "plainmind sessions list" in answer.err


def test_an_export_hides_secrets_unless_it_is_to_be_raw(cli, talk):
    token = "ghp_" + "a1B2" * 9
    talk.append({"role": "user", "content": f"use {token}, please"})

    for form in ("jsonl", "markdown", "messages"):
        hidden = cli("sessions", "export", "talk-1", "--format", form)
        assert token not in hidden.out, form
        assert "[redacted:" in hidden.out
        assert token in cli("sessions", "export", "talk-1", "--format", form, "--raw").out
    assert "[redacted:" in hidden.out
    with open(talk.path) as file:
        assert token in file.read()


def test_an_export_hides_what_only_the_name_of_a_field_gives_away(cli, talk):
    key = "q7Zt2mLx9Kd4Vb8Wc1Np5Rs3"
    arguments = {"user": "bob", "password": "swordfish", "apiKey": key, "tries": 3}
    call = {"type": "toolCall", "id": "t2", "name": "log in", "arguments": arguments}
    talk.append({"role": "assistant", "content": [call]})

    for form in ("jsonl", "markdown", "messages"):
        hidden = cli("sessions", "export", "talk-1", "--format", form).out
        assert "swordfish" not in hidden, form
        assert key not in hidden, form
    calls = json.loads(hidden)[-1]["tool_calls"]
    given = json.loads(calls[0]["function"]["arguments"])
    assert (given["user"], given["tries"]) == ("bob", 3)
    assert given["password"].startswith("[redacted:password#")
    assert "swordfish" in cli("sessions", "export", "talk-1", "--raw").out


def test_an_export_says_which_conversation_it_was(cli, store, workspace):
    key = "claude-code:5f0c7f0e-1d0a-4f5a-9a53-0d8d1b6f2c11"
    store.create(key).append({"role": "user", "content": "Which bed gets the most sun?"})

    header = json.loads(cli("sessions", "export", key).out.splitlines()[0])

    assert header["sessionKey"] == key


def test_the_same_secret_has_the_same_mark_in_every_export(cli, talk):
    talk.append({"role": "user", "content": "use ghp_" + "a1B2" * 9})

    assert cli("sessions", "export", "talk-1").out == cli("sessions", "export", "talk-1").out


def test_a_raw_export_is_the_transcript_itself(cli, talk):
    cli("sessions", "export", "talk-1", "--raw", "-o", "copy.jsonl")

    with open(talk.path, "rb") as ours, open("copy.jsonl", "rb") as copy:
        assert [json.loads(line) for line in copy] == [json.loads(line) for line in ours]


def test_messages_are_written_as_openai_writes_them(cli, talk):
    messages = json.loads(cli("sessions", "export", "talk-1", "--format", "messages").out)

    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "shed"}'}
    assert messages[2] == {"role": "tool", "content": "larch", "tool_call_id": "t1"}


def test_what_was_exported_as_messages_can_be_imported_again(cli, talk, tmp_path):
    cli("sessions", "export", "talk-1", "--format", "messages", "-o", "talk.json")

    answer = cli("import", "messages", "talk.json", "--json").json

    assert answer["messages"] == 4
    assert [
        row["text"] for row in cli("sessions", "show", answer["sessions"][0]["id"], "--json").json["lines"]
    ] == [
        "Which wood for the hull?",
        "Larch, on\noak frames.",
    ]


def test_an_export_overwrites_nothing_unasked(cli, talk, tmp_path):
    (tmp_path / "there.md").write_text("mine")

    refused = cli("sessions", "export", "talk-1", "-o", "there.md")
    assert (refused.status, (tmp_path / "there.md").read_text()) == (1, "mine")
    assert cli("sessions", "export", "talk-1", "-o", "nowhere/x.md").status == 1

    assert (
        cli("sessions", "export", "talk-1", "-o", "there.md", "--force", "--json").json["format"] == "jsonl"
    )
    assert (tmp_path / "there.md").read_text() != "mine"


def test_an_archived_session_is_listed_shown_and_deleted_by_its_name(cli, talk, workspace):
    path = cli("sessions", "archive", "agent:main:main", "--json").json["path"]
    [archive] = cli("sessions", "list", "--archived", "--json").json["archives"]
    name = archive["name"]

    assert path == archive["path"]
    assert path.endswith(name)
    assert (archive["key"], archive["id"]) == ("agent:main:main", "talk-1")
    assert "Which wood" in cli("sessions", "show", name).out
    assert cli("sessions", "list", "-q").out == ""
    assert cli("sessions", "list", "--archived", "-q").out == f"{name}\n"
    assert cli("sessions", "delete", name, "--yes").status == 0
    assert cli("sessions", "list", "--archived").out == ""


def test_a_deleted_session_is_gone_from_disk_and_from_every_index_of_the_agent(
    cli, talk, workspace, tmp_path, home
):
    other = tmp_path / "other"
    other.mkdir()
    (other / "MEMORY.md").write_text("# Other\n")
    for folder in (workspace, other):
        hits = cli("sessions", "search", "wood for the hull", "--workspace", str(folder), "--json").json[
            "results"
        ]
        assert hits[0]["path"] == "sessions/talk-1.jsonl"

    answer = cli("sessions", "delete", "agent:main:main", "--yes", "--json").json

    assert answer["cited"] == ["sessions/talk-1.jsonl"]
    for path in home.rglob("*"):
        if path.is_file():
            assert b"wood for the hull" not in path.read_bytes(), path
    for folder in (workspace, other):
        hits = cli("sessions", "search", "wood for the hull", "--workspace", str(folder), "--json").json[
            "results"
        ]
        assert not [hit for hit in hits if hit["source"] == "sessions"]


def test_deleting_asks_first(cli, talk, workspace):
    refused = cli("sessions", "delete", "agent:main:main", stdin="")

    assert refused.status == 1
    assert "--yes removes it" in refused.err
    printed, status = at_a_terminal("sessions", "delete", "agent:main:main", question=b"[y/N]", reply=b"n\n")
    assert "Remove agent:main:main (About boats) for good? [y/N]" in printed
    assert status == 1
    assert "agent:main:main" in cli("sessions").out


def test_a_fork_begins_with_what_was_said_up_to_an_entry(cli, talk):
    made = cli("sessions", "fork", "talk-1", "agent:main:try", "--at", "m1", "--json").json

    lines = cli("sessions", "show", made["key"], "--json").json["lines"]
    assert [line["text"] for line in lines] == ["Which wood for the hull?"]
    assert cli("sessions", "fork", "talk-1", "agent:main:try").status == 1


def test_formats_are_converted_to_and_fro(cli, talk):
    before = cli("sessions", "show", "talk-1", "--json").json["lines"]

    assert cli("sessions", "convert", "json5").out == "converted 1 session to json5\n"
    assert [line["text"] for line in cli("sessions", "show", "talk-1", "--json").json["lines"]] == [
        line["text"] for line in before
    ]
    assert cli("sessions", "convert", "jsonl", "agent:main:main", "--json").json["converted"] == 1


def test_a_summary_may_come_from_stdin(cli, talk, store):
    assert (
        cli(
            "sessions", "compact", "talk-1", "--summary", "-", "--keep", "1", stdin="They chose larch."
        ).status
        == 0
    )

    context = store.open("talk-1").context()
    assert (context.summary, len(context.entries)) == ("They chose larch.", 1)


def test_searching_sessions_leaves_the_settings_as_they_are(cli, talk, workspace):
    assert cli("sessions", "search", "hull", "--json").json["results"][0]["source"] == "sessions"
    assert json.loads(cli("config", "get", "sources").out) == ["memory"]
    sources = {hit["source"] for hit in cli("search", "hull", "--min-score", "0", "--json").json["results"]}
    assert sources <= {"memory"}


def test_a_search_that_finds_nothing_says_that_conversations_were_not_searched(cli, talk, workspace):
    told = "conversations were not searched"

    assert told in cli("search", "zeppelin").err
    assert told not in cli("search", "zeppelin", "--config", "sources=memory,sessions").err
    assert told not in cli("search", "zeppelin", "--source", "memory").err


def test_the_folder_of_sessions_can_be_elsewhere(cli, tmp_path, workspace):
    SessionStore(tmp_path / "elsewhere" / "main").create("here")

    answer = cli("sessions", "-q", "--config", f"sessions.path={tmp_path}/elsewhere/{{agentId}}")

    assert answer.out == "here\n"


def test_words_that_stand_only_in_the_output_of_a_tool_are_told_and_shown(cli, store, talk, workspace):
    store.open("talk-1").append({"role": "toolResult", "content": "ok\nERR_LEDGER_SKEW in quux\n"})

    missed, found = cli("search", "ERR_LEDGER_SKEW"), cli("search", "--tool-output", "ERR_LEDGER_SKEW")

    assert "the words stand in the output of a tool: `plainmind search --tool-output" in missed.err
    assert "ERR_LEDGER_SKEW in quux" in found.out
    assert "--tool-output" in " ".join(cli("search", "ERR_LEDGER_SKEW", "--json").json["notes"])
    assert "output of a tool" not in cli("search", "zeppelin").err
    assert "output of a tool" not in cli("search", "ERR_LEDGER_SKEW", "--source", "memory").err


def test_verifying_after_a_search_in_conversations_finds_nothing_wrong(cli, talk, workspace):
    cli("sync")
    cli("sessions", "search", "hull")

    assert "a rebuild gives the same index" in cli("doctor", "--verify").out
