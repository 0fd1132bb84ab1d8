"""The digest of an index: what every store hashes, so that equal indexes are equal wherever they are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import Chunk, FileState, IndexFingerprint
from plainmind.base.value import asdict
from plainmind.index.bm25 import LONGEST
from plainmind.index.postings import Postings

# What the terms of one chunk add up to: two sums of 64 bits.
TermSum = tuple[int, int]
_64_BITS = 2**64 - 1


def term_hash(term: str, count: int) -> TermSum:
    """What one term of a chunk adds to the sum of its terms."""
    found = hashlib.blake2b(
        term.encode("utf-8", "surrogatepass"), digest_size=16, salt=bytes([count])
    ).digest()
    return int.from_bytes(found[:8], "little"), int.from_bytes(found[8:], "little")


def term_sum(counted: Mapping[str, int]) -> TermSum:
    """A sum that tells which terms a chunk has and how often each; the order makes no difference.

    A sum, because postings are kept by term: a store adds to all chunks of a term at once, and needs no more
    memory for it than sixteen bytes a chunk.
    """
    first = second = 0
    for term, count in counted.items():
        low, high = term_hash(term, count)
        first, second = first + low, second + high
    return first & _64_BITS, second & _64_BITS


class SegmentTerms:
    """The terms of a segment's chunks, added up position by position from its postings.

    `counted` has how many terms stand at each position.
    """

    def __init__(self, used: int, postings: Iterable[tuple[str, Postings]]) -> None:
        import numpy as np

        self.counted = np.zeros(used, dtype=np.int64)
        self._sums = np.zeros((2, used), dtype=np.uint64)
        for term, own in postings:
            self._add(term, own)

    def _add(self, term: str, postings: Postings) -> None:
        import numpy as np

        positions = np.frombuffer(postings.positions, dtype=np.uint16)
        counts = np.frombuffer(postings.counts, dtype=np.uint8)
        if positions[-1] >= len(self.counted) or np.any(positions[1:] <= positions[:-1]) or not counts.all():
            raise contradiction("the postings of a term are not in order")
        self.counted[positions] += counts
        for count in np.unique(counts).tolist():
            own = positions[counts == count]
            for row, number in zip(self._sums, term_hash(term, count), strict=True):
                row[own] += np.uint64(number)

    def at(self, position: int, length: int) -> TermSum:
        """The sum of the terms of a chunk that says to have `length` of them."""
        counted = int(self.counted[position])
        if min(LONGEST, counted) != length:
            raise contradiction(f"a chunk of {length} terms has postings for {counted}")
        return int(self._sums[0, position]), int(self._sums[1, position])


def contradiction(found: str) -> IndexCorrupt:
    """The error of an index whose parts say different things."""
    return IndexCorrupt(f"the index contradicts itself: {found}", hint="run `plainmind sync --force`")


def file_digest(state: FileState, chunks: Iterable[tuple[Chunk, TermSum, bytes | None]]) -> bytes:
    """Hash one file: its content hash, its scope and, in order, each chunk with its terms and its packed vector.

    Size, mtime and inode stay out: they say nothing about what the index answers.
    """
    hasher = hashlib.sha256(_line("file", state.source, state.path, state.hash, state.scope))
    for chunk, terms, vector in chunks:
        hasher.update(_line("chunk", *asdict(chunk).values()))
        hasher.update(_line("terms", *terms))
        hasher.update(_line("vector", None if vector is None else vector.hex()))
    return hasher.digest()


def index_digest(fingerprint: IndexFingerprint | None, file_digests: Iterable[bytes]) -> str:
    """Hash a whole index; the order in which files were indexed makes no difference."""
    hasher = hashlib.sha256(_line("index", None if fingerprint is None else asdict(fingerprint)))
    for each in sorted(file_digests):
        hasher.update(each)
    return hasher.hexdigest()


def _line(*values: object) -> bytes:
    # ASCII JSON: unambiguous about where a value ends, and lone surrogates do not raise.
    return json.dumps(values, sort_keys=True).encode("ascii") + b"\n"
