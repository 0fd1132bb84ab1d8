"""Whether the order of the words makes a difference: "Ada calls Ben" and "Ben calls Ada" have the same words.

What people put first or last is free to move: a phrase with its preposition, a time, one side of "is". What stands
on both sides of a verb, of "to" or of "than" is not. English, German, Chinese; elsewhere fewer moves are known as free.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, zip_longest
from operator import eq

from plainmind.base.lazy import pattern
from plainmind.text.terms import fold, normalize, stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Run: TypeAlias = tuple[int, list[str]]  # its place in the other sentence, and its words


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TOKEN = pattern("[\u3400-\u9fff]|[^\\W_\u3400-\u9fff]+")
_BETWEEN_CLAUSES = pattern(r"[,;，；。、]|\.\s")
_ARTICLES = _words("the a an der die das den dem des ein eine einen einem einer le la les un une el los las")
# What may stand between two sides that may be exchanged.
_EITHER_WAY = _words(
    """
    is are was were be and or has have will ist sind war waren wird werden hat haben und oder
    est sont et ou es son y o 是 在 有 放 和 与 跟 及 或 住 叫 为 由 了 的 也 都 要
    """
)
# How a phrase begins that may stand anywhere.
_FREE = _words(
    """
    in on at under behind beside above below near next inside outside during before after until since for from by with
    within without because when while if every each always last first
    im am an auf unter hinter neben uber vor bei beim zum zur nach von vom bis seit fur mit ohne wegen wenn weil
    bevor nachdem sobald jede jeden jeder jedes alle immer mindestens
    dans sur sous en chaque para con cada por
    """
)
# What may stand anywhere by itself.
_FREE_ALONE = _words(
    """
    mondays tuesdays wednesdays thursdays fridays saturdays sundays daily weekly monthly yearly always usually now today
    montags dienstags mittwochs donnerstags freitags samstags sonntags morgens mittags abends nachts taglich wochentlich
    monatlich jahrlich immer meist jetzt heute
    """
)
# Marks of a passive, in which both sides of a verb change places: "Ada calls Ben", "Ben is called by Ada".
_PASSIVE = (_words("is are was were be wird werden wurde wurden"), _words("by for von durch"))
# Nobody does anything to somebody in an amount.
_AMOUNTS = _words(
    """
    percent pounds euros dollars francs years months weeks days hours minutes litres kg km
    prozent euro franken jahr jahre monat monate woche wochen tag tage stunde stunden minuten liter
    """
)
_FREE_HAN = frozenset("每在从于因如当周星早晚")
# Words that mean what follows them.
_POINTS_AHEAD = _words("only not never just even merely nur nicht nie niemals bloss auch kein 不 没 只 仅 未")
_NO = _words("keine keinen keinem keiner keines kein")
# Words of which two sentences that say the same do not have one each.
_OPPOSITES = tuple(
    _words(pair)
    for pair in (
        "if unless",
        "before after",
        "with without",
        "until since",
        "until from",
        "and or",
        "all some",
        "may must",
        "can must",
        "above below",
        "over under",
        "inside outside",
        "to from",
        "same different",
        "gleiche andere",
        "同 异",
        "wenn ausser",
        "vor nach",
        "bevor nachdem",
        "mit ohne",
        "bis ab",
        "bis seit",
        "und oder",
        "alle manche",
        "darf muss",
        "kann muss",
        "uber unter",
        "von nach",
        "前 后",
        "和 或",
        "可 必",
    )
)
_LEFT_BEHIND = "kein"  # at the end of "Oliven isst Ben keine", which has no other way round
_AS_THEY_ARE = frozenset().union(
    _POINTS_AHEAD, _EITHER_WAY, _FREE, _FREE_ALONE, _AMOUNTS, *_PASSIVE, *_OPPOSITES
)


def turns_round(new: str, old: str) -> bool:
    """Whether a sentence has words of another one in places that make a difference, or an opposite in place of one."""
    clauses, new_clauses = _clauses(old), _clauses(new)
    before, after = [*chain(*clauses)], [*chain(*new_clauses)]
    lost, come = ({*(Counter(one) - Counter(other))} for one, other in ((before, after), (after, before)))
    if any(lost & pair and come & pair for pair in _OPPOSITES):
        return True
    ahead: dict[str, list[tuple[str, ...]]] = {}
    for word, follows in chain(*map(_what_follows, clauses)):
        ahead.setdefault(word, []).append(follows)
    if any(
        not _is_meant(follows, ahead.get(word, []))
        for word, follows in chain(*map(_what_follows, new_clauses))
    ):
        return True
    if _LEFT_BEHIND in {*before[-1:], *after[-1:]}:
        return False
    places = [place for place, words in _runs(before, after) if not _is_free(words)]
    is_passive = all(lost & marks for marks in _PASSIVE) or all(come & marks for marks in _PASSIVE)
    return _falls_twice(places) != is_passive


def _clauses(text: str) -> list[list[str]]:
    """The words of each clause without articles; of Chinese, which has no spaces, the characters."""
    return [_sequence(clause) for clause in _BETWEEN_CLAUSES.split(normalize(text))]


def _sequence(clause: str) -> list[str]:
    folded = (fold(token) for token in _TOKEN.findall(clause))
    folded = (_LEFT_BEHIND if token in _NO else token for token in folded)
    return [token if token in _AS_THEY_ARE else stem(token) for token in folded if token not in _ARTICLES]


def _what_follows(words: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """What stands behind those words that mean it; at the end of a clause they mean all of it."""
    said = [
        word for at, word in enumerate(words) if word != "to" or at == 0 or words[at - 1] not in _POINTS_AHEAD
    ]
    found = ((word, tuple(said[at + 1 : at + 3])) for at, word in enumerate(said) if word in _POINTS_AHEAD)
    return [(word, follows) for word, follows in found if follows]


def _is_meant(follows: tuple[str, ...], known: Sequence[tuple[str, ...]]) -> bool:
    """Whether one of the places where the other sentence has the word goes on in the same way, as far as both go."""
    return not known or any(all(map(eq, follows, each)) for each in known)


def _runs(before: Sequence[str], after: Sequence[str]) -> list[Run]:
    """The words that both have, as they stand in `after`, in pieces that stand together in `before` too."""
    places: dict[str, list[int]] = {}
    for at, word in enumerate(before):
        places.setdefault(word, []).append(at)
    found: list[tuple[int, str]] = []
    for word, comes in zip_longest(after, after[1:]):
        if standing := places.get(word):
            following = found[-1][0] + 1 if found else 0
            goes_on = (place for place in standing if before[place + 1 : place + 2] == [comes])
            place = following if following in standing else next(goes_on, standing[0])
            standing.remove(place)
            found.append((place, word))
    rank = {place: at for at, place in enumerate(sorted(place for place, _ in found))}
    runs: list[Run] = []
    last = -2
    for place, word in found:
        if rank[place] == last + 1:
            runs[-1][1].append(word)
        else:
            runs.append((rank[place], [word]))
        last = rank[place]
    return runs


def _is_free(words: Sequence[str]) -> bool:
    """Whether a piece may stand anywhere: a phrase with what it begins with, or what joins two equal sides."""
    if all(word in _EITHER_WAY for word in words):
        return True
    first, second = words[0], "".join(words[1:2])
    if first in _FREE_ALONE or first in _AMOUNTS or (first.isdigit() and second in _AMOUNTS):
        return True
    return bool(second) and (first in _FREE or first in _FREE_HAN)


def _falls_twice(places: Sequence[int]) -> bool:
    """Whether three pieces stand in the opposite order: two have changed sides around a third."""
    for at, middle in enumerate(places):
        if any(place > middle for place in places[:at]) and any(place < middle for place in places[at + 1 :]):
            return True
    return False
