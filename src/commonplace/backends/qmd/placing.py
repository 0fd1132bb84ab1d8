"""From an answer of QMD to a hit: the same lines, cut from the file as it is now, and cited as we cite them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from commonplace.backends.qmd.answers import Answer
from commonplace.model import Document, SearchHit
from commonplace.text.lines import split_lines
from commonplace.value import value

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
    snippet = "\n".join(lines[shown.first : shown.end])[:snippet_chars]
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
    """Where the shown lines stand now: as near as possible to where they stood."""
    shown = list(answer.text)
    expected = answer.first_line - 1 - offset
    best = answer.line - answer.first_line
    if expected < 0:  # the head of an export is no part of the text
        shown, best, expected = shown[-expected:], best + expected, 0
    while shown and not shown[-1].strip():
        shown.pop()
    while shown and not shown[0].strip():
        shown, best, expected = shown[1:], best - 1, expected + 1
    if not shown:
        return Lines(expected, expected + 1, expected) if 0 <= expected < len(lines) else None
    best = min(max(best, 0), len(shown) - 1)
    start = _start(shown, lines, expected)
    if start is not None:
        return Lines(start, start + len(shown), start + best)
    # What stood around it has changed: it still counts if it is there itself.
    start = _start(shown[best : best + 1], lines, expected + best) if shown[best].strip() else None
    return None if start is None else Lines(start, start + 1, start)


def _start(shown: Sequence[str], lines: Sequence[str], expected: int) -> int | None:
    starts = (
        start
        for start in _nearest_first(expected, len(lines) - len(shown))
        if all(lines[start + number].rstrip() == line for number, line in enumerate(shown))
    )
    return next(starts, None)


def _nearest_first(expected: int, last: int) -> Iterator[int]:
    """All numbers up to the last, those near the expected one before those far from it."""
    for distance in range(max(expected, last - expected) + 1):
        if 0 <= expected - distance <= last:
            yield expected - distance
        if distance and 0 <= expected + distance <= last:
            yield expected + distance


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
