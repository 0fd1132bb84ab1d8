"""The digest of an index: what every store hashes, so that equal indexes are equal wherever they are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from plainmind.base.errors import IndexCorrupt
from plainmind.base.model import Chunk, FileState, IndexFingerprint
from plainmind.base.value import asdict
from plainmind.index.bm25 import LONGEST, Postings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.index.driver import ChunkContents, Contents, SegmentContents

# What the terms of one chunk add up to: two sums of 64 bits.
TermSum = tuple[int, int]


def term_hash(term: str, count: int) -> TermSum:
    """What one term of a chunk adds to the sum of its terms."""
    found = hashlib.blake2b(
        term.encode("utf-8", "surrogatepass"), digest_size=16, salt=bytes([count])
    ).digest()
    return int.from_bytes(found[:8], "little"), int.from_bytes(found[8:], "little")


class SegmentTerms:
    """The terms of a segment's chunks, added up position by position from its postings.

    A sum tells which terms a chunk has and how often each; the order makes no difference. Postings are kept by term, so
    that it is added to all chunks of a term at once, and takes sixteen bytes of memory a chunk. `counted` has how many
    terms stand at each position.
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


class _Segment:
    """One segment: what its lengths and its postings say about each position."""

    def __init__(self, contents: SegmentContents) -> None:
        import numpy as np

        self._living = contents.living
        self._has_stale_postings = contents.has_stale_postings
        self._lengths = np.frombuffer(contents.lengths, dtype=np.uint16)
        self._seen = np.zeros(len(self._lengths), dtype=bool)
        self._terms = SegmentTerms(len(self._lengths), contents.postings)

    def terms_of(self, chunk: ChunkContents) -> TermSum:
        """The sum of the terms of one chunk, found in order."""
        position = chunk.position
        if not 0 <= position < len(self._lengths):
            raise contradiction("a chunk has a position that its segment has not given out")
        if self._lengths[position] != chunk.length:
            raise contradiction("a segment has another length of a chunk than the chunk")
        if self._seen[position]:
            raise contradiction("two chunks have one position")
        self._seen[position] = True
        return self._terms.at(position, chunk.length)

    def check_holes(self) -> None:
        """Make sure that every position which is no chunk is a hole."""
        holes = ~self._seen
        if int(self._seen.sum()) != self._living:
            raise contradiction("a segment has other holes than it says")
        if self._lengths[holes].any():
            raise contradiction("a hole of a segment would be found")
        if not self._has_stale_postings and self._terms.counted[holes].any():
            raise contradiction("there are postings of no chunk")


def digest_of(contents: Contents) -> str:
    """Hash everything that a rebuild would write again, and compare what is kept twice.

    Takes about thirty bytes of memory for each chunk, however long the texts are.
    """
    segments = [_Segment(each) for each in contents.segments()]
    digests = [
        file_digest(state, ((own.chunk, segments[own.segment].terms_of(own), own.vector) for own in chunks))
        for state, chunks in contents.files()
    ]
    for segment in segments:
        segment.check_holes()
    contents.check()
    return index_digest(contents.fingerprint(), digests)
