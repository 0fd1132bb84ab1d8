"""`sync` and `watch` say what they did."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import zlib

import pytest
from tests.cli.terminal import COMMAND

from plainmind.base.model import FileFailure, SyncReport
from plainmind.cli.console import Console
from plainmind.cli.index import _print_sync, summary


def test_a_sync_says_what_it_indexed_and_then_that_nothing_changed(cli, workspace):
    first = cli("sync")
    second = cli("sync")

    assert first.out.startswith("indexed 3 files (")
    assert second.out.startswith("up to date, 3 files in ")


def test_a_sync_as_json_lists_every_file(cli, workspace):
    answer = cli("sync", "--json").json

    assert list(answer) == [
        "schema_version", "indexed", "removed", "unchanged", "skipped", "failed", "chunks", "rebuilt", "withheld",
        "degraded", "notes", "fallback", "seconds",
    ]  # fmt: skip
    assert sorted(answer["indexed"]) == ["MEMORY.md", "memory/2026-02-10.md", "memory/network.md"]


def test_force_makes_the_index_anew(cli, workspace):
    cli("sync")

    answer = cli("sync", "--force", "--json").json

    assert (answer["rebuilt"], len(answer["indexed"])) == ("asked for", 3)


def test_an_empty_workspace_says_what_to_do(cli, tmp_path):
    (tmp_path / "empty").mkdir()

    answer = cli("sync", "--workspace", "empty")

    assert answer.status == 0
    assert "no notes" in answer.err
    assert "plainmind remember" in answer.err


def test_a_quiet_sync_prints_nothing(cli, workspace):
    answer = cli("sync", "--quiet")

    assert (answer.status, answer.out, answer.err) == (0, "", "")


def test_files_that_are_left_out_are_mentioned(cli, workspace):
    (workspace / "memory" / "link.md").symlink_to(workspace / "MEMORY.md")

    answer = cli("sync")

    assert "1 file left out" in answer.err
    assert cli("sync", "--json").json["skipped"][0]["path"] == "memory/link.md"


def test_the_summary_counts_what_there_is_to_count():
    report = SyncReport(
        indexed=("a.md",),
        removed=("b.md",),
        failed=(FileFailure("c.md", "bad"),),
        unchanged=1200,
        chunks=2,
        seconds=75,
    )

    assert summary(report) == "indexed 1 file (2 chunks), removed 1, 1 failed, 1,200 unchanged in 1 min 15 s"


@pytest.mark.timeout(60)
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_takes_changes_in_until_a_signal_ends_it_cleanly(workspace, number):
    watching = subprocess.Popen(
        [COMMAND, "watch", "--json", "--config", "sync.watchDebounceMs=50"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
    )
    try:
        first = json.loads(watching.stdout.readline())
        (workspace / "memory" / "new.md").write_text("A quokka.\n")
        second = json.loads(watching.stdout.readline())
        watching.send_signal(number)
        out, err = watching.communicate(timeout=60)
    finally:
        watching.kill()

    assert len(first["indexed"]) == 3
    assert second["indexed"] == ["memory/new.md"]
    assert (watching.returncode, out, err) == (0, b"", b"")


@pytest.mark.parametrize("argv", [["sync"], ["sync", "--force"], ["watch"]])
def test_a_workspace_that_vanished_is_an_error_and_its_index_stays(cli, workspace, tmp_path, argv):
    cli("sync")
    workspace.rename(tmp_path / "elsewhere")

    answer = cli(*argv)

    assert (answer.status, answer.out) == (1, "")
    assert answer.err.startswith("error: there is no workspace at ")
    assert cli("status", "--json").json["files"] == 3


def test_files_that_are_missing_together_are_not_taken_for_a_new_workspace(cli, workspace):
    cli("sync")
    for path in workspace.rglob("*.md"):
        path.unlink()

    answer = cli("sync")

    assert "3 files missing on disk" in answer.err
    assert "plainmind remember" not in answer.err


def test_a_look_that_failed_is_not_called_up_to_date(capsys):
    _print_sync(SyncReport(degraded=("the disk is gone",)), Console())

    assert "could not look for changes" in capsys.readouterr().out


def test_a_picture_that_is_called_a_note_is_named_and_left_out(cli, workspace):
    (workspace / "memory").mkdir(exist_ok=True)
    picture = workspace / "memory" / "picture.md"
    picture.write_bytes(zlib.compress(bytes(range(256)) * 40) + b" lighthouse ")
    os.utime(picture, (1_700_000_000, 1_700_000_000))

    synced = cli("sync")
    again = cli("sync")
    found = cli("search", "lighthouse")

    assert "left out: memory/picture.md: it holds no text" in synced.err
    assert "picture" not in again.err
    assert "picture.md" not in found.out
    assert "! files without text: memory/picture.md: it holds no text" in cli("doctor").out
    shown = cli("get", "memory/picture.md")
    assert shown.out == ""
    assert "memory/picture.md holds no text" in shown.err
