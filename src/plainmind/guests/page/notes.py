"""Searching, reading, writing, taking back and forgetting notes, for one who asks over `/v1`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plainmind.agent.recalls import RecalledLines, lines_of_hits
from plainmind.base.errors import ConflictError, NotFound, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import (
    EVERY_SCOPE,
    SearchResult,
    is_transcript,
    known_sources,
    sha256_bytes,
    sha256_text,
    split_lines,
)
from plainmind.base.value import replace
from plainmind.guests.page import requests, shapes
from plainmind.guests.page.call import Call, Preview, Reply, page_of
from plainmind.guests.page.gate import Versions, versions_in
from plainmind.guests.page.wire import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date
    from typing import Any

    from plainmind.base.model import SearchHit
    from plainmind.files.history import Version
    from plainmind.notes.discovery import FoundFile
    from plainmind.notes.notebook import Forgotten
    from plainmind.notes.notebook import ForgottenLines as Doomed

_RANGE = pattern(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_BULLET = pattern(r"^(?:(?:[-*+>]|[0-9]{1,4}[.)])\s+)+(?:\[[ xX]\]\s+)?")
_KEY = pattern(r"[\x21-\x7e]{1,200}")
_CODE_SECONDS = 600.0


def search(call: Call) -> Reply:
    """Find the lines that answer a question."""
    from datetime import date

    asked: requests.Question = call.body
    try:
        today = date.fromisoformat(asked.today) if asked.today else call.memory.now().date()
    except ValueError as error:
        raise PlainmindError(f"`{asked.today}` is no day", hint="write it as 2026-11-16") from error
    if not asked.query.strip():
        return Reply(_found(call, _no_result(asked.query), today))
    filters = asked.filters
    wanted: dict[str, Any] = {
        "max_results": asked.limit,
        "min_score": asked.min_score,
        "sources": None if asked.sources is None else known_sources(asked.sources),
        "snippet_chars": asked.snippet_chars,
        "explain": asked.explain,
        "today": today,
        "paths": filters.paths,
        "tags": filters.tags,
        "since": filters.since,
        "until": filters.until,
        "deep": asked.deep,
        "scopes": frozenset(filters.scopes) or EVERY_SCOPE,
    }
    if call.caller.is_page:
        result = call.memory.index.search(asked.query, with_expired=True, **wanted)
        return Reply(_found(call, result, today))
    recall = call.scoped.begin_recall("search", asked.query, asker=call.asker)
    result = call.scoped.search(asked.query, **wanted)
    recall.end(lines_of_hits(result.hits), "\n".join(hit.snippet for hit in result.hits))
    return Reply(_found(call, result, today))


def _no_result(query: str) -> SearchResult:
    return SearchResult(query, (), "none", "", "hybrid")


def _found(call: Call, result: SearchResult, today: date) -> shapes.Found:
    from plainmind.cli.search import words_asked
    from plainmind.text.terms import query_terms

    words = words_asked(result)
    wanted = frozenset(query_terms(words).terms)
    hits = tuple(_hit(call, hit, wanted, words, today) for hit in result.hits)
    return shapes.Found(
        result.query,
        hits,
        round(result.confidence, 4),
        result.is_certain,
        result.mode,
        result.provider,
        result.model,
        result.degraded,
        result.notes,
        result.understood,
        dict(result.timings),
    )


def _hit(call: Call, hit: SearchHit, wanted: frozenset[str], words: str, today: date) -> shapes.Hit:
    from plainmind.cli.search import citation, reason
    from plainmind.notes.workspace import day_of

    why = None if hit.explanation is None else reason(hit.explanation, words, hit.path, today)
    return shapes.Hit(
        hit.path,
        hit.start_line,
        hit.end_line,
        hit.best_line,
        round(hit.score, 4),
        hit.source,
        hit.citation or citation(hit),
        hit.headings,
        day_of(hit.path),
        call.memory.policy.checkpoint.scope_of(hit.path),
        hit.snippet,
        tuple(
            shapes.MarkedLine(hit.start_line + number, _parts(line, wanted))
            for number, line in enumerate(hit.snippet.split("\n"))
        ),
        tuple(shapes.Place(one.path, one.start_line, one.end_line) for one in hit.also),
        hit.until,
        None if hit.newer is None else shapes.Newer(hit.newer.path, hit.newer.line, hit.newer.text),
        tuple(shapes.Place(one.path, one.start_line, one.end_line) for one in hit.older),
        _title_of(call, hit.path) if hit.source == "sessions" else None,
        why,
        hit.explanation,
    )


def _title_of(call: Call, path: str) -> str | None:
    """What a person would call the conversation with this path."""
    from plainmind.memory.session_pages import entry_of, find_session, title_of

    try:
        title = title_of(entry_of(find_session(call.memory.sessions, path)))
    except PlainmindError:  # gone since, or not here
        return None
    return call.memory.redactor().without_secrets(title) or None


def _parts(line: str, wanted: frozenset[str]) -> tuple[str, ...]:
    """Cut a line where words of the question begin and end: every second part is one."""
    from plainmind.cli.search import matched_spans

    if not wanted:
        return (line,)
    parts: list[str] = []
    end = 0
    for start, stop in matched_spans(line, wanted):
        parts += (line[end:start], line[start:stop])
        end = stop
    return (*parts, line[end:])


_MOST_PREVIEWS = 100
_PREVIEW_CHARACTERS = 200


def list_notes(call: Call) -> Reply:
    """List the files of the memory that may be seen."""
    asked: requests.NotesQuery = call.query
    rows = call.files(newest_first=asked.order == "changed")
    if asked.prefix or asked.day is not None:
        rows = [
            found
            for found in rows
            if found.path.startswith(asked.prefix) and (asked.day is None or _day(found) == asked.day)
        ]
    limit = min(asked.limit, _MOST_PREVIEWS) if asked.preview else asked.limit
    shown, following = page_of(rows, limit, asked.cursor, lambda one: one.path, asked.offset)
    listed = (_row_with_preview(call, one) if asked.preview else note_row(one) for one in shown)
    return Reply(shapes.Notes(tuple(listed), len(rows), following))


def _row_with_preview(call: Call, found: FoundFile) -> shapes.NoteRow:
    from plainmind.text.front_matter import note_names
    from plainmind.text.note_format import without_note_ids

    try:
        call.memory.policy.checkpoint.require(call.scoped.access, found.path)
        text = call.shown(call.memory.text_of(found))
    except (OSError, PlainmindError):
        return note_row(
            found
        )  # it went between the list and the look, or cannot be read: the reader says which
    lines = split_lines(text)
    names = note_names(found.path, lines)
    words = [without_note_ids(line).strip() for line in lines[names.front_matter_lines :]]
    begin = " ".join(_BULLET.sub("", line) for line in words if line and not line.startswith("#"))
    return replace(note_row(found), title=names.title or names.name, preview=begin[:_PREVIEW_CHARACTERS])


def _day(found: FoundFile) -> str | None:
    from plainmind.notes.workspace import day_of

    return day_of(found.path)


def note_row(found: FoundFile) -> shapes.NoteRow:
    """A file as lists show it."""
    return shapes.NoteRow(found.path, _day(found), found.size, found.changed_at, found.scope)


def read_note(call: Call) -> Reply:
    """Read a file, or some lines of it."""
    asked: requests.LinesQuery = call.query
    recall = None if call.caller.is_page else call.scoped.begin_recall("read", asker=call.asker)
    found, data, text = _content(call, _path(call))
    etag = sha256_bytes(data)
    if versions_in(call.header("if-none-match")).has(etag):
        return Reply(None, 304, etag=etag)
    note = _note(call, found, data, text, asked.lines)
    if recall is not None:
        last = note.first_line + note.line_count - 1
        recall.end([RecalledLines(note.path, note.first_line, last)], note.text)
    return Reply(note, etag=etag)


def _note(call: Call, found: FoundFile, data: bytes, text: str, wanted: str | None) -> shapes.Note:
    from plainmind.notes.workspace import decode, is_plain_text
    from plainmind.text.front_matter import note_names

    lines = split_lines(text)
    first, last = _lines_asked(wanted, len(lines))
    names = note_names(found.path, lines)
    shown = text if wanted is None else "\n".join(lines[first - 1 : last])
    return shapes.Note(
        found.path,
        shown,
        sha256_bytes(data),
        first,
        last - first + 1,
        len(lines),
        len(data),
        _day(found),
        found.changed_at,
        found.scope,
        names.title or names.name,
        tuple(names.tags),
        tuple(names.aliases),
        "write" in call.caller.rights
        and call.caller.is_owner
        and is_plain_text(data)
        and text == decode(data),
    )


def _lines_asked(wanted: str | None, total: int) -> tuple[int, int]:
    if wanted is None:
        return 1, total
    asked = _RANGE.fullmatch(wanted)
    if asked is None:
        raise PlainmindError(f"`{wanted[:40]}` names no lines", hint="write `3-7`, or `3` for one line")
    first, last = int(asked[1]), int(asked[2] or asked[1])
    if not 1 <= first <= last or first > max(total, 1):
        raise NotFound(f"the file has {total} lines; there is no range {wanted}", hint="read all of it")
    return first, min(last, total)


def _path(call: Call) -> str:
    path = call.parameters["path"]
    if is_transcript(path):
        raise NotFound("that is a conversation, not a note", hint="read it at /v1/sessions/{name}")
    return path


def _content(call: Call, path: str) -> tuple[FoundFile, bytes, str]:
    """A file, its bytes and its text as this caller may read it. ScopeDenied, NotFound or PathNotAllowed."""
    from plainmind.notes.workspace import decode

    memory = call.memory
    memory.policy.checkpoint.require(call.scoped.access, path)
    workspace = memory.notes.workspace
    found = workspace.locate(path)
    data, _ = found.root.read(found.relative, max_bytes=workspace.max_file_bytes)
    text = decode(data)
    return found, data, call.shown(text)


def add_note(call: Call) -> Reply:
    """Write a note down; the same idempotency key again writes nothing and gives the same answer."""
    asked: requests.NewNote = call.body
    key = call.header("idempotency-key")
    if not key:
        return Reply(_remember(call, asked, None), 201)
    if not _KEY.fullmatch(key):
        raise PlainmindError("`Idempotency-Key` must be 1 to 200 visible ASCII characters")
    # The key names the note: whoever repeats it, after a crash and on whichever day, finds it standing there.
    note_id = _id_of_key(call.caller.name, key)
    written = next((one for one in call.memory.history() if one.id == note_id), None)
    if written is not None and written.text is not None and not _says(written.text, asked.text):
        raise Problem("conflict", "this key was used for another note", "use a new key for each note")
    return Reply(_remember(call, asked, note_id), 201 if written is None else 200)


def _says(record: str, text: str) -> bool:
    """Whether a note, as it was written, has every line of a text."""
    lines = {line.strip() for line in record.splitlines()}
    wanted = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return all(any(line in known for known in lines) for line in wanted)


_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def _id_of_key(caller: str, key: str) -> str:
    """An id in the form of all note ids, the same for the same key of the same caller."""
    number = int(sha256_text(f"{caller}\n{key}")[:32], 16) >> 2
    letters = []
    for _ in range(26):
        number, rest = divmod(number, 32)
        letters.append(_LETTERS[rest])
    return "".join(reversed(letters))


def _remember(call: Call, asked: requests.NewNote, note_id: str | None) -> shapes.NoteWritten:
    written = call.scoped.append(asked.text, note_id=note_id, durable=asked.durable)
    _, data = call.memory.notes.notebook.read_bytes(written.path)
    return shapes.NoteWritten(
        written.path,
        written.start_line,
        written.end_line,
        written.id,
        sha256_bytes(data),
        written.missing if call.caller.is_owner else (),
    )


def put_note(call: Call) -> Reply:
    """Give a file a whole new text, if it is still the one that was read; or make a new file."""
    asked: requests.WholeText = call.body
    path = _path(call)
    call.require_owner("a whole file can only be written by the owner", "change a part of it with PATCH")
    wanted = versions_in(call.header("if-match"))
    is_new = call.header("if-none-match").strip() == "*"
    if not wanted and not is_new:
        raise Problem(
            "precondition-required",
            "say which version of the file the text is made from",
            'send its etag as `If-Match: "…"`, or `If-None-Match: *` to make a new file',
        )
    base = _version_there(call, path, wanted)
    _refuse_marks(call, path, asked.text)
    try:
        edited = call.memory.write(path, asked.text, base_hash=base, allow_shrink=asked.allow_shrink)
    except ConflictError as error:
        raise _stale(call, path, str(error)) from error
    return Reply(_changed(call, edited.path, edited.line), 201 if is_new else 200, etag=edited.hash)


def _refuse_marks(call: Call, path: str, text: str) -> None:
    """Keep the mark of a secret that is hidden from this caller from taking the secret's place."""
    from plainmind.notes.workspace import decode
    from plainmind.redaction.findings import marks_in

    if call.caller.is_page or not (marks := marks_in(text)):
        return
    try:
        _, data = call.memory.notes.notebook.read_bytes(path)
    except NotFound:
        data = b""
    if len(marks) > len(marks_in(decode(data))):
        raise PlainmindError(
            "the text holds the mark of a secret that is hidden here: it would take the secret's place",
            hint="replace only the words before or after it, with PATCH",
        )


def edit_note(call: Call) -> Reply:
    """Replace a text that stands exactly once in a file."""
    asked: requests.Replacement = call.body
    path = _path(call)
    base = _version_there(call, path, versions_in(call.header("if-match")))
    try:
        edit = call.memory.edit if call.caller.is_page else call.scoped.edit
        edited = edit(path, asked.old, asked.new, base_hash=base, allow_shrink=asked.allow_shrink)
    except ConflictError as error:
        raise _stale(call, path, str(error)) from error
    except NotFound as error:
        if call.memory.notes.workspace.locate(path):  # the file is there: the text in it is not, or not once
            raise Problem("conflict", str(error), error.hint) from error
        raise
    return Reply(_changed(call, edited.path, edited.line), etag=edited.hash)


def _version_there(call: Call, path: str, wanted: Versions) -> str | None:
    """The version that is there, if it is one that is wanted; None where none is."""
    if not wanted:
        return None
    try:
        _, data, _ = _content(call, path)
    except NotFound as error:
        raise Problem(
            "stale", f"`{path}` is not there any more", error.hint, more={"current": None}
        ) from error
    etag = sha256_bytes(data)
    if not wanted.has(etag):
        raise _stale(call, path, f"`{path}` has changed since it was read; nothing was written")
    return etag


def _stale(call: Call, path: str, detail: str) -> Problem:
    """Say that a file is another one by now, and what it is."""
    _, data, text = _content(call, path)
    current = {"text": text, "etag": sha256_bytes(data), "totalLines": len(split_lines(text))}
    return Problem("stale", detail, "compare the two texts, and save again", more={"current": current})


def _changed(call: Call, path: str, line: int) -> shapes.Changed:
    _, data, text = _content(call, path)
    return shapes.Changed(path, sha256_bytes(data), line, len(split_lines(text)))


# --- what files were before ---


def list_history(call: Call) -> Reply:
    """List what was changed, the latest first."""
    asked: requests.HistoryQuery = call.query
    call.require_owner("the history is its owner's")
    versions = call.memory.history(asked.path)
    shown, following = page_of(versions, asked.limit, asked.cursor, lambda one: f"{one.id} {one.at}")
    return Reply(shapes.History(tuple(map(version_row, shown)), len(versions), following))


def version_row(version: Version) -> shapes.VersionRow:
    """A change as lists show it."""
    return shapes.VersionRow(
        version.id,
        version.at,
        version.path,
        version.operation,
        version.length,
        version.hash,
        version.previous,
        version.available,
    )


def read_version(call: Call) -> Reply:
    """Read a change: the text after it, and before it."""
    from plainmind.notes.workspace import decode

    call.require_owner("the history is its owner's")
    version = _version(call)
    text = decode(call.memory.read_version(version.id)) if version.available else _text_now(call, version)
    previous = version.previous or _known_before(call, version)
    before = None if previous is None else call.memory.notes.history.content(previous)
    row = version_row(version)
    return Reply(
        shapes.Version(
            row.id,
            row.at,
            row.path,
            row.operation,
            row.bytes,
            row.hash,
            row.previous,
            row.available,
            text,
            None if before is None else decode(before),
        )
    )


def _known_before(call: Call, version: Version) -> str | None:
    """What a file was when it was last kept: in between somebody has changed it in another way."""
    if not version.what.startswith("before "):
        return None
    versions = call.memory.history(version.path)
    older = versions[versions.index(version) + 1 :]
    return next((one.hash for one in older if one.available and one.text is None), None)


def _text_now(call: Call, version: Version) -> str | None:
    """What a file says, if it is still what a change has made of it."""
    try:
        _, data, text = _content(call, version.path)
    except PlainmindError:
        return None  # it is gone, or not read any more
    return text if sha256_bytes(data) == version.hash else None


def _version(call: Call) -> Version:
    wanted = call.parameters["id"]
    found = next((one for one in call.memory.history() if one.id == wanted), None)
    if found is None:
        raise NotFound(f"there is no version `{wanted[:60]}`", hint="/v1/history lists them")
    return found


def restore_version(call: Call) -> Reply:
    """Bring a version back; what the file is now goes into the history first."""
    call.require_owner("the history is its owner's")
    edited = call.memory.restore(_version(call).id)
    return Reply(_changed(call, edited.path, edited.line), etag=edited.hash)


def undo(call: Call) -> Reply:
    """Take back the latest change."""
    call.require_owner("the history is its owner's")
    undone = call.memory.undo()
    return Reply(shapes.Undone(undone.path, undone.operation, undone.text, undone.others, undone.remarks))


# --- forgetting ---


def forget(call: Call) -> Reply:
    """Show what would go, with a code for it; with that code, remove exactly this for good."""
    asked: requests.Forget = call.body
    if asked.code is not None:
        return _forget_shown(call, call.keeper.previews.take(call.caller.name, asked.code))
    if asked.session is not None:
        preview = _session_preview(call, asked.session)
    else:
        preview = Preview(_choose(call, asked.what), None)
    code = call.keeper.previews.keep(call.caller.name, preview)
    return Reply(replace(_forgotten(call, preview), code=code, expires_in=_CODE_SECONDS))


def _choose(call: Call, what: object) -> Forgotten:
    """What is meant by a text, an id or citations."""
    texts = [what] if isinstance(what, str) else what
    if (
        not isinstance(texts, list)
        or not texts
        or not all(isinstance(one, str) and one.strip() for one in texts)
    ):
        raise PlainmindError(
            "say what to forget",
            hint="`what` is a text, an id, lines such as `MEMORY.md#L3`, or a list of lines",
        )
    if len(texts) > 1000:
        raise PlainmindError("these are more than 1,000 places", hint="forget them in several steps")
    if len(texts) > 1 and not all(isinstance(one, str) and "#L" in one for one in texts):
        raise PlainmindError("a list may only hold lines", hint="such as `MEMORY.md#L3-L5`")
    forget_one: Callable[..., Forgotten] = call.memory.forget if call.caller.is_owner else call.scoped.forget
    chosen = [forget_one(text, dry_run=True) for text in texts]
    if len(chosen) == 1:
        return chosen[0]
    _refuse_overlap([line for one in chosen for line in one.lines])
    entries = {entry.id: entry for one in chosen for entry in one.entries}
    return replace(
        chosen[0],
        lines=tuple(line for one in chosen for line in one.lines),
        entries=tuple(entries.values()),
        remarks=tuple(dict.fromkeys(remark for one in chosen for remark in one.remarks)),
    )


def _refuse_overlap(lines: Sequence[Doomed]) -> None:
    seen: set[tuple[str, int]] = set()
    for part in lines:
        places = {(part.path, number) for number in range(part.start_line, part.end_line + 1)}
        if places & seen:
            raise PlainmindError("the same line is named twice", hint="name each line once")
        seen |= places


def _session_preview(call: Call, name: str) -> Preview:
    import os

    from plainmind.memory.session_pages import entry_of, find_session, title_of

    call.require_owner("conversations can only be removed by the owner")
    session = find_session(call.memory.sessions, name)
    known = session.key or os.path.relpath(session.path, call.memory.sessions.folder)
    title = call.memory.redactor().without_secrets(title_of(entry_of(session)))
    return Preview(None, shapes.ForgottenSession(known, title))


def _forget_shown(call: Call, preview: Preview) -> Reply:
    if preview.session is not None:
        call.memory.delete_session(preview.session.name)
        return Reply(replace(_forgotten(call, preview), applied=True))
    assert preview.chosen is not None
    forget_this: Callable[..., Forgotten] = call.memory.forget if call.caller.is_owner else call.scoped.forget
    try:
        gone = forget_this(preview.chosen)
    except ConflictError as error:
        raise Problem("code", str(error), "ask once more what would go") from error
    for path in dict.fromkeys(line.path for line in gone.lines):
        call.keeper.tell_forgotten(path)
    return Reply(_forgotten(call, Preview(gone, None)))


def _forgotten(call: Call, preview: Preview) -> shapes.Forgotten:
    chosen = preview.chosen
    nowhere = shapes.StillIn((), (), chat_history=False)
    if chosen is None:
        return shapes.Forgotten(False, (), (), preview.session, (), nowhere)  # noqa: FBT003
    still = nowhere
    if call.caller.is_owner:
        left = call.memory.still_there(chosen)
        gone = {entry.id for entry in chosen.entries}
        ids = tuple(id_ for id_ in left.entries if id_ not in gone)
        still = shapes.StillIn(ids, left.sessions, left.typed is not None)
    return shapes.Forgotten(
        chosen.applied,
        tuple(
            shapes.ForgottenLines(one.path, one.start_line, one.end_line, one.text) for one in chosen.lines
        ),
        tuple(shapes.ForgottenEntry(one.id, one.text) for one in chosen.entries),
        None,
        chosen.remarks,
        still,
        versions_cleaned=chosen.versions_cleaned,
    )
