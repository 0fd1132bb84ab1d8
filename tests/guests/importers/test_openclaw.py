"""Sessions of OpenClaw: every version of the header, every type of line, every place where it leaves a transcript."""

from __future__ import annotations

import json
import os
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.guests.importers.conftest import Here, add, looks_of
from tests.guests.importers.test_claude_code import json_values

from plainmind.guests.importers.openclaw import Translation
from plainmind.sessions.entries import LINE_TYPES

SESSION = "0b9c2a3e-77a1-4a0e-8f43-0c2d5c1f9a10"
OTHER = "1c9c2a3e-77a1-4a0e-8f43-0c2d5c1f9a11"
FOLDER = "state/agents/main/sessions"
WHEN = "2026-02-10T09:30:00.000Z"


def header(version=3, session=SESSION):
    return {"type": "session", "version": version, "id": session, "timestamp": WHEN, "cwd": "/srv/agent"}


def message(entry_id, parent, role, content, **more):
    return {
        "type": "message", "id": entry_id, "parentId": parent, "timestamp": WHEN,
        "message": {"role": role, "content": content, **more},
    }  # fmt: skip


EVERY_TYPE = [
    message("e1", None, "user", "Where is the key?"),
    {"type": "thinking_level_change", "id": "e2", "parentId": "e1", "timestamp": WHEN, "thinkingLevel": "high"},
    {"type": "model_change", "id": "e3", "parentId": "e2", "timestamp": WHEN, "provider": "p", "modelId": "m"},
    message(
        "e4", "e3", "assistant",
        [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Under the mat."},
            {"type": "toolCall", "id": "t1", "name": "look", "arguments": {"at": "mat"}},
        ],
        api="messages", provider="p", model="m", stopReason="toolUse",
        usage={"input": 10, "output": 5, "cacheRead": 1, "cacheWrite": 2, "totalTokens": 18, "cost": {"total": 0.1}},
    ),
    message(
        "e5", "e4", "toolResult", [{"type": "text", "text": "a key"}], toolCallId="t1", toolName="look", isError=False
    ),
    message("e6", "e5", "bashExecution", "", command="ls", output="mat"),
    {
        "type": "compaction", "id": "e7", "parentId": "e6", "timestamp": WHEN, "summary": "The key is found.",
        "firstKeptEntryId": "e4", "tokensBefore": 900, "tokensAfter": 90, "details": {"x": 1}, "fromHook": False,
    },
    {"type": "reset", "id": "e8", "parentId": "e7", "timestamp": WHEN, "reason": "new day", "firstKeptEntryId": "e7"},
    {"type": "branch_summary", "id": "e9", "parentId": "e8", "timestamp": WHEN, "fromId": "e5", "summary": "A detour."},
    {"type": "custom", "id": "e10", "parentId": "e9", "timestamp": WHEN, "customType": "plan", "data": {"a": [1]}},
    {
        "type": "custom_message", "id": "e11", "parentId": "e10", "timestamp": WHEN, "customType": "note",
        "content": "Mind the step.", "display": True, "details": None,
    },
    {"type": "label", "id": "e12", "parentId": "e11", "timestamp": WHEN, "targetId": "e4", "label": "found"},
    {"type": "session_info", "id": "e13", "parentId": "e12", "timestamp": WHEN, "name": "The key"},
    {"type": "leaf", "id": "e14", "parentId": "e13", "timestamp": WHEN, "targetId": "e11"},
    {"type": "of_a_later_version", "id": "e15", "parentId": "e14", "timestamp": WHEN, "anything": {"at": "all"}},
    message(
        "e16", "e11", "user", [{"type": "image", "data": "aGk=", "mimeType": "x"}, {"type": "text", "text": "See?"}]
    ),
    message("e17", "e16", "custom", "of a hook", customType="hook", display=False),
]  # fmt: skip


def without_mark(entry):
    return {name: found for name, found in entry.items() if name != "imported"}


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_type_of_line_comes_over_as_it_is(here, write, version):
    path = write(f"{FOLDER}/{SESSION}.jsonl", [header(version), *EVERY_TYPE])

    report = here.take("openclaw", path)

    assert [without_mark(entry) for entry in here.entries(SESSION)] == EVERY_TYPE
    assert [entry["imported"]["line"] for entry in here.entries(SESSION)] == list(range(2, 19))
    assert here.spoken(SESSION) == ["User: Where is the key?", "Assistant: Under the mat.", "User: See?"]
    assert (report.messages, report.imported[0].entries) == (6, 17)
    ours = here.store.open(SESSION).transcript.header()
    assert (ours["version"], ours["cwd"]) == (max(3, version), "/srv/agent")
    assert ours["importedFrom"] == {"program": "openclaw", "path": str(path), "id": SESSION}


def test_every_type_of_line_survives_both_formats_an_export_and_another_import(here, write, tmp_path):
    from plainmind.memory.session_pages import as_lines

    assert {entry["type"] for entry in EVERY_TYPE} >= LINE_TYPES - {"session"}
    first = header(3) | {"parentSession": "another.jsonl"}
    here.take("openclaw", write(f"{FOLDER}/{SESSION}.jsonl", [first, *EVERY_TYPE]))
    before = here.entries(SESSION)
    assert here.store.convert("json5", SESSION) == 1
    assert [without_mark(entry) for entry in here.entries(SESSION)] == EVERY_TYPE
    assert here.store.convert("jsonl", SESSION) == 1
    assert here.entries(SESSION) == before

    exported = b"".join(as_lines(here.store.open(SESSION), lambda entry: entry))
    other = Here(str(tmp_path / "elsewhere"))
    other.take("openclaw", write(f"copies/{SESSION}.jsonl", exported))
    assert [without_mark(entry) for entry in other.entries(SESSION)] == EVERY_TYPE
    assert other.store.open(SESSION).transcript.header()["parentSession"] == "another.jsonl"
    again = other.take("openclaw", tmp_path / "copies")
    assert (again.messages, len(other.entries(SESSION))) == (0, len(EVERY_TYPE))


def test_a_file_of_version_1_gets_ids_and_its_compaction_keeps_what_it_kept(here, write):
    lines = [
        {"type": "session", "id": SESSION, "timestamp": WHEN},
        {"type": "message", "timestamp": WHEN, "message": {"role": "user", "content": "one"}},
        {"type": "message", "timestamp": WHEN, "message": {"role": "assistant", "content": "two"}},
        {"type": "compaction", "timestamp": WHEN, "summary": "one and two", "firstKeptEntryIndex": 2},
        {"type": "message", "timestamp": WHEN, "message": {"role": "user", "content": "three"}},
    ]
    path = write(f"{FOLDER}/{SESSION}.jsonl", lines)

    here.take("openclaw", path)

    entries = here.entries(SESSION)
    assert [entry["parentId"] for entry in entries] == [None, *(entry["id"] for entry in entries[:-1])]
    assert entries[2]["firstKeptEntryId"] == entries[1]["id"]
    context = here.store.open(SESSION).context()
    assert context.summary == "one and two"
    assert [message["content"] for message in context.messages] == ["two", "three"]


def test_a_hook_message_of_version_2_is_a_custom_one_today(here, write):
    path = write(
        f"{FOLDER}/{SESSION}.jsonl", [header(2), message("e1", None, "hookMessage", "psst", customType="x")]
    )

    here.take("openclaw", path)

    assert here.entries(SESSION)[0]["message"]["role"] == "custom"


def test_the_registry_of_a_folder_says_what_a_session_is(here, write):
    write(f"{FOLDER}/{SESSION}.jsonl", [header(), message("e1", None, "user", "hi")])
    registry = f"""{{
      // written by hand
      "agent:main:telegram:group:7": {{sessionId: "{SESSION}", channel: "telegram", chatType: "group", groupId: "7",
        displayName: "Garden", authProfileOverride: "work", totalTokens: 99999}},
    }}"""
    folder = write(f"{FOLDER}/sessions.json", registry.encode()).parent

    here.take("openclaw", folder)

    entry = here.store.entry(SESSION)
    assert (entry["originalKey"], entry["channel"], entry["groupId"], entry["displayName"]) == (
        "agent:main:telegram:group:7", "telegram", "7", "Garden",
    )  # fmt: skip
    assert "authProfileOverride" not in entry
    assert entry.get("totalTokens", 0) == 0


def test_archives_are_conversations_too_and_a_spare_copy_only_without_its_original(here, write, tmp_path):
    stamp = "2026-02-02T20-29-47.344Z"
    names = {
        f"{FOLDER}/{SESSION}.jsonl": "live",
        f"{FOLDER}/{SESSION}.jsonl.bak-17-1": "spare of what is there",
        f"{FOLDER}/a{SESSION[1:]}.jsonl.reset.{stamp}": "reset",
        f"{FOLDER}/b{SESSION[1:]}.jsonl.deleted.{stamp}": "deleted",
        f"{FOLDER}/c{SESSION[1:]}.jsonl.bak": "spare of what is gone",
        f"state/agents/main/session-sqlite-import-archive/agent_main_main.d{SESSION[1:]}.jsonl.imported-17900": "moved",
    }
    for name, text in names.items():
        write(name, [header(session="x"), message(f"e-{text}", None, "user", text)])
    write(f"{FOLDER}/{SESSION}.trajectory.jsonl", [message("t", None, "user", "a log")])
    write(f"{FOLDER}/{SESSION}.checkpoint.{OTHER}.jsonl", [message("t", None, "user", "a copy")])
    write("state/cron/runs/x.jsonl", [message("t", None, "user", "a log")])

    report = here.take("openclaw", tmp_path / "state")

    spoken = sorted(line for row in report.imported for line in here.spoken(row.id))
    assert spoken == [
        "User: deleted",
        "User: live",
        "User: moved",
        "User: reset",
        "User: spare of what is gone",
    ]


def test_a_session_that_was_imported_alive_is_not_doubled_when_it_is_archived(here, write):
    path = write(f"{FOLDER}/{SESSION}.jsonl", [header(), message("e1", None, "user", "hi")])
    here.take("openclaw", path)
    add(path, message("e2", "e1", "user", "bye"))
    archived = path.rename(f"{path}.reset.2026-02-11T00-00-00.000Z")

    report = here.take("openclaw", archived.parent)

    assert (len(report.imported), report.messages, report.sessions_begun) == (1, 1, 0)
    assert here.spoken(SESSION) == ["User: hi", "User: bye"]


def test_a_compressed_archive_is_read_or_named_with_what_is_missing(here, write):
    try:
        import zstandard
    except ImportError:
        zstandard = None
    plain = b"".join(
        json.dumps(line).encode() + b"\n" for line in [header(), message("e1", None, "user", "packed")]
    )
    packed = zstandard.ZstdCompressor().compress(plain) if zstandard else b"\x28\xb5\x2f\xfdwhatever"
    write(f"{FOLDER}/{OTHER}.jsonl", [header(session=OTHER), message("e1", None, "user", "plain")])
    path = write(f"{FOLDER}/{SESSION}.jsonl.deleted.2026-02-02T20-29-47.344Z.zst", packed)

    report = here.take("openclaw", path.parent)

    assert here.spoken(OTHER) == ["User: plain"]
    if zstandard:
        assert here.spoken(SESSION) == ["User: packed"]
    else:
        assert [failure.path for failure in report.failed] == [str(path)]
        assert "no library for that is installed (install one and import again" in report.failed[0].reason


def make_database(path, events, *, wal=False, packed=()):
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path)
    if wal:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA wal_autocheckpoint = 0")
    database.execute(
        "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB, created_at)"
    )
    database.execute(
        "CREATE TABLE session_nodes (session_key TEXT, current_session_id TEXT, entry_json TEXT)"
    )
    add_rows(database, events)
    database.executemany("INSERT INTO transcript_events VALUES (?, ?, NULL, ?, 0)", packed)
    delivery = {"kind": "external", "route": {"channel": "web"}}
    entry = json.dumps({"sessionId": SESSION, "delivery": delivery})
    database.execute("INSERT INTO session_nodes VALUES ('agent:main:main', ?, ?)", (SESSION, entry))
    database.commit()
    return database


def add_rows(database, events, first=0, session=SESSION):
    rows = [(session, seq, json.dumps(event)) for seq, event in enumerate(events, first)]
    database.executemany("INSERT INTO transcript_events VALUES (?, ?, ?, NULL, 0)", rows)
    database.commit()


DATABASE = "state/agents/main/agent/openclaw-agent.sqlite"


def test_the_rows_of_the_database_are_the_lines_of_a_transcript(here, tmp_path):
    make_database(tmp_path / DATABASE, [header(), *EVERY_TYPE]).close()

    here.take("openclaw", tmp_path / "state")

    assert [without_mark(entry) for entry in here.entries(SESSION)] == EVERY_TYPE
    entry = here.store.entry(SESSION)
    assert (entry["originalKey"], entry["channel"]) == ("agent:main:main", "web")


def test_a_database_in_use_is_read_to_its_last_row_and_nothing_beside_it_changes(here, tmp_path):
    path = tmp_path / DATABASE
    database = make_database(path, [header(), message("e1", None, "user", "first")], wal=True)
    assert os.path.getsize(f"{path}-wal") > 0
    before = looks_of(path.parent)

    here.take("openclaw", path)
    assert looks_of(path.parent) == before
    assert here.spoken(SESSION) == ["User: first"]

    add_rows(database, [message("e2", "e1", "user", "second")], first=2)
    report = here.take("openclaw", path)
    database.close()

    assert (report.messages, here.spoken(SESSION)) == (1, ["User: first", "User: second"])
    assert here.take("openclaw", path).imported == ()


def test_a_session_that_moved_into_the_database_is_continued_there(here, write, tmp_path):
    lines = [header(), message("e1", None, "user", "first")]
    path = write(f"{FOLDER}/{SESSION}.jsonl", lines)
    here.take("openclaw", tmp_path / "state")
    archive = tmp_path / "state/agents/main/session-sqlite-import-archive"
    archive.mkdir()
    path.rename(archive / f"{SESSION}.jsonl.imported-1790000000000")
    make_database(tmp_path / DATABASE, [*lines, message("e2", "e1", "user", "second")]).close()

    here.take("openclaw", tmp_path / "state")

    assert here.spoken(SESSION) == ["User: first", "User: second"]
    assert here.store.entry(SESSION)["originalKey"] == "agent:main:main"


def test_a_row_that_cannot_be_unpacked_is_named_and_tried_again(here, tmp_path):
    packed = [(SESSION, 2, b"\x28\xb5\x2f\xfdnonsense")]
    make_database(tmp_path / DATABASE, [header(), message("e1", None, "user", "hi")], packed=packed).close()

    first = here.take("openclaw", tmp_path / DATABASE)
    again = here.take("openclaw", tmp_path / DATABASE)

    assert [
        (damage.line, "Zstandard" in damage.reason or "unpacked" in damage.reason) for damage in first.damaged
    ] == [(2, True)]
    assert (again.damaged_count, again.imported) == (1, ())


def test_a_file_that_is_no_database_is_named_and_the_others_are_imported(here, write, tmp_path):
    write(f"{FOLDER}/{SESSION}.jsonl", [header(), message("e1", None, "user", "hi")])
    path = write(DATABASE, b"this is not SQLite" * 100)

    report = here.take("openclaw", tmp_path / "state")

    assert [failure.path for failure in report.failed] == [str(path)]
    assert here.spoken(SESSION) == ["User: hi"]


def test_agents_are_told_apart_by_their_folders(tmp_path, write):
    from plainmind.guests.importers.importer import Importer
    from plainmind.sessions.store import SessionStore

    for agent, session in (("main", SESSION), ("work", OTHER)):
        write(
            f"state/agents/{agent}/sessions/{session}.jsonl",
            [header(session=session), message("e1", None, "user", f"I am with {agent}")],
        )

    Importer("openclaw", lambda agent: str(tmp_path / "ours" / (agent or "?"))).run(str(tmp_path / "state"))

    assert [row.id for row in SessionStore(tmp_path / "ours" / "main").list()] == [SESSION]
    assert [row.id for row in SessionStore(tmp_path / "ours" / "work").list()] == [OTHER]


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["session", "message", "compaction"]) | json_values,
                "id": json_values,
                "parentId": json_values,
                "message": st.fixed_dictionaries({}, optional={"role": json_values, "content": json_values})
                | json_values,
                "firstKeptEntryIndex": json_values,
                "role": json_values,
            },
        ),
        max_size=6,
    )
)
def test_no_line_makes_the_translation_raise(found):
    translate = Translation()
    for number, entry in enumerate(found, 1):
        for translated in translate(entry, b"", number):
            assert isinstance(translated["type"], str)
            assert translated["id"]


def cold_lines(session, events):
    records = [{"kind": "header", "version": 1, "sessionId": session, "generation": "g"}]
    records += [
        {"kind": "event", "row": {"seq": seq, "event_json": json.dumps(event), "created_at": 0}}
        for seq, event in enumerate(events)
    ]
    return [*records, {"kind": "fts", "row": {"text": "where is the key", "message_id": "e1"}}]


def test_a_transcript_that_was_put_into_cold_storage_is_read(here, write, tmp_path):
    write(f"{FOLDER}/cold/{'a1' * 32}.jsonl", cold_lines(SESSION, [header(), *EVERY_TYPE]))

    here.take("openclaw", tmp_path / "state")

    assert [without_mark(entry) for entry in here.entries(SESSION)] == EVERY_TYPE


def test_archives_within_the_database_are_read_once(here, tmp_path):
    database = make_database(tmp_path / DATABASE, [header(), message("e1", None, "user", "hi")])
    database.execute(
        "CREATE TABLE session_transcript_archives (session_id, generation, reason, encoding, archive_blob BLOB,"
        " archive_sha256, archive_name, created_at)"
    )
    database.execute(
        "CREATE TABLE session_transcript_cold_archives (session_id, archive_sha256, storage, archive_blob BLOB)"
    )
    plain = b"".join(
        json.dumps(line).encode() + b"\n"
        for line in [header(session=OTHER), message("o1", None, "user", "old")]
    )
    rows = [
        (OTHER, "g1", "deleted", "identity", plain + b"{damaged\n", "aa" * 32, "x.jsonl", 1),
        (OTHER, "g2", "reset", "zstd", b"nonsense", "bb" * 32, "y.jsonl.zst", 2),
    ]
    database.executemany("INSERT INTO session_transcript_archives VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    database.execute("INSERT INTO session_transcript_cold_archives VALUES ('c', 'cc', 'sqlite', x'00')")
    database.commit()
    database.close()

    report = here.take("openclaw", tmp_path / DATABASE)

    assert here.spoken(OTHER) == ["User: old"]
    assert here.spoken(SESSION) == ["User: hi"]
    assert report.damaged_count == 3
    assert here.take("openclaw", tmp_path / DATABASE).imported == ()
    assert here.spoken(OTHER) == ["User: old"]


def test_an_archive_that_was_read_is_not_unpacked_again_when_rows_are_added(here, tmp_path):
    database = make_database(tmp_path / DATABASE, [header(), message("e1", None, "user", "hi")])
    database.execute(
        "CREATE TABLE session_transcript_archives (session_id, encoding, archive_blob BLOB, archive_sha256, created_at)"
    )
    blob = json.dumps(message("o1", None, "user", "old")).encode() + b"\n{damaged\n"
    database.execute(
        "INSERT INTO session_transcript_archives VALUES (?, 'identity', ?, ?, 1)", (OTHER, blob, "ab" * 32)
    )
    database.commit()
    assert here.take("openclaw", tmp_path / DATABASE).damaged_count == 1

    add_rows(database, [message("e2", "e1", "user", "more")], first=2)
    database.close()
    report = here.take("openclaw", tmp_path / DATABASE)

    assert (report.damaged_count, [row.id for row in report.imported]) == (0, [SESSION])


def test_a_database_whose_log_is_moved_while_it_is_copied_is_copied_again(here, tmp_path, monkeypatch):
    from plainmind.guests.importers import originals

    path = tmp_path / DATABASE
    database = make_database(path, [header(), message("e1", None, "user", "first")], wal=True)
    copy_file, tries = originals._copy_file, []

    def meanwhile(source, target):
        copy_file(source, target)
        if source.endswith("-wal") and not tries:
            tries.append(source)
            add_rows(database, [message("e2", "e1", "user", "second")], first=2)
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            add_rows(database, [message("e3", "e2", "user", "third")], first=3)

    monkeypatch.setattr(originals, "_copy_file", meanwhile)
    here.take("openclaw", path)
    database.close()

    assert here.spoken(SESSION) == ["User: first", "User: second", "User: third"]
