"""Completion scripts that a real shell understands."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.terminal import COMMAND

from plainmind.cli.main import COMMANDS

ASK_BASH = """
eval "$(plainmind completion bash)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_plainmind
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def offered(workspace):
    """What bash offers for the last word of a command line."""
    path = f"{Path(COMMAND).parent}:{os.environ['PATH']}"

    def ask(*words):
        answer = subprocess.run(
            ["bash", "--norc", "-u", "-c", ASK_BASH, "bash", *words],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PATH": path},
        )
        assert answer.stderr == ""
        return answer.stdout.split()

    return ask


def test_bash_offers_every_command(offered):
    assert offered("plainmind", "") == list(COMMANDS)
    assert offered("plainmind", "--workspace", "/tmp", "sea") == ["search"]


def test_bash_offers_options_and_their_choices(offered):
    assert offered("plainmind", "search", "--s") == ["--source", "--since", "--snippet-chars", "--strict"]
    assert offered("plainmind", "search", "q", "--source", "") == ["memory", "sessions", "all"]
    assert offered("plainmind", "completion", "") == ["bash", "zsh", "fish"]


def test_bash_offers_the_files_of_the_memory(offered):
    assert offered("plainmind", "get", "memory/n") == ["memory/network.md"]


def test_bash_knows_the_commands_below_config(offered):
    assert offered("plainmind", "config", "") == ["list", "get", "set", "unset", "path", "import-openclaw"]
    assert "--set" in offered("plainmind", "config", "list", "--")


def test_bash_offers_folders_for_a_workspace(offered, workspace):
    assert offered("plainmind", "--workspace", str(workspace)[:-2]) == [str(workspace)]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_command_and_option_is_in_the_other_scripts(cli, shell):
    script = cli("completion", shell).out

    assert all(name in script for name in COMMANDS)
    assert "snippet-chars" in script
    assert "import-openclaw" in script


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_can_read_their_scripts(cli, shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(cli("completion", shell).out)

    checked = subprocess.run(
        [shell, "-n", str(tmp_path / "script")], capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_script_can_be_had_as_json(cli):
    assert cli("completion", "bash", "--json").json["script"].startswith("# Completion")
