"""Questions whose evidence is known, read from a file beside the workspace that they are about."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.value import value
from plainmind.files.safe_open import expand_user

QUERIES = "queries"  # with .jsonl behind it, the file that is read where no other is named
META = "meta.json"
# Today, for data that does not say when it was asked; fixed, so that a run can be repeated.
WITHOUT_A_DAY = date(2026, 1, 1)
_HINT = 'a line is {"id", "query", "category", "gold": [{"path", "line_start", "line_end"}]}'


@value
class Evidence:
    """Lines that answer a question."""

    path: str
    first_line: int  # 1-based, inclusive
    last_line: int


@value
class Question:
    """What is asked, on which day, and where the answer stands; no evidence means that there is no answer."""

    id: str
    text: str
    category: str
    today: date
    evidence: tuple[Evidence, ...]
    any_line: bool = False  # one line of a piece of evidence proves it found; else every line counts
    one_piece: bool = False  # the pieces are places that say the same: one of their lines is the whole answer


@value
class AskedWorkspace:
    """A workspace and the questions about it."""

    name: str
    folder: str
    questions: tuple[Question, ...]


def read_dataset(
    folder: str, *, only: str | None = None, queries: str = QUERIES
) -> tuple[AskedWorkspace, ...]:
    """Read every workspace of a dataset, by name; a folder that is one workspace is a dataset of one.

    A workspace may have several sets of questions: `queries` names the one to read, without `.jsonl`.
    Raises NotFound when there are no questions, PlainmindError for a line that cannot be understood.
    """
    top = os.path.abspath(expand_user(folder))
    name = f"{queries}.jsonl"
    alone = os.path.isfile(os.path.join(top, name))
    folders = {os.path.basename(top): top} if alone else dict(_workspaces_in(top, name))
    if not folders:
        raise NotFound(
            f"there are no questions in `{folder}`",
            hint=f"name a folder with {name} in it, or one whose folders have it",
        )
    if only is not None and only not in folders:
        raise NotFound(
            f"there is no workspace `{only}` in `{folder}`", hint=f"it has {', '.join(sorted(folders))}"
        )
    chosen = [only] if only is not None else sorted(folders)
    return tuple(AskedWorkspace(one, folders[one], tuple(_questions(folders[one], name))) for one in chosen)


def _workspaces_in(top: str, queries: str) -> Iterator[tuple[str, str]]:
    if os.path.isdir(top):
        for name in os.listdir(top):
            folder = os.path.join(top, name)
            if os.path.isfile(os.path.join(folder, queries)):
                yield name, folder


def _questions(folder: str, queries: str) -> Iterator[Question]:
    fallback = _day(_meta(folder), os.path.join(folder, META)) or WITHOUT_A_DAY
    file = os.path.join(folder, queries)
    seen: set[str] = set()
    for number, line in enumerate(_text(file).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{file}, line {number}"
        question = _question(_object(line, where), where, fallback)
        if question.id in seen:
            raise PlainmindError(
                f"{where}: the id `{question.id}` was used before", hint="ids must differ within a workspace"
            )
        seen.add(question.id)
        yield question


def _question(row: Mapping[str, Any], where: str, fallback: date) -> Question:
    id_, text, category = (_field(row, name, str, where) for name in ("id", "query", "category"))
    gold = _field(row, "gold", list, where)
    return Question(
        id=id_,
        text=text,
        category=category,
        today=_day(row, where) or fallback,
        evidence=tuple(_evidence(item, where) for item in gold),
        any_line=row.get("gold_mode") == "any",
        one_piece=row.get("gold_mode") == "one",
    )


def _evidence(item: object, where: str) -> Evidence:
    if not isinstance(item, dict):
        raise PlainmindError(f"{where}: `gold` holds something that is no object", hint=_HINT)
    path = _field(item, "path", str, where)
    first, last = (_field(item, name, int, where) for name in ("line_start", "line_end"))
    if not 1 <= first <= last:
        raise PlainmindError(
            f"{where}: lines {first} to {last} of `{path}` are no range",
            hint="lines count from 1, the last one is included",
        )
    return Evidence(path, first, last)


def _field(row: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    value = row.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        problem = f"`{name}` is missing" if value is None else f"`{name}` is not {_KINDS[kind]}"
        raise PlainmindError(f"{where}: {problem}", hint=_HINT)
    return value


_KINDS = {str: "a text", int: "a whole number", list: "a list"}


def _day(row: Mapping[str, Any], where: str) -> date | None:
    now = row.get("now")
    if now is None:
        return None
    try:
        return datetime.fromisoformat(now).date()
    except (TypeError, ValueError):
        raise PlainmindError(
            f"{where}: `now` is not a date: {now!r:.60}", hint="write it as 2026-02-10 or 2026-02-10T09:00"
        ) from None


def _meta(folder: str) -> Mapping[str, Any]:
    file = os.path.join(folder, META)
    return _object(_text(file), file) if os.path.isfile(file) else {}


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlainmindError(f"{where}: not JSON ({error})", hint=_HINT) from None
    if not isinstance(value, dict):
        raise PlainmindError(f"{where}: not a JSON object", hint=_HINT)
    return value


def _text(file: str) -> str:
    with open(file, encoding="utf-8-sig", newline="") as opened:
        try:
            return opened.read()
        except UnicodeDecodeError as error:
            raise PlainmindError(
                f"{file}: not valid UTF-8 ({error.reason})", hint="save it as UTF-8"
            ) from None
