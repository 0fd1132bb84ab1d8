"""Repeated and restated: lines of durable files that say what another one says already."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from plainmind.base.lazy import pattern
from plainmind.guests.upkeep.model import Cite, Edit, Proposal
from plainmind.guests.upkeep.survey import Line, Survey, has_neutral_heading, is_to_do
from plainmind.guests.upkeep.word_order import turns_round
from plainmind.text.sentences import adds_nothing, numbers_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from plainmind.base.model import Vector

    Embed: TypeAlias = Callable[[Sequence[str]], Sequence[Vector | None]]


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
_PRONOUNS_HAN = frozenset("他她它我你您")
_IDLE_HAN = frozenset("的了要在把被让都也会得能就才对这那是有一个与和及地着过为于他她它")
_LEAST_HAN = 4
_HAN = pattern("[\u4e00-\u9fff]")
# Of whom a line speaks, and what is ticked, its heading says.
_OF_SOMEBODY = pattern(r"^\W{0,3}[✅❌]|\b(?:he|she|him|they|them|ihm|ihn)\b|[他她]", re.IGNORECASE)
_TRAILING = " \t.。!！;；,，"
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
    """Lines with the same words, by who may see them."""
    by_words: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        bare = " ".join(line.words.casefold().split()).rstrip(_TRAILING)
        by_words.setdefault((line.scope, bare), []).append(line)
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
    """Whether the words of one are all in the other; Chinese has none that could be counted."""
    terms, others = survey.terms(one.words), survey.terms(other.words)
    return terms <= others or others <= terms or bool(_HAN.search(one.words))


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
