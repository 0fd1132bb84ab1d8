"""A home, a workspace and the command line, in this process and as a process of its own."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from dataclasses import dataclass

import pytest
from tests.cli.terminal import COMMAND

from plainmind.cli.main import main


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str

    @property
    def json(self):
        answer = json.loads(self.out)
        assert next(iter(answer)) == "schema_version"
        assert answer["schema_version"] == 1
        return answer


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """State goes to a folder of the test; nothing of whoever runs the tests counts."""
    for name in [name for name in os.environ if name.startswith("PLAINMIND_")]:
        monkeypatch.delenv(name)
    for name in ("EDITOR", "VISUAL", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    monkeypatch.setenv("PLAINMIND_HOME", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A small memory, found through the environment."""
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(
        "# Memory\n\n- The printer is on VLAN 40.\n- Prefers answers in one line.\n"
    )
    (folder / "memory" / "network.md").write_text(
        "# Network\n\nThe gateway host is a Mac Studio in the cellar.\nIts address is 10.0.0.7.\n"
    )
    (folder / "memory" / "2026-02-10.md").write_text(
        "# 2026-02-10\n\n- Agreed with Ana: backups run at 02:15.\n"
    )
    monkeypatch.setenv("PLAINMIND_WORKSPACE", str(folder))
    return folder


@pytest.fixture
def cli(capsys, monkeypatch):
    """Run a command in this process."""

    def run(*argv, stdin=None):
        if stdin is not None:
            data = stdin if isinstance(stdin, bytes) else stdin.encode()
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        capsys.readouterr()
        status = main(list(argv))
        printed = capsys.readouterr()
        return Answer(status, printed.out, printed.err)

    return run


@pytest.fixture
def process():
    """Run the installed command."""

    def run(*argv, stdin=b"", env=None, **settings):
        ended = subprocess.run(
            [COMMAND, *argv],
            input=stdin,
            capture_output=True,
            env={**os.environ, **(env or {})},
            check=False,
            timeout=60,
            **settings,
        )
        return Answer(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    return run


@pytest.fixture
def as_plain_user():
    """Run the installed command as somebody who is bound by permissions; root is only without its privileges."""

    def run(*argv):
        caps = "-dac_override,-dac_read_search"
        dropping = ["setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}"] if os.getuid() == 0 else []
        ended = subprocess.run([*dropping, COMMAND, *argv], capture_output=True, check=False, timeout=60)
        return Answer(ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    if os.getuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    return run
