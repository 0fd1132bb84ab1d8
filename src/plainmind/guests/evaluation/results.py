"""Answers as JSON lines, one a question: what was shown can be scored again later, and by other programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from plainmind.base.errors import PlainmindError
from plainmind.guests.evaluation.running import Answer
from plainmind.guests.evaluation.scoring import Shown

# By workspace and question.
Results: TypeAlias = Mapping[tuple[str, str], tuple[Shown, ...]]


def write_results(file: str, answers: Iterable[Answer]) -> None:
    """Write one line an answer."""
    with open(os.path.expanduser(file), "w", encoding="utf-8") as opened:
        opened.writelines(json.dumps(row_of(answer), ensure_ascii=False) + "\n" for answer in answers)


def row_of(answer: Answer) -> dict[str, Any]:
    """One answer, ready for JSON."""
    return {
        "ws": answer.workspace,
        "id": answer.question.id,
        "results": [
            {
                "path": shown.path,
                "startLine": shown.start_line,
                "endLine": shown.end_line,
                "chars": shown.chars,
                "score": round(shown.score, 4),
            }
            for shown in answer.shown
        ],
    }


def read_results(file: str) -> Results:
    """Read what `write_results` wrote. Raises PlainmindError for a line that is something else."""
    results: dict[tuple[str, str], tuple[Shown, ...]] = {}
    with open(os.path.expanduser(file), encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                shown = tuple(_shown(result) for result in row["results"])
                results[row["ws"], row["id"]] = shown
            except (ValueError, KeyError, TypeError, RecursionError):
                raise PlainmindError(
                    f"{file}, line {number}: not a line of results",
                    hint="`plainmind bench eval --out FILE` writes such a file",
                ) from None
    return results


def _shown(result: Mapping[str, Any]) -> Shown:
    first, last = int(result["startLine"]), int(result["endLine"])
    return Shown(
        str(result["path"]), first, last, int(result.get("chars", 0)), float(result.get("score", 0.0))
    )
