"""mem0's own client, from an environment of its own, pointed at `plainmind serve`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.support.page_server import PageServer

PYTHON = Path(os.environ.get("PLAINMIND_FRAMEWORKS", "/nonexistent")) / "mem0" / "bin" / "python"

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not PYTHON.exists(), reason="`make frameworks` installs mem0 and runs this"),
]

PROGRAM = """\
import json, sys
from mem0 import MemoryClient

client = MemoryClient(api_key=sys.argv[2], host=sys.argv[1])
seen = {}
seen["added"] = client.add([{"role": "user", "content": "I prefer oolong tea"}], user_id="anna")
client.add("I ride a red bicycle", user_id="bo")
seen["found"] = client.search("which tea?", filters={"user_id": "anna"}, top_k=3)
seen["listed"] = client.get_all(filters={"user_id": "anna"}, page=1, page_size=10)
name = seen["added"]["results"][0]["id"]
seen["read"] = client.get(name)
seen["history"] = client.history(name)
seen["updated"] = client.update(name, text="I prefer green tea")
seen["users"] = client.users()
client.delete(seen["updated"]["id"])
client.delete_users(user_id="bo")
seen["left"] = [client.get_all(filters={"user_id": user})["count"] for user in ("anna", "bo")]
try:
    client.get(name)
except Exception as error:
    seen["gone"] = type(error).__name__
print(json.dumps(seen))
"""


def test_memories_are_added_found_changed_and_deleted_by_its_client(tmp_path):
    (tmp_path / "notes" / "memory").mkdir(parents=True)
    (tmp_path / "notes" / "MEMORY.md").write_text("# Memory\n")
    environ = {"PLAINMIND_ENTRIES_ENABLED": "true", "PLAINMIND_ENTRIES_DRIVER": "sqlite"}
    with PageServer(tmp_path / "notes", tmp_path / "home", env=environ) as server:
        made = server.run("tokens", "add", "mem0", "--json", "--rights", "read,write,forget")
        ended = subprocess.run(
            [PYTHON, "-c", PROGRAM, f"{server.url.rstrip('/')}/compat/mem0", json.loads(made)["token"]],
            capture_output=True,
            text=True,
            check=False,
            env={
                "HOME": str(tmp_path),
                "PATH": "/usr/bin:/bin",
                "MEM0_TELEMETRY": "False",
                "LANG": "C.UTF-8",
            },
            timeout=120,
        )
        assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout.splitlines()[-1])
    assert seen["added"]["results"][0]["event"] == "ADD"
    assert [one["memory"] for one in seen["found"]["results"]] == ["I prefer oolong tea"]
    assert seen["listed"]["count"] == 1
    assert seen["read"]["memory"] == "I prefer oolong tea"
    assert seen["history"][0]["event"] == "ADD"
    assert seen["updated"]["memory"] == "I prefer green tea"
    assert {one["name"] for one in seen["users"]["results"]} == {"anna", "bo"}
    assert seen["left"] == [0, 0]
    assert seen["gone"] == "MemoryNotFoundError"
