"""The digest of an index: what every store hashes, so that equal indexes are equal wherever they are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from commonplace.model import Chunk, FileState, IndexFingerprint


def file_digest(state: FileState, chunks: Iterable[tuple[Chunk, Sequence[str], bytes | None]]) -> bytes:
    """Hash one file: its content hash and, in order, each chunk with its terms and its packed vector.

    Size, mtime and inode stay out: they say nothing about what the index answers.
    """
    hasher = hashlib.sha256(_line("file", state.source, state.path, state.hash))
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
