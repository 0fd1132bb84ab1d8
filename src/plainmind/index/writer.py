"""Changes of an index: what is decided before a driver writes anything, the same for all drivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from plainmind.base.errors import ConflictError, IndexUnavailable
from plainmind.base.model import EmbeddedChunk, FileState, IndexFingerprint
from plainmind.index import bm25
from plainmind.index.driver import PreparedChunk
from plainmind.index.store import ANY_CONTENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.index.driver import Change, Driver

_PORTION = 512


def prepare_chunks(driver: Driver, chunks: Sequence[EmbeddedChunk]) -> Iterable[Sequence[PreparedChunk]]:
    """Do what needs no index: all of it now, before others have to wait; in portions, where nothing waits.

    The terms of a large file take many times the room of its text.
    """
    coming = _prepared(driver, chunks)
    return _in_portions(coming) if driver.is_being_built else [list(coming)]


def _prepared(driver: Driver, chunks: Iterable[EmbeddedChunk]) -> Iterator[PreparedChunk]:
    for each in chunks:
        counted = bm25.occurrences(each.terms)
        body = driver.body_of(each.chunk)
        yield PreparedChunk(each.chunk, body, counted, bm25.length_of(counted), each.vector)


def _in_portions(coming: Iterator[PreparedChunk]) -> Iterator[list[PreparedChunk]]:
    while portion := list(islice(coming, _PORTION)):
        yield portion


def replace_file(
    change: Change,
    file: FileState,
    portions: Iterable[Sequence[PreparedChunk]],
    *,
    expecting: IndexFingerprint | None,
    replacing: str | None,
    keeping: int,
) -> bool:
    """Take the old chunks of a file out, but for the first, and put the new ones in.

    False when another text was put in before, or there are not so many to keep.
    """
    made = check_agreement(change.fingerprint(), expecting)
    known = change.known(file.source, file.path)
    if replacing not in {ANY_CONTENT, known.hash if known else None}:
        return False
    if keeping > (known.chunks if known else 0):
        return False
    if keeping and known:
        check_same_scope(file, known.scope)
    change.put(file, known, portions, keeping=keeping, dims=made.embedder.dims)
    return True


def check_agreement(stored: IndexFingerprint | None, expecting: IndexFingerprint | None) -> IndexFingerprint:
    """Refuse chunks for an index that was never built, or that is made in another way than they are."""
    if stored is None:
        raise IndexUnavailable("the index has not been built yet", hint="run `plainmind sync`")
    if expecting is not None and (difference := stored.difference(expecting)):
        raise ConflictError(
            f"the index was rebuilt meanwhile ({difference}); the file was not indexed",
            hint="sync again: it will embed the file for the new index",
        )
    return stored


def check_following(chunks: Sequence[EmbeddedChunk], keeping: int) -> None:
    """Refuse chunks that would leave a gap behind those that are kept, or stand in their places.

    Only the two at the ends are looked at: those of a long text are made as they are asked for.
    """
    ends = ((0, keeping), (-1, keeping + len(chunks) - 1)) if keeping and chunks else ()
    if keeping < 0 or any(chunks[at].chunk.ordinal != ordinal for at, ordinal in ends):
        raise ValueError(f"chunks that follow on the first {keeping} of a file must be counted from there")


def check_same_scope(file: FileState, known_scope: str) -> None:
    """Refuse to keep chunks that others could see than those who may see the file now."""
    if file.scope != known_scope:
        raise ValueError("no chunk can be kept when the scope of its file changes: replace all of them")
