"""Reading what QMD prints: answers as JSON, perhaps with other things around them."""

from __future__ import annotations

import json
import math

from plainmind.base.pattern import pattern
from plainmind.base.value import value
from plainmind.memory.backend import BackendFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SCHEME = "qmd://"
_NOTHING = pattern(r"(?im)^\s*no results found")
_HEADER = pattern(r"@@ -(?P<first>\d{1,9})(?:,(?P<count>\d{1,9}))?[^\n]*\n?")
_LARGEST_LINE = 1_000_000_000
_MOST_BEGINNINGS = 64
_CUT_SHORT = "..."  # or a line that ends like that by itself: it begins so too


@value
class Answer:
    """One file that it found, and the lines that it shows of it."""

    collection: str
    path: str  # relative to the folder of the collection
    score: float
    line: int  # the best one
    first_line: int  # of the text
    text: tuple[str, ...]  # whole lines, as they were when it read the file
    cut: str = ""  # the beginning of the line that follows


def read_answers(output: bytes) -> tuple[Answer, ...]:
    """Find the answers in what was printed. Raises BackendFailed when there are none to be read."""
    text = output.decode("utf-8", "replace")
    found = _list_in(text)
    if found is None:
        if _NOTHING.search(text):
            return ()
        raise BackendFailed("it printed no JSON" if text.strip() else "it printed nothing")
    answers = tuple(answer for item in found if (answer := _answer(item)) is not None)
    if found and not answers:
        raise BackendFailed("it printed JSON in which no answer can be found")
    return answers


def _list_in(text: str) -> list[Any] | None:
    """The first list of objects in a text."""
    decoder = json.JSONDecoder(parse_constant=_refused)
    start = text.find("[")
    for _ in range(_MOST_BEGINNINGS):
        if start < 0:
            return None
        try:
            found, _end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, list) and all(isinstance(item, dict) for item in found):
            return found
        start = text.find("[", start + 1)
    return None


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _answer(item: dict[str, Any]) -> Answer | None:
    place = _place(item)
    if place is None:
        return None
    shown = item.get("snippet") or item.get("body") or ""
    text = shown if isinstance(shown, str) else ""
    header = _HEADER.match(text)
    first = _line(item, "start_line", "startLine") or (int(header["first"]) if header else 0)
    best = _line(item, "line") or first or 1
    lines = _lines(text[header.end() :] if header else text)
    cut = lines.pop().removesuffix(_CUT_SHORT).rstrip() if lines and lines[-1].endswith(_CUT_SHORT) else ""
    return Answer(*place, _score(item.get("score")), best, first or best, tuple(lines), cut)


def _place(item: dict[str, Any]) -> tuple[str, str] | None:
    file, collection = item.get("file"), item.get("collection")
    if not isinstance(file, str) or not file:
        return None
    if file.startswith(_SCHEME):
        collection, slash, path = file.removeprefix(_SCHEME).partition("/")
        return (collection, path.partition("?index=")[0]) if slash and path else None
    return (collection, file) if isinstance(collection, str) else None


def _lines(text: str) -> list[str]:
    text = text.removeprefix("\ufeff").removesuffix("\n")
    return [line.rstrip() for line in text.split("\n")] if text else []


def _line(item: dict[str, Any], *names: str) -> int:
    for name in names:
        found = item.get(name)
        if isinstance(found, int) and not isinstance(found, bool) and 0 < found < _LARGEST_LINE:
            return found
    return 0


def _score(found: object) -> float:
    usable = isinstance(found, int | float) and not isinstance(found, bool)
    score = float(found) if usable and abs(found) < 1e9 else 0.0  # type: ignore[arg-type]
    return min(1.0, max(0.0, score)) if math.isfinite(score) else 0.0
