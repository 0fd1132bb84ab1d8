"""`plainmind qmd mcp`: the tools of QMD's server, as programs that speak with it expect them."""

from __future__ import annotations

import http.client
import io
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.support.qmd_recordings import make_notes

from plainmind.guests.qmd.commands import run
from plainmind.guests.qmd.http_server import Server, guard_of
from plainmind.guests.qmd.server import serve


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """Send requests to the server; what it answers to each."""
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "QMD_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    make_notes(tmp_path)
    run(("collection", "add", "boat", "--name", "boat"))
    run(("context", "add", "qmd://boat", "All about the boat"))
    capsys.readouterr()

    def send(*requests):
        lines = [
            request
            if isinstance(request, bytes)
            else json.dumps({"jsonrpc": "2.0", "id": 7, **request}).encode()
            for request in requests
        ]
        out = io.BytesIO()
        serve(None, [line + b"\n" for line in lines], out)
        return [json.loads(line) for line in out.getvalue().splitlines()]

    return send


@pytest.fixture
def call(ask):
    def send(name, **arguments):
        (answer,) = ask({"method": "tools/call", "params": {"name": name, "arguments": arguments}})
        return answer["result"]

    return send


def test_it_says_who_it_is_and_which_tools_it_has(ask):
    hello = {"method": "initialize", "params": {"protocolVersion": "2025-03-26"}}
    told = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'

    welcome, tools, pong = ask(hello, told, {"method": "tools/list"}, {"method": "ping"})

    assert welcome["result"]["serverInfo"] == {"name": "qmd", "version": "2.8.3"}
    assert welcome["result"]["protocolVersion"] == "2025-03-26"
    assert "boat" in welcome["result"]["instructions"]
    assert [tool["name"] for tool in tools["result"]["tools"]] == ["query", "get", "multi_get", "status"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools["result"]["tools"])
    assert pong == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_a_query_gives_what_programs_read_with_the_right_numbers_before_its_lines(call):
    found = call("query", searches=[{"type": "lex", "query": "larch"}], rerank=False, limit=3)

    assert found["content"][0]["text"].startswith('Found 1 result for "larch":\n\n#')
    (item,) = found["structuredContent"]["results"]
    assert (item["file"], item["collection"], item["line"]) == ("boat/hull.md", "boat", 3)
    assert item["context"] == "All about the boat"
    assert item["snippet"].startswith("@@ -2,4 @@ (1 before, 3 after)\n2: \n3: The planks are of larch")


def test_a_question_is_answered_and_words_that_are_nowhere_are_not(call):
    answered = call("query", query="who made the mainsail?", rerank=False)
    nowhere = call("query", searches=[{"type": "lex", "query": "quokka"}])
    elsewhere = call("query", query="larch", collections=["nope"])

    assert answered["structuredContent"]["results"][0]["file"] == "boat/rig/sails.md"
    assert nowhere["structuredContent"] == elsewhere["structuredContent"] == {"results": []}


def test_documents_are_read_whole_or_in_part(call, ask):
    part = call("get", file="boat/hull.md:3:1")["content"][0]["resource"]
    same = call("get", file="hull.md", fromLine=3, maxLines=1, lineNumbers=False)["content"][0]["resource"]
    several = call("multi_get", pattern="rig/*.md")["content"]
    listed = call("multi_get", pattern="hull.md,nope.md", maxBytes=10)["content"]
    (read,) = ask({"method": "resources/read", "params": {"uri": "qmd://boat/rig/mast.md"}})

    assert part["uri"] == "qmd://boat/hull.md"
    assert part["text"].endswith("\n\n3: The planks are of larch, on frames of oak.")
    assert same["text"].endswith("\n\nThe planks are of larch, on frames of oak.")
    assert [page["resource"]["uri"] for page in several] == [
        "qmd://boat/rig/mast.md",
        "qmd://boat/rig/sails.md",
    ]
    assert "File not found: nope.md" in listed[0]["text"]
    assert "File too large" in listed[1]["text"]
    assert "spruce" in read["result"]["contents"][0]["text"]


def test_an_edit_is_seen_by_the_next_call_and_status_counts(call, tmp_path):
    (tmp_path / "boat" / "keel.md").write_text("# Keel\n\nIt is of titanium.\n")

    assert (
        call("query", query="titanium", rerank=False)["structuredContent"]["results"][0]["file"]
        == "boat/keel.md"
    )
    facts = call("status")["structuredContent"]
    assert (facts["totalDocuments"], facts["collections"][0]["documents"]) == (4, 4)


def test_what_cannot_be_done_is_said(call, ask):
    assert call("get") == {
        "content": [{"type": "text", "text": "Invalid arguments for tool get: `file` is missing"}],
        "isError": True,
    }
    assert "Did you mean one of these?\n  - hull.md" in call("get", file="hul.md")["content"][0]["text"]
    assert call("query")["isError"]
    assert call("query", query="larch", limit="many")["isError"]
    unknown, wrong, missing, broken = ask(
        {"method": "tools/call", "params": {"name": "frob"}},
        {"method": "frob"},
        {"method": "resources/read", "params": {"uri": "qmd://boat/nope.md"}},
        b"{broken",
    )
    codes = [answer["error"]["code"] for answer in (unknown, wrong, missing, broken)]
    assert codes == [-32602, -32601, -32602, -32700]


@pytest.fixture
def over_http(ask):
    """Send a request over HTTP; the status and what was answered."""
    with Server(None, "localhost", 0, guard_of("localhost", {})) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def send(method, path, body=None, **headers):
            connection = http.client.HTTPConnection("localhost", server.server_port, timeout=30)
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, data, headers)
            answered = connection.getresponse()
            text = answered.read()
            connection.close()
            return answered.status, json.loads(text) if text else None

        yield send
        server.shutdown()
        thread.join()


def test_the_same_tools_answer_over_http(over_http):
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    called = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "query", "arguments": {"query": "who made the mainsail?", "rerank": False}},
    }

    assert over_http("POST", "/mcp", hello)[1]["result"]["serverInfo"]["name"] == "qmd"
    assert over_http("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, None)
    status, answered = over_http("POST", "/mcp", called)
    assert status == 200
    assert answered["result"]["structuredContent"]["results"][0]["file"] == "boat/rig/sails.md"
    assert over_http("GET", "/mcp")[0] == over_http("DELETE", "/mcp")[0] == 405


def test_programs_ask_without_mcp_too(over_http):
    asked = {"searches": [{"type": "lex", "query": "larch"}], "limit": 3, "rerank": False}

    status, answered = over_http("POST", "/query", asked)

    assert (status, over_http("POST", "/search", asked)[1]) == (200, answered)
    (item,) = answered["results"]
    assert (item["file"], item["line"], item["context"]) == ("qmd://boat/hull.md", 3, "All about the boat")
    assert over_http("GET", "/health")[1]["status"] == "ok"
    assert over_http("POST", "/query", {"query": "larch"})[0] == 400
    assert over_http("POST", "/query", {"searches": [{"query": "larch"}], "limit": "many"})[0] == 400
    assert over_http("POST", "/query", b"{broken")[0] == 400
    assert over_http("GET", "/nope")[0] == over_http("POST", "/nope", {})[0] == 404


def test_a_page_from_elsewhere_is_not_answered(over_http):
    asked = {"searches": [{"type": "lex", "query": "larch"}]}

    assert over_http("POST", "/query", asked, Origin="https://elsewhere.example")[0] == 403
    assert over_http("POST", "/mcp", asked, Host="elsewhere.example:80")[0] == 403
    assert over_http("GET", "/health", Origin="null")[0] == 403
    assert over_http("GET", "/health", Origin="http://localhost:3000")[0] == 200


def test_who_opens_it_to_others_says_to_whom():
    everywhere = guard_of("0.0.0.0", {})
    named = guard_of("0.0.0.0", {"QMD_ALLOWED_HOSTS": "box.lan", "QMD_ALLOWED_ORIGINS": "https://app.lan"})

    assert not everywhere.checks_hosts
    assert everywhere.refusal("https://elsewhere.example", "box.lan")
    assert named.refusal("https://app.lan", "box.lan:8181") == ""
    assert named.refusal("", "elsewhere.example")
    assert guard_of("localhost", {"QMD_ALLOWED_ORIGINS": "*"}).refusal("https://elsewhere.example", "x") == ""


def test_it_runs_in_the_background_until_it_is_stopped(ask, tmp_path):
    def qmd(*words):
        program = [sys.executable, "-m", "plainmind", "qmd", *words]
        done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr

    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        port = str(taken.getsockname()[1])
        taken.listen()
        assert f"Port {port} already in use" in qmd("mcp", "--http", "--daemon", "--port", port)

    try:
        assert f"Started on http://localhost:{port}/mcp (PID " in qmd(
            "mcp", "--http", "--daemon", "--port", port
        )
        assert "Already running" in qmd("mcp", "--http", "--daemon", "--port", port)
    finally:
        assert "Stopped QMD MCP server" in qmd("mcp", "stop")

    number = tmp_path / ".cache/qmd/mcp.pid"
    number.write_text(str(os.getpid()))  # that of another process by now
    assert "stale" in qmd("mcp", "stop")
    assert not number.exists()
    assert "Not running" in qmd("mcp", "stop")


def test_an_agent_is_told_how_to_use_it(ask, capsys):
    assert run(("skill", "install", "--yes")) == 0
    assert run(("skill", "install")) == 1
    assert "use --force" in capsys.readouterr().err
    assert run(("skill", "install", "--force")) == 0
    capsys.readouterr()

    run(("skills", "get", "qmd", "--json"))
    (told,) = json.loads(capsys.readouterr().out)["data"]
    run(("skills", "path", "qmd"))
    shipped = Path(capsys.readouterr().out.strip(), "SKILL.md").read_text()

    for place in (".agents", ".claude"):
        assert Path(place, "skills/qmd/SKILL.md").read_text() == told["content"] == shipped
    assert run(("skills", "get", "nope")) == 1
    assert run(("skill", "frob")) == 1
