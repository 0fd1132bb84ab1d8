"""Lines of transcripts, as tests write them."""

from __future__ import annotations

import json


def message(role, content, **more):
    return json.dumps({"type": "message", "message": {"role": role, "content": content}, **more}).encode()


def line(role, content, **more):
    return message(role, content, **more) + b"\n"


def text(words):
    return {"type": "text", "text": words}
