"""Whether the text that was shown for a question holds its evidence; the same judge for everybody.

A piece of evidence is a line of a note. It counts as shown when the shown text has it, whatever its spaces and its
marks of Markdown; of a line longer than `ENOUGH` any stretch of that length does. Where the text stands is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from plainmind.base.value import value
from plainmind.guests.evaluation.dataset import Question
from plainmind.guests.evaluation.scoring import pieces_of

FIRST = 6
CUT = 700  # characters of a result that count when all have the same budget: as many as we show
ENOUGH = 200
_STEP = 20
_MARKS = re.compile(r"[\s*_`#>|\-]+")


@value
class Shown:
    """One result as it was shown."""

    path: str
    text: str


@value
class Judgement:
    """How much of the evidence the first results show, whether the very first shows some, and how long they are."""

    recall: float
    hit: bool
    recall_cut: float
    hit_cut: bool
    characters: int


class Judge:
    """Knows the lines of a workspace."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._lines: dict[str, list[str]] = {}

    def judge(self, question: Question, shown: Sequence[Shown]) -> Judgement:
        """Compare what was shown with the evidence of a question, which must have some."""
        pieces = [{self._line(path, line) for path, line in piece} for piece in pieces_of(question)]
        whole = [plain(one.text) for one in shown[:FIRST]]
        cut = [plain(one.text[:CUT]) for one in shown[:FIRST]]
        return Judgement(
            _recall(pieces, whole),
            _recall(pieces, whole[:1]) > 0,
            _recall(pieces, cut),
            _recall(pieces, cut[:1]) > 0,
            sum(len(one.text) for one in shown[:FIRST]),
        )

    def _line(self, path: str, number: int) -> str:
        if path not in self._lines:
            self._lines[path] = (self._workspace / path).read_text(encoding="utf-8").split("\n")
        return plain(self._lines[path][number - 1])


def plain(text: str) -> str:
    """The text without what differs between ways to show it."""
    return _MARKS.sub("", text).casefold()


def holds(text: str, line: str) -> bool:
    """Whether a shown text has a line, or enough of a long one; both are plain."""
    if len(line) <= ENOUGH:
        return bool(line) and line in text
    starts = [*range(0, len(line) - ENOUGH, _STEP), len(line) - ENOUGH]
    return any(line[start : start + ENOUGH] in text for start in starts)


def _recall(pieces: Sequence[set[str]], texts: Sequence[str]) -> float:
    found = sum(any(holds(text, line) for text in texts for line in piece) for piece in pieces)
    return found / len(pieces)
