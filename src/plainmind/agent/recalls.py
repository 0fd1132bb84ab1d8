"""The recall log: what agents asked, which lines they were given and which not, and what a person thought of it.

One file a day, one line a recall, in the home and never in the workspace: nothing here is indexed, and nothing here is
ever a source of memory. Of the lines only their place and a mark are kept, not their words. Writing never waits and
never fails an answer; what is lost with the power is lost.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from plainmind.agent.recall import without_recalled
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import PRIVATE, Excerpt, SearchHit, split_lines
from plainmind.base.value import field, replace, value
from plainmind.files.append import Tail, append, new_id, time_of
from plainmind.files.atomic import write_atomically
from plainmind.files.jsonl import add_line, backwards, lines_holding, objects_in, open_plain_file
from plainmind.files.system import SYSTEM, explain_errors, read_file
from plainmind.text.note_format import mark_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime, tzinfo
    from typing import Any, TypeAlias

    from plainmind.agent.start_context import StartContext
    from plainmind.files.system import Erasures

    Judged: TypeAlias = Mapping[tuple[str, int], str]  # verdicts by recall and line

__all__ = ["mark_of"]  # what names the lines of a recall

ENTRIES = "entries"  # what stands before the id of an entry, as a path does
VERDICTS = ("useful", "wrong", "outdated", "never-again")

_QUESTION_CHARS = 400
_LAST_DAY = "9999-12-31"
_LATEST_S = (
    253_402_000_000.0  # in the last days of 9999: a clock that was set too far ahead once marks what follows
)
_NAME_CHARS = 120
_DAY_FILE = pattern(r"(?P<day>\d{4}-\d\d-\d\d)\.jsonl")
VERDICTS_FILE = "verdicts.jsonl"
_WORDS = pattern(r"\w+")
_LEAST_WORD = 4
_UNKNOWN = object()


@value
class Asker:
    """Who asks: a surface of ours, the program behind it, and its conversation."""

    surface: str  # "python", "tools", "mcp", "hook", "chat", "http"
    host: str = ""  # "claude-code", the name of an MCP client or of a token
    session: str = ""


@value
class RecalledLines:
    """Lines that were found for an agent."""

    path: str
    start_line: int = 0  # 0: the file as a whole
    end_line: int = 0
    best_line: int = 0  # 0: not known
    score: float | None = None
    mark: str = ""  # of the best line, see `mark_of`
    reason: str = ""  # why they were not given; "": they were
    verdict: str = ""  # of a person

    @property
    def is_given(self) -> bool:
        """Whether the agent got to see them."""
        return not self.reason


@value
class Recall:
    """One time that an agent was given memory, or was not."""

    id: str
    at: str  # when, where the user is: 2026-11-16T12:40:01+01:00
    kind: str  # "search", "read" or "start"
    question: str  # without secrets; "" where nothing was asked
    surface: str
    host: str
    session: str
    agent: str
    scope: str  # whose conversation it was: who may see this
    lines: tuple[RecalledLines, ...]
    tokens: int
    milliseconds: float

    @property
    def given(self) -> tuple[RecalledLines, ...]:
        """What the agent got to see."""
        return tuple(one for one in self.lines if one.is_given)

    @property
    def withheld(self) -> tuple[RecalledLines, ...]:
        """What was found and not given, each with its reason."""
        return tuple(one for one in self.lines if not one.is_given)


@value
class RecallPage:
    """Some recalls, the newest first, and where to go on; no cursor: that was all."""

    recalls: tuple[Recall, ...]
    cursor: str | None = None


@value
class RecallValues:
    """Whether recalls are written down, for how long they are kept, and where."""

    enabled: bool
    days: int
    folder: str


def best_line_of(hit: SearchHit) -> str:
    """The line of a hit that answers; the first that says something where that is not known."""
    lines = split_lines(hit.snippet)
    has_every_line = len(lines) == hit.end_line - hit.start_line + 1
    if has_every_line and hit.start_line <= hit.best_line <= hit.end_line:
        return lines[hit.best_line - hit.start_line]
    return next((line for line in lines if line.strip()), "")


def lines_of_hits(hits: Iterable[SearchHit], reason: str = "") -> tuple[RecalledLines, ...]:
    """What a search found, given or with the reason why not."""
    return tuple(
        RecalledLines(
            hit.path,
            hit.start_line,
            hit.end_line,
            hit.best_line,
            round(hit.score, 3),
            mark_of(best_line_of(hit)),
            reason,
        )
        for hit in hits
    )


def lines_of_excerpt(excerpt: Excerpt) -> tuple[RecalledLines, ...]:
    """What was read of a file."""
    last = excerpt.first_line + excerpt.line_count - 1
    return (RecalledLines(excerpt.path, excerpt.first_line, last),) if excerpt.line_count else ()


def lines_of_start(begun: StartContext) -> tuple[RecalledLines, ...]:
    """What a session begins with, and what did not fit."""
    left_out = (path for path in begun.truncated if path not in begun.paths)
    return (
        *(RecalledLines(path) for path in begun.paths),
        *(RecalledLines(path, reason="did not fit") for path in left_out),
    )


class BegunRecall:
    """A question that is being answered; `end` writes it down. Neither costs the answer anything but a moment."""

    def __init__(self, log: RecallLog, kind: str, question: str, asker: Asker, scope: str) -> None:
        self._log, self._kind, self._question, self._asker, self._scope = log, kind, question, asker, scope
        self._began = time.perf_counter()
        self._erased = log.erased() if log.is_on else None

    def end(self, lines: Sequence[RecalledLines], text: str, *, timeout_ms: float | None = None) -> None:
        """Write down which lines were found, and that `text` was given to the model, unless nobody waited for it."""
        if not self._log.is_on:
            return
        spent = (time.perf_counter() - self._began) * 1000
        if timeout_ms is not None and spent > timeout_ms:
            lines, text = [replace(one, reason=one.reason or "too late") for one in lines], ""
        try:
            self._log.write(
                self._kind,
                self._question,
                self._asker,
                self._scope,
                lines=lines,
                text=text,
                milliseconds=spent,
                erased=self._erased,
            )
        except (OSError, PlainmindError) as error:
            import logging

            logging.getLogger(__name__).warning("what was recalled could not be written down: %s", error)


@value
class Witness:
    """Whom a log is shown to: which scopes' recalls, and which files in them."""

    sees: Callable[[str], bool] = field(repr=False)
    admits: Callable[[str], bool] = field(repr=False)


class RecallLog:
    """What agents were given, of one workspace. Safe to share between threads and processes."""

    def __init__(
        self,
        values: RecallValues,
        *,
        agent: str,
        now: Callable[[], datetime],
        erasures: Callable[[], Erasures],
        redact: Callable[[str], str],
        witness: Witness | None = None,
    ) -> None:
        """`witness` is who reads; None: the owner, who may see all of it."""
        self._values = values
        self._agent = agent
        self._now = now
        self._erasures = erasures
        self._redact = redact
        self._witness = witness
        self._zone: tzinfo | None = None

    @property
    def is_on(self) -> bool:
        """Whether recalls are written down."""
        return self._values.enabled

    @property
    def folder(self) -> str:
        """Where they are kept."""
        return self._values.folder

    def seen_by(self, witness: Witness) -> RecallLog:
        """The log as somebody else than the owner may read it."""
        return self._like(self._values, self._erasures, witness)

    def _like(
        self, values: RecallValues, erasures: Callable[[], Erasures], witness: Witness | None = None
    ) -> RecallLog:
        return RecallLog(
            values, agent=self._agent, now=self._now, erasures=erasures, redact=self._redact, witness=witness
        )

    # --- writing ---

    def begin(self, kind: str, question: str, asker: Asker, scope: str) -> BegunRecall:
        """Begin to answer a question of an agent; `scope` is whose conversation it is asked in."""
        return BegunRecall(self, kind, question, asker, scope)

    def erased(self) -> object:
        """What changes with every erasure; nothing that it ever is where that cannot be told."""
        try:
            return self._erasures().stamp()
        except PlainmindError:
            return _UNKNOWN

    def write(
        self,
        kind: str,
        question: str,
        asker: Asker,
        scope: str,
        *,
        lines: Sequence[RecalledLines],
        text: str,
        milliseconds: float,
        erased: object,
    ) -> None:
        """Add a recall. Nothing is written while something is forgotten, nor of what was found before that.

        Raises OSError or PlainmindError.
        """
        from plainmind.text.chunking import estimated_tokens

        record: dict[str, Any] = {
            "id": new_id(),
            "kind": kind,
            "by": [asker.surface, asker.host[:_NAME_CHARS], asker.session[:_NAME_CHARS], self._agent],
            "lines": [_packed(one) for one in lines],
            "tokens": estimated_tokens(text) if text else 0,
            "ms": round(milliseconds, 1),
        }
        if question:
            record["question"] = _short(self._redact(without_recalled(question)))
        if scope != PRIVATE:
            record["scope"] = scope
        data = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        path = os.path.join(self.folder, f"{self._now():%Y-%m-%d}.jsonl")
        erasures = self._erasures()
        held = erasures.try_to_hold_off()
        if held is None:
            return
        with held:
            if erasures.stamp() != erased:
                return
            is_new_day = not os.path.lexists(path)
            add_line(path, data.encode("utf-8", "replace"))
        if is_new_day:
            self.sweep()

    def sweep(self) -> None:
        """Remove the days that are kept no longer."""
        oldest = self._oldest()
        for day, path in self._day_files():
            if day < oldest:
                _remove(path)

    def clear(self) -> int:
        """Remove all recalls; how many days that were. What a person said of lines stays."""
        with self._erasures().run_alone():
            files = self._day_files()
            for _, path in files:
                _remove(path)
        return len(files)

    # --- reading ---

    def page(
        self,
        limit: int = 50,
        *,
        cursor: str | None = None,
        day: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> RecallPage:
        """Recalls, the newest first, of one day, of some or of all; `cursor` goes on behind an earlier page.

        Days may be given in words, as for a search. PlainmindError for what names none.
        """
        found: list[Recall] = []
        place = None
        first, last = self._days_named(day or since, day or until)
        for recall, place_of_it in self._places(cursor, first, last):
            if len(found) == limit:
                return RecallPage(tuple(found), place)
            found.append(recall)
            place = place_of_it
        return RecallPage(tuple(found))

    def each(self, *, since: str | None = None) -> Iterator[Recall]:
        """All recalls since a day, the newest first."""
        return (recall for recall, _ in self._places(None, since or ""))

    def get(self, name: str) -> Recall:
        """One recall by its id, or by the beginning of it. Raises NotFound."""
        wanted = f'"id":"{name.upper()}'.encode("utf-8", "replace")
        judged = self._judged()
        for _, path in self._day_files() if len(name) >= _LEAST_WORD else ():
            with open_plain_file(path) as fd:
                for line in lines_holding(fd, wanted, stop=os.fstat(fd).st_size):
                    recall = self._recall(line.data, judged)
                    if recall is not None:
                        return recall
        raise NotFound(
            f"there is no recall `{name[:60]}`", hint="`plainmind recalls` lists them with their ids"
        )

    def days(self) -> dict[str, int]:
        """How many recalls there were on each day that is kept, the newest day first."""
        counted: dict[str, int] = {}
        if self._witness is None:  # none is left out: lines need not be read to be counted
            oldest = self._oldest()
            return {day: read_file(path).count(b"\n") for day, path in self._day_files() if day >= oldest}
        for _, place in self._places(None):
            day = place.partition(":")[0]
            counted[day] = counted.get(day, 0) + 1
        return counted

    def stamp(self) -> tuple[str, int, int] | None:
        """What changes whenever something was recalled or judged; None before the first time."""
        files = self._day_files()[:1]
        verdicts = _size(os.path.join(self.folder, VERDICTS_FILE))
        if not files:
            return ("", 0, verdicts) if verdicts else None
        day, path = files[0]
        return day, _size(path), verdicts

    # --- what a person thinks of it ---

    def judge(self, name: str, verdict: str, *, line: int = 1) -> Recall:
        """Say what a line of a recall was worth: one of VERDICTS, or "" to take it back. On disk when this returns.

        Later searches heed it for as long as the line says the same.
        """
        if verdict and verdict not in VERDICTS:
            raise PlainmindError(
                f"there is no verdict `{verdict[:60]}`", hint=f"choose from {', '.join(VERDICTS)}"
            )
        recall = self.get(name)
        if not 1 <= line <= len(recall.lines):
            raise NotFound(
                f"the recall {recall.id} has {len(recall.lines)} lines; there is no line {line}",
                hint="they are counted from 1, as `plainmind recalls ID` shows them",
            )
        about = recall.lines[line - 1]
        if not about.mark:
            raise PlainmindError(
                f"{about.path} was read as a whole: there is no single line to judge",
                hint="judge what a search gave",
            )
        mark = new_id()
        record = {
            "id": mark,
            "recall": recall.id,
            "line": line,
            "path": about.path,
            "mark": about.mark,
            "verdict": verdict,
        }
        data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        path = os.path.join(self.folder, VERDICTS_FILE)
        with self._erasures().hold_off():
            append(
                path,
                data + b"\n",
                state_dir=os.path.dirname(self.folder),
                record_id=mark,
                tail=Tail.JSONL,
                look_back_bytes=0,
            )
        lines = [replace(one, verdict=verdict) if one is about else one for one in recall.lines]
        return replace(recall, lines=tuple(lines))

    # --- forgetting ---

    def of_all_workspaces(self) -> Iterator[RecallLog]:
        """This log, and those of the other workspaces of the same home."""
        from plainmind.files.system import Erasures

        states = os.path.dirname(os.path.dirname(self.folder))
        for name in sorted(os.listdir(states)) if os.path.isdir(states) else ():
            folder = os.path.join(states, name, os.path.basename(self.folder))
            if os.path.isdir(folder):
                yield self._like(
                    replace(self._values, folder=folder), partial(Erasures, os.path.dirname(folder))
                )

    def erasing(self) -> AbstractContextManager[None]:
        """Keep everybody from adding to it during a block."""
        return self._erasures().run_alone()

    def erase(
        self,
        is_doomed: Callable[[Recall], bool],
        is_line_doomed: Callable[[str, str], bool],
        hints: Iterable[str],
    ) -> int:
        """Leave no byte of the recalls, and of the verdicts by path and mark, that are doomed; how many went.

        What is doomed has one of the `hints` in its question or among its paths and names. Whoever calls this has the
        erasures to itself.
        """
        spelled = [json.dumps(hint, ensure_ascii=False)[1:-1].casefold() for hint in hints]
        count = 0
        for _, path in self._day_files():
            data = read_file(path)
            kept: list[bytes] = []
            for line in data.splitlines(keepends=True):
                text = line.decode("utf-8", "replace").casefold()
                if line.endswith(b"}\n") and not any(hint in text for hint in spelled):
                    kept.append(line)
                    continue
                recall = self._recall(line, {}, sees_all=True)
                if recall is not None and not is_doomed(recall):
                    kept.append(line)
            count += _rewrite(path, data, kept)
        path = os.path.join(self.folder, VERDICTS_FILE)
        if _size(path):
            data = read_file(path)
            kept = [
                line
                for line in data.splitlines(keepends=True)
                if (found := _parsed(line)) is not None
                and not is_line_doomed(str(found.get("path")), str(found.get("mark")))
            ]
            count += _rewrite(path, data, kept)
        return count

    # --- the files ---

    def _oldest(self) -> str:
        from datetime import timedelta

        return f"{self._now() - timedelta(days=self._values.days):%Y-%m-%d}"

    def _day_files(self) -> list[tuple[str, str]]:
        """Each day with its file, the newest first."""
        try:
            names = SYSTEM.listdir(self.folder)
        except FileNotFoundError:
            return []
        days = [found["day"] for name in names if (found := _DAY_FILE.fullmatch(name))]
        return [(day, os.path.join(self.folder, f"{day}.jsonl")) for day in sorted(days, reverse=True)]

    def _days_named(self, since: str | None, until: str | None) -> tuple[str, str]:
        if since is None and until is None:
            return "", _LAST_DAY
        from plainmind.index.filters import restriction_of

        named = restriction_of(self._now().date(), since=since, until=until)
        return (named and named.since) or "", (named and named.until) or _LAST_DAY

    def _places(
        self, cursor: str | None, since: str = "", until: str = _LAST_DAY
    ) -> Iterator[tuple[Recall, str]]:
        """Recalls from the newest on, each with the place to go on from behind it."""
        start_day, _, offset = (cursor or "").partition(":")
        if cursor is not None and not offset.isdecimal():
            raise PlainmindError(f"`{cursor[:60]}` is no cursor", hint="give back the one of the page before")
        judged = self._judged()
        since = max(since, self._oldest())
        for each, path in self._day_files():
            if each < since or each > until or (start_day and each > start_day):
                continue
            try:
                with open_plain_file(path) as fd:
                    size = os.fstat(fd).st_size
                    end = min(size, int(offset)) if each == start_day else size
                    for line in backwards(fd, end=end):
                        recall = self._recall(line.data, judged)
                        if recall is not None:
                            yield recall, f"{each}:{line.start}"
            except NotFound:  # swept meanwhile
                continue

    def _recall(self, data: bytes, judged: Judged, *, sees_all: bool = False) -> Recall | None:
        """What a line of a file says; None when it is torn, or not for who reads."""
        found = _parsed(data)
        try:
            if found is None:
                return None
            by = found["by"]
            name = found["id"]
            # By position: a year of them is read for upkeep.
            recall = Recall(
                name,
                self._time(name),
                found["kind"],
                found.get("question", ""),
                by[0],
                by[1],
                by[2],
                by[3],
                found.get("scope", PRIVATE),
                tuple(
                    [
                        _unpacked(one, judged.get((name, number), "") if judged else "")
                        for number, one in enumerate(found["lines"], 1)
                    ]
                ),
                found["tokens"],
                found["ms"],
            )
        except (KeyError, TypeError, ValueError, IndexError):
            return None
        if self._witness is None or sees_all:
            return recall
        if not self._witness.sees(recall.scope):
            return None
        admits = self._witness.admits
        hidden = RecalledLines(
            "", reason="not for this conversation"
        )  # in its place: lines are named by number
        return replace(recall, lines=tuple(one if admits(one.path) else hidden for one in recall.lines))

    def _time(self, name: str) -> str:
        from datetime import datetime

        if self._zone is None:
            self._zone = self._now().tzinfo
        seconds = min(time_of(name), _LATEST_S)
        return datetime.fromtimestamp(seconds, self._zone).isoformat(timespec="seconds")

    def _judged(self) -> Judged:
        judged: dict[tuple[str, int], str] = {}
        for found in verdicts_in(self.folder):
            judged[found["recall"], found["line"]] = found["verdict"]
        return judged


def verdicts_in(folder: str) -> Iterator[Mapping[str, Any]]:
    """What a person said of lines, the oldest first: `recall`, `line`, `path`, `mark` and `verdict` of each."""
    path = os.path.join(folder, VERDICTS_FILE)
    with explain_errors("read", path, outcome="verdicts do not count"):
        for found in objects_in(path):
            if {"recall", "line", "path", "mark", "verdict"} <= found.keys():
                yield found


def shares_a_word(question: str, texts: Iterable[str]) -> bool:
    """Whether a question has a word of some texts that is more than a particle, or a number."""
    asked = {word for word in _WORDS.findall(question.casefold()) if _says_something(word)}
    return any(not asked.isdisjoint(_WORDS.findall(text.casefold())) for text in texts) or any(
        word in text.casefold() for word in asked if not word.isascii() for text in texts
    )


def _says_something(word: str) -> bool:
    return len(word) >= _LEAST_WORD or not word.isascii() or any(sign.isdigit() for sign in word)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _QUESTION_CHARS else words[: _QUESTION_CHARS - 1] + "…"


def _packed(one: RecalledLines) -> list[Any]:
    packed = [one.path, one.start_line, one.end_line, one.best_line, one.score, one.mark]
    return [*packed, one.reason] if one.reason else packed


def _unpacked(packed: Sequence[Any], verdict: str) -> RecalledLines:
    path, start, end, best, score, mark, *reason = packed
    return RecalledLines(path, start, end, best, score, mark, reason[0] if reason else "", verdict)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _rewrite(path: str, data: bytes, kept: list[bytes]) -> int:
    """Write what is kept of a file's lines, if that is not all of them; how many went."""
    left = b"".join(kept)
    if left == data:
        return 0
    if left:
        write_atomically(path, left)
    else:
        _remove(path)
    return len(data.splitlines()) - len(kept)


def _remove(path: str) -> None:
    with explain_errors("remove", path, outcome="it is still there"):
        try:
            SYSTEM.unlink(path)
        except FileNotFoundError:  # another process was faster
            return


def _size(path: str) -> int:
    try:
        return SYSTEM.stat(path).st_size
    except FileNotFoundError:
        return 0
