"""A user without a home folder: a number that the system has no name for, as containers and services run under."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path

import pytest

from plainmind import Memory
from plainmind.base.errors import ConfigError
from plainmind.cli.main import main
from plainmind.config.load import home_folder
from plainmind.files.safe_open import expand_user, user_home, user_home_or_root

SOURCE = Path(__file__).resolve().parents[2] / "src" / "plainmind"


@pytest.fixture
def nobody(tmp_path, monkeypatch):
    """Nothing names the home of the user, and the current folder is empty."""

    def unknown(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in [name for name in os.environ if name.startswith(("PLAINMIND_", "XDG_", "QMD_"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.mark.parametrize("home", ["", "relative", "~"])
def test_no_folder_is_made_in_the_current_one_for_want_of_a_home(nobody, monkeypatch, home, capsys):
    monkeypatch.setenv("HOME", home)

    for command in (["status"], ["remember", "a note"], ["qmd", "status"], ["connect", "codex"]):
        assert main(command) == 1, command
        said = capsys.readouterr().err
        assert "has no home folder" in said
        assert "set HOME, or PLAINMIND_HOME" in said
    with pytest.raises(ConfigError, match="no home folder"):
        home_folder({})
    assert list(nobody.iterdir()) == []


def test_with_a_home_of_ours_everything_works_that_needs_none_of_the_users(nobody, monkeypatch, capsys):
    monkeypatch.setenv("PLAINMIND_HOME", str(nobody.parent / "state"))
    workspace = str(nobody.parent / "notes")

    assert main(["init", workspace]) == 0
    for command in (["remember", "The modem is blue."], ["search", "modem"], ["doctor"], ["undo"]):
        assert main([*command, "--workspace", workspace]) == 0, capsys.readouterr()
    assert main(["search", "modem"]) in {0, 1}
    with Memory(workspace) as memory:
        assert memory.home == str(nobody.parent / "state")
    with pytest.raises(ConfigError, match="no home folder"):
        Memory("~/notes")
    with pytest.raises(ConfigError, match="no home folder"):
        Memory(workspace, home="~/state")
    assert list(nobody.iterdir()) == []


def test_a_hook_of_a_host_stays_silent_without_a_home(nobody, monkeypatch, capsys):
    from plainmind.guests.hosts.hook import answer_once

    answer_once(b'{"hook_event_name": "SessionStart"}', lambda: Memory("notes"))

    assert capsys.readouterr().out == ""
    assert list(nobody.iterdir()) == []


def test_the_home_is_that_of_the_environment_then_of_the_system(nobody, monkeypatch):
    assert user_home_or_root() == "/"
    assert user_home({"HOME": "/home/ann/"}) == "/home/ann"
    assert expand_user("~/notes", {"HOME": "/"}) == "/notes"
    assert expand_user("~", {"HOME": "/"}) == "/"
    assert expand_user("~nobody-of-that-name/x") == "~nobody-of-that-name/x"
    assert expand_user("a/~") == "a/~"
    entry = pwd.struct_passwd(("ann", "x", 1, 1, "", "/home/ann", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: entry)
    assert user_home({}) == "/home/ann"


def test_the_home_of_the_user_is_asked_for_in_one_place():
    asked = [
        str(file.relative_to(SOURCE))
        for file in sorted(SOURCE.rglob("*.py"))
        if re.search(r"\bexpanduser\(|Path\.home\(", file.read_text())
    ]
    assert asked == ["files/safe_open.py"]
