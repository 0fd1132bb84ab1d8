"""The entry memory: store, recall, forget, list; and a list of captured entries that wait to be accepted."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from commonplace.embedding.protocol import Embedder, EmbeddingCache
from commonplace.entries.capture import proposal_of
from commonplace.entries.entry_file import Entries, EntryFile
from commonplace.entries.entry_index import EntryIndex, Near
from commonplace.entries.model import USUAL_IMPORTANCE, Entry, Recall, RecalledEntry, Stored, checked
from commonplace.errors import EmbeddingError, NotFound, ScopeDenied
from commonplace.files.ids import new_id
from commonplace.model import EVERY_SCOPE
from commonplace.store.protocol import IndexStore
from commonplace.text.hashing import sha256_text
from commonplace.value import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

_Chosen: TypeAlias = "list[Entry]"
_LANCEDB = "commonplace.store.lancedb.store:LanceStore"

TWINS_FROM = 0.95  # cosine: what is so near says the same thing
LEAST_SCORE = 0.25
# The most that a score can have from similarity alone, and from words alone. Chosen on 8,585 lines of conversations and
# 200 questions about them, with the built-in model: the line that was asked for is first for 39 and among the first
# five for 62 of 100. More weight on similarity lets what is vaguely alike push aside what has the words.
_WORTH_OF_SIMILARITY = 0.6
_WORTH_OF_WORDS = 0.8
_CANDIDATES_PER_RESULT = 4
_LEAST_CANDIDATES = 24
# An unimportant entry has to match better: by so much at most.
_WORTH_OF_IMPORTANCE = 0.15


class EntryMemory:
    """The entries of one agent, in one folder. Safe to share between threads and with other processes.

    Whoever asks says which scopes may be seen, whoever stores says which scope it is for: there is no default.
    """

    def __init__(
        self,
        folder: str,
        store: IndexStore,
        embedder: Embedder,
        *,
        redact: Callable[[str], str] = str,
        cache: EmbeddingCache | None = None,
        twins_from: float = TWINS_FROM,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`store` is closed with it. `cache` is where vectors of forgotten text are erased, too."""
        self._file = EntryFile(folder)
        self._index = EntryIndex(store, embedder, redact)
        self._redact = redact
        self._cache = cache
        self._twins_from = twins_from
        self._clock = clock

    def store(
        self,
        text: str,
        *,
        scope: str,
        category: str = "other",
        importance: float = USUAL_IMPORTANCE,
        replacing: str | None = None,
    ) -> Stored:
        """Keep an entry; refused, naming the twin, when one of the same scope says the same already.

        `replacing` is the id of an entry of that scope that this one takes the place of: it is forgotten.
        On disk when this returns.
        """
        text, category, importance = checked(text, category, importance)
        _check_scope(scope)
        entry = Entry(new_id(self._clock), text, category, importance, self._now_ms(), scope)
        vector, degraded = self._vector_of(text)
        with self._changing("store an entry"):
            more, entries = self._caught_up()
            old = self._chosen(entries, [replacing], frozenset({scope})) if replacing else []
            if not old:
                twin = self._twin(entries, text, vector, scope)
                if twin is not None:
                    return Stored(None, entries[twin.id], twin.similarity, degraded + more)
            self._file.add(entry)
            degraded += more + self._indexed(entry, vector)
            if old:
                self._erase([each.id for each in old], [each.text for each in old])
        return Stored(entry, degraded=degraded)

    def recall(
        self, query: str, *, scopes: frozenset[str], limit: int = 5, min_score: float = LEAST_SCORE
    ) -> Recall:
        """The entries that answer a question, best first, among those that may be seen."""
        if not query.strip() or limit <= 0 or not scopes:
            return Recall(())
        degraded: tuple[str, ...] = ()
        signature, entries = self._file.read()
        if not self._index.is_settled(signature):
            with self._changing("recall entries"):
                degraded, entries = self._caught_up()
        wanted = max(_LEAST_CANDIDATES, _CANDIDATES_PER_RESULT * limit)
        near, more = self._index.near(query, scopes, wanted)
        found = [_scored(entries[each.id], each) for each in near if each.id in entries]
        # Once more where it leaves: the file may say otherwise than the index did.
        seen = [each for each in found if _may_see(each.entry, scopes) and each.score >= min_score]
        seen.sort(key=lambda each: (-each.score, each.entry.id))
        return Recall(tuple(seen[:limit]), degraded + more)

    def forget(self, ids: Sequence[str], *, scopes: frozenset[str]) -> tuple[Entry, ...]:
        """Remove entries for good: afterwards their text is in no file of ours. Raises NotFound, and then none goes."""
        with self._changing("forget entries"):
            _, entries = self._caught_up()
            gone = self._chosen(entries, ids, scopes)
            self._erase([entry.id for entry in gone], [entry.text for entry in gone])
        return tuple(gone)

    def list(
        self,
        *,
        scopes: frozenset[str],
        category: str | None = None,
        waiting: bool = False,
        limit: int | None = None,
    ) -> tuple[Entry, ...]:
        """Entries, the newest first: those that are kept, or those that wait to be accepted."""
        _, entries = self._file.read()
        found = [
            entry
            for entry in reversed(list(entries.values()))
            if entry.is_waiting == waiting and _may_see(entry, scopes) and category in {None, entry.category}
        ]
        return tuple(found[:limit])

    def get(self, id_: str, *, scopes: frozenset[str]) -> Entry:
        """One entry. Raises NotFound."""
        _, entries = self._file.read()
        (found,) = self._chosen(entries, [id_], scopes)
        return found

    def stats(self, *, scopes: frozenset[str]) -> Mapping[str, Any]:
        """Counts of what may be seen; where it is kept, for who may see everything."""
        kept, waiting = self.list(scopes=scopes), self.list(scopes=scopes, waiting=True)
        facts: dict[str, Any] = {
            "entries": len(kept),
            "waiting": len(waiting),
            "categories": dict(Counter(entry.category for entry in kept)),
            "oldest": min((entry.created_at for entry in kept), default=None),
            "newest": max((entry.created_at for entry in kept), default=None),
        }
        if scopes == EVERY_SCOPE:
            facts["path"] = self._file.path
            facts["bytes"] = os.path.getsize(self._file.path) if os.path.exists(self._file.path) else 0
            facts["index"] = dict(self._index.facts())
        return facts

    def capture(self, messages: Iterable[str], *, scope: str) -> tuple[Entry, ...]:
        """Propose what is worth keeping of what a person said: it waits until it is accepted.

        What holds a secret, or stands in the memory or among the proposals already, is left out.
        """
        _check_scope(scope)
        proposals = [found for text in messages if (found := proposal_of(text)) is not None]
        proposals = [each for each in proposals if self._redact(each.text) == each.text]
        if not proposals:
            return ()
        added = []
        with self._changing("propose entries"):
            for each in proposals:
                _, entries = self._file.read()
                known = {_folded(entry.text) for entry in entries.values() if entry.scope == scope}
                if _folded(each.text) in known:
                    continue
                entry = Entry(
                    new_id(self._clock), each.text, each.category, each.importance, self._now_ms(), scope,
                    origin="captured", is_waiting=True,
                )  # fmt: skip
                self._file.add(entry)
                added.append(entry)
        return tuple(added)

    def accept(self, ids: Sequence[str], *, scopes: frozenset[str]) -> tuple[Stored, ...]:
        """Keep proposals from now on; one that has a twin by now is dropped instead. Raises NotFound."""
        results = []
        with self._changing("accept entries"):
            _, entries = self._caught_up()
            chosen = self._chosen(entries, ids, scopes)
            for waiting in chosen:
                if not waiting.is_waiting:
                    results.append(Stored(waiting))
                    continue
                vector, degraded = self._vector_of(waiting.text)
                _, entries = self._file.read()
                twin = self._twin(entries, waiting.text, vector, waiting.scope)
                if twin is not None:
                    self._erase([waiting.id], [])
                    results.append(Stored(None, entries[twin.id], twin.similarity, degraded))
                    continue
                entry = replace(waiting, is_waiting=False)
                self._file.replace({entry.id: entry})
                results.append(Stored(entry, degraded=degraded + self._indexed(entry, vector)))
        return tuple(results)

    def reject(self, ids: Sequence[str], *, scopes: frozenset[str]) -> tuple[Entry, ...]:
        """Drop proposals for good."""
        return self.forget(ids, scopes=scopes)

    def close(self) -> None:
        """Let go of the index."""
        self._index.close()

    def _changing(self, operation: str) -> AbstractContextManager[None]:
        """Wait to be the only one who changes the entries."""
        self._index.open()
        return self._file.changing(operation)

    def _caught_up(self) -> tuple[tuple[str, ...], Entries]:
        """Bring the index up to date; needs the lock, so that nobody does it twice."""
        signature, entries = self._file.read()
        return self._index.catch_up(signature, entries), entries

    def _vector_of(self, text: str) -> tuple[Any, tuple[str, ...]]:
        try:
            return self._index.vector_of(text), ()
        except EmbeddingError as error:
            # The entry itself is worth more than its vector, which can be made later.
            return None, (f"similarity: {error}",)

    def _indexed(self, entry: Entry, vector: Any) -> tuple[str, ...]:
        signature, entries = self._file.read()
        if vector is not None:
            self._index.add(entry, vector, signature)
            return ()
        return self._index.catch_up(signature, entries)

    def _twin(self, entries: Entries, text: str, vector: Any, scope: str) -> Near | None:
        if vector is None:
            near = self._index.with_the_same_words(text, scope)
        else:
            near = self._index.nearest(vector, scope)
        if near is None or near.similarity < self._twins_from or near.id not in entries:
            return None
        return near

    def _erase(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        self._file.remove(ids)
        signature, _ = self._file.read()
        self._index.erase(ids, signature)
        if self._cache is not None and texts:
            self._cache.forget([sha256_text(self._redact(text)) for text in texts])

    def _chosen(self, entries: Entries, ids: Sequence[str], scopes: frozenset[str]) -> _Chosen:
        """The same words for what is not there and for what may not be seen."""
        found = []
        for id_ in dict.fromkeys(ids):
            entry = entries.get(id_)
            if entry is None or not _may_see(entry, scopes):
                raise NotFound(
                    f"there is no entry `{id_[:60]}`", hint="`commonplace entries list` shows the ids"
                )
            found.append(entry)
        return found

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _scored(entry: Entry, near: Near) -> RecalledEntry:
    """Either of both is enough, both together are better; of two that match alike the more important comes first."""
    meaning = _WORTH_OF_SIMILARITY * near.similarity**2
    score = 1 - (1 - meaning) * (1 - _WORTH_OF_WORDS * near.word_score)
    score *= 1 - _WORTH_OF_IMPORTANCE * (1 - entry.importance)
    return RecalledEntry(entry, min(1.0, max(0.0, score)), near.similarity, near.word_score)


def _may_see(entry: Entry, scopes: frozenset[str]) -> bool:
    return scopes == EVERY_SCOPE or entry.scope in scopes


def _check_scope(scope: str) -> None:
    if not scope or scope in EVERY_SCOPE:
        raise ScopeDenied("nothing may be kept in this conversation", hint="keep it in a direct chat")


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def open_entries(
    folder: str,
    embedder: Embedder,
    *,
    driver: str = _LANCEDB,
    redact: Callable[[str], str] = str,
    cache: EmbeddingCache | None = None,
) -> EntryMemory:
    """Open the entries of a folder, with their index beside them: in LanceDB, unless another store is named."""
    from commonplace.store.opening import open_store

    store = open_store(driver, folder=os.path.join(folder, "index"))
    return EntryMemory(folder, store, embedder, redact=redact, cache=cache)
