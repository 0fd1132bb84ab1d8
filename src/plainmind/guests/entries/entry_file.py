"""The file of entries, one JSON object a line, for people to read and edit; and which of them some words mean."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType

from plainmind.base.lazy import pattern
from plainmind.files.append import Tail, append
from plainmind.files.atomic import remove_abandoned, write_atomically
from plainmind.files.system import SYSTEM, explain_errors, hold_lock, make_folders, read_file
from plainmind.guests.entries.model import Entry, entry_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


Signature: TypeAlias = tuple[int, int, int]
Entries: TypeAlias = Mapping[str, Entry]

_NO_FILE: Signature = (0, 0, 0)
_TIMEOUT_S = 120.0  # an entry is worth waiting for: others may be making a whole index
_BOM = b"\xef\xbb\xbf"  # some editors begin a file with it
_TEXT = b'"text":"'
_LEAST_PIECE = 4


class EntryFile:
    """The entries of one agent. Safe to share between threads; processes take turns by a lock."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self.path = os.path.join(self.folder, "entries.jsonl")
        self._guard = threading.Lock()
        self._known: tuple[Signature, Entries] = (_NO_FILE, MappingProxyType({}))

    def changing(self, operation: str) -> AbstractContextManager[object]:
        """Wait to be the only one who changes the file."""
        with explain_errors("make", self.folder):
            make_folders(SYSTEM, self.folder)
        return hold_lock(os.path.join(self.folder, "entries.lock"), operation=operation, timeout_s=_TIMEOUT_S)

    def read(self) -> tuple[Signature, Entries]:
        """All entries by id, the oldest first; and what changes whenever the file does."""
        signature = self._signature()
        with self._guard:
            if self._known[0] == signature:
                return self._known
        found = {entry.id: entry for line in self._lines() if (entry := _read(line)) is not None}
        known = (signature, MappingProxyType(found))
        with self._guard:
            self._known = known
        return known

    def add(self, entry: Entry) -> None:
        """Add an entry. On disk when this returns. Needs the lock."""
        before, entries = self.read()
        record = _written(entry)
        append(
            self.path,
            record,
            state_dir=self.folder,
            record_id=f'"id":"{entry.id}"',
            tail=Tail.JSONL,
            look_back_bytes=0,
        )
        after = self._signature()
        # Only if nobody else has written meanwhile do we know what is there.
        if before == _NO_FILE or after[1] == before[1] + len(record):
            with self._guard:
                self._known = (after, MappingProxyType({**entries, entry.id: entry}))

    def remove(self, gone: Iterable[Entry]) -> None:
        """Write the file anew without some entries: no byte of them is left, here or beside it. Needs the lock."""
        doomed = {entry.id: entry for entry in gone}
        self._rewrite(
            lambda entry: None if entry.id in doomed else entry,
            lambda line: not _is_piece_of(line, doomed.values()),
        )
        for name in self._torn():
            with explain_errors("read", name):
                data = read_file(name)
            if _is_piece_of(data, doomed.values()):
                with explain_errors("remove", name):
                    SYSTEM.unlink(name)

    def replace(self, changed: Mapping[str, Entry]) -> None:
        """Write the file anew with some entries changed. Needs the lock."""
        self._rewrite(lambda entry: changed.get(entry.id, entry), lambda _: True)

    def unreadable(self) -> int:
        """How many lines are no entries."""
        return sum(_read(line) is None for line in self._lines())

    def _rewrite(self, made: Callable[[Entry], Entry | None], is_kept: Callable[[bytes], bool]) -> None:
        """Write what is made of each entry; lines that are none are a person's, or damaged: not ours to change."""
        kept = []
        for line in self._lines():
            entry = _read(line)
            new = None if entry is None else made(entry)
            if new is not None and new != entry:
                kept.append(_written(new))
            elif new is not None or (entry is None and is_kept(line)):
                kept.append(line + b"\n")
        with explain_errors("look into", self.folder):
            remove_abandoned(self.path, SYSTEM)  # a killed writer's copy has everything that is to go
        write_atomically(self.path, b"".join(kept))

    def _torn(self) -> list[str]:
        """Beginnings of lines that a killed writer left, and that the next one has put aside."""
        with explain_errors("look into", self.folder):
            names = SYSTEM.listdir(self.folder)
        return [os.path.join(self.folder, name) for name in names if name.startswith("entries.jsonl.torn-")]

    def _lines(self) -> list[bytes]:
        with explain_errors("read", self.path):
            try:
                data = read_file(self.path)
            except FileNotFoundError:
                return []
        return [line for line in data.removeprefix(_BOM).split(b"\n") if line.strip()]

    def _signature(self) -> Signature:
        with explain_errors("look at", self.path):
            try:
                found = SYSTEM.stat(self.path)
            except FileNotFoundError:
                return _NO_FILE
        return found.st_ino, found.st_size, found.st_mtime_ns


def _is_piece_of(line: bytes, doomed: Iterable[Entry]) -> bool:
    """Whether a damaged line has the text of an entry that is to go, or breaks off in the middle of it."""
    if not line.lstrip().startswith(b"{"):
        return False
    begun = line.partition(_TEXT)[2]
    for entry in doomed:
        written = json.dumps(entry.text)[1:-1].encode()
        is_beginning = len(begun) >= _LEAST_PIECE and written.startswith(begun)
        if is_beginning or written in line or entry.text.encode("utf-8", "surrogatepass") in line:
            return True
    return False


def _read(line: bytes) -> Entry | None:
    try:
        facts = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry_of(facts) if isinstance(facts, dict) else None


def _written(entry: Entry) -> bytes:
    return json.dumps(entry.as_json(), ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


# --- which entries are meant ---


# What stands around the words of a note: the mark of a list item, the time it was written, and its id.
_AROUND = pattern(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\d\d:\d\d\s+)?|\s*<!-- m:[0-9A-Za-z_-]+ -->\s*$")

_BARE_WORD = pattern(r"\w+")
_WITHOUT_SPACES = "\u0e00"  # the first of the scripts that put none between words


def entries_meant(entries: Iterable[Entry], what: str) -> list[Entry]:
    """The entry with this id; else those with this text, or with all of its words in any order, in whatever case."""
    what, everything = what.strip(), list(entries)
    if same := [entry for entry in everything if entry.id == what]:
        return same
    wanted = folded(what)
    return [entry for entry in everything if wanted and _has(folded(entry.text), wanted)]


def _has(text: str, wanted: str) -> bool:
    """A part of a word is no word: who has the code of a door forgotten does not mean a postcode."""
    if wanted in text:
        return True
    own, words = set(_BARE_WORD.findall(text)), _BARE_WORD.findall(wanted)
    return bool(words) and all(
        word in own or (max(word) >= _WITHOUT_SPACES and word in text) for word in words
    )


def entries_that_say(entries: Iterable[Entry], lines: Iterable[str]) -> list[Entry]:
    """The entries that say what one of these lines of notes says, no more and no less."""
    said = {folded(_AROUND.sub("", line)) for line in lines} - {""}
    return [entry for entry in entries if folded(entry.text) in said]


def folded(text: str) -> str:
    """A text without what two of the same words may differ in: case and space."""
    return " ".join(text.casefold().split())
