"""One consistent view of an index: the questions that a search asks, answered the same way for every driver.

What is read for one question stays in the memory of the process for the next, within one budget of bytes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from plainmind.base.lazy import Lock
from plainmind.base.model import (
    EVERY_SCOPE,
    Chunk,
    FileState,
    IndexFingerprint,
    SearchFilter,
    Source,
    TermStatistics,
    Vector,
)
from plainmind.base.value import replace, value
from plainmind.index import bm25
from plainmind.index.bm25 import WordPart, word_arithmetic, words_in
from plainmind.index.vectors import choose_dots, cosine_score, pack_vector, unpack_vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from plainmind.index.bm25 import Postings
    from plainmind.index.driver import Overview, Part, Segment, View
    from plainmind.index.filters import Passing

    T = TypeVar("T")


# So many vectors are sooner compared than found among all others.
COMPARED = 4_096
OVERHEAD = 200  # bytes of an entry: its key, its value's header, its place in a dictionary
WORTH_SWEEPING = 2_000_000  # bytes
_ABSENT = object()


@value
class IndexCounts:
    """How much is in an index, by source; a source without files is left out."""

    files: Mapping[Source, int]
    chunks: Mapping[Source, int]


class RecentlyUsed:
    """Values within a budget of bytes: what was not asked for longest goes first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = Lock()
        # By last use. A plain dictionary, too, has an order, but finding its first key again and again is slow.
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size = self._swept = 0

    def get(self, key: Hashable, default: Any = None) -> Any:
        """What is kept under a key."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return default
            self._entries.move_to_end(key)
        return entry[0]

    def get_all(self, keys: Iterable[Hashable]) -> tuple[dict[Any, Any], list[Any]]:
        """What is kept under many keys, and the keys under which there is nothing."""
        found, missing = {}, []
        get, move_to_end = self._entries.get, self._entries.move_to_end
        with self._lock:
            for key in keys:
                entry = get(key)
                if entry is None:
                    missing.append(key)
                else:
                    move_to_end(key)
                    found[key] = entry[0]
        return found, missing

    @property
    def has_doubled(self) -> bool:
        """Whether there is twice as much as the last sweep has left, and more than a little."""
        return self._size > 2 * self._swept + WORTH_SWEEPING

    def keys(self) -> list[Hashable]:
        """The keys under which something is kept."""
        with self._lock:
            return list(self._entries)

    def sweep(self, gone: Iterable[Hashable]) -> None:
        """Let go of what nobody will ask for again."""
        with self._lock:
            for key in gone:
                entry = self._entries.pop(key, None)
                self._size -= entry[1] if entry else 0
            self._swept = self._size

    def put(self, key: Hashable, found: Any, size: int) -> None:
        """Keep something of about this many bytes."""
        self.put_all({key: (found, size)})

    def put_all(self, entries: Mapping[Any, tuple[Any, int]]) -> None:
        """Keep many things, each with about how many bytes it has."""
        with self._lock:
            for key, entry in entries.items():
                replaced = self._entries.pop(key, None)
                self._entries[key] = entry
                self._size += entry[1] - (replaced[1] if replaced else 0)
            while self._size > self.most_bytes:
                _, (_, size) = self._entries.popitem(last=False)
                self._size -= size


class Cache:
    """What a process has read of one generation, shared by its readers; drivers put more of their own into `kept`.

    Ids are never used again, so what belongs to an id stays right as long as the generation lives. What belongs to a
    segment is kept under the revision at which it last changed: an edit makes nothing else be read again.
    """

    def __init__(self, most_bytes: int, *, keeps_postings: bool = True) -> None:
        """Without `keeps_postings` the driver has its own way to keep them."""
        self.kept = RecentlyUsed(most_bytes)
        self.keeps_vectors = True
        self._keeps_postings = keeps_postings
        self._files: tuple[Overview, Mapping[tuple[Source, str], FileState]] | None = None

    def files(self, view: View[Any, Any]) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file."""
        known, now = self._files, view.overview
        if known is None or known[0] is not now:
            self._files = known = (now, view.files())
        return known[1]

    def postings(
        self, view: View[Any, Any], segments: Iterable[Segment], terms: Sequence[str]
    ) -> dict[tuple[int, str], Postings | None]:
        """The postings of terms in segments, by the number of the segment and the term; all read at once."""
        wanted = {("postings", term, each.number, each.posted): each for each in segments for term in terms}
        known, missing = self.kept.get_all(wanted)
        if missing:
            found = view.postings([(wanted[key], key[1]) for key in missing])
            fresh = dict(zip(missing, found, strict=True))
            known.update(fresh)
            if self._keeps_postings:
                self.kept.put_all(
                    {
                        key: (own, OVERHEAD + len(key[1]) + (own.size if own else 0))
                        for key, own in fresh.items()
                    }
                )
        return {(number, term): own for (_, term, number, _), own in known.items()}

    def lengths(self, view: View[Any, Any], parts: Sequence[Part[Any, Any]]) -> list[memoryview]:
        """How many terms the chunks of each part have; all read at once."""
        keys = [("lengths", segment.number, segment.revision, audience) for segment, audience in parts]
        known, missing = self.kept.get_all(keys)
        if missing:
            lacking = [part for key, part in zip(keys, parts, strict=True) if key not in known]
            fresh = dict(zip(missing, view.lengths(lacking), strict=True))
            known.update(fresh)
            self.kept.put_all({key: (own, OVERHEAD + 2 * len(own)) for key, own in fresh.items()})
        return [known[key] for key in keys]

    def words(self, view: View[Any, Any], parts: Sequence[Part[Any, Any]]) -> tuple[int, int]:
        """How many chunks of some parts have words, and how many words they have together."""
        count = total = 0
        for segment, audience in parts:
            key = ("words", segment.number, segment.revision, audience)
            found: tuple[int, int] | None = self.kept.get(key)
            if found is None:
                found = words_in(*self.lengths(view, [(segment, audience)]))
                self.kept.put(key, found, OVERHEAD)
            count += found[0]
            total += found[1]
        return count, total

    def chunks_with(self, view: View[Any, Any], part: Part[Any, Any], term: str, postings: Postings) -> int:
        """In how many chunks of a part a term stands."""
        segment, audience = part
        if audience is None and not segment.has_stale_postings:
            return len(postings.counts)

        def count() -> int:
            (lengths,) = self.lengths(view, [part])
            return word_arithmetic(len(lengths) // 4).count_living(postings, lengths)

        return self.once(("count", term, segment.number, segment.revision, audience), count, len(term))

    def chunks(self, view: View[Any, Any], ids: Iterable[int], scopes: frozenset[str]) -> Mapping[int, Chunk]:
        """Chunks by id, which a filter with these scopes has found."""
        known, missing = self.kept.get_all([("chunk", id_) for id_ in ids])
        found: dict[int, Chunk] = {id_: chunk for (_, id_), chunk in known.items()}
        if missing:
            fresh = view.chunks([id_ for _, id_ in missing], scopes)
            self.kept.put_all({("chunk", id_): chunk for id_, chunk in fresh.items()})
            found |= {id_: chunk for id_, (chunk, _) in fresh.items()}
        return found

    def take_chunks(self, read: Mapping[int, tuple[Chunk, int]]) -> list[Chunk]:
        """Keep chunks that were read beside others, each with its size; those that are here already stay the same."""
        known, missing = self.kept.get_all([("chunk", id_) for id_ in read])
        self.kept.put_all({key: read[key[1]] for key in missing})
        return [known.get(("chunk", id_), chunk) for id_, (chunk, _) in read.items()]

    def vectors(self, view: View[Any, Any], ids: Sequence[int]) -> dict[int, bytes]:
        """Packed vectors by id; chunks without one are left out."""
        found: dict[int, bytes | None]
        found, missing = self.kept.get_all(ids)
        if missing:
            fresh = view.vectors(missing)
            self.keep_vectors({**dict.fromkeys(missing), **fresh})
            found |= fresh
        return {id_: vector for id_, vector in found.items() if vector is not None}

    def keep_vectors(self, vectors: Mapping[int, bytes | None]) -> None:
        """Keep vectors that were read; None is for a chunk without one."""
        if self.keeps_vectors:
            self.kept.put_all(
                {id_: (vector, OVERHEAD + len(vector or b"")) for id_, vector in vectors.items()}
            )

    def once(self, key: Hashable, read: Callable[[], T], size: int) -> T:
        """Read something of about this many bytes, unless it is here."""
        found: T = self.kept.get(key, _ABSENT)
        if found is _ABSENT:
            found = read()
            self.kept.put(key, found, OVERHEAD + size)
        return found


class _Sight:
    """What words are weighed by, for those who see the same, and what has been worked out for them."""

    __slots__ = ("average_length", "chunk_count", "counted", "looked_through", "parts", "scored", "weighed")

    def __init__(self, parts: Sequence[Part[Any, Any]], chunk_count: int, average_length: float) -> None:
        self.parts = parts
        self.chunk_count = chunk_count
        self.average_length = average_length
        self.counted: dict[str, int] = {}  # by term: in how many chunks it stands
        self.weighed: dict[tuple[str, ...], Mapping[str, float]] = {}  # by terms as they were asked for
        self.scored: dict[tuple[str, ...], dict[int, float]] = {}  # by a query's terms: scores by id
        # By a query's terms: the parts that were looked through for them, by their first places.
        self.looked_through: dict[tuple[str, ...], dict[int, WordPart]] = {}


class Reader:
    """Reads one view, which its driver has opened and will close."""

    def __init__(self, view: View[Any, Any]) -> None:
        self._view = view
        self._cache = view.cache
        self._now: Overview = view.overview
        self._sights: dict[SearchFilter | None, _Sight] = {}
        self._postings: dict[
            tuple[int, str], Postings | None
        ] = {}  # by the number of a segment, and the term
        self._packed: tuple[Vector, bytes] | None = (
            None  # the last vector that was asked about, and its bytes
        )
        self._compared: dict[bytes, dict[int, float]] = {}  # by a query's vector: cosines by id
        self._scopes: dict[
            int, frozenset[str]
        ] = {}  # of proposed chunks: those of the filter that let them through
        self._passed: dict[SearchFilter, Passing] = {}

    def fingerprint(self) -> IndexFingerprint | None:
        """How this index was made; None asks for a rebuild."""
        return self._now.fingerprint

    def revision(self) -> tuple[int, int]:
        """Which state of which generation this is."""
        return self._now.generation, self._now.revision

    def files(self) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file, by (source, path)."""
        return self._cache.files(self._view)

    def counts(self) -> IndexCounts:
        """Files and chunks by source."""
        return self._now.counts

    def term_statistics(self, terms: Sequence[str], *, where: SearchFilter) -> TermStatistics:
        """In how many chunks each term stands."""
        stored = {term: bm25.storable_term(term) for term in terms}
        sight = self._sight(where)
        self._count(list(stored.values()), sight)
        counted = {term: sight.counted[own] for term, own in stored.items()}
        return TermStatistics(chunk_count=sight.chunk_count, chunks_with=counted)

    def by_words(self, terms: Sequence[str], *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the best chunks by BM25."""
        sight = self._sight(where)
        weights = self._weights(terms, sight)
        if not weights or limit <= 0:
            return []
        # Who sees everything may still ask for one source; for others, what is in sight is what is admitted.
        admitted = self._view.admitted(where) if where.scopes == EVERY_SCOPE else sight.parts
        # The lighter half is hardly looked through: by then most chunks cannot be among the best any more.
        heavier = list(weights)[: -(-len(weights) // 2)]
        arithmetic = word_arithmetic(sum([sight.counted[term] for term in heavier]))
        parts = self._word_parts(admitted, weights)
        if where.only is not None:
            passing = self._passing(where)
            parts = [
                WordPart(part.first_id, passing.lengths(part.first_id, part.lengths), part.postings)
                for part in parts
            ]
        places = arithmetic.best_by_words(parts, list(weights.values()), sight.average_length, limit)
        ids = self._view.ids_at([place for place, _ in places])
        sight.scored.setdefault(tuple(weights), {}).update(
            zip(ids, [score for _, score in places], strict=True)
        )
        if where.only is None:
            sight.looked_through[tuple(weights)] = {part.first_id: part for part in parts}
        return self._propose(ids, where)

    def expect_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> None:
        """Let the driver begin with what `by_vector` will be asked for."""
        is_due = self._now.fingerprint is not None and limit > 0 and where.only is None
        if is_due and (parts := self._view.admitted(where)):
            self._view.expect(self._pack(vector), parts, where, limit)

    def by_vector(self, vector: Vector, *, where: SearchFilter, limit: int) -> list[int]:
        """The ids of the chunks nearest to a vector."""
        if self._now.fingerprint is None:
            return []
        query = self._pack(vector)
        if limit <= 0 or not (parts := self._view.admitted(where)):
            return []
        if where.only is not None:
            near = self._near_that_pass(query, parts, where, limit)
        else:
            near = self._view.near(
                query,
                parts,
                where,
                limit,
                besides=[id_ for id_, scopes in self._scopes.items() if scopes == where.scopes],
                compare=lambda ids: self._cosines(query, ids),
            )
        return self._propose([id_ for id_, _ in bm25.best(near, limit)], where)

    def passing(self, where: SearchFilter) -> list[int] | None:
        """The ids of the chunks that a filter with a restriction lets through; None for all but a few."""
        within = self._passing(where).within
        return within if within is None else self._propose(self._view.ids_at(sorted(within)), where)

    def places_with(self, *terms: str, where: SearchFilter) -> set[int]:
        """The places of the living chunks that may be seen and have any of some terms."""
        stored, parts = [bm25.storable_term(term) for term in terms], self._view.admitted(where)
        self._fetch([segment for segment, _ in parts], stored)
        found: set[int] = set()
        for (segment, _), lengths in zip(parts, self._cache.lengths(self._view, parts), strict=True):
            for postings in filter(None, [self._postings[segment.number, term] for term in stored]):
                found.update([segment.first_place + at for at in postings.positions if lengths[at]])
        return found

    def places_of_files(self, names: Sequence[tuple[Source, str]]) -> set[int]:
        """The places of all chunks of files. The caller has made sure that they may be seen."""
        ids = self._view.ids_of(names) if names else ()
        return {place for _, place in self._places(ids)}

    def chunks_at(self, places: Sequence[int], *, where: SearchFilter) -> list[Chunk]:
        """The chunks at some places that the same filter has given."""
        return self.chunks(self._propose(self._view.ids_at(places), where))

    def chunks(self, ids: Sequence[int]) -> list[Chunk]:
        """The chunks of ids that were proposed."""
        found: dict[int, Chunk] = {}
        for scopes in {self._scopes[id_] for id_ in ids}:
            own = [id_ for id_ in ids if self._scopes[id_] == scopes]
            found |= self._cache.chunks(self._view, own, scopes)
        return [found[id_] for id_ in ids]

    def term_counts(self, terms: Sequence[str], ids: Sequence[int]) -> list[bytes]:
        """For each of some ids a byte a term: how often it stands in the chunk."""
        stored = [bm25.storable_term(term) for term in terms]
        arithmetic = word_arithmetic(len(ids) * len(terms))
        found: dict[int, bytes] = {}
        located = list(self._view.locate(ids))
        self._fetch([segment for segment, _, _ in located], stored)
        for segment, own, positions in located:
            postings = [self._postings[segment.number, term] for term in stored]
            found.update(zip(own, arithmetic.term_counts(postings, positions), strict=True))
        return [found[id_] for id_ in ids]

    def keyword_scores(self, terms: Sequence[str], ids: Sequence[int], *, where: SearchFilter) -> list[float]:
        """The keyword score of given candidates."""
        sight = self._sight(where)
        weights = self._weights(terms, sight)
        scored = sight.scored.setdefault(tuple(weights), {})
        missing = [id_ for id_ in ids if id_ not in scored]
        if missing:
            known = sight.looked_through.get(tuple(weights), {})
            located = list(self._view.locate(missing))
            self._fetch([segment for segment, _, _ in located], list(weights))
            for segment, own, positions in located:
                part = known.get(segment.first_place)
                if part is not None and part.scores is not None:
                    scores = part.scores(positions)
                elif not any(self._postings[segment.number, term] for term in weights):
                    scores = [0.0] * len(own)
                else:
                    (part,) = self._word_parts([(segment, None)], weights)
                    arithmetic = word_arithmetic(len(missing) * len(weights))
                    scores = arithmetic.word_scores(
                        part, list(weights.values()), sight.average_length, positions
                    )
                scored.update(zip(own, scores, strict=True))
        return [scored[id_] for id_ in ids]

    def similarities(self, vector: Vector, ids: Sequence[int]) -> list[float]:
        """The cosine of given candidates."""
        if self._now.fingerprint is None:
            return [0.0] * len(ids)
        cosines = self._cosines(self._pack(vector), ids)
        return [
            cosine if 0.0 <= cosine <= 1.0 else cosine_score(cosine)
            for cosine in [cosines.get(id_, 0.0) for id_ in ids]
        ]

    def chunks_between(self, source: Source, path: str, first_line: int, last_line: int) -> list[Chunk]:
        """The chunks of one file that share a line with the range, in order."""
        return self._view.chunks_between(source, path, first_line, last_line)

    def vectors_of(self, source: Source, path: str) -> list[Vector | None]:
        """The vectors of the chunks of one file, in their order."""
        return [None if each is None else unpack_vector(each) for each in self._view.vectors_of(source, path)]

    def _pack(self, vector: Vector) -> bytes:
        """The bytes of a query's vector, which is the same one all along."""
        known = self._packed
        if known is None or known[0] is not vector:
            self._packed = known = vector, pack_vector(vector, self._now.dims)
        return known[1]

    def _propose(self, ids: Sequence[int], where: SearchFilter) -> list[int]:
        if where.scopes != EVERY_SCOPE:
            self._view.confirm(ids, where)
        self._scopes.update(dict.fromkeys(ids, where.scopes))
        return list(ids)

    def _passing(self, where: SearchFilter) -> Passing:
        """What passes the restriction of a filter."""
        found = self._passed.get(where)
        if found is None:
            from plainmind.index.filters import passing

            found = self._passed[where] = passing(self, where)
        return found

    def _near_that_pass(
        self, query: bytes, parts: Sequence[Part[Any, Any]], where: SearchFilter, limit: int
    ) -> Mapping[int, float]:
        """Cosines of the nearest chunks that pass: of all, where they are few; or more are asked for until enough."""
        passing = self._passing(where)
        if passing.within is not None and len(passing.within) <= COMPARED:
            return self._cosines(query, self._view.ids_at(sorted(passing.within)))
        asked, most = limit, self._now.chunk_count
        while True:
            found = self._view.near(
                query, parts, where, asked, besides=(), compare=lambda ids: self._cosines(query, ids)
            )
            kept = {id_: found[id_] for id_, place in self._places(list(found)) if passing.has(place)}
            if len(kept) >= limit or asked >= most:
                return kept
            asked = min(8 * asked, most)

    def _places(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """Ids with their places."""
        return [
            (id_, segment.first_place + position)
            for segment, own, positions in self._view.locate(ids)
            for id_, position in zip(own, positions, strict=True)
        ]

    def _sight(self, where: SearchFilter) -> _Sight:
        """What words are weighed by: all there is, for who may see all of it; else what they may see."""
        where = where if where.only is None else replace(where, only=None)
        key = None if where.scopes == EVERY_SCOPE else where
        found = self._sights.get(key)
        if found is None:
            if key is None:
                everything = [(segment, None) for segment in self._now.segments]
                found = _Sight(everything, self._now.chunk_count, self._now.average_length)
            else:
                admitted = self._view.admitted(where)
                count, words = self._cache.words(self._view, admitted)
                found = _Sight(admitted, count, words / (count or 1))
            self._sights[key] = found
        return found

    def _weights(self, terms: Sequence[str], sight: _Sight) -> Mapping[str, float]:
        """The weight of each distinct term, the heaviest first."""
        key = tuple(terms)
        found = sight.weighed.get(key)
        if found is None:
            asked = bm25.distinct_terms(terms)
            self._count(asked, sight)
            counted = {term: sight.counted[term] for term in asked}
            sight.weighed[key] = found = bm25.term_weights(sight.chunk_count, counted)
        return found

    def _count(self, terms: Sequence[str], sight: _Sight) -> None:
        """Count in how many living chunks that are in sight each term stands."""
        new = [term for term in terms if term not in sight.counted]
        if not new:
            return
        self._fetch([segment for segment, _ in sight.parts], new)
        for term in new:
            count = 0
            for part in sight.parts:
                postings = self._postings[part[0].number, term]
                if postings is not None:
                    count += self._cache.chunks_with(self._view, part, term, postings)
            sight.counted[term] = count

    def _fetch(self, segments: Iterable[Any], terms: Sequence[str]) -> None:
        """Have the postings of terms in segments at hand."""
        lacking: dict[tuple[str, ...], list[Any]] = {}
        for segment in segments:
            new = tuple([term for term in terms if (segment.number, term) not in self._postings])
            if new:
                lacking.setdefault(new, []).append(segment)
        for new, own in lacking.items():
            self._postings.update(self._cache.postings(self._view, own, new))

    def _word_parts(self, parts: Sequence[Part[Any, Any]], weights: Mapping[str, float]) -> list[WordPart]:
        """Parts for the arithmetic; those without any of the terms are left out."""
        terms = list(weights)
        self._fetch([segment for segment, _ in parts], terms)
        found = [
            (part, postings)
            for part in parts
            if any(postings := [self._postings[part[0].number, term] for term in terms])
        ]
        lengths = self._cache.lengths(self._view, [part for part, _ in found])
        return [
            WordPart(part[0].first_place, own, postings)
            for (part, postings), own in zip(found, lengths, strict=True)
        ]

    def _cosines(self, query: bytes, ids: Sequence[int]) -> dict[int, float]:
        """The cosines of chunks, but for those without a vector."""
        compared = self._compared.setdefault(query, {})
        missing = [id_ for id_ in ids if id_ not in compared]
        if missing:
            at_hand = self._view.cosines(query, missing)
            compared.update(at_hand)
            if len(at_hand) < len(missing):
                lacking = [id_ for id_ in missing if id_ not in at_hand]
                vectors = self._cache.vectors(self._view, lacking)
                compared.update(self._compare(query, list(vectors), b"".join(vectors.values())))
        return {id_: compared[id_] for id_ in ids if id_ in compared}

    def _compare(self, query: bytes, ids: Sequence[int], vectors: bytes) -> Iterable[tuple[int, float]]:
        if not ids:
            return ()
        _, dots = choose_dots()
        return zip(ids, dots(query, vectors, self._now.dims), strict=True)
