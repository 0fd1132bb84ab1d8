"""The values that travel through `/v1`: each is read or written as JSON, and described in `/v1/openapi.json`."""

from __future__ import annotations

from collections.abc import Mapping

from plainmind.base.value import field, value
from plainmind.guests.page.wire import about

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CURSOR = "where to go on, as `next` of the answer before says; empty for the beginning"
_VERDICTS = ("useful", "wrong", "outdated", "never-again")
CATEGORIES = ("preference", "fact", "decision", "entity", "other")


@value
class Nothing:
    """A body without anything in it."""


@value
class Code:
    """What opens a session of the page."""

    code: str = field(
        metadata=about(
            "from the address that `plainmind page` prints: it works once, and for a minute", most=200
        )
    )


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
    token: str | None = field(
        default=None, metadata=about("to be sent as `Authorization: Bearer …`; given once")
    )


@value
class Filters:
    """Where to look."""

    paths: tuple[str, ...] = field(default=(), metadata=about("globs: a file must match one"))
    tags: tuple[str, ...] = field(default=(), metadata=about("without `#`: a note must have all"))
    since: str | None = field(default=None, metadata=about("a day, a month, or words such as `yesterday`"))
    until: str | None = field(default=None, metadata=about("as `since`; the day itself is included"))
    scopes: tuple[str, ...] = field(default=(), metadata=about("only what these may see"))


@value
class Question:
    """A question to the memory."""

    query: str = field(
        metadata=about(
            'the question; may have "phrases", -words, tag:, path:, title:, since:, until:', most=10000
        )
    )
    limit: int = field(default=20, metadata=about("how many results at most", least=1, most=1000))
    min_score: float = field(default=0.0, metadata=about("leave out results below this", least=0, most=1))
    sources: tuple[str, ...] | None = field(
        default=None, metadata=about("some of memory, sessions; left out: as the settings say")
    )
    filters: Filters = Filters()
    explain: bool = field(default=False, metadata=about("say why each result is where it is"))
    deep: bool = field(
        default=False, metadata=about("let a model read the best results once more, where it is installed")
    )
    today: str | None = field(default=None, metadata=about("ask as if it were this day"))
    snippet_chars: int = field(
        default=700, metadata=about("how much of each result at most", least=20, most=20000)
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
class NotesQuery:
    """Which notes to list."""

    prefix: str = field(default="", metadata=about("the beginning of the path"))
    day: str | None = field(default=None, metadata=about("only notes of this day"))
    order: str = field(
        default="path", metadata=about("by path, or the latest change first", among=("path", "changed"))
    )
    limit: int = field(default=100, metadata=about("how many at most", least=1, most=1000))
    cursor: str = field(default="", metadata=about(_CURSOR))


@value
class NoteRow:
    """A file of the memory."""

    path: str
    day: str | None
    bytes: int
    modified_at: str | None
    scope: str


@value
class Notes:
    """Files of the memory."""

    notes: tuple[NoteRow, ...]
    total: int
    next: str | None


@value
class LinesQuery:
    """Which lines of a note to read."""

    lines: str | None = field(default=None, metadata=about("`3-7`, or `3` for one line; left out: all"))


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
class NewNote:
    """A note to write down."""

    text: str = field(metadata=about("what to remember", most=200000))
    durable: bool = field(default=False, metadata=about("into MEMORY.md, not into today's log"))


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
class WholeText:
    """What a file shall say from now on."""

    text: str
    allow_shrink: bool = field(default=False, metadata=about("even if most of it goes"))


@value
class Replacement:
    """A text that stands exactly once in a file, and what to put in its place."""

    old: str = field(metadata=about("exactly as it stands there", least=1))
    new: str
    allow_shrink: bool = field(default=False, metadata=about("even if most of the file goes"))


@value
class Changed:
    """What a file is after a change."""

    path: str
    etag: str
    line: int = field(metadata=about("where the new text begins"))
    total_lines: int


@value
class HistoryQuery:
    """Which changes to list."""

    path: str | None = field(default=None, metadata=about("of one file"))
    limit: int = field(default=50, metadata=about("how many at most", least=1, most=1000))
    cursor: str = field(default="", metadata=about(_CURSOR))


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


@value
class Forget:
    """What to forget, to be shown first; or the code of what was shown."""

    what: Any = field(
        default=None, metadata=about("lines such as `MEMORY.md#L3-L5`, a list of those, an id, or a text")
    )
    session: str | None = field(default=None, metadata=about("a conversation, by its name", most=1000))
    code: str | None = field(
        default=None, metadata=about("of the preview: what it showed goes for good", most=100)
    )


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
class Facts:
    """What `plainmind status --json` prints."""
