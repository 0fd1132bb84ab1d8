"""Conversations as people read and choose them, and as other programs take them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import islice

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import SearchHit, split_lines
from plainmind.base.value import value
from plainmind.sessions.entries import Entry, Transcript, line_of, message_of, text_of, time_of
from plainmind.sessions.shelf import ARCHIVED
from plainmind.sessions.store import Session, SessionStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from plainmind.redaction.engine import Redactor


Clean: TypeAlias = "Callable[[Entry], Entry]"

_CITATION = pattern(
    r"(?:sessions/)?(?P<file>(?:[^/:#]{1,200}/)?(?P<id>[^/:#.]{1,200})\.json[l5][^/:#]{0,100})"
    r"(?:(?::|#L)(?P<line>[0-9]{1,9})(?:-L?[0-9]{1,9})?)?"
)
_OPENAI_ROLES = {"user": "user", "assistant": "assistant", "toolResult": "tool", "system": "system"}


@value
class Shown:
    """One line of a transcript, as a person reads it."""

    line: int  # of the transcript
    speaker: str  # `User`, `Assistant`; in lower case what is not speech
    text: str
    time_ms: int | None
    entry: Entry


def find_session(store: SessionStore, name: str) -> Session:
    """Open a session by key, id, what a search cites, name of an archive, or the only beginning of one of these."""
    named = _CITATION.fullmatch(name)
    for known in (name, named["id"], named["file"]) if named else (name,):
        try:
            return store.open(known)
        except NotFound:
            continue
    rows = store.list()
    begun = [row.key for row in rows if name and (row.key.startswith(name) or row.id.startswith(name))]
    begun += [archive for archive in store.archives() if name and archive.startswith(name)]
    if not begun:
        raise NotFound(
            f"there is no session `{name}` in {store.folder}",
            hint="`plainmind sessions list` names those that are there",
        )
    if len(begun) > 1:
        raise PlainmindError(
            f"`{name}` could be {len(begun)} sessions: {', '.join(begun[:3])}{' …' if len(begun) > 3 else ''}",
            hint="write more of it; `plainmind sessions list` names them all",
        )
    return store.open(begun[0])


def line_cited(name: str) -> int | None:
    """The line that a citation points at: 5 of `sessions/x.jsonl:5-7` and of `sessions/x.jsonl#L5`."""
    named = _CITATION.fullmatch(name)
    return int(named["line"]) if named and named["line"] else None


def shown(session: Session, *, everything: bool = False) -> Iterator[Shown]:
    """Give what was said, and what was summed up; with `everything` also tools, thoughts and changes."""
    for placed in session.read():
        entry = placed.entry
        if entry is None:
            yield Shown(placed.number, "damaged", "a line that cannot be read", None, {})
            continue
        speech = message_of(entry)
        if speech is not None:
            yield Shown(placed.number, speech.speaker, speech.text, speech.time_ms, entry)
        elif everything or entry.get("type") in {"compaction", "reset", "branch_summary"}:
            kind, text = _describe(entry)
            yield Shown(placed.number, kind, text, time_of(entry), entry)


def _describe(entry: Entry) -> tuple[str, str]:
    """Name what is not speech, and say what it says."""
    kind = entry.get("type")
    message = entry.get("message")
    if kind in {"compaction", "branch_summary"}:
        return "summary", str(entry.get("summary") or "")
    if kind == "reset":
        return "reset", str(entry.get("reason") or "")
    if kind == "message" and isinstance(message, dict):
        return str(message.get("role")), text_of(message.get("content")) or _calls(message.get("content"))
    rest = {
        name: found
        for name, found in entry.items()
        if name not in {"type", "id", "parentId", "timestamp", "imported"}
    }
    content = text_of(entry.get("content"))
    return str(kind), content or json.dumps(rest, ensure_ascii=False)


def _calls(content: object) -> str:
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    calls = [
        f"{block.get('name')} {json.dumps(block.get('arguments'), ensure_ascii=False)}"
        for block in blocks
        if block.get("type") == "toolCall"
    ]
    thoughts = [str(block.get("thinking")) for block in blocks if block.get("type") == "thinking"]
    return "\n".join((*thoughts, *calls))


def without_secrets(redactor: Redactor) -> Clean:
    """Make what copies an entry with every secret hidden, also one that only the name of its field gives away."""

    def clean(entry: Entry) -> Entry:
        copy: Entry = redactor.redact_value(entry)
        name = entry.get("sessionKey")
        # Its field is called as if it opened something; it only says which conversation this is.
        return copy | {"sessionKey": redactor.without_secrets(name)} if isinstance(name, str) else copy

    return clean


def as_lines(session: Session, clean: Clean) -> Iterator[bytes]:
    """The transcript as JSONL, whichever format it is kept in."""
    yield line_of(clean(session.transcript.header() or {"type": "session", "id": session.id}), is_copy=True)
    for entry in session.entries():
        yield line_of(clean(entry), is_copy=True)


def as_markdown(session: Session, clean: Clean, name: str) -> Iterator[bytes]:
    """The conversation as a page that people read."""
    yield f"# {name or session.id}\n".encode("utf-8", "replace")
    for row in shown(session):
        if not row.entry:
            continue
        cleaned = message_of(clean(row.entry))
        speaker = row.speaker if cleaned is not None else row.speaker.capitalize()
        text = cleaned.text if cleaned is not None else _describe(clean(row.entry))[1]
        yield f"\n## {speaker} (line {row.line}{_moment(row.time_ms)})\n\n{text.strip()}\n".encode(
            "utf-8", "replace"
        )


def as_messages(session: Session, clean: Clean) -> Iterator[bytes]:
    """The conversation as a JSON list in the manner of OpenAI."""
    separator = b"[\n"
    for entry in session.entries():
        message = _openai(clean(entry))
        if message is not None:
            yield separator + json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
            separator = b",\n"
    yield b"[]\n" if separator == b"[\n" else b"\n]\n"


def _openai(entry: Entry) -> dict[str, Any] | None:
    message = entry.get("message")
    if entry.get("type") != "message" or not isinstance(message, dict):
        return None
    role = _OPENAI_ROLES.get(str(message.get("role")))
    if role is None:
        return None
    content = message.get("content")
    found: dict[str, Any] = {"role": role, "content": text_of(content)}
    if role == "tool":
        found["tool_call_id"] = message.get("toolCallId", "")
    calls = [
        {
            "id": block.get("id", ""),
            "type": "function",
            "function": {
                "name": block.get("name", ""),
                "arguments": json.dumps(block.get("arguments"), ensure_ascii=False),
            },
        }
        for block in (content if isinstance(content, list) else ())
        if isinstance(block, dict) and block.get("type") == "toolCall"
    ]
    if calls:
        found["tool_calls"] = calls
    return found if found["content"] or calls or role == "tool" else None


def _moment(time_ms: int | None) -> str:
    from datetime import UTC

    from plainmind.sessions.transcripts import local_minute

    minute = None if time_ms is None else local_minute(time_ms, UTC)
    return f", {minute} UTC" if minute else ""


def entry_of(session: Session) -> Entry:
    """What the registry says of a session; of an archive it says nothing."""
    return session.entry() if session.key is not None else {}


def title_of(entry: Entry) -> str:
    """What a person would call a session, by its registry entry."""
    for name in ("displayName", "label", "subject"):
        found = entry.get(name)
        if isinstance(found, str) and found:
            return found
    return ""


def cited_path(session: Session, folder: str) -> str:
    """As what a search cites it."""
    return f"sessions/{os.path.relpath(session.path, folder)}"


_LOOKED_AT = 50  # entries, from the end: behind the last message there is seldom more than a change of model


@value
class Listed:
    """One conversation of the list."""

    name: str  # what every other command takes: its key, or the name of an archive
    key: str  # "" where it is not known any more
    id: str
    path: str
    format: str
    said_ms: int  # when something was last said; when the file was written, where no message has a time
    size_bytes: int
    entry: Entry  # of the registry, as a copy without secrets
    title: str  # without secrets too


def list_sessions(store: SessionStore, redactor: Redactor) -> list[Listed]:
    """The conversations, the one in which something was said last first."""
    clean = without_secrets(redactor)
    rows = []
    for row in store.list():
        entry = clean(row.entry)
        said_ms = _last_said(store.transcript_at(row.path)) or row.updated_ms
        rows.append(
            Listed(
                row.key,
                row.key,
                row.id,
                row.path,
                row.format,
                said_ms,
                row.size_bytes,
                entry,
                title_of(entry),
            )
        )
    return _latest_first(rows)


def list_archives(store: SessionStore, redactor: Redactor) -> list[Listed]:
    """The archives, the one in which something was said last first, with the keys that they had."""
    clean = without_secrets(redactor)
    rows = []
    for name in store.archives():
        transcript = store.transcript_at(os.path.join(store.folder, name))
        try:
            status = os.stat(transcript.path)
        except FileNotFoundError:
            continue  # deleted a moment ago
        known = _registry_facts(transcript)
        said_ms = _last_said(transcript) or status.st_mtime_ns // 1_000_000
        key, entry = known.get("sessionKey"), known.get("entry")
        cleaned = clean(entry) if isinstance(entry, dict) else {}
        rows.append(
            Listed(
                name,
                key if isinstance(key, str) else "",
                os.path.basename(name).partition(".json")[0],
                transcript.path,
                transcript.format,
                said_ms,
                status.st_size,
                cleaned,
                title_of(cleaned),
            )
        )
    return _latest_first(rows)


def _registry_facts(transcript: Transcript) -> Entry:
    """What the registry knew of an archive: it was written down as its last line; else the first one has the key."""
    try:
        for placed in islice(transcript.backwards(), _LOOKED_AT):
            if placed.entry is not None and placed.entry.get("customType") == ARCHIVED:
                data = placed.entry.get("data")
                return data if isinstance(data, dict) else {}
        return transcript.header() or {}
    except PlainmindError:
        return {}  # it is listed all the same; opening it tells the reason


def _latest_first(rows: list[Listed]) -> list[Listed]:
    return sorted(rows, key=lambda row: (-row.said_ms, row.name))


def _last_said(transcript: Transcript) -> int | None:
    """The time of the last message, by its own words: copying a file, or touching it, says nothing new."""
    try:
        for placed in islice(transcript.backwards(), _LOOKED_AT):
            if placed.entry is not None and placed.entry.get("type") == "message":
                return time_of(placed.entry)
    except PlainmindError:
        return None
    return None


# --- what tools gave: it is not indexed, for it is long and mostly of the moment ---

_TOOL_ROLES = frozenset({"toolResult", "tool", "bashExecution"})
_MOST_SNIPPET_CHARS = 700


def search_tool_output(
    store: SessionStore, redactor: Redactor, query: str, *, most: int
) -> tuple[SearchHit, ...]:
    """Find output of tools with the words of a question, by reading all conversations; most words first."""
    from plainmind.text.terms import document_terms, query_terms

    wanted = frozenset(query_terms(query).terms)
    found: list[SearchHit] = []
    for row in store.list() if wanted else ():
        session = store.open(row.key)
        cited = f"sessions/{os.path.relpath(session.path, store.folder)}"
        for said in shown(session, everything=True):
            if said.speaker not in _TOOL_ROLES:
                continue
            matched = wanted.intersection(document_terms(said.text))
            if matched:
                text = redactor.without_secrets(said.text)
                snippet = _lines_with(text, matched)
                score = len(matched) / len(wanted)
                found.append(SearchHit(cited, said.line, said.line, score, snippet, "sessions"))
    found.sort(key=lambda hit: -hit.score)
    return tuple(found[:most])


def _lines_with(text: str, matched: frozenset[str]) -> str:
    """The lines that have the words, as far as they can be shown."""
    from plainmind.text.terms import document_terms

    lines = [line for line in split_lines(text) if not matched.isdisjoint(document_terms(line))]
    return "\n".join(lines)[:_MOST_SNIPPET_CHARS]
