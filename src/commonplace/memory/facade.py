"""One memory in one object: everything that a program, a tool or a command does goes through here."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from commonplace.errors import CommonplaceError, IndexCorrupt, LockTimeout, StorageFailure, WorkspaceError
from commonplace.indexing.scheduler import SharedSync
from commonplace.memory.conversations import Conversations, not_indexed
from commonplace.memory.wiring import Parts, wire
from commonplace.model import (
    EVERY_SCOPE,
    EXCERPT_LINES,
    Excerpt,
    ProgressCallback,
    SearchFilter,
    SearchResult,
    Source,
    SyncReport,
    known_sources,
)
from commonplace.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:  # a search needs none of these, and pays for none of them
    from datetime import date
    from types import TracebackType
    from typing import Any, Self

    from commonplace.files.history import Version
    from commonplace.memory.doctor import Check
    from commonplace.memory.exporting import ExportedFile
    from commonplace.memory.forgetting import Forgotten
    from commonplace.memory.spending import Confirm
    from commonplace.memory.status import Status
    from commonplace.search.engine import SearchEngine
    from commonplace.sources.discovery import FoundFile
    from commonplace.sources.notebook import Edited, Remembered


class Memory(Conversations):
    """The memory that lives in a workspace.

        with Memory("~/notes") as memory:
            memory.remember("the gateway moved to Hetzner")
            print(memory.search("where does the gateway run?").hits[0].snippet)

    `config` holds settings that win over the configuration files, such as `{"query": {"maxResults": 3}}`.
    Safe to share between threads; not between a process and its forks.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._take(
            wire(
                workspace=None if workspace is None else os.fspath(workspace),
                home=None if home is None else os.fspath(home),
                flags=config or {},
                environ=os.environ,
                cwd=os.getcwd(),
            )
        )

    @classmethod
    def of(cls, parts: Parts) -> Self:
        """A memory of parts that were wired by the caller, with sources that no setting names."""
        memory = cls.__new__(cls)
        memory._take(parts)  # noqa: SLF001 (its own)
        return memory

    def _take(self, parts: Parts) -> None:
        self.parts: Parts = parts
        self._sync = SharedSync(self._index)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def workspace(self) -> str:
        """The folder that holds the memory, absolute."""
        return self.parts.workspace.path

    def search(
        self,
        query: str,
        max_results: int | None = None,
        min_score: float | None = None,
        *,
        sources: Sequence[Source] | None = None,
        snippet_chars: int | None = None,
        explain: bool = False,
        today: date | None = None,
        progress: ProgressCallback | None = None,
    ) -> SearchResult:
        """Find the lines that answer a question. Sees every write that came before it.

        `max_results` and `min_score` are those of the settings (6 and 0.35) when they are left out.
        """
        if max_results is not None and max_results < 1:
            raise CommonplaceError(f"max_results is {max_results}", hint="ask for at least one hit")
        settings = self.parts.loaded.settings
        before = self._caught_up(progress) if settings.sync.on_search else SyncReport()

        def ask() -> SearchResult:
            return self._engine().search(
                query,
                where=SearchFilter(frozenset(known_sources(sources or settings.sources)), EVERY_SCOPE),
                today=today or self.parts.now().date(),
                max_results=max_results,
                min_score=min_score,
                snippet_chars=snippet_chars,
                explain=explain,
            )

        try:
            result = ask()
        except IndexCorrupt:
            # It is set aside by now, and all that it knew stands in the files.
            before = self._caught_up(progress)
            result = ask()
        return self._told(result, before, self._not_indexed(sources or ()))

    def get(
        self,
        path: str,
        *,
        first_line: int = 1,
        line_count: int | None = EXCERPT_LINES,
        max_chars: int | None = None,
    ) -> Excerpt:
        """Read lines of a memory file; `path` may be a citation such as `MEMORY.md#L3-L7`."""
        from commonplace.sources.excerpt import read_excerpt

        limits = {} if max_chars is None else {"max_chars": max_chars}
        return read_excerpt(
            self.parts.workspace, path, first_line=first_line, line_count=line_count, **limits
        )

    def list(self) -> tuple[FoundFile, ...]:
        """List the files of the memory."""
        self._require_workspace()
        return self.parts.workspace.discover().files

    def remember(self, text: str, *, durable: bool = False) -> Remembered:
        """Add a note to today's log, or with `durable` to the curated memory. On disk when this returns."""
        self._require_workspace()
        self._refuse_an_empty_mount_point()
        return self.parts.notebook.remember(text, durable=durable)

    def edit(
        self, path: str, old: str, new: str, *, base_hash: str | None = None, allow_shrink: bool = False
    ) -> Edited:
        """Replace a text that stands exactly once in a file. `history` and `restore` undo it."""
        return self.parts.notebook.edit(path, old, new, base_hash=base_hash, allow_shrink=allow_shrink)

    def forget(self, what: str | Forgotten, *, dry_run: bool = False) -> Forgotten:
        """Remove lines for good: from the files, the index, the cache and the history.

        `what` is a citation (`memory/2026-02-10.md#L3-L5`), the id of a note, or a text: then every line that
        contains it goes. With `dry_run` nothing is changed and the answer says what would go; given back as
        `what`, it is exactly that which goes, or nothing when the files have changed since.
        """
        from commonplace.memory.forgetting import Forgetting

        self._require_workspace()
        forgetting = Forgetting(self.parts)
        chosen = forgetting.select(what) if isinstance(what, str) else what
        return chosen if dry_run else forgetting.apply(chosen, self._sync_in_the_background)

    def history(self, path: str | None = None) -> Sequence[Version]:
        """List what was changed, newest first."""
        return self.parts.history.versions(path)

    def read_version(self, version_id: str) -> bytes:
        """What a file was in a version that `history` lists as available."""
        return self.parts.history.read(version_id)

    def keep_version(self, path: str, *, reason: str) -> str:
        """Keep what a file is now, before somebody edits it by other means; where it is on disk."""
        return self.parts.notebook.keep(path, reason=reason)

    def restore(self, version_id: str) -> Edited:
        """Bring an old version of a file back."""
        self._require_workspace()
        return self.parts.notebook.restore(version_id)

    def sync(
        self,
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
        wait: bool | None = None,
        confirm: Confirm | None = None,
    ) -> SyncReport:
        """Bring the index up to date; `force` makes it anew. Callers at the same time share one run.

        `wait` is for batch jobs of a provider, None as the settings say. `confirm` is shown what the sync is about to
        cost, and says whether to go on; without it, what costs more than `remote.confirmAboveUsd` is left undone.
        """
        self._require_workspace()
        wishes = {"wait": wait, "confirm": confirm} if wait is not None or confirm is not None else None
        return self._run_sync(force=force, progress=progress, wishes=wishes)

    def watch(self, stop: threading.Event) -> Iterator[SyncReport]:
        """Keep the index up to date until `stop` is set, yielding what each sync did."""
        self._require_workspace()
        return self._watched(stop)

    def _watched(self, stop: threading.Event) -> Iterator[SyncReport]:
        from commonplace.sources.watching import watch

        settings = self.parts.loaded.settings.sync
        told: str | None = None
        for hint in watch(
            self.parts.workspace.watched_paths(), debounce_ms=settings.watch_debounce_ms, stop=stop
        ):
            try:
                report = self._sync_in_the_background()
            except CommonplaceError as error:
                # A disk that was unmounted or a lock that is held now need not be so at the next look.
                report = SyncReport(degraded=(str(error),))
            reason = hint.reason if hint.cause == "polling" else None
            if reason is not None and reason != told:  # once, not with every look
                report = replace(report, degraded=(*report.degraded, reason))
            told = reason
            yield report

    def status(self, *, deep: bool = False) -> Status:
        """What is known, where it is kept, and what leaves this machine."""
        from commonplace.memory.status import status_of

        return status_of(self.parts, deep=deep)

    def doctor(self, *, verify: bool = False) -> Sequence[Check]:
        """Look for everything that could be wrong, and say what to do about it."""
        from commonplace.memory.doctor import examine

        return examine(self.parts, verify=verify)

    def export(self) -> Iterator[ExportedFile]:
        """Every file of the memory, with its text."""
        from commonplace.memory.exporting import exported_files

        self._require_workspace()
        return exported_files(self.parts.workspace)

    def close(self) -> None:
        """Let go of files and locks. Closing twice is fine."""
        self.parts.close()

    def _caught_up(self, progress: ProgressCallback | None) -> SyncReport:
        """Sync before a search."""
        try:
            return self._run_sync(progress=progress, thorough=False)
        except (LockTimeout, StorageFailure, WorkspaceError) as error:
            if not self._has_index():
                raise
            # Yesterday's index answers better than nothing, as long as it says so.
            return SyncReport(degraded=(f"the latest changes may be missing: {error}",))

    def _engine(self) -> SearchEngine:
        """What answers questions: with the embedder that the index was made with, or none."""
        if self.parts.providers is None:
            return self.parts.engine
        from commonplace.memory.answering import engine_for

        return engine_for(self.parts, self.parts.providers)

    def _told(self, result: SearchResult, before: SyncReport, missing: tuple[str, ...]) -> SearchResult:
        """Add to an answer what was not consulted, and what the sync before it had to say."""
        degraded = (*result.degraded, *notes_of(before), *missing)
        if degraded or before.notes:
            result = replace(result, degraded=degraded, notes=before.notes)
        if self.parts.providers is None:
            return result
        from commonplace.memory.answering import with_fallback

        return with_fallback(result, before, self.parts, self.parts.providers)

    def _not_indexed(self, asked_for: Sequence[Source]) -> tuple[str, ...]:
        """Say that a source that was asked for, and no other, has nothing in the index."""
        if not asked_for or self.parts.workspace.source in asked_for:
            return ()
        with self.parts.store.reading() as reader:
            counts = reader.counts().files
        missing = (source for source in asked_for if not counts.get(source))
        return tuple(not_indexed(source, self.parts.loaded.settings.sources) for source in missing)

    def _sync_in_the_background(self) -> SyncReport:
        self._require_workspace()
        return self._run_sync(wishes={"initiative": "background"})

    def _run_sync(
        self,
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
        thorough: bool = True,
        wishes: Mapping[str, Any] | None = None,
    ) -> SyncReport:
        """Sync, once for all who wait for it at the same time; whoever has wishes about it gets a run of their own."""
        from commonplace.indexing.indexer import NO_INDEX_YET

        if self._refusal_of_workspace() is not None and not self._has_index():
            self._require_workspace()
        sync = None if wishes is None else partial(self._index, wishes=wishes)
        try:
            report = self._sync.run(force=force, progress=progress, thorough=thorough, sync=sync)
        except IndexCorrupt:
            # The damaged one is set aside by now.
            report = self._sync.run(force=force, progress=progress, sync=sync)
        damage = self._damage() if report.rebuilt == NO_INDEX_YET else None
        return replace(report, degraded=(*report.degraded, damage)) if damage else report

    def _index(
        self,
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
        thorough: bool = True,
        wishes: Mapping[str, Any] | None = None,
    ) -> SyncReport:
        parts = self.parts
        if parts.providers is None:
            return parts.indexer.sync(force=force, progress=progress, thorough=thorough)
        from commonplace.memory.syncing import Asked, sync_with

        plainly = {"initiative": "asked" if thorough else "search"}
        asked = Asked(force=force, progress=progress, thorough=thorough, **(plainly | dict(wishes or {})))
        return sync_with(parts, parts.providers, asked)

    def _damage(self) -> str | None:
        """Say that there was an index, which had to be set aside."""
        recovered = self.parts.store.describe().get("recovered")
        return (
            f"the index was damaged and has been made anew from your files ({recovered})"
            if recovered
            else None
        )

    def _refusal_of_workspace(self) -> OSError | None:
        """Why the workspace cannot be looked at."""
        try:
            os.close(self.parts.workspace.root.open_folder())
        except OSError as error:
            return error
        return None

    def _has_index(self) -> bool:
        with self.parts.store.reading() as reader:
            return bool(reader.files())

    def _refuse_an_empty_mount_point(self) -> None:
        """Keep a note from landing beneath the disk that the memory is on, where nobody would find it again."""
        if self.parts.workspace.discover().files:
            return
        with self.parts.store.reading() as reader:
            known = len(reader.files())
        if known:
            raise WorkspaceError(
                f"`{self.workspace}` is empty, but the index knows {known} files of it: its disk may not be mounted",
                hint="mount it; or, if the files are gone on purpose, run `commonplace sync --force`",
            )

    def _require_workspace(self) -> None:
        refusal, path = self._refusal_of_workspace(), self.parts.workspace.path
        if refusal is None:
            return
        if not isinstance(refusal, FileNotFoundError | NotADirectoryError):
            raise WorkspaceError(
                f"the workspace `{path}` cannot be read: {refusal.strerror}",
                hint="check its permissions and its disk, or name another with --workspace",
            ) from refusal
        raise WorkspaceError(
            f"there is no workspace at `{path}`",
            hint=f"`commonplace init {path}` creates one; or mount its disk, or name another with --workspace",
        )


def notes_of(report: SyncReport) -> tuple[str, ...]:
    """What a person should know about the sync behind an answer."""
    notes = list(report.degraded)
    notes += [f"not indexed: {failure.path}: {failure.reason}" for failure in report.failed]
    if report.withheld:
        notes.append(
            f"{len(report.withheld)} {'file is' if len(report.withheld) == 1 else 'files are'} missing on disk and"
            " still answered from the index, until it is sure that nothing is only unmounted"
        )
    return tuple(notes)
