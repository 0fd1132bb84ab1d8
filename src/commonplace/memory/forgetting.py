"""Forgetting for good: out of the files, the history, the cache and the index, in that order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from commonplace.errors import CommonplaceError, NotFound
from commonplace.files.conflicts import erase_conflict_copies
from commonplace.files.replace import content_hash
from commonplace.memory.wiring import Parts
from commonplace.model import SyncReport
from commonplace.sources.decoding import decode
from commonplace.sources.notebook import byte_lines
from commonplace.text.hashing import sha256_text
from commonplace.text.lines import split_lines
from commonplace.text.notes import find_note

_CITATION = re.compile(r"(?P<path>.+\.md)(?:#L|:)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?", re.IGNORECASE)
_NOTE_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
NOTE_ID_COMMENT = re.compile(r"<!-- m:[0-9A-Za-z_-]+ -->")
# Shorter texts match far more than anybody means.
LEAST_TEXT = 3


@dataclass(frozen=True, slots=True)
class ForgottenLines:
    """Lines that go, and what they say."""

    path: str
    start_line: int
    end_line: int
    text: str
    base_hash: str  # of the file they were chosen in


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten, or would be."""

    lines: tuple[ForgottenLines, ...]
    text: str | None = None  # what every one of them contains, when they were chosen by a text
    applied: bool = False
    versions_cleaned: int = 0


class Forgetting:
    """Chooses lines, then removes them everywhere."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def select(self, what: str) -> Forgotten:
        """Find the lines that are meant, by citation, note id or text; NotFound when there are none."""
        cited, text = _CITATION.fullmatch(what.strip()), None
        if cited:
            chosen = [self._cited(cited)]
        elif _NOTE_ID.fullmatch(what.strip()):
            chosen = list(self._note(what.strip()))
        else:
            chosen, text = list(self._containing(what)), what.strip("\r\n")
        if not chosen:
            raise NotFound(
                f"no line of the memory contains `{what}`",
                hint="give a text as it stands in the file, a note id, or lines such as `MEMORY.md#L3-L5`",
            )
        return Forgotten(tuple(chosen), text)

    def apply(self, chosen: Forgotten, sync: Callable[[], SyncReport]) -> Forgotten:
        """Remove the chosen lines. When this returns they are in no file of ours."""
        parts = self._parts
        by_path: dict[str, list[ForgottenLines]] = {}
        for lines in chosen.lines:
            by_path.setdefault(lines.path, []).append(lines)
        doomed = doomed_lines(chosen)
        with parts.erasures.erasing():
            hashes = self._hashes_of_chunks(by_path)
            parts.tombstones.bury(hashes)
            for path, ranges in by_path.items():
                parts.notebook.remove_lines(
                    path,
                    [(lines.start_line, lines.end_line) for lines in ranges],
                    base_hash=ranges[0].base_hash,
                )
            cleaned = parts.history.erase(doomed.removed_from)
            erase_conflict_copies(parts.places.state, lambda data: doomed.removed_from(data) != data)
            if parts.cache is not None:
                parts.cache.forget(hashes)
            for path in by_path:
                parts.store.erase("memory", path)
        sync()
        return replace(chosen, applied=True, versions_cleaned=cleaned)

    def _hashes_of_chunks(self, paths: dict[str, list[ForgottenLines]]) -> list[str]:
        """Hashes of everything that the index holds of these files: what the cache may know them by."""
        with self._parts.store.reading() as reader:
            return [
                sha256_text(chunk.embedded_text)
                for path in paths
                for chunk in reader.chunks_between("memory", path, 1, 1_000_000_000)
            ]

    def _cited(self, cited: re.Match[str]) -> ForgottenLines:
        first, last = int(cited["first"]), int(cited["last"] or cited["first"])
        _, data = self._parts.notebook.read_bytes(cited["path"])
        lines = split_lines(decode(data))
        if not 1 <= first <= last <= len(lines):
            raise NotFound(
                f"`{cited['path']}` has {len(lines)} lines; there is no range {first}-{last}",
                hint=f"read it with `commonplace get {cited['path']}`",
            )
        return _chosen(cited["path"], data, lines, first, last)

    def _note(self, note_id: str) -> Iterator[ForgottenLines]:
        for path, data, lines in self._files():
            found = find_note(lines, note_id)
            if found is not None:
                yield _chosen(path, data, lines, *found)

    def _containing(self, text: str) -> Iterator[ForgottenLines]:
        if len(text.strip()) < LEAST_TEXT:
            raise CommonplaceError(
                f"`{text}` is too short to forget by: it would match too much",
                hint=f"give at least {LEAST_TEXT} characters, or lines such as `MEMORY.md#L3-L5`",
            )
        wanted = split_lines(text.strip("\r\n"))
        for path, data, lines in self._files():
            for first, last in runs_of(lines, wanted):
                yield _chosen(path, data, lines, first, last)

    def _files(self) -> Iterator[tuple[str, bytes, list[str]]]:
        parts = self._parts
        for found in parts.workspace.discover().files:
            data, _ = found.root.read(found.relative, max_bytes=parts.workspace.max_file_bytes)
            yield found.path, data, split_lines(decode(data))


def runs_of(lines: list[str], wanted: list[str]) -> Iterator[tuple[int, int]]:
    """Where a text stands: for one line, every line that contains it; for several, every run that equals them."""
    if len(wanted) == 1:
        yield from ((number, number) for number, line in enumerate(lines, 1) if wanted[0] in line)
        return
    for start in range(len(lines) - len(wanted) + 1):
        if lines[start : start + len(wanted)] == wanted:
            yield start + 1, start + len(wanted)


@dataclass(frozen=True, slots=True)
class DoomedLines:
    """How a line of an old version is known for one that is to be forgotten, however it was worded then."""

    exact: frozenset[bytes]
    containing: tuple[bytes, ...]

    def removed_from(self, data: bytes) -> bytes:
        """What is left of a stored version."""
        return b"".join(line for line in byte_lines(data) if not self._has(line.rstrip(b"\r\n")))

    def _has(self, line: bytes) -> bool:
        return line in self.exact or any(mark in line for mark in self.containing)


def doomed_lines(chosen: Forgotten) -> DoomedLines:
    """The lines themselves, every wording of the notes that they are, and whatever has the text they were chosen by."""
    lines = [line for part in chosen.lines for line in split_lines(part.text)]
    marks = {mark for line in lines for mark in NOTE_ID_COMMENT.findall(line)}
    if chosen.text is not None and len(split_lines(chosen.text)) == 1:
        marks.add(chosen.text)
    return DoomedLines(
        # A blank line is nobody's secret; taking every blank line out of the history would only spoil it.
        exact=frozenset(line.encode("utf-8", "surrogatepass") for line in lines if line.strip()),
        containing=tuple(mark.encode("utf-8", "surrogatepass") for mark in sorted(marks)),
    )


def _chosen(path: str, data: bytes, lines: list[str], first: int, last: int) -> ForgottenLines:
    return ForgottenLines(path, first, last, "\n".join(lines[first - 1 : last]), content_hash(data))
