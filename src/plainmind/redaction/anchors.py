"""Where the words stand that name a secret, and others that rules begin with: all of them are found in one pass.

Looking for a hundred words one after the other takes longer than all else, and most texts have none of them. So a text
is read two characters at a time, once from its first on and once from its second: then any two that follow each other
are one sign, and a single expression finds the rare ones among them and compares what stands around them. A text that
is short is searched for word after word: that is over before the expression is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter

from plainmind.base.lazy import pattern
from plainmind.base.value import value
from plainmind.redaction import credentials, pins, tokens
from plainmind.redaction.names import FAR_NAMES, NAMES, PHRASE, PIN, Name
from plainmind.redaction.page import Page, forms_of, is_within_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import TypeAlias


@value
class Anchor:
    """A word, or a part of one, and the names of secrets that have it in them."""

    word: str
    names: tuple[Name, ...]
    any_name: re.Pattern[str]
    is_of_words: bool  # of a passphrase or a PIN, whose values have no sign of one
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
    # A place in a text, and the sign of the two characters there by which words are found.
    Hit: TypeAlias = tuple[int, str]

_SHORT, _VERY_SHORT = 6_000, 300
_PART = 4_096
# A part in which more words are found than this is none that people wrote.
_MOST_IN_PART = 256
# Page after page nobody goes on with so many different words, nor with so many at all. What is more than usual adds
# up, and what is less is taken off: to 157 in our own list of names, to 34 in 390 MB of other texts.
_USUAL_KINDS, _MANY_IN_PART, _EXCESS_OF_MANY = 10, 140, 12
_LEAST_EXCESS, _MOST_EXCESS = 20, 200


class Part:
    """A part of a text and the names in it, worked out when they are asked for."""

    def __init__(self, page: Page, span: tuple[int, int], places: Sequence[Place]) -> None:
        self.start, self.end = span
        self.is_crowded = False
        self.excess = 0  # of words, over what is usual; less than nothing in most texts
        self._page = page
        self._places = places
        self._hits: Sequence[Hit] = ()

    def look_through(
        self, pairs: Iterable[tuple[int, str]], most: int, before: Part | None = None
    ) -> Sequence[Hit]:
        """Find where words may be, and whether there are so many that nobody wrote this."""
        span = (self.start, self.end)
        repeated = self._repeated(before) if before is not None and not before.is_crowded else None
        hits: list[Hit] = []
        for shift, text in pairs if repeated is None else ():
            hits += _words().hits_in(text, shift, span, most - len(hits))
        self._hits = hits = hits if repeated is None else repeated
        far = _far_signs(self._page, *span, most - len(hits))
        self._places = _far_places(self._page, far)
        count = len(hits) + max(len(far), len(self._places))
        self.is_crowded = count > most
        kinds = {*map(_second, hits), *(anchor.word for _, anchor in self._places)}
        self.excess = _EXCESS_OF_MANY if count > _MANY_IN_PART else len(kinds) - _USUAL_KINDS
        return hits

    def _repeated(self, before: Part) -> list[Hit] | None:
        """Where words are in a part that says again and again what the part before it ended with."""
        narrow, start = self._page.narrow, self.start
        # A word may begin before the part, or end behind it.
        first, last = start - _LONGEST_WORD, self.end + _LONGEST_WORD
        at = narrow.find(narrow[first : first + _REPEATED], max(0, first - _LONGEST_REPEATED), start)
        length = first - at
        if not 0 <= at < first or narrow[at : last - length] != narrow[first:last]:
            return None
        at += _LONGEST_WORD - 1  # a part has the pair, too, of which it has the second character
        return [
            (place, pair)
            for hit, pair in before._hits
            if at <= hit < at + length
            for place in range(hit + length, self.end, length)
        ]

    @property
    def places(self) -> list[Place]:
        """Where names stand, in their order; none in a crowd."""
        if self.is_crowded:
            return []
        places = [*self._places]
        narrow, words = self._page.narrow, _anchors_found() if self._hits else {}
        for at, pair in self._hits:
            for word, offset, anchor in words[pair]:
                if narrow.startswith(word, at - offset):
                    places.append((at - offset, anchor))
        return sorted(_names_of(places, self._page), key=_first)


def parts_of(page: Page) -> Sequence[Part]:
    """Give one part of a text after the other."""
    if page.parts is None:
        look_through(page)
    if page.parts is not None:
        return page.parts
    end = len(page.text)
    near = (anchor for anchor in _plain_anchors() if anchor.word in page.narrow)
    some = [place for anchor in near for place in _places_of(anchor, page.low)]
    return [Part(page, (0, end), [*some, *_far_places(page, _far_signs(page, 0, end, end))])]


def _far_signs(page: Page, start: int, end: int, most: int) -> Sequence[tuple[int, str]]:
    """Find signs that anchors which are not ASCII are found by; when there are more than that, one more of them."""
    far = _far_anchors()
    if far.signs.isdisjoint(page.odd_signs):
        return ()
    found = islice(far.expression.finditer(page.low, start, end + _LONGEST_WORD), max(0, most) + 1)
    return [(one.start(), one[0]) for one in found if one.start() < end]


def _far_places(page: Page, signs: Sequence[tuple[int, str]]) -> list[Place]:
    """Find the anchors around these signs."""
    low, by_sign = page.low, _far_anchors().by_sign if signs else {}
    return [
        (at - offset, anchor)
        for at, sign in signs
        for offset, anchor in by_sign[sign]
        if low.startswith(anchor.word, at - offset)
    ]


def look_through(page: Page, *, is_bounded: bool = False) -> bool:
    """Find all words in a long text that any of the rules begin with, and note which of them it does not have.

    False when they are so many for so long that nobody wrote this, and it is not worth to be read on.
    """
    end = len(page.text)
    if end <= _VERY_SHORT or (end <= _SHORT and not _words.cache_info().currsize):
        return True
    # One sign before the text, or two, make the pairs begin at its second character or at its first.
    pairs = ((1, _pairs_of(page.narrow, 1)), (2, _pairs_of(page.narrow, 2)))
    page.parts = []
    seen: set[str] = set()
    is_crowded, begins = False, 0
    for start in range(0, end, _PART):
        part = Part(page, (start, min(start + _PART, end)), ())
        if is_crowded:  # then it is enough that the beginning of the next part is as crowded
            beginning = Part(page, (start, min(start + _BEGINNING, end)), ())
            beginning.look_through(pairs, _MOST_IN_PART * _BEGINNING // _PART)
            part.is_crowded = beginning.is_crowded
            part.excess = _EXCESS_OF_MANY
        if not part.is_crowded:
            before = page.parts[-1] if page.parts else None
            seen.update(map(_second, part.look_through(pairs, _MOST_IN_PART, before)))
        is_crowded = part.is_crowded
        page.excess = max(0, page.excess + part.excess)
        if page.excess <= _LEAST_EXCESS:
            begins = part.end
        elif page.excess > _MOST_EXCESS and is_bounded:
            page.crowded_from = max(1, page.place_of(begins))  # all since then was no page that people write
            return False
        page.parts.append(part)
    if not any(part.is_crowded for part in page.parts):
        keywords = _keywords()
        page.absent = keywords.difference(word for pair in seen for word, _ in _words().found[pair])
    return True


_BEGINNING = _PART // 8
_REPEATED, _LONGEST_REPEATED = 64, 1_024


_first, _second = itemgetter(0), itemgetter(1)


def _names_of(places: Iterable[Place], page: Page) -> Iterator[Place]:
    """Leave out what is no name."""
    low, text, is_far = page.low, page.text, page.is_far
    is_alone = page.parts is None  # then it takes longer to join the expressions of names than to match each
    for at, anchor in places:
        if anchor.is_far and not is_far:
            continue
        called = anchor.is_name(low, at) if is_alone else anchor.any_name.match(low, at)
        if called and not is_within_id(text, at):
            yield at, anchor


def _places_of(anchor: Anchor, low: str) -> Iterator[Place]:
    word = anchor.word
    at = low.find(word)
    while at >= 0:
        yield at, anchor
        at = low.find(word, at + len(word))


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
    return frozenset(anchor.word for anchor in _plain_anchors()) | _keywords()


@cache
def _keywords() -> frozenset[str]:
    return frozenset((*tokens.KEYWORDS, *credentials.KEYWORDS, *pins.KEYWORDS))


@cache
def _anchors_found() -> Mapping[str, Sequence[tuple[str, int, Anchor]]]:
    """The anchors among the words by the sign of the pair that each is found by."""
    by_word = {anchor.word: anchor for anchor in _plain_anchors()}
    return {
        pair: [(word, offset, by_word[word]) for word, offset in some if word in by_word]
        for pair, some in _words().found.items()
    }


@cache
def _near_anchors() -> tuple[Anchor, ...]:
    return _anchors(NAMES)


@cache
def _plain_anchors() -> tuple[Anchor, ...]:
    """Those that are ASCII, near and far."""
    far = (name for name in FAR_NAMES if name.anchor.isascii())
    return (*_near_anchors(), *_anchors(far, is_far=True))


@value
class _Far:
    """The anchors that are not ASCII, found by the first sign of each that is not."""

    signs: frozenset[str]  # of which a text must have one
    expression: re.Pattern[str]
    by_sign: Mapping[
        str, Sequence[tuple[int, Anchor]]
    ]  # and how far from the beginning of the anchor it stands


@cache
def _far_anchors() -> _Far:
    by_sign: dict[str, list[tuple[int, Anchor]]] = {}
    signs: set[str] = set()
    for anchor in _anchors((name for name in FAR_NAMES if not name.anchor.isascii()), is_far=True):
        offset, sign = next(each for each in enumerate(anchor.word) if not each[1].isascii())
        signs |= forms_of(sign)
        by_sign.setdefault(sign, []).append((offset, anchor))
    sources = (
        f"{sign}(?={'|'.join(anchor.word[offset + 1 :] for offset, anchor in some)})"
        for sign, some in by_sign.items()
    )
    return _Far(frozenset(signs), pattern("|".join(sources)), by_sign)


def _anchors(names: Iterable[Name], *, is_far: bool = False) -> tuple[Anchor, ...]:
    by_word: dict[str, list[Name]] = {}
    for name in names:
        by_word.setdefault(name.anchor, []).append(name)
    return tuple(
        Anchor(
            word=word,
            names=tuple(some),
            any_name=_any_of(some),
            is_of_words=any(name.sort in (PHRASE, PIN) for name in some),
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
    e_ s_ in _t _a th re t_ er on :_ i_ _i d_ he es _o an n_ or at en te _s nd r_ se _c ti st it ed nt _f ar _p de _w co
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
    sign = chr(ord(two[0]) << 8 | ord(two[1]))
    return sign if sign.isalnum() else f"\\{sign}"


def _pairs(even: str) -> str:
    return "".join(_pair(even[at : at + 2]) for at in range(0, len(even), 2))


def _second_of_pair(sign: str) -> str:
    return "[" + "".join(_pair(chr(first) + sign) for first in range(128)) + "]"


def _first_of_pair(sign: str) -> str:
    return f"[{_pair(sign + chr(0))}-{_pair(sign + chr(127))}]"


class _Words:
    """Words as one expression over pairs of characters, each of them found by the rarest pair that it has.

    `found` has the words by the sign of that pair, and how far from the beginning of each the pair stands.
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
        self.found: dict[str, tuple[tuple[str, int], ...]] = {}
        without: list[str] = []
        # The frequent ones first: they are compared one after the other.
        for pair, some in sorted(by_pair.items(), key=lambda item: -_rank(item[0], 0)):
            self.found[chr(ord(pair[0]) << 8 | ord(pair[1]))] = tuple(
                (more, offsets[one]) for one in some for more in words if more.startswith(one)
            )
            if all(len(word) > len(pair) for word in some):
                without.append(_pair(pair) + "".join(_not_around(word, offsets[word]) for word in some))
        # What is asked is whether a pair stands there without its words, which is so nearly everywhere: then the
        # comparison is over with the pair itself, where an expression for the words would go on to all the others.
        pairs = "".join(map(_pair, by_pair))
        self._expression = pattern(f"[{pairs}]" + (f"(?<!{'|'.join(without)})" if without else ""))

    def hits_in(self, pairs: str, shift: int, part: tuple[int, int], most: int) -> list[Hit]:
        """Find words in a part of a text; when there are more than that, no matter which of them."""
        start, end = part
        found = self._expression.finditer(pairs, (start + shift) // 2, (end + shift + _LONGEST_WORD) // 2)
        hits = [(2 * one.start() - shift, one[0]) for one in islice(found, max(0, most) + 1)]
        while hits and hits[-1][0] >= end:
            hits.pop()
        return hits


def _first_words(words: Iterable[str]) -> list[str]:
    """Leave out the words that begin with another one: they are found by that."""
    return [word for word in words if not any(word != one and word.startswith(one) for one in words)]


def _rank(word: str, at: int) -> int:
    # One and the same letter again and again is what texts are made of that nobody wrote.
    return len(_RANKS) if word[at] == word[at + 1] else _RANKS.get(word[at : at + 2], 0)


def _not_around(word: str, offset: int) -> str:
    """Say that around its rare pair a word is not there: what stands behind the pair, or before it, is another."""
    before, behind = word[:offset], word[offset + 2 :]
    is_odd_before, is_odd_behind = len(before) % 2, len(behind) % 2
    ahead = _pairs(behind[: len(behind) - is_odd_behind]) + (
        _first_of_pair(behind[-1]) if is_odd_behind else ""
    )
    back = (_second_of_pair(before[0]) if is_odd_before else "") + _pairs(before[is_odd_before:])
    if not back:
        return f"(?!{ahead})"
    back = f"{back}{_pair(word[offset : offset + 2])}"
    return f"(?!(?={ahead})(?<={back}))" if ahead else f"(?<!{back})"
