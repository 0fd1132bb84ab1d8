"""`initialize` is answered before the SDK is there, exactly as the SDK would, and only when it is plainly that."""

import json
import os
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from tests.support.mcp_process import INITIALIZE, McpProcess

from plainmind.mcp.introduction import Begun, Greeter, Wire, beginning_in

REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}


@pytest.fixture
def pipes():
    theirs, ours = os.pipe()
    reads, writes = os.pipe()
    yield Wire(theirs, writes), ours, reads
    for descriptor in (theirs, ours, reads, writes):
        with suppress(OSError):  # closed by the test
            os.close(descriptor)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_the_early_answer_is_the_one_that_the_sdk_gives(workspace, version):
    """An odd member that changes nothing is enough to leave the answer to the SDK."""
    params = INITIALIZE | {"protocolVersion": version}
    early, late = REQUEST | {"params": params}, REQUEST | {"params": params | {"_meta": {}}}
    answers = []
    for request in (early, late):
        with McpProcess() as server:
            server.say(request)
            server.answer_to(1)
            assert server.end() == 0
            answers.append(server.messages)

    assert beginning_in(json.dumps(early).encode()) == (1, version)
    assert beginning_in(json.dumps(late).encode()) is None
    assert answers[0] == answers[1]
    assert len(answers[0]) == 1, "it is given once"


@pytest.mark.timeout(60)
def test_the_same_id_can_be_used_again_after_the_early_answer(workspace):
    with McpProcess() as server:
        server.say(REQUEST)
        server.answer_to(1)
        server.tell("notifications/initialized")
        server.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        server.until(lambda: len(server.messages) == 2)

        assert server.messages[1] == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_it_answers_the_first_line_and_keeps_what_comes_behind_it(pipes):
    wire, ours, reads = pipes
    greeter = Greeter(wire, "use me well")
    data = json.dumps(REQUEST).encode()
    os.write(ours, data[:40])
    time.sleep(0.05)
    os.write(ours, data[40:] + b"\n{half")
    answer = json.loads(os.read(reads, 65_536))

    assert greeter.finish() == Begun(data + b"\n{half", 1)
    assert answer["result"]["instructions"] == "use me well"
    assert answer["result"]["protocolVersion"] == INITIALIZE["protocolVersion"]


def test_it_can_be_told_to_finish_before_anything_came(pipes):
    wire, ours, _ = pipes
    greeter = Greeter(wire, None)
    os.write(ours, b'{"jsonrpc"')
    time.sleep(0.05)

    assert greeter.finish() == Begun(b'{"jsonrpc"', None)


def test_a_client_that_is_gone_at_once_is_left_to_the_server(pipes):
    wire, ours, reads = pipes
    os.close(reads)
    greeter = Greeter(wire, None)
    os.write(ours, json.dumps(REQUEST).encode() + b"\n")
    os.close(ours)
    time.sleep(0.05)

    assert greeter.finish().answered is None


@pytest.mark.parametrize(
    "message",
    [
        [REQUEST],
        REQUEST | {"jsonrpc": "1.0"},
        REQUEST | {"method": "ping"},
        REQUEST | {"id": None},
        REQUEST | {"id": True},
        REQUEST | {"id": 1.5},
        REQUEST | {"id": "\ud800"},
        REQUEST | {"extra": 1},
        REQUEST | {"params": None},
        REQUEST | {"params": INITIALIZE | {"protocolVersion": "2026-07-28"}},
        REQUEST | {"params": INITIALIZE | {"protocolVersion": ["2025-11-25"]}},
        REQUEST | {"params": INITIALIZE | {"capabilities": None}},
        REQUEST | {"params": INITIALIZE | {"capabilities": {"roots": 1}}},
        REQUEST | {"params": INITIALIZE | {"clientInfo": {"name": "x"}}},
        REQUEST | {"params": INITIALIZE | {"clientInfo": "x"}},
    ],
)
def test_whatever_is_odd_is_left_to_the_sdk(message):
    assert beginning_in(json.dumps(message).encode()) is None


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_no_line_can_trouble_it(line):
    assert beginning_in(line) is None
