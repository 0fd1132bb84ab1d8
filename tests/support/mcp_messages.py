"""Messages as no client should send them: made by chance, the same ones for the same seed."""

from __future__ import annotations

import json

METHODS = (
    "initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list",
    "resources/subscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "server/discover",
    "subscriptions/listen", "sampling/createMessage", "roots/list", "elicitation/create", "no/such", "", "tools/", "💥",
    "notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/no",
)  # fmt: skip
TOOLS = (
    "memory_search",
    "memory_get",
    "memory_append",
    "memory_edit",
    "memory_forget",
    "memory_status",
    "search",
    "",
    "rm",
)
KEYS = (
    "name", "arguments", "uri", "cursor", "query", "path", "text", "what", "confirm", "from", "lines", "maxResults",
    "minScore", "requestId", "reason", "protocolVersion", "capabilities", "clientInfo", "_meta", "progressToken",
    "level",
)  # fmt: skip
TEXTS = (
    "", " ", "printer", "MEMORY.md", "memory/../../etc/passwd", "memory:///MEMORY.md", "memory:///%00", "\x00",
    "\u202e",
    "a" * 5000, "💥" * 50, "2025-11-25", "2026-07-28", "1900-01-01", "-1", "NaN", "\n\n", "'; DROP TABLE chunks; --",
)  # fmt: skip
ODD_LINES = (
    b"", b" ", b"\x00", b"\xff\xfe\x00", b"{", b"}", b"[", b"[]", b"[{}]", b"null", b"true", b"7", b'"text"', b"{}",
    b"NaN", b"[" * 5000, b'{"a":' * 3000, b'{"jsonrpc":"2.0"', b"\xef\xbb\xbf{}", b'{"jsonrpc":"2.0","id":1,"id":2}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
    b'{"jsonrpc":"2.0","method":"ping","id":' + b"9" * 400 + b"}", b"Content-Length: 5\r", b"GET / HTTP/1.1\r",
)  # fmt: skip


def lines(chance, count):
    """That many lines: two thirds of them messages that are nearly right, the others anything."""
    for number in range(count):
        if chance.random() < 0.65:
            yield nearly_right(chance, number)
        elif chance.random() < 0.5:
            yield broken(chance, nearly_right(chance, number))
        else:
            yield chance.choice(ODD_LINES)


def nearly_right(chance, number):
    message = {
        "jsonrpc": "2.0",
        "id": f"f{number}",
        "method": chance.choice(METHODS),
        "params": params(chance),
    }
    if chance.random() < 0.3:
        message["method"] = "tools/call"
        message["params"] = {"name": chance.choice(TOOLS), "arguments": params(chance)}
    for key in list(message):
        if chance.random() < 0.08:
            del message[key]
        elif chance.random() < 0.08:
            message[key] = anything(chance, 2)
    if chance.random() < 0.05:
        message = [message, message]
    elif chance.random() < 0.05:
        message = {
            "jsonrpc": "2.0",
            "id": anything(chance, 0),
            chance.choice(("result", "error")): anything(chance, 2),
        }
    return json.dumps(message, ensure_ascii=chance.random() < 0.5).encode()


def params(chance):
    return {chance.choice(KEYS): anything(chance, 2) for _ in range(chance.randrange(4))}


def anything(chance, depth):
    kinds = 9 if depth else 6
    kind = chance.randrange(kinds)
    if kind < 3:
        return chance.choice(TEXTS)
    if kind == 3:
        return chance.choice((0, 1, -1, 2**31, 2**63, 2**70, 10**30, 1.5, -0.0, 1e308))
    if kind == 4:
        return chance.choice((True, False, None))
    if kind == 5:
        return chance.choice(TOOLS)
    if kind == 6:
        return [anything(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(KEYS): anything(chance, depth - 1) for _ in range(chance.randrange(4))}


def broken(chance, line):
    """Cut, doubled, or with some bytes that are something else; still one line."""
    data = bytearray(line)
    kind = chance.randrange(3)
    if kind == 0:
        data = data[: chance.randrange(len(data) + 1)]
    elif kind == 1:
        data += data[chance.randrange(len(data) + 1) :]
    else:
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data).replace(b"\n", b" ")
