"""Several processes on one memory: nobody is locked out, nothing is lost, everybody sees one whole index."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plainmind import Memory

FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SECONDS = 40 if FULL else 4
WORKER = Path(__file__).parents[1] / "support" / "together.py"


def start(role, workspace, home):
    return subprocess.Popen(
        [sys.executable, str(WORKER), role, str(workspace), str(home), str(SECONDS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 120)
def test_two_search_while_others_sync_watch_and_write(tmp_path):
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("- The gateway runs on a Mac Studio; its backups go to Hetzner.\n")
    for number in range(40):
        (workspace / "memory" / f"{number}.md").write_text(f"# Topic {number}\n\n" + "some words\n" * 20)
    with Memory(workspace, home=home) as memory:
        memory.sync()
    watcher = subprocess.Popen(
        [sys.executable, "-m", "plainmind", "watch", "--workspace", str(workspace)],
        env={**os.environ, "PLAINMIND_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    roles = ("searching", "searching", "syncing", "writing", "finding_own_notes")
    workers = [start(role, workspace, home) for role in roles]
    outcomes = [worker.communicate() for worker in workers]
    watcher.send_signal(signal.SIGTERM)
    _, watcher_errors = watcher.communicate(timeout=60)

    assert [errors for _, errors in outcomes if errors] == []
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    assert watcher.returncode == 0, watcher_errors
    assert "Traceback" not in watcher_errors
    acknowledged = [line.split()[1] for line in outcomes[3][0].splitlines()]
    assert len(acknowledged) > 10
    text = "".join(path.read_text() for path in (workspace / "memory").glob("20*.md"))
    assert [note for note in acknowledged if text.count(f"<!-- m:{note} -->") != 1] == []
    with Memory(workspace, home=home) as memory:
        memory.sync()
        assert [check for check in memory.doctor(verify=True) if check.verdict == "problem"] == []
    generations = list(home.rglob("gen-*.sqlite"))
    assert len(generations) <= 2
