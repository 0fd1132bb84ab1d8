"""A question in, cited lines out: asks the index by word and by meaning, then reads the best chunks closely."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice

from plainmind.base.errors import EmbeddingError
from plainmind.base.model import (
    Chunk,
    CitedLines,
    Mode,
    SearchFilter,
    SearchHit,
    SearchResult,
    Source,
    Stopwatch,
    Vector,
    date,
)
from plainmind.base.value import field, replace, value
from plainmind.embed.protocol import complete
from plainmind.search.pages import (
    A_HEADING,
    LONGEST_QUESTION,
    NEAREST,
    SAME_SUBJECT,
    AsWritten,
    ParsedQuery,
    QuestionWords,
    RankedChunk,
    Shelf,
    Stake,
    may_be_open,
    names_day,
    parse,
    restricted,
    stake_of,
)
from plainmind.search.snippets import (
    ENOUGH_SAID,
    Judge,
    KnownFile,
    Snippet,
    Weights,
    grow_snippets,
    read_closely,
)
from plainmind.text.terms import query_names, terms_of_span, whole_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import ModuleType
    from typing import TypeVar

    from plainmind.embed.protocol import Embedder
    from plainmind.index.protocol import IndexReader, IndexStore
    from plainmind.search.doubts import Explanations
    from plainmind.search.selection import Unwanted
    from plainmind.search.snippets import Hides

    T = TypeVar("T")


# What a chunk gains that is called what the question says, at most.
NAME_WEIGHT = 0.3
# How many chunks are proposed by their names.
NAMED = 16
# What a note gains besides whose whole name the question is, and what is called by all words of a question of so many.
CALLED = 1.5
ALL_NAMED = 1.0
SHORT_QUESTION = 6
# In transcripts, what people said about themselves counts more, and what an assistant made of it less: by no more than
# what it says about the question, or all that was said would stand above a note that answers.
ASKED_BONUS = 0.15
ANSWERED_MALUS = 0.15
_MOST_LOST = 1 / 3  # of what a chunk is worth: a line of it is never worth less than nothing


def positions_in_question(
    where: SearchFilter,
    keywords: Sequence[float],
    meaning: Sequence[float],
    named: Sequence[float],
    *,
    day_bonus: float,
    meaning_weight: float,
    foremost: int,
) -> list[int]:
    """The positions of those that can be among the foremost, whatever the bonus of each: no others need be fetched."""
    swing = day_bonus + (ASKED_BONUS + ANSWERED_MALUS if "sessions" in where.sources else 0.0)
    own_worths = _worths(keywords, meaning, meaning_weight)
    worths = [own + NAME_WEIGHT * name for own, name in zip(own_worths, named, strict=True)]
    worths = _with_nearest(worths, meaning, foremost)
    least = sorted(worths, reverse=True)[:foremost][-1] if worths else 0.0
    return [position for position, worth in enumerate(worths) if worth + swing >= least]


def _with_nearest(worths: list[float], meaning: Sequence[float], foremost: int) -> list[float]:
    """Let the nearest in meaning be among the foremost: as their last ones at least."""
    if not worths:
        return worths
    near = sorted(meaning, reverse=True)[:NEAREST][-1]
    enough = sorted(worths, reverse=True)[: max(1, foremost - NEAREST)][-1]
    return [
        max(worth, enough) if by >= near > 0 else worth for worth, by in zip(worths, meaning, strict=True)
    ]


def ranked_chunks(
    query: ParsedQuery,
    proposed: Mapping[int, Chunk],
    keywords: Sequence[float],
    meaning: Sequence[float],
    named: Sequence[float],
    *,
    day_bonus: float,
    meaning_weight: float,
    foremost: int,
    everything: bool,
) -> list[RankedChunk]:
    """The foremost chunks, or all of them, best first: words count more here, for the lines in a chunk too."""
    own_worths = _worths(keywords, meaning, meaning_weight)
    bonuses = [
        bonus + NAME_WEIGHT * name
        for bonus, name in zip(_bonuses(query, proposed.values(), own_worths, day_bonus), named, strict=True)
    ]
    worths = [own + bonus for own, bonus in zip(own_worths, bonuses, strict=True)]
    worths = _with_nearest(worths, meaning, foremost)
    most = len(worths) if everything else min(foremost, len(worths))
    least = sorted(worths, reverse=True)[most - 1] if most else 0.0
    ordered = sorted(
        [
            (
                -worth,
                chunk.source,
                chunk.path,
                chunk.ordinal,
                RankedChunk(chunk, by_word, by_meaning, bonus, id_=id_),
            )
            for worth, (id_, chunk), by_word, by_meaning, bonus in zip(
                worths, proposed.items(), keywords, meaning, bonuses, strict=True
            )
            if worth >= least
        ]
    )  # no two chunks have the same place, so that nothing after it is ever compared
    ranked = [chunk for _, _, _, _, chunk in ordered[:most]]
    _look_beside(ranked, foremost)
    return ranked


def _worths(keywords: Sequence[float], meaning: Sequence[float], meaning_weight: float) -> list[float]:
    """What chunks are worth by their words and their meaning."""
    return [
        (1.0 - meaning_weight) * by_word + meaning_weight * by_meaning
        for by_word, by_meaning in zip(keywords, meaning, strict=True)
    ]


def _bonuses(
    query: ParsedQuery, chunks: Collection[Chunk], own_worths: Sequence[float], day_bonus: float
) -> list[float]:
    """What chunks are worth beyond that."""
    of_talk = [_of_talk(chunk, own) for chunk, own in zip(chunks, own_worths, strict=True)]
    if not query.days:
        return of_talk
    return [
        (day_bonus if names_day(query, chunk.day) else 0.0) + bonus
        for chunk, bonus in zip(chunks, of_talk, strict=True)
    ]


def _of_talk(chunk: Chunk, own: float) -> float:
    """What a chunk of a transcript gains because it begins what a person said, or loses because it does not."""
    if chunk.source != "sessions":
        return 0.0
    if chunk.text.startswith("User:"):
        return min(ASKED_BONUS, own)
    return -min(ANSWERED_MALUS, _MOST_LOST * own)


def _look_beside(ranked: Sequence[RankedChunk], foremost: int) -> None:
    """Note what the words of the neighbours say; only the foremost are looked at, however many are read."""
    keywords = {}
    for item in ranked[:foremost]:
        chunk = item.chunk
        keywords[chunk.source, chunk.path, chunk.ordinal] = item.keywords
    for item in ranked:
        source, path, ordinal = item.chunk.source, item.chunk.path, item.chunk.ordinal
        before = keywords.get((source, path, ordinal - 1), 0.0)
        after = keywords.get((source, path, ordinal + 1), 0.0)
        item.neighbours = max(before, after)


@value
class Recency:
    """Exponential decay with a floor.

    With `floor` 0 it is the plain `score × 2^(-age / half_life)`, which loses half of what could be found in talk of a
    year ago. With the default a perfect old answer loses a twentieth: age decides between those that are as good.
    """

    enabled: bool = True
    half_life_days: float = 30.0
    floor: float = 0.95
    floor_when_asked: float = 0.85  # for questions about what is lately, latest or current

    def factor(self, day: str | None, *, today: date, asked_for_recent: bool = False) -> float:
        """What to multiply a score with; 1 for evergreen text and for days to come."""
        if not self.enabled or day is None:
            return 1.0
        try:
            age_days = (today - date.fromisoformat(day)).days
        except ValueError:
            return 1.0
        if age_days <= 0:
            return 1.0
        decayed = math.exp(-math.log(2) / self.half_life_days * age_days)
        floor = min(self.floor, self.floor_when_asked) if asked_for_recent else self.floor
        return floor + (1.0 - floor) * decayed


@value
class Diversity:
    """Off unless asked for. `trade_off` 1 is relevance alone, 0 novelty alone."""

    enabled: bool = False
    trade_off: float = 0.7

    def reorder(self, scored: Sequence[tuple[T, float, frozenset[str]]]) -> list[T]:
        """Order items, given as (item, score, words), so that each one adds the most."""
        if not self.enabled:
            return [item for item, _, _ in scored]
        order: list[T] = _selection().each_adding_most(scored, self.trade_off)
        return order


@value
class SearchSettings:
    """Defaults are the measured best; docs/decisions tells what was tried."""

    max_results: int = 6
    min_score: float = 0.0
    snippet_chars: int = 700
    use_vectors: bool = True
    use_keywords: bool = True
    weights: Weights = field(default_factory=Weights)
    recency: Recency = field(default_factory=Recency)
    diversity: Diversity = field(default_factory=Diversity)
    # How many chunks each side proposes, and how many of them are read line by line. Neither depends on
    # max_results, so that the first answer of 6 is the first answer of 20.
    proposals: int = 48
    read_closely: int = 32


# What is worth less has no word of the question, and no more of its meaning than any text.
NOTHING_IN_COMMON = 0.02
# An exact id, error string or symbol is what was asked for, however little else matches: it is worth this much.
EXACT_TOKEN_FLOOR = 0.185


# How many of the best chunks may have snippets that are filled up with what stands around them.
CHUNKS_WITH_MARGIN = 6
# How many snippets are weighed against each other where an exact token, or diversity, can change their order.
REORDERED = 50
# How many are looked at, at least, for others that say the same, and for the words of the question as it was asked.
COMPARED = 8
# Where no line has this share of the question's words, the best chunks are compared with it word by word.
SOMETHING_SAID = 0.2
# What all words of the question are worth in a snippet, as they were written, little ones too.
WORDING = 0.18
_AROUND_QUESTION = " ?!.¿¡\"'。？"
_FEWEST_SPACES = 2


class SearchEngine:
    """Finds lines in one index with one embedder."""

    def __init__(self, store: IndexStore, embedder: Embedder, settings: SearchSettings) -> None:
        self._store = store
        self._embedder = complete(embedder)
        self._settings = settings
        self._shelf = Shelf()
        self._weights: dict[bool, Weights] = {}

    def search(
        self,
        text: str,
        *,
        where: SearchFilter,
        today: date,
        max_results: int | None = None,
        min_score: float | None = None,
        snippet_chars: int | None = None,
        explain: bool = False,
        view: AbstractContextManager[IndexReader] | None = None,
        unwanted: Unwanted | None = None,
    ) -> SearchResult:
        """Answer a question; what could not be consulted is in `degraded`. A `view` that is open is read and closed.

        With `unwanted`, lines that have expired, and what it names, are shown to nobody; nor is the question itself.
        """
        settings = self._settings
        clock = Stopwatch(time.perf_counter)
        wanted = max_results or settings.max_results
        asked_text = " ".join(text[:LONGEST_QUESTION].split())
        text, where = restricted(asked_text, where, today)
        query = parse(text, today=today)
        vector, degraded = self._embed(query)
        clock.lap("embed")
        with view or self._store.reading() as reader:
            vector, degraded = self._drop_foreign_vector(reader, vector, degraded)
            notes: tuple[str, ...] = ()
            if where.only is not None:
                where, notes = _selection().without_missing_phrases(reader, query.text, where)
            understood: tuple[str, ...] = ()
            if query.days or where.only is not None or may_be_open(query.text):
                query, where, understood = _selection().understand(reader, query, where, today)
            everything = wanted > settings.read_closely
            ranked, stake = self._rank(reader, query, vector, where, clock, everything=everything)
            between = reader.chunks_between
            if where.only is not None:
                between = partial(_selection().allowed_between, reader, where.only)
            hides = None
            if unwanted is not None:
                hides = _selection().hiding(reader, where, unwanted, today, asked_text)
                ranked = [item for item in ranked if item.chunk.path not in unwanted.paths]
            asked, files = self._read_closely(between, query, ranked, stake, today, hides=hides)
            clock.lap("read")
            grown = grow_snippets(files, budget=snippet_chars or settings.snippet_chars)
            if where.only is not None and where.only.phrases:
                grown = _selection().with_a_phrase(grown, where.only)
            pool = max(wanted, COMPARED)
            snippets = list(islice(grown, pool))
            if self._may_be_reordered(query, snippets):  # then always as many, whatever is wanted
                pool = max(wanted, REORDERED)
                snippets += islice(grown, pool - len(snippets))
            if _has_repeats(snippets):
                snippets = _selection().each_once(chain(snippets, grown), pool)
        put_wording_first(snippets, query, asked)
        put_bare_headings_behind(snippets, is_list=query.is_empty)
        explanations = _doubts().Explanations(query, asked, settings.recency, today) if explain else None
        hits = self._hits(query, snippets, asked, stake, explanations, today=today, most=wanted)
        floor = settings.min_score if min_score is None else min_score
        if query.is_empty:  # all that was asked for is what it has to be, and it is
            hits = [replace(hit, score=1.0) for hit in hits]
        kept = [hit for hit in hits if hit.score >= floor][:wanted]
        clock.lap("rank")
        identity = self._embedder.identity
        return SearchResult(
            query=asked_text,
            hits=tuple(kept),
            provider=identity.provider,
            model=identity.model,
            mode=self._mode(vector),
            degraded=degraded,
            notes=notes,
            timings=clock.milliseconds(),
            understood=understood,
        )

    def _may_be_reordered(self, query: ParsedQuery, snippets: Sequence[Snippet]) -> bool:
        """Whether snippets that come after these may be shown before one of them."""
        if self._settings.diversity.enabled:
            return True
        # What has an exact token is lifted, but never above those that are worth as much by themselves.
        is_settled = bool(snippets) and snippets[-1].score >= EXACT_TOKEN_FLOOR and not _has_repeats(snippets)
        return bool(query.exact) and not is_settled

    def _embed(self, query: ParsedQuery) -> tuple[Vector | None, tuple[str, ...]]:
        if query.is_empty or not self._settings.use_vectors or not self._embedder.identity.dims:
            return None, ()
        try:
            return self._embedder.embed_query(query.text), ()
        except EmbeddingError as error:
            # Keywords alone still answer most questions: serve those, and say so.
            return None, (f"vector search: {error}",)

    def _drop_foreign_vector(
        self, reader: IndexReader, vector: Vector | None, degraded: tuple[str, ...]
    ) -> tuple[Vector | None, tuple[str, ...]]:
        """Let go of the vector when this view is of an index that another embedder has made."""
        made = reader.fingerprint()
        if vector is None or made is None or made.embedder == self._embedder.identity:
            return vector, degraded
        who = f"{made.embedder.provider} {made.embedder.model}".strip()
        why = f"vector search: the index was made with {who}, and only its vectors compare"
        return None, (*degraded, why)

    def _mode(self, vector: Vector | None) -> Mode:
        return "keyword" if vector is None else "hybrid" if self._settings.use_keywords else "vector"

    def _rank(
        self,
        reader: IndexReader,
        query: ParsedQuery,
        vector: Vector | None,
        where: SearchFilter,
        clock: Stopwatch,
        *,
        everything: bool,
    ) -> tuple[list[RankedChunk], Stake]:
        """The chunks worth reading closely, best first, and what the question asks for."""
        settings = self._settings
        if query.is_empty and where.only is not None:
            return _selection().listed(reader, where, settings.proposals), Stake({})
        stake = stake_of(query, reader.term_statistics(query.terms, where=where))
        if vector is not None:
            reader.expect_vector(vector, where=where, limit=settings.proposals)
        found: dict[int, None] = {}
        if settings.use_keywords:
            for terms in _lookups(query, reader, where):
                found |= dict.fromkeys(reader.by_words(terms, where=where, limit=settings.proposals))
            names = query_names(query.terms)
            found |= dict.fromkeys(reader.by_words(names, where=where, limit=NAMED))
            called = _called(query, reader, where)
            found |= called
        clock.lap("keywords")
        if vector is not None:
            found |= dict.fromkeys(reader.by_vector(vector, where=where, limit=settings.proposals))
        ids = list(found)
        keywords = named = [0.0] * len(ids)
        if settings.use_keywords:
            share = stake.share_of_words
            keywords = [share * score for score in reader.keyword_scores(query.terms, ids, where=where)]
            named = [share * score for score in reader.keyword_scores(names, ids, where=where)]
            named = _with_whole_names(named, names, called, ids, reader)
        meaning = reader.similarities(vector, ids) if vector is not None else [0.0] * len(ids)
        clock.lap("vectors")
        mix = self._weights_for(with_vectors=vector is not None)
        foremost, day_bonus = settings.read_closely, stake.day_bonus
        if not everything:
            kept = positions_in_question(
                where,
                keywords,
                meaning,
                named,
                day_bonus=day_bonus,
                meaning_weight=mix.meaning,
                foremost=foremost,
            )
            ids, keywords, meaning, named = (
                [ids[at] for at in kept],
                [keywords[at] for at in kept],
                [meaning[at] for at in kept],
                [named[at] for at in kept],
            )
        ranked = ranked_chunks(
            query,
            dict(zip(ids, reader.chunks(ids), strict=True)),
            keywords,
            meaning,
            named,
            day_bonus=day_bonus,
            meaning_weight=mix.meaning,
            foremost=foremost,
            everything=everything,
        )
        counts = reader.term_counts(query.terms, [item.id for item in ranked])
        for item, of_item in zip(ranked, counts, strict=True):
            item.term_counts = of_item
        return ranked, stake

    def _weights_for(self, *, with_vectors: bool) -> Weights:
        """The weights of the signals that can be consulted."""
        if with_vectors not in self._weights:
            settings = self._settings
            self._weights[with_vectors] = settings.weights.scaled(
                with_vectors=with_vectors, with_keywords=settings.use_keywords
            )
        return self._weights[with_vectors]

    def _read_closely(
        self,
        between: Callable[[Source, str, int, int], Sequence[Chunk]],
        query: ParsedQuery,
        ranked: Sequence[RankedChunk],
        stake: Stake,
        today: date,
        *,
        hides: Callable[[Source, str], Hides | None] | None = None,
    ) -> tuple[QuestionWords, list[KnownFile]]:
        """The words of the question, and the files of the ranked chunks, ready to be read."""
        settings = self._settings
        asked = QuestionWords(stake.words, besides=stake.besides)
        foremost = settings.read_closely
        with_vectors = any(item.meaning for item in ranked[:foremost])
        weights = self._weights_for(with_vectors=with_vectors)
        recent = query.asks_for_recent
        read = read_closely(
            ranked,
            self._shelf,
            Judge(asked, weights, window_chars=settings.snippet_chars),
            weights,
            foremost=foremost,
            named=query.named,
            age_factor=lambda day: settings.recency.factor(day, today=today, asked_for_recent=recent),
            compare=lambda said: self._compare_words(query, ranked, said) if with_vectors else None,
        )
        files: dict[tuple[Source, str], KnownFile] = {}
        for number, item in enumerate(read):
            chunk = item.ranked.chunk
            key = chunk.source, chunk.path
            if key not in files:
                files[key] = KnownFile(partial(between, *key), hides and hides(*key))
            # A message is whole by itself, and a dozen around it may be a hundred pages.
            files[key].add(item, with_margin=number < CHUNKS_WITH_MARGIN and chunk.source != "sessions")
        return asked, list(files.values())

    def _compare_words(self, query: ParsedQuery, ranked: Sequence[RankedChunk], said: float) -> None:
        """Compare the best chunks with the question word by word, where its own words say too little."""
        # A question that names a day has said what it is about: words like its others lead away from it.
        if said < SOMETHING_SAID and not query.days:
            from plainmind.search.other_words import add_likeness

            add_likeness(ranked, 1.0 - said / SOMETHING_SAID, self._embedder.likeness_to(query.text))

    def _hits(
        self,
        query: ParsedQuery,
        snippets: Iterable[Snippet],
        asked: QuestionWords,
        stake: Stake,
        explanations: Explanations | None,
        *,
        today: date,
        most: int,
    ) -> list[SearchHit]:
        """What to show: the first `most`, none surer than the one before it; all where diversity chooses."""
        weighed = []
        for snippet in snippets:
            exact = query.has_exact_token(snippet.text)
            worth = max(snippet.score, EXACT_TOKEN_FLOOR) if exact else snippet.score
            weighed.append((worth, exact, snippet))
        if query.exact:  # it may have lifted one over those before it
            weighed.sort(key=lambda each: -each[0])
        weighed = [each for each in weighed if each[0] >= NOTHING_IN_COMMON]
        hits: list[SearchHit] = []
        is_diverse = self._settings.diversity.enabled
        most = len(weighed) if is_diverse else most
        chances = chances_of(query, weighed, asked, stake, max(most, _NEXT))
        older: tuple[CitedLines, ...] = ()
        at = None if query.days or not weighed else about_the_same(weighed, asked, query)
        if at is not None:
            older = _selection().put_newer_first(weighed, chances, at, asked, query=query, today=today)
        newer = None
        if at is None and weighed and query.asks_how_it_is:
            newer = _selection().newer_line(weighed[0][2], asked, query.text, today)
        for (worth, exact, snippet), score in zip(weighed[:most], chances, strict=False):
            best, unit = snippet.best
            chunk = best.ranked.chunk
            hit = SearchHit(
                path=chunk.path,
                start_line=snippet.start_line,
                end_line=snippet.end_line,
                score=score,
                snippet=snippet.text,
                source=chunk.source,
                explanation=explanations.of(best, unit, score, exact=exact) if explanations else None,
                headings=chunk.context,
                best_line=best.places[unit][0] if hits or newer is None else newer,
                also=tuple(map(_place_of, snippet.also)),
                older=() if hits else older,
                worth=worth,
            )
            hits.append(hit)
        if not is_diverse:
            return hits
        return self._settings.diversity.reorder(
            [(hit, hit.score, frozenset(hit.snippet.split())) for hit in hits]
        )


def put_wording_first(snippets: list[Snippet], query: ParsedQuery, asked: QuestionWords) -> None:
    """Put those of the best first that say more of the question as it was asked, where its words say something."""
    best = snippets[:COMPARED]
    said = max([asked.shares[snippet.said] for snippet in best], default=0.0)
    weight = WORDING * min(1.0, said / ENOUGH_SAID)
    if not weight:
        return
    wording = AsWritten(query.text, asked)
    shares = [wording.share_in(_with_its_names(each)) for each in best]
    words = query.text.strip(_AROUND_QUESTION).lower()
    # An error message, a line of a song: who has it word for word has it twice.
    if words.count(" ") >= _FEWEST_SPACES:
        shares = [share + (words in each.text.lower()) for share, each in zip(shares, best, strict=True)]
    usual = sum(shares) / len(shares)
    for snippet, share in zip(best, shares, strict=True):
        least = min(snippet.score, NOTHING_IN_COMMON)  # it may come later, and is shown all the same
        snippet.score = max(least, snippet.score + weight * (share - usual))
    snippets[:COMPARED] = sorted(best, key=lambda snippet: -snippet.score)


# What headings are worth below which nothing stands: they name what a question is about, and say nothing of it.
_OF_BARE_HEADINGS = 0.3


def put_bare_headings_behind(snippets: list[Snippet], *, is_list: bool) -> None:
    """Let those of the best that are headings and nothing else come later; a list keeps its order otherwise."""
    best = snippets[:COMPARED]
    bare = [each for each in best if all(map(A_HEADING.match, filter(None, each.text.split("\n"))))]
    for snippet in bare:
        snippet.score *= 1.0 if is_list else _OF_BARE_HEADINGS
    snippets[:COMPARED] = sorted(best, key=lambda each: (is_list and each in bare, -each.score))


# Which of the next ones may speak of the same as the first: so near to it, with so much of what its line says of the
# question, which has to be something. Asked about now, one that says so may be farther behind, with one name in common.
_NEXT, _LEAST_WORDS = 3, 2
_AS_GOOD, _A_CHANGE, _SOMETHING = 0.6, 0.3, 0.3


def about_the_same(
    weighed: Sequence[tuple[float, bool, Snippet]], asked: QuestionWords, query: ParsedQuery
) -> int | None:
    """The position of a snippet of another note whose best line has what the first one's says of the question."""
    worth, _, first = weighed[0]
    best, unit = first.best
    said = 0 if best.wording is None else best.wording.own[unit]
    chunk, least = best.ranked.chunk, _LEAST_WORDS - query.asks_how_it_is
    if said.bit_count() < least or asked.share_of_words(said) < _SOMETHING or chunk.source == "sessions":
        return None
    for at, (other_worth, _, other) in enumerate(weighed[1:COMPARED], 1):
        read, place = other.best
        theirs = read.ranked.chunk
        if read.wording is None or theirs.path == chunk.path or theirs.source == "sessions":
            continue
        shared = read.wording.own[place] & said
        is_same = at < _NEXT and asked.shares[shared] >= SAME_SUBJECT * asked.shares[said]
        if is_same and shared.bit_count() >= _LEAST_WORDS and other_worth >= _AS_GOOD * worth:
            return at
        # What the first is called says nothing of when.
        is_near = query.asks_how_it_is and other_worth >= _A_CHANGE * (worth - best.ranked.bonus)
        if is_near and _selection().tells_anew(other, asked, said, query.text):
            return at
    return None


# The log-odds that the first snippet holds evidence, learned on the questions of ten sets (docs/decisions). What the
# question says counts, and how far the first is ahead: where two are as good as each other, neither is the answer.
_FIRST_LEVEL, _OF_LEAD, _OF_INFORMATION = -1.9, 2.2, 1.25
_OF_DISTANCE, _OF_NAMED_DAY, _OF_MEANING = 6.1, 0.9, 0.95
_HALF_A_LEAD = 0.06  # over the second: then it is worth half of what a lead can be
_FARTHEST = 0.2  # from the third: what is ahead by more is no surer
_MUCH_SAID = 1.5  # in three rare words
_VERY_NEAR = 0.5  # in meaning; models of others call nearly everything near
# The log-odds that one of the others does: what it is worth, the share of the question that its best line has, and how
# far it is behind the first.
_OTHER_LEVEL, _OF_WORTH, _OF_COVERAGE, _OF_DELAY = -3.9, 6.7, 1.8, -5.8


def probability_of_first(
    *,
    share_of_words: float,
    information: float,
    meaning: float,
    lead: float,
    distance: float,
    of_named_day: bool,
    doubt: float = 0.0,
) -> float:
    """How likely the first snippet answers the question.

    `share_of_words` is how much of the question's words its chunk has; `information` is what those in its best line
    weigh, in rare words; `lead` and `distance` are how much more it is worth than the second and the third.
    """
    lead = max(0.0, lead)
    return as_probability(
        _FIRST_LEVEL
        + _OF_LEAD * share_of_words * lead / (lead + _HALF_A_LEAD)
        + _OF_INFORMATION * min(_MUCH_SAID, information / 3)
        + _OF_DISTANCE * min(_FARTHEST, max(0.0, distance))
        + _OF_MEANING * min(_VERY_NEAR, max(0.0, meaning))
        + (_OF_NAMED_DAY if of_named_day else 0.0)
        + doubt
    )


def probability_of_other(*, worth: float, coverage: float, behind: float) -> float:
    """How likely one of the other snippets does; `behind` is how much less it is worth than the first."""
    return as_probability(
        _OTHER_LEVEL + _OF_WORTH * min(1.0, worth) + _OF_COVERAGE * coverage + _OF_DELAY * max(0.0, behind)
    )


def as_probability(odds: float) -> float:
    """The probability that log-odds say."""
    return 1.0 / (1.0 + math.exp(-odds))


def chances_of(
    query: ParsedQuery,
    weighed: Sequence[tuple[float, bool, Snippet]],
    asked: QuestionWords,
    stake: Stake,
    most: int,
) -> list[float]:
    """How likely each of the first snippets answers; none is surer than the one before it."""
    of_day = stake.day_bonus * stake.share_of_words
    # What is near, or has words like those of the question, has its subject, which is not to say that it answers.
    own_worths = [worth - snippet.best[0].ranked.lift for worth, _, snippet in weighed]
    # A day that was named says nothing about the words that were: among them it makes no answer.
    worths = [
        worth - (of_day if names_day(query, snippet.best[0].ranked.chunk.day) else 0.0)
        for worth, (_, _, snippet) in zip(own_worths, weighed, strict=True)
    ]
    chances: list[float] = []
    for worth, (_, _, snippet) in islice(zip(worths, weighed, strict=True), most):
        best, unit = snippet.best
        own = 0 if best.wording is None else best.wording.own[unit]
        if chances:
            other = probability_of_other(worth=worth, coverage=asked.shares[own], behind=worths[0] - worth)
            chances.append(min(chances[-1], other))
            continue
        others = ~asked.terms_among(query.words_of_days) if query.days else -1
        first = probability_of_first(
            share_of_words=asked.shares[best.terms & others]
            / (asked.shares[asked.all_terms & others] or 1.0),
            information=asked.shares[own & others] * asked.total / stake.rarest,
            meaning=best.ranked.meaning,
            lead=own_worths[0] - (own_worths[1] if len(own_worths) > 1 else 0.0),
            distance=worth - (worths[2] if len(worths) > 2 else 0.0),
            of_named_day=names_day(query, best.ranked.chunk.day),
            doubt=_doubt_of_first(query, weighed),
        )
        chances.append(first)
    return chances


def _selection() -> ModuleType:
    """What most searches do without."""
    from plainmind.search import selection

    return selection


def _doubt_of_first(query: ParsedQuery, weighed: Sequence[tuple[float, bool, Snippet]]) -> float:
    """What speaks against the first; most questions name nothing that could be missing."""
    names_something = query.exact or query.named or "'s " in query.text or "’s " in query.text
    has_number = any(map(str.isdigit, query.text))
    return float(_doubts().doubt_of_first(query, weighed)) if names_something or has_number else 0.0


def _doubts() -> ModuleType:
    """What speaks for the first and against it, told where it is asked for."""
    from plainmind.search import doubts

    return doubts


def _has_repeats(snippets: Sequence[Snippet]) -> bool:
    return len({snippet.letters for snippet in snippets}) < len(snippets)


def _with_its_names(snippet: Snippet) -> str:
    chunk = snippet.best[0].ranked.chunk
    return f"{snippet.text} {chunk.context} {chunk.path}"


def _place_of(snippet: Snippet) -> CitedLines:
    return CitedLines(snippet.best[0].ranked.chunk.path, snippet.start_line, snippet.end_line)


def _called(query: ParsedQuery, reader: IndexReader, where: SearchFilter) -> dict[int, None]:
    """The notes that are called what the question says, and nothing else."""
    names = whole_names(query.text, query.terms)
    called = dict.fromkeys(reader.by_words(names, where=where, limit=NAMED)) if names else {}
    if len(called) > 1:  # those that are called so word for word, if there are any
        called = dict.fromkeys(reader.by_words(names[:1], where=where, limit=NAMED)) or called
    return called


def _with_whole_names(
    named: Sequence[float],
    names: Sequence[str],
    called: Mapping[int, None],
    ids: Sequence[int],
    reader: IndexReader,
) -> list[float]:
    """What names are worth, and more of it where a name is all that was asked for, or has all of it."""
    worths = [name + (CALLED if id_ in called else 0.0) for name, id_ in zip(named, ids, strict=True)]
    some = [at for at, name in enumerate(named) if name] if 1 < len(names) <= SHORT_QUESTION else []
    for at, counts in zip(some, reader.term_counts(names, [ids[at] for at in some]), strict=True):
        worths[at] += ALL_NAMED if all(counts) else 0.0
    return worths


def _lookups(query: ParsedQuery, reader: IndexReader, where: SearchFilter) -> list[tuple[str, ...]]:
    """The keyword lookups of a question: its words, and its words on the days that it names."""
    lookups = [query.terms] if query.terms else []
    days = tuple(term for span in query.days for term in terms_of_span(span))
    # Where nothing is of any of these days, a second look would find what the first has found.
    if days and any(reader.term_statistics(days, where=where).chunks_with.values()):
        lookups.append(query.terms + days)
    return lookups
