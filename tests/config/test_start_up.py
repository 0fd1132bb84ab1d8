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
