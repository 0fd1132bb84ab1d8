"""Keeps erasing and indexing apart: what was read before an erasure is not written after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from plainmind.files.failures import explaining
from plainmind.files.locks import hold_lock

TIMEOUT_S = 60.0


class Erasures:
    """A lock and a mark in one folder, shared by all processes.

    Whoever erases holds the lock alone and changes the mark twice: first, in case they die half-way, and last, for
    whoever has read a file meanwhile. Whoever writes to the index notes the mark before reading a file, and compares
    it again with the lock held, shared, until the commit.
    """

    def __init__(self, folder: str) -> None:
        self._lock = os.path.join(folder, "erasing.lock")
        self._mark = os.path.join(folder, "erased")

    def stamp(self) -> tuple[int, int] | None:
        """What changes with every erasure; None before the first."""
        with explaining("look at", self._mark, outcome="nothing was indexed"):
            try:
                status = os.stat(self._mark)
            except FileNotFoundError:
                return None
        return status.st_ino, status.st_mtime_ns

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """Let nobody erase meanwhile."""
        with hold_lock(self._lock, operation="index a file", timeout_s=TIMEOUT_S, shared=True):
            yield

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """Let nobody write to the index meanwhile, and nobody write later what was read before."""
        from plainmind.files.atomic import write_atomically
        from plainmind.files.ids import new_id

        with hold_lock(self._lock, operation="forget", timeout_s=TIMEOUT_S):
            write_atomically(self._mark, new_id().encode())
            try:
                yield
            finally:
                write_atomically(self._mark, new_id().encode())
