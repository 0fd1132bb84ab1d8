"""One JSON-RPC message from a line of bytes, and into one; what is no message gets an answer that says why."""

from __future__ import annotations

import logging

from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_log = logging.getLogger(__name__)


class NoMessage(Exception):
    """What came in is no message; `answer` is what the other side gets to read."""

    def __init__(self, code: int, reason: str, request_id: RequestId | None = None) -> None:
        super().__init__(reason)
        self.answer = JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=reason))


def message_of(line: bytes) -> JSONRPCMessage:
    """Read one message. Raises NoMessage."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        pass
    try:
        found = from_json(line)
    except ValueError:
        raise NoMessage(
            PARSE_ERROR, "this line is not valid JSON; a message is one JSON object on one line"
        ) from None
    if isinstance(found, list):
        raise NoMessage(INVALID_REQUEST, "batches are not taken; send each message on a line of its own")
    raise NoMessage(INVALID_REQUEST, "this is not a JSON-RPC 2.0 message", _id_in(found))


def line_of(message: JSONRPCMessage) -> bytes:
    """Write one message; one that cannot be written becomes an error, so that nobody waits for it in vain."""
    try:
        return _dumped(message)
    except PydanticSerializationError:
        _log.exception("an answer could not be written as JSON")
        error = ErrorData(code=INTERNAL_ERROR, message="the answer cannot be written as JSON")
        answered = None if isinstance(message, JSONRPCNotification) else message.id
        return _dumped(JSONRPCError(jsonrpc="2.0", id=answered, error=error))


def _dumped(message: JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _id_in(found: Any) -> RequestId | None:
    """The id that an answer can be given under."""
    request_id = found.get("id") if isinstance(found, dict) else None
    return request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None
