"""Names made from content: equal text, equal hash, on every machine."""

from __future__ import annotations

try:
    from _sha2 import sha256  # type: ignore[import-not-found]  # since Python 3.12
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:  # Python was built without its own: then OpenSSL, whose loading costs 2 ms
        from hashlib import sha256


# OpenSSL is several times as fast: worth loading for a large file.
_LARGE_BYTES = 1 << 20


def sha256_bytes(data: bytes) -> str:
    """Hash the bytes of a file."""
    if len(data) > _LARGE_BYTES:
        import hashlib

        return hashlib.sha256(data).hexdigest()
    return str(sha256(data).hexdigest())


def sha256_text(text: str) -> str:
    """Hash any string, also one with lone surrogates (they come from file names and broken JSON)."""
    return sha256_bytes(text.encode("utf-8", "surrogatepass"))


def chunk_id(source: str, path: str, start: int, end: int, hash: str, model: str) -> str:  # noqa: A002, PLR0917
    """Name a chunk by where it is, what it says and which model embedded it."""
    return sha256_text(f"{source}:{path}:{start}:{end}:{hash}:{model}")
