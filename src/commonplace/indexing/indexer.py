"""Brings the index up to date with the files: reads what changed, embeds it, and writes it file by file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from commonplace.embedding.protocol import Embedder
from commonplace.errors import CommonplaceError, ConflictError, EmbeddingError, NotFound
from commonplace.files.erasures import Erasures
from commonplace.indexing.chunks import ChunkingSettings, chunks_of, terms_of
from commonplace.indexing.disappearances import Disappearances
from commonplace.indexing.plan import SyncPlan, mtime_to_record, plan_removal, plan_sync
from commonplace.model import (
    Chunk,
    EmbeddedChunk,
    FileFailure,
    FileState,
    IndexFingerprint,
    Progress,
    ProgressCallback,
    Source,
    SyncReport,
    Vector,
)
from commonplace.sources.discovery import FoundFile
from commonplace.sources.protocol import TextSource
from commonplace.store.protocol import IndexStore
from commonplace.text.terms import TERMS_VERSION

_Left: TypeAlias = Literal["overtaken", "erased"]

SCHEMA_VERSION = 1
NO_INDEX_YET = "there is no index yet"
# Enough for a provider's largest request, small enough to keep few files in memory.
CHUNKS_PER_BATCH = 512
# How often a file is read anew in one sync when text keeps being erased from it.
MOST_TRIES = 10
# In front of the hash of a file whose vectors could not be had: the next sync tries again.
WITHOUT_VECTORS = "without-vectors:"


@dataclass(slots=True)
class _Tally:
    """What a sync has done so far."""

    progress: ProgressCallback | None
    total: int = 0
    seen: int = 0
    indexed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    unchanged: int = 0
    skipped: list[FileFailure] = field(default_factory=list)
    failed: list[FileFailure] = field(default_factory=list)
    degraded: dict[str, None] = field(default_factory=dict)  # in order, each reason once
    chunks: int = 0
    # By source and path: the hash of what went in without vectors, because the provider failed.
    without_vectors: dict[tuple[Source, str], str] = field(default_factory=dict)

    def step(self, path: str) -> None:
        self.seen += 1
        if self.progress is not None:
            self.progress(Progress(self.seen, self.total, path))

    def follow_up(self) -> _Tally:
        """A tally for a second look, which does not ask the provider again for what it has just refused."""
        return _Tally(None, without_vectors=self.without_vectors)

    def take_over(self, later: _Tally) -> None:
        """Add what a second look at all files found; what could not be read then is what cannot be read now."""
        gone = set(later.removed)
        self.indexed = [path for path in dict.fromkeys(self.indexed + later.indexed) if path not in gone]
        self.skipped, self.failed = later.skipped, later.failed
        self.degraded |= later.degraded
        self.chunks += later.chunks

    def report(self, *, rebuilt: str | None, seconds: float) -> SyncReport:
        return SyncReport(
            indexed=tuple(self.indexed),
            removed=tuple(self.removed),
            unchanged=self.unchanged,
            skipped=tuple(self.skipped),
            failed=tuple(self.failed),
            chunks=self.chunks,
            rebuilt=rebuilt,
            withheld=tuple(self.withheld),
            degraded=tuple(self.degraded),
            seconds=round(seconds, 3),
        )


@dataclass(frozen=True, slots=True)
class _Read:
    """A file that was read and cut, waiting for its vectors."""

    state: FileState
    chunks: tuple[Chunk, ...]
    replacing: str | None  # the hash that the index held for it
    erasures: object  # what `Erasures.stamp` was before it was read


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
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sources = tuple(sources)
        self._store = store
        self._embedder = embedder
        self._chunking = chunking
        self._disappearances = disappearances
        self._erasures = erasures
        self._clock = clock

    @property
    def fingerprint(self) -> IndexFingerprint:
        """How an index made now would be made."""
        return IndexFingerprint(
            embedder=self._embedder.identity,
            chunking=self._chunking.fingerprint,
            keywords=TERMS_VERSION,
            schema=SCHEMA_VERSION,
        )

    def rebuild_reason(self) -> str | None:
        """Why the index would have to be made anew, None when it can be kept."""
        with self._store.reading() as reader:
            made = reader.fingerprint()
        return NO_INDEX_YET if made is None else made.difference(self.fingerprint)

    def sync(self, *, force: bool = False, progress: ProgressCallback | None = None) -> SyncReport:
        """Index what changed. `force` makes the whole index anew and takes missing files as deleted."""
        started = time.perf_counter()
        tally = _Tally(progress)
        reason = "asked for" if force else self.rebuild_reason()
        if reason is not None and not force and self._looks_unmounted():
            tally.degraded[
                f"the index is out of date ({reason}) and its files are not there to make it anew"
            ] = None
            reason = None
        if reason is not None:
            self._rebuild(reason, tally)
            return tally.report(rebuilt=reason, seconds=time.perf_counter() - started)
        try:
            self._bring_up_to_date(self._store, tally, confirmed=False)
        except ConflictError as error:
            # Another process has just rebuilt the index with other settings; its vectors are not ours to mix with.
            tally.degraded[f"the index was left as it is: {error}"] = None
        return tally.report(rebuilt=reason, seconds=time.perf_counter() - started)

    def _rebuild(self, reason: str, tally: _Tally) -> None:
        def catch_up(fresh: IndexStore) -> None:
            """Bring over what changed while the new index was made, now that nobody else can index it."""
            later = tally.follow_up()
            self._bring_up_to_date(fresh, later, confirmed=True)
            tally.take_over(later)

        rebuilding = self._store.rebuild(self.fingerprint, reason=reason, catch_up=catch_up)
        with ExitStack() as until_published, rebuilding as fresh:
            self._bring_up_to_date(fresh, tally, confirmed=True)
            # Before the store's own lock, as everybody who takes both does: erasing comes first.
            until_published.enter_context(self._erasures.held_off())

    def _looks_unmounted(self) -> bool:
        """Whether so much is missing that a rebuild would lose what only the index still knows."""
        with self._store.reading() as reader:
            known = reader.files()
        for source in self._sources:
            plan = plan_sync(source.discover(), known, source.source)
            count = sum(1 for of, _ in known if of == source.source)
            removal = plan_removal(
                plan.missing, known_count=count, seen_before=None, at=self._clock(), confirmed=False
            )
            if removal.withheld or plan.hidden:
                return True
        return False

    def _bring_up_to_date(self, store: IndexStore, tally: _Tally, *, confirmed: bool) -> None:
        with store.reading() as reader:
            known = reader.files()
        for source in self._sources:
            found = source.discover()
            plan = plan_sync(found, known, source.source)
            tally.skipped += found.skipped
            tally.unchanged += plan.unchanged
            tally.total += len(plan.to_read)
            count = sum(1 for of, _ in known if of == source.source)
            self._remove(store, source.source, plan, count, tally, confirmed=confirmed)
            left = self._index(store, source, plan.to_read, known, tally)
            again = set(left)
            for _ in range(MOST_TRIES):
                if not again:
                    break
                left = self._index_again(store, source, again, tally)
                # Whoever overtakes us a second time has looked into the index after we did, and read the file after
                # that: what they wrote holds all that stood in it when this sync began.
                again = {path for path, why in left.items() if why == "erased"}
            tally.failed += [
                FileFailure(path, "text keeps being erased from it; the next sync tries again")
                for path in sorted(again)
            ]

    def _index_again(
        self, store: IndexStore, source: TextSource, paths: AbstractSet[str], tally: _Tally
    ) -> dict[str, _Left]:
        """Read files anew that somebody else has indexed, or erased from, since they were read."""
        with store.reading() as reader:
            known = reader.files()
        files = [found for found in source.discover().files if found.path in paths]
        tally.total += len(files)
        return self._index(store, source, files, known, tally)

    def _remove(
        self,
        store: IndexStore,
        source: Source,
        plan: SyncPlan,
        known_count: int,
        tally: _Tally,
        *,
        confirmed: bool,
    ) -> None:
        removal = plan_removal(
            plan.missing,
            known_count=known_count,
            seen_before=self._disappearances.read(source),
            at=self._clock(),
            confirmed=confirmed,
        )
        for path in removal.now:
            store.remove_file(source, path)
            tally.removed.append(path)
        self._disappearances.write(source, removal.remember)
        tally.withheld += (*removal.withheld, *plan.hidden)

    def _index(
        self,
        store: IndexStore,
        source: TextSource,
        files: Iterable[FoundFile],
        known: Mapping[tuple[Source, str], FileState],
        tally: _Tally,
    ) -> dict[str, _Left]:
        """Read, embed and write files; those that could not be written are left, each with the reason."""
        left: dict[str, _Left] = {}
        for batch in _batches(self._read_changed(store, source, files, known, tally)):
            vectors = self._embedded([chunk for file in batch for chunk in file.chunks], tally)
            for file in batch:
                why = self._write(store, file, vectors, tally)
                if why is not None:
                    left[file.state.path] = why
        return left

    def _read_changed(
        self,
        store: IndexStore,
        source: TextSource,
        files: Iterable[FoundFile],
        known: Mapping[tuple[Source, str], FileState],
        tally: _Tally,
    ) -> Iterator[_Read]:
        """Read files one after the other; those whose text did not change are only touched."""
        for found in files:
            erasures = self._erasures.stamp()
            try:
                document, state = source.read(found)
            except NotFound:
                continue  # deleted since it was listed: the next sync sees it missing
            except CommonplaceError as error:
                # One bad file never stops the others; an index that refuses to be written to does.
                tally.failed.append(FileFailure(found.path, str(error)))
                tally.step(found.path)
                continue
            state = replace(
                state, mtime_ns=mtime_to_record(state.mtime_ns, read_at_ns=int(self._clock() * 1e9))
            )
            before = known.get((state.source, state.path))
            if before is not None and state.hash in {
                before.hash,
                tally.without_vectors.get((state.source, state.path)),
            }:
                if before.hash == state.hash and before != state:
                    store.touch_file(state)
                tally.unchanged += 1
                tally.step(found.path)
                continue
            chunks = tuple(chunks_of(document, self._chunking))
            yield _Read(state, chunks, before.hash if before else None, erasures)

    def _embedded(self, chunks: Sequence[Chunk], tally: _Tally) -> dict[str, Vector | None]:
        """Vectors by text; empty when the provider failed, and then the reason is in the tally."""
        if not self._embedder.identity.dims:
            return {}
        texts = list(dict.fromkeys(chunk.embedded_text for chunk in chunks))
        try:
            return dict(zip(texts, self._embedder.embed_documents(texts), strict=True))
        except EmbeddingError as error:
            tally.degraded[f"embedding: {error}"] = None
            return {}

    def _write(
        self, store: IndexStore, file: _Read, vectors: dict[str, Vector | None], tally: _Tally
    ) -> _Left | None:
        """Write one file; or say why it was left: text was erased, or somebody else was quicker."""
        state = file.state
        if file.chunks and not vectors and self._embedder.identity.dims:
            state = replace(state, hash=WITHOUT_VECTORS + state.hash, mtime_ns=-1)
        embedded = [
            EmbeddedChunk(chunk, vectors.get(chunk.embedded_text), terms_of(chunk)) for chunk in file.chunks
        ]
        # Nothing is erased between this look and the commit, so forgotten text cannot come back here.
        with self._erasures.held_off():
            erased = self._erasures.stamp() != file.erasures
            written = not erased and store.replace_file(
                state, embedded, expecting=self.fingerprint, replacing=file.replacing
            )
        tally.step(state.path)
        if not written:
            return "erased" if erased else "overtaken"
        if state.hash != file.state.hash:
            tally.without_vectors[state.source, state.path] = file.state.hash
        tally.indexed.append(state.path)
        tally.chunks += len(file.chunks)
        return None


def _batches(files: Iterable[_Read]) -> Iterator[list[_Read]]:
    """Group files so that requests to an embedder cross file boundaries."""
    batch: list[_Read] = []
    waiting = 0
    for file in files:
        batch.append(file)
        waiting += len(file.chunks)
        if waiting >= CHUNKS_PER_BATCH:
            yield batch
            batch, waiting = [], 0
    if batch:
        yield batch
