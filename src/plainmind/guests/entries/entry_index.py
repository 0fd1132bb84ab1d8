"""The index over entries: any store that keeps chunks, each entry a file of one chunk; lost, it is made anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from plainmind.base.errors import ConflictError, EmbeddingError, IndexCorrupt, IndexUnavailable
from plainmind.base.model import (
    Candidate,
    Chunk,
    EmbeddedChunk,
    FileState,
    IndexFingerprint,
    SearchFilter,
    TermStatistics,
    Vector,
    sha256_text,
)
from plainmind.base.value import replace, value
from plainmind.embed.protocol import Embedder
from plainmind.guests.entries.entry_file import Entries, Signature
from plainmind.guests.entries.model import Entry
from plainmind.index.bm25 import inverse_frequency
from plainmind.index.protocol import IndexReader, IndexStore, keyword_candidates, vector_candidates
from plainmind.text.terms import TERMS_VERSION, document_terms, query_terms

_SCHEMA = 1
_AT_A_TIME = 256
_LEAST_COUNT = 50
_ALIKE = 8  # candidates that are looked at more closely before an entry is stored
_RETRY_S = 60.0  # a provider that is down is not asked with every question
_WITHOUT_VECTOR = "no vector: "  # before the hash of an entry that is to be embedded again
_SOME_WITHOUT_VECTOR = "similarity: some entries could not be embedded, and are found by their words only"


@value
class Difference:
    """What is between an index and the file that it is made from; with a `reason` it must be made anew."""

    reason: str
    new: tuple[Entry, ...] = ()
    gone: tuple[str, ...] = ()


@value
class Near:
    """An entry's id, and how near it is."""

    id: str
    similarity: float = 0.0
    word_score: float = 0.0


class EntryIndex:
    """Finds entries by meaning and by word. Text that is hidden by `redact` is neither embedded nor found."""

    def __init__(self, store: IndexStore, embedder: Embedder, redact: Callable[[str], str]) -> None:
        self._store = store
        self._embedder = embedder
        self._redact = redact
        self._settled: tuple[Signature, tuple[int, int]] | None = None
        self.degraded: tuple[str, ...] = ()  # what the index lacks, in words
        self._again_at: float | None = None  # when to embed again what could not be embedded

    def open(self) -> None:
        """Open the store now: it may take seconds, which are better not spent while others wait."""
        with suppress(IndexCorrupt):  # made anew by whoever brings it up to date
            self._fingerprint_now()

    def agrees(self, signature: Signature, entries: Entries) -> bool:
        """Whether the index is up to date with the file; needs no lock, for it changes nothing."""
        try:
            with self._store.reading() as reader:
                state = (signature, reader.revision())
                if self._settled == state:
                    return not self._is_due
                if self._is_degraded or _difference(reader, self._fingerprint(), _wanted(entries)):
                    return False
        except IndexCorrupt:
            return False
        self._settled = state
        return True

    def catch_up(self, signature: Signature, entries: Entries) -> tuple[str, ...]:
        """Bring the index up to date with the file; what could not be done is said in words. Needs the lock."""
        if not self.agrees(signature, entries):
            try:
                self.degraded = self._caught_up(_wanted(entries))
            except IndexCorrupt:
                # The damaged one was set aside: the second look finds none, and makes it anew.
                self.degraded = self._caught_up(_wanted(entries))
            self._again_at = time.monotonic() + _RETRY_S if self.degraded else None
            self.note(signature)
        return self.degraded

    def add(self, entry: Entry, vector: Vector | None, signature: Signature) -> None:
        """Take in one entry, whose vector is known."""
        self._store.replace_file(*_indexed(entry, self._redact(entry.text), vector))
        self.note(signature)

    def takes(self, vector: Vector) -> bool:
        """Whether a vector fits what is there: an index may have been made before anybody knew how long they are."""
        made = self._fingerprint_now()
        return made is not None and made.embedder.dims == len(vector)

    def erase(self, ids: Sequence[str], *, known_only: bool = True) -> None:
        """Drop entries so that their text is in no file of the index.

        Without `known_only` also from what was an index once and is no longer read.
        """
        if known_only:
            with self._store.reading() as reader:
                known = {path for _, path in reader.files()}
            ids = [id_ for id_ in ids if id_ in known]
        if ids:
            self._store.erase("memory", *ids)

    def note(self, signature: Signature) -> None:
        """Whoever holds the lock says that the index is as the file is now."""
        try:
            with self._store.reading() as reader:
                self._settled = (signature, reader.revision())
        except (IndexUnavailable, ConflictError):
            self._settled = None  # looked at again next time

    def vector_of(self, text: str) -> Vector | None:
        """The vector of what is to be stored; None without an embedder. Raises EmbeddingError."""
        if not self._has_vectors:
            return None
        (vector,) = self._embedder.embed_documents([self._redact(text)])
        return vector

    def alike(self, text: str, vector: Vector | None, scope: str) -> list[Near]:
        """The entries of one scope that are nearest to a text by meaning or by word, the most similar first."""
        terms = sorted(set(document_terms(self._redact(text))))
        with self._store.reading() as reader:
            return sorted(
                self._candidates(reader, vector, terms, frozenset({scope}), _ALIKE),
                key=lambda near: -near.similarity,
            )

    def near(
        self, query: str, scopes: frozenset[str], limit: int, *, by_words_only: bool = False
    ) -> tuple[list[Near], tuple[str, ...]]:
        """Entries that are near to a question by meaning or by word; and what was not consulted."""
        degraded: tuple[str, ...] = ()
        vector: Vector | None = None
        if self._has_vectors and not by_words_only:
            try:
                vector = self._embedder.embed_query(self._redact(query))
            except EmbeddingError as error:
                # Words alone still find most of what was meant: give that, and say so.
                degraded = (f"similarity: {error}",)
        with self._store.reading() as reader:
            return self._candidates(reader, vector, query_terms(query).terms, scopes, limit), degraded

    def facts(self) -> Mapping[str, object]:
        """What the store says of itself."""
        return self._store.describe()

    def close(self) -> None:
        """Let go of the store; the embedder is its owner's."""
        self._store.close()

    @property
    def _has_vectors(self) -> bool:
        return self._embedder.identity.provider != "none"

    @property
    def _is_degraded(self) -> bool:
        return self._again_at is not None

    @property
    def _is_due(self) -> bool:
        return self._again_at is not None and time.monotonic() >= self._again_at

    def _fingerprint(self) -> IndexFingerprint:
        return IndexFingerprint(self._embedder.identity, "entry", TERMS_VERSION, _SCHEMA)

    def _fingerprint_now(self) -> IndexFingerprint | None:
        with self._store.reading() as reader:
            return reader.fingerprint()

    def _candidates(
        self,
        reader: IndexReader,
        vector: Vector | None,
        terms: Sequence[str],
        scopes: frozenset[str],
        limit: int,
    ) -> list[Near]:
        where = SearchFilter(sources=frozenset({"memory"}), scopes=scopes)
        made = reader.fingerprint()
        if vector is not None and (made is None or made.embedder.dims != len(vector)):
            vector = None  # made when nobody knew how long a vector is
        found: dict[int, Candidate] = {}
        if vector is not None:
            found.update(_by_id(vector_candidates(reader, vector, where=where, limit=limit)))
        found.update(_by_id(keyword_candidates(reader, terms, where=where, limit=limit)))
        return _scored(reader, found, vector, terms, where)

    def _caught_up(self, wanted: Entries) -> tuple[str, ...]:
        with self._store.reading() as reader:
            found = _difference(reader, self._fingerprint(), wanted)
        if found is None:
            return ()
        if found.reason:
            return self._rebuild(wanted, found.reason)
        degraded = self._put(self._store, found.new)
        if found.gone:
            self._store.erase("memory", *found.gone)
        return degraded

    def _rebuild(self, wanted: Entries, reason: str) -> tuple[str, ...]:
        entries = list(wanted.values())
        fingerprint = self._fingerprint()
        first = self._embedded(entries[:1])  # some embedders do not know their dimensions before
        if first and first[0] is not None:
            embedder = replace(self._embedder.identity, dims=len(first[0]))
            fingerprint = replace(fingerprint, embedder=embedder)
        with self._store.rebuild(fingerprint, reason=reason) as fresh:
            return self._put(fresh, entries, is_down=first is None)

    def _put(self, store: IndexStore, entries: Sequence[Entry], *, is_down: bool = False) -> tuple[str, ...]:
        """Take in entries; once the embedder has failed it is not asked again, for others are waiting."""
        for at in range(0, len(entries), _AT_A_TIME):
            portion = entries[at : at + _AT_A_TIME]
            vectors = None if is_down else self._embedded(portion)
            is_down = vectors is None
            with store.joined():
                for entry, vector in zip(portion, vectors or [None] * len(portion), strict=True):
                    state, chunks = _indexed(entry, self._redact(entry.text), vector)
                    if is_down:
                        state = replace(state, hash=_WITHOUT_VECTOR + state.hash)
                    store.replace_file(state, chunks)
        return (_SOME_WITHOUT_VECTOR,) if is_down and entries else ()

    def _embedded(self, entries: Sequence[Entry]) -> list[Vector | None] | None:
        """Vectors; None when the embedder fails."""
        if not self._has_vectors or not entries:
            return [None] * len(entries)
        try:
            return self._embedder.embed_documents([self._redact(entry.text) for entry in entries])
        except EmbeddingError:
            return None  # said aloud by whoever asked


def _indexed(entry: Entry, text: str, vector: Vector | None) -> tuple[FileState, list[EmbeddedChunk]]:
    state = FileState(entry.id, "memory", _hash(entry), len(text), entry.created_at, 0, entry.scope)
    chunk = Chunk(entry.id, "memory", 0, 1, 1, text)
    return state, [EmbeddedChunk(chunk, vector, tuple(document_terms(text)))]


def _hash(entry: Entry) -> str:
    return sha256_text(f"{entry.scope}\n{entry.text}")


def _wanted(entries: Entries) -> Entries:
    return {entry.id: entry for entry in entries.values() if not entry.is_waiting}


def _difference(reader: IndexReader, fingerprint: IndexFingerprint, wanted: Entries) -> Difference | None:
    """What the index lacks and has too much of; None when it is as wanted."""
    made = reader.fingerprint()
    if made is None:
        return Difference("there is no index of entries yet")
    if reason := made.difference(fingerprint):
        return Difference(reason)
    known = {path: file.hash for (_, path), file in reader.files().items()}
    new = tuple(entry for entry in wanted.values() if known.get(entry.id) != _hash(entry))
    if new and fingerprint.embedder.provider != "none" and not made.embedder.dims:
        return Difference("how long a vector is was not known")
    gone = tuple(sorted(known.keys() - wanted.keys()))
    return Difference("", new, gone) if new or gone else None


def _by_id(found: Sequence[Candidate]) -> dict[int, Candidate]:
    return {each.id: each for each in found}


def _scored(
    reader: IndexReader,
    found: Mapping[int, Candidate],
    vector: Vector | None,
    terms: Sequence[str],
    where: SearchFilter,
) -> list[Near]:
    ids = list(found)
    similarities = reader.similarities(vector, ids) if vector is not None and ids else [0.0] * len(ids)
    weights = _weights(reader.term_statistics(terms, where=where))
    return [
        Near(found[id_].chunk.path, similarity, _share(weights, found[id_].chunk.text))
        for id_, similarity in zip(ids, similarities, strict=True)
    ]


def _weights(statistics: TermStatistics) -> Mapping[str, float]:
    """What each word of a question tells. In a handful of entries no word is common yet, however many have it."""
    count = max(_LEAST_COUNT, statistics.chunk_count)
    return {
        term: inverse_frequency(count, chunks_with) for term, chunks_with in statistics.chunks_with.items()
    }


def _share(weights: Mapping[str, float], text: str) -> float:
    """How much of a question's words a text has. An entry is a sentence: how often and how long make no difference."""
    own = set(document_terms(text))
    whole = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in own) / whole if whole else 0.0
