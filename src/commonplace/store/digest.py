"""The digest of an index: what every store hashes, so that equal indexes are equal wherever they are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from commonplace.model import Chunk, FileState, IndexFingerprint
from commonplace.value import asdict

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
