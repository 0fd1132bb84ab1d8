"""The index over entries: any store that keeps chunks, each entry a file of one chunk; lost, it is made anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from commonplace.embedding.protocol import Embedder
from commonplace.entries.entry_file import Entries, Signature
from commonplace.entries.model import Entry
from commonplace.errors import ConflictError, EmbeddingError, IndexUnavailable
from commonplace.model import (
    Candidate,
    Chunk,
    EmbeddedChunk,
    FileState,
    IndexFingerprint,
    SearchFilter,
    TermStatistics,
    Vector,
)
from commonplace.store.bm25 import inverse_frequency
from commonplace.store.protocol import IndexReader, IndexStore
from commonplace.text.hashing import sha256_text
from commonplace.text.terms import TERMS_VERSION, document_terms, query_terms
from commonplace.value import replace, value

_SCHEMA = 1
_AT_A_TIME = 256
_LEAST_COUNT = 50
_RETRY_S = 60.0  # a provider that is down is not asked with every question
_WITHOUT_VECTOR = "no vector: "  # before the hash of an entry that is to be embedded again


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
        self._again_at: float | None = None  # when to embed again what could not be embedded

    def open(self) -> None:
        """Open the store now: it may take seconds, which are better not spent while others wait."""
        with self._store.reading() as reader:
            reader.fingerprint()

    def is_settled(self, signature: Signature) -> bool:
        """Whether the index was up to date with the file, and nobody has changed either since."""
        if self._again_at is not None and time.monotonic() >= self._again_at:
            return False
        with self._store.reading() as reader:
            return self._settled == (signature, reader.revision())

    def catch_up(self, signature: Signature, entries: Entries) -> tuple[str, ...]:
        """Bring the index up to date with the file; what could not be done is said in words."""
        if self.is_settled(signature):
            return ()
        with self._store.reading() as reader:
            made = reader.fingerprint()
            known = {path: file.hash for (_, path), file in reader.files().items()}
        wanted = {entry.id: entry for entry in entries.values() if not entry.is_waiting}
        reason = "there is no index of entries yet" if made is None else made.difference(self._fingerprint())
        if reason is not None:
            degraded = self._rebuild(list(wanted.values()), reason)
        else:
            new = [entry for entry in wanted.values() if known.get(entry.id) != _hash(entry)]
            degraded = self._put(self._store, new)
            gone = known.keys() - wanted.keys()
            if gone:
                self._store.erase("memory", *sorted(gone))
        self._again_at = time.monotonic() + _RETRY_S if degraded else None
        self._note(signature)
        return degraded

    def add(self, entry: Entry, vector: Vector | None, signature: Signature) -> None:
        """Take in one entry, whose vector is known."""
        self._store.replace_file(*_indexed(entry, self._redact(entry.text), vector))
        self._note(signature)

    def erase(self, ids: Sequence[str], signature: Signature) -> None:
        """Drop entries so that their text is in no file of the index."""
        self._store.erase("memory", *ids)
        self._note(signature)

    def vector_of(self, text: str) -> Vector | None:
        """The vector of what is to be stored; None without an embedder. Raises EmbeddingError."""
        if self._embedder.identity.provider == "none":
            return None
        (vector,) = self._embedder.embed_documents([self._redact(text)])
        return vector

    def nearest(self, vector: Vector, scope: str) -> Near | None:
        """The entry of one scope that is nearest to a vector."""
        where = _where(frozenset({scope}))
        with self._store.reading() as reader:
            found = reader.vector_candidates(vector, where=where, limit=1)
        return Near(found[0].chunk.path, found[0].score) if found else None

    def with_the_same_words(self, text: str, scope: str) -> Near | None:
        """An entry of one scope that has the same words; for those who have no vectors."""
        terms = sorted(set(document_terms(self._redact(text))))
        where = _where(frozenset({scope}))
        with self._store.reading() as reader:
            found = reader.keyword_candidates(terms, where=where, limit=8)
        same = [each for each in found if sorted(set(document_terms(each.chunk.text))) == terms]
        return Near(same[0].chunk.path, 1.0) if same else None

    def near(self, query: str, scopes: frozenset[str], limit: int) -> tuple[list[Near], tuple[str, ...]]:
        """Entries that are near to a question by meaning or by word; and what was not consulted."""
        degraded: tuple[str, ...] = ()
        vector: Vector | None = None
        if self._embedder.identity.provider != "none":
            try:
                vector = self._embedder.embed_query(self._redact(query))
            except EmbeddingError as error:
                # Words alone still find most of what was meant: give that, and say so.
                degraded = (f"similarity: {error}",)
        terms = query_terms(query).terms
        where = _where(scopes)
        with self._store.reading() as reader:
            found: dict[int, Candidate] = {}
            if vector is not None:
                found.update(_by_id(reader.vector_candidates(vector, where=where, limit=limit)))
            found.update(_by_id(reader.keyword_candidates(terms, where=where, limit=limit)))
            return _scored(reader, found, vector, terms, where), degraded

    def facts(self) -> Mapping[str, object]:
        """What the store says of itself."""
        return self._store.describe()

    def close(self) -> None:
        """Let go of the store; the embedder is its owner's."""
        self._store.close()

    def _fingerprint(self) -> IndexFingerprint:
        return IndexFingerprint(self._embedder.identity, "entry", TERMS_VERSION, _SCHEMA)

    def _rebuild(self, entries: Sequence[Entry], reason: str) -> tuple[str, ...]:
        fingerprint = self._fingerprint()
        first = self._embedded(entries[:1])  # some embedders do not know their dimensions before
        if first is not None and first and first[0] is not None:
            embedder = replace(self._embedder.identity, dims=len(first[0]))
            fingerprint = replace(fingerprint, embedder=embedder)
        with self._store.rebuild(fingerprint, reason=reason) as fresh:
            return self._put(fresh, entries)

    def _put(self, store: IndexStore, entries: Sequence[Entry]) -> tuple[str, ...]:
        degraded: tuple[str, ...] = ()
        for at in range(0, len(entries), _AT_A_TIME):
            portion = entries[at : at + _AT_A_TIME]
            vectors = self._embedded(portion)
            if vectors is None:
                vectors = [None] * len(portion)
                degraded = (
                    "similarity: some entries could not be embedded, and are found by their words only",
                )
            with store.joined():
                for entry, vector in zip(portion, vectors, strict=True):
                    state, chunks = _indexed(entry, self._redact(entry.text), vector)
                    if degraded:
                        state = replace(state, hash=_WITHOUT_VECTOR + state.hash)
                    store.replace_file(state, chunks)
        return degraded

    def _embedded(self, entries: Sequence[Entry]) -> list[Vector | None] | None:
        """Vectors; None when the embedder fails."""
        if self._embedder.identity.provider == "none" or not entries:
            return [None] * len(entries)
        try:
            return self._embedder.embed_documents([self._redact(entry.text) for entry in entries])
        except EmbeddingError:
            return None  # said aloud by whoever asked

    def _note(self, signature: Signature) -> None:
        try:
            with self._store.reading() as reader:
                self._settled = (signature, reader.revision())
        except (IndexUnavailable, ConflictError):
            self._settled = None  # looked at again next time


def _indexed(entry: Entry, text: str, vector: Vector | None) -> tuple[FileState, list[EmbeddedChunk]]:
    state = FileState(entry.id, "memory", _hash(entry), len(text), entry.created_at, 0, entry.scope)
    chunk = Chunk(entry.id, "memory", 0, 1, 1, text)
    return state, [EmbeddedChunk(chunk, vector, tuple(document_terms(text)))]


def _hash(entry: Entry) -> str:
    return sha256_text(f"{entry.scope}\n{entry.text}")


def _where(scopes: frozenset[str]) -> SearchFilter:
    return SearchFilter(sources=frozenset({"memory"}), scopes=scopes)


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
