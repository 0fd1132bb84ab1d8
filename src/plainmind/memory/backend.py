"""What an engine promises that indexes and searches the memory by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plainmind.base.errors import PlainmindError
from plainmind.base.model import SearchResult, Source, SyncReport
from plainmind.base.value import field, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Protocol, TypeAlias

    from plainmind.files.system import Erasures
    from plainmind.notes.discovery import Mount
    from plainmind.notes.workspace import Workspace
    from plainmind.sessions.transcripts import Transcripts
else:
    Protocol = object

# Who wants the engine to catch up: somebody who waits for it, a search that has little time, or nobody.
Initiative: TypeAlias = "Literal['asked', 'search', 'background']"


class BackendFailed(PlainmindError):
    """The engine did not answer, or not in a way that can be used."""


class BackendBusy(BackendFailed):
    """The engine is at work on something else: no reason to think that it does not work."""


@value
class Question:
    """What is asked, for whom, and how long there is to answer it."""

    query: str
    scopes: frozenset[str]
    timeout_s: float
    sources: tuple[Source, ...] | None = None  # None: all that there are
    max_results: int = 6
    min_score: float | None = None  # None: whatever the engine finds good enough
    snippet_chars: int = 700
    explain: bool = False


@value
class Place:
    """A folder or file whose notes an engine is to know."""

    mount: Mount
    pattern: str  # which files of a folder, relative to it


@value
class Surroundings:
    """All that an engine may know about the memory it works for."""

    agent_id: str
    folder: str  # its own, for this agent and this workspace; it need not exist yet
    workspace: Workspace
    places: tuple[Place, ...]
    transcripts: Transcripts | None  # None: it is not to know conversations
    sources: tuple[Source, ...]  # what is searched when a question does not say
    erasures: Erasures  # nothing that was read before an erasure may be kept after it
    environ: Mapping[str, str] = field(repr=False)
    options: Any = None  # of this engine


class MemoryBackend(Protocol):
    """Indexes and searches the files of a memory. Safe to share between threads."""

    @property
    def name(self) -> str:
        """How it is called in settings and in answers."""

    def search(self, question: Question) -> SearchResult:
        """Find the lines that answer a question, within its time and its scopes. Raises BackendFailed.

        Every hit is cut from the file as it is now: text that an engine still knows, and the file does not, is none.
        """

    def sync(self, initiative: Initiative, *, force: bool = False) -> SyncReport:
        """Bring the engine up to date, if that is due. Raises BackendFailed."""

    def seconds_until_due(self, *, changed: bool) -> float:
        """How long until a sync in the background has something to do; `changed`: the files are to be looked at."""

    def describe(self, *, deep: bool) -> Mapping[str, Any]:
        """Facts for `status`: `name`, `version`, `healthy`, and what else there is to know; `deep` may ask it."""

    def erase(self) -> None:
        """Drop every copy of text; the next sync makes what is needed anew."""

    def close(self) -> None:
        """Stop what runs, and leave nothing behind. Closing twice is fine."""


def wanted_sources(question: Question, available: Sequence[Source]) -> tuple[Source, ...]:
    """The sources that a question is about, among those that there are."""
    return tuple(source for source in available if question.sources is None or source in question.sources)
