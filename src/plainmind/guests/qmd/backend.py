"""QMD as an engine of the memory: told what to index, brought up to date, asked, and never trusted with a path."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import (
    EVERY_SCOPE,
    SOURCES,
    Document,
    FileFailure,
    Mode,
    SearchHit,
    SearchResult,
    SyncReport,
    split_lines,
)
from plainmind.base.value import replace, value
from plainmind.config.load import absolute, home_folder
from plainmind.files.safe_open import printable
from plainmind.guests.qmd.config import QmdConfig
from plainmind.guests.qmd.program import (
    Outcome,
    Program,
    QmdOptions,
    TookTooLong,
    Wanted,
    embedding_is_due,
    in_one_line,
    search_arguments,
    seconds_until_due,
    update_is_due,
)
from plainmind.guests.qmd.territory import Collection, Look, Territory, askable, folded
from plainmind.memory.backend import (
    BackendBusy,
    BackendFailed,
    Initiative,
    Question,
    Record,
    Surroundings,
)
from plainmind.notes.discovery import FoundFile
from plainmind.text.note_format import without_note_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.files.system import HeldLock


NAME = "qmd"
MAX_OUTPUT = 4_000_000
_ASKED_FOR_EACH = 3  # some answers are of files that have changed, or come twice
_LEAST_ASKED_FOR = 10
_MODES: Mapping[str, Mode] = {"search": "keyword", "vsearch": "vector", "query": "hybrid"}
_DAMAGED = pattern(r"(?i)disk image is malformed|file is not a database")
_LOST = pattern(r"(?i)collection\b.{0,200}\b(?:not found|does not exist|missing)|no collections")
_ABORTED = 134  # as it ends, after its answers are out: a library of its own fails to clean up


class QmdBackend:
    """Searches with QMD. One process of it runs at a time; whoever cannot wait is told that it is busy."""

    def __init__(
        self,
        surroundings: Surroundings,
        options: QmdOptions,
        record: Record,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._surroundings = surroundings
        self._options = options
        self._record = record
        self._now = now
        self._territory = Territory(surroundings, options, record, now)
        self._program = Program(surroundings, options, record)
        self._update_lock = os.path.join(surroundings.folder, "update.lock")
        self._has_booted = False
        self._seen: Wanted | None = None  # when the files were last looked at because something had changed

    @property
    def name(self) -> str:
        """`qmd`."""
        return NAME

    def search(self, question: Question) -> SearchResult:
        """Ask it, after it has seen what changed, if that can wait no longer."""
        began = time.monotonic()
        deadline = began + question.timeout_s
        sources = SOURCES if question.sources is None else [one for one in SOURCES if one in question.sources]
        look = self._territory.look()
        if self._options.update_on_search:
            try:
                self._catch_up("search", look, deadline)
            except TookTooLong as error:
                raise TookTooLong(f"{error}; `plainmind sync` gives it more time for your files") from error
        asked = askable(look.collections, question.scopes, sources)
        mode = self._options.search_mode
        arguments, without = search_arguments(
            question.query,
            mode,
            self._program.models(),
            [collection.name for collection in asked],
            max(_LEAST_ASKED_FOR, question.max_results * _ASKED_FOR_EACH),
        )
        # Without a collection it would search all that there are; without a question it tells how to ask one.
        can_be_asked = bool(asked and in_one_line(question.query))
        answers = read_answers(self._said(arguments, look, deadline)) if can_be_asked else ()
        return SearchResult(
            question.query,
            Hits(question, self._territory, look, deadline).of(answers, asked),
            NAME,
            str(self._record["version"] or mode),
            "keyword" if without else _MODES[mode],
            tuple(filter(None, (without, self._behind(look), _left_out(look), self._unknown(question)))),
            timings={"total": (time.monotonic() - began) * 1000},
        )

    def sync(self, initiative: Initiative, *, force: bool = False) -> SyncReport:
        """Let it look at the files, and embed what is new, as far as that is due."""
        began = time.monotonic()
        if force:
            self.erase()
        look = self._territory.look()
        failures = self._catch_up(initiative, look, began + self._options.update_timeout_s)
        self._tidy()
        trouble = self._embed(initiative)
        if initiative == "asked":
            with suppress(BackendFailed):  # that it works is known by now
                self._program.version()
        notes = [f"not given to qmd: {failure.path}: {failure.reason}" for failure in failures]
        if trouble is not None:
            notes.append(f"qmd has not embedded everything, and goes on next time: {trouble}")
        notes += filter(None, [_left_out(look)])
        return SyncReport(degraded=tuple(notes), seconds=time.monotonic() - began)

    def seconds_until_due(self, *, changed: bool) -> float:
        """How long until a sync in the background has something to do."""
        if changed or self._seen is None:
            self._seen = self._territory.look().wanted
        if self._options.update_on_boot and not self._has_booted:
            return 0.0
        return seconds_until_due(
            self._territory.done(),
            self._seen,
            self._now(),
            self._options,
            can_embed="embed" in self._program.models(),
        )

    def describe(self, *, deep: bool) -> Mapping[str, Any]:
        """What is known about it; `deep` asks it for its version."""
        facts: dict[str, Any] = {"name": NAME, "mode": self._options.search_mode, "healthy": True}
        try:
            facts["command"] = self._program.path()
            facts["version"] = self._program.version() if deep else self._record["version"]
        except BackendFailed as error:
            facts |= {"healthy": False, "problem": str(error), "version": self._record["version"]}
        done, look = self._territory.done(), self._territory.look()
        return facts | {
            "collections": [collection.name for collection in look.collections],
            "models": sorted(self._program.models()),
            "dbPath": self._territory.homes.index_file,
            "updatedAt": done.updated_at or None,
            "embeddedAt": self._record["embeddedAt"] or None,
            "behind": self._territory.is_behind(look),
            "leftOut": look.left_out,
        }

    def erase(self) -> None:
        """Delete its index and the copies of conversations: it has no way to forget a text for good."""
        self._territory.erase()

    def close(self) -> None:
        """End it."""
        self._program.close()

    def _said(self, arguments: Sequence[str], look: Look, deadline: float) -> bytes:
        """What it prints. When it does not know its collections any more, it is told of them again, once."""
        for attempt in (1, 2):
            outcome = self._program.run(arguments, deadline - time.monotonic(), max_output=MAX_OUTPUT)
            if outcome.status in {0, _ABORTED}:
                break
            is_lost = _LOST.search(outcome.complaints) is not None
            if attempt == 2 or not is_lost or not self._options.update_on_search:
                raise self._failure(arguments[0], outcome)
            lock = self._locked()
            if lock is None:
                raise BackendBusy("another process is telling it what to index")
            with lock:
                self._update(look, deadline)
        return outcome.output

    def _catch_up(self, initiative: Initiative, look: Look, deadline: float) -> tuple[FileFailure, ...]:
        """Let it look at the files if that is due, and nobody else is having it done."""
        self._seen = look.wanted
        due = update_is_due(
            initiative,
            self._territory.done(),
            look.wanted,
            self._now(),
            self._options,
            has_booted=self._has_booted,
        )
        if not due:
            return ()
        lock = self._locked()
        if lock is None:
            self._has_booted = True
            return ()
        with lock:
            return self._update(look, deadline)

    def _update(self, look: Look, deadline: float) -> tuple[FileFailure, ...]:
        """Let it look at the files: at all that there was at a look before, and perhaps at more."""
        self._program.path()  # nothing is copied for a program that is not there
        began = self._now()
        failures = self._territory.prepare(look, deadline)
        outcome = self._program.run(["update"], deadline - time.monotonic())
        if outcome.status:
            raise self._failure("update", outcome)
        self._territory.was_seen(look, began)
        self._has_booted = True
        return failures

    def _tidy(self) -> None:
        """Let it drop what it keeps of conversations that are too old: it only hides what it does not find any more."""
        if not self._record["isUntidy"]:
            return
        lock = self._locked()
        if lock is None:
            return
        with lock:
            outcome = self._program.run(["cleanup"], self._options.update_timeout_s)
            if outcome.status:
                self._territory.delete_index()
            self._record.update(isUntidy=False)
            self._territory.drop_what_was_erased()

    def _embed(self, initiative: Initiative) -> BackendFailed | None:
        """Make the vectors that are missing, if that is due; why not all of them. What is made is kept."""
        if not embedding_is_due(initiative, self._territory.done(), self._now(), self._options):
            return None
        if "embed" not in self._program.models():
            return None  # it would try to fetch one; `describe` tells which there are
        lock = self._locked()
        if lock is None:
            return None
        with lock:
            self._record.update(embeddingBeganAt=self._now())
            try:
                outcome = self._program.run(["embed"], self._options.embed_timeout_s)
            except TookTooLong as error:
                return error
            finally:
                self._territory.drop_what_was_erased()
        if outcome.status:
            return self._failure("embed", outcome)
        self._record.update(embeddedAt=self._now())
        return None

    def _behind(self, look: Look) -> str | None:
        if not self._territory.is_behind(look):
            return None
        pace = f": it looks at most every {self._options.debounce_s:.0f} s"
        return f"qmd has not seen the latest changes{pace if self._options.update_on_search else ''}"

    def _unknown(self, question: Question) -> str | None:
        known = self._surroundings.transcripts is not None
        if known or "sessions" not in (question.sources or self._surroundings.sources):
            return None
        return "qmd does not know your conversations, which are not searched; set `qmd.sessions.enabled`"

    def _locked(self) -> HeldLock | None:
        from plainmind.files.system import try_lock

        return try_lock(self._update_lock, operation="qmd update")

    def _failure(self, what: str, outcome: Outcome) -> BackendFailed:
        """Say how it ended, with the last line that it wrote for people. A damaged index is made anew next time."""
        if _DAMAGED.search(outcome.complaints):
            self._territory.delete_index()
        lines = [line.strip() for line in outcome.complaints.splitlines() if line.strip()]
        said = f": {printable(lines[-1][:200])}" if lines else ""
        return BackendFailed(f"`qmd {what}` ended with status {outcome.status}{said}")


def _left_out(look: Look) -> str | None:
    if not look.left_out:
        return None
    files = "1 file" if look.left_out == 1 else f"{look.left_out} files"
    return f"qmd does not read {files}, because of what a folder is called (`build`, `dist`, `vendor`, …)"


def open_qmd(surroundings: Surroundings) -> QmdBackend:
    """Make it, for a memory; nothing is started or written yet."""
    record = Record(os.path.join(surroundings.folder, "record.json"))
    return QmdBackend(surroundings, _options(surroundings), record)


def _options(surroundings: Surroundings) -> QmdOptions:
    """Translate its settings."""
    settings = surroundings.settings
    if settings is None:
        return QmdOptions()
    config, environ = settings.section(QmdConfig), surroundings.environ
    export = None
    if config.export_dir is not None:
        export = os.path.join(
            absolute(config.export_dir, home_folder(environ), environ),
            surroundings.agent_id,
            os.path.basename(surroundings.folder),
        )
    return QmdOptions(
        command=config.command,
        search_mode=config.search_mode,  # type: ignore[arg-type]
        include_default_memory=config.include_default_memory,
        export_folder=export,
        retention_days=config.retention_days,
        update_interval_s=config.update_interval_s,
        embed_interval_s=config.embed_interval_s,
        debounce_s=config.debounce_ms / 1000,
        update_on_boot=config.on_boot,
        update_on_search=settings.sync.on_search,
        command_timeout_s=config.command_timeout_ms / 1000,
        update_timeout_s=config.update_timeout_ms / 1000,
        embed_timeout_s=config.embed_timeout_ms / 1000,
    )


# --- what QMD prints becomes hits: of files that there are, that may be seen, and that still say so ---


_SCHEME = "qmd://"
_NOTHING = pattern(r"(?im)^\s*no results found")
_HEADER = pattern(r"@@ -(?P<first>\d{1,9})(?:,(?P<count>\d{1,9}))?[^\n]*\n?")
_LARGEST_LINE = 1_000_000_000
_MOST_BEGINNINGS = 64
_CUT_SHORT = "..."  # or a line that ends like that by itself: it begins so too
# An export begins with the name of the conversation and an empty line.
EXPORT_HEADER_LINES = 2


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


class Hits:
    """Makes hits for one question, of what there was at one look."""

    def __init__(self, question: Question, territory: Territory, look: Look, deadline: float) -> None:
        self._question = question
        self._territory = territory
        self._look = look
        self._deadline = deadline
        self._conversations = {path: found for path, found in look.copied.items() if self._may_be_seen(found)}
        self._folded: dict[str, list[FoundFile]] | None = None

    def of(self, answers: Iterable[Answer], asked: Sequence[Collection]) -> tuple[SearchHit, ...]:
        """The best hits, best first, each place once. Raises TookTooLong when there was no time for any."""
        by_name = {collection.name: collection for collection in asked}
        hits: dict[tuple[str, int, int], SearchHit] = {}
        for answer in sorted(answers, key=lambda answer: -answer.score):
            collection = by_name.get(answer.collection)
            if collection is None or answer.score < (self._question.min_score or 0.0):
                continue
            hit = self._hit(answer, collection)
            if hit is not None:
                hits.setdefault((hit.path, hit.start_line, hit.end_line), hit)
            if len(hits) == self._question.max_results:
                break
            if time.monotonic() > self._deadline:
                if not hits:
                    raise TookTooLong("there was no time left to read the files that it found")
                break
        return tuple(hits.values())

    def _hit(self, answer: Answer, collection: Collection) -> SearchHit | None:
        try:
            document = self._document(answer, collection)
        except PlainmindError:
            return None  # gone, or not to be read: its text cannot be vouched for
        if document is None:
            return None
        offset = EXPORT_HEADER_LINES if collection.source == "sessions" else 0
        hit = placed(answer, document, offset=offset, snippet_chars=self._question.snippet_chars)
        if hit is None or not self._question.explain:
            return hit
        return replace(hit, explanation=_explanation(answer, hit, self._question.query))

    def _document(self, answer: Answer, collection: Collection) -> Document | None:
        """The text that is meant, of a file that we have found ourselves: a path of QMD's is never opened."""
        if collection.source == "sessions":
            return self._territory.piece(os.path.join(collection.folder, answer.path), self._conversations)
        found = self._file(collection.cited + answer.path)
        return self._territory.workspace.read(found)[0] if found and self._may_be_seen(found) else None

    def _file(self, cited: str) -> FoundFile | None:
        exact = self._look.files.get(cited)
        if exact is not None:
            return exact
        if self._folded is None:
            self._folded = {}
            for path, file in self._look.files.items():
                self._folded.setdefault(folded(path), []).append(file)
        alike = self._folded.get(folded(cited), [])
        return alike[0] if len(alike) == 1 else None

    def _may_be_seen(self, found: FoundFile) -> bool:
        scopes = self._question.scopes
        return scopes == EVERY_SCOPE or found.scope in scopes


def _explanation(answer: Answer, hit: SearchHit, query: str) -> dict[str, object]:
    """As much as can be told: its score, and which terms of the question are in the lines."""
    from plainmind.text.terms import document_terms, query_terms

    matched = set(query_terms(query).terms) & set(document_terms(hit.snippet))
    return {"qmd": answer.score, "collection": answer.collection, "matched": sorted(matched)}
