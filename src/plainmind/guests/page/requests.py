"""What `/v1` is asked, as values: bodies and parameters of addresses, each with its bounds."""

from __future__ import annotations

from plainmind.base.value import field, value
from plainmind.guests.page.wire import about

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CURSOR = "where to go on, as `next` of the answer before says; empty for the beginning"
_OFFSET = "how many to leave out, in place of a cursor"
_VERDICTS = ("useful", "wrong", "outdated", "never-again")
_CATEGORIES = ("preference", "fact", "decision", "entity", "other")


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
class NotesQuery:
    """Which notes to list."""

    prefix: str = field(default="", metadata=about("the beginning of the path"))
    day: str | None = field(default=None, metadata=about("only notes of this day"))
    order: str = field(
        default="path", metadata=about("by path, or the latest change first", among=("path", "changed"))
    )
    limit: int = field(default=100, metadata=about("how many at most", least=1, most=1000))
    cursor: str = field(default="", metadata=about(_CURSOR))
    offset: int = field(default=0, metadata=about(_OFFSET, least=0))
    preview: bool = field(default=False, metadata=about("with title and beginning; 100 at most"))


@value
class LinesQuery:
    """Which lines of a note to read."""

    lines: str | None = field(default=None, metadata=about("`3-7`, or `3` for one line; left out: all"))


@value
class NewNote:
    """A note to write down."""

    text: str = field(metadata=about("what to remember", most=200000))
    durable: bool = field(default=False, metadata=about("into MEMORY.md, not into today's log"))


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
class HistoryQuery:
    """Which changes to list."""

    path: str | None = field(default=None, metadata=about("of one file"))
    limit: int = field(default=50, metadata=about("how many at most", least=1, most=1000))
    cursor: str = field(default="", metadata=about(_CURSOR))


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
class DaysQuery:
    """Which days to list."""

    from_: str | None = field(default=None, metadata=about("the first day"))
    to: str | None = field(default=None, metadata=about("the last day"))


@value
class SessionsQuery:
    """Which conversations to list."""

    archived: bool = field(default=False, metadata=about("those that were put away"))
    limit: int = field(default=50, metadata=about("how many at most", least=1, most=1000))
    cursor: str = field(default="", metadata=about(_CURSOR))
    offset: int = field(default=0, metadata=about(_OFFSET, least=0))


@value
class SpokenQuery:
    """Which lines of a conversation to read."""

    from_: int = field(default=1, metadata=about("the first line", least=1))
    limit: int = field(default=200, metadata=about("how many at most", least=1, most=1000))
    all: bool = field(default=False, metadata=about("tools, thoughts and changes too"))


@value
class GraphQuery:
    """Around which note, and how far."""

    note: str | None = field(
        default=None, metadata=about("path, name or title; left out: the most linked notes")
    )
    depth: int = field(default=1, metadata=about("how many links away", least=1, most=2))
    limit: int = field(default=500, metadata=about("how many notes at most", least=1, most=500))


@value
class EntriesQuery:
    """Which entries to list."""

    category: str | None = field(default=None, metadata=about("only these", among=_CATEGORIES))
    waiting: bool = field(default=False, metadata=about("those that wait to be accepted"))
    limit: int = field(default=100, metadata=about("how many at most", least=1, most=1000))
    cursor: str = field(default="", metadata=about(_CURSOR))


@value
class NewEntry:
    """A single thing to remember."""

    text: str = field(metadata=about("a sentence or two", most=2000))
    category: str = field(default="other", metadata=about("what it is", among=_CATEGORIES))
    importance: float = field(default=0.7, metadata=about("0 to 1", least=0, most=1))


@value
class RecallsQuery:
    """Which recalls to list."""

    day: str | None = field(default=None, metadata=about("of one day"))
    limit: int = field(default=50, metadata=about("how many at most", least=1, most=500))
    cursor: str = field(default="", metadata=about(_CURSOR))


@value
class Verdict:
    """What a line that was given was worth."""

    verdict: str = field(metadata=about("empty: take it back", among=("", *_VERDICTS)))
    line: int = field(default=1, metadata=about("its number in the recall", least=1))


@value
class ProposalsQuery:
    """Which proposals to list."""

    kind: str | None = field(default=None, metadata=about("only these"))
