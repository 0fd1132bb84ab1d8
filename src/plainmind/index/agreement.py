"""Chunks go only into the index, and behind the chunks, that they were made for."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.base.errors import ConflictError, IndexUnavailable
from plainmind.base.model import EmbeddedChunk, FileState, IndexFingerprint


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
