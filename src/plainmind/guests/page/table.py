"""Every operation of `/v1`: its address, the right it needs, what it takes and gives; and the document that says so."""

from __future__ import annotations

from collections.abc import Callable

from plainmind import __version__
from plainmind.base.value import value
from plainmind.guests.page import days, network, notes, parts, requests, shapes
from plainmind.guests.page.call import Call, Reply
from plainmind.guests.page.wire import KINDS, parameters_of, schema_of

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
    query: type = requests.Nothing
    body: type | None = None
    status: int = 200
    also: tuple[tuple[int, str], ...] = ()  # other statuses of what was carried out, and when
    slow: bool = False  # waits for a place of its own, so that a search need not
    headers: tuple[tuple[str, str], ...] = ()  # that it heeds, and what they say
    gives: str = ""  # the kind of an answer that is no value

    @property
    def name(self) -> str:
        """As programs call it: `readNote` of `notes.read_note`."""
        first, *rest = self.handle.__name__.split("_")
        return first + "".join(part.capitalize() for part in rest)


def operations() -> tuple[Operation, ...]:
    """All of them, in the order of the documentation."""
    return (*_SESSION, *_NOTES, *_HISTORY, *_TIME, *_NETWORK, *_PARTS, *_HEALTH, *_ABOUT)


def read_document(_call: Call) -> Reply:
    """The whole interface, as OpenAPI describes one."""
    return Reply(document())


def listen(call: Call) -> Reply:
    """What happens, as it happens; the server writes it."""
    raise NotImplementedError  # a stream is no reply


def document() -> dict[str, Any]:
    """The interface in OpenAPI 3.1, made of the operations and of the values that travel."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations():
        place = operation.path.replace(":path}", "}")
        paths.setdefault(place, {})[operation.method.lower()] = _described(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Plainmind",
            "version": __version__,
            "description": "The memory of AI agents, kept in plain Markdown. `/v1` only ever gains fields.",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": dict(sorted(schemas.items())),
        },
    }


_PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "Why a request was not carried out (RFC 9457). `detail` is a sentence for people.",
    "properties": {
        "type": {"type": "string", "enum": [f"urn:plainmind:{kind}" for kind in KINDS]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "hint": {"type": "string", "description": "what to do"},
        "right": {"type": "string", "description": "of a refusal: the right that is missing"},
        "current": {
            "type": ["object", "null"],
            "description": "of a stale file: its present `text`, `etag` and `totalLines`; null when it is gone",
        },
    },
    "required": ["type", "title", "status", "detail"],
}


def _described(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    names = [part.strip("{}").partition(":")[0] for part in operation.path.split("/") if part.startswith("{")]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
    ]
    headers = [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}, "description": said}
        for name, said in operation.headers
    ]
    answer: dict[str, Any] = {"description": operation.summary}
    if operation.answer is not None:
        answer["content"] = {"application/json": {"schema": schema_of(operation.answer, schemas)}}
    elif operation.gives:
        answer["content"] = {operation.gives: {}}
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*parameters, *parameters_of(operation.query), *headers],
        "responses": {
            str(operation.status): answer,
            **{
                str(status): {**({} if status == 304 else answer), "description": when}
                for status, when in operation.also
            },
            "default": {"description": "why it was not carried out", "content": problem},
        },
        "x-right": operation.right,
    }
    if operation.body is not None:
        schema = schema_of(operation.body, schemas)
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if not operation.right:
        found["security"] = []
    return found


def _make(method: str, path: str, summary: str, handle: Any, answer: type | None, **more: Any) -> Operation:
    return Operation(method, path, summary, handle, answer, **more)


_SESSION = (
    _make(
        "POST",
        "/v1/session",
        "Begin a session of the page with a code",
        parts.begin_session,
        shapes.Session,
        right="",
        body=requests.Code,
        status=201,
    ),
    _make("GET", "/v1/session", "Who is asking", parts.read_session, shapes.Session, right="any"),
    _make("DELETE", "/v1/session", "End the session", parts.end_session, None, right="any", status=204),
    _make(
        "POST",
        "/v1/codes",
        "Make a code for the page; only `plainmind page` can",
        parts.make_code,
        shapes.CodeMade,
        right="open",
        body=requests.Nothing,
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
        body=requests.Question,
    ),
    _make(
        "GET",
        "/v1/notes",
        "List the files of the memory",
        notes.list_notes,
        shapes.Notes,
        query=requests.NotesQuery,
    ),
    _make(
        "POST",
        "/v1/notes",
        "Write a note down",
        notes.add_note,
        shapes.NoteWritten,
        headers=(("Idempotency-Key", "the same key writes nothing twice"),),
        right="write",
        body=requests.NewNote,
        status=201,
        also=((200, "the same key again: the note that stands there"),),
    ),
    _make(
        "GET",
        "/v1/notes/{path:path}",
        "Read a file",
        notes.read_note,
        shapes.Note,
        headers=(("If-None-Match", "etags: 304 when it is still one of them"),),
        also=((304, "it is still that one"),),
        query=requests.LinesQuery,
    ),
    _make(
        "PUT",
        "/v1/notes/{path:path}",
        "Give a file a whole new text",
        notes.put_note,
        shapes.Changed,
        headers=(
            ("If-Match", "the etag of the text that this one was made from; `*`: whatever is there"),
            ("If-None-Match", "`*`: there must be no such file yet"),
        ),
        right="write",
        body=requests.WholeText,
        also=((201, "a new file"),),
    ),
    _make(
        "PATCH",
        "/v1/notes/{path:path}",
        "Replace a text that stands exactly once",
        notes.edit_note,
        shapes.Changed,
        headers=(("If-Match", "the etag of the file, if it must be that one"),),
        right="write",
        body=requests.Replacement,
    ),
    _make(
        "POST",
        "/v1/forget",
        "Show what would go, then remove it for good",
        notes.forget,
        shapes.Forgotten,
        right="forget",
        body=requests.Forget,
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
        query=requests.HistoryQuery,
    ),
    _make("GET", "/v1/history/{id}", "Read a change", notes.read_version, shapes.Version),
    _make(
        "POST",
        "/v1/history/{id}/restore",
        "Bring a version back",
        notes.restore_version,
        shapes.Changed,
        right="write",
        body=requests.Nothing,
    ),
    _make(
        "POST",
        "/v1/undo",
        "Take back the latest change",
        notes.undo,
        shapes.Undone,
        right="write",
        body=requests.Nothing,
    ),
)
_TIME = (
    _make(
        "GET",
        "/v1/days",
        "How much there was on each day",
        days.list_days,
        shapes.Days,
        query=requests.DaysQuery,
        slow=True,
    ),
    _make("GET", "/v1/days/{day}", "All that there is of one day", days.read_day, shapes.OneDay, slow=True),
    _make(
        "GET",
        "/v1/sessions",
        "List conversations",
        days.list_conversations,
        shapes.Sessions,
        query=requests.SessionsQuery,
    ),
    _make(
        "GET",
        "/v1/sessions/{name:path}",
        "Read a conversation",
        days.read_conversation,
        shapes.Spoken,
        query=requests.SpokenQuery,
    ),
    _make("GET", "/v1/start-context", "What a session begins with", days.read_start, shapes.StartContext),
)
_NETWORK = (
    _make("GET", "/v1/tags", "List all tags", network.list_tags, shapes.Tags, slow=True),
    _make(
        "GET", "/v1/tags/{tag:path}", "The notes that have a tag", network.read_tag, shapes.Tagged, slow=True
    ),
    _make(
        "GET",
        "/v1/links/{path:path}",
        "Links of a note, and to it",
        network.read_links,
        shapes.Links,
        slow=True,
    ),
    _make(
        "GET",
        "/v1/graph",
        "Notes and the links between them",
        network.read_graph,
        shapes.Graph,
        query=requests.GraphQuery,
        slow=True,
    ),
    _make("GET", "/v1/map", "Every note at a place by its meaning", network.read_map, shapes.Map, slow=True),
    _make(
        "POST",
        "/v1/map",
        "Give all notes new places",
        network.make_map,
        shapes.Map,
        right="write",
        body=requests.Nothing,
        slow=True,
    ),
)
_PARTS = (
    _make(
        "GET",
        "/v1/entries",
        "List single things to remember",
        parts.list_entries,
        shapes.Entries,
        query=requests.EntriesQuery,
        slow=True,
    ),
    _make(
        "POST",
        "/v1/entries",
        "Keep a single thing",
        parts.add_entry,
        shapes.Entry,
        right="write",
        body=requests.NewEntry,
        status=201,
        slow=True,
    ),
    _make(
        "POST",
        "/v1/entries/{id}/accept",
        "Keep an entry that waited",
        parts.accept_entry,
        None,
        right="review",
        body=requests.Nothing,
        status=204,
        slow=True,
    ),
    _make(
        "GET",
        "/v1/recalls",
        "What agents asked and were given",
        parts.list_recalls,
        shapes.Recalls,
        query=requests.RecallsQuery,
    ),
    _make("GET", "/v1/recalls/{id}", "One recall", parts.read_recall, shapes.RecallRow),
    _make(
        "POST",
        "/v1/recalls/{id}/verdict",
        "Say what a line was worth",
        parts.judge_recall,
        shapes.RecallRow,
        right="review",
        body=requests.Verdict,
    ),
    _make(
        "GET",
        "/v1/proposals",
        "What waits for a person to agree",
        parts.list_proposals,
        shapes.Proposals,
        query=requests.ProposalsQuery,
        slow=True,
    ),
    _make(
        "POST",
        "/v1/proposals/{id}/accept",
        "Do what a proposal says",
        parts.accept_proposal,
        shapes.Outcome,
        right="review",
        body=requests.Nothing,
        slow=True,
    ),
    _make(
        "POST",
        "/v1/proposals/{id}/reject",
        "Drop a proposal for good",
        parts.reject_proposal,
        shapes.Outcome,
        right="review",
        body=requests.Nothing,
        slow=True,
    ),
    _make(
        "GET",
        "/v1/upkeep",
        "What the last look for proposals said",
        parts.read_upkeep,
        shapes.Upkeep,
        slow=True,
    ),
    _make(
        "POST",
        "/v1/upkeep",
        "Look for proposals now",
        parts.run_upkeep,
        shapes.Upkeep,
        right="review",
        body=requests.Nothing,
        slow=True,
    ),
)
_HEALTH = (
    _make(
        "GET",
        "/v1/status",
        "What is known and where it is kept",
        parts.read_status,
        None,
        slow=True,
        gives="application/json",
    ),
    _make(
        "GET",
        "/v1/doctor",
        "Look for everything that could be wrong",
        parts.read_doctor,
        shapes.Checks,
        slow=True,
    ),
    _make("GET", "/v1/settings", "Every setting, without secrets", parts.list_settings, shapes.SettingList),
)
_ABOUT = (
    _make(
        "GET",
        "/v1/events",
        "What happens, as it happens: server-sent events",
        listen,
        None,
        headers=(("Last-Event-ID", "go on after this event"),),
        gives="text/event-stream",
    ),
    _make(
        "GET", "/v1/openapi.json", "This document", read_document, None, right="", gives="application/json"
    ),
)
