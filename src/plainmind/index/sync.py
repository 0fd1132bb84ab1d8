"""Brings the index up to date with the files: reads what changed, embeds it, and writes it file by file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress

from plainmind.base.errors import ConflictError, LockTimeout
from plainmind.base.lazy import Lock, parse_json
from plainmind.base.model import (
    FileFailure,
    IndexFingerprint,
    Progress,
    ProgressCallback,
    Source,
    SyncReport,
)
from plainmind.base.value import replace
from plainmind.files.system import (
    SYSTEM,
    Erasures,
    explain_errors,
    hold_lock,
    make_folders,
    read_file,
    try_lock,
)
from plainmind.index.plan import (
    UNCONDITIONALLY,
    Agreement,
    ChunkingSettings,
    Comparison,
    Conditions,
    Disappearance,
    Left,
    Run,
    Settled,
    SyncPlan,
    Tally,
    looks_unmounted,
    plan_removal,
    plan_sync,
)
from plainmind.notes.discovery import FoundFile
from plainmind.text.terms import TERMS_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from types import TracebackType
    from typing import Any

    from plainmind.embed.protocol import Embedder
    from plainmind.index.changed_files import FileReader
    from plainmind.index.chunks import Preparation
    from plainmind.index.protocol import IndexReader, IndexStore
    from plainmind.notes.source import TextSource
    from plainmind.notes.watcher import Since


REMOVED = "removed.json"  # beside the index as long as words of what was taken out may stand in its bytes


class Disappearances:
    """One small file beside the index."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "missing.json")

    def read(self, source: Source) -> Disappearance | None:
        """What was missing at the last look; None also when the note about it cannot be read."""
        entry = self._entries().get(source)
        with suppress(KeyError, TypeError, ValueError):
            if entry is not None:
                return Disappearance(frozenset(map(str, entry["paths"])), float(entry["seenAt"]))
        return None

    def write(self, source: Source, disappearance: Disappearance | None) -> None:
        """Remember for the next look; None forgets."""
        entries = self._entries()
        if disappearance is None:
            if entries.pop(source, None) is None:
                return
        else:
            entries[source] = {"paths": sorted(disappearance.paths), "seenAt": disappearance.seen_at}
        import json

        from plainmind.files.atomic import write_atomically

        write_atomically(self._path, json.dumps(entries).encode())

    def _entries(self) -> dict[str, Any]:
        entries = None
        lost = suppress(FileNotFoundError, ValueError)  # which only starts the minute of grace anew
        with explain_errors("read", self._path, outcome="nothing was indexed"), lost:
            entries = parse_json(read_file(self._path).decode())
        return entries if isinstance(entries, dict) else {}


# Nobody waits for longer than this: a process that was stopped may hold an index for ever. Then another one is
# made beside it.
_LONGEST_BUILD_S = 30.0
_TOLD_EVERY_S = 0.25


@contextmanager
def one_builder(folder: str, progress: ProgressCallback | None) -> Iterator[bool]:
    """Let one process at a time make the whole index of a folder; tells whether another one was waited for."""
    path, operation = os.path.join(folder, "build.lock"), "make the index"
    with ExitStack() as until_built:
        with explain_errors("make", folder):
            make_folders(SYSTEM, folder)
        held = try_lock(path, operation=operation)
        has_to_wait = held is None
        last = time.monotonic() + _LONGEST_BUILD_S
        while held is None and time.monotonic() < last:
            if progress is not None:
                progress(Progress(0, 0, "another process is making the index"))
            with suppress(LockTimeout):
                held = until_built.enter_context(
                    hold_lock(path, operation=operation, timeout_s=_TOLD_EVERY_S)
                )
        if held is not None and not has_to_wait:
            until_built.callback(held.release)
        yield has_to_wait


def anyone_builds(_progress: ProgressCallback | None) -> AbstractContextManager[None]:
    """What stands for `one_builder` where no other process knows the index."""
    return nullcontext()


class OpenView:
    """A view of the index that a sync has left open, because nothing was to be done: a search reads the same one."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._reader: IndexReader | None = None

    def hold(self, held: ExitStack, reader: IndexReader) -> None:
        """Take over a view, and with it when it is closed."""
        self._held, self._reader = held.pop_all(), reader

    def __bool__(self) -> bool:
        return self._reader is not None

    def __enter__(self) -> IndexReader:
        assert self._reader is not None
        return self._reader

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._reader = None
        return self._held.__exit__(kind, error, trace)

    def close(self) -> None:
        """Let go of it; closing twice is fine."""
        self._reader = None
        self._held.close()


class Turn:
    """One caller's part of a shared sync: the report, at once or when the caller has made it."""

    __slots__ = ("report",)

    def __init__(self, report: SyncReport | None = None) -> None:
        self.report = report


class SharedSync:
    """Lets threads share a sync.

    A caller must see its own writes, so a run that began before the call does not count: it may have passed the
    file already. The first to get the lock runs; the others who were waiting by then take that run's report.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._guard = Lock()
        self._arrived = 0
        self._served = 0  # every caller up to this number arrived before the last run began
        self._was_thorough = True
        self._report = SyncReport()

    @contextmanager
    def turn(self, *, thorough: bool = True, alone: bool = False) -> Iterator[Turn]:
        """Wait for a turn: it has the report of a run that began after this call and was as thorough as asked for.

        Or it has none: then the caller runs, and gives its report to those who wait. Who wants to run `alone` always
        does; others who wait may share it.
        """
        with self._guard:
            self._arrived += 1
            mine = self._arrived
        with self._lock:
            if self._served >= mine and not alone and self._was_thorough >= thorough:
                yield Turn(self._report)
                return
            with self._guard:
                covers = self._arrived
            turn = Turn()
            yield turn
            # Only a run that succeeded counts for those who waited: after a failure each tries for itself.
            if turn.report is not None:
                self._report, self._served, self._was_thorough = turn.report, covers, thorough


SCHEMA_VERSION = 4
NO_INDEX_YET = "there is no index yet"
# How often a file is read anew in one sync when text keeps being erased from it.
MOST_TRIES = 10


class Indexer:
    """Keeps one index equal to what its sources hold."""

    def __init__(
        self,
        sources: Sequence[TextSource],
        store: IndexStore,
        embedder: Embedder,
        chunking: ChunkingSettings,
        disappearances: Disappearances,
        *,
        erasures: Erasures,
        private: frozenset[Source] = frozenset(),
        clock: Callable[[], float] = time.time,
        on_taken_out: Callable[[], None] = lambda: None,
        building: Callable[[ProgressCallback | None], AbstractContextManager[bool | None]] = anyone_builds,
    ) -> None:
        """`private` sources are not embedded where text is sent away: words alone find what they say.

        `building` is held while a whole index is made: it tells whether another process may have made one meanwhile.
        `on_taken_out` is called after a sync that has taken text out: words of it stay in bytes of the index.
        """
        self._sources = tuple(sources)
        self._store = store
        self._embedder = embedder
        self._chunking = chunking
        self._preparation: Preparation | None = None
        self._disappearances = disappearances
        self._erasures = erasures
        self._private = private
        self._clock = clock
        self._on_taken_out = on_taken_out
        self._building = building
        self._settled = Settled(self._sources)

    @property
    def fingerprint(self) -> IndexFingerprint:
        """How an index made now would be made."""
        return IndexFingerprint(
            embedder=self._embedder.identity,
            chunking=", ".join((self._chunking.fingerprint, *(f"{name} by words" for name in self.withheld))),
            keywords=TERMS_VERSION,
            schema=SCHEMA_VERSION,
        )

    @property
    def withheld(self) -> list[Source]:
        """The sources whose text is not embedded, because it would leave this machine."""
        if not self._private or self._embedder.sends_text_to is None:
            return []
        return sorted(self._private.intersection(source.source for source in self._sources))

    def rebuild_reason(self) -> str | None:
        """Why the index would have to be made anew, None when it can be kept."""
        with self._store.reading() as reader:
            return self._reason(reader.fingerprint(), UNCONDITIONALLY)

    def _reason(self, made: IndexFingerprint | None, conditions: Conditions) -> str | None:
        if made is None:
            return NO_INDEX_YET
        return None if conditions.rebuilding == "never" else made.difference(self.fingerprint)

    def sync(
        self,
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
        thorough: bool = True,
        conditions: Conditions = UNCONDITIONALLY,
        view: OpenView | None = None,
    ) -> SyncReport:
        """Index what changed. `force` makes the whole index anew and takes missing files as deleted.

        Unless `thorough`, files that the system has reported no change of are not looked at. `view` is given the view
        that has shown that nothing is to be done. Raises RebuildGivenUp.
        """
        started = time.perf_counter()
        rebuilt = None
        tally = None if thorough or force else self._catch_up(progress, conditions, view)
        if tally is None:
            tally = Tally(progress)
            made, found = self._look_at_everything(tally, conditions, view, force=force)
            if isinstance(found, str):
                with self._building(progress) as has_waited:
                    if has_waited and not force:
                        made, found = self._look_at_everything(tally, conditions, view, force=False)
                    if isinstance(found, str):
                        rebuilt = found
                        is_whole = made is not None and conditions.rebuilding == "whole"
                        self._rebuild(rebuilt, tally, conditions, is_whole=is_whole)
            if not isinstance(found, str):
                try:
                    self._bring_up_to_date(
                        self._store, found, tally, conditions, made=made or self.fingerprint
                    )
                except ConflictError as error:
                    # Another process has just rebuilt the index with other settings: its vectors do not mix with ours.
                    tally.degraded[f"the index was left as it is: {error}"] = None
        if tally.has_taken_out:
            self._on_taken_out()
        return tally.report(rebuilt=rebuilt, seconds=time.perf_counter() - started)

    def _catch_up(
        self, progress: ProgressCallback | None, conditions: Conditions, view: OpenView | None
    ) -> Tally | None:
        """Index the few files that are reported to have changed; None when everything must be looked at."""
        if not self._settled.is_known:
            return None
        with ExitStack() as open_views:
            reader = open_views.enter_context(self._store.reading())
            made = reader.fingerprint()
            found = None if self._reason(made, conditions) else self._settled.changes_since(reader.revision())
            if found is None or made is None:
                return None
            agreement, changes = found
            has_changed = any(since.files for since in changes)
            if view is not None and not has_changed:
                view.hold(open_views, reader)
        tally = Tally(progress, unchanged=len(agreement.known))
        if has_changed:
            run = Run(self._store, made, agreement.known, tally, conditions)
            try:
                for source, since in zip(self._sources, changes, strict=True):
                    if not self._index_changed(run, source, since):
                        return None
            except ConflictError:
                return None
        self._settled.settle(replace(agreement, moments=tuple(since.moment for since in changes)), tally)
        return tally

    def _look_at_everything(
        self, tally: Tally, conditions: Conditions, view: OpenView | None, *, force: bool
    ) -> tuple[IndexFingerprint | None, Comparison | str]:
        """How the index was made, and in what all files differ from it, or why it has to be made anew."""
        with ExitStack() as open_views:
            reader = open_views.enter_context(self._store.reading())
            made = reader.fingerprint()
            reason = "asked for" if force else self._reason(made, conditions)
            if reason is not None and not force and self._looks_unmounted(reader):
                tally.degraded[
                    f"the index is out of date ({reason}) and its files are not there to make it anew"
                ] = None
                reason = None
            if reason is None:
                compared = self._compare(reader)
                if view is not None and not compared.has_work:
                    view.hold(open_views, reader)
                return made, compared
        self._settled.forget()
        return made, reason

    def _index_changed(self, run: Run, source: TextSource, since: Since) -> bool:
        """Index files that have changed, also those that look the same; False when all must be looked at.

        So it is when a file came or went: whether it counts, or many went at once, depends on the others.
        """
        changed: list[FoundFile] = []
        for path in sorted(since.files):
            found = source.look_at(path) if (source.source, path) in run.known else None
            if found is None:
                return False
            changed.append(found)
        run.tally.total += len(changed)
        run.tally.unchanged -= len(changed)
        return not self._index(run, source, changed)

    def _rebuild(self, reason: str, tally: Tally, conditions: Conditions, *, is_whole: bool) -> None:
        wanted = self.fingerprint

        def fill(store: IndexStore, into: Tally, *, is_whole: bool = False) -> None:
            with store.reading() as reader:
                compared = self._compare(reader, is_fresh=True)
            self._bring_up_to_date(
                store, compared, into, conditions, made=wanted, is_whole=is_whole, is_fresh=True
            )

        def catch_up(fresh: IndexStore) -> None:
            """Bring over what changed while the new index was made, now that no other process can index it."""
            later = tally.follow_up()
            fill(fresh, later)
            tally.take_over(later)

        rebuilding = self._store.rebuild(wanted, reason=reason, catch_up=catch_up)
        with ExitStack() as until_published, rebuilding as fresh:
            fill(fresh, tally, is_whole=is_whole)
            # Before the store's own lock, as everywhere where both are taken: erasing comes first.
            until_published.enter_context(self._erasures.hold_off())

    def _looks_unmounted(self, reader: IndexReader) -> bool:
        """Whether so much is missing that a rebuild would lose what only the index still knows."""
        known = reader.files()
        return any(
            looks_unmounted(plan_sync(source.discover(), known, source.source)) for source in self._sources
        )

    def _compare(self, reader: IndexReader, *, is_fresh: bool = False) -> Comparison:
        """Look at all files, and tell in what they differ from the index."""
        revision = reader.revision()
        known = None if is_fresh else self._settled.known_at(revision)
        if known is None:
            known = reader.files()
        # Until it is certain that they agree again: what a source has told by then it does not tell twice.
        self._settled.forget()
        looks = []
        for source in self._sources:
            found = source.discover()
            looks.append((source, found, plan_sync(found, known, source.source)))
        return Comparison(revision, known, tuple(looks))

    def _bring_up_to_date(
        self,
        store: IndexStore,
        compared: Comparison,
        tally: Tally,
        conditions: Conditions,
        *,
        made: IndexFingerprint,
        is_whole: bool = False,
        is_fresh: bool = False,
    ) -> None:
        run = Run(store, made, compared.known, tally, conditions, is_whole, is_fresh)
        moments: list[int | None] = []
        for source, found, plan in compared.sources:
            tally.skipped += found.skipped
            tally.unchanged += plan.unchanged
            tally.total += len(plan.to_read)
            self._remove(run, source, plan, confirmed=is_fresh)
            left = self._index(run, source, plan.to_read)
            moments.append(None if left else found.moment)
            self._index_left(run, source, left)
        if not is_fresh:
            self._settled.settle(Agreement(compared.revision, run.known, tuple(moments)), tally)

    def _index_left(self, run: Run, source: TextSource, left: Mapping[str, Left]) -> None:
        """Read files anew that another process has indexed, or erased from, since they were read."""
        if not left:
            return
        again: AbstractSet[str] = left.keys()
        for _ in range(MOST_TRIES):
            if not again:
                break
            with run.store.reading() as reader:
                run = replace(run, known=reader.files())
            files = [found for found in source.discover().files if found.path in again]
            run.tally.total += len(files)
            left = self._index(run, source, files)
            # A process that overtakes us a second time has looked into the index after we did, and read the file
            # after that: what it wrote holds all that stood in it when this sync began. Unless it was only a piece.
            again = {path for path, why in left.items() if why == "erased" or source.growing is not None}
        for path in sorted(again):
            if left[path] == "erased":
                reason = "text keeps being erased from it; the next sync tries again"
                run.tally.failed.append(FileFailure(path, reason))
            else:
                run.tally.degraded[f"another process is still indexing {path}"] = None

    def _remove(self, run: Run, source: TextSource, plan: SyncPlan, *, confirmed: bool) -> None:
        seen_before = self._disappearances.read(source.source)
        removal = plan_removal(
            plan.missing,
            known_count=plan.known,
            seen_before=seen_before,
            at=self._clock(),
            confirmed=confirmed,
            is_surely_gone=source.is_surely_gone,
        )
        for path in removal.now:
            run.store.remove_file(source.source, path)
            run.tally.removed.append(path)
            run.tally.has_taken_out = True
            run.tally.wrote((source.source, path), None)
        if removal.remember != seen_before:
            self._disappearances.write(source.source, removal.remember)
        run.tally.withheld += (*removal.withheld, *plan.hidden)

    def _index(self, run: Run, source: TextSource, files: Sequence[FoundFile]) -> dict[str, Left]:
        """Read, embed and write files; those that could not be written are left, each with the reason."""
        if not files:
            return {}
        left: dict[str, Left] = {}
        for some, is_patient in self._by_patience(run, source, files):
            from plainmind.index.changed_files import (
                FileWriter,
                pending_bytes,  # not for a search that finds all as it was
            )
            from plainmind.index.sync_process import batches, preparer_for

            size = sum(pending_bytes(found, run.known.get((source.source, found.path))) for found in some)
            preparation = self._preparation_of(run, source, some, size, is_patient=is_patient)
            reader = self._reader(run, source, by_words=is_patient or preparation.is_refused)
            writer = FileWriter(run, self._erasures, is_patient=is_patient)
            preparer = preparer_for(
                preparation, total_bytes=size, tell=lambda why: run.tally.degraded.setdefault(why, None)
            )
            with closing(preparer):  # at once when writing fails, for a second process may be at work
                for batch in batches(reader.read_changed(some), preparation):
                    writer.write(preparer.add(batch))
                writer.write(preparer.finish())
            left |= writer.left
        return left

    def _by_patience(
        self, run: Run, source: TextSource, files: Sequence[FoundFile]
    ) -> list[tuple[Sequence[FoundFile], bool]]:
        """Which files are to be indexed with all they should have, and which by words for now: those with True."""
        from plainmind.index.changed_files import is_due

        grows = source.growing
        patience = run.conditions.patience
        if grows is None or patience is None or run.is_fresh:
            return [(files, False)]
        costs = self._embedder.sends_text_to is not None and source.source not in self.withheld
        if patience.meanwhile == "words" and not costs:
            return [(files, False)]
        due: list[FoundFile] = []
        early: list[FoundFile] = []
        for found in files:
            known = run.known.get((source.source, found.path))
            (due if is_due(grows, found, known, patience, self._clock) else early).append(found)
        if patience.meanwhile == "words":
            return [(some, is_patient) for some, is_patient in ((due, False), (early, True)) if some]
        run.tally.waiting += [found.path for found in early]
        run.tally.unchanged += len(early)
        for found in early:
            run.tally.step(found.path)
        return [(due, False)] if due else []

    def _reader(self, run: Run, source: TextSource, *, by_words: bool = False) -> FileReader:
        from plainmind.index.changed_files import FileReader

        return FileReader(run, source, erasures=self._erasures, clock=self._clock, by_words=by_words)

    def _preparation_of(
        self, run: Run, source: TextSource, files: Sequence[FoundFile], size: int, *, is_patient: bool
    ) -> Preparation:
        """What prepares these files: with vectors, unless they are private or the cost is refused."""
        from plainmind.index.chunks import Preparation

        if is_patient or source.source in self.withheld:
            return Preparation.without_vectors(self._chunking)
        if self._preparation is None or self._preparation.identity != self._embedder.identity:
            self._preparation = Preparation(self._chunking, self._embedder)
        ask = run.conditions.before_embedding
        if ask is None or self._preparation.is_refused:
            return self._preparation
        refusal = ask(size, lambda: self._reader(run, source).texts(files, self._chunking))
        return self._preparation if refusal is None else self._preparation.refuse(refusal)
