"""What a question asks for, and where its words stand in the lines of chunks."""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import accumulate, repeat

from plainmind.base.lazy import IGNORECASE, Lock, pattern
from plainmind.base.model import Chunk, SearchFilter, TermStatistics, date, split_lines
from plainmind.base.value import value
from plainmind.index.bm25 import MOST_COUNTED
from plainmind.text.terms import (
    DayRange,
    clues,
    count_overlapping,
    document_terms,
    fold,
    may_be_spaceless,
    mentioned_days,
    normalize,
    query_terms,
    spaceless_stretches,
    speaker_of,
    stands_in,
    without_days,
    word_terms,
    words_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any, TypeAlias


# A longer one is a document pasted by mistake: it would take seconds and match everything.
LONGEST_QUESTION = 8_000

_RECENT = pattern(
    r"\b(?:lately|latest|current(?:ly)?|newest|nowadays|now|still|these days|most recent|at the moment|any ?more"
    r"|at present|presently|up to date|to date"
    r"|jetzt|aktuell\w*|derzeit\w*|momentan|neueste\w*|immer noch|noch immer|heutzutage|zurzeit|mittlerweile|inzwischen"
    r"|ahora|actual(?:es|mente)?|todavía|aún|hoy en día|últim[oa]s?|sigue[ns]?|seguimos|a día de hoy|de momento"
    r"|maintenant|actuel\w*|encore|toujours|désormais|à présent|dernière?s?|derniers?|en ce moment"
    r"|adesso|attual\w*|agora|atual\w*)\b",
    IGNORECASE,
)
_RECENT_HINTS = tuple(
    """
    late urrent new now still days recent moment more present date jetzt aktuell derzeit neu noch heutzutage zurzeit
    mittler inzwischen ahora actual tod aún hoy ltim sigue segui mainten actuel encore toujours sormais présent derni
    adesso attual agora atual
    """.split()  # noqa: SIM905
)
# How a question in the present begins, in English, German, Spanish and French: it is about how things are now, too.
_PRESENT = pattern(
    r"(?:(?:what|who|where|which|whose|when|how)(?:[’']s| is| are| does| do|(?: \w+){1,3} (?:is|are|does|do))"
    r"|who (?!was)\w+s|(?:wie|wo|wer|was|wann|welche[rsn]?) (?:\w+ ){0,2}(?:ist|sind|heißt|heisst|wohnt|lebt|liegt"
    r"|steht|hat|haben|zahlen|kostet|findet|beginnt)|comment s[’']appelle|où (?:habite|est)"
    r"|(?:qui|quand|quel(?:le)?) est|¿?(?:cómo|dónde|quién|cuál|cuándo|cuánto)"
    r" (?:se llama|es|vive|está|trabajo|cuesta|pagamos))"
    r"\b(?!.*\b(?:was|were|did|had|used to|war|hatte)\b)",
    IGNORECASE,
)
_RECENT_EAST_ASIAN = tuple(
    """
    最近 最新 目前 现在 現在 当前 當前 如今 眼下 还在 還在 仍然 还是 近頃 このごろ 今の 今は 今も 今どこ まだ もう 最後
    최근 최신 요즘 요새 현재 지금 이제 아직 여전히
    """.split()  # noqa: SIM905
)
_CAPITALISED = pattern(r"\b[^\W\d_a-z]\w+")


# A question is never only its words: what it leaves unsaid weighs as much as one rare word. So one word that is found
# is not all that was asked for. Where there are few chunks no word is rare, and this weighs less too.
UNSAID = 5.0
_RARE = 3.0
# A question that names days is about them: they count like a word, so the more the less it says otherwise.
DAY_WEIGHT = 2.5
# What all words are worth together in a line that has them, by `Weights`: days are worth their share of it.
_OF_WORDS = 0.87
# What has so much of what a line says of the question speaks of the same.
SAME_SUBJECT = 0.9
# So many of the nearest in meaning are read closely whatever their words, and lifted where those say too little.
NEAREST = 4


@value
class ParsedQuery:
    """What a question asks for, in words and in days."""

    text: str
    terms: tuple[str, ...]
    exact: frozenset[str]  # identifiers, ids, error strings: a line that has one always survives
    days: tuple[DayRange, ...]
    named: frozenset[str] = frozenset()  # capitalised words inside the question, folded: mostly people

    def names(self, speaker: str | None) -> bool:
        """Whether the question names this person."""
        return speaker is not None and any(word in self.named for word in speaker.casefold().split())

    def has_exact_token(self, text: str) -> bool:
        """Whether a text has one of the identifiers of the question, as written."""
        if not self.exact:
            return False
        folded = fold(normalize(text))
        found = [clue for term in self.exact for clue in clues(term) if clue in folded]
        if not found and (text.isascii() or all(map(str.isascii, self.exact))):
            return False
        return any(
            not self.exact.isdisjoint(word_terms(word))
            for word in words_of(text)
            if not word.isascii() or any(clue in word.lower() for clue in found)  # what is ASCII has a clue
        )

    @property
    def asks_for_recent(self) -> bool:
        """Whether the question is about how things are now, so that newer notes count more."""
        lowered = self.text.lower()
        if any(hint in lowered for hint in _RECENT_HINTS) and _RECENT.search(self.text):
            return True
        return not self.text.isascii() and any(word in self.text for word in _RECENT_EAST_ASIAN)

    @property
    def asks_how_it_is(self) -> bool:
        """Whether the question is about how things are, now or in the present."""
        return self.asks_for_recent or (not self.days and _PRESENT.match(self.text) is not None)

    @property
    def words_of_days(self) -> frozenset[str]:
        """The terms that name its days."""
        return frozenset([term for span in self.days for term in query_terms(span.text).terms])

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to look for."""
        return not self.text


def parse(text: str, *, today: date) -> ParsedQuery:
    """Take a question apart; `today` decides what "last Friday" means."""
    text = " ".join(text[:LONGEST_QUESTION].split())
    days = mentioned_days(text, today)
    found = query_terms(without_days(text, days))
    return ParsedQuery(
        text=text,
        terms=found.terms,
        exact=found.exact,
        days=days,
        named=_capitalised_words(text),
    )


def _capitalised_words(text: str) -> frozenset[str]:
    """The words with a capital but the first: that has one of its own, and names no person."""
    others = text.partition(" ")[2]
    if others.isascii() and others == others.lower():
        return frozenset()
    return frozenset(word.casefold() for word in _CAPITALISED.findall(others))


# What a question with a filter has in it; most have none, and need not load what reads them.
_FILTER_MARKS = ('"', "“", "„", " -", "tag:", "title:", "path:", "since:", "until:")


def restricted(text: str, where: SearchFilter, today: date) -> tuple[str, SearchFilter]:
    """The words of a question, and the filter with what it restricts itself to."""
    if not text.startswith("-") and not any(map(text.lower().__contains__, _FILTER_MARKS)):
        return text, where
    from plainmind.index.filters import restrict

    return restrict(text, where, today)


# What a question has in it that may ask for all that is known of who asks, or for what is new.
_LONGEST_OPEN = 80
_OPEN_MARKS = """
about me|about my|about the u|am i|know me|mber me|mich| mir|n ich| de m|obre m| soy| moi|suis|di me|hi sono| mim|u eu
| mij|ben ik|new|neu|late|recen|rzlich|nuev|nove|ltima|nouve|derni|nuov|novi|nieuw|我|私|僕|俺|自|나|저|내|최|요|새|近
|新
""".replace("\n", "").split("|")


def may_be_open(text: str) -> bool:
    """Whether a question may name no subject; most do, and need not load what tells."""
    return len(text) <= _LONGEST_OPEN and any(map(text.lower().__contains__, _OPEN_MARKS))


def term_weights(terms: Sequence[str], statistics: TermStatistics) -> Mapping[str, float]:
    """Weigh terms by rarity. A term that stands nowhere weighs most: its absence must lower every score."""
    total = statistics.chunk_count
    return {
        term: math.log(1 + (total - count + 0.5) / (count + 0.5))
        for term in terms
        for count in (min(total, statistics.chunks_with.get(term, 0)),)
    }


@value
class Stake:
    """What a question asks for, in the weight of words: those that it has, and what it asks for besides them."""

    words: Mapping[str, float]
    besides: float = 0.0
    day_bonus: float = 0.0  # what a chunk gains that is of a day the question names
    rarest: float = 1.0  # what a word weighs that stands in one chunk

    @property
    def share_of_words(self) -> float:
        """How much of it all the words are."""
        said = sum(self.words.values())
        return said / (said + self.besides or 1.0)


def stake_of(query: ParsedQuery, statistics: TermStatistics) -> Stake:
    """Weigh what a question asks for."""
    words = term_weights(query.terms, statistics)
    rarest = math.log1p(max(0.5, statistics.chunk_count - 0.5) / 1.5)
    said = sum(words.values())
    scale = 1.0
    if (
        rarest < _RARE and words
    ):  # where words stand everywhere because there is little, they are words all the same
        scale = (rarest / _RARE) ** 2 * said / sum([max(1.0, weight) for weight in words.values()])
    if not query.days:
        return Stake(words, UNSAID * scale, rarest=rarest)
    day_bonus = _OF_WORDS * DAY_WEIGHT / (said + UNSAID + DAY_WEIGHT)
    return Stake(words, (UNSAID + DAY_WEIGHT) * scale, day_bonus, rarest)


def names_day(query: ParsedQuery, day: str | None) -> bool:
    """Whether the question names the day, or a span that holds it."""
    if day is None or not query.days:
        return False
    try:
        wanted = date.fromisoformat(day)
    except ValueError:
        return False
    return any(span.first <= wanted <= span.last for span in query.days)


# --- chunks taken apart into lines ---

# Where a unit stands in its file: the line that it is cited by, and which piece of that line it is.
Place: TypeAlias = "tuple[int, int]"

# Long enough for a few sentences, short enough that two of them and a half fit a 700-character snippet.
PIECE_CHARS = 280
SENTENCE_END = pattern(r"[.!?。！？…]['\")\]”’」』）]*\s*|[;；]\s+|\n")
# More than any line has: keeps pieces of one line that come from different chunks apart, and in order.
PIECES_OF_CHUNK = 10_000


def is_one_line(chunk: Chunk) -> bool:
    """Whether one cited line stands for all of a chunk: perhaps a piece of an overlong line, or of a message."""
    return chunk.start_line == chunk.end_line


def units_of(text: str, *, one_line: bool) -> list[str]:
    """Take a text apart, in reading order."""
    lines = [text] if one_line else split_lines(text)
    if not _has_cut(lines):
        return lines
    return [piece for line in lines for piece in _cut(line)]


def places_of(chunk: Chunk, units: Sequence[str]) -> list[Place]:
    """Where each unit of a chunk stands."""
    start = chunk.start_line
    if is_one_line(chunk):
        first_piece = chunk.ordinal * PIECES_OF_CHUNK
        return [(start, first_piece + number) for number in range(len(units))]
    if has_lines(chunk.text, len(units)):  # then none was cut
        return list(zip(range(start, start + len(units)), repeat(0)))
    lines = split_lines(chunk.text)
    return [(line, number) for line, text in enumerate(lines, start) for number in range(len(_cut(text)))]


# What a line is in Markdown.
TEXT, BLANK, HEADING, ITEM, RULE, OPENING, CODE, CLOSING = range(8)
_MARKERS = frozenset("#-*+_=`~0123456789")
A_HEADING = pattern(r" {0,3}#{1,6}(?:[ \t]|$)")
_ITEM = pattern(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_RULE = pattern(r" {0,3}([-*_=])(?:[ \t]*\1){2,}[ \t]*$")


def kinds_of(texts: Sequence[str], places: Sequence[Place]) -> list[int]:
    """What lines are: code between fences, and everything else by how it begins."""
    kinds = []
    fence = ""
    for text, (_, piece) in zip(texts, places, strict=True):
        bare = text.lstrip()
        if fence:
            is_closing = bare.startswith(fence) and not bare.strip().strip(fence[0])
            kinds.append(CLOSING if is_closing else CODE)
            fence = "" if is_closing else fence
        elif not bare:
            kinds.append(BLANK)
        elif bare[0] not in _MARKERS or piece:
            kinds.append(TEXT)
        elif bare.startswith(("```", "~~~")):
            fence = bare[:3]
            kinds.append(OPENING)
        elif A_HEADING.match(text):
            kinds.append(HEADING)
        elif _RULE.match(text):
            kinds.append(RULE)
        else:
            kinds.append(ITEM if _ITEM.match(text) else TEXT)
    return kinds


# Good chunks are read again and again, and cutting is most of the reading. A line is no longer than a chunk.
@lru_cache(maxsize=1024)
def _cut(line: str) -> tuple[str, ...]:
    return tuple(pieces(line))


def has_lines(text: str, count: int) -> bool:
    """Whether a text has so many lines, divided by nothing but line feeds; found out without splitting it."""
    return text.count("\n") + 1 == count and not text.endswith("\n") and "\r" not in text


def _has_cut(lines: Sequence[str]) -> bool:
    return max(map(len, lines), default=0) > 2 * PIECE_CHARS


def pieces(text: str, limit: int = PIECE_CHARS) -> Iterator[str]:
    """Cut a long text after sentences, or words, or anywhere; the pieces joined are the text."""
    if len(text) <= 2 * limit:
        yield text
        return
    start = 0
    while len(text) - start > limit:
        cut = _last_end(SENTENCE_END, text, start + limit // 3, start + limit)
        if cut is None:
            space = text.rfind(" ", start + limit // 3, start + limit)
            cut = space + 1 if space >= 0 else start + limit
        yield text[start:cut]
        start = cut
    yield text[start:]


def _last_end(ends: re.Pattern[str], text: str, first: int, last: int) -> int | None:
    """Where the last match inside a window ends."""
    end = None
    for match in ends.finditer(text, first, last):
        end = match.end()
    return end


class RankedChunk:
    """A chunk that is worth reading line by line."""

    __slots__ = ("bonus", "chunk", "id", "keywords", "lift", "meaning", "neighbours", "term_counts")

    def __init__(self, chunk: Chunk, keywords: float, meaning: float, bonus: float, *, id_: int = 0) -> None:
        self.id = id_
        self.chunk = chunk
        self.keywords = keywords  # BM25 of its words, headings included
        self.meaning = meaning  # cosine of its vector
        self.bonus = bonus  # for what it is, whatever it says
        self.lift = 0.0  # for its meaning, where the words of the question say too little
        # BM25 of the better of the chunks before and after, as far as they are foremost.
        self.neighbours = 0.0
        # By term of the question: how often it stands in the chunk and its headings.
        self.term_counts = b""


# By term: the positions of the units in which it stands, and how often it stands there.
WordIndex: TypeAlias = Mapping[str, tuple[tuple[int, int], ...]]

# Of a page with more bytes beyond ASCII than one in so many, every word is looked at.
PLAIN_SHARE = 16
# Each stands between words, and is as long as the space that is put for it.
_TYPOGRAPHY = "“”—–…•·‘„«»\xa0"
BEYOND_ASCII = pattern(r"[^\0-\x7f]")
_SPACE = pattern(r"\s")


class Page:
    """The units of a chunk in reading order; `ends[n]` is how long those before n are, each with a line break.

    A plain text is taken apart when its parts are first asked for: most pages of a search are not read.
    """

    __slots__ = (
        "_chunk_text",
        "_kinds",
        "_one_line",
        "_speakers",
        "_standing",
        "ends",
        "folded",
        "glanced_at",
        "index",
        "is_foreign",
        "is_plain",
        "text",
        "units",
    )
    units: list[str]
    ends: list[int]
    text: str  # the units one after the other, each with a space behind it: `ends` says where they begin
    # The same without case, letter by letter, and with nothing but spaces between words; empty when it is foreign, for
    # then it is folded by other rules.
    folded: str

    def __init__(self, chunk: Chunk) -> None:
        self.index: WordIndex | None = None  # worth making for a page that is read more than once
        self._speakers: list[str | None] | None = None
        # Where its units stand in a file, with the chunk's first line and its ordinal; and what they are there.
        self._standing: tuple[int, int, list[Place]] | None = None
        self._kinds: tuple[list[Place], list[int]] | None = None
        self._chunk_text = chunk.text
        self._one_line = is_one_line(chunk)
        self.is_plain = chunk.text.isascii()
        self.is_foreign = False
        if self.is_plain:
            self.glanced_at = chunk.text.lower()  # has all that `folded` has between spaces
        else:
            self._take_apart()
            self._fold_accents()
            self.glanced_at = self.folded

    def __getattr__(self, name: str) -> Any:
        """Be asked for a part of a plain page for the first time."""
        self._take_apart()
        is_as_long = has_lines(self._chunk_text, len(self.units))  # then a line break stands for each space
        self.folded = _with_spaces(f"{self.glanced_at} " if is_as_long else self.text.lower())
        return object.__getattribute__(self, name)

    def _take_apart(self) -> None:
        units = self.units = units_of(self._chunk_text, one_line=self._one_line)
        self.ends = [0, *accumulate([len(unit) + 1 for unit in units])]
        self.text = " ".join([*units, ""])

    def _fold_accents(self) -> None:
        """Put plain marks for typographic ones, which say nothing, and see how much is left beyond ASCII."""
        self.folded = ""
        self.is_foreign = may_be_spaceless(self.text)
        if self.is_foreign:
            return
        text = self.text.replace("’", "'")
        for mark in _TYPOGRAPHY:
            text = text.replace(mark, " ")
        self.text = text
        self.is_plain = text.isascii()
        if self.is_plain:
            self.folded = _with_spaces(text.lower())
        else:
            beyond = len(text.encode("utf-8", "surrogatepass")) - len(text)
            self.is_foreign = PLAIN_SHARE * beyond > len(text)
            self.folded = _with_spaces(text.replace("İ", "i").lower())

    def places_in(self, chunk: Chunk) -> list[Place]:
        """Where each unit of its chunk stands; others with the same text stand elsewhere."""
        known = self._standing
        if known is None or known[0] != chunk.start_line or known[1] != chunk.ordinal:
            self._standing = known = chunk.start_line, chunk.ordinal, places_of(chunk, self.units)
        return known[2]

    def kinds_in(self, chunk: Chunk) -> list[int]:
        """What each unit of its chunk is in Markdown, if no code has begun before it."""
        places, known = self.places_in(chunk), self._kinds
        if known is None or known[0] is not places:
            self._kinds = known = places, kinds_of(self.units, places)
        return known[1]

    def put_in_order(self, index: WordIndex) -> None:
        """Find words by an index from now on: what they were looked for in is let go."""
        self.index = index
        self._speakers = self._find_speakers()
        self.text = self.folded = self.glanced_at = self._chunk_text = ""

    def spoken_by(self, names: frozenset[str]) -> list[int]:
        """The units in which one of these people (folded) speaks."""
        if not names:
            return []
        if self._speakers is None:
            self._speakers = self._find_speakers()
        return [position for position, speaker in enumerate(self._speakers) if speaker in names]

    def may_be_spoken_by(self, names: frozenset[str]) -> bool:
        """Whether one of these people (folded) may speak in it; never False when one does."""
        if self._speakers is not None or not self.is_plain:
            return bool(self.spoken_by(names))
        return ":" in self.glanced_at and any(name in self.glanced_at for name in names)

    def _find_speakers(self) -> list[str | None]:
        if ":" not in self.text and "：" not in self.text:
            return []
        return [speaker_of(unit) for unit in self.units]


def _with_spaces(text: str) -> str:
    text = text.replace("\n", " ")
    # Whatever else divides words cannot be printed, and seldom stands in a text.
    return text if text.isprintable() else _SPACE.sub(" ", text)


WORTH_AN_INDEX = 32  # readings
SHELF_BYTES = 8 * 1024 * 1024
# So many pages without an index are kept, and as many that were asked for before those: some 5 KB each.
RECENT_PAGES = 256
# After so many pages that were not on the shelf, others may be worth keeping: it is cleared.
SHELF_MISSES = 20_000
# Measured, beside the text itself. English terms are shared with what `document_terms` remembers, pairs are not.
UNIT_BYTES = 150
TERM_BYTES = 40
FOREIGN_TERM_BYTES = 90


class Shelf:
    """Keeps the first pages that are asked for again and again, as many as fit. Safe to share between threads.

    An index takes as long as reading a page some eight times, and what it saves has to win that back. So none is made
    before a page was read four times as often, and none is thrown away for another: where the same few thousand pages
    come round, all would be made again. Without an index the pages of the last questions are kept: questions that come
    together are about the same things.
    """

    def __init__(
        self,
        *,
        worth_an_index: int = WORTH_AN_INDEX,
        most_bytes: int = SHELF_BYTES,
        most_misses: int = SHELF_MISSES,
        recent_pages: int = RECENT_PAGES,
    ) -> None:
        self.size_bytes = 0
        self._worth_an_index = worth_an_index
        self._most_bytes = most_bytes
        self._most_misses = most_misses
        self._misses = 0
        self._pages: dict[tuple[str, bool], Page] = {}
        self._readings: dict[int, int] = {}
        self._recent_pages = recent_pages
        self._recent: dict[tuple[str, bool], Page] = {}
        self._older: dict[tuple[str, bool], Page] = {}
        self._lock = Lock()

    def page(self, chunk: Chunk) -> Page:
        """The page of a chunk, with an index if it is worth one."""
        key = chunk.text, is_one_line(chunk)
        page = self._pages.get(key)
        if page is not None:
            return page
        if self._is_worth_keeping(hash(key)):
            page = Page(chunk)  # another thread may be reading the one without an index
            page.put_in_order(word_index(page.units))
            self._keep(key, page)
            return page
        page = self._recent.get(key)
        return page if page is not None else self._take_in(key, chunk)

    def _take_in(self, key: tuple[str, bool], chunk: Chunk) -> Page:
        """Keep a page for the next questions; those that were not asked for since go, half of all at a time."""
        page = self._older.get(key) or Page(chunk)
        with self._lock:
            self._recent[key] = page
            if len(self._recent) >= self._recent_pages:
                self._older, self._recent = self._recent, {}
        return page

    def _is_worth_keeping(self, name: int) -> bool:
        with self._lock:
            self._misses += 1
            if self._misses > self._most_misses:
                self._misses = self.size_bytes = 0
                self._pages.clear()
                self._readings.clear()
            readings = self._readings[name] = self._readings.get(name, 0) + 1
            return readings >= self._worth_an_index and self.size_bytes < self._most_bytes

    def _keep(self, key: tuple[str, bool], page: Page) -> None:
        with self._lock:
            self._recent.pop(key, None)
            if key not in self._pages:  # or another thread was faster
                self._pages[key] = page
                self.size_bytes += page_bytes(page)


def word_index(units: Sequence[str]) -> WordIndex:
    """By term: in which units it stands, and how often."""
    index: dict[str, dict[int, int]] = {}
    for position, unit in enumerate(units):
        for term in document_terms(unit):
            counts = index.setdefault(term, {})
            counts[position] = counts.get(position, 0) + 1
    return {term: _shared(tuple(counts.items())) for term, counts in index.items()}


# Most terms stand in one unit, once: they share what says so.
@lru_cache(maxsize=1024)
def _shared(counts: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    return counts


def page_bytes(page: Page) -> int:
    """About how much memory an indexed page takes."""
    of_term = FOREIGN_TERM_BYTES if page.is_foreign else TERM_BYTES
    return page.ends[-1] + UNIT_BYTES * len(page.units) + of_term * len(page.index or ())


# A set of terms is a number with one bit for each: bit 0 is the first term of the question.
TermSet: TypeAlias = int
# In order: the position of a unit in its page, the number of a term that stands in it, and how often it does.
Found: TypeAlias = Sequence[tuple[int, int, int]]

_STANDS = b"0" + b"1" * MOST_COUNTED  # by count: the digit of a set of terms


class QuestionWords:
    """The terms of a question with their weights, ready to be looked for in many pages."""

    def __init__(self, weights: Mapping[str, float], *, besides: float = 0.0) -> None:
        """What a question asks for `besides` its words weighs as much as words would."""
        self.terms = tuple(weights)
        self.weights = tuple(weights.values())
        self.total = sum(self.weights) + besides or 1.0
        # By a set of terms: how much of the question's weight they carry.
        by_bit = [(1 << number, weight) for number, weight in enumerate(self.weights)]
        self.shares = Memo(lambda terms: sum([one for bit, one in by_bit if terms & bit]) / self.total)
        self._said = _Said(self.terms)
        # What to look for, and the set of the one term that it is a clue of.
        self._clues = [(clue, 1 << number) for number, term in enumerate(self.terms) for clue in clues(term)]
        # The terms that are no words but two letters beside each other in a script without spaces.
        self._pairs = [
            (number, term)
            for number, term in enumerate(self.terms)
            if len(term) == 2 and len(spaceless_stretches(term)) > 1
        ]

    def found_in(self, page: Page, among: TermSet = -1) -> Found:
        """Where the words stand, unit by unit; only terms `among` these are looked for."""
        if page.index is not None:
            return self._in_index(page.index)
        found = self._in_every_word(page) if page.is_foreign else self._in_words_with_clues(page, among)
        counts: dict[tuple[int, int], int] = {}
        for place in found:
            counts[place] = counts.get(place, 0) + 1
        return sorted([(position, number, count) for (position, number), count in counts.items()])

    def share_of_words(self, terms: TermSet) -> float:
        """How much of the words' weight some terms carry, whatever else the question asks for."""
        return self.shares[terms] * self.total / (sum(self.weights) or 1.0)

    @property
    def all_terms(self) -> TermSet:
        """Every term of the question."""
        return (1 << len(self.terms)) - 1

    def terms_among(self, names: AbstractSet[str]) -> TermSet:
        """The set of those terms that are among some."""
        return sum([1 << number for number, term in enumerate(self.terms) if term in names])

    def names_of(self, terms: TermSet) -> tuple[str, ...]:
        """The terms of a set, in the order of the question."""
        return tuple([term for number, term in enumerate(self.terms) if terms >> number & 1])

    def _in_index(self, index: WordIndex) -> Found:
        return sorted(
            [
                (position, number, count)
                for number, term in enumerate(self.terms)
                if term in index
                for position, count in index[term]
            ]
        )

    def _in_words_with_clues(self, page: Page, among: TermSet) -> list[tuple[int, int]]:
        """Look at the words that may say a term: few of all."""
        text, folded, ends, said = page.text, page.folded, page.ends, self._said
        find, find_before = folded.find, folded.rfind
        words: dict[int, str] = {}
        for clue, term in self._clues:
            at = find(clue) if term & among else -1
            while at >= 0:
                start = find_before(" ", 0, at) + 1
                end = find(" ", at)
                words[start] = text[start:end]
                at = find(clue, end)
        if not page.is_plain:
            for letter in BEYOND_ASCII.finditer(folded):
                start = folded.rfind(" ", 0, letter.start()) + 1
                words[start] = text[start : folded.find(" ", start)]
        return [
            (bisect_right(ends, start) - 1, number) for start, word in words.items() for number in said[word]
        ]

    def _in_every_word(self, page: Page) -> list[tuple[int, int]]:
        """Look at all words, and at all pairs of letters."""
        # A line break joins with no letter, whatever is normalized.
        text = normalize("\n".join([unit.replace("\n", " ") for unit in page.units]))
        units = text.split("\n")
        pairs = [(number, pair) for number, pair in self._pairs if pair in text]
        found = [
            (position, number)
            for number, pair in pairs
            for position, unit in enumerate(units)
            for _ in range(count_overlapping(unit, pair))
        ]
        if len(self._pairs) < len(self.terms):
            said = self._said
            for position, unit in enumerate(units):
                found += [(position, number) for word in _words_of_unit(unit) for number in said[word]]
        return found


_WRITTEN = pattern(r"[^\W_]+")
_LITTLE_WORD = 1.0  # what one weighs that nothing is filed under, beside rare words of five or six


class AsWritten:
    """The words of a question as they are written, little ones too: who answers often says it in the same words."""

    def __init__(self, text: str, asked: QuestionWords) -> None:
        weights = dict(zip(asked.terms, asked.weights, strict=True))
        self._words = {
            word: sum([weights[term] for term in word_terms(word) if term in weights]) or _LITTLE_WORD
            for word in _WRITTEN.findall(text.lower())
        }
        self._total = sum(self._words.values()) or 1.0

    def share_in(self, text: str) -> float:
        """How much of the question stands in a text, by the weight of its words."""
        folded = text.lower()
        return sum([weight for word, weight in self._words.items() if stands_in(folded, word)]) / self._total


class _Said(dict[str, tuple[int, ...]]):
    """By word as written: the numbers of the terms that it says, each as often as it says it."""

    def __init__(self, terms: Sequence[str]) -> None:
        super().__init__()
        self._numbers = {term: number for number, term in enumerate(terms)}

    def __missing__(self, word: str) -> tuple[int, ...]:
        known = self._numbers
        terms = [term for part in words_of(word) for term in word_terms(part)]
        self[word] = numbers = tuple([known[term] for term in terms if term in known])
        return numbers


class Memo(dict[int, float]):
    """What a function gives for sets of terms: few different ones occur, so each is worked out once."""

    def __init__(self, function: Callable[[TermSet], float]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, terms: TermSet) -> float:
        self[terms] = worked_out = self._function(terms)
        return worked_out


def terms_with(counts: bytes) -> TermSet:
    """The terms that stand in a chunk, of which it is known how often each does."""
    return int(counts[::-1].translate(_STANDS), 2) if counts else 0


def limit_to_counts(found: Found, counts: bytes) -> Found:
    """What was found, as far as the chunk is filed under it; a word that was cut in two may read like others."""
    left = list(counts)
    for _, number, count in found:
        left[number] -= count
    if min(left, default=0) >= 0:
        return found
    left = [count if count < MOST_COUNTED else sys.maxsize for count in counts]
    kept = []
    for position, number, count in found:
        counted = min(count, left[number])
        left[number] -= counted
        if counted:
            kept.append((position, number, counted))
    return kept


def _words_of_unit(unit: str) -> list[str]:
    """The words of a unit; of what is written without spaces only letters that stand alone, for pairs are no words."""
    if not may_be_spaceless(unit):
        return unit.split()
    words: list[str] = []
    for word in unit.split():
        stretches = spaceless_stretches(word)
        words += filter(None, stretches[::2])
        words += [run for run in stretches[1::2] if len(run) == 1]
    return words
