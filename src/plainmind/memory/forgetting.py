"""Forgetting for good: out of the files, then the cache and the index, and out of the history last."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from plainmind.base.errors import NotFound, PlainmindError, ScopeDenied
from plainmind.base.model import SyncReport, sha256_bytes, sha256_text, split_lines
from plainmind.base.pattern import pattern
from plainmind.base.value import replace, value
from plainmind.files.replace import conflict_copies, erase_conflict_copies
from plainmind.files.system import explain_errors
from plainmind.memory.backend_erasing import erase_in_engines
from plainmind.memory.indexes import erase_notes_left_behind, of_other_agents
from plainmind.memory.outdated import outdated_with
from plainmind.memory.wiring import Parts
from plainmind.notes.notebook import Forgotten, ForgottenLines, byte_lines
from plainmind.notes.workspace import decode
from plainmind.text.note_format import ID_MARK, find_note, without_note_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.index.protocol import IndexStore

_CITATION = pattern(r"(?P<path>.+\.md)(?:#L|:)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?", re.IGNORECASE)
_NOTE_ID = pattern(r"[0-9A-HJKMNP-TV-Z]{26}")
NOTE_ID_COMMENT = pattern(r"<!-- m:[0-9A-Za-z_-]+ -->")
# Shorter texts match far more than anybody means.
LEAST_TEXT = 3


class Forgetting:
    """Chooses lines, then removes them everywhere.

    `only_in` says of a cited path whether lines of it may be chosen; None is for the owner, who may choose any.
    """

    def __init__(self, parts: Parts, only_in: Callable[[str], bool] | None = None) -> None:
        self._parts = parts
        self._only_in = only_in

    def select(self, what: str) -> Forgotten:
        """Find the lines that are meant, by citation, note id or text.

        A text or a note that no file has any more may still be in older versions: then no lines are chosen, and
        `apply` cleans those. NotFound when there is nothing to forget at all.
        """
        if cited := _CITATION.fullmatch(what.strip()):
            chosen = Forgotten((self._cited(cited),))
        elif _NOTE_ID.fullmatch(what.strip()):
            chosen = Forgotten(tuple(self._note(what.strip())), note_id=what.strip())
        else:
            chosen = Forgotten(tuple(self._containing(what)), text=what.strip("\r\n"))
        if not chosen.lines and not self._is_in_the_past(doomed_lines(chosen)):
            raise NotFound(
                f"no line of the memory contains `{what}`",
                hint="give a text as it stands in the file, a note id, or lines such as `MEMORY.md#L3-L5`",
            )
        return chosen

    def apply(self, chosen: Forgotten, sync: Callable[[], SyncReport]) -> Forgotten:
        """Remove the chosen lines. When this returns they are in no file of ours."""
        parts = self._parts
        by_path: dict[str, list[ForgottenLines]] = {}
        for lines in chosen.lines:
            by_path.setdefault(lines.path, []).append(lines)
        doomed = doomed_lines(chosen)
        with parts.erasures.run_alone():
            self.require_unchanged(chosen)  # all of them before the first changes: all go, or none
            paths = list(by_path) or self._past_paths(doomed)
            paths += [path for path in self._outdated(parts.store, doomed) if path not in paths]
            hashes = self._hashes_of_chunks(paths)
            parts.tombstones.bury(hashes)
            for path, ranges in by_path.items():
                parts.notebook.remove_lines(
                    path,
                    [(lines.start_line, lines.end_line) for lines in ranges],
                    base_hash=ranges[0].base_hash,
                )
            if self._only_in is None:
                erase_conflict_copies(parts.places.state, doomed.are_in)
            self._forget_vectors(hashes)
            parts.store.erase("memory", *paths)
            self._erase_for_other_agents(paths, doomed)
            erase_notes_left_behind(parts, paths)
            erase_in_engines(parts, of_every_agent=True)
            # Last: until here it has what is to go, and leads whoever was stopped half-way to the rest.
            cleaned = parts.history.erase(self._removing(doomed))
        sync()
        self._forget_uploads(hashes)
        return replace(chosen, applied=True, versions_cleaned=cleaned)

    def require_unchanged(self, chosen: Forgotten) -> None:
        """Raise ScopeDenied or ConflictError when `apply` would."""
        hashes = {lines.path: lines.base_hash for lines in reversed(chosen.lines)}
        for path in hashes:
            self._require_change_of(path)
        for path, base_hash in hashes.items():
            self._parts.notebook.read_unchanged(path, base_hash)

    def _forget_vectors(self, hashes: Sequence[str]) -> None:
        """Erase vectors from the cache, whoever made them: it is there even where it is not used any more."""
        if os.path.exists(self._parts.places.cache):
            from plainmind.memory.cache import opened_cache

            with opened_cache(self._parts) as cache:
                cache.forget(hashes)

    def _forget_uploads(self, hashes: Sequence[str]) -> None:
        """Have the provider delete what was uploaded to it for a job. Raises EmbeddingError while that is not sure."""
        providers = self._parts.providers
        if providers is not None and providers.batching is not None:
            providers.batching.jobs.forget(hashes)

    def _erase_for_other_agents(self, paths: Iterable[str], doomed: DoomedLines) -> None:
        """Take the files out of what other agents have indexed; their next sync reads what is left of them."""
        for store in of_other_agents(self._parts):
            store.erase("memory", *paths, *self._outdated(store, doomed))

    def _outdated(self, store: IndexStore, doomed: DoomedLines) -> list[str]:
        """Name the files that an index still has the lines of, though they have another name or text by now."""
        return [
            path for path in outdated_with(self._parts, store, doomed.are_in_text) if self._may_change(path)
        ]

    def _is_in_the_past(self, doomed: DoomedLines) -> bool:
        """Whether an older version or a conflict copy still has it."""
        if self._past_paths(doomed):
            return True
        copies = conflict_copies(self._parts.places.state) if self._only_in is None else ()
        return any(doomed.are_in(_content(copy)) for copy in copies)

    def _may_change(self, path: str) -> bool:
        return self._only_in is None or self._only_in(path)

    def _require_change_of(self, path: str) -> None:
        if not self._may_change(path):
            raise ScopeDenied(
                "lines of that file cannot be forgotten in this conversation",
                hint="only what was noted in it can be",
            )

    def _past_paths(self, doomed: DoomedLines) -> list[str]:
        """Name the files of which an older version still has it."""
        return [path for path in self._parts.history.paths_with(doomed.are_in) if self._may_change(path)]

    def _removing(self, doomed: DoomedLines) -> Callable[[bytes], bytes]:
        """What to leave of each older version: whole that of a file which may not be changed."""
        if self._only_in is None:
            return doomed.removed_from
        contents: dict[str, bool] = {}
        for version in self._parts.history.versions():
            for content in filter(None, (version.hash, version.previous)):
                contents[content] = contents.get(content, True) and self._may_change(version.path)
        return lambda data: doomed.removed_from(data) if contents.get(sha256_bytes(data)) else data

    def _hashes_of_chunks(self, paths: Iterable[str]) -> list[str]:
        """Hashes of everything that the index holds of these files: what the cache may know them by."""
        with self._parts.store.reading() as reader:
            return [
                sha256_text(chunk.embedded_text)
                for path in paths
                for chunk in reader.chunks_between("memory", path, 1, 1_000_000_000)
            ]

    def _cited(self, cited: re.Match[str]) -> ForgottenLines:
        path = cited["path"].removeprefix("./")
        self._require_change_of(path)
        first, last = int(cited["first"]), int(cited["last"] or cited["first"])
        _, data = self._parts.notebook.read_bytes(path)
        lines = split_lines(decode(data))
        if not 1 <= first <= last <= len(lines):
            raise NotFound(
                f"`{path}` has {len(lines)} lines; there is no range {first}-{last}",
                hint=f"read it with `plainmind get {path}`",
            )
        return _chosen(path, data, lines, first, last)

    def _note(self, note_id: str) -> Iterator[ForgottenLines]:
        for path, data, lines in self._files():
            found = find_note(lines, note_id)
            if found is not None:
                yield _chosen(path, data, lines, *found)

    def _containing(self, text: str) -> Iterator[ForgottenLines]:
        if len(text.strip()) < LEAST_TEXT:
            raise PlainmindError(
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
            if not self._may_change(found.path):
                continue
            data, _ = found.root.read(found.relative, max_bytes=parts.workspace.max_file_bytes)
            yield found.path, data, split_lines(decode(data))


def names_a_place(what: str) -> bool:
    """Whether it is a citation or the id of a note, which mean those lines alone; anything else is a text."""
    return bool(_CITATION.fullmatch(what.strip()) or _NOTE_ID.fullmatch(what.strip()))


def runs_of(lines: list[str], wanted: list[str]) -> Iterator[tuple[int, int]]:
    """Where a text stands: for one line, every line that contains it; for several, every run that equals them."""
    if len(wanted) == 1:
        yield from ((number, number) for number, line in enumerate(lines, 1) if wanted[0] in line)
        return
    for start in range(len(lines) - len(wanted) + 1):
        if lines[start : start + len(wanted)] == wanted:
            yield start + 1, start + len(wanted)


@value
class DoomedLines:
    """How a line of an old version is known for one that is to be forgotten, however it was worded then."""

    exact: frozenset[str]
    containing: tuple[str, ...]
    notes: tuple[str, ...]  # ids of notes that go whole
    run: tuple[str, ...]  # lines that go where they follow each other

    def removed_from(self, data: bytes) -> bytes:
        """What is left of a stored version."""
        pieces = byte_lines(data)
        # Compared as text, as they were chosen: the bytes may have a byte order mark, or not be valid UTF-8.
        doomed = self._numbers([decode(piece).removesuffix("\n") for piece in pieces])
        return b"".join(piece for number, piece in enumerate(pieces, 1) if number not in doomed)

    def are_in(self, data: bytes) -> bool:
        """Whether a stored version has any of them."""
        return self.removed_from(data) != data

    def are_in_text(self, text: str) -> bool:
        """Whether an indexed text has any of them; the ids of notes are not indexed."""
        lines, exact = split_lines(text), {without_note_ids(line) for line in self.exact}
        if self.run and any(runs_of(lines, list(self.run))):
            return True
        return any(line in exact or any(mark in line for mark in self.containing) for line in lines)

    def _numbers(self, lines: list[str]) -> set[int]:
        ranges = [found for note in self.notes if (found := find_note(lines, note))]
        if self.run:
            ranges += runs_of(lines, list(self.run))
        return {number for number, line in enumerate(lines, 1) if self._has(line)} | {
            number for first, last in ranges for number in range(first, last + 1)
        }

    def _has(self, line: str) -> bool:
        return line in self.exact or any(mark in line for mark in self.containing)


def doomed_lines(chosen: Forgotten) -> DoomedLines:
    """The lines themselves, every wording of the notes that they are, and whatever has the text they were chosen by."""
    parts = [split_lines(part.text) for part in chosen.lines]
    lines = [line for part in parts for line in part]
    marks = {mark for line in lines for mark in NOTE_ID_COMMENT.findall(line)}
    notes = {note for part in parts for note in _notes_of_several_lines(part)}
    if chosen.note_id is not None:
        notes.add(chosen.note_id)
    wanted = () if chosen.text is None else tuple(split_lines(chosen.text))
    if len(wanted) == 1:
        marks.add(wanted[0])
    return DoomedLines(
        # A blank line is nobody's secret; taking every blank line out of the history would only spoil it.
        exact=frozenset(line for line in lines if line.strip()),
        containing=tuple(sorted(marks)),
        notes=tuple(sorted(notes)),
        run=wanted if len(wanted) > 1 else (),
    )


def _notes_of_several_lines(lines: list[str]) -> Iterator[str]:
    """Name the notes of which more than the line with the id was chosen."""
    for line in lines:
        for note in NOTE_ID_COMMENT.findall(line):
            name = note.removeprefix(ID_MARK).removesuffix(" -->")
            found = find_note(lines, name)
            if found and found[1] > found[0]:
                yield name


def _content(path: str) -> bytes:
    with explain_errors("read", path, outcome="nothing was changed"), open(path, "rb") as file:
        return file.read()


def _chosen(path: str, data: bytes, lines: list[str], first: int, last: int) -> ForgottenLines:
    return ForgottenLines(path, first, last, "\n".join(lines[first - 1 : last]), sha256_bytes(data))
