"""The ways in which providers fail, each as it looks on the wire; `FAULTS` names them all.

`HARMLESS` faults still carry the right vectors, so the embedder must find them; all others carry none to be trusted.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tests.support.providers.server import Fault, Handler

Rows = list[dict[str, Any]]


def rate_limited(handler: Handler, _: dict[str, Any]) -> None:
    handler.reply_json(429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}})


def rate_limited_with_retry_after(handler: Handler, _: dict[str, Any]) -> None:
    handler.reply_json(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.05"})


def quota_spent(handler: Handler, _: dict[str, Any]) -> None:
    error = {
        "message": "You exceeded your current quota",
        "type": "insufficient_quota",
        "code": "insufficient_quota",
    }
    handler.reply_json(429, {"error": error})


def server_error(handler: Handler, _: dict[str, Any]) -> None:
    handler.reply_json(500, {"error": {"message": "internal"}})


def bad_gateway_page(handler: Handler, _: dict[str, Any]) -> None:
    handler.reply(502, b"<html><body>Bad gateway</body></html>", {"Content-Type": "text/html"})


def page_instead_of_json(handler: Handler, _: dict[str, Any]) -> None:
    handler.reply(200, b"<html><body>Please log in</body></html>", {"Content-Type": "text/html"})


def silence(handler: Handler, _: dict[str, Any]) -> None:
    handler.provider.closing.wait(30)
    handler.close_connection = True


def headers_byte_by_byte(handler: Handler, _: dict[str, Any]) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Filler: " + b"a" * 100:
        handler.wfile.write(bytes([byte]))
        if handler.provider.closing.wait(0.1):
            break
    handler.close_connection = True


def body_byte_by_byte(handler: Handler, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    for byte in body[:200]:
        handler.wfile.write(bytes([byte]))
        if handler.provider.closing.wait(0.1):
            break
    handler.close_connection = True


def reset_mid_body(handler: Handler, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def closed_mid_body(handler: Handler, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    handler.reply(200, body[: len(body) // 2], {"Content-Length": str(len(body))})
    handler.close_connection = True


def truncated_json(handler: Handler, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    handler.reply(200, body[: len(body) * 2 // 3], {})


@lru_cache
def _bomb() -> bytes:
    """Three hundred megabytes: after a full flush the same bytes can follow as often as one likes."""
    packer = zlib.compressobj(1, wbits=31)
    first, next_one = (packer.compress(b"0" * 1_000_000) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + next_one * 299 + packer.flush()


def gzip_bomb(handler: Handler, _: dict[str, Any]) -> None:
    handler.reply(200, _bomb(), {"Content-Encoding": "gzip"})


def fifty_megabytes(handler: Handler, _: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for _ in range(50):
        handler.wfile.write(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
    handler.wfile.write(b"0\r\n\r\n")


def error_with_status_200(handler: Handler, _: dict[str, Any]) -> None:
    handler.reply_json(200, {"error": {"message": "overloaded", "code": 503}})


def redirect(to: str) -> Fault:
    def fault(handler: Handler, _: dict[str, Any]) -> None:
        handler.reply_json(307, {}, {"Location": to})

    return fault


def _rows(answer: dict[str, Any]) -> tuple[Rows, str]:
    """The vectors of an answer in whichever dialect, and the name that each has in its row."""
    if "data" in answer:
        return answer["data"], "embedding"
    if "embedding" in answer:
        return [answer["embedding"]], "values"
    return answer["embeddings"], "values"


def _changed(change: Callable[[Rows, str], None]) -> Fault:
    def fault(handler: Handler, answer: dict[str, Any]) -> None:
        rows, name = _rows(answer)
        if "embedding" in answer:
            answer = {"embeddings": rows}
        change(rows, name)
        handler.reply_json(200, answer)

    return fault


def _fewer(rows: Rows, _: str) -> None:
    rows.pop()


def _more(rows: Rows, _: str) -> None:
    rows.append(dict(rows[-1]))


def _duplicate_index(rows: Rows, _: str) -> None:
    for row in rows:
        row["index"] = 0
    if len(rows) == 1:
        rows[0]["index"] = 1


def _permuted(rows: Rows, _: str) -> None:
    for index, row in enumerate(rows):
        row["index"] = index
    random.Random(7).shuffle(rows)


def _missing_index(rows: Rows, _: str) -> None:
    for row in rows:
        row.pop("index", None)


def _some_index(rows: Rows, _: str) -> None:
    rows[0]["index"] = "first"


def _wrong_dims(rows: Rows, name: str) -> None:
    for row in rows:
        row[name] = [0.5, 0.5, 0.5]


def _mixed_dims(rows: Rows, name: str) -> None:
    rows[-1][name] = [*rows[-1][name], 0.5] if isinstance(rows[-1][name], list) else [0.5]


def _set_value(value: Any) -> Callable[[Rows, str], None]:
    def change(rows: Rows, name: str) -> None:
        rows[-1][name] = [value, *[0.5] * 63]

    return change


def _set_vector(value: Any) -> Callable[[Rows, str], None]:
    def change(rows: Rows, name: str) -> None:
        rows[-1][name] = value

    return change


RETRYABLE: dict[str, Fault] = {
    "429": rate_limited,
    "429 with Retry-After": rate_limited_with_retry_after,
    "500": server_error,
    "502 page": bad_gateway_page,
    "reset mid-body": reset_mid_body,
    "closed mid-body": closed_mid_body,
    "200 with an error body": error_with_status_200,
}
SLOW: dict[str, Fault] = {
    "silence": silence,
    "headers byte by byte": headers_byte_by_byte,
    "body byte by byte": body_byte_by_byte,
}
BAD_ANSWERS: dict[str, Fault] = {
    "page instead of JSON": page_instead_of_json,
    "truncated JSON": truncated_json,
    "gzip bomb": gzip_bomb,
    "50 MB": fifty_megabytes,
    "fewer": _changed(_fewer),
    "more": _changed(_more),
    "duplicate index": _changed(_duplicate_index),
    "index of words": _changed(_some_index),
    "mixed dims": _changed(_mixed_dims),
    "NaN": _changed(_set_value(float("nan"))),
    "Infinity": _changed(_set_value(float("inf"))),
    "huge": _changed(_set_value(10**400)),
    "null inside": _changed(_set_value(None)),
    "strings inside": _changed(_set_value("0.5")),
    "true inside": _changed(_set_value(True)),
    "null vector": _changed(_set_vector(None)),
    "zero vector": _changed(_set_vector([0.0] * 64)),
    "empty vector": _changed(_set_vector([])),
    "nested vector": _changed(_set_vector([[0.5] * 64])),
    "not base64": _changed(_set_vector("ÿ?")),
}
NEEDS_KNOWN_DIMS: dict[str, Fault] = {"wrong dims": _changed(_wrong_dims)}
TERMINAL: dict[str, Fault] = {"429 without quota": quota_spent}
HARMLESS: dict[str, Fault] = {
    "permuted": _changed(_permuted),
    "without index": _changed(_missing_index),
}
FAULTS: dict[str, Fault] = RETRYABLE | SLOW | BAD_ANSWERS | NEEDS_KNOWN_DIMS | TERMINAL | HARMLESS
