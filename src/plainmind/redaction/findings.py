"""Where secrets stand in a text, how overlapping reports become one, and the marks that replace them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plainmind.base.lazy import pattern
from plainmind.base.value import value

try:
    from _blake2 import blake2b
except ImportError:  # not every Python has its own; `hashlib` takes 2 ms to import
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


# Start, end and kind. A plain tuple: a hostile text makes tens of thousands.
Found: TypeAlias = "tuple[int, int, str]"
# What is hidden as a whole because there is too much in it to be looked for one by one.
CROWD = "crowd"


@value
class Finding:
    """One secret in the original text, `text[start:end]`, and the mark that replaces it in the copy."""

    kind: str
    start: int
    end: int
    mark: str


@value
class Redacted:
    """The copy, with as many line ends as the original, and what was hidden in it, in order."""

    text: str
    found: tuple[Finding, ...] = ()


def settle(scans: Iterable[Iterable[Found]], taken: Sequence[tuple[int, int]]) -> list[Found]:
    """Join overlapping reports into one that covers all of them, of the kind that the first scan said.

    What touches a place that is `taken`, such as a mark of an earlier redaction, is left out.
    """
    reported = [(order, some) for order, some in enumerate(map(list, scans)) if some]
    found = _join(reported) if reported else []
    return _apart_from(taken, found) if taken else found


def _join(reported: Sequence[tuple[int, list[Found]]]) -> list[Found]:
    if len(reported) == 1 and _are_apart(reported[0][1]):
        return reported[0][1]
    ranked = [(start, end, order, kind) for order, some in reported for start, end, kind in some]
    ranked.sort()
    found: list[Found] = []
    best = last = 0
    for start, end, order, kind in ranked:
        if start >= last:
            found.append((start, end, kind))
            best, last = order, end
            continue
        first, last, known = found[-1]
        found[-1] = (first, max(last, end), kind if order < best else known)
        best, last = min(best, order), max(last, end)
    return found


def _are_apart(found: Iterable[Found]) -> bool:
    """Whether they stand in their order and none reaches into the next."""
    last = 0
    for start, end, _ in found:
        if start < last:
            return False
        last = end
    return True


def _apart_from(taken: Sequence[tuple[int, int]], found: Sequence[Found]) -> list[Found]:
    """Leave out what overlaps a taken place; both are in order."""
    kept: list[Found] = []
    at = 0
    for one in found:
        while at < len(taken) and taken[at][1] <= one[0]:
            at += 1
        if at == len(taken) or taken[at][0] >= one[1]:
            kept.append(one)
    return kept


# --- marks: `[redacted:github#3f9a]`, its kind and a few digits that tell secrets apart ---

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


def without_marks(text: str) -> str:
    """Put dots in the place of every mark: the words in it would be taken for the name of a secret."""
    return _MARK.sub(lambda found: "…" * len(found[0]), text) if _OPENING in text else text


def marks_in(text: str) -> list[tuple[int, int]]:
    """Find the marks that an earlier redaction has left, in order."""
    if _OPENING not in text:
        return []
    return [found.span() for found in _MARK.finditer(text)]
