"""The server as another client sees it: the TypeScript SDK, which checks every answer against its schema."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.mcp_http import HttpServer
from tests.support.mcp_process import COMMAND

FOLDER = Path(__file__).parents[1] / "support" / "node"

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(90),
    pytest.mark.skipif(
        shutil.which("npm") is None or shutil.which("node") is None, reason="node and npm are not installed"
    ),
]


def seen_by_it(*arguments):
    assert (FOLDER / "node_modules" / ".installed-from").exists(), "run `make node` first"
    ended = subprocess.run(
        ["node", "client.mjs", *arguments],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=80,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return json.loads(ended.stdout)


def judge(seen, workspace):
    assert seen["complaints"] == []
    assert seen["server"]["name"] == "plainmind"
    assert seen["instructions"].startswith("## Memory Recall")
    assert set(seen["capabilities"]) == {"prompts", "resources", "tools"}
    assert [tool["name"] for tool in seen["tools"]] == [
        "memory_search", "memory_get", "memory_append", "memory_edit", "memory_forget", "memory_status",
    ]  # fmt: skip
    assert seen["saved"]["structuredContent"]["path"] in seen["found"]["content"][0]["text"]
    assert "bridge eleven" in seen["found"]["content"][0]["text"]
    assert "bridge eleven" in seen["read"]["content"][0]["text"]
    assert seen["wrong"]["isError"]
    assert seen["missing"]["isError"]
    assert "Nothing was removed yet" in seen["preview"]["content"][0]["text"]
    assert "Removed for good" in seen["forgotten"]["content"][0]["text"]
    assert not (workspace / seen["saved"]["structuredContent"]["path"]).exists()  # it had nothing else
    assert not seen["status"].get("isError")
    assert "memory:///MEMORY.md" in [one["uri"] for one in seen["resources"]]
    assert [one["uriTemplate"] for one in seen["templates"]] == [
        "memory:///{+path}",
        "memory:///memory/{day}.md",
    ]
    assert "VLAN 40" in seen["contents"][0]["text"]
    assert seen["unknown"] == -32602
    assert [one["name"] for one in seen["prompts"]] == ["recall", "remember", "what-do-you-know-about"]
    assert "VLAN 40" in seen["prompt"]["messages"][0]["content"]["text"]


def test_the_typescript_client_is_content_over_standard_input_and_output(workspace):
    judge(seen_by_it("stdio", COMMAND, "mcp"), workspace)


def test_the_typescript_client_is_content_over_http(workspace):
    with HttpServer() as server:
        judge(seen_by_it("http", server.url, server.token), workspace)
