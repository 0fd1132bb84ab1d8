"""What `/v1` answers, as values: each is written as JSON, and described in `/v1/openapi.json`."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import field, value
from plainmind.guests.page.wire import about

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@value
class CodeMade:
    """A code for the page."""

    code: str
    expires_in: float = field(metadata=about("seconds"))


@value
class Session:
    """Who is asking, and what may be done."""

    name: str
    rights: tuple[str, ...] = field(metadata=about("some of read, write, forget, review"))
    read_only: bool
    owner: bool = field(metadata=about("whether everything may be seen"))
    expires_at: str | None
    workspace: str
    agent: str
    version: str
    today: str
    sources: tuple[str, ...]
    entries: bool = field(metadata=about("whether there are single entries, or agents may keep some"))
    token: str | None = field(
        default=None, metadata=about("to be sent as `Authorization: Bearer …`; given once")
    )


@value
class Place:
    """Lines of a file."""

    path: str
    start_line: int
    end_line: int


@value
class MarkedLine:
    """A line of a result."""

    line: int
    parts: tuple[str, ...] = field(
        metadata=about("its text in parts; every second one is a word of the question")
    )


@value
class Newer:
    """The line that took the place of an older one."""

    path: str
    line: int
    text: str


@value
class Hit:
    """One result."""

    path: str
    start_line: int
    end_line: int
    best_line: int = field(metadata=about("the line that answers best; 0 when it is not known"))
    score: float
    source: str = field(metadata=about("memory or sessions"))
    citation: str
    headings: str
    day: str | None
    scope: str
    snippet: str
    lines: tuple[MarkedLine, ...]
    also: tuple[Place, ...] = field(metadata=about("other places that say the same"))
    until: str | None = field(metadata=about("the last day on which its best line holds, where it says so"))
    newer: Newer | None = field(metadata=about("what holds instead"))
    older: tuple[Place, ...] = field(metadata=about("lines that speak of the same and are older"))
    title: str | None = field(metadata=about("of a conversation"))
    why: str | None = field(default=None, metadata=about("in words; with `explain`"))
    explanation: Mapping[str, Any] | None = field(default=None, metadata=about("in numbers; with `explain`"))


@value
class Found:
    """The results of a search, and what was not consulted for them."""

    query: str
    results: tuple[Hit, ...]
    confidence: float
    certain: bool
    mode: str
    provider: str
    model: str
    degraded: tuple[str, ...]
    notes: tuple[str, ...]
    understood: tuple[str, ...]
    timings: Mapping[str, float]


@value
class NoteRow:
    """A file of the memory."""

    path: str
    day: str | None
    bytes: int
    modified_at: str | None
    scope: str
    title: str | None = field(default=None, metadata=about("with `preview`"))
    preview: str | None = field(
        default=None, metadata=about("with `preview`: how its text begins, on one line")
    )


@value
class Notes:
    """Files of the memory."""

    notes: tuple[NoteRow, ...]
    total: int
    next: str | None


@value
class Note:
    """A file of the memory, or some lines of it."""

    path: str
    text: str
    etag: str = field(metadata=about("SHA-256 of the whole file"))
    first_line: int
    line_count: int
    total_lines: int
    bytes: int
    day: str | None
    modified_at: str | None
    scope: str
    title: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    writable: bool = field(metadata=about("whether PUT keeps all of it: it is text, and may be written"))


@value
class NoteWritten:
    """Where a note stands now."""

    path: str
    start_line: int
    end_line: int
    id: str
    etag: str
    missing: tuple[str, ...] = field(
        metadata=about("ids of notes that somebody saved over: `/v1/history/{id}/restore` brings them back")
    )


@value
class Changed:
    """What a file is after a change."""

    path: str
    etag: str
    line: int = field(metadata=about("where the new text begins"))
    total_lines: int


@value
class VersionRow:
    """A change that was made through Plainmind."""

    id: str
    at: str
    path: str
    operation: str
    bytes: int
    hash: str
    previous: str | None
    available: bool = field(metadata=about("whether it can be read and restored"))


@value
class History:
    """What was changed, the latest first."""

    versions: tuple[VersionRow, ...]
    total: int
    next: str | None


@value
class Version:
    """A change, and the text after and before it."""

    id: str
    at: str
    path: str
    operation: str
    bytes: int
    hash: str
    previous: str | None
    available: bool
    text: str | None = field(metadata=about("what the file was after it, or the note that was added"))
    before: str | None = field(metadata=about("what the file was before it; null when it is not known"))


@value
class Undone:
    """A change that was taken back."""

    path: str
    operation: str
    text: str = field(metadata=about("of a note"))
    others: tuple[str, ...] = field(metadata=about("files that were changed together with it"))
    remarks: tuple[str, ...] = field(metadata=about("later notes that were gone already, in sentences"))


@value
class ForgottenLines:
    """Lines that go."""

    path: str
    start_line: int
    end_line: int
    text: str


@value
class ForgottenEntry:
    """An entry that goes."""

    id: str
    text: str


@value
class ForgottenSession:
    """A conversation that goes."""

    name: str
    title: str


@value
class StillIn:
    """What has the text and stays."""

    entries: tuple[str, ...]
    sessions: tuple[str, ...]
    chat_history: bool


@value
class Forgotten:
    """What was forgotten, or would be."""

    applied: bool
    lines: tuple[ForgottenLines, ...]
    entries: tuple[ForgottenEntry, ...]
    session: ForgottenSession | None
    remarks: tuple[str, ...]
    still_in: StillIn
    code: str | None = field(default=None, metadata=about("to be sent back to forget exactly this"))
    expires_in: float | None = field(default=None, metadata=about("seconds that the code works"))
    versions_cleaned: int = field(default=0, metadata=about("older versions that had it"))


@value
class Day:
    """What there is of a day."""

    day: str
    notes: int = field(metadata=about("files of that day"))
    lines: int = field(metadata=about("lines in them that say something"))
    sessions: int = field(metadata=about("conversations in which something was said last on that day"))
    changes: int
    recalls: int


@value
class Days:
    """The days on which there was anything."""

    days: tuple[Day, ...]
    first: str | None
    last: str | None


@value
class DayNote:
    """A note of a day, with its text."""

    path: str
    day: str | None
    bytes: int
    modified_at: str | None
    scope: str
    text: str
    etag: str


@value
class OneDay:
    """All that there is of a day."""

    day: str
    notes: tuple[DayNote, ...]
    sessions: tuple[SessionRow, ...]
    changes: tuple[VersionRow, ...]
    recalls: tuple[RecallRow, ...]


@value
class SessionRow:
    """A conversation."""

    name: str = field(metadata=about("what every other request takes"))
    key: str
    id: str
    title: str
    updated_at: str
    bytes: int
    format: str
    citation: str = field(metadata=about("the path that a search cites"))
    archived: bool


@value
class Sessions:
    """Conversations, the one in which something was said last first."""

    sessions: tuple[SessionRow, ...]
    total: int
    next: str | None


@value
class SpokenLine:
    """Something that was said."""

    line: int
    id: str | None
    speaker: str
    text: str = field(metadata=about("without secrets"))
    at: str | None


@value
class Spoken:
    """A conversation, or a part of it."""

    name: str
    key: str
    id: str
    title: str
    citation: str
    format: str
    lines: tuple[SpokenLine, ...]
    next_line: int | None = field(metadata=about("where to go on; null at the end"))


@value
class StartContext:
    """What a session begins with."""

    text: str
    chars: int
    max_chars: int
    tokens: int = field(metadata=about("about so many"))
    paths: tuple[str, ...]
    truncated: tuple[str, ...]


@value
class TagCount:
    """A tag, and how many notes have it."""

    tag: str
    notes: int


@value
class Tags:
    """All tags, the most used first."""

    tags: tuple[TagCount, ...]


@value
class TaggedNote:
    """A note that has a tag."""

    path: str
    title: str
    day: str | None
    lines: tuple[int, ...] = field(metadata=about("where the tag stands in the text"))


@value
class Tagged:
    """The notes that have a tag, or one below it."""

    tag: str
    notes: tuple[TaggedNote, ...]


@value
class Link:
    """A link of a note."""

    line: int
    target: str
    label: str
    embed: bool
    path: str | None = field(metadata=about("of the note that it leads to; null when there is none"))
    target_line: int | None


@value
class Backlink:
    """A line of another note that leads here."""

    path: str
    line: int
    text: str
    embed: bool


@value
class Links:
    """How a note hangs together with the others."""

    path: str
    title: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[Link, ...]
    backlinks: tuple[Backlink, ...]


@value
class GraphNode:
    """A note in the graph."""

    path: str
    title: str
    depth: int
    tags: tuple[str, ...]
    links: int = field(metadata=about("how many notes it is linked with"))


@value
class GraphEdge:
    """How often one note leads to another."""

    from_: str
    to: str
    count: int


@value
class Graph:
    """Notes and the links between them."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    truncated: bool


@value
class MapPoint:
    """A note in the map by meaning."""

    path: str
    title: str
    day: str | None
    x: float
    y: float
    passages: int


@value
class Map:
    """Every note at a place of its own; a new one moves none of the others."""

    points: tuple[MapPoint, ...]
    total: int
    model: str
    made_at: str
    spread: float = field(metadata=about("how much of the differences the two directions show, 0 to 1"))


@value
class Entry:
    """A single thing to remember."""

    id: str
    text: str
    category: str
    importance: float
    created_at: str
    scope: str
    origin: str
    waiting: bool


@value
class Entries:
    """Single things to remember, the latest first."""

    entries: tuple[Entry, ...]
    total: int
    next: str | None
    enabled: bool = field(metadata=about("whether agents get the tools for them"))


@value
class RecalledLine:
    """Lines that were found for an agent."""

    number: int = field(metadata=about("what a verdict names it by"))
    path: str
    start_line: int = field(metadata=about("0: the file as a whole"))
    end_line: int
    best_line: int
    score: float | None
    reason: str = field(metadata=about("why they were not given"))
    verdict: str


@value
class RecallRow:
    """One time that an agent was given memory, or was not."""

    id: str
    at: str
    kind: str = field(metadata=about("search, read or start"))
    question: str
    who: str
    surface: str
    host: str
    session: str
    agent: str
    scope: str
    tokens: int
    ms: float
    given: tuple[RecalledLine, ...]
    withheld: tuple[RecalledLine, ...]


@value
class Recalls:
    """What agents asked and were given, the latest first."""

    recalls: tuple[RecallRow, ...]
    next: str | None
    enabled: bool


@value
class Maker:
    """Who made a proposal."""

    by: str = field(metadata=about("rule, model or agent"))
    name: str
    tokens: int


@value
class Cite:
    """Lines that a proposal rests on."""

    path: str
    start_line: int
    end_line: int
    text: str
    sha256: str


@value
class Edit:
    """Lines that become others; without old ones, the new stand before that line, or at the end of a section."""

    path: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    section: str | None = None


@value
class Proposal:
    """Something that could be done to the notes, if somebody agrees."""

    id: str
    kind: str
    reason: str
    maker: Maker
    at: str
    cites: tuple[Cite, ...]
    edits: tuple[Edit, ...]


@value
class Proposals:
    """What waits for a person."""

    proposals: tuple[Proposal, ...]
    waiting: int
    last_run: Mapping[str, Any] | None


@value
class VoidProposal:
    """A proposal that does not fit any more."""

    id: str
    why: str


@value
class Outcome:
    """What came of accepting or rejecting."""

    done: tuple[str, ...]
    void: tuple[VoidProposal, ...]
    changed: tuple[str, ...]


@value
class Upkeep:
    """What the last look for proposals said."""

    waiting: int
    last_run: Mapping[str, Any] | None


@value
class Check:
    """One thing that was looked at."""

    name: str
    verdict: str = field(metadata=about("ok, warning or problem"))
    detail: str
    hint: str | None


@value
class Checks:
    """Everything that could be wrong."""

    ok: bool
    checks: tuple[Check, ...]


@value
class Setting:
    """A setting; of a secret only whether it is set."""

    key: str
    value: Any
    origin: str
    doc: str


@value
class SettingList:
    """Every setting, in the order of the reference."""

    settings: tuple[Setting, ...]
    notes: tuple[str, ...]
