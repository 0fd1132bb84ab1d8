"""The server as a program: found by `plainmind page`, one for a memory, MCP beside it, TLS, and a true description."""

import json
import os
import signal
import ssl
import subprocess
import sys

import pytest
from tests.guests.page.conftest import write_notes
from tests.support.mcp_process import COMMAND, INITIALIZE
from tests.support.page_server import PageServer
from tests.support.tls_front import certificates

from plainmind.guests.page.table import document, operations

GROUP = ("--principal", "anna", "--chat-type", "group", "--channel", "telegram", "--group", "7")

pytestmark = pytest.mark.timeout(90)


# --- what it says of itself ---


def test_the_description_is_open_to_all_and_has_every_operation(served):
    said = served.get("/v1/openapi.json", token=None)

    assert said == json.loads(json.dumps(document()))
    assert said["openapi"] == "3.1.0"
    described = {(method.upper(), path) for path, methods in said["paths"].items() for method in methods}
    assert described == {(one.method, one.path.replace(":path}", "}")) for one in operations()}
    names = [facts["operationId"] for methods in said["paths"].values() for facts in methods.values()]
    assert len(set(names)) == len(names)


def faults(schema, found, schemas, where="answer"):
    """What an answer has that its schema does not allow."""
    if "$ref" in schema:
        return faults(schemas[schema["$ref"].rpartition("/")[2]], found, schemas, where)
    if "anyOf" in schema:
        each = [faults(one, found, schemas, where) for one in schema["anyOf"]]
        return min(each, key=len)
    types = schema.get("type", [])
    allowed = types if isinstance(types, list) else [types]
    kinds = {
        "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
        "null": type(None),
    }  # fmt: skip
    if allowed and not any(isinstance(found, kinds[one]) for one in allowed):
        return [f"{where} is {type(found).__name__}, not {allowed}"]
    if isinstance(found, list):
        return [
            fault
            for number, one in enumerate(found)
            for fault in faults(schema.get("items", {}), one, schemas, f"{where}[{number}]")
        ]
    if isinstance(found, dict) and "properties" in schema:
        missing = [f"{where} has no {name}" for name in schema["required"] if name not in found]
        unknown = [f"{where} has {name}" for name in found if name not in schema["properties"]]
        inner = [
            fault
            for name, one in found.items()
            if name in schema["properties"]
            for fault in faults(schema["properties"][name], one, schemas, f"{where}.{name}")
        ]
        return missing + unknown + inner
    return []


@pytest.mark.parametrize(
    ("method", "path", "target", "body"),
    [
        ("get", "/v1/session", "/v1/session", None),
        ("post", "/v1/search", "/v1/search", {"query": "which VLAN is the printer on", "explain": True}),
        ("get", "/v1/notes", "/v1/notes", None),
        ("get", "/v1/notes/{path}", "/v1/notes/memory/network.md", None),
        ("get", "/v1/history", "/v1/history", None),
        ("get", "/v1/days", "/v1/days", None),
        ("get", "/v1/days/{day}", "/v1/days/2026-11-15", None),
        ("get", "/v1/sessions", "/v1/sessions", None),
        ("get", "/v1/start-context", "/v1/start-context", None),
        ("get", "/v1/tags", "/v1/tags", None),
        ("get", "/v1/tags/{tag}", "/v1/tags/home", None),
        ("get", "/v1/links/{path}", "/v1/links/memory/network.md", None),
        ("get", "/v1/graph", "/v1/graph?note=network&depth=2", None),
        ("get", "/v1/map", "/v1/map", None),
        ("get", "/v1/entries", "/v1/entries", None),
        ("get", "/v1/recalls", "/v1/recalls", None),
        ("get", "/v1/doctor", "/v1/doctor", None),
        ("get", "/v1/settings", "/v1/settings", None),
        ("post", "/v1/forget", "/v1/forget", {"what": "MEMORY.md#L3"}),
    ],
)
def test_an_answer_is_what_the_description_says(served, method, path, target, body):
    said = document()
    schema = said["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]

    answer = served.ask(method.upper(), target, body)

    assert answer.status == 200
    assert faults(schema, answer.json, said["components"]["schemas"]) == []


def test_a_problem_is_what_the_description_says(served):
    said = document()["components"]["schemas"]

    for answer in (
        served.ask("GET", "/v1/nothing"),
        served.ask("POST", "/v1/search", {}),
        served.ask("PUT", "/v1/undo"),
    ):
        assert faults(said["Problem"], answer.json, said) == []
        assert answer.json["type"] in said["Problem"]["properties"]["type"]["enum"]


# --- the program ---


def test_the_page_is_started_where_no_server_is_running_and_opens_with_its_code(tmp_path):
    notes = write_notes(tmp_path / "notes")
    place = ["--workspace", str(notes), "--home", str(tmp_path / "home")]
    page = subprocess.Popen(
        [COMMAND, "page", "--no-open", "--port", "0", *place],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = page.stdout.readline().strip()
        url, _, code = address.partition("/#code=")
        assert url.startswith("http://127.0.0.1:")
        again = subprocess.run(
            [COMMAND, "page", "--json", "--no-open", *place], capture_output=True, text=True, check=True
        )
        assert json.loads(again.stdout)["url"] == url
        assert json.loads(again.stdout)["address"].partition("#code=")[2] not in {"", code}
        page.send_signal(signal.SIGINT)
        assert page.wait(30) == 0
    finally:
        page.kill()
        page.communicate()


def test_a_server_that_was_killed_stands_in_nobodys_way(tmp_path):
    notes = write_notes(tmp_path / "notes")
    with PageServer(notes, tmp_path / "home") as first:
        first.process.kill()
        first.process.wait()
        with PageServer(notes, tmp_path / "home") as second:
            second.sign_in()
            assert len(second.get("/v1/notes")["notes"]) == 4
            assert second.end() == 0


def test_mcp_is_served_beside_it_to_those_who_have_its_token(served):
    token = (served.home / "mcp-token").read_text().strip()
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    accepted = {"Accept": "application/json, text/event-stream"}

    answer = served.ask("POST", "/mcp", message, token=token, headers=accepted)
    foreign = served.ask(
        "POST", "/mcp", message, token=token, headers={**accepted, "Origin": "http://127.0.0.1:1"}
    )
    without = served.ask("POST", "/mcp", message, token=served.token, headers=accepted)

    assert (answer.status, answer.json["result"]["serverInfo"]["name"]) == (200, "plainmind")
    assert (foreign.status, without.status) == (403, 401)
    assert served.ask("GET", "/v1/notes", token=token).status == 401


def test_a_named_token_brings_its_rights_and_its_context_to_mcp(written):
    def made(name, rights, *context):
        told = written.run("tokens", "add", name, "--json", "--rights", rights, *context)
        return json.loads(told)["token"]

    def call(token, name, **arguments):
        return written.ask_mcp(token, "tools/call", {"name": name, "arguments": arguments})

    reader, writer = made("reader", "read"), made("writer", "read,write")
    group = made("family", "read,write,forget", *GROUP)
    log = written.workspace / "memory" / f"{written.get('/v1/session')['today']}.md"

    tools = {
        token: {tool["name"] for tool in written.ask_mcp(token, "tools/list")["tools"]}
        for token in (reader, writer, group)
    }
    assert tools[reader] == {"memory_search", "memory_get", "memory_status"}
    assert tools[writer] - tools[reader] == {"memory_append", "memory_edit"}
    assert tools[group] - tools[writer] == {"memory_forget"}
    assert "no tool" in call(reader, "memory_append", text="The attic is dry.")["message"]
    assert not call(writer, "memory_append", text="The attic is dry.")["isError"]
    assert "The attic is dry." in log.read_text()
    assert "VLAN 40" in call(reader, "memory_search", query="printer VLAN")["content"][0]["text"]
    assert "VLAN 40" not in call(group, "memory_search", query="printer VLAN")["content"][0]["text"]
    assert call(group, "memory_get", path="MEMORY.md")["isError"]
    asked = {one["host"] for one in written.get("/v1/recalls")["recalls"]}
    assert {"tests (reader)", "tests (family)"} <= asked


def test_mcp_refuses_a_named_token_that_may_not_read_and_one_that_was_revoked(written):
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
    accepted = {"Accept": "application/json, text/event-stream"}
    add = ("tokens", "add", "--json", "--rights")
    scribe = json.loads(written.run(*add, "write", "scribe"))["token"]
    guest = json.loads(written.run(*add, "read", "guest"))["token"]

    blind = written.ask("POST", "/mcp", message, token=scribe, headers=accepted)
    assert (blind.status, "no right to read" in blind.json["error"]) == (403, True)
    let_in = written.ask("POST", "/mcp", message, token=guest, headers=accepted)
    session = {**accepted, "Mcp-Session-Id": let_in.headers["mcp-session-id"]}
    foreign = written.ask(
        "POST", "/mcp", message, token=guest, headers={**accepted, "Origin": "http://127.0.0.1:1"}
    )
    assert (let_in.status, foreign.status) == (200, 403)
    other = json.loads(written.run(*add, "read", "other"))["token"]
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert written.ask("POST", "/mcp", ping, token=guest, headers=session).status == 200
    assert written.ask("POST", "/mcp", ping, token=other, headers=session).status == 404
    written.run("tokens", "revoke", "guest")
    assert written.ask("POST", "/mcp", ping, token=guest, headers=session).status == 401


def test_over_http_too_the_recall_log_tells_which_client_asked(written):
    token = (written.home / "mcp-token").read_text().strip()
    for name in ("one-client", "other-client"):
        client = {**INITIALIZE, "clientInfo": {"name": name, "version": "1"}}
        asked = {"name": "memory_search", "arguments": {"query": "which tea does Anna like"}}
        written.ask_mcp(token, "tools/call", asked, client=client)

    hosts = [one["host"] for one in written.get("/v1/recalls")["recalls"][:2]]
    assert hosts == ["other-client", "one-client"]


def test_with_a_certificate_it_speaks_tls_and_the_page_is_found(tmp_path):
    authority, certificate, key = certificates(tmp_path, "localhost")
    notes = write_notes(tmp_path / "notes")
    with PageServer(notes, tmp_path / "home", "--certificate", certificate, "--key", key) as server:
        assert server.url.startswith("https://127.0.0.1:")
        code = server.new_code()
        import http.client

        known = ssl.create_default_context(cafile=str(authority))
        known.check_hostname = False
        line = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=known)
        headers = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin", "Origin": server.url}
        line.request("POST", "/v1/session", json.dumps({"code": code}), headers)
        answer = line.getresponse()
        assert answer.status == 201, answer.read()
        line.close()


def test_what_is_missing_for_the_page_is_named(tmp_path):
    program = (
        "import sys; sys.modules['uvicorn'] = None; from plainmind.cli.main import main;"
        " sys.exit(main(['page', '--workspace', sys.argv[1], '--home', sys.argv[2]]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(write_notes(tmp_path / "notes")), str(tmp_path / "home")],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )  # fmt: skip

    assert ended.returncode == 1
    assert "[page]" in ended.stderr
