"""Where the words stand that name a secret, and others that rules begin with: all of them are found in one pass.

Looking for a hundred words one after the other takes longer than all else, and most texts have none of them. So a text
is read two characters at a time, once from its first on and once from its second: then any two that follow each other
are one sign, and a single expression finds the rare ones among them and compares what stands around them. A text that
is short is searched for word after word: that is over before the expression is made.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.redaction import credentials, pins, tokens
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
    any_name: re.Pattern[str]
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
    # A place in a text, and the number of the words that stand around it.
    Hit: TypeAlias = tuple[int, int]

_SHORT, _VERY_SHORT = 6_000, 300
_PART = 4_096
# A part in which more words are found than this is none that people wrote.
_MOST_IN_PART = 400


class Part:
    """A part of a text and the names in it, in their order; none if it is crowded with words that may be names."""

    def __init__(self, page: Page, span: tuple[int, int], places: Sequence[Place] | None) -> None:
        self.start, self.end = span
        self.is_crowded = places is None
        self.places = places or ()
        self._page = page
        self._all: tuple[list[int], Sequence[Place]] | None = None

    def words_before(self, sign: int) -> Iterator[Place]:
        """Report the words before a sign to which it may assign a value, from left to right."""
        if self._all is None:
            places = _crowd_in(self._page, self.start, self.end) if self.is_crowded else self.places
            self._all = [place[0] for place in places], places
        starts, places = self._all
        low = self._page.low
        for at, anchor in places[bisect_left(starts, sign - _LOOK_BACK) : bisect_left(starts, sign)]:
            if _UP_TO_SIGN.fullmatch(low, at + len(anchor.word), sign) and low.startswith(anchor.word, at):
                yield at, anchor


_LOOK_BACK = 48
_UP_TO_SIGN = pattern(r"""[\w.-]{0,24}+[\\"'`*_\])}]{0,8}+[ \t]{0,24}+[-=]?""")


def parts_of(page: Page) -> Iterator[Part]:
    """Give one part of a text after the other."""
    far = (
        [anchor for anchor in _far_anchors(page.odd_signs) if anchor.word in page.low]
        if page.odd_signs
        else []
    )
    if page.hits is None:
        look_through(page)
    if page.hits is None:
        end = len(page.text)
        near = (anchor for anchor in _plain_anchors() if anchor.word in page.narrow)
        some = (place for anchor in (*near, *far) for place in _places_of(anchor, page.low, 0, end))
        yield Part(page, (0, end), sorted(_names_of(some, page, is_alone=True), key=_first))
        return
    for number, hits in enumerate(page.hits):
        start = number * _PART
        end = min(start + _PART, len(page.text))
        places: Sequence[Place] | None = None
        if hits is not None:
            every = [
                *_places_at(hits),
                *(place for one in far for place in _places_of(one, page.low, start, end)),
            ]
            if len(every) <= _MOST_IN_PART:
                places = sorted(_names_of(every, page), key=_first)
        yield Part(page, (start, end), places)


def _places_at(hits: Iterable[Hit], first: int = 0) -> list[Place]:
    found = _anchors_found()
    return [(at + first - offset, anchor) for at, which in hits for anchor, offset in found[which]]


def _crowd_in(page: Page, start: int, end: int) -> list[Place]:
    """Find every word of a crowded part."""
    words = _words()
    places: list[Place] = []
    first = max(0, start - _LOOK_BACK)
    around = page.narrow[first : end + _LOOK_BACK]
    for shift in (1, 2):
        hits = words.hits_in(_pairs_of(around, shift), shift, (start - first, end - first), _PART)
        places += _places_at(hits, first)
    for anchor in _far_anchors(page.odd_signs) if page.odd_signs else ():
        places += _places_of(anchor, page.low, start, end)
    places.sort(key=_first)
    return places


def look_through(page: Page) -> None:
    """Find all words in a long text that any of the rules begin with, and note which of them it does not have."""
    end = len(page.text)
    if end <= _VERY_SHORT or (end <= _SHORT and not _words.cache_info().currsize):
        return
    words = _words()
    # One sign before the text, or two, make the pairs begin at its second character or at its first.
    odd, even = _pairs_of(page.narrow, 1), _pairs_of(page.narrow, 2)
    page.hits = []
    seen: set[int] = set()
    for start in range(0, end, _PART):
        part = (start, min(start + _PART, end))
        hits = words.hits_in(odd, 1, part, _MOST_IN_PART)
        if len(hits) <= _MOST_IN_PART:
            hits += words.hits_in(even, 2, part, _MOST_IN_PART)
        is_crowded = len(hits) > _MOST_IN_PART
        page.hits.append(None if is_crowded else hits)
        seen.update(which for _, which in hits)
    if None not in page.hits:
        there = {word for which in seen for word, _ in words.found[which]}
        page.absent = _all_words() - there


_first = itemgetter(0)


def _names_of(places: Iterable[Place], page: Page, *, is_alone: bool = False) -> Iterator[Place]:
    """Leave out what is no name. With one text alone it takes longer to join the expressions of names than to match."""
    low, is_far = page.low, bool(page.odd_signs)
    for at, anchor in places:
        if (is_far or not anchor.is_far) and (
            anchor.is_name(low, at) if is_alone else anchor.any_name.match(low, at)
        ):
            yield at, anchor


def _places_of(anchor: Anchor, low: str, start: int, end: int) -> Iterator[Place]:
    word = anchor.word
    at = low.find(word, start, end + len(word) - 1)
    left = _MOST_IN_PART if end - start <= _PART else end
    while at >= 0 and left >= 0:
        yield at, anchor
        left -= 1
        at = low.find(word, at + len(word), end + len(word) - 1)


def is_name_of_something(name: str) -> bool:
    """Whether a field of this name may hold a secret."""
    low = name.lower()
    return not low.isascii() or any(anchor.word in low for anchor in _near_anchors())


@cache
def _words() -> _Words:
    return _Words(sorted(_all_words()))


@cache
def _all_words() -> frozenset[str]:
    """The anchors that are ASCII, and the words with which other rules begin."""
    others = (*tokens.KEYWORDS, *credentials.KEYWORDS, *pins.KEYWORDS)
    return frozenset(anchor.word for anchor in _plain_anchors()).union(others)


@cache
def _anchors_found() -> Sequence[Sequence[tuple[Anchor, int]]]:
    """The anchors among the words of each number."""
    by_word = {anchor.word: anchor for anchor in _plain_anchors()}
    return [[(by_word[word], offset) for word, offset in some if word in by_word] for some in _words().found]


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
            any_name=_any_of(some),
            is_of_phrase=any(name.sort is PHRASE for name in some),
            is_far=is_far,
        )
        for word, some in by_word.items()
    )


def _any_of(names: Sequence[Name]) -> re.Pattern[str]:
    """Join the expressions of several names into one that fits where any of them does."""
    sources = [name.source for name in names]
    return (
        names[0].expression if len(names) == 1 else pattern("|".join(f"(?:{source})" for source in sources))
    )


# --- words, by pairs of characters ---

_LONGEST_WORD = 32

# Those that are the most frequent in prose and code come first, `_` is a space; the ones that are not here are rare.
_FREQUENT = """
    e_ s_ in _t _a th re t_ er on _i d_ he es _o an n_ or at en te _s nd r_ se _c ti st it ed nt _f ar _p de _w co
    al f_ me _r io ne y_ to as le ng ha of ro _m _n is _b _d _e ri li ve no ns ce la o_ et el ot ta ts ec om ou ra
    ch a_ ur pa ac ma pr fo ea l_ ll ge _l il em g_ ct si pe tr ol di h_ nc be mi ex ai fi hi lo ic un wh mo ss _h
    na rt ca pl rs ho am mp ue so ie os im ow po id _g ry m_ us ke ad wi we ut ag su op ul ly ef sa _u ci ir sh ay
    ep ee tu ia lu ig iv wa od um ni ev cl va rg da ld ck wo ab mb fr ds vi if ba qu oc fa ap _v ls ty xt gr rc nm
    bl rn bo cr oo rd ov pt nu gi rr up sp cu k_ sc lt rk by ny ru og p_ do tt fe ok rm du _k _y ei pp ys ks gu w_
    pi c_ uc ew gh lf av ms ga eg mm nv bi dd ip ui xp au ib bu ua pu ey nn wn ak gs fu ye ff iz ud cc ze _j _q
"""
_RANKS = {pair.replace("_", " "): rank for rank, pair in enumerate(reversed(_FREQUENT.split()), 1)}


def _pairs_of(narrow: str, shift: int) -> str:
    """Make one sign of every two characters, beginning with so many that are none before the text."""
    data = b"\0" * shift + narrow.encode("ascii")
    return (data + b"\0" * (2 + len(data) % 2)).decode("utf-16-be")


def _pair(two: str) -> str:
    return re.escape(chr(ord(two[0]) << 8 | ord(two[1])))


def _pairs(even: str) -> str:
    return "".join(_pair(even[at : at + 2]) for at in range(0, len(even), 2))


def _second_of_pair(sign: str) -> str:
    return "[" + "".join(_pair(chr(first) + sign) for first in range(128)) + "]"


def _first_of_pair(sign: str) -> str:
    return f"[{_pair(sign + chr(0))}-{_pair(sign + chr(127))}]"


class _Words:
    """Words as one expression over pairs of characters, each of them found by the rarest pair that it has.

    `found` has the words of each number, and how far from the beginning of each the pair stands by which it is found.
    """

    def __init__(self, words: Iterable[str]) -> None:
        words = dict.fromkeys(words)
        offsets: dict[str, int] = {}
        by_pair: dict[str, list[str]] = {}
        for word in sorted(
            _first_words(words), key=lambda one: -min(_rank(one, at) for at in range(len(one) - 1))
        ):
            offset = min(
                range(len(word) - 1),
                key=lambda at: (word[at : at + 2] not in by_pair and _rank(word, at), at),
            )
            offsets[word] = offset
            by_pair.setdefault(word[offset : offset + 2], []).append(word)
        self.found: list[tuple[tuple[str, int], ...]] = [()]  # there is no number 0
        sources = []
        # The frequent ones first: they are compared one after the other.
        for pair, some in sorted(by_pair.items(), key=lambda item: -_rank(item[0], 0)):
            some.sort(key=len, reverse=True)
            for word in some:
                there = [one for one in some if _is_within(one, word, offsets)]
                self.found.append(
                    tuple((more, offsets[one]) for one in there for more in words if more.startswith(one))
                )
            sources.append(f"{_pair(pair)}(?:{'|'.join(_around(word, offsets[word]) for word in some)})")
        self._expression = re.compile("|".join(sources))

    def hits_in(self, pairs: str, shift: int, part: tuple[int, int], most: int) -> list[Hit]:
        """Find words in a part of a text; when there are more than that, no matter which of them."""
        start, end = part
        found = self._expression.finditer(pairs, (start + shift) // 2, (end + shift + _LONGEST_WORD) // 2)
        hits = [(2 * one.start() - shift, one.lastindex) for one in islice(found, most + 1)]
        while hits and hits[-1][0] >= end:
            hits.pop()
        return hits  # type: ignore[return-value]  # there always is a number


def _first_words(words: Iterable[str]) -> list[str]:
    """Leave out the words that begin with another one: they are found by that."""
    return [word for word in words if not any(word != one and word.startswith(one) for one in words)]


def _rank(word: str, at: int) -> int:
    # One and the same letter again and again is what texts are made of that nobody wrote.
    return len(_RANKS) if word[at] == word[at + 1] else _RANKS.get(word[at : at + 2], 0)


def _is_within(inner: str, outer: str, offsets: Mapping[str, int]) -> bool:
    """Whether the one word stands in the other so that both have their pair at the same place."""
    start = offsets[outer] - offsets[inner]
    return start >= 0 and outer.startswith(inner, start)


def _around(word: str, offset: int) -> str:
    """What stands behind the rare pair of a word and before it; the empty group says which of the words it was."""
    before, behind = word[:offset], word[offset + 2 :]
    is_odd_before, is_odd_behind = len(before) % 2, len(behind) % 2
    ahead = _pairs(behind[: len(behind) - is_odd_behind]) + (
        _first_of_pair(behind[-1]) if is_odd_behind else ""
    )
    back = (_second_of_pair(before[0]) if is_odd_before else "") + _pairs(before[is_odd_before:])
    return (
        (f"(?={ahead})" if ahead else "")
        + (f"(?<={back}{_pair(word[offset : offset + 2])})" if back else "")
        + "()"
    )
