"""Files, chunks and vectors for tests of stores: made from words, the same on every machine."""

from __future__ import annotations

import hashlib
import math
import random
from array import array

from plainmind.base.model import (
    EVERY_SCOPE,
    PRIVATE,
    Chunk,
    EmbeddedChunk,
    EmbedderIdentity,
    FileState,
    IndexFingerprint,
    SearchFilter,
    Source,
    Vector,
)
from plainmind.index.protocol import keyword_candidates, vector_candidates

DIMS = 16
WORDS = "gateway printer lantern harbour meadow copper violin thunder pepper marble".split()  # noqa: SIM905
EVERYWHERE = SearchFilter(sources=frozenset({"memory", "sessions"}), scopes=EVERY_SCOPE)


def fingerprint(dims: int = DIMS, model: str = "words") -> IndexFingerprint:
    return IndexFingerprint(EmbedderIdentity("tests", model, dims=dims), "lines/400/80", "1", 1)


def file_state(
    path: str, text: str = "", source: Source = "memory", mtime_ns: int = 1, scope: str = PRIVATE
) -> FileState:
    return FileState(path, source, hashlib.sha256(text.encode()).hexdigest(), len(text), mtime_ns, 7, scope)


def seen_by(*scopes: str) -> SearchFilter:
    """What those see who may see some scopes, of every source."""
    return SearchFilter(sources=EVERYWHERE.sources, scopes=frozenset(scopes))


def vector(text: str, dims: int = DIMS) -> Vector:
    """A unit vector that depends on every character."""
    dice = random.Random(text)
    numbers = [dice.gauss(0, 1) for _ in range(dims)]
    length = math.sqrt(sum(number * number for number in numbers))
    return array("f", (number / length for number in numbers))


def blend(first: Vector, second: Vector, share: float) -> Vector:
    """A unit vector between two, nearer to `first` the larger `share` is."""
    numbers = [share * a + (1 - share) * b for a, b in zip(first, second, strict=True)]
    length = math.sqrt(sum(number * number for number in numbers))
    return array("f", (number / length for number in numbers))


def embedded(
    path: str,
    *texts: str,
    source: Source = "memory",
    dims: int = DIMS,
    without_vector: bool = False,
) -> list[EmbeddedChunk]:
    """One chunk a text, three lines each; its terms are its words."""
    return [
        EmbeddedChunk(
            Chunk(path, source, at, 3 * at + 1, 3 * at + 3, text, context="", day=None),
            None if without_vector else vector(text, dims),
            tuple(text.casefold().split()),
        )
        for at, text in enumerate(texts)
    ]


def put(
    store,
    path: str,
    *texts: str,
    source: Source = "memory",
    scope: str = PRIVATE,
    keeping: int = 0,
    **options,
) -> FileState:
    """Index one file of the given texts, the first of which may be there already."""
    state = file_state(path, "\n".join(texts), source, scope=scope)
    chunks = embedded(path, *texts, source=source, **options)
    assert store.replace_file(state, chunks[keeping:], keeping=keeping)
    return state


def found_texts(store, *terms: str, where: SearchFilter = EVERYWHERE, limit: int = 10) -> list[str]:
    with store.reading() as reader:
        return [each.chunk.text for each in keyword_candidates(reader, terms, where=where, limit=limit)]


def near_texts(store, text: str, where: SearchFilter = EVERYWHERE, limit: int = 10) -> list[str]:
    with store.reading() as reader:
        return [each.chunk.text for each in vector_candidates(reader, vector(text), where=where, limit=limit)]
