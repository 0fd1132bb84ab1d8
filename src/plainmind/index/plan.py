"""Decide what a sync has to do, by comparing disk and index; the disk is always right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import (
    FileFailure,
    FileState,
    IndexFingerprint,
    Progress,
    ProgressCallback,
    Source,
    SyncReport,
)
from plainmind.base.value import field, record, value
from plainmind.notes.discovery import AS_IT_IS, Discovery, FoundFile, reading_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from plainmind.index.protocol import IndexStore
    from plainmind.notes.source import TextSource
    from plainmind.notes.watcher import Since

FileKey: TypeAlias = "tuple[Source, str]"
Revision: TypeAlias = "tuple[int, int]"
Strategy: TypeAlias = "Literal['markdown', 'lines']"

# Where an index must be made anew: do it; do it, but not with fewer vectors than the old one has; leave the old one.
Rebuilding: TypeAlias = "Literal['freely', 'whole', 'never']"
# Hears how many bytes are about to be embedded, and can have the texts read; says why they must not be, or None.
BeforeEmbedding: TypeAlias = "Callable[[int, Callable[[], Iterator[str]]], str | None]"

# What becomes of a little more in a transcript: it waits, or is found by words until there is more.
Meanwhile: TypeAlias = "Literal['left', 'words']"

# In front of the hash of a file whose vectors could not be had: the next sync tries again.
WITHOUT_VECTORS = "without-vectors:"

# Files written this shortly before they were read may change again without a new time stamp.
RACY_NS = 2_000_000_000
NEVER = -1

# Losing more than this at once looks like an unmounted disk rather than like tidying up.
SUSPICIOUS_SHARE = 0.2
SUSPICIOUS_COUNT = 3
CONFIRM_AFTER_S = 60.0

# Nothing was said for so long: what is there will not be much more soon.
QUIET_NS = 600 * 1_000_000_000

# Why a file was not written: another process was quicker, or text was erased from it.
Left: TypeAlias = "Literal['overtaken', 'erased']"


@value
class ChunkingSettings:
    """How documents are cut."""

    strategy: Strategy = "markdown"
    tokens: int = 400
    overlap: int = 80  # only "lines" repeats text

    @property
    def text_tokens(self) -> int:
        """How much of a chunk is text: an eighth is left for the headings that are embedded with it."""
        return max(8, self.tokens * 7 // 8) if self.strategy == "markdown" else self.tokens

    @property
    def fingerprint(self) -> str:
        """What an index made with these settings is known by."""
        return f"{self.strategy}/{self.tokens}/{self.overlap}"


@value
class Patience:
    """When more of a transcript is due that grows message by message; after ten minutes of silence it always is."""

    meanwhile: Meanwhile
    delta_bytes: int = 100_000
    delta_messages: int = 50

    def is_due(self, found: FoundFile, *, done_bytes: int, messages: Callable[[], int], at_ns: int) -> bool:
        """Whether a file of which so much is done is to be gone on with. Asks for the number of messages last."""
        pending = found.size - done_bytes
        if pending < 0 or pending >= self.delta_bytes or found.mtime_ns <= at_ns - QUIET_NS:
            return True
        return messages() >= self.delta_messages


@value
class Conditions:
    """What a sync must keep to where embedding takes long, costs money or may fail."""

    rebuilding: Rebuilding = "freely"
    before_embedding: BeforeEmbedding | None = None
    patience: Patience | None = None


UNCONDITIONALLY = Conditions()


class RebuildGivenUp(EmbeddingError):
    """A new index would lack vectors, and the old one stays; the message says why."""


@value
class SyncPlan:
    """What differs between disk and index, for one source."""

    to_read: tuple[FoundFile, ...]  # new, or of another size, time, inode, scope or reading
    missing: tuple[str, ...]  # in the index, not on disk
    hidden: tuple[str, ...]  # in the index, and somewhere that could not be looked at
    unchanged: int
    known: int  # in the index


def plan_sync(found: Discovery, known: Mapping[tuple[Source, str], FileState], source: Source) -> SyncPlan:
    """Compare by size, time, inode, scope and reading; whether the text changed is for the reader to see."""
    on_disk = {file.path: file for file in found.files}
    in_index = {path: state for (of, path), state in known.items() if of == source}
    to_read = tuple(file for path, file in on_disk.items() if not looks_the_same(file, in_index.get(path)))
    gone = sorted(in_index.keys() - on_disk.keys())
    return SyncPlan(
        to_read=to_read,
        missing=tuple(path for path in gone if not found.may_hide(path)),
        hidden=tuple(path for path in gone if found.may_hide(path)),
        unchanged=len(on_disk) - len(to_read),
        known=len(in_index),
    )


@value
class Comparison:
    """What the index held, and in what each source differs from it."""

    revision: Revision
    known: Mapping[FileKey, FileState]
    sources: tuple[tuple[TextSource, Discovery, SyncPlan], ...]

    @property
    def has_work(self) -> bool:
        """Whether anything is to be written to the index."""
        return any(plan.to_read or plan.missing for _, _, plan in self.sources)


def looks_the_same(found: FoundFile, known: FileState | None) -> bool:
    """Whether a file can be taken as unchanged without reading it."""
    return (
        known is not None
        and found.size == known.size
        and found.mtime_ns == known.mtime_ns
        and found.mtime_ns >= 0  # a time before 1970 may look like one that must match nothing
        and found.inode == known.inode
        and found.scope == known.scope
        and (found.reading is AS_IT_IS or not reading_in(known.hash).is_older_than(found.reading))
    )


def is_incomplete(known: FileState) -> bool:
    """Whether vectors are missing that a file should have in the index."""
    return known.hash.startswith(WITHOUT_VECTORS)


def mtime_to_record(mtime_ns: int, *, read_at_ns: int) -> int:
    """The time to remember: one that never matches for a file so fresh that its time proves nothing."""
    return unmatched_mtime(mtime_ns) if mtime_ns >= read_at_ns - RACY_NS else mtime_ns


def unmatched_mtime(mtime_ns: int) -> int:
    """A time that no file has, and that still tells which one the file had when it was read."""
    return -abs(mtime_ns)


@value
class Disappearance:
    """Files that were missing at once, and when that was first seen."""

    paths: frozenset[str]
    seen_at: float  # seconds since the epoch


@value
class Removal:
    """What to drop from the index now, what to keep for a while, and what to remember about it."""

    now: tuple[str, ...]
    withheld: tuple[str, ...]
    remember: Disappearance | None


def plan_removal(
    missing: Iterable[str],
    *,
    known_count: int,
    seen_before: Disappearance | None,
    at: float,
    confirmed: bool,
    is_surely_gone: Callable[[str], bool] = lambda _: False,
) -> Removal:
    """Drop files that are gone, unless so many went at once that the disk may only be unmounted.

    What `is_surely_gone` goes at once, however many they are: it is asked only when they are many.

    Then they are kept until a second look, at least a minute after the first, still finds them gone. A clock that
    jumped backwards starts the minute anew, and so do files that were still there at the first look.
    """
    gone = tuple(missing)
    suspicious = len(gone) == known_count or len(gone) > max(SUSPICIOUS_COUNT, SUSPICIOUS_SHARE * known_count)
    if confirmed or not gone or not suspicious:
        return Removal(now=gone, withheld=(), remember=None)
    if sure := tuple(filter(is_surely_gone, gone)):
        doubtful = (path for path in gone if path not in frozenset(sure))
        rest = plan_removal(
            doubtful, known_count=known_count, seen_before=seen_before, at=at, confirmed=False
        )
        return Removal((*sure, *rest.now), rest.withheld, rest.remember)
    if seen_before is not None and seen_before.seen_at <= at - CONFIRM_AFTER_S:
        now = tuple(path for path in gone if path in seen_before.paths)
        later = tuple(path for path in gone if path not in seen_before.paths)
        return Removal(
            now=now, withheld=later, remember=Disappearance(frozenset(later), at) if later else None
        )
    same = seen_before is not None and seen_before.seen_at <= at and seen_before.paths.issuperset(gone)
    first_seen = seen_before.seen_at if seen_before is not None and same else at
    return Removal(now=(), withheld=gone, remember=Disappearance(frozenset(gone), first_seen))


def looks_unmounted(plan: SyncPlan) -> bool:
    """Whether so much is missing at once that only the index may still know it."""
    removal = plan_removal(plan.missing, known_count=plan.known, seen_before=None, at=0.0, confirmed=False)
    return bool(removal.withheld or plan.hidden)


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
    has_taken_out: bool = False  # text that was in the index, and of which words may stand in its bytes
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
        """What the index holds when it held `known` before, and no other process has changed it."""
        if not self.written:
            return known
        kept = {key: state for key, state in self.written.items() if state is not None}
        states = {**known, **kept}
        for key in self.written.keys() - kept.keys():
            states.pop(key, None)
        return states

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


@record
class Run:
    """What a pass works with."""

    store: IndexStore
    made: IndexFingerprint
    known: Mapping[FileKey, FileState]
    tally: Tally
    conditions: Conditions
    is_whole: bool = False  # all vectors, or nothing
    is_fresh: bool = False  # into an index that is being built, and that is not read yet


@value
class Agreement:
    """What the index was, what it held, and when each source said the same."""

    revision: Revision
    known: Mapping[FileKey, FileState]
    moments: tuple[int | None, ...]


class Settled:
    """The last time at which the sources and the index agreed."""

    def __init__(self, sources: Sequence[TextSource]) -> None:
        self._sources = sources
        self._agreement: Agreement | None = None

    def forget(self) -> None:
        """Have the next look go over everything."""
        self._agreement = None

    def settle(self, before: Agreement, tally: Tally) -> None:
        """Note what holds after a sync in which nothing failed.

        If others have changed the index meanwhile, its revision is a later one: then the agreement is of no use.
        """
        if not tally.is_clean or None in before.moments:
            self.forget()
            return
        generation, changes = before.revision
        now = generation, changes + tally.changes
        self._agreement = Agreement(now, tally.after(before.known), before.moments)

    def known_at(self, revision: Revision) -> Mapping[FileKey, FileState] | None:
        """What the index holds, if it is the one that was agreed on."""
        agreement = self._agreement
        return agreement.known if agreement is not None and agreement.revision == revision else None

    @property
    def is_known(self) -> bool:
        """Whether they have agreed since this process looks at them."""
        return self._agreement is not None

    def changes_since(self, revision: Revision) -> tuple[Agreement, list[Since]] | None:
        """What held, and what may have changed in each source; None when only a look at everything can tell."""
        agreement = self._agreement
        if agreement is None or agreement.revision != revision:
            return None
        changes = []
        for source, moment in zip(self._sources, agreement.moments, strict=True):
            since = source.changed_since(moment)
            if since is None:
                return None
            changes.append(since)
        return agreement, changes
