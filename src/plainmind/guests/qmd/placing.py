"""From an answer of QMD to a hit: the same lines, cut from the file as it is now, and cited as we cite them."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.base.model import Document, SearchHit, split_lines
from plainmind.base.value import value
from plainmind.guests.qmd.answers import Answer
from plainmind.text.notes import without_note_ids

# An export begins with the name of the conversation and an empty line.
EXPORT_HEADER_LINES = 2


@value
class Lines:
    """A run of lines, counted from 0, and the best of them."""

    first: int
    end: int
    best: int


def placed(answer: Answer, document: Document, *, offset: int, snippet_chars: int) -> SearchHit | None:
    """The hit that an answer is, or None when the file does not say any more what was found in it.

    `offset` is how many lines stood before the text of the document in the file that QMD has read.
    """
    lines = split_lines(document.text)
    found = _found(answer, lines, offset)
    if found is None:
        return None
    shown = _narrowed(lines, found, snippet_chars)
    snippet = "\n".join(without_note_ids(line) for line in lines[shown.first : shown.end])[:snippet_chars]
    if not snippet.strip():
        return None
    return SearchHit(
        document.path,
        _cited(document, shown.first),
        _cited(document, shown.end - 1),
        answer.score,
        snippet,
        document.source,
    )


def _found(answer: Answer, lines: Sequence[str], offset: int) -> Lines | None:
    """Where the shown lines stand now: as near as possible to where they stood. The best may follow behind them."""
    shown = [*answer.text, answer.cut] if answer.cut else list(answer.text)
    expected = answer.first_line - 1 - offset
    best = answer.line - answer.first_line
    if expected < 0:  # the head of an export is no part of the text
        shown, best, expected = shown[-expected:], best + expected, 0
    while shown and not shown[-1].strip():
        shown.pop()
    while shown and not shown[0].strip():
        shown, best, expected = shown[1:], best - 1, expected + 1
    best = max(best, 0)
    start = _start(shown, lines, expected, is_cut=bool(answer.cut)) if shown else expected
    if start is not None:
        end = max(start + len(shown), start + best + 1)
        return Lines(start, end, start + best) if end <= len(lines) else None
    if best >= len(shown):
        return None
    # What stood around it has changed: it still counts if it is there itself.
    is_cut = bool(answer.cut) and best == len(shown) - 1
    start = _start(shown[best : best + 1], lines, expected + best, is_cut=is_cut)
    return None if start is None else Lines(start, start + 1, start)


def _start(shown: Sequence[str], lines: Sequence[str], expected: int, *, is_cut: bool) -> int | None:
    """Where lines stand, as near as possible to where they were; `is_cut`: the last is only the beginning of one."""
    whole = list(shown[:-1] if is_cut else shown)
    starts = (
        start
        for start in range(len(lines) - len(shown) + 1)
        if lines[start].startswith(shown[0])  # most are not even that
        and [line.rstrip() for line in lines[start : start + len(whole)]] == whole
        and (not is_cut or lines[start + len(whole)].startswith(shown[-1]))
    )
    return min(starts, key=lambda start: (abs(start - expected), start), default=None)


def _narrowed(lines: Sequence[str], found: Lines, most_chars: int) -> Lines:
    """As many of the lines around the best one as may be shown; at least that one."""
    first, end = found.best, found.best + 1
    size = len(lines[found.best])
    while True:
        before = len(lines[first - 1]) + 1 if first > found.first else None
        after = len(lines[end]) + 1 if end < found.end else None
        if after is not None and size + after <= most_chars:
            size, end = size + after, end + 1
        elif before is not None and size + before <= most_chars:
            size, first = size + before, first - 1
        else:
            break
    while first < found.best and not lines[first].strip():
        first += 1
    while end - 1 > found.best and not lines[end - 1].strip():
        end -= 1
    return Lines(first, end, found.best)


def _cited(document: Document, line: int) -> int:
    return line + 1 if document.line_map is None else document.line_map[line]
