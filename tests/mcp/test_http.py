"""The server over HTTP: with the official client, and against everybody who should not reach it."""

import contextlib
import http.client
import os
import signal
import socket
import stat
import threading

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import jsonrpc_message_adapter
from tests.support.mcp_http import HttpServer

from plainmind.base.errors import PlainmindError
from plainmind.mcp.guard import Bucket, Door, Guard, Refused, Slots, token_in, token_path
from plainmind.mcp.http import door_of, is_loopback, listen, url_of

pytestmark = [pytest.mark.timeout(60)]

CANARY = "VLAN 40"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
SEARCH = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "memory_search", "arguments": {"query": "which VLAN is the printer on"}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for all the requests that it must refuse."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "notes").mkdir()
    (folder / "notes" / "MEMORY.md").write_text(f"- The printer is on {CANARY}. <script>alert(1)</script>\n")
    options = (
        "--workspace",
        folder / "notes",
        "--home",
        folder / "home",
        "--allow-host",
        "Notes.example.org",
    )
    with HttpServer(*options) as running:
        yield running


def with_token(server, do, mode="auto"):
    async def main():
        headers = {"Authorization": f"Bearer {server.token}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(server.url, http_client=http)
            async with Client(transport, mode=mode) as client:
                return await do(client)

    return anyio.run(main)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_uses_every_kind_of_request(server, mode):
    async def talk(client):
        return (
            await client.list_tools(),
            await client.call_tool("memory_search", {"query": "which VLAN is the printer on"}),
            await client.list_resources(),
            await client.read_resource("memory:///MEMORY.md"),
        )

    tools, found, listed, read = with_token(server, talk, mode)

    assert len(tools.tools) == 6
    assert CANARY in found.content[0].text
    assert [one.uri for one in listed.resources] == ["memory:///MEMORY.md"]
    assert CANARY in read.contents[0].text


def test_clients_at_the_same_time_are_all_answered(server):
    async def main():
        async def one(client, number):
            answer = await client.call_tool("memory_search", {"query": f"printer {number}"})
            assert not answer.is_error, answer

        async def session(number):
            headers = {"Authorization": f"Bearer {server.token}"}
            async with httpx2.AsyncClient(headers=headers) as http:
                transport = streamable_http_client(server.url, http_client=http)
                async with Client(transport, mode="legacy") as client:
                    for turn in range(3):
                        await one(client, number * 10 + turn)

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(session, number)

    anyio.run(main)


REFUSED = {
    # the host that was named
    "host evil": (403, {"Host": "evil.example"}),
    "host evil with our port": (403, {"Host": "evil.example:PORT"}),
    "host missing": (400, {"Host": None}),
    "host empty": (403, {"Host": ""}),
    "host without port": (403, {"Host": "127.0.0.1"}),
    "host with another port": (403, {"Host": "127.0.0.1:1"}),
    "host with a trailing dot": (403, {"Host": "localhost.:PORT"}),
    "host in decimal": (403, {"Host": "2130706433:PORT"}),
    "host in hexadecimal": (403, {"Host": "0x7f000001:PORT"}),
    "host in octal": (403, {"Host": "0177.0.0.1:PORT"}),
    "host in short": (403, {"Host": "127.1:PORT"}),
    "host zero": (403, {"Host": "0.0.0.0:PORT"}),
    "host IPv6 mapped": (403, {"Host": "[::ffff:127.0.0.1]:PORT"}),
    "host IPv6 without brackets": (403, {"Host": "::1:PORT"}),
    "host with user": (403, {"Host": "x@127.0.0.1:PORT"}),
    "host with path": (403, {"Host": "127.0.0.1:PORT/mcp"}),
    "host twice": (400, {"Host": ["127.0.0.1:PORT", "evil.example"]}),
    "host that begins like ours": (403, {"Host": "127.0.0.1.evil.example:PORT"}),
    "host that ends like ours": (403, {"Host": "evil-localhost:PORT"}),
    "host that was allowed, with a port": (403, {"Host": "notes.example.org:PORT"}),
    "forwarded host": (403, {"Host": "evil.example", "X-Forwarded-Host": "127.0.0.1:PORT"}),
    # the page that asks
    "origin evil": (403, {"Origin": "http://evil.example"}),
    "origin null": (403, {"Origin": "null"}),
    "origin empty": (403, {"Origin": ""}),
    "origin with another port": (403, {"Origin": "http://127.0.0.1:1"}),
    "origin without port": (403, {"Origin": "http://localhost"}),
    "origin with another scheme": (403, {"Origin": "https://127.0.0.1:PORT"}),
    "origin of a file": (403, {"Origin": "file://"}),
    "origin of an extension": (403, {"Origin": "chrome-extension://abcdefgh"}),
    "origin with a path": (403, {"Origin": "http://127.0.0.1:PORT/"}),
    "origin that begins like ours": (403, {"Origin": "http://127.0.0.1:PORT.evil.example"}),
    "origin twice": (403, {"Origin": ["http://127.0.0.1:PORT", "http://evil.example"]}),
    # the token
    "no token": (401, {"Authorization": None}),
    "empty token": (401, {"Authorization": "Bearer "}),
    "scheme alone": (401, {"Authorization": "Bearer"}),
    "token alone": (401, {"Authorization": "TOKEN"}),
    "short token": (401, {"Authorization": "Bearer SHORT"}),
    "long token": (401, {"Authorization": "Bearer TOKENx"}),
    "another token": (401, {"Authorization": "Bearer " + "A" * 43}),
    "token in capitals": (401, {"Authorization": "Bearer CAPITALS"}),
    "basic": (401, {"Authorization": "Basic TOKEN"}),
    "token twice": (401, {"Authorization": ["Bearer TOKEN", "Bearer TOKEN"]}),
    "token in a cookie": (401, {"Authorization": None, "Cookie": "token=TOKEN"}),
    "token in another header": (401, {"Authorization": None, "X-Api-Key": "TOKEN"}),
    "token with strange letters": (401, {"Authorization": "Bearer \xff\xfe"}),
    "very long token": (401, {"Authorization": "Bearer " + "A" * 8000}),
    # what is sent
    "text/plain": (415, {"Content-Type": "text/plain"}),
    "a form": (415, {"Content-Type": "application/x-www-form-urlencoded"}),
    "a file": (415, {"Content-Type": "multipart/form-data; boundary=x"}),
    "nothing said": (415, {"Content-Type": None}),
    "almost JSON": (415, {"Content-Type": "application/jsonx"}),
    "JSON and more": (415, {"Content-Type": ["application/json", "text/plain"]}),
    "compressed": (415, {"Content-Encoding": "gzip"}),
    "too long by its own account": (413, {"Content-Length": "100000000"}),
    "longer than numbers are": (413, {"Content-Length": "9" * 20}),
    "less than nothing": (400, {"Content-Length": "-1"}),
    "very many headers": (400, {"X-Filler": ["x" * 1000] * 100}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_right_in_every_way_is_refused(server, case):
    status, changes = REFUSED[case]
    real = {
        "PORT": str(server.port),
        "TOKEN": server.token,
        "SHORT": server.token[:-1],
        "CAPITALS": server.token.swapcase(),
    }

    def filled(value):
        if isinstance(value, list):
            return [filled(one) for one in value]
        for name, stands_for in real.items() if value else ():
            value = value.replace(name, stands_for)
        return value

    headers = server.headers() | {name: filled(value) for name, value in changes.items()}
    response = server.send(headers=headers, body=SEARCH)

    assert response.status == status, response
    assert CANARY.encode() not in response.body
    assert server.token.encode() not in response.body
    assert not [name for name in response.headers if name.startswith("access-control")]
    if status == 401:
        assert response.headers["www-authenticate"] == "Bearer"


def test_the_same_search_with_everything_right_is_answered(server):
    begun = server.initialize()
    headers = server.headers(
        Mcp_Session_Id=begun.headers["mcp-session-id"], Mcp_Protocol_Version="2025-11-25"
    )

    response = server.send(headers=headers, body=SEARCH)

    assert response.status == 200
    assert CANARY.encode() in response.body


@pytest.mark.parametrize(
    "host", ["127.0.0.1:PORT", "localhost:PORT", "LOCALHOST:PORT", "[::1]:PORT", "notes.example.org"]
)
def test_every_name_of_this_machine_is_right_and_so_is_one_that_was_allowed(server, host):
    named = host.replace("PORT", str(server.port))

    assert server.initialize(server.headers(Host=named)).status == 200
    assert server.initialize(server.headers(Host=named, Origin=f"http://{named.lower()}")).status == 200


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 404),
        ("POST", "/other", 404),
        ("POST", "/mcp/", 404),
        ("POST", "/mcp/../mcp", 404),
        ("POST", "//mcp", 404),
        ("PUT", "/mcp", 405),
        ("PATCH", "/mcp", 405),
        ("HEAD", "/mcp", 405),
        ("OPTIONS", "/mcp", 405),
        ("TRACE", "/mcp", 405),
        ("CONNECT", "/mcp", 405),
    ],
)
def test_other_places_and_methods_are_refused_and_unknown_to_strangers(server, method, target, status):
    assert server.send(method, target, body=b"{}").status == status
    assert server.send(method, target, server.headers(Authorization=None), b"{}").status == 401


def test_a_page_of_another_site_gets_no_leave_to_ask(server):
    asked = server.headers(
        Authorization=None, Origin="http://evil.example", Access_Control_Request_Method="POST"
    )
    response = server.send("OPTIONS", "/mcp", asked)

    assert response.status == 403
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_no_answer_can_be_framed_sniffed_or_kept(server):
    for response in (server.initialize(), server.send("GET", "/"), server.send(headers={"Host": "evil"})):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert response.headers["content-type"].startswith("application/json")
        assert "server" not in response.headers


def test_a_token_in_the_address_opens_nothing_and_is_written_nowhere(server):
    for query in (
        f"?token={server.token}",
        f"?access_token={server.token}",
        f"?authorization=Bearer%20{server.token}",
    ):
        assert server.send("POST", "/mcp" + query, server.headers(Authorization=None), b"{}").status == 401

    assert server.token not in server.errors


def test_a_body_that_is_too_long_is_refused_while_it_comes(server):
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    headers = server.headers(Transfer_Encoding="chunked")

    assert server.send(headers=headers, body=chunk * 40).status == 413
    assert server.send(body=b"[" + b" " * 1_000_001 + b"]").status == 413
    assert server.send(body=b"x" * 30_000_000).status == 413
    assert server.initialize().status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"nul", b"null", b"[]", b"[1]", b"{}", b'"text"', b"7", b"\xff\xfe", b"\x00" * 10,
        b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":{},"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
        b"[" * 100_000, b'{"a":' * 50_000, b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    ],
)  # fmt: skip
def test_bodies_that_are_no_message_are_refused_without_harm(server, body):
    response = server.send(body=body)

    assert 400 <= response.status < 500 or response.status == 202
    assert b"Traceback" not in response.body
    assert server.initialize().status == 200


@pytest.mark.parametrize("session", ["x", "../..", "0" * 32, "\x7f", "a" * 500])
def test_sessions_that_nobody_began_are_not_found(server, session):
    response = server.send(headers=server.headers(Mcp_Session_Id=session), body=PING)

    assert response.status in {400, 404}


def test_sessions_get_names_that_cannot_be_guessed(server):
    names = {server.initialize().headers["mcp-session-id"] for _ in range(5)}

    assert len(names) == 5
    assert all(len(name) >= 32 for name in names)


def test_a_session_that_was_ended_is_gone(server):
    headers = server.headers(
        Mcp_Session_Id=server.initialize().headers["mcp-session-id"], Mcp_Protocol_Version="2025-11-25"
    )
    assert server.send(headers=headers, body=PING).status == 200

    assert server.send("DELETE", headers=headers).status == 200
    assert server.send(headers=headers, body=PING).status == 404


def test_answers_are_messages_of_the_protocol(server):
    begun = server.initialize()
    headers = server.headers(
        Mcp_Session_Id=begun.headers["mcp-session-id"], Mcp_Protocol_Version="2025-11-25"
    )
    answers = [
        begun,
        *(server.send(headers=headers, body=one) for one in (PING, SEARCH, {**PING, "method": "x"})),
    ]

    for answer in answers:
        jsonrpc_message_adapter.validate_json(answer.body)


def asked_of(guard, *, body=b"{}", **changes):
    """Put one request to the guard itself; the status of the answer."""
    headers = {"host": "h:1", "authorization": "Bearer t", "content-type": "application/json"} | changes
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    sent = []

    async def receive():
        if body is None:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    anyio.run(guard, scope, receive, send)
    return sent[0]["status"]


async def echo(scope, receive, send):
    """An application that gives back what it got."""
    got = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": got["body"]})


DOOR = Door(frozenset({"h:1"}), frozenset(), "t")


def test_strangers_cannot_use_up_the_requests_of_those_who_have_the_token():
    guard = Guard(echo, DOOR, Bucket(burst=2, each_second=1.0, clock=lambda: 0.0), Slots(1))

    assert [asked_of(guard, authorization="Bearer x") for _ in range(5)] == [401] * 5
    assert [asked_of(guard) for _ in range(3)] == [200, 200, 429]


def test_a_body_that_never_comes_is_not_waited_for_forever(monkeypatch):
    monkeypatch.setattr("plainmind.mcp.guard._BODY_SECONDS", 0.05)
    guard = Guard(echo, DOOR, Bucket(burst=2, each_second=1.0, clock=lambda: 0.0), Slots(1))

    assert asked_of(guard, body=None) == 408


def test_a_flood_is_slowed_down_and_then_served_again():
    now = [0.0]
    bucket = Bucket(burst=3, each_second=2.0, clock=lambda: now[0])
    for _ in range(3):
        bucket.take()
    with pytest.raises(Refused) as refused:
        bucket.take()
    now[0] += 0.5
    bucket.take()

    assert refused.value.status == 429
    with pytest.raises(Refused):
        bucket.take()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_a_client_listens(workspace, number):
    with HttpServer() as server:
        begun = server.initialize()
        headers = server.headers(
            Mcp_Session_Id=begun.headers["mcp-session-id"],
            Mcp_Protocol_Version="2025-11-25",
            Accept="text/event-stream",
        )
        listener = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        listener.request("GET", "/mcp", headers=headers)
        listened = listener.getresponse()

        assert listened.status == 200
        assert server.end(number) == 0
        with contextlib.suppress(ConnectionResetError, http.client.IncompleteRead):
            listened.read()  # to the end, which has come
        listener.close()
        assert "Traceback" not in server.errors


def test_it_says_where_it_is_and_where_the_token_is_and_never_the_token(workspace, home):
    with HttpServer() as server:
        assert server.initialize().status == 200
        assert server.end() == 0
        errors, token = server.errors, server.token

    assert f"127.0.0.1:{server.port}/mcp" in errors
    assert token_path(str(home)) in errors
    assert token not in errors


def test_only_this_machine_is_listened_to(workspace):
    with HttpServer() as server:
        outside = [
            address[4][0]
            for address in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
            if not is_loopback(address[4][0])
        ]
        for address in outside:
            with (
                pytest.raises(OSError, match=r"refused|timed out|unreachable"),
                socket.create_connection((address, server.port), timeout=2),
            ):
                pass


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_an_address_that_others_reach_needs_a_word_more(workspace, cli, host):
    answer = cli("mcp", "--http", "--port", "0", "--host", host)

    assert answer.status == 1
    assert "--expose" in answer.err


def test_an_exposed_server_still_wants_the_right_host_and_token(workspace):
    with HttpServer("--host", "0.0.0.0", "--expose", "--allow-host", "notes.example.org") as server:
        assert server.initialize(server.headers(Host="notes.example.org")).status == 200
        assert server.initialize(server.headers(Host=f"127.0.0.1:{server.port}")).status == 403
        assert server.initialize(server.headers(Host="notes.example.org", Authorization=None)).status == 401


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_every_address_of_this_machine_alone_can_be_served(workspace, host):
    if host == "::1" and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        with listen(host, 0, exposed=False) as bound:
            door = door_of(bound, "t")
            assert url_of(bound).removeprefix("http://").removesuffix("/mcp") in door.hosts
            assert f"localhost:{bound.getsockname()[1]}" in door.hosts
    except PlainmindError as error:
        if host != "::1":
            raise
        pytest.skip(str(error))


def test_a_name_that_leads_nowhere_is_said(workspace, cli):
    answer = cli("mcp", "--http", "--host", "no.such.host.invalid")

    assert answer.status == 1
    assert "cannot serve on no.such.host.invalid" in answer.err


def test_a_port_that_is_taken_is_said(workspace, cli):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        answer = cli("mcp", "--http", "--port", str(taken.getsockname()[1]))

    assert answer.status == 1
    assert "cannot serve on 127.0.0.1" in answer.err


def test_the_token_is_made_once_for_its_owner_alone(tmp_path):
    home = tmp_path / "state"
    home.mkdir(mode=0o700)
    made = []
    starting = [threading.Thread(target=lambda: made.append(token_in(str(home)))) for _ in range(8)]
    for thread in starting:
        thread.start()
    for thread in starting:
        thread.join()

    assert len(set(made)) == 1
    assert len(made[0]) >= 43
    assert stat.S_IMODE(os.stat(token_path(str(home))).st_mode) == 0o600


@pytest.mark.parametrize("held", ["", "short", "with space " * 5, "\x00" * 50, "ü" * 50])
def test_a_file_that_holds_no_token_is_refused(tmp_path, held):
    path = tmp_path / "mcp-token"
    path.write_text(held)
    path.chmod(0o600)

    with pytest.raises(PlainmindError, match="holds no token"):
        token_in(str(tmp_path))


def test_a_token_that_others_can_read_or_that_lies_elsewhere_is_refused(tmp_path):
    path = tmp_path / "mcp-token"
    token_in(str(tmp_path))
    path.chmod(0o640)
    with pytest.raises(PlainmindError, match="others can read"):
        token_in(str(tmp_path))
    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PlainmindError, match="cannot be read"):
        token_in(str(tmp_path))
    path.unlink()
    path.mkdir()
    with pytest.raises(PlainmindError, match="is not a file"):
        token_in(str(tmp_path))
