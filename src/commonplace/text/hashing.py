"""Names made from content: equal text, equal hash, on every machine."""

from __future__ import annotations

import hashlib


def sha256_text(text: str) -> str:
    """Hash any string, also one with lone surrogates (they come from file names and broken JSON)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def chunk_id(source: str, path: str, start: int, end: int, hash: str, model: str) -> str:  # noqa: A002, PLR0917
    """Name a chunk by where it is, what it says and which model embedded it."""
    return sha256_text(f"{source}:{path}:{start}:{end}:{hash}:{model}")
