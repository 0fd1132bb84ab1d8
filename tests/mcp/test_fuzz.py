"""Ten thousand messages that are wrong in some way: the server lives, and every byte it writes is JSON-RPC."""

import random

import pytest
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter
from mcp_types.methods import parse_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from tests.support.mcp_messages import lines
from tests.support.mcp_process import INITIALIZE, McpProcess

MESSAGES = 10_000
VERSION = INITIALIZE["protocolVersion"]


def judged(server):
    """Every line that the server wrote, as a message; anything else raises."""
    written = bytes(server.written)
    assert written.endswith(b"\n")
    messages = [jsonrpc_message_adapter.validate_json(line) for line in written.split(b"\n")[:-1]]
    assert {type(message) for message in messages} <= {JSONRPCResponse, JSONRPCError}
    return messages


def feed(server, seed, count):
    chance = random.Random(seed)
    for number, line in enumerate(lines(chance, count)):
        server.say(line)
        if number % 500 == 499:  # so that it is seen soon where it went wrong
            assert "result" in server.ask(f"alive {number}", "ping", timeout=60)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_ten_thousand_wrong_messages_neither_stop_it_nor_make_it_babble(workspace):
    with McpProcess() as server:
        server.begin()
        feed(server, seed=1, count=MESSAGES)
        found = server.call("last", "memory_search", query="which VLAN is the printer on")
        assert server.end(timeout=60) == 0
        messages = judged(server)
        errors = bytes(server.errors)

    assert "VLAN 40" in found["content"][0]["text"], "it still answers as before"
    assert len(messages) > MESSAGES / 4
    assert {message.error.code for message in messages if isinstance(message, JSONRPCError)} <= {
        -32700, -32600, -32601, -32602, -32000, -32022,
    }, errors[-3000:].decode()  # fmt: skip
    assert b"Traceback" not in errors


@pytest.mark.timeout(120)
def test_without_a_handshake_it_is_as_steady(workspace):
    with McpProcess() as server:
        for line in lines(random.Random(2), 900):
            server.say(line)
        server.say({"jsonrpc": "2.0", "id": "last", "method": "ping"})
        server.until(lambda: b'"last"' in bytes(server.written), timeout=60)

        assert server.end(timeout=60) == 0
        judged(server)
        assert b"Traceback" not in bytes(server.errors)


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": INITIALIZE["clientInfo"],
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("version", [VERSION, "2026-07-28"])
def test_every_answer_has_the_shape_that_its_method_is_given(workspace, version):
    asked = {
        "tools": ("tools/list", {}),
        "resources": ("resources/list", {}),
        "templates": ("resources/templates/list", {}),
        "read": ("resources/read", {"uri": "memory:///MEMORY.md"}),
        "prompts": ("prompts/list", {}),
        "prompt": ("prompts/get", {"name": "recall", "arguments": {"question": "printer"}}),
        **{
            f"call {number}": ("tools/call", {"name": name, "arguments": arguments})
            for number, (name, arguments) in enumerate(
                [
                    ("memory_search", {"query": "printer"}),
                    ("memory_search", {}),
                    ("memory_get", {"path": "MEMORY.md"}),
                    ("memory_get", {"path": "none"}),
                    ("memory_append", {"text": "x"}),
                    ("memory_forget", {"what": "VLAN"}),
                    ("memory_status", {}),
                ]
            )
        },
    }
    envelope = {"_meta": ENVELOPE} if version in MODERN_PROTOCOL_VERSIONS else {}
    first = ("server/discover", {}) if envelope else ("initialize", INITIALIZE)
    with McpProcess() as server:
        for request_id, (method, params) in {"first": first, **asked}.items():
            answer = server.ask(request_id, method, **params, **envelope)
            parse_server_result(method, version, answer["result"])
            assert ("resultType" in answer["result"]) is bool(envelope)
        assert server.end() == 0
        assert len(judged(server)) == len(asked) + 1
