"""The entry memory: store, recall, forget, list; and a list of captured entries that wait to be accepted."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial

from plainmind.base.errors import (
    ConflictError,
    EmbeddingError,
    IndexCorrupt,
    IndexUnavailable,
    LockTimeout,
    NotFound,
    ScopeDenied,
    StorageFailure,
)
from plainmind.base.model import EVERY_SCOPE, sha256_text
from plainmind.base.value import replace, value
from plainmind.embed.protocol import Embedder
from plainmind.files.append import new_id
from plainmind.guests.entries.entry_file import Entries, EntryFile, folded
from plainmind.guests.entries.entry_index import EntryIndex, Near
from plainmind.guests.entries.model import (
    USUAL_IMPORTANCE,
    Entry,
    Recall,
    RecalledEntry,
    Stored,
    checked,
    checked_id,
)
from plainmind.index.protocol import IndexStore
from plainmind.text.sentences import adds_nothing, category_of, same_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

_Chosen: TypeAlias = "list[Entry]"
_LANCEDB = "lancedb"

TWINS_FROM = 0.95  # cosine: what is so near says the same thing
LEAST_SCORE = 0.25
# The most that a score can have from similarity alone, and from words alone. Chosen on 8,585 lines of conversations and
# 200 questions about them, with the built-in model: the line that was asked for is first for 39 and among the first
# five for 62 of 100. More weight on similarity lets what is vaguely alike push aside what has the words.
_WORTH_OF_SIMILARITY = 0.6
_WORTH_OF_WORDS = 0.8
_CANDIDATES_PER_RESULT = 4
_LEAST_CANDIDATES = 24
_MOST_WAITING = 200  # proposals of a scope; more than that nobody reviews
# An unimportant entry has to match better: by so much at most.
_WORTH_OF_IMPORTANCE = 0.15
# A message that may be worth keeping is a few sentences.
_LEAST_CAPTURED = 10
CAPTURED_CHARS = 500
_MOST_LINES = 4


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
        forget_vectors: Callable[[Sequence[str]], None] | None = None,
        forget_elsewhere: Callable[[Sequence[str]], None] | None = None,
        forget_recalls: Callable[[Mapping[str, str]], None] | None = None,
        twins_from: float = TWINS_FROM,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`store` is closed with it. `forget_vectors` takes the hashes of forgotten text, for a cache of vectors.

        `forget_elsewhere` takes the ids of forgotten entries, for other indexes that hold them, `forget_recalls` also
        their texts, for what was written down when they were recalled.
        """
        self._file = EntryFile(folder)
        self._index = EntryIndex(store, embedder, redact)
        self._redact = redact
        self._forget_vectors = forget_vectors
        self._forget_elsewhere = forget_elsewhere
        self._forget_recalls = forget_recalls
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
        anyway: bool = False,
        id: str | None = None,  # noqa: A002
        details: Mapping[str, Any] | None = None,
    ) -> Stored:
        """Keep an entry; refused, naming the twin, when one of the same scope says the same already.

        `replacing` is the id of an entry of that scope that this one takes the place of: it is forgotten. With `anyway`
        it is kept beside its twin. `details` are kept with it, for the program that knows them. On disk when this
        returns.
        """
        text, category, importance = checked(text, category, importance)
        _check_scope(scope)
        entry = Entry(
            checked_id(id) if id else new_id(self._clock), text, category, importance, self._now_ms(), scope,
            details=details,
        )  # fmt: skip
        vector, degraded = self._vector_of(text)
        with self._changing("store an entry"):
            more, entries = self._caught_up()
            old = self._chosen(entries, [replacing], frozenset({scope})) if replacing else []
            if not old and not anyway:
                twin = self._twin(entries, text, vector, scope)
                if twin is not None:
                    return Stored(None, twin[0], twin[1], degraded + more)
            self._file.add(entry)
            degraded += more + self._indexed(entry, vector)
            if old:
                self._erase(old)
        return Stored(entry, degraded=_once(degraded))

    def change(
        self,
        id_: str,
        *,
        scopes: frozenset[str],
        text: str | None = None,
        importance: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Say an entry otherwise, under the same id; what is None stays. On disk when this returns. Raises NotFound."""
        with self._changing("change an entry"):
            _, entries = self._caught_up()
            (old,) = self._chosen(entries, [id_], scopes)
            new_text, _, new_importance = checked(
                old.text if text is None else text,
                old.category,
                old.importance if importance is None else importance,
            )
            new = replace(
                old,
                text=new_text,
                importance=new_importance,
                details=old.details if details is None else details,
            )
            if new.text != old.text and self._forget_vectors is not None:
                self._forget_vectors([sha256_text(self._redact(old.text))])
            self._file.replace({id_: new})
            if new.text != old.text:
                self._index.erase([id_])
            self._caught_up()
        return new

    def recall(
        self,
        query: str,
        *,
        scopes: frozenset[str],
        limit: int = 5,
        min_score: float = LEAST_SCORE,
        by_words_only: bool = False,
    ) -> Recall:
        """The entries that answer a question, best first, among those that may be seen.

        With `by_words_only` the question is not embedded, so that no provider gets to see it.
        """
        if not query.strip() or limit <= 0 or not scopes:
            return Recall(())
        wanted = max(_LEAST_CANDIDATES, _CANDIDATES_PER_RESULT * limit)
        look = partial(self._index.near, query, scopes, wanted, by_words_only=by_words_only)
        degraded, entries = self._up_to_date()
        try:
            near, more = look()
        except IndexCorrupt:
            degraded, entries = self._up_to_date()  # the damaged one was set aside, and is made anew
            near, more = look()
        found = [_scored(entries[each.id], each) for each in near if each.id in entries]
        # Once more where it leaves: the file may say otherwise than the index did.
        seen = [each for each in found if _may_see(each.entry, scopes) and each.score >= min_score]
        seen.sort(key=lambda each: (-each.score, each.entry.id))
        return Recall(tuple(seen[:limit]), _once(degraded + more))

    def forget(self, ids: Sequence[str], *, scopes: frozenset[str]) -> tuple[Entry, ...]:
        """Remove entries for good: afterwards their text is in no file of ours. Raises NotFound, and then none goes."""
        with self._changing("forget entries"):
            _, entries = self._file.read()
            gone = self._chosen(entries, ids, scopes)
            self._erase(gone)
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
            facts["unreadable"] = self._file.unreadable()
            facts["path"] = self._file.path
            facts["bytes"] = os.path.getsize(self._file.path) if os.path.exists(self._file.path) else 0
            facts["index"] = dict(self._index.facts())
        return facts

    def capture(
        self, messages: Iterable[str], *, scope: str, most_chars: int = CAPTURED_CHARS
    ) -> tuple[Entry, ...]:
        """Propose what is worth keeping of what a person said: it waits until it is accepted.

        What holds a secret, or stands in the memory or among the proposals already, is left out; and so is everything
        as long as there are many that nobody has looked at.
        """
        _check_scope(scope)
        proposals = [found for text in messages if (found := proposal_of(text, most_chars)) is not None]
        proposals = [each for each in proposals if self._redact(each.text) == each.text]
        if not proposals:
            return ()
        added: _Chosen = []
        with self._file.changing("propose entries"):
            _, entries = self._file.read()
            own = [entry for entry in entries.values() if entry.scope == scope]
            known = {folded(entry.text) for entry in own}
            room = _MOST_WAITING - sum(entry.is_waiting for entry in own)
            for each in proposals:
                if folded(each.text) in known or len(added) >= room:
                    continue
                entry = Entry(
                    new_id(self._clock), each.text, each.category, each.importance, self._now_ms(), scope,
                    origin="captured", is_waiting=True,
                )  # fmt: skip
                self._file.add(entry)
                known.add(folded(each.text))
                added.append(entry)
        return tuple(added)

    def accept(self, ids: Sequence[str], *, scopes: frozenset[str]) -> tuple[Stored, ...]:
        """Keep proposals from now on; one that is there in the same words by now is dropped. Raises NotFound."""
        with self._changing("accept entries"):
            _, entries = self._caught_up()
            chosen = self._chosen(entries, ids, scopes)
            return tuple(self._accepted(each) if each.is_waiting else Stored(each) for each in chosen)

    def _accepted(self, waiting: Entry) -> Stored:
        vector, degraded = self._vector_of(waiting.text)
        _, entries = self._file.read()
        twin = self._twin(entries, waiting.text, vector, waiting.scope, in_the_same_words=True)
        if twin is not None:
            self._erase([waiting])
            return Stored(None, twin[0], twin[1], degraded)
        entry = replace(waiting, is_waiting=False)
        self._file.replace({entry.id: entry})
        return Stored(entry, degraded=_once(degraded + self._indexed(entry, vector)))

    def reject(self, ids: Sequence[str], *, scopes: frozenset[str]) -> tuple[Entry, ...]:
        """Drop proposals for good."""
        return self.forget(ids, scopes=scopes)

    def get_ready(self) -> None:
        """Load what finds the entries again, which may take seconds, before somebody waits for it."""
        self._up_to_date()

    def close(self) -> None:
        """Let go of the index."""
        self._index.close()

    def _changing(self, operation: str) -> AbstractContextManager[object]:
        """Wait to be the only one who changes the entries."""
        self._index.open()
        return self._file.changing(operation)

    def _up_to_date(self) -> tuple[tuple[str, ...], Entries]:
        """Bring the index up to date, without a lock where there is nothing to do."""
        signature, entries = self._file.read()
        if self._index.agrees(signature, entries):
            return self._index.degraded, entries
        with self._changing("recall entries"):
            return self._caught_up()

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
        """Let an entry be found. It is kept already: what goes wrong here is mended before the next answer."""
        try:
            signature, entries = self._file.read()
            if vector is None or not self._index.takes(vector):
                return self._index.catch_up(signature, entries)
            self._index.add(entry, vector, signature)
        except (IndexUnavailable, ConflictError, StorageFailure, LockTimeout) as error:
            return (f"the index of entries: {error}",)
        return ()

    def _twin(
        self, entries: Entries, text: str, vector: Any, scope: str, *, in_the_same_words: bool = False
    ) -> tuple[Entry, float] | None:
        """An entry that says the same, and how similar it is. The same words need not be near: models differ."""
        for near in self._index.alike(text, vector, scope):
            entry = entries.get(near.id)
            if entry is None or entry.scope != scope or entry.is_waiting:
                continue
            is_near = near.similarity >= self._twins_from and not in_the_same_words
            if (adds_nothing if is_near else same_words)(text, entry.text):
                return entry, near.similarity or 1.0
        return None

    def _erase(self, gone: Sequence[Entry]) -> None:
        """Remove entries from everywhere, from the file last: until then nothing is lost, and it can be tried again."""
        if self._forget_vectors is not None:
            self._forget_vectors([sha256_text(self._redact(entry.text)) for entry in gone])
        ids = [entry.id for entry in gone]
        if self._forget_elsewhere is not None:
            self._forget_elsewhere(ids)
        if self._forget_recalls is not None:
            self._forget_recalls({entry.id: entry.text for entry in gone})
        signature, entries = self._file.read()
        if self._index.agrees(signature, entries):
            self._index.erase(ids)
        else:  # brought up to date without what is to go, which nobody need embed any more
            self._index.catch_up(signature, {id_: each for id_, each in entries.items() if id_ not in ids})
            self._index.erase(ids, known_only=False)
        self._file.remove(gone)
        signature, _ = self._file.read()
        self._index.note(signature)

    def _chosen(self, entries: Entries, ids: Sequence[str], scopes: frozenset[str]) -> _Chosen:
        """The same words for what is not there and for what may not be seen."""
        found = []
        for id_ in dict.fromkeys(ids):
            entry = entries.get(id_)
            if entry is None or not _may_see(entry, scopes):
                raise NotFound(
                    f"there is no entry `{id_[:60]}`", hint="`plainmind entries list` shows the ids"
                )
            found.append(entry)
        return found

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


@value
class Proposal:
    """Something to keep, if somebody agrees."""

    text: str
    category: str
    importance: float


def proposal_of(message: str, most_chars: int = CAPTURED_CHARS) -> Proposal | None:
    """What of a person's message may be worth keeping; None for nearly all of them."""
    text = message.strip()
    if not _LEAST_CAPTURED <= len(text) <= most_chars or text.count("\n") >= _MOST_LINES:
        return None
    found = category_of(text)
    return None if found is None else Proposal(text, *found)


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


def _once(reasons: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reasons))


def open_entries(
    folder: str,
    embedder: Embedder,
    *,
    driver: str = _LANCEDB,
    redact: Callable[[str], str] = str,
    forget_vectors: Callable[[Sequence[str]], None] | None = None,
    forget_recalls: Callable[[Mapping[str, str]], None] | None = None,
    twins_from: float = TWINS_FROM,
) -> EntryMemory:
    """Open the entries of a folder, with their index beside them: in LanceDB, unless another store is named."""
    from plainmind.index.remains import erase_left_behind
    from plainmind.index.store import open_store

    index = os.path.join(folder, "index")
    return EntryMemory(
        folder,
        open_store(driver, folder=index),
        embedder,
        redact=redact,
        forget_vectors=forget_vectors,
        forget_elsewhere=partial(erase_left_behind, index, driver, "memory"),
        forget_recalls=forget_recalls,
        twins_from=twins_from,
    )
