"""Copies of conversations for QMD to read: Markdown, without secrets, a folder for each scope, and not for ever.

A copy has as many parts as the transcript has pieces: one of any length is copied, gone on with and cited from while no
more than a piece of it is in memory. Where each part begins in the transcript is kept beside the copy.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import PRIVATE, Document, FileFailure, FileState
from plainmind.base.value import value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import SYSTEM, Erasures, explain_errors, read_file
from plainmind.guests.qmd.collections import EVERY_NOTE, Collection, key_of_scope
from plainmind.memory.backend import BackendBusy, names_in
from plainmind.notes.discovery import FoundFile
from plainmind.notes.source import START, Mark, extent_of
from plainmind.sessions.transcripts import FOLDER, Transcripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from plainmind.notes.source import Piece


ENDING = ".parts"
_OUR_FOLDER = pattern(r"private|scope-[0-9a-f]{16}")
_UNFINISHED = pattern(r"\..+\.\d+\.[0-9a-f]{16}\.tmp", re.DOTALL)  # left by a process that was killed
_NAME = pattern(r"(?P<stem>.+?)(?:%part(?P<number>[1-9]\d{0,8}))?\.(?:md|parts)", re.DOTALL)
_DAY_S = 86_400


@value
class Ledger:
    """The parts of one copy. It holds no text."""

    begins: tuple[Mark, ...] = ()  # of each part that was written
    state: FileState | None = None  # how the transcript looked, as far as it was copied
    resumes_at: Mark = START  # behind the last part, or at its beginning when it may grow
    is_complete: bool = False

    def is_of(self, found: FoundFile) -> bool:
        """Whether all of a transcript, as it looks now, has been copied."""
        state = self.state
        return (
            self.is_complete
            and state is not None
            and (state.size, state.mtime_ns, state.inode) == (found.size, found.mtime_ns, found.inode)
        )


def ledger_after(piece: Piece, begins: Sequence[Mark]) -> Ledger:
    """What is known once the last of the parts was written, which a piece is in, if it has a text."""
    resumes_at = (begins[-1] if begins else START) if piece.is_last else piece.end
    return Ledger(tuple(begins), piece.state, resumes_at, piece.is_last)


def read_ledger(path: str, found: FoundFile) -> Ledger:
    """What was copied of a transcript; nothing, when that cannot be told."""
    try:
        written = json.loads(read_file(path))
        size, mtime_ns, inode = map(int, written["seen"])
        begins = tuple(map(_mark, written["begins"]))
        resumes_at = _mark(written["resumesAt"])
        is_complete = written["complete"] is True
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Ledger()
    state = FileState(found.path, "sessions", "", size, mtime_ns, inode)
    return Ledger(begins, state, resumes_at, is_complete)


def write_ledger(path: str, ledger: Ledger) -> None:
    """Keep it. Raises StorageFailure."""
    state = ledger.state
    written: dict[str, Any] = {
        "begins": [str(mark) for mark in ledger.begins],
        "complete": ledger.is_complete,
        "resumesAt": str(ledger.resumes_at),
        "seen": None if state is None else [state.size, state.mtime_ns, state.inode],
    }
    write_atomically(path, json.dumps(written).encode())


def _mark(written: str) -> Mark:
    found = extent_of(written)
    if found is None:
        raise ValueError(written)
    return found.whole


class Exports:
    """The copies of one agent's conversations in one folder."""

    def __init__(
        self,
        transcripts: Transcripts,
        folder: str,
        erasures: Erasures,
        *,
        agent_id: str,
        retention_days: int,
    ) -> None:
        self.folder = folder
        self._transcripts = transcripts
        self._erasures = erasures
        self._agent_id = agent_id
        self._retention_s = retention_days * _DAY_S

    def discover(self) -> tuple[FoundFile, ...]:
        """The conversations that there are."""
        return self._transcripts.discover().files

    def collections(self, conversations: Iterable[FoundFile]) -> tuple[Collection, ...]:
        """One for each scope that a copy may be made for, and one for the owner's own."""
        scopes = {PRIVATE: None} | dict.fromkeys(found.scope for found in conversations)
        return tuple(
            Collection(
                f"sessions-{'' if scope == PRIVATE else key_of_scope(scope) + '-'}{self._agent_id}",
                os.path.join(self.folder, key_of_scope(scope)),
                EVERY_NOTE,
                FOLDER,
                scope,
                "sessions",
            )
            for scope in scopes
        )

    def wanted(self, conversations: Iterable[FoundFile], now: float) -> dict[str, FoundFile]:
        """The conversations that are to be copied, by the path of the first part."""
        return {
            os.path.join(self.folder, key_of_scope(found.scope), export_name(found.path)): found
            for found in conversations
            if now - found.mtime_ns / 1e9 < self._retention_s
        }

    def superfluous(self, wanted: Mapping[str, FoundFile]) -> list[str]:
        """What there is of conversations that are too old or gone."""
        return [path for path in _present(self.folder) if conversation_of(path)[0] not in wanted]

    def bring_up_to_date(self, wanted: Mapping[str, FoundFile], deadline: float) -> tuple[FileFailure, ...]:
        """Copy what is new or has grown, and remove what is superfluous; what could not be copied, and why.

        Raises BackendBusy when there is more to copy than time; what was copied is kept, and gone on with next time.
        """
        for path in self.superfluous(wanted):
            _remove(path)
        present: dict[str, set[str]] = {}
        for path in _present(self.folder):
            present.setdefault(conversation_of(path)[0], set()).add(path)
        failures = []
        for first, found in wanted.items():
            try:
                self._copy(first, found, present.get(first, set()), deadline)
            except BackendBusy:
                raise
            except PlainmindError as error:
                failures.append(FileFailure(found.path, str(error)))
                for path in _present(self.folder):
                    if conversation_of(path)[0] == first:
                        _remove(path)
        return tuple(failures)

    def piece(self, path: str, wanted: Mapping[str, FoundFile]) -> Document | None:
        """The lines of the conversation that a part was made of, as they are now; None when there is no such part."""
        first, number = conversation_of(path)
        found = wanted.get(first)
        if found is None:
            return None
        ledger = read_ledger(_ledger_of(first), found)
        if number > len(ledger.begins):
            return None
        pieces = self._transcripts.read_on(found, ledger.state, ledger.begins[number - 1])
        return next(pieces).document

    def erase(self) -> None:
        """Remove every copy."""
        erase_copies(self.folder)

    def _copy(self, first: str, found: FoundFile, there: set[str], deadline: float) -> None:
        """Copy one conversation, from where it was left."""
        stamp = self._erasures.stamp()
        ledger = read_ledger(_ledger_of(first), found)
        parts = {part_path(first, number) for number in range(1, len(ledger.begins) + 1)}
        if not parts <= there:
            ledger = Ledger()
        elif ledger.is_of(found) and there == parts | {_ledger_of(first)}:
            return
        begins = [begin for begin in ledger.begins if begin.offset < ledger.resumes_at.offset]
        for piece in self._transcripts.read_on(found, ledger.state, ledger.resumes_at):
            if piece.begin == START:
                begins = []  # it is not the file that it was, or has only one part
            is_over = piece.is_last or time.monotonic() >= deadline
            with self._erasures.hold_off():
                self._require_that_nothing_was_erased_since(stamp)
                if piece.document.text:
                    begins.append(piece.begin)
                    _write(part_path(first, len(begins)), _name_of(first), piece.document.text)
                if is_over:
                    write_ledger(_ledger_of(first), ledger_after(piece, begins))
            if is_over and not piece.is_last:
                raise BackendBusy("it has not been given all conversations yet, and gets more next time")
        for path in there - {part_path(first, number + 1) for number in range(len(begins))}:
            if path != _ledger_of(first):
                _remove(path)

    def _require_that_nothing_was_erased_since(self, stamp: Any) -> None:
        """Nothing that was read before an erasure is written after it."""
        if self._erasures.stamp() != stamp:
            raise BackendBusy("something was forgotten meanwhile")


def erase_copies(exports: str) -> None:
    """Remove every copy from a folder of exports, also from one that is no longer in use."""
    for path in _present(exports):
        _remove(path)


def export_name(cited: str) -> str:
    """The name of a copy: `abc.md` of `sessions/abc.jsonl`, and another one of each other file."""
    name = cited.removeprefix(FOLDER)
    stem = name.removesuffix(".jsonl")
    is_plain = stem != name and "/" not in stem and "%" not in stem and not stem.endswith(".md")
    return f"{stem}.md" if is_plain else f"{name.replace('%', '%25').replace('/', '%2F')}.md"


def part_path(first: str, number: int) -> str:
    """Where a part is: `abc.md`, `abc%part2.md`; in other names each percent sign has a number behind it."""
    return first if number == 1 else f"{first.removesuffix('.md')}%part{number}.md"


def conversation_of(path: str) -> tuple[str, int]:
    """The path of the first part, and the number of this one."""
    folder, name = os.path.split(path)
    found = _NAME.fullmatch(name)
    return (os.path.join(folder, f"{found['stem']}.md"), int(found["number"] or 1)) if found else (path, 1)


def _ledger_of(first: str) -> str:
    return first.removesuffix(".md") + ENDING


def _name_of(first: str) -> str:
    return os.path.basename(first).removesuffix(".md")


def _write(path: str, name: str, text: str) -> None:
    write_atomically(path, f"# Session {name}\n\n{text}\n".encode("utf-8", "replace"))


def _present(exports: str) -> Iterator[str]:
    """The copies that there are; of other files nothing is known, and nothing removed."""
    for name in filter(_OUR_FOLDER.fullmatch, names_in(exports)):
        folder = os.path.join(exports, name)
        for file in names_in(folder):
            if _NAME.fullmatch(file) or _UNFINISHED.fullmatch(file):
                yield os.path.join(folder, file)


def _remove(path: str) -> None:
    with explain_errors("remove", path), suppress(FileNotFoundError):
        SYSTEM.unlink(path)
