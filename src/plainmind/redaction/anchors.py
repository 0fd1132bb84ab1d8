"""Where the words stand that name a secret: all of them are looked for at once, by a letter of theirs that is rare.

Most texts have none of these words, and looking for a hundred of them one after the other takes longer than all else.
A search for one letter takes next to no time, and what stands around it says which word it is. A text that is short is
searched for word after word: that is over before the expressions are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.redaction.names import FAR_NAMES, NAMES, PHRASE, Name
from plainmind.redaction.page import Page, forms_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


@value
class Anchor:
    """A word, or a part of one, and the names of secrets that have it in them."""

    word: str
    names: tuple[Name, ...]
    is_of_phrase: bool
    is_far: bool  # only in a text that has a sign which is not ASCII

    def is_name(self, low: str, at: int) -> bool:
        """Whether what stands at this place is one of the names."""
        for name in self.names:  # noqa: SIM110 (a generator takes longer than all else here)
            if name.expression.match(low, at):
                return True
        return False


if TYPE_CHECKING:
    # Where an anchor stands, and which one it is.
    Place: TypeAlias = tuple[int, Anchor]

_SHORT, _VERY_SHORT = 6_000, 300
# By how rare they are. A word is looked for by the first of them that is in it.
_LETTERS = 'jqx<*"kvpwgcfu'
# What has to follow a word so that it is worth a look; a text that was made to keep us busy has thousands of them.
_FOLLOWED = {
    "auth": "(?![a-z])",
    "cle": "(?=f?s?(?![a-z]))",
    "key": r"(?=s?(?![a-z])|data|value|secret)",
    "pass": r"(?=[ _-]?w(?:or|\*)|w?d|wd|phr|code|ord|w?(?![a-z])|es?(?![a-z]))",
    "pw": r"(?=r?d?s?(?![a-z]))",
    "secret": r"(?=[oaei]?s?(?![a-z])|key|access|token|id|value|string)",
    "slo": "(?![a-z])",
    "token": r"(?=s?(?![a-z])|value|secret)",
}
# Behind a name a sign, and a value in quotation marks or with a digit or a sign in it: in a text that was made to keep
# us busy nothing else is looked at.
_ASSIGNED = (
    r"""(?=[\w.-]{0,24}+[\\"'`*_\])}]{0,8}+[ \t]{0,24}+(?:[-=]?[:=>|,(\t→])[=>(\[{\\ *]{0,12}+"""
    r"""[^\s0-9!#$%&*^~"'`]{0,24}+[0-9!#$%&*^~"'`])"""
)


class Rows:
    """Where anchors stand: a row of places for each letter or word, each in its order.

    `hurry` may be called while a row is read: from then on places are left out behind which no value follows.
    """

    def __init__(self, page: Page) -> None:
        self._low = page.low
        self._narrow = page.narrow
        self._odd_signs = page.odd_signs
        self._is_in_a_hurry = False

    def hurry(self) -> None:
        """Leave out from now on what is not followed by a value."""
        self._is_in_a_hurry = True

    def is_in_a_hurry(self) -> bool:
        """Whether places are left out."""
        return self._is_in_a_hurry

    def __iter__(self) -> Iterator[Iterator[Place]]:
        """Give one row after the other; a place is a number, and an anchor that stands there."""
        low = self._low
        anchors = _plain_anchors()
        if len(low) > _SHORT or (len(low) > _VERY_SHORT and _groups.cache_info().currsize):
            for group in _groups():
                yield self._row(group)
            anchors = _without_letter()
        for anchor in anchors:
            if anchor.word in self._narrow and self._may_have(anchor):
                yield self._row_of(anchor, self._narrow)
        for anchor in _far_anchors(self._odd_signs) if self._odd_signs else ():
            if anchor.word in low:
                yield self._row_of(anchor, low)

    def _may_have(self, anchor: Anchor) -> bool:
        return not anchor.is_far or bool(self._odd_signs)

    def _row(self, group: _Group, at: int = 0) -> Iterator[Place]:
        anchors = group.anchors
        if not self.is_in_a_hurry():
            for count, found in enumerate(group.expression.finditer(self._narrow, at)):
                offset, anchor = anchors[found.lastindex - 1]  # type: ignore[operator]  # there always is one
                if self._may_have(anchor):
                    yield found.start() - offset, anchor
                if count == _MANY and group.is_empty_talk(self._low):
                    return
                if self.is_in_a_hurry():
                    at = found.end()
                    break
            else:
                return
        for found in group.hurried.finditer(self._low, at):
            offset, anchor = anchors[found.lastindex - 1]  # type: ignore[operator]
            if self._may_have(anchor):
                yield found.start() - offset, anchor

    def _row_of(self, anchor: Anchor, low: str) -> Iterator[Place]:
        word = anchor.word
        at = low.find(word)
        left = _MANY
        while at >= 0 and left:
            yield at, anchor
            at = low.find(word, at + len(word))
            left -= 1
        if at >= 0:
            group = _Group(word, (0, anchor))
            if not group.is_empty_talk(self._low):
                yield from self._row(group, at)


class _Group:
    """Words that have a letter in common, or one word, and how far the letter is from the beginning of each."""

    def __init__(self, letter: str, *anchors: tuple[int, Anchor]) -> None:
        self.anchors = anchors
        words = "|".join(_around(letter, *one) for one in anchors)
        self.expression = pattern(f"{re.escape(letter)}(?:{words})")
        self.hurried = pattern(f"{re.escape(letter)}(?:{words}){_ASSIGNED}")

    def is_empty_talk(self, low: str) -> bool:
        """Whether one of the words is repeated all the time, with nothing behind it that could be a secret."""
        words = [anchor.word for _, anchor in self.anchors if anchor.word in low]
        if len(words) != 1 or low.count(words[0]) * _OFTEN < len(low):
            return False
        pieces = set(low.split(words[0]))
        return len(pieces) < _MOST_PIECES and not any(
            len(piece) > _LONGEST_PIECE or MAY_HOLD.search(piece) for piece in pieces
        )


# A word that comes so often, and in every so many characters, is looked at together with all that follows it.
_MANY = 100
_OFTEN = 24
_MOST_PIECES = 64
_LONGEST_PIECE = 48
# Without a digit, something in quotation marks, a sign within a word or words joined by dashes nothing is a secret.
MAY_HOLD = pattern(
    r"""[0-9]|["'`][^\s"'`]{4,64}+["'`\\]|[!@#$%^&*~][a-z]|[a-z][-._][a-z]{3,12}[-._][a-z]|[a-z+/_-]{20}"""
    r"""|[bcdfghjklmnpqrstvwxyz]{4}|["'`][a-z]{3,12} [a-z]{3,12} [a-z]{3,12} [a-z]"""
    r"""|[a-z0-9]{4} [a-z0-9]{4} [a-z0-9]{4} [a-z0-9]{4}"""
)


def _around(letter: str, offset: int, anchor: Anchor) -> str:
    """What stands behind the letter and before it, in the order that tells words apart the soonest.

    The empty group at the end says which of the words it was.
    """
    word = anchor.word
    behind = re.escape(word[offset + len(letter) :])
    whole = f"(?<={re.escape(word)})" if offset else ""
    return f"{behind}{whole}{_FOLLOWED.get(word, '')}()"


def is_name_of_something(name: str) -> bool:
    """Whether a field of this name may hold a secret."""
    low = name.lower()
    return not low.isascii() or any(anchor.word in low for anchor in _near_anchors())


@cache
def _near_anchors() -> tuple[Anchor, ...]:
    return _anchors(NAMES)


@cache
def _plain_anchors() -> tuple[Anchor, ...]:
    """Those that are ASCII, near and far."""
    far = (name for name in FAR_NAMES if name.anchor.isascii())
    return (*_near_anchors(), *_anchors(far, is_far=True))


def _far_anchors(odd_signs: frozenset[str]) -> Iterator[Anchor]:
    """Those that a text with these signs may have, going by the first that is not ASCII."""
    by_sign = _far_anchors_by_sign()
    for sign in odd_signs & by_sign.keys():
        yield from by_sign[sign]


@cache
def _far_anchors_by_sign() -> Mapping[str, tuple[Anchor, ...]]:
    found: dict[str, tuple[Anchor, ...]] = {}
    for anchor in _anchors((name for name in FAR_NAMES if not name.anchor.isascii()), is_far=True):
        first = next(sign for sign in anchor.word if not sign.isascii())
        for form in forms_of(first):
            found[form] = (*found.get(form, ()), anchor)
    return found


def _anchors(names: Iterable[Name], *, is_far: bool = False) -> tuple[Anchor, ...]:
    by_word: dict[str, list[Name]] = {}
    for name in names:
        by_word.setdefault(name.anchor, []).append(name)
    return tuple(
        Anchor(
            word=word,
            names=tuple(some),
            is_of_phrase=any(name.sort is PHRASE for name in some),
            is_far=is_far,
        )
        for word, some in by_word.items()
    )


def _letter_of(anchor: Anchor) -> str | None:
    return next((letter for letter in _LETTERS if letter in anchor.word), None)


@cache
def _without_letter() -> tuple[Anchor, ...]:
    return tuple(anchor for anchor in _plain_anchors() if _letter_of(anchor) is None)


@cache
def _groups() -> tuple[_Group, ...]:
    by_letter: dict[str, list[tuple[int, Anchor]]] = {letter: [] for letter in _LETTERS}
    for anchor in _plain_anchors():
        letter = _letter_of(anchor)
        if letter is not None:
            by_letter[letter].append((anchor.word.index(letter), anchor))
    return tuple(_Group(letter, *some) for letter, some in by_letter.items())
