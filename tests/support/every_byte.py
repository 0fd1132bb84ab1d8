"""Every byte under a folder, also inflated: what of some words is left anywhere."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

_MOST_INFLATED = 4_096  # of one stream: the words that are looked for stand near the beginning of their texts


def places_with(folder: Path, words: Sequence[str], *, inflated: bool = True) -> list[str]:
    """Where any of the words stands, whatever its case: "file: word"."""
    wanted = [word.casefold().encode() for word in words]
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = b"\n".join(_contents(path, inflated=inflated)).lower()
            found += [f"{path.relative_to(folder)}: {word.decode()}" for word in wanted if word in content]
    return found


def _contents(path: Path, *, inflated: bool) -> Iterator[bytes]:
    data = path.read_bytes()
    yield path.name.encode()
    yield data
    if inflated:
        yield b"\n".join(_streams(data))


def _streams(data: bytes) -> Iterator[bytes]:
    """What can be inflated, with and without a header, from every byte on."""
    for start in range(len(data)):
        if not data[start]:
            continue  # a block of stored bytes: they are in the file as they are
        for kind in (-15, 15):
            try:
                yield zlib.decompressobj(kind).decompress(
                    data[start : start + _MOST_INFLATED], _MOST_INFLATED
                )
            except zlib.error:
                continue
