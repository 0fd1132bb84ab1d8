"""What a sync has done so far, and the report that becomes of it."""

from __future__ import annotations

from plainmind.base.model import FileFailure, FileState, Progress, ProgressCallback, Source, SyncReport
from plainmind.base.value import field, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

FileKey: TypeAlias = "tuple[Source, str]"


@record
class Tally:
    """Counts while a sync goes on."""

    progress: ProgressCallback | None
    total: int = 0
    seen: int = 0
    indexed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    unchanged: int = 0
    skipped: list[FileFailure] = field(default_factory=list)
    failed: list[FileFailure] = field(default_factory=list)
    unreadable: list[FileFailure] = field(default_factory=list)  # lines of files that were indexed otherwise
    waiting: list[str] = field(default_factory=list)  # files of which more is there, and not due yet
    degraded: dict[str, None] = field(default_factory=dict)  # in order, each reason once
    chunks: int = 0
    # What was changed in the index: the new state of a file, None when it was dropped; and in how many changes.
    written: dict[FileKey, FileState | None] = field(default_factory=dict)
    changes: int = 0
    # The hash of what went in without vectors, because the provider failed.
    without_vectors: dict[FileKey, str] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left for the next sync to try again."""
        return not (self.failed or self.withheld or self.waiting or self.degraded or self.without_vectors)

    def wrote(self, key: FileKey, state: FileState | None) -> None:
        """Note a change of the index."""
        self.written[key] = state
        self.changes += 1

    def step(self, path: str) -> None:
        """Tell that one more file is done with."""
        self.seen += 1
        if self.progress is not None:
            self.progress(Progress(self.seen, self.total, path))

    def after(self, known: Mapping[FileKey, FileState]) -> Mapping[FileKey, FileState]:
        """What the index holds when it held `known` before, and nobody else has changed it."""
        if not self.written:
            return known
        states = {**known, **self.written}
        return {key: state for key, state in states.items() if state is not None}

    def follow_up(self) -> Tally:
        """A tally for a second look, which does not ask the provider again for what it has just refused."""
        return Tally(None, without_vectors=self.without_vectors)

    def take_over(self, later: Tally) -> None:
        """Add what a second look at all files found; what could not be read then is what cannot be read now."""
        gone = set(later.removed)
        self.indexed = [path for path in dict.fromkeys(self.indexed + later.indexed) if path not in gone]
        self.skipped, self.failed = later.skipped, later.failed
        self.unreadable += later.unreadable
        self.degraded |= later.degraded
        self.chunks += later.chunks

    def report(self, *, rebuilt: str | None, seconds: float) -> SyncReport:
        """Say what was done."""
        return SyncReport(
            indexed=tuple(self.indexed),
            removed=tuple(self.removed),
            unchanged=self.unchanged,
            skipped=(*self.skipped, *self.unreadable),
            failed=tuple(self.failed),
            chunks=self.chunks,
            rebuilt=rebuilt,
            withheld=tuple(self.withheld),
            degraded=tuple(self.degraded),
            seconds=round(seconds, 3),
        )
