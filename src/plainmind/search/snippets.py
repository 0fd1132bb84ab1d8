"""What each line is worth to a question, and the best lines grown into snippets: what is cited is what is shown."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heapreplace
from itertools import pairwise
from operator import getitem, itemgetter

from plainmind.base.model import Chunk
from plainmind.base.value import fields, replace, value
from plainmind.index.bm25 import TERM_SATURATION, Saturated
from plainmind.search.pages import (
    BLANK,
    CLOSING,
    CODE,
    HEADING,
    ITEM,
    OPENING,
    RULE,
    TEXT,
    Found,
    Memo,
    Page,
    Place,
    QuestionWords,
    RankedChunk,
    Shelf,
    TermSet,
    is_one_line,
    kinds_of,
    limit_to_counts,
    places_of,
    terms_with,
    units_of,
)
from plainmind.text.terms import letters_of, speaker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeAlias
else:
    Protocol = object


# The first of the question's words that a line has tell more than the last.
COVERAGE_POWER = 0.85
# Where a line has this share of the question's words, words are trusted as they are.
ENOUGH_SAID = 0.5


@value
class Weights:
    """How the signals are mixed; those that are consulted are scaled to sum to 1.

    Fitted on questions about conversations, documents and transcripts (docs/decisions), then rounded: what matters is
    that they are there, not their second digit.
    """

    coverage: float = 0.27  # the share of the question's words that the line has
    nearby: float = 0.1  # the share that only the lines beside it have
    passage: float = 0.18  # the words of the best snippet-sized window around the line
    keywords: float = 0.42  # BM25 of the whole chunk, headings included
    neighbours: float = 0.16  # BM25 of the better of the chunks before and after
    meaning: float = 0.18  # cosine of the chunk's vector

    def scaled(self, *, with_vectors: bool, with_keywords: bool) -> Weights:
        """Leave out the signals that were not consulted, so that the rest still reach 1."""
        consulted = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if (with_vectors if field.name == "meaning" else with_keywords)
        }
        total = sum(consulted.values()) or 1.0
        return Weights(**{field.name: consulted.get(field.name, 0.0) / total for field in fields(self)})

    def leaning(self, best_coverage: float) -> Weights:
        """Trust meaning more where no line has even half of the question's words: it was asked in other words."""
        missing = max(0.0, ENOUGH_SAID - best_coverage) / ENOUGH_SAID
        return replace(self, meaning=min(1.0, self.meaning * (1.0 + 2.0 * missing)))


class Wording:
    """What the words of a page say to a question, unit by unit."""

    __slots__ = ("own", "passages")

    def __init__(self, own: list[TermSet], passages: list[float]) -> None:
        self.own = own  # the terms that stand in the unit
        self.passages = passages  # the share of the question that the best window around it has


class Judge:
    """Weighs the words of pages for one question."""

    def __init__(self, asked: QuestionWords, weights: Weights, *, window_chars: int) -> None:
        self.asked = asked
        self._window_chars = window_chars
        self._passage_weight = weights.passage
        shares = asked.shares
        self._covered = Memo(lambda terms: weights.coverage * math.pow(shares[terms], COVERAGE_POWER))
        self._nearby_weight = weights.nearby
        self._most_beside_passages = Memo(lambda terms: self._best_unit(terms, weights))
        # By term: what it adds to the words of a window, by how often it stands there.
        self._saturated = [Saturated(weight) for weight in asked.weights]

    def read(self, page: Page, found: Found) -> Wording | None:
        """What the words of a page say, given where they stand; None when none of them was asked for."""
        if not found:
            return None
        own = [0] * len(page.units)
        for position, number, _ in found:
            own[position] |= 1 << number
        return Wording(own, self._best_windows(page, found))

    def most_of_page(self, terms: TermSet, counts: bytes) -> float:
        """At least what any unit is worth by its words, but for rounding, by how often each term stands in its page."""
        at_most = sum(map(getitem, self._saturated, counts)) / self.asked.total
        return self._most_beside_passages[terms] + self._passage_weight * at_most

    def _best_unit(self, terms: TermSet, weights: Weights) -> float:
        """What a unit would be worth that has all terms of its page, but for those around it."""
        share = self.asked.shares[terms]
        most = self._covered[terms]
        # Words beside a unit are worth less than words in it, unless other weights are set.
        return most if weights.nearby <= COVERAGE_POWER * weights.coverage else most + weights.nearby * share

    def coverage(self, wording: Wording) -> float:
        """The largest share of the question's words that any unit has."""
        shares = self.asked.shares
        return max([shares[terms] for terms in wording.own])

    def scores(self, wording: Wording) -> list[float]:
        """One number for each unit, from all that its words say."""
        covered, shares = self._covered, self.asked.shares
        nearby, passage_weight = self._nearby_weight, self._passage_weight
        around = [0, 0, *wording.own, 0, 0]
        return [
            covered[own]
            + nearby * shares[(first | second | fourth | fifth) & ~own]
            + passage_weight * passage
            for first, second, own, fourth, fifth, passage in zip(
                around, around[1:], wording.own, around[3:], around[4:], wording.passages, strict=False
            )
        ]

    def _best_windows(self, page: Page, found: Found) -> list[float]:
        """For each unit, the best score of any window of at most so many characters that holds it."""
        weights, total, ends = self.asked.weights, self.asked.total, page.ends
        best = [0.0] * len(page.units)
        room, units, entries = self._window_chars + 1, len(best), len(found)
        counts: dict[int, int] = {}
        entering = leaving = last = 0
        # A window that starts with a line without any of the words is no better than one that starts after it, and one
        # that ends where an earlier one does is no better than that.
        while last < units and leaving < entries:
            first = found[leaving][0]
            reached, last = last, max(first + 1, bisect_right(ends, ends[first] + room) - 1)
            if last > reached:
                while entering < entries and found[entering][0] < last:
                    _, number, count = found[entering]
                    counts[number] = counts.get(number, 0) + count
                    entering += 1
                score = sum(
                    [weights[number] * count / (count + TERM_SATURATION) for number, count in counts.items()]
                )
                share = score / total
                for position in range(first, last):
                    if best[position] < share:  # noqa: PLR1730 (a call would cost as much as all the rest)
                        best[position] = share
            while leaving < entries and found[leaving][0] == first:
                _, number, count = found[leaving]
                counts[number] -= count
                leaving += 1
        return best


# A line spoken by a person whom the question names is more likely the answer than one that only mentions them.
SPEAKER_BONUS = 0.08
# What is added up in another order may differ in the last digits: a bound must stay one.
ROUNDING = 1.0 + 1e-9


class ReadChunk:
    """A ranked chunk whose units are weighed when they are first asked for."""

    __slots__ = (
        "_found",
        "_judge",
        "_known",
        "_named",
        "_page",
        "_places",
        "_scores",
        "_shelf",
        "_without_speaker",
        "_wording",
        "may_be_less",
        "most",
        "ranked",
        "terms",
    )

    def __init__(self, ranked: RankedChunk, shelf: Shelf, judge: Judge) -> None:
        self.ranked = ranked
        self._shelf = shelf
        self._page: Page | None = None
        self._found: Found | None = None
        self.terms = terms_with(ranked.term_counts)  # it has no other terms of the question
        self.most = 0.0  # at least the best of its scores
        self.may_be_less = False  # whether a look at its text may show that it is worth less
        self._judge = judge
        self._places: list[Place] | None = None
        self._wording: Wording | None = None
        self._scores: list[float] | None = None

    def weigh(self, weights: Weights, named: frozenset[str], factor: float) -> None:
        """Settle how its units are weighed: by which signals, whom the question names, and what age does to it."""
        item, self._named = self.ranked, named
        keywords, neighbours = weights.keywords * item.keywords, weights.neighbours * item.neighbours
        meaning, bonus = weights.meaning * item.meaning, item.bonus + item.lift
        self._known = keywords, neighbours, meaning, bonus, factor
        most = self.most_by_words(weights) + meaning + bonus
        self.most = most * factor * ROUNDING
        if named:
            self._without_speaker = self.most
            self.most = (most + SPEAKER_BONUS) * factor * ROUNDING
            self.may_be_less = True
            if self._page is not None:
                self.look()

    def most_by_words(self, weights: Weights) -> float:
        """At least what words make any of its units worth."""
        item = self.ranked
        words = self._judge.most_of_page(self.terms, item.term_counts)
        return words + weights.keywords * item.keywords + weights.neighbours * item.neighbours

    def look(self) -> None:
        """See in its text who may speak in it."""
        self.may_be_less = False
        if not self.page.may_be_spoken_by(self._named):
            self.most = self._without_speaker

    @property
    def page(self) -> Page:
        """Its text, taken apart."""
        if self._page is None:
            self._page = self._shelf.page(self.ranked.chunk)
        return self._page

    @property
    def places(self) -> Sequence[Place]:
        """Where in the file each of its units stands."""
        if self._places is None:
            self._places = self.page.places_in(self.ranked.chunk)
        return self._places

    @property
    def wording(self) -> Wording | None:
        """What its words say; None when it has none of the question's."""
        if self._wording is None and self.terms:
            if self._found is None:
                found = self._judge.asked.found_in(self.page, self.terms)
                self._found = limit_to_counts(found, self.ranked.term_counts)
            self._wording = self._judge.read(self.page, self._found)
        return self._wording

    @property
    def scores(self) -> Sequence[float]:
        """What each of its units is worth."""
        if self._scores is None:
            self._scores = self._weigh_units()
        return self._scores

    def _weigh_units(self) -> list[float]:
        """Add what is known of the chunk to what its words are worth."""
        keywords, neighbours, meaning, bonus, factor = self._known
        wording = self.wording
        words = [0.0] * len(self.page.units) if wording is None else self._judge.scores(wording)
        scores = [(word + keywords + neighbours + meaning + bonus) * factor for word in words]
        bonus += SPEAKER_BONUS
        for position in self.page.spoken_by(self._named):
            scores[position] = (words[position] + keywords + neighbours + meaning + bonus) * factor
        return scores


def read_closely(
    ranked: Sequence[RankedChunk],
    shelf: Shelf,
    judge: Judge,
    weights: Weights,
    *,
    foremost: int,
    named: frozenset[str],
    age_factor: Callable[[str | None], float],
    compare: Callable[[float], None],
) -> list[ReadChunk]:
    """Make the ranked chunks ready to be read. How much meaning counts depends on the words of the foremost alone.

    `named` are the people whom the question names, `age_factor` tells what the day of a chunk does to its score, and
    `compare` is told how much of the question any line says.
    """
    chunks = [ReadChunk(item, shelf, judge) for item in ranked]
    compare(said := _most_said(chunks[:foremost], judge))
    weights = weights.leaning(said)
    if said < ENOUGH_SAID:
        from plainmind.search.other_words import lift_nearest

        lift_nearest(ranked, lambda at: chunks[at].most_by_words(weights))
    factors = {day: age_factor(day) for day in {item.chunk.day for item in ranked}}
    for chunk in chunks:
        chunk.weigh(weights, named, factors[chunk.ranked.chunk.day])
    return chunks


def _most_said(chunks: Sequence[ReadChunk], judge: Judge) -> float:
    """The largest share of the question's words that any unit has, as far as it matters.

    No unit has more than its page: those that may have most are read first, and the others hardly ever.
    """
    most, shares = 0.0, judge.asked.shares
    for chunk in sorted(chunks, key=lambda chunk: shares[chunk.terms], reverse=True):
        if shares[chunk.terms] <= most or most >= ENOUGH_SAID:
            break
        if chunk.wording is not None:
            most = max(most, judge.coverage(chunk.wording))
    return most


# Lines further apart than this are not neighbours: something that was not indexed lies between them.
NEAR_LINES = 3
ELLIPSIS = "…"
# Each further snippet of the same file is worth a little less: other files may know something else.
SAME_FILE = 0.95
# And what is left of a passage after its best part, once: it goes on about the same. What people say in turn does not.
SAME_PASSAGE = 0.9
# Stands for all of a chunk that was not read, before any place in it.
_UNREAD = (0, 0)


class Lines:
    """The known lines of one file in reading order, or pieces of lines: those of one line have the same number."""

    __slots__ = ("_kinds", "chunks", "places", "stretches", "texts", "units")

    def __init__(self) -> None:
        self._kinds: Sequence[int] | None = None
        self.stretches: Sequence[Stretch] = ()  # that they were joined of, if no two have a line in common
        self.places: list[Place] = []
        self.texts: list[str] = []
        # The chunk that each is of and its position there; no chunk when it only fills up a snippet.
        self.chunks: list[ReadChunk | None] = []
        self.units: list[int] = []

    def add(
        self,
        places: Iterable[Place],
        texts: Iterable[str],
        chunks: Iterable[ReadChunk | None],
        units: Iterable[int],
    ) -> None:
        """Take more lines that come after all others."""
        self.places += places
        self.texts += texts
        self.chunks += chunks
        self.units += units

    @property
    def kinds(self) -> Sequence[int]:
        """What each of them is in Markdown."""
        if self._kinds is None:
            self._kinds = joined_kinds(self.stretches) or kinds_of(self.texts, self.places)
        return self._kinds

    def score(self, position: int) -> float:
        """What a line is worth; nothing when it is blank or only fills up."""
        chunk = self.chunks[position]
        return chunk.scores[self.units[position]] if chunk and self.texts[position].strip() else 0.0


_HEADS = frozenset({HEADING, BLANK, RULE})


def joined_kinds(stretches: Iterable[Stretch]) -> list[int] | None:
    """What the lines of stretches are, one after the other; None where code begins, which may not end with them."""
    kinds: list[int] = []
    for _, places, texts, read in stretches:
        own = read.page.kinds_in(read.ranked.chunk) if read is not None else kinds_of(texts, places)
        if OPENING in own:
            return None
        kinds += own
    return kinds


class LinesOfFile(Protocol):
    """A file whose lines are put together only when one of them may be shown."""

    @property
    def chunks(self) -> Sequence[ReadChunk]:
        """What its snippets may grow from."""

    @property
    def most(self) -> float:
        """At least the score of its best line."""

    def lines(self) -> Lines:
        """The lines of its chunks."""

    def wider(self, first: int, last: int) -> Lines | None:
        """The same lines and more, if there may be more around or between the first and the last of a snippet."""

    def hidden(self, lines: Lines) -> AbstractSet[Place]:
        """Which of the lines must not be shown."""


class Snippet:
    """A run of neighbouring lines that fits the budget, grown around its best line."""

    __slots__ = ("also", "best", "end_line", "file", "score", "start_line", "text")

    def __init__(
        self, file: int, best: tuple[ReadChunk, int], cited: tuple[int, int], text: str, *, score: float
    ) -> None:
        self.file = file  # which of the files it is of
        self.best = best  # the chunk and the unit that it grew from
        self.score = score  # of its best line, less what its file has said already
        self.start_line, self.end_line = cited
        self.text = text
        self.also: list[Snippet] = []  # others that say the same

    @property
    def said(self) -> TermSet:
        """The terms of the question that its best line has."""
        read, unit = self.best
        return 0 if read.wording is None else read.wording.own[unit]

    @property
    def letters(self) -> str:
        """Those of its best line: what says the same has the same ones."""
        read, unit = self.best
        return letters_of(read.page.units[unit])


class _Source:
    """What is left of one file to make snippets of."""

    __slots__ = ("_factors", "_file", "_left", "_lines", "_seeds", "_shown", "_taken")

    def __init__(self, file: LinesOfFile) -> None:
        self._file = file
        self._lines: Lines | None = None
        self._shown: set[Place] = set()
        self._taken = 0
        self._factors: dict[int, float] = {}  # by chunk: what the rest of it is worth of what it says
        # By chunk, once it was read: its units, best first.
        self._left: dict[int, Iterator[tuple[float, Place]]] = {}
        # One entry a chunk: its best unit that is left, or what any of its units is worth at most.
        self._seeds = [(-chunk.most, _UNREAD, number) for number, chunk in enumerate(file.chunks)]
        heapify(self._seeds)

    def most(self) -> float | None:
        """What the next snippet is worth at most; None when every line is shown."""
        return -self._seeds[0][0] * SAME_FILE**self._taken if self._seeds else None

    def read_on(self) -> bool:
        """Look closer at what may start the next snippet; False when it does."""
        _, place, number = self._seeds[0]
        chunk = self._file.chunks[number]
        if chunk.may_be_less:
            chunk.look()
            heapreplace(self._seeds, (-chunk.most, _UNREAD, number))
            return True
        if place is _UNREAD:
            self._left[number] = _best_first(chunk)
        elif place not in self._shown:
            if self._lines is None:
                self._lines = self._file.lines()
                self._shown |= self._file.hidden(self._lines)
            position = bisect_left(self._lines.places, place)
            if place not in self._shown and self._lines.chunks[position] is chunk:
                return False  # or else another chunk has the same line
        for worth, following in self._left[number]:
            if following not in self._shown:
                heapreplace(self._seeds, (worth * self._factors.get(number, 1.0), following, number))
                return True
        heappop(self._seeds)
        return True

    def grow(self, budget: int) -> tuple[tuple[ReadChunk, int], tuple[int, int], str] | None:
        """Take the next snippet: what it grew from, the lines to cite, and its text; None for one that says nothing."""
        lines = self._lines
        assert lines is not None
        _, place, number = self._seeds[0]
        first, last = _grow(lines, place, budget, self._shown)
        wider = self._file.wider(first, last)
        if wider is not None:
            lines = self._lines = wider
            self._shown |= self._file.hidden(lines)
            first, last = _grow(lines, place, budget, self._shown)
        best = bisect_left(lines.places, place)
        first, last = _trim(lines, first, last, best)
        self._shown.update(lines.places[first : last + 1])
        if self._is_left_over(lines, first, last):
            return None
        self._taken += 1
        chunk = self._file.chunks[number]
        if chunk.places[0][0] == chunk.places[-1][0] or speaker_of(lines.texts[best]) is None:
            self._factors[number] = SAME_PASSAGE
        cited = lines.places[first][0], lines.places[last][0]
        text = _snippet_text(lines, first, last, budget, ends_with_best=first < best == last)
        return (chunk, lines.units[best]), cited, text

    def _is_left_over(self, lines: Lines, first: int, last: int) -> bool:
        """Whether these are headings, and what stands below them is shown already."""
        kinds, below = lines.kinds, last + 1
        if not _HEADS.issuperset(kinds[first : last + 1]):
            return False
        while below < len(kinds) and kinds[below] == BLANK:
            below += 1
        return below < len(kinds) and lines.places[below] in self._shown


def _best_first(chunk: ReadChunk) -> Iterator[tuple[float, Place]]:
    """The units of a chunk that may start a snippet: what they are worth, negative, and their places."""
    scores, places, texts = chunk.scores, chunk.places, chunk.page.units
    for unit in sorted(range(len(scores)), key=scores.__getitem__, reverse=True):
        if texts[unit].strip(" \t\r\n-*_="):  # blank lines and rules say nothing
            yield -scores[unit], places[unit]


def grow_snippets(files: Sequence[LinesOfFile], *, budget: int) -> Iterator[Snippet]:
    """Yield snippets, best first; no line is shown twice.

    A generator: the first snippets are the same however many the caller takes. What cannot be among them is not read.
    """
    # One entry a file: what its next snippet is worth at most, and exactly once its best chunk was read.
    waiting = [(-file.most, number) for number, file in enumerate(files)]
    heapify(waiting)
    opened: dict[int, _Source] = {}
    while waiting:
        worth, number = waiting[0]
        source = opened.get(number)
        if source is None:
            source = opened[number] = _Source(files[number])
        elif not source.read_on():
            grown = source.grow(budget)
            if grown is not None:
                yield Snippet(number, *grown, score=-worth)
        following = source.most()
        if following is None:
            heappop(waiting)
        else:
            heapreplace(waiting, (-following, number))


def _grow(lines: Lines, best: Place, budget: int, shown: AbstractSet[Place]) -> tuple[int, int]:
    """Widen a range towards whichever neighbour is worth more, while it fits: up to its heading, and no further."""
    score = lines.score
    first = last = bisect_left(lines.places, best)
    left: float = budget - len(lines.texts[first])
    before, after = _step_up(lines, first, shown), _step_down(lines, last, shown)
    worth_before = worth_after = _UNKNOWN
    while True:
        before_fits, after_fits = before <= left, after <= left
        if before_fits and after_fits:
            if worth_before == _UNKNOWN:
                worth_before = score(first - 1)
            if worth_after == _UNKNOWN:
                worth_after = score(last + 1)
            after_fits = worth_before <= worth_after  # ties go to what follows: an answer comes after
        if after_fits:
            last += 1
            left -= after
            after, worth_after = _step_down(lines, last, shown), _UNKNOWN
        elif before_fits:
            first -= 1
            left -= before
            before, worth_before = _step_up(lines, first, shown), _UNKNOWN
        else:
            return first, last


_UNKNOWN = float("-inf")  # no line is worth so little
_NOWHERE = float("inf")


def _step_down(lines: Lines, position: int, shown: AbstractSet[Place]) -> float:
    """What the line after a line costs, with the line breaks between them; infinite when it must not be taken."""
    places, after = lines.places, position + 1
    if after == len(places) or places[after] in shown:
        return _NOWHERE
    gap = places[after][0] - places[position][0]  # 0 between pieces of one line
    return len(lines.texts[after]) + gap if gap <= NEAR_LINES else _NOWHERE


def _step_up(lines: Lines, position: int, shown: AbstractSet[Place]) -> float:
    """The same for the line before a line."""
    places, before = lines.places, position - 1
    if before < 0 or places[before] in shown:
        return _NOWHERE
    if lines.kinds[before] == RULE or _begins_section(lines, position):
        return _NOWHERE
    gap = places[position][0] - places[before][0]
    return len(lines.texts[before]) + gap if gap <= NEAR_LINES else _NOWHERE


def _begins_section(lines: Lines, position: int) -> bool:
    """Whether a line is a heading, and what stands above it no heading that it belongs to."""
    kinds = lines.kinds
    if kinds[position] != HEADING:
        return False
    above = position - 1
    while above > 0 and kinds[above] == BLANK:
        above -= 1
    return kinds[above] != HEADING


def _trim(lines: Lines, first: int, last: int, best: int) -> tuple[int, int]:
    """Let a range begin with a heading, an item, a paragraph or code, and not end with what begins something else."""
    kinds = lines.kinds
    while last > best and kinds[last] in {BLANK, HEADING, RULE, OPENING}:
        last -= 1
    start = first
    while start < best and not _begins_well(lines, start):
        start += 1
    return (start if _begins_well(lines, start) else first), last


def _begins_well(lines: Lines, position: int) -> bool:
    kind = lines.kinds[position]
    if kind != TEXT:
        return kind not in {BLANK, RULE, CLOSING, CODE}
    if not position or lines.kinds[position - 1] not in {TEXT, ITEM}:
        return True
    # A line of text goes on with the one above it, whether that is an item or a paragraph.
    (before, _), (line, piece) = lines.places[position - 1], lines.places[position]
    return line != before + 1 and (line != before or piece == 0)


def _snippet_text(lines: Lines, first: int, last: int, budget: int, *, ends_with_best: bool) -> str:
    """The text of a range, blank lines in between included; a line that is cut says so, and never at the best one."""
    places, texts = lines.places, lines.texts
    parts = [texts[first]]
    for at in range(first + 1, last + 1):
        parts.append("\n" * (places[at][0] - places[at - 1][0]))
        parts.append(texts[at])
    text = "".join(parts)
    if first and places[first - 1][0] == places[first][0]:
        text = ELLIPSIS + text.lstrip()
    if last + 1 < len(places) and places[last + 1][0] == places[last][0]:
        text = text.rstrip() + ELLIPSIS
    if ends_with_best and len(text) > budget:  # by the marks that say that something was cut
        text = ELLIPSIS + text[1 - budget :].lstrip()
    return text[:budget].strip("\n")


# Fetches the chunks of a file that share a line with a range.
Between: TypeAlias = "Callable[[int, int], Sequence[Chunk]]"
# The ordinal of a chunk, where its units stand, their texts, and the chunk itself if it may start a snippet.
Stretch: TypeAlias = "tuple[int, Sequence[Place], Sequence[str], ReadChunk | None]"

# Tells by lines of a file, their places and texts, and behind these the headings above them, which lines, by number,
# must not be shown.
Hides: TypeAlias = "Callable[[Sequence[Place], Sequence[str]], AbstractSet[int]]"

# How far the chunks around the best ones are read, to fill up snippets at the edge of a chunk.
MARGIN_LINES = 12


class KnownFile:
    """The chunks of one file that are worth reading, best first."""

    __slots__ = ("_between", "_brinks", "_hides", "_ordinals", "_with_margin", "chunks", "most")

    def __init__(self, between: Between, hides: Hides | None = None) -> None:
        self.most = 0.0
        self.chunks: list[ReadChunk] = []
        self._ordinals: set[int] = set()
        self._with_margin: list[Chunk] = []
        self._between = between
        self._hides = hides
        self._brinks: list[int]

    def add(self, read: ReadChunk, *, with_margin: bool) -> None:
        """Take one more chunk; its margin are the lines around it, which may fill up a snippet at its edge."""
        chunk = read.ranked.chunk
        self.chunks.append(read)
        self._ordinals.add(chunk.ordinal)
        self.most = max(self.most, read.most)
        if with_margin:
            self._with_margin.append(chunk)

    def lines(self) -> Lines:
        """All lines of the chunks in reading order."""
        lines = join_stretches(self._stretches())
        if self._with_margin:
            self._brinks = self._brinks_of(lines)
        return lines

    def wider(self, first: int, last: int) -> Lines | None:
        """The lines together with the margins, if a snippet of these lines may touch one; None if they stay the same.

        Two snippets in three touch none, and a margin takes as long to fetch as a chunk to read.
        """
        if not self._with_margin or self._encloses(first, last):
            return None
        margins = self._margins()
        self._with_margin.clear()
        if not margins:
            return None
        return join_stretches([*margins, *self._stretches()])

    def hidden(self, lines: Lines) -> AbstractSet[Place]:
        """Which of the lines must not be shown: hardly ever any."""
        if self._hides is None:
            return frozenset()
        contexts = [read.ranked.chunk.context for read in self.chunks]
        numbers = self._hides(lines.places, [*lines.texts, *contexts])
        return {place for place in lines.places if place[0] in numbers} if numbers else frozenset()

    def _stretches(self) -> list[Stretch]:
        return [(read.ranked.chunk.ordinal, read.places, read.page.units, read) for read in self.chunks]

    def _encloses(self, first: int, last: int) -> bool:
        """Whether all that can stand around and between these lines is known."""
        brinks = self._brinks
        return brinks[bisect_left(brinks, first - 1)] > last

    def _brinks_of(self, lines: Lines) -> list[int]:
        """The positions after which something may stand that is not known, in order; -1 is before all lines."""
        ordered, has_overlap = by_ordinal(self._stretches())
        if has_overlap:
            return list(range(-1, len(lines.places)))
        brinks = []
        at = -1
        for ordinal, places, _, _ in ordered:
            if ordinal and ordinal - 1 not in self._ordinals:
                # What is before may end with pieces of the line with which this begins.
                brinks += [at, at + sum([line == places[0][0] for line, _ in places])]
            at += len(places)
            if ordinal + 1 not in self._ordinals:
                brinks.append(at)
        return brinks

    def _margins(self) -> list[Stretch]:
        """The chunks around those that are worth it, without those that are known, the last one first."""
        found = {
            chunk.ordinal: chunk
            for first, last in ranges_with_margin(self._with_margin)
            for chunk in self._between(first, last)
            if chunk.ordinal not in self._ordinals
        }
        margins: list[Stretch] = []
        for ordinal, chunk in sorted(found.items(), reverse=True):
            texts = units_of(chunk.text, one_line=is_one_line(chunk))
            margins.append((ordinal, places_of(chunk, texts), texts, None))
        return margins


def join_stretches(stretches: Sequence[Stretch]) -> Lines:
    """Put the units of chunks in reading order. Where chunks have the same line, that of the last one counts."""
    lines = Lines()
    ordered, has_overlap = by_ordinal(stretches)
    if not has_overlap:
        lines.stretches = ordered
        for _, places, texts, read in ordered:
            lines.add(places, texts, [read] * len(texts), range(len(texts)))
        return lines
    units = {
        place: (text, read, unit)
        for _, places, texts, read in stretches
        for unit, (place, text) in enumerate(zip(places, texts, strict=True))
    }
    for place, (text, read, unit) in sorted(units.items(), key=itemgetter(0)):
        lines.add([place], [text], [read], [unit])
    return lines


def by_ordinal(stretches: Iterable[Stretch]) -> tuple[list[Stretch], bool]:
    """Those that have any units, by their ordinals; and whether any have lines in common, as pieces of one line do."""
    ordered = sorted([stretch for stretch in stretches if stretch[1]], key=itemgetter(0))
    return ordered, any(after[1][0] <= before[1][-1] for before, after in pairwise(ordered))


def ranges_with_margin(chunks: Iterable[Chunk]) -> list[tuple[int, int]]:
    """The lines of chunks with their margins, in order; those that overlap are one range."""
    ranges: list[tuple[int, int]] = []
    for start, end in sorted((chunk.start_line, chunk.end_line) for chunk in chunks):
        first, last = max(1, start - MARGIN_LINES), end + MARGIN_LINES
        if ranges and first <= ranges[-1][1]:
            before, after = ranges.pop()
            first, last = before, max(after, last)
        ranges.append((first, last))
    return ranges
