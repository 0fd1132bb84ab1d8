"""Keeping the index up to date: before a search, in the background, or because somebody asked for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from plainmind.base.errors import IndexCorrupt, LockTimeout, PlainmindError, StorageFailure, WorkspaceError
from plainmind.base.model import ProgressCallback, SyncReport
from plainmind.base.value import replace
from plainmind.index.plan import Conditions, Patience
from plainmind.index.sync import SharedSync
from plainmind.memory.presence import has_index, refusal_of_workspace, require_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event
    from typing import Any

    from plainmind.index.plan import Meanwhile
    from plainmind.index.sync import OpenView
    from plainmind.memory.spending import Initiative
    from plainmind.memory.wiring import Parts


class Freshness:
    """Syncs the index of one memory; callers at the same time share one run."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._shared = SharedSync(self._index)

    def caught_up(self, progress: ProgressCallback | None, view: OpenView | None = None) -> SyncReport:
        """Sync before a search, which may go on with the `view` that has shown that nothing is to be done."""
        try:
            return self.sync(progress=progress, thorough=False, view=view)
        except (LockTimeout, StorageFailure, WorkspaceError) as error:
            if not has_index(self._parts):
                raise
            # Yesterday's index answers better than nothing, as long as it says so.
            return SyncReport(degraded=(f"the latest changes may be missing: {error}",))

    def in_the_background(self) -> SyncReport:
        """Sync when nobody waits for it."""
        require_workspace(self._parts)
        return self.sync(wishes={"initiative": "background"})

    def sync(
        self,
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
        thorough: bool = True,
        wishes: Mapping[str, Any] | None = None,
        view: OpenView | None = None,
    ) -> SyncReport:
        """Sync, once for all who wait for it at the same time; whoever has wishes about it gets a run of their own."""
        from plainmind.index.sync import NO_INDEX_YET

        if refusal_of_workspace(self._parts) is not None and not has_index(self._parts):
            require_workspace(self._parts)
        sync = None if wishes is None else partial(self._index, wishes=wishes)
        try:
            report = self._shared.run(force=force, progress=progress, thorough=thorough, sync=sync, view=view)
        except IndexCorrupt:
            # The damaged one is set aside by now.
            report = self._shared.run(force=force, progress=progress, sync=sync)
        damage = self._damage() if report.rebuilt == NO_INDEX_YET else None
        report = replace(report, degraded=(*report.degraded, damage)) if damage else report
        # An engine takes long: it catches up when somebody asked for that, or in a thread of its own.
        is_asked = thorough and (wishes or {}).get("initiative", "asked") == "asked"
        backend = self._parts.backend if is_asked else None
        return report if backend is None else _both(report, backend.sync("asked", force=force))

    def watched(self, stop: Event) -> Iterator[SyncReport]:
        """Sync after every change until `stop` is set, yielding what each sync did."""
        from plainmind.notes.watcher import watch

        settings = self._parts.loaded.settings.sync
        paths = self._parts.workspace.watched_paths()
        told: str | None = None
        backend = self._parts.backend
        if backend is not None:
            backend.upkeep.begin()
        talks = self._parts.places.sessions if "sessions" in self._parts.loaded.settings.sources else None
        for hint in watch(paths, debounce_ms=settings.watch_debounce_ms, stop=stop, transcripts=talks):
            try:
                report = self.in_the_background()
            except PlainmindError as error:
                # A disk that was unmounted or a lock that is held now need not be so at the next look.
                report = SyncReport(degraded=(str(error),))
            reason = hint.reason if hint.cause == "polling" else None
            if reason is not None and reason != told:  # once, not with every look
                report = replace(report, degraded=(*report.degraded, reason))
            told = reason
            if backend is not None:
                backend.upkeep.notice()
            yield report

    def _index(
        self,
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
        thorough: bool = True,
        wishes: Mapping[str, Any] | None = None,
        view: OpenView | None = None,
    ) -> SyncReport:
        parts = self._parts
        plainly = {"initiative": "asked" if thorough else "search"}
        wishes = plainly | dict(wishes or {})
        patience = patience_of(parts, wishes["initiative"])
        if parts.providers is None:
            conditions = Conditions(patience=patience)
            return parts.indexer.sync(
                force=force, progress=progress, thorough=thorough, conditions=conditions, view=view
            )
        from plainmind.memory.syncing import Asked, sync_with

        asked = Asked(force=force, progress=progress, thorough=thorough, patience=patience, **wishes)
        return sync_with(parts, parts.providers, asked)

    def _damage(self) -> str | None:
        """Say that there was an index, which had to be set aside."""
        recovered = self._parts.store.describe().get("recovered")
        return (
            f"the index was damaged and has been made anew from your files ({recovered})"
            if recovered
            else None
        )


def patience_of(parts: Parts, initiative: Initiative) -> Patience | None:
    """How much more must be said in a conversation before it is indexed; whoever asks for a sync waits for nothing.

    A search finds all that was said. Where vectors cost money it finds the newest by its words, until it is due.
    """
    settings = parts.loaded.settings
    if initiative == "asked" or "sessions" not in settings.sources:
        return None
    deltas = settings.sync.sessions
    meanwhile: Meanwhile = "words" if initiative == "search" else "left"
    return Patience(meanwhile, deltas.delta_bytes, deltas.delta_messages)


def _both(index: SyncReport, engine: SyncReport) -> SyncReport:
    """What the index did, with what there is to say about the engine beside it."""
    return replace(
        index,
        degraded=(*index.degraded, *engine.degraded),
        notes=(*index.notes, *engine.notes),
        seconds=index.seconds + engine.seconds,
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
