"""Every operation of `/v1`: its address, the right it needs, what it takes, what it gives and who carries it out."""

from __future__ import annotations

from collections.abc import Callable

from plainmind.base.value import value
from plainmind.guests.page import health, notes, shapes
from plainmind.guests.page.call import Call, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class Operation:
    """One thing that can be asked for."""

    method: str
    path: str  # `{id}` is a part of the address, `{path:path}` all that follows
    summary: str
    handle: Callable[[Call], Reply]
    answer: type | None
    right: str = "read"  # "" for what needs no token, "open" for what only `plainmind page` may
    query: type = shapes.Nothing
    body: type | None = None
    status: int = 200
    slow: bool = False  # waits for a place of its own, so that a search need not

    @property
    def name(self) -> str:
        """As programs call it: `readNote` of `notes.read_note`."""
        first, *rest = self.handle.__name__.split("_")
        return first + "".join(part.capitalize() for part in rest)


def operations() -> tuple[Operation, ...]:
    """All of them, in the order of the documentation."""
    return (*_SESSION, *_NOTES, *_HISTORY, *_HEALTH)


def _make(method: str, path: str, summary: str, handle: Any, answer: type | None, **more: Any) -> Operation:
    return Operation(method, path, summary, handle, answer, **more)


_SESSION = (
    _make(
        "POST",
        "/v1/session",
        "Begin a session of the page with a code",
        health.begin_session,
        shapes.Session,
        right="",
        body=shapes.Code,
        status=201,
    ),
    _make("GET", "/v1/session", "Who is asking", health.read_session, shapes.Session, right="any"),
    _make("DELETE", "/v1/session", "End the session", health.end_session, None, right="any", status=204),
    _make(
        "POST",
        "/v1/codes",
        "Make a code for the page; only `plainmind page` can",
        health.make_code,
        shapes.CodeMade,
        right="open",
        body=shapes.Nothing,
        status=201,
    ),
)
_NOTES = (
    _make(
        "POST",
        "/v1/search",
        "Find the lines that answer a question",
        notes.search,
        shapes.Found,
        body=shapes.Question,
    ),
    _make(
        "GET",
        "/v1/notes",
        "List the files of the memory",
        notes.list_notes,
        shapes.Notes,
        query=shapes.NotesQuery,
    ),
    _make(
        "POST",
        "/v1/notes",
        "Write a note down",
        notes.add_note,
        shapes.NoteWritten,
        right="write",
        body=shapes.NewNote,
        status=201,
    ),
    _make(
        "GET", "/v1/notes/{path:path}", "Read a file", notes.read_note, shapes.Note, query=shapes.LinesQuery
    ),
    _make(
        "PUT",
        "/v1/notes/{path:path}",
        "Give a file a whole new text",
        notes.put_note,
        shapes.Changed,
        right="write",
        body=shapes.WholeText,
    ),
    _make(
        "PATCH",
        "/v1/notes/{path:path}",
        "Replace a text that stands exactly once",
        notes.edit_note,
        shapes.Changed,
        right="write",
        body=shapes.Replacement,
    ),
    _make(
        "POST",
        "/v1/forget",
        "Show what would go, then remove it for good",
        notes.forget,
        shapes.Forgotten,
        right="forget",
        body=shapes.Forget,
        slow=True,
    ),
)
_HISTORY = (
    _make(
        "GET",
        "/v1/history",
        "List what was changed",
        notes.list_history,
        shapes.History,
        query=shapes.HistoryQuery,
    ),
    _make("GET", "/v1/history/{id}", "Read a change", notes.read_version, shapes.Version),
    _make(
        "POST",
        "/v1/history/{id}/restore",
        "Bring a version back",
        notes.restore_version,
        shapes.Changed,
        right="write",
        body=shapes.Nothing,
    ),
    _make(
        "POST",
        "/v1/undo",
        "Take back the latest change",
        notes.undo,
        shapes.Undone,
        right="write",
        body=shapes.Nothing,
    ),
)
_HEALTH = (
    _make(
        "GET", "/v1/status", "What is known and where it is kept", health.read_status, shapes.Facts, slow=True
    ),
)
