"""Chunks go only into the index that they were made for."""

from __future__ import annotations

from commonplace.errors import ConflictError, IndexUnavailable
from commonplace.model import IndexFingerprint


def check_agreement(stored: IndexFingerprint | None, expecting: IndexFingerprint | None) -> IndexFingerprint:
    """Refuse chunks for an index that was never built, or that is made in another way than they are."""
    if stored is None:
        raise IndexUnavailable("the index has not been built yet", hint="run `commonplace sync`")
    if expecting is not None and (difference := stored.difference(expecting)):
        raise ConflictError(
            f"the index was rebuilt meanwhile ({difference}); the file was not indexed",
            hint="sync again: it will embed the file for the new index",
        )
    return stored
