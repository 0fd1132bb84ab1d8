"""Forgetting for good: out of files, index, cache, entries and history; and where the text stands besides."""

from __future__ import annotations

import json
import mmap
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from plainmind.agent.recalls import ENTRIES, Recall, shares_a_word
from plainmind.base.errors import (
    ConflictError,
    IndexCorrupt,
    NotFound,
    PathNotAllowed,
    PlainmindError,
    ScopeDenied,
    check_kind,
    shell_word,
)
from plainmind.base.lazy import find_by_name, pattern
from plainmind.base.model import SyncReport, sha256_bytes, sha256_text, split_lines
from plainmind.base.value import replace, value
from plainmind.files.jsonl import open_plain_file
from plainmind.files.replace import conflict_copies, erase_conflict_copies
from plainmind.files.system import explain_errors, read_file, settle_names
from plainmind.index.chunks import embedded_text
from plainmind.index.plan import plan_sync
from plainmind.memory.backend import erase_in_engines
from plainmind.memory.indexes import (
    erase_notes_left_behind,
    erase_sessions_left_behind,
    of_other_agents,
    of_other_workspaces,
)
from plainmind.notes.notebook import Forgotten, ForgottenEntry, ForgottenLines
from plainmind.notes.workspace import as_written, byte_lines, decode, encoding_of
from plainmind.text.note_format import ID_MARK, find_note, mark_of, without_note_ids, words_of
from plainmind.text.terms import fold
from plainmind.text.validity import mentions_validity, without_validity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from plainmind.base.model import Source
    from plainmind.index.protocol import IndexStore
    from plainmind.memory.index import Index
    from plainmind.memory.memory import Memory
    from plainmind.notes.source import TextSource

    class KeptEntry(Protocol):
        """One entry of the entry memory."""

        @property
        def id(self) -> str:
            """Its name."""

        @property
        def text(self) -> str:
            """What it says."""

        @property
        def scope(self) -> str:
            """Who may see it."""

    class EntryKeeper(Protocol):
        """What the guest that keeps entries offers to forgetting. Where there are none, it finds none."""

        def everything(self) -> tuple[Sequence[KeptEntry], tuple[str, ...]]:
            """All entries, also those that wait for a review; and what could not be read of them."""

        def meant_by(self, what: str, among: Sequence[KeptEntry]) -> Sequence[KeptEntry]:
            """Those that have the words of a text."""

        def saying(self, lines: Sequence[str], among: Sequence[KeptEntry]) -> Sequence[KeptEntry]:
            """Those that say the same as a line."""

        def refusal(self) -> PlainmindError | None:
            """Why no entry can be removed now."""

        def erase(self, doomed: Sequence[ForgottenEntry]) -> None:
            """Remove them as they were shown: one that is gone needs nothing, one that changed is a ConflictError."""

        def catch_up(self, text: str) -> str | None:
            """Take out of their index what is gone from their file; what to say when that did not work."""

        def ids_with(self, texts: Sequence[str]) -> tuple[str, ...]:
            """The entries that have one of some texts."""


_ENTRY_KEEPER = "plainmind.guests.entries.access:EntryKeeper"
_ERASE_PROPOSALS = "plainmind.guests.upkeep.desk:erase_forgotten"
_COLLECTIONS_WITH = "plainmind.guests.qmd.desk:indexes_with"
_ERASE_IN_COLLECTIONS = "plainmind.guests.qmd.desk:erase_forgotten"
_CITATION = pattern(r"(?P<path>.+\.md)(?:#L|:)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?", re.IGNORECASE)
_NOTE_ID = pattern(r"[0-9A-HJKMNP-TV-Z]{26}")
NOTE_ID_COMMENT = pattern(r"<!-- m:[0-9A-Za-z_-]+ -->")
# Shorter texts match far more than is meant.
LEAST_TEXT = 3
_MOST_PLACES = 10
_HEADING = pattern(r"(#{1,6})(?:[ \t]|$)")
_PATIENCE_S = 10.0  # with those who save a file again and again


class Forgetting:
    """Chooses lines, then removes them everywhere.

    `only_in` says of a cited path whether lines of it may be chosen; None is for the owner, who may choose any.
    """

    def __init__(self, memory: Memory, only_in: Callable[[str], bool] | None = None) -> None:
        self._memory = memory
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
            text = what.strip("\r\n")
            lines = tuple(self._containing(what))
            self._refuse_a_path(text.strip(), is_found=bool(lines))
            chosen = Forgotten(lines, text=text, remarks=tuple(self._what_stays(text, lines)))
        if not chosen.lines and not self._is_anywhere(doomed_lines(chosen), chosen.text or ""):
            raise NotFound(
                "; ".join((f"no line of the memory contains `{what}`", *chosen.remarks)),
                hint="give a text as it stands in the file, a note id, or lines such as `MEMORY.md#L3-L5`",
            )
        return chosen

    def apply(self, chosen: Forgotten, sync: Callable[[], SyncReport]) -> Forgotten:
        """Remove the chosen lines. When this returns they are in no file of ours."""
        memory = self._memory
        by_path: dict[str, list[ForgottenLines]] = {}
        for lines in chosen.lines:
            by_path.setdefault(lines.path, []).append(lines)
        doomed = doomed_lines(chosen)
        with memory.notes.erasures.run_alone():
            self.require_unchanged(chosen)  # all of them before the first changes: all go, or none
            paths = list(by_path) or self._past_paths(doomed)
            paths += [path for path in self._outdated(memory.index.store, doomed) if path not in paths]
            hashes = hashes_of_chunks(memory.index, "memory", paths)
            memory.notes.tombstones.bury(hashes)
            for path, ranges in by_path.items():
                self._remove_lines(path, ranges)
            if self._only_in is None:
                erase_conflict_copies(memory.places.state, doomed.are_in)
            memory.index.forget_vectors(hashes)
            stamp = memory.index.remains.stamp()
            memory.index.store.erase("memory", *paths)
            memory.index.remains.clear(stamp)
            self._erase_for_other_agents(paths, doomed)
            erase_notes_left_behind(memory.index, paths)
            erase_in_engines(memory, of_every_agent=True)
            self._erase_recalls(chosen)
            self._erase_proposals(chosen, doomed)
            remarks = find_by_name(_ERASE_IN_COLLECTIONS)(memory, doomed.are_in_text)
            memory.notes.notebook.line_days.forget(self._content_now)
            # Last: until here it has what is to go, and leads to the rest when this was stopped half-way.
            cleaned = memory.notes.history.erase(self._removing(doomed))
        sync()
        if memory.index.providers is not None:
            memory.index.providers.forget_uploads(hashes)
        return replace(
            chosen, applied=True, versions_cleaned=cleaned, remarks=_once((*chosen.remarks, *remarks))
        )

    def _content_now(self, path: str) -> bytes | None:
        try:
            return self._memory.notes.notebook.read_bytes(path)[1]
        except (NotFound, PathNotAllowed):
            return None

    def _erase_recalls(self, chosen: Forgotten) -> None:
        """Take out of the recall log who asked for the lines, or was given them; rather too much than too little."""
        lines = [(part, line) for part in chosen.lines for line in split_lines(part.text) if line.strip()]
        marks = {(part.path, mark_of(line)) for part, line in lines}
        texts = [words_of(line) for _, line in lines] + ([chosen.text] if chosen.text else [])
        # A question is kept in one line.
        said = [
            " ".join(text.split()).casefold()
            for text in texts
            if len(text) >= _LEAST_LINE or text == chosen.text
        ]
        places: dict[str, list[ForgottenLines]] = {}
        for part in chosen.lines:
            places.setdefault(part.path, []).append(part)

        def cites(recall: Recall) -> bool:
            return any(
                (one.path, one.mark) in marks
                or any(one.start_line <= part.end_line and part.start_line <= one.end_line for part in there)
                or shares_a_word(recall.question, texts)
                for one in recall.lines
                if (there := places.get(one.path))
            )

        def is_doomed(recall: Recall) -> bool:
            question = recall.question.casefold()
            is_own = self._only_in is None or any(self._only_in(one.path) for one in recall.lines)
            return cites(recall) or (is_own and any(text in question for text in said))

        self._memory.recalls.erase(is_doomed, lambda path, mark: (path, mark) in marks, [*places, *said])

    def _erase_proposals(self, chosen: Forgotten, doomed: DoomedLines) -> None:
        """Take out what `tidy` proposes about the lines, in whatever form it would write them."""
        words = [words_of(line) for part in chosen.lines for line in split_lines(part.text)]
        said = [without_validity(each) for each in words if len(each) >= LEAST_TEXT]
        find_by_name(_ERASE_PROPOSALS)(
            self._memory, lambda text: doomed.are_in_text(text) or any(each in text for each in said)
        )

    def require_unchanged(self, chosen: Forgotten) -> None:
        """Raise ScopeDenied or ConflictError when `apply` would."""
        for path in dict.fromkeys(lines.path for lines in chosen.lines):
            self._require_change_of(path)
        for path in dict.fromkeys(lines.path for lines in chosen.lines):
            self._base_of([lines for lines in chosen.lines if lines.path == path])

    def _remove_lines(self, path: str, ranges: Sequence[ForgottenLines]) -> None:
        """Take lines out of a file that others may be adding to: whatever they add stays, and the lines go."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                self._memory.notes.notebook.remove_lines(
                    path,
                    [(lines.start_line, lines.end_line) for lines in ranges],
                    base_hash=self._base_of(ranges),
                )
            except ConflictError:
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def _base_of(self, ranges: Sequence[ForgottenLines]) -> str:
        """The hash of a file as it is now; ConflictError unless the lines stand in it where they were chosen."""
        path = ranges[0].path
        _, data = self._memory.notes.notebook.read_bytes(path)
        lines = split_lines(decode(data))
        for chosen in ranges:
            if "\n".join(lines[chosen.start_line - 1 : chosen.end_line]) != chosen.text:
                raise ConflictError(
                    f"`{path}` has changed since the lines were chosen; they were not removed",
                    hint="choose them again",
                )
        return sha256_bytes(data)

    def _erase_for_other_agents(self, paths: Iterable[str], doomed: DoomedLines) -> None:
        """Take the files out of what other agents have indexed; their next sync reads what is left of them."""
        for store in of_other_agents(self._memory.index):
            store.erase("memory", *paths, *self._outdated(store, doomed))

    def _outdated(self, store: IndexStore, doomed: DoomedLines) -> list[str]:
        """Name the files that an index still has the lines of, though they have another name or text by now."""
        outdated = _look_again_if_damaged(
            lambda: outdated_paths(self._memory.notes.workspace, store, doomed.are_in_text)
        )
        return [path for path in outdated if self._may_change(path)]

    def _is_anywhere(self, doomed: DoomedLines, text: str) -> bool:
        """Whether an older version, a conflict copy or the index still has what no file has."""
        if self._past_paths(doomed) or self._outdated(self._memory.index.store, doomed):
            return True
        if self._only_in is not None:
            return False
        if find_by_name(_COLLECTIONS_WITH)(self._memory, doomed.are_in_text):
            return True
        copies = conflict_copies(self._memory.places.state)
        return any(doomed.are_in(_content(copy)) for copy in copies) or self._is_in_bytes_of_index(text)

    def _is_in_bytes_of_index(self, text: str) -> bool:
        """Whether each word of a text that was taken out of the index may still stand in its files."""
        index = self._memory.index
        if not text or not index.has_remains:
            return False
        if index.values.driver != "sqlite":
            return True  # what it packs and where is its own affair: it is written anew
        from plainmind.text.terms import document_terms

        folder = index.values.folder
        names = [os.path.join(folder, name) for name in os.listdir(folder) if ".sqlite" in name]
        return all(
            any(_has_any(name, (term.encode("utf-8", "surrogatepass"),)) for name in names)
            for term in document_terms(text)
        )

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
        return [
            path for path in self._memory.notes.history.paths_with(doomed.are_in) if self._may_change(path)
        ]

    def _removing(self, doomed: DoomedLines) -> Callable[[bytes], bytes]:
        """What to leave of each older version: whole that of a file which may not be changed."""
        if self._only_in is None:
            return doomed.removed_from
        contents: dict[str, bool] = {}
        for version in self._memory.notes.history.versions():
            for content in filter(None, (version.hash, version.previous)):
                contents[content] = contents.get(content, True) and self._may_change(version.path)
        return lambda data: doomed.removed_from(data) if contents.get(sha256_bytes(data)) else data

    def _cited(self, cited: re.Match[str]) -> ForgottenLines:
        path = cited["path"].removeprefix("./")
        self._require_change_of(path)
        first, last = int(cited["first"]), int(cited["last"] or cited["first"])
        _, data = self._memory.notes.notebook.read_bytes(path)
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

    def _refuse_a_path(self, text: str, *, is_found: bool) -> None:
        """Whose file is named probably means what it says; older versions and the index may have its name somewhere."""
        if is_found or not text.casefold().endswith(".md"):
            return
        named = [(path, len(lines)) for path, _, lines in self._files() if path == text.removeprefix("./")]
        for path, count in named:
            raise NotFound(
                f"no line of the memory contains `{path}`, but it is a file of the memory",
                hint=f"`plainmind forget {shell_word(f'{path}#L1-L{count}')}` forgets all that it says",
            )

    def _what_stays(self, text: str, chosen: Sequence[ForgottenLines]) -> Iterator[str]:
        """Name what else has to do with a text: lines in other letters, what is below a heading, names of files."""
        folded = fold(text.strip())
        if "\n" in folded or len(folded) < LEAST_TEXT:
            return
        like = re.compile(("(?<!\\w)" if folded[0].isalnum() else "") + re.escape(folded))
        going: dict[str, set[int]] = {}
        for part in chosen:
            going.setdefault(part.path, set()).add(part.start_line)
        others: list[str] = []
        below: list[str] = []
        names: list[str] = []
        for path, _, lines in self._files():
            numbers = going.get(path, set())
            names += [path] if like.search(fold(path)) else []
            others += [
                f"{path}#L{number}"
                for number, line in enumerate(lines, 1)
                if number not in numbers and like.search(fold(without_note_ids(line)))
            ]
            ends = [(number, _end_below(lines, number)) for number in sorted(numbers)]
            below += [f"{path}#L{number}-L{last}" for number, last in ends if last > number]
        if others:
            said = "1 line has" if len(others) == 1 else f"{len(others):,} lines have"
            yield f"{said} this in other letters, and would stay: {_some(others)}"
        if below:
            yield f"what stands below a heading stays; to forget it too, cite all the lines: {_some(below)}"
        if names:
            yield f"the name of a file has this, and stays: {_some(names)}"

    def _files(self) -> Iterator[tuple[str, bytes, list[str]]]:
        memory = self._memory
        for found in memory.notes.workspace.discover().files:
            if not self._may_change(found.path):
                continue
            data, _ = found.root.read(found.relative, max_bytes=memory.notes.workspace.max_file_bytes)
            yield found.path, data, split_lines(decode(data))


def _end_below(lines: Sequence[str], number: int) -> int:
    """The last line that says something below a heading, before the next of its level; its own where there is none."""
    opening = _HEADING.match(lines[number - 1])
    if opening is None:
        return number
    last = number
    for following, line in enumerate(lines[number:], number + 1):
        heading = _HEADING.match(line)
        if heading is not None and len(heading[1]) <= len(opening[1]):
            break
        if line.strip():
            last = following
    return last


def _some(places: Sequence[str]) -> str:
    more = f" and {len(places) - _MOST_PLACES:,} more" if len(places) > _MOST_PLACES else ""
    return ", ".join(places[:_MOST_PLACES]) + more


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
        pieces, encoding = byte_lines(data), encoding_of(data)
        # Compared as text, as they were chosen: the bytes may have a byte order mark, or not be valid UTF-8.
        doomed = self._numbers([decode(piece, encoding).removesuffix("\n") for piece in pieces])
        if not doomed:
            return data
        kept = b"".join(piece for number, piece in enumerate(pieces, 1) if number not in doomed)
        return as_written(kept, encoding)

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
        if line in self.exact or any(mark in line for mark in self.containing):
            return True
        return (
            mentions_validity(line) and without_validity(line) in self.exact
        )  # marked as over, or superseded


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
        # A blank line is no secret; taking every blank line out of the history would only spoil it.
        exact=frozenset(
            form for line in lines if line.strip() for form in (line, without_validity(line)) if form.strip()
        ),
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
    with explain_errors("read", path, outcome="nothing was changed"):
        return read_file(path)


def _chosen(path: str, data: bytes, lines: list[str], first: int, last: int) -> ForgottenLines:
    return ForgottenLines(path, first, last, "\n".join(lines[first - 1 : last]), sha256_bytes(data))


_ALL_LINES = 1_000_000_000


def outdated_paths(files: TextSource, store: IndexStore, has_it: Callable[[str], bool]) -> list[str]:
    """Name those of which the index holds a text; a sync takes them out, but leaves words of them for a while."""
    found, source = files.discover(), files.source
    with store.reading() as reader:
        plan = plan_sync(found, reader.files(), source)
        return [
            path
            for path in (*(file.path for file in plan.to_read), *plan.missing, *plan.hidden)
            if any(has_it(chunk.text) for chunk in reader.chunks_between(source, path, 1, _ALL_LINES))
        ]


def forget_everywhere(memory: Memory, what: str | Forgotten, *, dry_run: bool) -> Forgotten:
    """Choose what is meant among notes and entries, and unless it is a `dry_run` remove it.

    The entries go first: whatever stops this half-way, the lines that they were chosen with are still there, and the
    same call again does the rest.
    """
    check_kind(what, "what to forget", (str, Forgotten), "text (str), or what a dry run gave (Forgotten)")
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        chosen = _select(memory, what) if isinstance(what, str) else what
        try:
            if dry_run:
                return chosen
            gone = _apply(memory, chosen)
        except ConflictError:
            # Saved by somebody between our look and our write: what is meant is looked for again.
            if not isinstance(what, str) or time.monotonic() > deadline:
                raise
            continue
        for folder in filter(os.path.isdir, (memory.workspace, memory.home)):
            with explain_errors(
                "settle", folder, outcome="all is removed, but may be back after a power cut"
            ):
                settle_names(folder)
        return gone


def _select(memory: Memory, what: str) -> Forgotten:
    """A text means all that has it; lines and notes also mean the entries that say the same; an entry means itself."""
    keeper = _keeper(memory)
    everything, remarks = keeper.everything()
    if same := [entry for entry in everything if entry.id == what.strip()]:
        return _with_entries(keeper, Forgotten((), is_of_notes=False), same)
    by_text = not names_a_place(what)
    try:
        chosen = Forgetting(memory).select(what)
    except NotFound as error:
        meant = keeper.meant_by(what, everything) if by_text else []
        if not meant:
            raise _with_remarks(error, remarks if by_text else ()) from None
        return _with_entries(keeper, Forgotten((), text=what, is_of_notes=False, remarks=remarks), meant)
    if by_text:
        meant = keeper.meant_by(what, everything)
    else:
        lines = [line for part in chosen.lines for line in split_lines(part.text)]
        meant = keeper.saying(lines, everything)
    return _with_entries(keeper, replace(chosen, remarks=(*chosen.remarks, *remarks)), meant)


def _apply(memory: Memory, chosen: Forgotten) -> Forgotten:
    notes = Forgetting(memory)
    notes.require_unchanged(chosen)
    chosen = _without_entries(_keeper(memory), chosen)
    if not chosen.is_of_notes:
        return replace(chosen, applied=True)
    try:
        return notes.apply(chosen, memory.index.sync_in_background)
    except PlainmindError as error:
        if not chosen.entries:
            raise
        gone = ", ".join(entry.id for entry in chosen.entries)
        raise PlainmindError(
            f"removed from the entries: {gone}; but then: {error}", hint=error.hint
        ) from error


def _without_entries(keeper: EntryKeeper, chosen: Forgotten) -> Forgotten:
    """Remove the entries; without any, take out of their index what is gone from their file."""
    if chosen.entries:
        ids = [entry.id for entry in chosen.entries]
        try:
            keeper.erase(chosen.entries)
        except ConflictError:
            raise
        except PlainmindError as error:
            raise PlainmindError(
                f"nothing was removed from the notes, because the entries {', '.join(ids)} could not be: {error}",
                hint=error.hint,
            ) from error
        return chosen
    remark = None if chosen.text is None else keeper.catch_up(chosen.text)
    return chosen if remark is None else replace(chosen, remarks=_once((*chosen.remarks, remark)))


def _with_entries(keeper: EntryKeeper, chosen: Forgotten, entries: Sequence[KeptEntry]) -> Forgotten:
    """Say of them also, before the user agrees, that they cannot be removed."""
    if not entries:
        return chosen
    error = keeper.refusal()
    remarks = chosen.remarks
    if error is not None:
        remarks += (f"the entries cannot be removed now: {error} ({error.hint})",)
    shown = tuple(ForgottenEntry(entry.id, entry.text, entry.scope) for entry in entries)
    return replace(chosen, entries=shown, remarks=remarks)


def _keeper(memory: Memory) -> EntryKeeper:
    keeper: EntryKeeper = find_by_name(_ENTRY_KEEPER)(memory)
    return keeper


def _with_remarks(error: NotFound, remarks: Sequence[str]) -> NotFound:
    return NotFound("; ".join((str(error), *remarks)), hint=error.hint) if remarks else error


def _once(remarks: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(remarks))


def delete_session(memory: Memory, name: str) -> tuple[str, ...]:
    """Remove a session, by key or id, or an archive, by its name; the paths that were cited and are no more."""
    store, index = memory.sessions, memory.index
    session = store.open(name)
    names = {session.id, *filter(None, [session.key])}
    cited = f"sessions/{os.path.relpath(session.path, store.folder)}"
    with memory.notes.erasures.run_alone():
        hashes = hashes_of_chunks(index, "sessions", [cited])
        memory.notes.tombstones.bury(hashes)
        store.delete(name)
        index.forget_vectors(hashes)
        index.store.erase("sessions", cited)
        for other in of_other_workspaces(index):
            other.erase("sessions", cited)
        erase_sessions_left_behind(index, [cited])
        erase_in_engines(memory, of_every_agent=False)
    _erase_recalls_everywhere(
        memory,
        lambda recall: (
            any(one.path == cited for one in recall.lines)
            or not names.isdisjoint({recall.session, f"{recall.host}:{recall.session}"})
        ),
        lambda path, _mark: path == cited,
        [cited, *names, *(name.rpartition(":")[2] for name in names)],
    )
    return (cited,)


def forget_recalled_entries(memory: Memory, entries: Mapping[str, str]) -> None:
    """Take entries, by id and with their texts, out of what was written down when they were recalled."""
    paths = {f"{ENTRIES}/{id_}" for id_ in entries}
    texts = [text.casefold() for text in entries.values()]
    _erase_recalls_everywhere(
        memory,
        lambda recall: (
            any(one.path in paths for one in recall.lines)
            or any(text in recall.question.casefold() for text in texts)
        ),
        lambda path, _mark: path in paths,
        [*paths, *texts],
    )


def _erase_recalls_everywhere(
    memory: Memory,
    is_doomed: Callable[[Recall], bool],
    is_line_doomed: Callable[[str, str], bool],
    hints: Sequence[str],
) -> None:
    """Conversations and entries belong to an agent: they may have been recalled in each of its workspaces."""
    for log in memory.recalls.of_all_workspaces():
        with log.erasing():
            log.erase(is_doomed, is_line_doomed, hints)


def hashes_of_chunks(index: Index, source: Source, paths: Iterable[str]) -> list[str]:
    """Hashes of everything that the index holds of these files: what the cache may know them by."""

    def look() -> list[str]:
        with index.store.reading() as reader:
            return [
                sha256_text(embedded_text(chunk))
                for path in paths
                for chunk in reader.chunks_between(source, path, 1, _ALL_LINES)
            ]

    return _look_again_if_damaged(look)


def _look_again_if_damaged(look: Callable[[], list[str]]) -> list[str]:
    """Look into the index; a damaged one is set aside by that, and the second look is into an empty one."""
    try:
        return look()
    except IndexCorrupt:
        return look()


_BEFORE_THE_WORDS = pattern(r"\s*(?:[-*+] |#+ |> )?\s*(?:\d\d:\d\d )?")
_LEAST_LINE = 8  # a shorter line, such as a heading, stands in many texts that are no copies of it


@value
class StillThere:
    """What has a text and is left as it is; it belongs to the agent that forgets."""

    entries: tuple[str, ...]  # their ids
    sessions: tuple[str, ...]  # names that `sessions delete` takes
    typed: str | None = None  # the file with what was typed


def still_there(memory: Memory, forgotten: Forgotten | Sequence[str]) -> StillThere:
    """Look for the text that lines were chosen by, for what the lines say, or for any of some texts as written."""
    if isinstance(forgotten, Forgotten):
        texts = [forgotten.text] if forgotten.text else _words_of(forgotten)
    else:
        texts = list(forgotten)
    wanted = [text.strip() for text in texts if text.strip()]
    spellings = sorted({spelling for text in wanted for spelling in _spellings(text)})
    typed = os.path.join(memory.home, "chat-history")
    return StillThere(
        _keeper(memory).ids_with(wanted),
        tuple(name for name, path in _transcripts(memory) if _has_any(path, spellings)),
        typed if _has_any(typed, spellings) else None,
    )


def _words_of(chosen: Forgotten) -> list[str]:
    """What each of the lines says, without the marks, the time and the id of a note."""
    lines = [line for part in chosen.lines for line in split_lines(part.text)]
    words = (_BEFORE_THE_WORDS.sub("", without_note_ids(line), count=1).strip() for line in lines)
    return [each for each in words if len(each) >= _LEAST_LINE]


def _spellings(text: str) -> Iterator[bytes]:
    """How a text may stand in a file: plain, or in JSON with its characters or with their numbers."""
    yield text.encode("utf-8", "surrogatepass")
    for ascii_only in (False, True):
        yield json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "surrogatepass")


def _transcripts(memory: Memory) -> Iterator[tuple[str, str]]:
    if not os.path.isdir(memory.conversations.folder):
        return
    store = memory.sessions
    for row in store.list():
        yield row.key, row.path
    for name in store.archives():
        yield name, store.open(name).path


def _has_any(path: str, spellings: Sequence[bytes]) -> bool:
    with explain_errors("read", path):
        try:
            with open_plain_file(path) as fd:
                if os.fstat(fd).st_size == 0:
                    return False
                with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as content:
                    return any(content.find(spelling) >= 0 for spelling in spellings)
        except NotFound:
            return False
