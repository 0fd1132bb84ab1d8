"""The values that travel between packages: frozen, small, and without behaviour beyond naming themselves."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Source: TypeAlias = Literal["memory", "sessions"]
SOURCES: tuple[Source, ...] = ("memory", "sessions")
Mode: TypeAlias = Literal["hybrid", "keyword", "vector"]


def known_sources(names: Iterable[str]) -> tuple[Source, ...]:
    """The sources among the names that settings hold as text."""
    wanted = set(names)
    return tuple(source for source in SOURCES if source in wanted)


# Unit-length float32. An `array("f")` rather than an ndarray: a cold `commonplace search` must not pay
# for importing numpy, and numpy, simsimd and SQLite all read it through the buffer protocol without a copy.
Vector: TypeAlias = "array[float]"


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file looked like when it was read; equal hashes mean equal text."""

    path: str  # as cited: relative to the workspace, or the name of an extra path
    source: Source
    hash: str  # SHA-256 of the bytes
    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Document:
    """What a source read. `line_map[i]` is the cited line of text line i + 1; None means they are the same."""

    path: str
    source: Source
    text: str
    day: str | None = None  # ISO date the text belongs to; None for evergreen files
    line_map: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A run of whole lines cut from one text (or a piece of one line too long to keep whole)."""

    start_line: int  # 1-based, inclusive
    end_line: int
    text: str
    context: str = ""  # the headings above it, "Network › Gateway": embedded and indexed, never shown


@dataclass(frozen=True, slots=True)
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
    def embedded_text(self) -> str:
        """The text that the vector stands for: the passage under its headings."""
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True)
class EmbeddedChunk:
    """A chunk ready to store. No vector means: found by keywords only."""

    chunk: Chunk
    vector: Vector | None
    terms: tuple[str, ...]  # keyword terms in order, repeats included: the store counts them


@dataclass(frozen=True, slots=True)
class Candidate:
    """One retriever's proposal. Scores are 0..1, higher is better: every store converts to this."""

    id: int  # the store's own name for the chunk, valid within one `IndexStore.reading()` block
    chunk: Chunk
    score: float


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """How common terms are, so that rare ones can weigh more."""

    chunk_count: int
    chunks_with: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Which rows a search may see. Enforced inside the store's query, never after it."""

    sources: frozenset[Source]


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answers to one query, and everything that was not consulted for them."""

    query: str
    hits: tuple[SearchHit, ...]
    provider: str
    model: str
    mode: Mode
    degraded: tuple[str, ...] = ()
    fallback: Mapping[str, str] | None = None
    timings: Mapping[str, float] = field(default_factory=dict)  # milliseconds by stage


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Part of a file, by lines. `next_line` is where to go on reading when the file is longer."""

    path: str
    text: str
    first_line: int
    line_count: int
    truncated: bool
    next_line: int | None = None


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Vectors compare only within one identity; it keys the cache and the index."""

    provider: str
    model: str
    endpoint: str = ""  # SHA-256 of base URL, model and header names; never contains a credential
    dims: int = 0  # 0: keyword search only


@dataclass(frozen=True, slots=True)
class IndexFingerprint:
    """How an index was made. A difference from the wanted one means a rebuild, with the reason."""

    embedder: EmbedderIdentity
    chunking: str  # strategy and sizes, "markdown/200/0"
    keywords: str  # version of the term rules in text/
    schema: int

    def difference(self, wanted: IndexFingerprint) -> str | None:
        """Say in words what differs, or None when the index is as wanted."""
        mine, theirs = self.embedder, wanted.embedder
        pairs = (
            ("embedding provider", mine.provider, theirs.provider),
            ("embedding model", mine.model, theirs.model),
            ("embedding endpoint", mine.endpoint[:12], theirs.endpoint[:12]),
            ("vector dimensions", mine.dims, theirs.dims),
            ("chunking", self.chunking, wanted.chunking),
            ("keyword rules", self.keywords, wanted.keywords),
            ("schema version", self.schema, wanted.schema),
        )
        changed = [f"{name} {old or '(none)'} → {new or '(none)'}" for name, old, new in pairs if old != new]
        return ", ".join(changed) or None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work has come."""

    completed: int
    total: int
    label: str = ""


ProgressCallback: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class FileFailure:
    """One file that could not be read or indexed, and why; the others still were."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
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
    seconds: float = 0.0
