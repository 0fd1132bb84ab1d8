"""What is fuzzed, and what must hold for any bytes: our own errors only, what goes in comes out, and it ends."""

from __future__ import annotations

import asyncio
import json
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.text.test_chunking import assert_passages_are_true_to

from plainmind import Memory
from plainmind.agent.scope import THE_OWNER
from plainmind.base.errors import PlainmindError
from plainmind.base.model import SearchFilter, split_lines
from plainmind.base.value import value
from plainmind.config.edit import set_user_value, unset_user_value
from plainmind.config.keys import parse_document
from plainmind.files import group_append
from plainmind.files.history import History
from plainmind.guests.page.call import Keeper
from plainmind.guests.page.gate import RIGHTS, Caller, Callers, Gate, PageSessions, TokenFile
from plainmind.guests.page.server import PageApp
from plainmind.guests.upkeep.commands import decisions_in
from plainmind.guests.upkeep.desk import Desk
from plainmind.mcp.desk import Task, open_desk
from plainmind.mcp.offers import offered_tools
from plainmind.mcp.stdio import Wire, _Bell, _Conversation
from plainmind.notes.workspace import decode
from plainmind.search.pages import parse, restricted
from plainmind.text.chunking import chunk
from plainmind.text.front_matter import read_front_matter
from plainmind.text.validity import without_validity

TODAY = date(2026, 11, 16)
NOTES = {
    "MEMORY.md": "# Memory\n\n- The printer is on VLAN 40. #home\n- Anna likes oolong tea until 2026-12-01.\n",
    "memory/2026-11-15.md": "# 2026-11-15\n\n- 16:19 The gateway moved to Falkenstein.\n- 17:02 We ship on Friday.\n",
    "memory/network.md": "---\ntags: [network]\n---\n# Network\n\n[[gateway]], [m](../MEMORY.md)\n\n- 打印机在三楼\n",
}


@value
class Target:
    """One door: how to open it, and words that mean something behind it."""

    name: str
    open: Callable[[Path], Any]  # a context manager that yields what tries a case
    words: tuple[bytes, ...]


def write_notes(folder: Path) -> Path:
    """A small workspace."""
    for name, text in NOTES.items():
        path = folder / "ws" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "ws"


@contextmanager
def opened(folder: Path) -> Iterator[Memory]:
    """A memory of it."""
    with Memory(write_notes(folder), home=folder / "home") as memory:
        yield memory


# --- Markdown ---


@contextmanager
def markdown(folder: Path) -> Iterator[Callable[[bytes], None]]:
    """Chunks are true to their lines; an edit changes what it names, and nothing else."""
    with opened(folder) as memory:
        page = folder / "ws" / "memory" / "page.md"

        def attempt(case: bytes) -> None:
            text = decode(case)
            for tokens in (8, 50):
                for strategy in ("lines", "markdown"):
                    passages = chunk(text, strategy=strategy, tokens=tokens, overlap=4)  # type: ignore[arg-type]
                    assert_passages_are_true_to(text, passages, max(32, tokens * 4))
            read_front_matter(split_lines(text))
            without_validity(text)
            page.write_bytes(case)
            old = next((line for line in split_lines(text) if line.strip() and text.count(line) == 1), None)
            if old is None:
                return
            with suppress(PlainmindError):
                memory.edit("memory/page.md", old, "zqnew")
                after = decode(page.read_bytes())
                # Damaged UTF-8 that loses its last good letter is read as Windows-1252 afterwards.
                assert after == text.replace(old, "zqnew") or "\ufffd" in text, (text, after)

        yield attempt


# --- questions ---


@contextmanager
def questions(folder: Path) -> Iterator[Callable[[bytes], None]]:
    """A question is understood or refused; what is shown stands where it says."""
    with opened(folder) as memory:
        memory.sync()
        lines = {name: split_lines(text) for name, text in NOTES.items()}

        def attempt(case: bytes) -> None:
            text = case.decode("utf-8", "replace")
            parse(text, today=TODAY)
            with suppress(PlainmindError):
                restricted(text, SearchFilter(frozenset({"memory"}), frozenset({"private"})), TODAY)
            try:
                found = memory.search(text, max_results=5)
            except PlainmindError:
                return
            for hit in found.hits:
                assert 1 <= hit.start_line <= hit.end_line <= len(lines[hit.path]), hit
                assert 0 <= hit.score <= 1, hit

        yield attempt


# --- settings ---


@contextmanager
def settings(folder: Path) -> Iterator[Callable[[bytes], None]]:
    """A file of settings is read or refused with a reason; a setting that is set changes no other, and is set."""
    path = folder / "plainmind.json5"

    def write(_path: str, data: bytes, _base: str | None) -> None:
        path.write_bytes(data)

    def attempt(case: bytes) -> None:
        path.write_bytes(case)
        try:
            set_user_value(str(folder), "query.maxResults", "7", write=write)
        except PlainmindError:
            assert path.read_bytes() == case
            return
        found = json.dumps(parse_document(path.read_bytes(), "plainmind.json5"))
        assert "7" in found, found
        unset_user_value(str(folder), "query.maxResults", write=write)
        parse_document(path.read_bytes(), "plainmind.json5")

    yield attempt


# --- conversations ---


@contextmanager
def transcripts(folder: Path) -> Iterator[Callable[[bytes], None]]:
    """Whatever stands in a transcript, what is said next is kept behind it."""
    # Nobody else writes here: there is no need to wait whether a half line will be a whole one.
    with opened(folder) as memory, patch.object(group_append, "_PATIENCE_S", 0):
        with memory.sessions.open_or_create("agent:main:fuzz") as session:
            session.append({"type": "message", "message": {"role": "user", "content": "first"}})
            path = Path(session.path)
        begin = path.read_bytes()

        def attempt(case: bytes) -> None:
            path.write_bytes(begin + case)
            with suppress(PlainmindError), memory.sessions.open_or_create("agent:main:fuzz") as session:
                list(session.messages())
                session.append({"type": "message", "message": {"role": "user", "content": "and on"}})
                assert list(session.messages())[-1]["content"] == "and on"
            for other in path.parent.glob("*.torn-*"):
                other.unlink()

        yield attempt


# --- MCP ---


@contextmanager
def mcp(folder: Path) -> Iterator[Callable[[bytes], None]]:
    """Every line is answered by JSON-RPC or by nothing."""
    memory = Memory(write_notes(folder), home=folder / "home")
    reads, writes = os.pipe()
    tools = offered_tools(memory, None, read_only=True, connector=False)
    with open_desk(memory, THE_OWNER, tools) as desk:
        bell, answer_of = _Bell(), desk.answer

        def answer_at_once(*arguments: Any) -> Any:
            found = answer_of(*arguments)
            return found.work() if isinstance(found, Task) else found

        desk.answer = answer_at_once  # type: ignore[method-assign]

        def attempt(case: bytes) -> None:
            talk = _Conversation(desk, Wire(reads, writes), bell)
            talk._version = "2025-03-26"
            for line in case.split(b"\n"):
                if line.strip():
                    talk._take(line)
            for answer in talk._unsent:
                _check_answers(json.loads(bytes(answer)))

        yield attempt
    os.close(reads)
    os.close(writes)


def _check_answers(found: Any) -> None:
    for one in found if isinstance(found, list) else [found]:
        assert one["jsonrpc"] == "2.0", one
        assert ("result" in one) != ("error" in one), one
        if "error" in one:
            assert one["error"]["code"] != -32603, one
            assert one["error"]["message"], one


# --- /v1 ---


class _Owner(Callers):
    """Everybody is the owner."""

    def find(self, token: str) -> Caller | None:
        """The owner."""
        return Caller(f"fuzz {token[:1]}", frozenset(RIGHTS), THE_OWNER, is_page=True)


@contextmanager
def v1(folder: Path) -> Iterator[Callable[[bytes], None]]:
    """Any request gets an answer: what was asked for, or a problem with a sentence, and never "this failed inside"."""
    with opened(folder) as memory, ExitStack() as stack:
        memory.sync()
        callers = _Owner(PageSessions(frozenset(RIGHTS)), TokenFile(memory.home), "s", read_only=False)
        gate = Gate(frozenset({"h"}), frozenset({"http://h"}), callers, read_only=False)
        app = PageApp(memory, Keeper(memory, callers, read_only=False), gate)
        stack.callback(app.close)
        runner = stack.enter_context(asyncio.Runner())
        stack.enter_context(patch("anyio.to_thread.run_sync", _run_here))

        def attempt(case: bytes) -> None:
            first, _, body = case.partition(b"\n")
            method, _, target = first.partition(b" ")
            path, _, query = target.partition(b"?")
            if b"/v1/events" in path or b"/v1/doctor" in path:
                return
            status, answer = runner.run(_ask(app, method, path, query, body))
            assert status != 500, answer
            if status >= 400 and method != b"HEAD" and answer:
                told = json.loads(answer)
                assert told.get("detail") or told.get("message") or told.get("error"), told

        yield attempt


async def _run_here(function: Callable[..., Any], *arguments: Any, limiter: object = None) -> Any:
    """Instead of a thread, whose lines nobody would see."""
    return function(*arguments)


async def _ask(app: PageApp, method: bytes, path: bytes, query: bytes, body: bytes) -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []
    headers = [
        (b"host", b"h"), (b"authorization", b"Bearer x"), (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()), (b"if-match", b"*"),
    ]  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    scope = {
        "type": "http",
        "method": method.decode("latin-1").upper() or "GET",
        "path": path.decode("utf-8", "replace"),
        "raw_path": path,
        "query_string": query,
        "headers": headers,
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    status = next(message["status"] for message in sent if "status" in message)
    return status, b"".join(message.get("body", b"") for message in sent)


# --- files of ours that somebody has changed ---


@contextmanager
def index(folder: Path) -> Iterator[Callable[[bytes], None]]:
    """An index with other bytes in it answers as before, or is made anew and does, or says what is wrong."""
    asked = "which VLAN is the printer on"
    with opened(folder) as memory:
        memory.sync()
        expected = _places_of(memory, asked)
    home = folder / "home"
    whole = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}

    def attempt(case: bytes) -> None:
        for path in [path for path in home.rglob("*") if path.is_file()]:
            if path not in whole:
                path.unlink()
        for path, data in whole.items():
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)
        files = sorted(path for path in whole if home / "index" in path.parents)
        for at in range(0, len(case) - 6, 7):
            which, offset, byte = struct.unpack_from(">HIB", case, at)
            path = files[which % len(files)]
            data = bytearray(path.read_bytes())
            if data:
                data[offset % len(data)] ^= byte
                path.write_bytes(data)
        with suppress(PlainmindError), Memory(folder / "ws", home=home) as memory:
            assert _places_of(memory, asked) == expected

    yield attempt


def _places_of(memory: Memory, asked: str) -> list[tuple[str, int, int]]:
    return [(hit.path, hit.start_line, hit.end_line) for hit in memory.search(asked).hits]


@contextmanager
def journals(folder: Path) -> Iterator[Callable[[bytes], None]]:
    """Journals, proposals and the page on which they are decided may say anything: the next word is kept."""
    with opened(folder) as memory:
        memory.remember("first")
        state = Path(memory.places.state)
        proposals = state / "upkeep" / "proposals.jsonl"
        proposals.parent.mkdir(parents=True, exist_ok=True)
        journal = folder / "history" / "journal.jsonl"
        journal.parent.mkdir()
        history = History(str(journal.parent))
        desk = Desk(memory)

        def attempt(case: bytes) -> None:
            for found in decisions_in(case.decode("utf-8", "replace")):
                assert all(name.isalnum() for name in found), found
            proposals.write_bytes(case)
            with suppress(PlainmindError):
                for proposal in desk.list().proposals:
                    assert proposal.as_dict()
            journal.write_bytes(case)
            with suppress(PlainmindError):
                kept = history.keep("a.md", b"said", "edit")
                assert history.read(kept.id) == b"said"
                assert kept.id in {version.id for version in history.versions("a.md")}
                history.latest_changes()

        yield attempt


_SAID = b'{"type":"message","id":"a1","parentId":null,"message":{"role":"user","content":"hello"}}\n'
_CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{%s}}}'
TARGETS: Sequence[Target] = (
    Target("markdown", markdown, (
        b"# Title\n\ntext\n", b"---\ntags: [a, b]\n---\n", b"- item <!-- m:01ARZ3NDEKTSV4RRFFQ69G5FAV -->\n",
        b"```py\ncode\n```\n", b"| a | b |\n|---|---|\n| 1 | 2 |\n", b"> quote\n", b"1. one\n   two\n", b"~~~\n",
        b"===\n", b"valid until 2026-12-01", b"[[link]]", b"#tag", b"\xff\xfeh\x00i\x00", b"\xe9t\xe9", b"    code\n",
    )),
    Target("questions", questions, (
        b"which VLAN is the printer on", b'"oolong tea"', b"-gateway", b"tag:home", b"path:memory/", b"title:Network",
        b"since:2026-11-01", b"until:yesterday", b"last week", b"in November 2026", "昨天".encode(), b"tag:", b'"',
        "打印机".encode(), b"AND OR NOT", b"*", b"what did we say on Friday?", b"since:", b"am 15. November",
    )),
    Target("settings", settings, (
        b"{}", b"{query: {maxResults: 5}}", b'{"query": {"maxResults": 5,},}', b"// words\n", b"/* words */",
        b"{'a': +1.e3}", b"query.maxResults", b"{\n  query: {\n    maxResults: 3, // three\n  },\n}\n", b"Infinity",
        b"0x1F", b"'\\u{41}'",
    )),
    Target("transcripts", transcripts, (
        _SAID, b'{"type":"compaction","id":"c1","parentId":"a1","summary":"s","firstKeptEntryId":"a1"}\n',
        b'{"type":"leaf","targetId":"a1"}\n', b'"parentId":"a1"', b'"content":[{"type":"text","text":"x"}]',
        b'{"type":"session","version":3,"id":"s"}\n', b'"timestamp":"2026-11-16T00:00:00Z"', b'"role":"assistant"',
        b'{"type":"custom","data":{}}\n', b'"usage":{"input":1}',
    )),
    Target("mcp", mcp, (
        _CALL % (b"memory_search", b'"query":"printer"'), _CALL % (b"memory_get", b'"path":"MEMORY.md","from":1'),
        _CALL % (b"memory_status", b""), b'{"jsonrpc":"2.0","id":"a","method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"memory:///MEMORY.md"}}',
        b'{"jsonrpc":"2.0","id":3,"method":"resources/list","params":{"cursor":"1"}}',
        b'{"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"recall","arguments":{"question":"x"}}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}', b"[]", b'"_meta":{}',
        b'{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}',
        b'[{"jsonrpc":"2.0","id":6,"method":"ping"}]', b'"lines":5', b'"maxResults":3', b'"minScore":0.5',
    )),
    Target("v1", v1, (
        b'POST /v1/search\n{"query":"printer","limit":3}', b"GET /v1/notes?limit=3&preview=true", b"GET /v1/days",
        b'PATCH /v1/notes/MEMORY.md\n{"old":"VLAN 40","new":"VLAN 40"}', b"GET /v1/notes/memory%2Fnetwork.md?lines=1-3",
        b'POST /v1/forget\n{"what":"no such thing"}', b"GET /v1/history?limit=2", b"GET /v1/graph?note=network&depth=2",
        b"GET /v1/links/MEMORY.md", b"GET /v1/sessions", b"GET /v1/tags/home", b"GET /v1/proposals?kind=stale",
        b"GET /v1/recalls?day=2026-11-16", b'"filters":{"tags":["home"],"since":"2026-11-01"}', b"GET /v1/entries",
        b'PUT /v1/notes/memory/x.md\n{"text":"# x\\n"}', b"cursor=", b"offset=", b"HEAD /v1/status", b"from=", b"to=",
        b"POST /v1/proposals/ab12/accept\n{}", b"GET /v1/days/2026-11-15", b'"today":"2026-01-01"',
        b'"sources":["sessions"]',
    )),
    Target("index", index, (
        struct.pack(">HIB", 0, 100, 255), struct.pack(">HIB", 1, 5_000, 1), struct.pack(">HIB", 2, 9, 128),
        struct.pack(">HIB", 1, 70_000, 64), struct.pack(">HIB", 3, 0, 255),
    )),
    Target("journals", journals, (
        b"accept 3f2a91ab", b"reject 3f2a91ab\n", b'{"id":"01","path":"a.md","hash":"' + b"a" * 64 + b'"}\n',
        b'{"kind":"stale","cites":[{"path":"MEMORY.md","line":3,"text":"x"}],"edits":[]}\n', b'"previous":null',
        b'"at":"2026-11-16T00:00:00+00:00"', b'"operation":"edit"', b'"length":4', b'"maker":{"kind":"rule","name":""}',
    )),
)  # fmt: skip
