"""Connections that say nothing, or say it slowly, keep nobody with the token waiting."""

import os
import resource
import selectors
import socket
import time
from contextlib import ExitStack

import pytest
from tests.support.mcp_http import HttpServer

IS_FULL = os.environ.get("PLAINMIND_FAULTS") == "full"
SILENT = 1_000 if IS_FULL else 400
REQUESTS = 40 if IS_FULL else 12
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4_000)), hard))
    folder = tmp_path_factory.mktemp("served")
    (folder / "notes").mkdir()
    with HttpServer("--workspace", folder / "notes", "--home", folder / "home") as running:
        yield running
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def lines(server, count, first_bytes=b""):
    """Connections that send some bytes at most, and never the rest."""
    for _ in range(count):
        line = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        if first_bytes:
            line.sendall(first_bytes)
        yield line


ATTACKS = {
    "silent": b"",
    "half a header": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "no body and no token": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900000\r\n\r\n{",
    "a wrong token": b"POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Length: 9\r\n\r\n",
}


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_whoever_has_the_token_is_answered_all_the_while(server, attack):
    with ExitStack() as held:
        for line in lines(server, SILENT, ATTACKS[attack]):
            held.enter_context(line)

        answers = [server.initialize().status for _ in range(REQUESTS)]

    assert answers == [200] * REQUESTS


def test_a_connection_that_says_nothing_is_closed_within_seconds(server):
    with ExitStack() as held, selectors.DefaultSelector() as selector:
        begun = time.monotonic()
        for line in (*lines(server, 20), *lines(server, 20, ATTACKS["half a header"])):
            selector.register(held.enter_context(line), selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() - begun < 60:
            for key, _ in selector.select(1):
                assert key.fileobj.recv(100) == b""
                selector.unregister(key.fileobj)

        assert not selector.get_map()
        assert time.monotonic() - begun < 25  # five, and what a busy machine takes


def test_one_that_drips_its_header_is_closed_all_the_same(server):
    with next(lines(server, 1, b"POST /mcp HTTP/1.1\r\nX: ")) as line:
        line.settimeout(0.2)
        for _ in range(250):
            try:
                line.sendall(b"x")
                if line.recv(10) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    pytest.fail("it was still open after fifty seconds")


@pytest.mark.parametrize(
    "spelled",
    [
        "application/JSON", "Application/Json", "application/json;charset=utf-8", "APPLICATION/JSON ; Charset=UTF-8",
        'application/json; charset="utf-8"', "application/json;profile=x", " application/json ",
    ],
)  # fmt: skip
def test_a_media_type_is_the_same_in_capitals_and_with_parameters(server, spelled):
    assert server.initialize(server.headers(Content_Type=spelled)).status == 200


@pytest.mark.parametrize(
    "spelled", ["text/plain", "application/json5", "application/json; charset=utf-16", "json", ""]
)
def test_another_media_type_is_refused(server, spelled):
    assert server.send(headers=server.headers(Content_Type=spelled), body=PING).status == 415
