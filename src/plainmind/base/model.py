"""The values that travel between packages, and what they rely on: what a line, a day and the hash of a text are."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Mapping

from plainmind.base.errors import check_kind
from plainmind.base.value import field, value

try:
    if sys.version_info >= (3, 12):
        from _sha2 import sha256  # type: ignore[import-not-found]
    else:
        from _sha256 import sha256  # type: ignore[import-not-found]
except ImportError:  # Python was built without its own: then OpenSSL, whose loading costs 2 ms
    from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    import datetime as dt
    from typing import Any, Literal, TypeAlias
else:
    try:
        import _datetime as dt
    except ImportError:  # another Python
        import datetime as dt

# The same as those of `datetime`, which before Python 3.12 makes each of them in Python first: most of a millisecond.
date = dt.date
datetime = dt.datetime
timedelta = dt.timedelta


def date_of(given: dt.date, what: str, called: str = "a day (date)") -> dt.date:
    """The day that a program gave, or that of the moment that it gave. Raises TypeError."""
    if isinstance(given, datetime):
        return given.date()
    check_kind(given, what, dt.date, called)
    return given


class SystemZone(dt.tzinfo):
    """The zone of this machine, in summer and in winter. What `astimezone()` gives has one offset for all days."""

    def utcoffset(self, at: dt.datetime | None) -> dt.timedelta | None:
        """How far this machine is from UTC at a time of its own."""
        return None if at is None else at.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, at: dt.datetime | None) -> dt.timedelta | None:
        """How much of that is summer time: the system does not tell."""
        del at
        return None

    def tzname(self, at: dt.datetime | None) -> str | None:
        """What it is called then."""
        return None if at is None else at.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, at: dt.datetime) -> dt.datetime:
        """What this machine's clocks show at a time of UTC."""
        return at.replace(tzinfo=dt.timezone.utc).astimezone().replace(tzinfo=self)  # noqa: UP017 (`_datetime` has no UTC)

    def __repr__(self) -> str:
        return "SystemZone()"


Source: TypeAlias = "Literal['memory', 'sessions']"
SOURCES: tuple[Source, ...] = ("memory", "sessions")
Mode: TypeAlias = "Literal['hybrid', 'keyword', 'vector']"


def known_sources(names: Iterable[str]) -> tuple[Source, ...]:
    """The sources among the names that settings hold as text."""
    wanted = set(names)
    return tuple(source for source in SOURCES if source in wanted)


def is_transcript(path: str) -> bool:
    """Whether a cited path is that of a conversation; a folder of notes may have a `sessions/` of its own."""
    return path.startswith("sessions/") and path[-3:].lower() != ".md"


# Who may see a file. Without other information only the person whose memory it is; a group or another person sees what
# names them: `telegram/group:<id>`, `person:<id>`.
PRIVATE = "private"
SHARED = "shared"  # all who may use the memory at all
SHARED_FOLDER = "memory/shared-with"  # below it lie the notes that others than the owner may see
EVERY_SCOPE: frozenset[str] = frozenset({"*"})


# Unit-length float32. An `array("f")` rather than an ndarray: a cold `plainmind search` must not pay
# for importing numpy, and numpy, simsimd and SQLite all read it through the buffer protocol without a copy.
Vector: TypeAlias = "array[float]"

# From this size on OpenSSL, which is several times as fast, is worth loading for a hash.
_LARGE_BYTES = 1 << 20


@value
class FileState:
    """What a file looked like when it was read; equal hashes mean equal text."""

    path: str  # as cited: relative to the workspace, or the name of an extra path
    source: Source
    hash: str  # SHA-256 of the bytes
    size: int
    mtime_ns: int  # as `time_to_keep` makes it; below zero: it proves nothing to find the same time again
    inode: int
    scope: str = PRIVATE  # who may see it


LATEST_NS = 2**63 - 1  # in the year 2262


def time_to_keep(mtime_ns: int) -> int:
    """When a file was changed, in 64 bits; a time before 1970 or after 2262 is kept as one that is yet to come.

    A file whose time lies in the future is read again at every look, so that no change of it is missed.
    """
    return mtime_ns if 0 <= mtime_ns <= LATEST_NS else LATEST_NS


@value
class Document:
    """What a source read. `line_map[i]` is the cited line of text line i + 1; None means they are the same."""

    path: str
    source: Source
    text: str
    day: str | None = None  # ISO date the text belongs to; None for evergreen files
    line_map: tuple[int, ...] | None = None
    days: tuple[str | None, ...] | None = None  # of each text line, where they have days of their own


@value
class Passage:
    """A run of whole lines cut from one text (or a piece of one line too long to keep whole)."""

    start_line: int  # 1-based, inclusive
    end_line: int
    text: str
    context: str = ""  # the headings above it, "Network › Gateway": embedded and indexed, never shown


@value
class Chunk:
    """What we embed, store and cite."""

    path: str
    source: Source
    ordinal: int  # position within the file; (source, path, ordinal) is the chunk's name
    start_line: int
    end_line: int
    text: str
    context: str = ""
    day: str | None = None

    @property
    def headed_text(self) -> str:
        """The passage under its headings."""
        return f"{self.context}\n{self.text}" if self.context else self.text


@value
class EmbeddedChunk:
    """A chunk ready to store. No vector means: found by keywords only."""

    chunk: Chunk
    vector: Vector | None
    terms: tuple[str, ...]  # keyword terms in order, repeats included: the store counts them


@value
class Candidate:
    """One retriever's proposal. Scores are 0..1, higher is better: every store converts to this."""

    id: int  # the store's own name for the chunk, valid within one `IndexStore.reading()` block
    chunk: Chunk
    score: float


@value
class TermStatistics:
    """How common terms are, so that rare ones can weigh more."""

    chunk_count: int
    chunks_with: Mapping[str, int]


@value
class Restriction:
    """What the answers to a question must be: only passages for which all of it is true are ranked."""

    paths: tuple[str, ...] = ()  # globs: one of them is the path's, or a folder's above it
    tags: tuple[str, ...] = ()  # without `#`: the note has them all, or the passage does
    titles: tuple[str, ...] = ()  # words: the name, the title or another name of the note has them
    phrases: tuple[str, ...] = ()  # stand there word for word
    since: str | None = None  # ISO days, both included
    until: str | None = None
    without_paths: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()
    without_titles: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # words and phrases that must not stand there


@value
class SearchFilter:
    """Which rows a search may see. Enforced inside the store's query, never after it."""

    sources: frozenset[Source]
    scopes: frozenset[str]  # there is no default: every search must say who asks
    only: Restriction | None = (
        None  # what a person has asked for; the engine looks after it, whichever driver
    )

    def admits(self, source: Source, scope: str) -> bool:
        """Whether files of a source and scope may be seen."""
        return source in self.sources and (self.scopes == EVERY_SCOPE or scope in self.scopes)


@value
class CitedLines:
    """A place in a file."""

    path: str
    start_line: int
    end_line: int

    def __str__(self) -> str:
        """`memory/2026-02-10.md#L3-L7`, or `#L5` for a single line."""
        last = f"-L{self.end_line}" if self.end_line > self.start_line else ""
        return f"{self.path}#L{self.start_line}{last}"


@value
class NewerLine:
    """The line that took the place of an older one; no text where it is not found any more, or not to be seen."""

    path: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        """`MEMORY.md#L9`."""
        return f"{self.path}#L{self.line}"


@value
class SearchHit:
    """One answer, ready to show: the cited lines are exactly the lines of the snippet."""

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: Source
    citation: str | None = None
    explanation: Mapping[str, Any] | None = None
    headings: str = ""  # above the lines that answer, "Projects › Lighthouse"; empty where there are none
    best_line: int = 0  # the one of the cited lines that answers best; 0 when it is not known
    also: tuple[CitedLines, ...] = ()  # other places that say the same, but for days and times
    until: str | None = None  # the last day on which its best line holds, where it says so
    newer: NewerLine | None = None  # what holds instead
    older: tuple[CitedLines, ...] = ()  # lines that speak of the same and are older, shown after this
    worth: float = 0.0  # what it was ranked by, whatever stands beside it

    def as_fields(self) -> dict[str, Any]:
        """For JSON: what every program that reads results is told of one."""
        fields: dict[str, Any] = {
            "path": self.path,
            "startLine": self.start_line,
            "endLine": self.end_line,
            "score": round(self.score, 4),
            "snippet": self.snippet,
            "source": self.source,
        }
        if self.headings:
            fields["headings"] = self.headings
        if self.also:
            fields |= {"places": len(self.also) + 1, "also": [str(place) for place in self.also]}
        if self.older:
            fields["newerThan"] = [str(place) for place in self.older]
        if self.until:
            fields["until"] = self.until
        if self.newer is not None:
            fields["newer"] = {"citation": str(self.newer), "text": self.newer.text}
        return fields


# From here on a result is more than what happens to be nearest: fewer than one in five of the hardest questions without
# an answer get this far, and two in three right first answers to questions that have a word of them (docs/decisions).
CERTAIN = 0.7
# What is brought up beside a prompt, unasked and with its score, answers more often than not.
LIKELY = 0.55


_SHOWN_AS_ZERO = 0.005


@value
class SearchResult:
    """The answers to one query, and everything that was not consulted for them."""

    query: str
    hits: tuple[SearchHit, ...]
    provider: str
    model: str
    mode: Mode
    degraded: tuple[str, ...] = ()
    fallback: Mapping[str, str] | None = None  # {from, to, reason} when another provider's index answered
    notes: tuple[str, ...] = ()  # worth knowing, though nothing is missing: where text was sent to
    timings: Mapping[str, float] = field(default_factory=dict)  # milliseconds by stage
    understood: tuple[
        str, ...
    ] = ()  # what the question was taken to say: which days it names, what it leaves out

    @property
    def confidence(self) -> float:
        """How likely the best of the results answers, from 0 to 1."""
        return max([hit.score for hit in self.hits], default=0.0)

    @property
    def is_certain(self) -> bool:
        """Whether the results are more than what is nearest."""
        return self.confidence >= CERTAIN

    @property
    def worth_a_look(self) -> tuple[SearchHit, ...]:
        """The results without those that would be shown as 0.00 beside a better one."""
        is_none_better = self.confidence < _SHOWN_AS_ZERO
        return tuple(hit for hit in self.hits if is_none_better or hit.score >= _SHOWN_AS_ZERO)


class Stopwatch:
    """Laps of one search, in milliseconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._started = self._last = now()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Note the time since the last lap."""
        before, self._last = self._last, self._now()
        self._laps[name] = round((self._last - before) * 1000, 3)

    def milliseconds(self) -> Mapping[str, float]:
        """All laps, and the total."""
        return {**self._laps, "total": round((self._last - self._started) * 1000, 3)}


EXCERPT_LINES = 120  # when no number is given


@value
class Excerpt:
    """Part of a file, by lines. `next_line` is where to go on reading when the file is longer."""

    path: str
    text: str
    first_line: int
    line_count: int
    truncated: bool
    next_line: int | None = None


@value
class EmbedderIdentity:
    """Vectors compare only within one identity; it keys the cache and the index."""

    provider: str
    model: str
    endpoint: str = ""  # SHA-256 of base URL, model and header names; never contains a credential
    dims: int = 0  # 0: keyword search only, or not known before the first answer

    def agrees_with(self, other: EmbedderIdentity) -> bool:
        """Whether vectors of both can be compared; dimensions that are not known yet are no disagreement."""
        same = (self.provider, self.model, self.endpoint) == (other.provider, other.model, other.endpoint)
        return same and (self.dims == other.dims or not self.dims or not other.dims)


@value
class IndexFingerprint:
    """How an index was made. A difference from the wanted one means a rebuild, with the reason."""

    embedder: EmbedderIdentity
    chunking: str  # strategy and sizes, "markdown/200/0"
    keywords: str  # version of the term rules in text/
    schema: int

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> IndexFingerprint:
        """What `asdict` has made a dictionary of. Raises TypeError or KeyError for anything else."""
        return cls(**{**facts, "embedder": EmbedderIdentity(**facts["embedder"])})

    def difference(self, wanted: IndexFingerprint) -> str | None:
        """Say in words what differs, or None when the index is as wanted."""
        mine, theirs = self.embedder, wanted.embedder
        pairs = (
            ("embedding provider", mine.provider, theirs.provider),
            ("embedding model", mine.model, theirs.model),
            ("embedding endpoint", mine.endpoint[:12], theirs.endpoint[:12]),
            # Not known yet is no difference: a good index is never made anew for that.
            ("vector dimensions", mine.dims, theirs.dims or mine.dims),
            ("chunking", self.chunking, wanted.chunking),
            ("keyword rules", self.keywords, wanted.keywords),
            ("schema version", self.schema, wanted.schema),
        )
        changed = [f"{name} {old or '(none)'} → {new or '(none)'}" for name, old, new in pairs if old != new]
        return ", ".join(changed) or None


@value
class Progress:
    """How far a long piece of work has come."""

    completed: int
    total: int
    label: str = ""


ProgressCallback: TypeAlias = Callable[[Progress], None]


@value
class FileFailure:
    """One file that could not be read or indexed, and why; the others still were."""

    path: str
    reason: str


@value
class SyncReport:
    """What a sync did. One bad file is reported, the others are still indexed."""

    indexed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    skipped: tuple[FileFailure, ...] = ()  # left out on purpose: too large, a symlink, a sync conflict
    failed: tuple[FileFailure, ...] = ()
    chunks: int = 0  # chunks written by this sync
    rebuilt: str | None = None  # why the index was rebuilt, None when it was not
    withheld: tuple[str, ...] = ()  # files missing on disk whose rows are kept until confirmed (unmounted?)
    degraded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # worth knowing, though nothing is missing: where text was sent to
    fallback: Mapping[str, str] | None = None  # {from, to, reason} when another provider embeds
    seconds: float = 0.0


def split_lines(text: str) -> list[str]:
    r"""Give the lines that every line number in the project counts.

    Split at \n, \r\n and \r only; a final line break ends the last line and starts no other.
    `str.splitlines` also splits at form feeds, U+2028 and others, which editors do not count as lines.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def sha256_bytes(data: bytes) -> str:
    """Hash the bytes of a file."""
    if len(data) > _LARGE_BYTES:
        import hashlib

        return hashlib.sha256(data).hexdigest()
    return str(sha256(data).hexdigest())


def sha256_text(text: str) -> str:
    """Hash any string, also one with lone surrogates (they come from file names and broken JSON)."""
    return sha256_bytes(text.encode("utf-8", "surrogatepass"))
