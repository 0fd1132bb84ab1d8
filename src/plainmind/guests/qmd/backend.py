"""QMD as an engine of the memory: told what to index, brought up to date, asked, and never trusted with a path."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from plainmind.base.lazy import pattern
from plainmind.base.model import SOURCES, FileFailure, Mode, SearchResult, SyncReport
from plainmind.config.load import absolute, home_folder
from plainmind.files.safe_open import printable
from plainmind.guests.qmd.answers import Hits, read_answers
from plainmind.guests.qmd.collections import askable
from plainmind.guests.qmd.config import QmdConfig
from plainmind.guests.qmd.options import (
    QmdOptions,
    Wanted,
    embedding_is_due,
    seconds_until_due,
    update_is_due,
)
from plainmind.guests.qmd.program import Outcome, Program, TookTooLong, in_one_line, search_arguments
from plainmind.guests.qmd.territory import Look, Territory
from plainmind.memory.backend import (
    BackendBusy,
    BackendFailed,
    Initiative,
    Question,
    Record,
    Surroundings,
)

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
