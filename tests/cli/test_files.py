"""`get`, `list`, `remember`, `edit`, `history`, `restore` and `export`: files in, files out."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from tests.cli.terminal import COMMAND


def test_get_prints_the_lines_that_were_asked_for(cli, workspace):
    answer = cli("get", "memory/network.md", "--from", "3", "--lines", "1")

    assert answer.out == "The gateway host is a Mac Studio in the cellar.\n"
    assert answer.err == "note: the file goes on: --from 4\n"


def test_get_understands_a_citation(cli, workspace):
    assert cli("get", "memory/network.md#L3-L4").out.splitlines() == [
        "The gateway host is a Mac Studio in the cellar.",
        "Its address is 10.0.0.7.",
    ]


def test_get_as_json_has_exactly_the_promised_shape(cli, workspace):
    some = cli("get", "memory/network.md", "--lines", "2", "--json").json
    rest = cli("get", "memory/network.md", "--from", "3", "--json").json

    assert list(some) == ["schema_version", "path", "text", "from", "lines", "truncated", "nextFrom"]
    assert (some["text"], some["from"], some["lines"], some["truncated"], some["nextFrom"]) == (
        "# Network\n", 1, 2, True, 3,
    )  # fmt: skip
    assert (rest["truncated"], "nextFrom" in rest) == (False, False)


def test_get_beyond_the_end_says_so(cli, workspace):
    answer = cli("get", "MEMORY.md", "--from", "900")

    assert (answer.status, answer.out) == (0, "")
    assert "no line 900" in answer.err


def test_get_reads_a_file_with_a_byte_order_mark_and_carriage_returns(cli, workspace):
    (workspace / "memory" / "windows.md").write_bytes(b"\xef\xbb\xbf# Head\r\n\r\nline\r\n")

    assert cli("get", "memory/windows.md", "--json").json["text"] == "# Head\n\nline"


def test_list_names_every_file_with_day_size_and_lines(cli, workspace):
    answer = cli("list")
    files = {row["path"]: row for row in cli("list", "--json").json["files"]}

    assert "2026-02-10" in answer.out
    assert answer.out.splitlines()[-1].startswith("3 files, ")
    assert files["memory/2026-02-10.md"]["day"] == "2026-02-10"
    assert files["MEMORY.md"]["day"] is None
    assert files["MEMORY.md"]["lines"] == 4
    assert files["MEMORY.md"]["bytes"] == (workspace / "MEMORY.md").stat().st_size


def test_a_quiet_list_is_paths_alone(cli, workspace):
    assert cli("list", "--quiet").out.splitlines() == [
        "MEMORY.md",
        "memory/2026-02-10.md",
        "memory/network.md",
    ]


def test_remember_says_where_the_note_stands(cli, workspace):
    answer = cli("remember", "The", "door", "code", "is", "4711.")
    note = cli("remember", "Tea, not coffee.", "--json").json
    today = f"memory/{datetime.now().astimezone():%Y-%m-%d}.md"

    assert answer.out.startswith(f"noted in {today}:")
    assert list(note) == ["schema_version", "path", "startLine", "endLine", "id"]
    line = (workspace / note["path"]).read_text().splitlines()[note["startLine"] - 1]
    assert "Tea, not coffee." in line
    assert note["id"] in line


def test_a_durable_note_goes_to_the_curated_memory(cli, workspace):
    assert cli("remember", "--durable", "Tea, not coffee.", "--json").json["path"] == "MEMORY.md"


def test_a_note_may_come_from_stdin_with_several_lines(cli, workspace):
    note = cli("remember", "-", "--json", stdin="first line\nsecond line 🙂\n").json

    text = cli("get", note["path"], "--from", str(note["startLine"])).out
    assert "first line" in text
    assert "second line 🙂" in text


@pytest.mark.parametrize(
    ("argv", "stdin", "complaint"),
    [
        (["-"], b"", "nothing to remember"),
        (["  "], None, "nothing to remember"),
        (["-"], b"caf\xe9", "not valid UTF-8 (byte 4)"),
        (["caf\udce9"], None, "not valid UTF-8"),
    ],
)
def test_what_cannot_be_remembered_is_refused_and_nothing_is_written(cli, workspace, argv, stdin, complaint):
    before = sorted(os.listdir(workspace / "memory"))

    answer = cli("remember", *argv, stdin=stdin)

    assert answer.status == 1
    assert complaint in answer.err
    assert sorted(os.listdir(workspace / "memory")) == before


def test_edit_replaces_a_text_that_stands_once(cli, workspace):
    answer = cli("edit", "MEMORY.md", "--old", "VLAN 40", "--new", "VLAN 41", "--json").json

    assert (answer["path"], answer["line"]) == ("MEMORY.md", 3)
    data = (workspace / "MEMORY.md").read_bytes()
    assert b"VLAN 41" in data
    assert answer["hash"] == hashlib.sha256(data).hexdigest()


def test_edit_takes_texts_from_a_file_and_from_stdin(cli, workspace, tmp_path):
    (tmp_path / "old.txt").write_text("VLAN 40")

    assert cli("edit", "MEMORY.md", "--old-file", "old.txt", "--new-file", "-", stdin="VLAN 42").status == 0
    assert "VLAN 42" in (workspace / "MEMORY.md").read_text()


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["--old", "not there", "--new", "x"], "is not in `MEMORY.md`"),
        (["--old", "VLAN 40"], "--new is missing"),
        (["--new", "x"], "--old is missing"),
        (["--old-file", "nowhere.txt", "--new", "x"], "nowhere.txt: No such file or directory"),
        (["--old-file", "-", "--new-file", "-"], "only be one of the two"),
        ([], "no editor"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(cli, workspace, argv, complaint):
    before = (workspace / "MEMORY.md").read_bytes()

    answer = cli("edit", "MEMORY.md", *argv)

    assert answer.status == 1
    assert complaint in answer.err
    assert (workspace / "MEMORY.md").read_bytes() == before


def test_edit_alone_opens_the_editor_and_keeps_what_was_there(cli, workspace, monkeypatch, tmp_path):
    script = tmp_path / "my editor.py"
    script.write_text("import sys\nopen(sys.argv[1], 'a').write('- Written by hand about quokkas.\\n')\n")
    monkeypatch.setenv("EDITOR", f"{sys.executable} '{script}'")
    before = (workspace / "MEMORY.md").read_bytes()
    cli("sync")

    answer = cli("edit", "MEMORY.md")

    assert (answer.status, answer.out) == (0, "changed MEMORY.md\n")
    assert "quokkas" in cli("search", "quokkas").out
    versions = cli("history", "MEMORY.md", "--json").json["versions"]
    assert [version["operation"] for version in versions] == ["edit by hand", "before edit by hand"]
    assert cli("history", "--show", versions[1]["id"], "--json").json["text"].encode() == before


def test_what_was_done_in_the_editor_is_undone(cli, workspace, monkeypatch):
    cli("edit", "MEMORY.md", "--old", "VLAN 40", "--new", "VLAN 41")
    before = (workspace / "MEMORY.md").read_bytes()
    monkeypatch.setenv("EDITOR", "sed -i s/VLAN/LAN/")
    cli("edit", "MEMORY.md")
    assert b"VLAN" not in (workspace / "MEMORY.md").read_bytes()

    assert cli("undo").status == 0
    assert (workspace / "MEMORY.md").read_bytes() == before
    assert cli("undo").status == 0
    assert b"VLAN 40" in (workspace / "MEMORY.md").read_bytes()


def test_a_note_that_came_while_the_editor_was_open_is_not_undone_with_it(cli, workspace, monkeypatch):
    cli("remember", "--durable", "Tea, not coffee.")
    command = f"{sys.executable} -m plainmind remember --durable 'Two sugars.'"
    monkeypatch.setenv("EDITOR", f"sh -c 'sed -i s/VLAN/LAN/ \"$0\"; {command.replace(chr(39), chr(34))}'")
    cli("edit", "MEMORY.md")
    assert b"Two sugars." in (workspace / "MEMORY.md").read_bytes()

    assert "Two sugars." in cli("undo").out
    assert b"Tea, not coffee." in (workspace / "MEMORY.md").read_bytes()
    assert b"VLAN" not in (workspace / "MEMORY.md").read_bytes()


def test_an_editor_that_fails_is_reported(cli, workspace, monkeypatch):
    monkeypatch.setenv("EDITOR", "false")
    assert "ended with status 1" in cli("edit", "MEMORY.md").err
    monkeypatch.setenv("EDITOR", "/nowhere/vi")
    assert "could not be started" in cli("edit", "MEMORY.md").err


def test_an_id_of_a_version_is_understood_where_a_file_could_stand(cli, workspace):
    before = (workspace / "MEMORY.md").read_text()
    cli("edit", "MEMORY.md", "--old", "VLAN 40", "--new", "VLAN 41")
    listed = cli("history")
    kept = next(line.split()[0] for line in listed.out.splitlines() if " * " in line)

    assert "marked *" in listed.err
    assert cli("history", kept).out == cli("history", "--show", kept).out == before
    assert "nothing was changed in nope.md" in cli("history", "nope.md").err


def test_history_tells_the_time_where_one_is_and_what_was_added(cli, workspace):
    there = ("--config", "userTimezone=Pacific/Kiritimati")
    cli("remember", "Tea, not coffee.", *there)
    told = cli("history", "--json").json["versions"][0]["at"]
    moment = datetime.fromisoformat(told).astimezone(ZoneInfo("Pacific/Kiritimati"))

    line = cli("history", *there).out.splitlines()[0]

    assert f"{moment:%Y-%m-%d %H:%M:%S}" in line
    assert line.endswith("Tea, not coffee.")


def test_history_and_restore_bring_back_what_was(cli, workspace):
    before = (workspace / "MEMORY.md").read_bytes()
    cli("edit", "MEMORY.md", "--old", "VLAN 40", "--new", "VLAN 41")

    versions = cli("history", "./MEMORY.md", "--json").json["versions"]
    listed = cli("history")
    oldest = versions[-1]
    assert list(oldest) == ["id", "at", "path", "operation", "bytes", "hash", "previous", "available"]
    assert all(version["id"] in listed.out for version in versions)
    restored = cli("restore", oldest["id"], "--json").json

    assert restored["path"] == "MEMORY.md"
    assert (workspace / "MEMORY.md").read_bytes() == before


def test_history_of_nothing_says_so(cli, workspace):
    answer = cli("history", "MEMORY.md")

    assert (answer.status, answer.out) == (0, "")
    assert "nothing was changed in MEMORY.md yet" in answer.err


@pytest.mark.parametrize(
    "argv", [["restore", "01XXXXXXXXXXXXXXXXXXXXXXXX"], ["history", "--show", "nonsense"]]
)
def test_an_unknown_version_is_an_error_with_a_hint(cli, workspace, argv):
    answer = cli(*argv)

    assert answer.status == 1
    assert "plainmind history" in answer.err


def test_export_is_one_json_object_a_line(process, workspace):
    lines = [json.loads(line) for line in process("export").out.splitlines()]

    assert [line["path"] for line in lines] == ["MEMORY.md", "memory/2026-02-10.md", "memory/network.md"]
    assert list(lines[0]) == ["schema_version", "path", "text", "day", "sha256", "bytes"]
    assert lines[0]["sha256"] == hashlib.sha256((workspace / "MEMORY.md").read_bytes()).hexdigest()


def test_export_as_zip_holds_the_files_and_never_overwrites(cli, workspace, tmp_path):
    made = cli("export", "--format", "zip", "-o", "memory.zip", "--json").json
    again = cli("export", "--format", "zip", "-o", "memory.zip")
    forced = cli("export", "--format", "zip", "-o", "memory.zip", "--force")

    assert (made["files"], made["format"], made["bytes"]) == (
        3,
        "zip",
        (tmp_path / "memory.zip").stat().st_size,
    )
    with zipfile.ZipFile(io.BytesIO((tmp_path / "memory.zip").read_bytes())) as archive:
        assert archive.read("memory/network.md") == (workspace / "memory" / "network.md").read_bytes()
    assert (again.status, forced.status) == (1, 0)
    assert "exists already" in again.err
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".export-")]


def test_export_does_not_overwrite_a_note_by_mistake(cli, workspace):
    before = (workspace / "MEMORY.md").read_bytes()

    assert cli("export", "--output", str(workspace / "MEMORY.md")).status == 1
    assert (workspace / "MEMORY.md").read_bytes() == before


def test_an_old_version_goes_to_a_pipe_byte_by_byte(cli, workspace):
    before = b"\xef\xbb\xbfcaf\xe9 VLAN 40\r\n"
    (workspace / "memory" / "odd.md").write_bytes(before)
    cli("edit", "memory/odd.md", "--old", "VLAN 40", "--new", "VLAN 41")
    oldest = cli("history", "memory/odd.md", "--json").json["versions"][-1]["id"]

    shown = subprocess.run([COMMAND, "history", "--show", oldest], capture_output=True, check=True)

    assert shown.stdout == before


ODD = b"\xef\xbb\xbfcaf\xe9\r\nnul\0\r\n"


def test_a_zip_holds_the_bytes_of_the_files_whatever_they_are(cli, workspace):
    (workspace / "memory" / "odd.md").write_bytes(ODD)
    cli("export", "--format", "zip", "-o", "memory.zip")

    with zipfile.ZipFile("memory.zip") as archive:
        assert archive.read("memory/odd.md") == ODD


def test_export_to_a_folder_or_beneath_none_names_what_was_asked_for(cli, workspace, tmp_path):
    (tmp_path / "folder").mkdir()
    folder = cli("export", "-o", "folder", "--force")
    nowhere = cli("export", "-o", "nowhere/memory.jsonl")

    assert (folder.status, nowhere.status) == (1, 1)
    assert folder.err.startswith(f"error: {tmp_path / 'folder'} is not a file")
    assert nowhere.err.startswith(f"error: there is no folder {tmp_path / 'nowhere'}\n")


def test_a_forced_export_that_fails_leaves_the_old_one(cli, workspace, tmp_path, monkeypatch):
    cli("export", "-o", "memory.jsonl")
    before = (tmp_path / "memory.jsonl").read_bytes()

    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    for call in ("os.link", "os.replace"):
        monkeypatch.setattr(call, refuse)

    assert cli("export", "-o", "memory.jsonl", "--force").status == 1
    assert (tmp_path / "memory.jsonl").read_bytes() == before
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".export-")]


def test_export_works_on_a_file_system_without_hard_links(cli, workspace, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("os.link", refuse)

    assert cli("export", "-o", "memory.jsonl").status == 0
    assert "exists already" in cli("export", "-o", "memory.jsonl").err


def test_an_editor_that_changes_nothing_is_not_said_to_have(cli, workspace, monkeypatch):
    monkeypatch.setenv("EDITOR", "true")
    untouched = cli("edit", "memory/network.md")  # nothing is indexed yet
    monkeypatch.setenv("EDITOR", "rm")
    removed = cli("edit", "memory/network.md", "--json").json

    assert untouched.out == "memory/network.md is as it was\n"
    assert removed["changed"] is True


def test_operations_of_any_length_stand_in_one_column(cli, workspace, monkeypatch):
    cli("remember", "Tea, not coffee.")
    monkeypatch.setenv("EDITOR", "true")
    cli("edit", "memory/network.md")

    columns = {line.index(" bytes") for line in cli("history").out.splitlines()}
    assert len(columns) == 1


def test_the_latest_note_is_taken_back(cli, workspace):
    cli("remember", "The modem is blue.")

    undone = cli("undo")

    assert undone.out.splitlines()[0].startswith("took back a note in memory/")
    assert undone.out.splitlines()[1].endswith("The modem is blue.")
    assert "modem" not in cli("search", "modem blue", "--min-score", "0").out
    assert cli("undo").status == 1


def test_ids_of_notes_are_for_programs(cli, workspace):
    note = cli("remember", "The modem is blue.", "--json").json

    assert "<!--" not in cli("get", note["path"]).out
    assert "The modem is blue." in cli("get", note["path"]).out
    assert note["id"] in cli("get", note["path"], "--json").json["text"]


def test_cited_lines_say_since_when_they_say_it(cli, workspace):
    (workspace / "MEMORY.md").write_text(
        "# Memory\n\n- by hand\n- noted <!-- m:01HZV9A1B2C3D4E5F6G7H8J9KM -->\n"
    )
    (workspace / "memory" / "2026-05-02.md").write_text("- 10:12 logged\n")
    cli("edit", "MEMORY.md", "--old", "noted", "--new", "noted and corrected", "--config", "userTimezone=UTC")

    answer = cli("history", "MEMORY.md#L1-L4", "--json", "--config", "userTimezone=UTC").json
    today = datetime.now(UTC).date().isoformat()
    assert [(row["line"], row["since"]) for row in answer["lines"]] == [(1, None), (3, None), (4, today)]
    cli("undo")
    shown = cli("history", "MEMORY.md:3-4")
    assert shown.out.splitlines()[1] == "2024-06-08  MEMORY.md:4  - noted"
    assert "of lines marked ? nobody knows" in shown.err
    assert cli("history", "memory/2026-05-02.md#L1").out.startswith("2026-05-02  ")
    assert "there is no range 9-9" in cli("history", "MEMORY.md#L9").err


def test_undo_says_that_the_latest_note_is_gone_and_takes_back_the_one_before(cli, workspace):
    log = workspace / cli("remember", "log one", "--json").json["path"]
    cli("remember", "log two")
    log.write_text("".join(line for line in log.read_text().splitlines(True) if "log two" not in line))

    undone = cli("undo")

    assert "a later note was gone from `memory/" in undone.err
    assert undone.out.splitlines()[1].endswith("log one")
    cli("remember", "log three")
    assert cli("undo", "--json").json["remarks"] == []
