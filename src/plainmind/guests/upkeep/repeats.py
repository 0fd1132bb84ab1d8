"""Repeated and restated: lines of durable files that say what another one says already.

The same words in another order may say something else: "Ada calls Ben" and "Ben calls Ada". What people put first or
last is free to move: a phrase with its preposition, a time, one side of "is". What stands on both sides of a verb, of
"to" or of "than" is not. English, German, Chinese; elsewhere fewer moves are known as free.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest
from operator import eq

from plainmind.base.lazy import pattern
from plainmind.guests.upkeep.model import Cite, Edit, Proposal
from plainmind.guests.upkeep.survey import Line, Survey, has_neutral_heading, is_to_do
from plainmind.text.sentences import adds_nothing, codes_of, numbers_of
from plainmind.text.terms import fold, normalize, stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from plainmind.base.model import Vector

    Embed: TypeAlias = Callable[[Sequence[str]], Sequence[Vector | None]]
    Run: TypeAlias = tuple[int, list[str]]  # its place in the other sentence, and its words


SAME_FROM = 0.9  # similarity of two lines that may say the same; measured in docs/upkeep.md
_LEAST_TERMS = 3  # of one that stands under a heading that says nothing
_SELF_CONTAINED = 5  # terms of a line that says the same under any heading
_LEAST_CHARS = 12
# What two sentences may have in place of each other only if they say different things. English, German, Chinese.
_CONTRASTS = frozenset(
    """
    mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday today tomorrow yesterday
    weekday weekend morn morning noon afternoon even evening night daili daily weekli weekly monthli monthly yearli
    yearly january februari february march april may june juli july august september octob october novemb november
    decemb december spring summer autumn winter first second third last next previous before after earli early late
    left right up down top bottom upper lower front back north south east west in out on off open close closed start
    stop begin end more less most least min minimum max maximum high low old new small larg large big short long
    warm cold hot light dark always never sometim often seldom allow forbid accept reject like dislik love hate buy
    sell send receiv import export enabl disabl public privat free busi work home mother father brother sister son
    daughter wife husband
    montag dienstag mittwoch donnerstag freitag samstag sonntag heut heute morgen gestern morgens abends mittags nachts
    januar februar marz mai juni juli oktober dezember fruhling sommer herbst winter erste ersten zweite zweiten dritte
    letzte letzten nachste nachsten vor nach links rechts oben unten vorne hinten nord sud ost west offen geschlossen
    mehr weniger immer nie hoch niedrig alt neu klein gross kurz lang warm kalt mutter vater bruder schwester sohn
    tochter vormittag nachmittag abend nacht eltern
    one two three four five six seven eight nine ten eleven twelv twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenti twenty thirti thirty forti forty fifti fifty sixti sixty seventi seventy eighti eighty
    nineti ninety hundr hundred thousand million dozen half doubl double twice onc once
    zwei drei vier funf sechs sieben acht neun zehn elf zwolf zwanzig dreissig vierzig funfzig sechzig siebzig achtzig
    neunzig hundert tausend dutzend halb doppelt einmal zweimal
    second minut minute hour day week month year sekunde minut stund tag woch monat jahr
    mm cm m km mile inch foot feet yard mg g kg gram pound ounc ounce ml l litr litre liter gallon
    euro eur dollar usd franc chf cent percent prozent celsius fahrenheit kelvin watt kw kwh mb gb tb
    """.split()  # noqa: SIM905
)
_CONTRASTS_HAN = frozenset(
    "一二三四五六七八九十两百千万上下左右前后早晚午东西南北大小多少新旧先高低长短冷热"
    "内外开关买卖父母兄弟姐妹男女春夏秋冬昨今明"
)
# Stems of words by which a sentence says no more than one without them. Any other word may be a name: "the old cellar".
_IDLE = frozenset(
    """
    actual also current exist found get got hang just keep kept lie locat must note pleas put realli rememb should simpl
    simpli sit situat someth stand store thing total usual user
    auch befindet befinden bitt eben einfach etwa gibt hangen hangt hat lagern lagert liegen liegt muss noch nun sei
    sich sind soll stehen steht
    debe doit est esta estan hay se sont trouv trova
    """.split()  # noqa: SIM905
)
_PRONOUNS_HAN = frozenset("他她它我你您")
_IDLE_HAN = frozenset("的了要在把被让都也会得能就才对这那是有一个与和及地着过为于他她它")
_LEAST_HAN = 4
_HAN = pattern("[\u4e00-\u9fff]")
# Of whom a line speaks, and what is ticked, its heading says.
_OF_SOMEBODY = pattern(r"^\W{0,3}[✅❌]|\b(?:he|she|him|they|them|ihm|ihn)\b|[他她]", re.IGNORECASE)
_PAUSES = " \t.。;；,，"
_TRAILING = _PAUSES + "!！"
# Files in which the same is told of plans and of what came of them.
_KEPT_APART = pattern(
    r"(?:^|[/_. -])(?:log|logs|changelog|todo|todos|tasks?|backlog|journal|diary)(?:[_. -][^/]*)?\.md$"
    r"|(?:^|/)(?:logs?|tasks?|todos?)/",
    re.IGNORECASE,
)
_CODE = pattern(r"`[^`\n]+`|\$[^$\n]+\$")  # a path, a command or a formula is the same only to the letter


def repeats(survey: Survey, embed: Embed) -> Iterator[Proposal]:
    """Lines that could go because another one says the same."""
    lines = [line for line in survey.durable if _counts(line)]
    gone: set[tuple[str, int]] = set()
    for same in _groups(lines):
        for kept, other in _repeated(same, survey):
            gone.add((other.path, other.number))
            yield _proposal("repeated", kept, other, f"{kept} says it already, word for word")
    left = [line for line in lines if (line.path, line.number) not in gone]
    for kept, other in _restated(left, survey, embed):
        if (kept.path, kept.number) not in gone and (other.path, other.number) not in gone:
            gone.add((other.path, other.number))
            yield _proposal("restated", kept, other, f"{kept} says the same in other words")


def _counts(line: Line) -> bool:
    if _KEPT_APART.search(line.path):
        return False
    if line.is_task or line.is_record or line.has_more or line.is_settled or line.is_step or not line.is_item:
        return False
    return len(line.words) >= _LEAST_CHARS or bool(_HAN.search(line.words) and len(line.words) >= 5)


def _groups(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Lines with the same words, by who may see them; what is a code has the same letters too."""
    by_words: dict[tuple[str, str, str, frozenset[str]], list[Line]] = {}
    for line in lines:
        bare = " ".join(line.words.casefold().split()).rstrip(_TRAILING)
        codes = frozenset((*codes_of(line.words), *_CODE.findall(line.words)))
        by_words.setdefault((line.scope, bare, _value(line.words), codes), []).append(line)
    return (group for group in by_words.values() if len(group) > 1)


def _repeated(group: Sequence[Line], survey: Survey) -> Iterator[tuple[Line, Line]]:
    """Which line stays for which other one, in a group that says the same."""
    best = sorted(group, key=_rank)
    for at, other in enumerate(best):
        kept = next((line for line in best[:at] if _means_the_same(line, other, survey)), None)
        if kept is not None:
            yield kept, other


def _restated(lines: Sequence[Line], survey: Survey, embed: Embed) -> Iterator[tuple[Line, Line]]:
    """Pairs that say the same in other words, which one stays first; the dearest test comes last."""
    open_lines = {(line.path, line.number) for line in lines}
    pairs = [
        (one, other)
        for one, other in survey.near
        if (one.path, one.number) in open_lines
        and (other.path, other.number) in open_lines
        and one.scope == other.scope
        and numbers_of(one.words) == numbers_of(other.words)
        and set(_CODE.findall(one.words)) == set(_CODE.findall(other.words))
        and not _has_other_value(one.words, other.words)
        and not _contrasts(survey.terms(one.words), survey.terms(other.words))
        and _says_no_more(one, other, survey)
        and _are_of_a_size(survey.terms(one.words), survey.terms(other.words))
        and _means_the_same(one, other, survey)
    ]
    for one, other in _alike(pairs, survey, embed):
        if _says_nothing_else(one.words, other.words) and _says_nothing_else(other.words, one.words):
            kept, lost = sorted((one, other), key=lambda line: (-len(survey.terms(line.words)), _rank(line)))
            yield kept, lost


def _says_nothing_else(one: str, other: str) -> bool:
    return adds_nothing(one, other) and not turns_round(one, other)


def _value(words: str) -> str:
    """The value behind a label that is a single word: a password means its letters, and a mark behind it too."""
    value = words.replace("：", ":").partition(":")[2].strip().rstrip(_PAUSES)
    return value if _is_labelled(words) and len(value.split()) == 1 else ""


def _has_other_value(one: str, other: str) -> bool:
    first, second = _value(one), _value(other)
    return bool(first and second) and first != second


def _are_of_a_size(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether neither says twice as much as the other."""
    return 2 * min(len(one), len(other)) > max(len(one), len(other))


def _alike(pairs: Sequence[tuple[Line, Line]], survey: Survey, embed: Embed) -> Iterator[tuple[Line, Line]]:
    """Those with the same terms, or with nearly the same vector."""
    if not pairs:
        return
    import numpy as np

    texts = list(dict.fromkeys(line.words for pair in pairs for line in pair))
    vectors = {
        text: None if vector is None else np.asarray(vector)
        for text, vector in zip(texts, embed(texts), strict=True)
    }
    for one, other in pairs:
        if survey.terms(one.words) == survey.terms(other.words) or _has_same_characters(
            one.words, other.words
        ):
            yield one, other
            continue
        first, second = vectors[one.words], vectors[other.words]
        if first is not None and second is not None and float(first @ second) >= SAME_FROM:
            yield one, other


def _rank(line: Line) -> tuple[bool, int, str, int]:
    """The curated memory first, then what lies nearer to it."""
    return line.path not in {"MEMORY.md", "memory.md"}, line.path.count("/"), line.path, line.number


def _means_the_same(one: Line, other: Line, survey: Survey) -> bool:
    """Whether their headings make no difference: a door's code is another one in another town."""
    if one.path == other.path and one.headings == other.headings:
        # In a list of things to do the same may have to be done twice.
        return not is_to_do(other.words)
    if one.path != other.path and _is_below_the_same(one, other, survey):
        return True
    terms, others = survey.terms(one.words), survey.terms(other.words)
    is_neutral = has_neutral_heading(one) or has_neutral_heading(other)
    is_labelled = _is_labelled(one.words) and _is_labelled(other.words)
    if is_labelled or (_OF_SOMEBODY.search(one.words) and not is_neutral):
        return False
    if is_neutral and one.words.casefold() == other.words.casefold():
        return True
    if is_neutral or _is_within(one, other):
        return min(_count(terms), _count(others)) >= (_LEAST_TERMS if terms != others else _LEAST_TERMS - 1)
    return min(_count(terms), _count(others)) >= _SELF_CONTAINED


def _count(terms: frozenset[str]) -> float:
    """How many things are said; two characters of Chinese are half a word more often than a whole one."""
    return sum(0.5 if _HAN.match(term) else 1 for term in terms)


def _is_below_the_same(one: Line, other: Line, survey: Survey) -> bool:
    """Whether two files have the same headings above both lines, apart from their titles."""
    first, second = one.headings[1:], other.headings[1:]
    return bool(first) and [*map(survey.terms, first)] == [*map(survey.terms, second)]


def _is_within(one: Line, other: Line) -> bool:
    """Whether one stands in a section, and the other in a section of that one."""
    outer, inner = sorted((one.headings, other.headings), key=len)
    return one.path == other.path and bool(outer) and inner[: len(outer)] == outer


def _is_labelled(words: str) -> bool:
    """Whether a line is a label and its value, which says nothing without its heading."""
    label, colon, _ = words.replace("：", ":").partition(":")
    return bool(colon) and len(label.split()) <= 3 and len(label) <= 24


def _contrasts(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether one has a word in place of which the other has its opposite, its neighbour or nothing."""
    if (one ^ other) & _CONTRASTS:
        return True
    only_one, only_other = _characters(one) - _characters(other), _characters(other) - _characters(one)
    if (only_one | only_other) & _CONTRASTS_HAN:
        return True
    if only_one & _PRONOUNS_HAN and only_other & _PRONOUNS_HAN:
        return True
    return bool(only_one - _IDLE_HAN) and bool(only_other - _IDLE_HAN)


def _says_no_more(one: Line, other: Line, survey: Survey) -> bool:
    """Whether the words of both are the same, but for idle ones of one side; Chinese has none that could be counted."""
    terms, others = survey.terms(one.words), survey.terms(other.words)
    if _HAN.search(one.words):
        return True
    return (terms <= others or others <= terms) and (terms ^ others).issubset(_IDLE | _ARTICLES)


def _has_same_characters(one: str, other: str) -> bool:
    """Whether two lines of Chinese are made of the same characters, apart from those that tell nothing."""
    first, second = (frozenset(_HAN.findall(words)) - _IDLE_HAN for words in (one, other))
    return len(first) >= _LEAST_HAN and first == second


def _characters(terms: frozenset[str]) -> frozenset[str]:
    """The Chinese characters of some terms, which overlap and cannot be compared as words."""
    return frozenset(_HAN.findall("".join(terms)))


def _proposal(kind: str, kept: Line, other: Line, reason: str) -> Proposal:
    return Proposal(
        kind,
        (Cite(other.path, other.number, other.text), Cite(kept.path, kept.number, kept.text)),
        (Edit(other.path, other.number, (other.text,), ()),),
        reason,
    )


# --- whether the order of the words makes a difference ---


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
