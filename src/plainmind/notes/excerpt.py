"""Part of a file by lines, counted as citations count them."""

from __future__ import annotations

import re

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import EXCERPT_LINES, Excerpt, is_transcript
from plainmind.notes.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class MessageReader(Protocol):
        """Reads transcripts, which are cited as `sessions/<file>`."""

        def read_excerpt(
            self, path: str, first_line: int, line_count: int | None, max_chars: int | None
        ) -> Excerpt:
            """Read the messages on lines of a transcript."""


MAX_CHARS = 200_000

# `notes.md#L3-L7`, `notes.md#L3`, `notes.md:3-7`, `notes.md:3`, `sessions/abc.jsonl#L3`
_CITED_LINES = pattern(
    r"(?P<path>.*\.md|(?:\./)?sessions/.*)(?:#L|:)(?P<first>[0-9]{1,18})(?:-L?(?P<last>[0-9]{1,18}))?",
    re.IGNORECASE | re.DOTALL,
)
_BLOCK = 1 << 16


def read_excerpt(
    workspace: Workspace,
    path: str,
    *,
    first_line: int = 1,
    line_count: int | None = EXCERPT_LINES,
    max_chars: int | None = MAX_CHARS,
    transcripts: MessageReader | None = None,
) -> Excerpt:
    """Read lines of a file of the memory, or messages of a transcript; `line_count` None reads to its end.

    A citation is understood too: lines named in the path (`#L3-L7`, `:3-7`) are the ones that are meant. Past
    the end of the file the text is empty. `max_chars` drops whole lines at the end; only a first line that is
    itself longer is cut.
    """
    cited = _CITED_LINES.fullmatch(path)
    if cited:
        path, first_line = cited["path"], int(cited["first"])
        line_count = int(cited["last"] or first_line) - first_line + 1
    _check_numbers(first_line, line_count, max_chars)
    if transcripts is not None and is_transcript(path.removeprefix("./")):
        return transcripts.read_excerpt(path, first_line, line_count, max_chars)
    document, _ = workspace.read(path)
    return excerpt(document.path, document.text, first_line, line_count, max_chars)


def _check_numbers(first_line: int, line_count: int | None, max_chars: int | None) -> None:
    if first_line < 1:
        raise NotFound(f"there is no line {first_line}", hint="lines are counted from 1")
    if line_count is not None and line_count < 1:
        raise PlainmindError(f"cannot read {line_count} lines", hint="ask for one line or more")
    if max_chars is not None and max_chars < 1:
        raise PlainmindError(f"cannot read {max_chars} characters", hint="ask for one character or more")


def excerpt(
    path: str, text: str, first_line: int, line_count: int | None, max_chars: int | None = None
) -> Excerpt:
    r"""Cut lines out of a text whose lines end with `\n`, without making a list of all its lines."""
    start = _after_lines(text, 0, first_line - 1)
    if start is None or start == len(text):
        return Excerpt(path, "", first_line, 0, truncated=False)
    end = None if line_count is None else _after_lines(text, start, line_count)
    piece = text[start:end].removesuffix("\n")
    if max_chars is not None and len(piece) > max_chars:
        last_end = piece.rfind("\n", 0, max_chars + 1)
        piece = piece[:last_end] if last_end >= 0 else piece[:max_chars]
        end = _after_lines(text, start + len(piece), 1)
        cut_short = True
    else:
        cut_short = False
    count = piece.count("\n") + 1
    goes_on = end is not None and end < len(text)
    return Excerpt(
        path,
        piece,
        first_line,
        count,
        truncated=goes_on or cut_short,
        next_line=first_line + count if goes_on else None,
    )


def _after_lines(text: str, position: int, count: int) -> int | None:
    """Find the position after `count` more line ends, or None when the text has fewer."""
    while count > 0:
        block_end = min(position + _BLOCK, len(text))
        ends = text.count("\n", position, block_end)
        if ends >= count:
            break
        if block_end == len(text):
            return None
        count -= ends
        position = block_end
    for _ in range(count):
        position = text.index("\n", position) + 1
    return position
