"""Reading settings must not cost a cold start more than it has to."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from plainmind.config.load import load_here
environ = {"HOME": sys.argv[1], "PLAINMIND_QUERY_MAXRESULTS": "3"}
load_here(workspace_flag=None, cwd="/", flags={}, environ=environ)
print(*sorted(sys.modules))
"""


def modules_after_loading(home):
    # An empty environment: whatever measures this test run must not import its own modules over there.
    command = [sys.executable, "-c", PROGRAM, str(home)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env={})
    return set(answer.stdout.split())


def test_loading_without_a_file_imports_nothing_heavy(tmp_path):
    modules = modules_after_loading(tmp_path)

    heavy = {"json5", "difflib", "pathlib", "importlib.metadata", "numpy", "logging", "subprocess", "asyncio"}
    assert not modules & heavy
    assert "plainmind.config.openclaw" not in modules


def test_a_plain_json_file_does_not_need_json5(tmp_path):
    (tmp_path / ".plainmind").mkdir()
    (tmp_path / ".plainmind" / "plainmind.json5").write_text('{"citations": "on"}')

    assert "json5" not in modules_after_loading(tmp_path)


def test_a_file_that_names_settings_of_a_guest_loads_no_other_guest(tmp_path):
    (tmp_path / ".plainmind").mkdir()
    (tmp_path / ".plainmind" / "plainmind.json5").write_text('{"qmd": {"command": "qmd"}}')
    command = [sys.executable, "-c", PROGRAM.replace('"PLAINMIND_QUERY_MAXRESULTS": "3"', ""), str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env={})

    guests = [name for name in answer.stdout.split() if name.startswith("plainmind.guests.")]
    assert guests == ["plainmind.guests.qmd", "plainmind.guests.qmd.config"]


def test_without_a_file_nothing_of_a_guest_is_loaded_and_no_key_is_built(tmp_path):
    program = PROGRAM.replace('"PLAINMIND_QUERY_MAXRESULTS": "3"', '"PLAINMIND_WORKSPACE": "/tmp"')
    command = [sys.executable, "-c", program, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env={})

    ours = [
        name for name in answer.stdout.split() if name.startswith(("plainmind.config", "plainmind.guests"))
    ]
    assert ours == [
        "plainmind.config",
        *(f"plainmind.config.{name}" for name in ("kinds", "load", "settings")),
    ]
