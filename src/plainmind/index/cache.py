"""What a process has read of one generation of an index, kept between searches within one budget of bytes.

Ids are never used again, so what belongs to an id stays right as long as the generation lives. What belongs to a
segment is kept under the revision at which it last changed: an edit makes nothing else be read again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from plainmind.base.model import Chunk, FileState, Source
from plainmind.index.arithmetic import PER_POSTING, choose_arithmetic
from plainmind.index.bm25 import words_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from plainmind.index.driver import Part, Segment, View
    from plainmind.index.postings import Postings

    T = TypeVar("T")

OVERHEAD = 200  # bytes of an entry: its key, its value's header, its place in a dictionary
_ABSENT = object()


class RecentlyUsed:
    """Values within a budget of bytes: what was not asked for longest goes first."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        # By last use. A plain dictionary, too, has an order, but finding its first key again and again is slow.
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size = 0

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
    """Shared by the readers of one generation; a driver keeps what only it reads in `kept` too."""

    def __init__(self, most_bytes: int, *, keeps_postings: bool = True) -> None:
        """Without `keeps_postings` the driver has its own way to keep them."""
        self.kept = RecentlyUsed(most_bytes)
        self.keeps_vectors = True
        self._keeps_postings = keeps_postings
        self._files: tuple[int, Mapping[tuple[Source, str], FileState]] | None = None

    def files(self, view: View[Any, Any]) -> Mapping[tuple[Source, str], FileState]:
        """Every indexed file."""
        known, revision = self._files, view.overview.revision
        if known is None or known[0] != revision:
            self._files = known = (revision, view.files())
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
            return choose_arithmetic(PER_POSTING * len(lengths) // 4).count_living(postings, lengths)

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
