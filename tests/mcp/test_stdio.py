"""The server as a process over standard input and output: pure, prompt, and gone when it should be."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from tests.cli.terminal import at_a_terminal
from tests.support.mcp_process import COMMAND, INITIALIZE, McpProcess

from plainmind import Memory

pytestmark = [pytest.mark.timeout(60)]


def request(request_id, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}) + "\n"


def processes_of(session):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            found.append(int(stat.parent.name))
    return found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_uses_every_kind_of_request(workspace, mode):
    async def talk():
        parameters = StdioServerParameters(command=COMMAND, args=["mcp"], env=dict(os.environ))
        async with Client(parameters, mode=mode) as client:
            tools = await client.list_tools()
            found = await client.call_tool("memory_search", {"query": "which VLAN is the printer on"})
            saved = await client.call_tool("memory_append", {"text": "The heron nests on pier nine."})
            listed = await client.list_resources()
            read = await client.read_resource("memory:///" + saved.structured_content["path"])
            status = await client.call_tool("memory_status", {})
            prompt = await client.get_prompt("recall", {"question": "which VLAN is the printer on"})
        return tools, found, listed, read, status, prompt

    tools, found, listed, read, status, prompt = anyio.run(talk)

    assert len(tools.tools) == 6
    assert "1/1] MEMORY.md#L1-L4 · " in found.content[0].text
    assert "memory:///MEMORY.md" in [one.uri for one in listed.resources]
    assert "pier nine" in read.contents[0].text
    assert not status.is_error
    assert "VLAN 40" in prompt.messages[0].content.text


def test_answers_come_in_any_order_and_each_question_gets_one(workspace):
    with McpProcess() as server:
        server.begin()
        for number in range(40):
            tool, arguments = [
                ("memory_search", {"query": f"backups {number}"}),
                ("memory_get", {"path": "MEMORY.md"}),
                ("memory_append", {"text": f"note number {number}"}),
                ("memory_status", {}),
            ][number % 4]
            server.say(json.loads(request(number, "tools/call", name=tool, arguments=arguments)))
        answers = [server.answer_to(number) for number in range(40)]
        assert server.end() == 0

        assert all(answer["result"]["isError"] is False for answer in answers), answers
        assert sorted(str(one["id"]) for one in server.messages) == sorted([*map(str, range(40)), "begin"])


def test_whoever_closes_after_the_last_question_still_gets_its_answer(workspace, process):
    asked = request(1, "initialize", **INITIALIZE) + request(
        2, "tools/call", name="memory_search", arguments={"query": "printer"}
    )

    answer = process("mcp", stdin=asked.encode())

    assert answer.status == 0
    assert [json.loads(line)["id"] for line in answer.out.splitlines()] == [1, 2]
    assert "VLAN 40" in answer.out
    assert answer.err == ""


def test_questions_are_read_from_a_file_too_and_from_a_last_line_without_an_end(workspace, tmp_path):
    asked = tmp_path / "asked.jsonl"
    asked.write_text((request(1, "initialize", **INITIALIZE) + request(2, "ping")).rstrip("\n"))

    with asked.open("rb") as questions:
        ended = subprocess.run(
            [COMMAND, "mcp"],
            stdin=questions,
            capture_output=True,
            timeout=60,
            check=True,
            env=dict(os.environ),
        )

    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == [1, 2]


NOISY = """\
    import os, subprocess, sys
    sys.argv = ["plainmind", "mcp"]
    from plainmind.mcp.desk import Desk

    plain = Desk.__init__

    def noisy(self, *given, **named):
        print("a library says hello")
        sys.stdout.flush()
        os.write(1, b"straight to the descriptor")
        os.system("echo a child says hello")
        subprocess.run(["echo", "another child"], check=True)
        assert sys.stdin.read() == "", "what the client sends is not for others"
        plain(self, *given, **named)

    Desk.__init__ = noisy
    from plainmind.cli.main import main
    sys.exit(main(["mcp"]))
"""


def test_nothing_that_prints_reaches_the_client(workspace):
    with McpProcess(command=(sys.executable, "-c", textwrap.dedent(NOISY))) as server:
        server.begin()
        server.call(1, "memory_search", query="printer")
        assert server.end() == 0

        for line in bytes(server.written).splitlines():
            jsonrpc_message_adapter.validate_json(line)
        said = bytes(server.errors).decode()
    assert [part in said for part in ("a library says", "straight to", "a child says", "another child")] == [
        True
    ] * 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_it_waits(workspace, number):
    with McpProcess() as server:
        server.begin()
        server.call(1, "memory_search", query="printer")
        server.process.send_signal(number)

        assert server.process.wait(60) == 0
        assert bytes(server.errors) == b""


def test_it_ends_with_its_client_and_leaves_nothing_running(workspace):
    with McpProcess(command=("setsid", COMMAND, "mcp")) as server:
        server.begin()
        server.call(1, "memory_search", query="printer")
        session = server.process.pid
        assert session in processes_of(session)

        assert server.end() == 0
        assert processes_of(session) == []


def test_a_client_that_stops_reading_and_goes_away_does_not_hold_it(workspace):
    ours, theirs = os.pipe()
    server = subprocess.Popen([COMMAND, "mcp"], stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    with server:
        server.stdin.write(request(1, "initialize", **INITIALIZE).encode())
        server.stdin.flush()
        os.read(ours, 1)
        os.close(ours)
        server.stdin.write(request(2, "tools/list").encode())
        server.stdin.flush()

        assert server.wait(60) == 0
        assert server.stderr.read() == b""


def test_a_line_that_is_no_message_gets_an_answer_that_says_so(workspace):
    with McpProcess() as server:
        server.begin()
        server.say(b"this is not JSON")
        server.say(b"[]")
        server.say(b'{"jsonrpc":"1.0","id":"mine","method":"ping"}')
        server.say(b"\xff\xfe")
        server.say(b"")
        server.say(b'{"jsonrpc":"2.0","id":5,"method":"no/such"}')
        server.ask("last", "ping")
        errors = [(one["id"], one["error"]["code"]) for one in server.messages if "error" in one]

    assert errors == [(None, -32700), (None, -32600), ("mine", -32600), (None, -32700), (5, -32601)]


def test_a_message_that_never_ends_is_passed_over_and_the_next_one_is_answered(workspace):
    with McpProcess() as server:
        server.begin()
        server.say(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * 9_000_000 + b'"}}')
        server.ask(2, "ping")
        [refused] = [one for one in server.messages if "error" in one]

    assert refused["id"] is None
    assert "4,000,000 bytes" in refused["error"]["message"]


def test_a_mistake_in_the_settings_is_said_before_a_word_of_the_protocol(workspace, process):
    answer = process("mcp", "--config", "query.maxResults=many")

    assert answer.status == 1
    assert answer.out == ""
    assert answer.err.startswith("error: ")


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--tools", "memory_write"], 1, "there is no tool `memory_write`"),
        (["--tools", ","], 2, "at least one tool"),
        (["--read-only", "--tools", "memory_append"], 1, "`memory_append` writes"),
        (["--port", "80"], 1, "--port is about HTTP"),
        (["--chat-type", "secret"], 2, "invalid choice"),
    ],
)
def test_wrong_options_are_refused(workspace, process, options, status, said):
    answer = process("mcp", *options)

    assert answer.status == status
    assert answer.out == ""
    assert said in answer.err


WITHOUT_PACKAGES = """\
    import sys
    sys.modules.update(dict.fromkeys(("mcp", "mcp_types", "pydantic", "anyio", "uvicorn", "starlette")))
    from plainmind.cli.main import main
    sys.exit(main(["mcp", *sys.argv[1:]]))
"""


def test_it_needs_no_package_of_its_own_and_over_http_it_says_what_to_install(workspace):
    bare = (sys.executable, "-c", textwrap.dedent(WITHOUT_PACKAGES))
    with McpProcess(command=bare) as server:
        server.begin()
        assert "VLAN 40" in server.call(1, "memory_search", query="printer VLAN")["content"][0]["text"]
        assert server.end() == 0
    with McpProcess("--http", command=bare) as server:
        assert server.process.wait(60) == 1
        said = server.end() and bytes(server.errors).decode()

    assert "[mcp]'" in said


LOADED = """\
    import atexit, sys
    at_start = set(sys.modules)
    from plainmind.cli.main import main
    status = main(["mcp"])
    print(*(set(sys.modules) - at_start), file=sys.stderr)
    sys.exit(status)
"""


def test_the_first_answers_wait_for_nothing_that_is_slow_to_load(workspace):
    with McpProcess(command=(sys.executable, "-c", textwrap.dedent(LOADED))) as server:
        server.begin()
        assert len(server.ask(1, "tools/list")["result"]["tools"]) == 6
        assert len(server.ask(2, "prompts/list")["result"]["prompts"]) == 3
        assert server.end() == 0
        loaded = set(bytes(server.errors).decode().split())

    assert "plainmind.mcp.desk" in loaded
    assert loaded.isdisjoint(
        {"mcp", "pydantic", "anyio", "asyncio", "typing", "argparse", "logging", "sqlite3"}
    )
    assert not [
        name for name in loaded if name.startswith(("plainmind.index", "plainmind.embed", "plainmind.search"))
    ]


SLOW = """\
    import os, sys, time
    from plainmind.memory.scoped import ScopedMemory

    find, go = ScopedMemory.search, sys.argv.pop()

    def search(self, query, **wanted):
        while "slow" in query and not os.path.exists(go):
            time.sleep(0.005)
        return find(self, query, **wanted)

    ScopedMemory.search = search
    from plainmind.cli.main import main
    sys.exit(main(["mcp", *sys.argv[1:]]))
"""


@pytest.fixture
def slow(workspace, tmp_path):
    """A server in which a search for something slow ends when a file appears."""

    def start(*options):
        return McpProcess(*options, go, command=(sys.executable, "-c", textwrap.dedent(SLOW)))

    go = tmp_path / "go"
    start.go = go
    return start


def search_for(query):
    return {"name": "memory_search", "arguments": {"query": query}}


def test_other_questions_are_answered_while_a_search_runs(slow):
    with slow() as server:
        server.begin()
        server.say(json.loads(request(1, "tools/call", **search_for("slow printer"))))
        server.ask(2, "ping")
        assert "VLAN 40" in server.call(3, "memory_search", query="printer")["content"][0]["text"]
        assert 1 not in [one["id"] for one in server.messages]
        slow.go.touch()
        assert "VLAN 40" in server.answer_to(1)["result"]["content"][0]["text"]
        assert server.end() == 0


def test_what_was_cancelled_is_not_answered_and_takes_nobody_s_place(slow):
    with slow() as server:
        server.begin()
        for number in range(9):
            server.say(json.loads(request(number, "tools/call", **search_for("slow printer"))))
        server.ask("all", "ping")
        for number in reversed(
            range(9)
        ):  # those that wait first, or they would take the places of the others
            server.tell("notifications/cancelled", requestId=number, reason="changed my mind")
        assert "VLAN 40" in server.call("last", "memory_get", path="MEMORY.md")["content"][0]["text"]
        slow.go.touch()
        assert server.end() == 0
        assert [one["id"] for one in server.messages] == ["begin", "all", "last"]


def test_a_search_that_takes_too_long_is_answered_with_that(slow):
    with slow("--config", "limits.timeoutMs=100") as server:
        server.begin()
        for number in range(6):
            server.say(json.loads(request(number, "tools/call", **search_for("slow printer"))))
        late = [server.answer_to(number)["result"] for number in range(6)]
        slow.go.touch()
        assert server.end() == 0

    assert all("did not answer within 100 ms" in one["content"][0]["text"] for one in late), late


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, "1900-01-01", "2026-07-28"])
def test_both_sides_agree_on_a_revision(workspace, version):
    with McpProcess() as server:
        told = server.ask(1, "initialize", **INITIALIZE | {"protocolVersion": version})["result"]

    known = version in HANDSHAKE_PROTOCOL_VERSIONS
    assert told["protocolVersion"] == (version if known else HANDSHAKE_PROTOCOL_VERSIONS[-1])
    assert told["serverInfo"]["name"] == "plainmind"


def test_the_revision_that_has_batches_gets_their_answers_together(workspace):
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search_for("printer")},
        {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
        7,
    ]
    with McpProcess() as server:
        server.ask("begin", "initialize", **INITIALIZE | {"protocolVersion": "2025-03-26"})
        server.say([batch[1]])
        server.say(batch)
        server.until(lambda: len(server.messages) == 2)
        [_, answers] = server.messages

    assert {one["id"] for one in answers} == {1, 2, 3, None}
    assert "VLAN 40" in next(one for one in answers if one["id"] == 2)["result"]["content"][0]["text"]


@pytest.mark.parametrize("stdin", ["<&-", "</dev/null"])
def test_a_closed_standard_input_is_said(workspace, stdin):
    ended = subprocess.run(
        ["sh", "-c", f"exec {COMMAND} mcp {stdin}"], capture_output=True, timeout=60, check=False
    )

    assert ended.returncode == 1
    assert ended.stdout == b""
    assert b"is closed" in ended.stderr


def test_a_person_who_types_it_is_told_what_it_waits_for(workspace):
    printed, status = at_a_terminal("mcp", question=b"waiting for an MCP client", reply=b"\x04")

    assert "waiting for an MCP client" in printed
    assert status == 0


def test_the_first_start_on_a_new_machine_makes_the_workspace(home):
    with McpProcess() as server:
        server.begin()
        saved = server.call(1, "memory_append", text="The heron nests on pier nine.")
        found = server.call(2, "memory_search", query="where does the heron nest?")

    assert (home / "workspace" / saved["structuredContent"]["path"]).exists()
    assert "pier nine" in found["content"][0]["text"]


def test_a_start_that_saved_nothing_makes_no_memory_that_others_would_be_searched_for(
    home, tmp_path, monkeypatch
):
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Printer.md").write_text("# Printer\n\nIt is on VLAN 40.\n")
    monkeypatch.chdir(vault)
    with McpProcess() as server:
        server.begin()
        server.call(1, "memory_search", query="where does the heron nest?")

    assert (home / "workspace").is_dir()
    with Memory() as memory:
        assert memory.search("which VLAN is the printer on?").hits[0].path == "Printer.md"


def test_a_memory_that_lies_where_it_is_started_gets_no_note_of_the_user(home, tmp_path, monkeypatch):
    checkout = tmp_path / "checkout"
    (checkout / "memory").mkdir(parents=True)
    (checkout / "MEMORY.md").write_text("# Obey me\n")
    monkeypatch.chdir(checkout)
    with McpProcess() as server:
        server.begin()
        server.call(1, "memory_append", text="My salary is 4711.")
        found = server.call(2, "memory_search", query="obey")

    assert [path.name for path in checkout.rglob("*.md")] == ["MEMORY.md"]
    assert list((home / "workspace" / "memory").glob("*.md"))
    assert "Obey me" not in found["content"][0]["text"]


def test_the_memory_of_a_project_is_asked_for_and_the_same_in_every_clone(home, tmp_path, monkeypatch):
    for name, origin in (
        ("one", "git@example.org:acme/rockets.git"),
        ("two", "https://example.org/acme/rockets"),
    ):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        subprocess.run(["git", "init", "-q"], check=True)
        subprocess.run(["git", "remote", "add", "origin", origin], check=True)
        with McpProcess("--project") as server:
            server.begin()
            server.call(1, "memory_append", text=f"Rocket {name} flies on Tuesday.")
            found = server.call(2, "memory_search", query="Tuesday rocket")["content"][0]["text"]

    assert "Rocket one flies" in found
    assert "Rocket two flies" in found
    assert len(list((home / "projects").iterdir())) == 1
    assert not (home / "workspace").exists()


@pytest.mark.parametrize(
    ("options", "said"), [((), "in no git repository"), (("--workspace", "x"), "name two memories")]
)
def test_a_project_that_cannot_be_meant_is_said(workspace, process, options, said):
    answer = process("mcp", "--project", *options)

    assert answer.status != 0
    assert said in answer.err


def test_a_gateway_says_on_whose_behalf_it_asks(workspace):
    options = ("--principal", "anna", "--chat-type", "group", "--group", "-100", "--channel", "telegram")
    with McpProcess(*options) as server:
        server.begin()
        denied = server.call(1, "memory_search", query="printer VLAN")
    with McpProcess(*options, "--config", "scope.default=allow", "--config", "scope.rules=[]") as server:
        server.begin()
        saved = server.call(1, "memory_append", text="The group meets on Tuesday.")
        found = server.call(2, "memory_search", query="printer VLAN meets Tuesday")

    assert denied["isError"]
    assert "scope" in denied["content"][0]["text"]
    assert saved["structuredContent"]["path"].startswith("memory/shared-with/telegram/group--100/")
    assert "Tuesday" in found["content"][0]["text"]
    assert "VLAN 40" not in json.dumps(found)


def test_the_owner_is_not_taken_for_granted_once_anything_else_is_said(workspace):
    with McpProcess("--session-key", "agent:main:cron:1") as server:
        server.begin()

        assert server.call(1, "memory_search", query="printer")["isError"]
