"""What stands in the place of a secret: `[redacted:github#3f9a]`, its kind and a few digits that tell secrets apart."""

from __future__ import annotations

from plainmind.base.pattern import pattern

try:
    from _blake2 import blake2b
except ImportError:  # not every Python has its own; `hashlib` takes 2 ms to import
    from hashlib import blake2b

_MARK = pattern(r"\[redacted:[a-z0-9-]{1,32}#[0-9a-f]{4}\]")
_OPENING = "[redacted:"
_BYTES = 2
_DIGEST_BYTES = 16


class Marks:
    """Makes marks with one key: the same secret gets the same digits, and without the key they say nothing of it."""

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(key).digest()  # one of any length in one that fits
        self._keyed = blake2b(key=self._key, digest_size=_BYTES)

    def mark(self, kind: str, secret: str) -> str:
        """Name a secret without saying it."""
        hashed = self._keyed.copy()
        hashed.update(secret.encode("utf-8", "surrogatepass"))
        return f"{_OPENING}{kind}#{hashed.hexdigest()}]"

    def digest(self, secret: str) -> str:
        """Tell a secret from all others, for a file that only its owner can read."""
        data = secret.encode("utf-8", "surrogatepass")
        return blake2b(data, key=self._key, digest_size=_DIGEST_BYTES, person=b"known").hexdigest()


def marks_in(text: str) -> list[tuple[int, int]]:
    """Find the marks that an earlier redaction has left, in order."""
    if _OPENING not in text:
        return []
    return [found.span() for found in _MARK.finditer(text)]
