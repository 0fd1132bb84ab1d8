"""Secrets of every type said in a conversation: none is in the index, a request, an answer, a log or an error."""

from __future__ import annotations

import io
import json
import logging
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.redaction.samples import TYPES, placed
from tests.support.providers.server import KEY, Handler, Provider, serving

from plainmind import Memory
from plainmind.memory.session_pages import as_lines, as_markdown, as_messages, without_secrets

FILLER = "The barge leaves the lower harbour at seven and comes back with the tide. "
PARTS = re.compile(r"[A-Za-z0-9]{9,}|[0-9]{4}(?: [0-9]{4}){3}")
CONFIGURED = "Vq7-unlike-any-other-9Zt"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Provider("openai")) as served:
        yield served


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that anybody logs, down to the least."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.setLevel(level)
    root.removeHandler(handler)


def said() -> Iterator[tuple[str, list[str]]]:
    """Messages with a secret each, at another place of the text each time: at some a chunk ends within the secret."""
    rng = random.Random("said")
    for name, make in TYPES.items():
        snippet, secret = make(rng)
        contexts = list(placed(snippet))
        _, text = contexts[rng.randrange(len(contexts))]
        before = (FILLER * 60)[: rng.randrange(3_600)].rpartition(" ")[0]
        parts = PARTS.findall(secret)
        assert parts, name
        yield f"{before}\n{text}\n{FILLER * rng.randrange(20)}", [secret, *parts]


def settings(provider: Provider) -> dict[str, Any]:
    remote = {
        "baseUrl": provider.base_url,
        "apiKey": KEY,
        "headers": {"X-Also": CONFIGURED},
        "sendSessions": True,
        "queryTimeoutMs": 60_000,
    }
    return {"provider": "openai", "model": "m", "remote": remote, "sources": ["memory", "sessions"]}


def echoing(handler: Handler, payload: dict[str, Any]) -> None:
    """Refuse, and repeat in the refusal what was sent, as some servers do."""
    told = json.dumps(payload) + str(handler.headers)
    handler.reply_json(400, {"error": {"message": f"cannot embed {told}"}})


def no_secret_in(captured: dict[str, str], secrets: list[str]) -> None:
    for where, text in captured.items():
        lowered = text.lower()
        found = [secret for secret in secrets if secret in text or secret.lower() in lowered]
        assert found == [], where


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_no_secret_leaves_a_conversation(tmp_path: Path, provider: Provider, logged: io.StringIO) -> None:
    (tmp_path / "notes").mkdir()
    messages = list(said())
    secrets = [CONFIGURED, *(part for _, parts in messages for part in parts)]
    captured: dict[str, str] = {}
    with Memory(tmp_path / "notes", home=tmp_path / "home", config=settings(provider)) as memory:
        session = memory.sessions.create("agent:main:main", id="talk", displayName=f"about {secrets[1]}")
        session.extend({"role": "user", "content": text} for text, _ in messages)
        session.append({"role": "user", "content": f"the header is {CONFIGURED}"})
        memory.sync()
        for question in ("when does the barge leave?", "what is the token?", "header"):
            captured[f"answer to {question}"] = repr(memory.search(question, max_results=50, min_score=0))
        captured["status"] = repr(memory.status())
        clean = without_secrets(memory.redactor())
        captured["lines"] = b"".join(as_lines(session, clean)).decode()
        captured["page"] = b"".join(as_markdown(session, clean, "talk")).decode()
        captured["messages"] = b"".join(as_messages(session, clean)).decode()
        provider.fault = echoing
        session.append({"role": "user", "content": f"once more: {messages[0][0]} and {messages[1][0]}"})
        captured["report of a failure"] = repr(memory.sync())
        captured["answer after a failure"] = repr(memory.search("barge", min_score=0))
        captured["status after a failure"] = repr(memory.status())
    captured["requests"] = json.dumps([seen.payload for seen in provider.seen])
    captured["log"] = logged.getvalue()
    for path in (tmp_path / "home").rglob("*"):
        if path.is_file() and path.parent.name != "sessions":
            captured[str(path.relative_to(tmp_path))] = path.read_bytes().decode("latin-1")

    assert len(provider.texts) > len(messages)
    assert captured["requests"].count("[redacted:") >= len(messages)
    no_secret_in(captured, secrets)
    no_secret_in({name: text for name, text in captured.items() if name != "requests"}, [KEY])
    kept = (tmp_path / "home" / "agents" / "main" / "sessions" / "talk.jsonl").read_text()
    assert all(parts[-1] in kept for _, parts in messages)
