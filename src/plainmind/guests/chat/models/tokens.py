"""How many tokens a request and an answer have, about, where they were not counted."""

from __future__ import annotations

import json
from collections.abc import Iterable

from plainmind.guests.chat.models.protocol import Message, Reply, Request, Usage
from plainmind.text.chunking import estimated_tokens

_A_MESSAGE = 4  # role and marks


def tokens_in(message: Message) -> int:
    """Guess the tokens of one message; images count like a page of text."""
    return _A_MESSAGE + sum(map(estimated_tokens, _texts_of(message.get("content"))))


def tokens_of(request: Request) -> int:
    """Guess the tokens of a whole request."""
    spoken = estimated_tokens(request.system) + sum(map(tokens_in, request.messages))
    return spoken + sum(
        estimated_tokens(tool.description + _json(tool.input_schema)) for tool in request.tools
    )


def estimated_usage(request: Request, reply: Reply) -> Usage:
    """Guess what an answer has used."""
    calls = (f"{call.name} {_json(call.arguments)}" for call in reply.calls)
    said = estimated_tokens(reply.text) + sum(map(estimated_tokens, calls))
    return Usage(input=tokens_of(request), output=said, is_estimated=True)


def _texts_of(content: object) -> Iterable[str]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            if block.get("type") == "image":
                yield " " * 6000
            else:
                yield _json({name: found for name, found in block.items() if name != "type"})


def _json(found: object) -> str:
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)
