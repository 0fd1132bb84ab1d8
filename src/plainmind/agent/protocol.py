"""The memory as an agent has it: within one conversation, and with what may be seen and written there."""

from __future__ import annotations

from plainmind.base.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from plainmind.agent.answers import ToolAnswer
    from plainmind.agent.recalls import Asker, BegunRecall
    from plainmind.agent.scope import Access, SearchContext
    from plainmind.agent.start_context import StartContext
    from plainmind.agent.tool_calls import Call
    from plainmind.agent.tools import Tool
    from plainmind.base.model import Excerpt, SearchResult
    from plainmind.notes.notebook import Edited, Forgotten, Remembered
else:
    Protocol = object


@value
class Limits:
    """How much recalled text may reach a model at once."""

    max_results: int = 6
    max_snippet_chars: int = 700
    max_injected_chars: int = 4000  # all snippets of one answer together
    max_start_chars: int = 20_000  # what a session begins with
    timeout_ms: int = 4000  # longest wait for an answer


class Tools(Protocol):
    """A box of tools, of the notes or of a guest: whoever has one need not know what is behind it."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What can be called."""

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Carry out one call; a mistake of the model is an answer, never an exception."""

    def prepare(self, name: str, arguments: Mapping[str, Any] | str) -> Call:
        """A call for a caller that has threads of its own."""

    def close(self) -> None:
        """Wait for calls that are still running."""


class TurnHooks(Protocol):
    """What happens by itself around a turn. What fails there is told, and costs no turn."""

    def before(self, messages: Sequence[Mapping[str, Any]], tell: Callable[[str], None]) -> str:
        """What the model is reminded of in this turn: data, for a user's turn; "" mostly.

        It is not for the transcript: what is forgotten would stay there.
        """

    def after(self, messages: Sequence[Mapping[str, Any]], tell: Callable[[str], None]) -> None:
        """Look at a turn that was answered just now."""


class AgentMemory(Protocol):
    """What tools, flush and agents use. Whatever a context may not do raises ScopeDenied, and never tells what exists.

    Everything that comes out was filtered in the query and is checked once more where it leaves.
    """

    @property
    def context(self) -> SearchContext:
        """Who asks, and where the answer will be seen."""

    @property
    def access(self) -> Access:
        """What that allows."""

    @property
    def shows_citations(self) -> bool:
        """Whether answers name file and lines: `citations`, where `auto` means in direct chats."""

    @property
    def limits(self) -> Limits:
        """How much recalled text may reach a model at once."""

    def begin_recall(self, kind: str, question: str = "", *, asker: Asker | None = None) -> BegunRecall:
        """Begin to answer an agent: whoever gives it text ends this with what was given. Never raises.

        `kind` is "search", "read" or "start".
        """

    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        paths: Sequence[str] = (),
        tags: Sequence[str] = (),
        since: str | None = None,
        until: str | None = None,
        deep: bool | None = None,
        asked_in: Iterable[str] = (),
        shown_from: float = 0.0,
    ) -> SearchResult:
        """Find the lines that answer a question, among what may be seen here, as `Memory.search` does.

        With `deep` None it looks twice where that is installed. The transcripts of the conversation that it is
        `asked_in` are left out. A hit below the score `shown_from` will not be shown, and comes as its best line alone.
        """

    def get(
        self, path: str, *, first_line: int = 1, line_count: int | None = 120, max_chars: int | None = None
    ) -> Excerpt:
        """Read lines of a file; a citation is understood too."""

    def append(self, text: str, *, note_id: str | None = None, durable: bool = False) -> Remembered:
        """Add a note to today's log of the context's own scope, or with `durable` to the owner's curated memory.

        On disk when this returns.

        A `note_id` that already stands in a log of that scope is not written again: its place is answered. Raises
        ConflictError for one that was written and removed since.
        """

    def edit(self, path: str, old: str, new: str) -> Edited:
        """Replace a text that stands exactly once in a file that may be written here; the history keeps what it was."""

    def forget(self, what: str | Forgotten, *, dry_run: bool = False) -> Forgotten:
        """Remove lines for good, among what may be written here; with `dry_run` only say which."""

    def status(self) -> Mapping[str, Any]:
        """Facts, ready for JSON; places on disk and counts of what others see are for the owner only."""

    def hide_secrets(self, text: str) -> str:
        """A text as it may reach an agent: without secrets, unless the settings say otherwise."""

    def start_context(self) -> StartContext:
        """What a session begins with: the curated memory if it is private, and the logs of the last two days."""
