"""Notes that Claude Code makes for itself, `~/.claude/projects/<project>/memory/*.md`: copied when new or changed.

A copy that was edited or deleted here is left so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from plainmind.agent.recall import without_recalled
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.model import FileFailure, sha256_text
from plainmind.base.value import value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import read_file
from plainmind.guests.importers.importer import REMOVED_HERE, CopiedNote, ImportReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.memory import Memory
    from plainmind.notes.memory_files import MemoryFiles

PROGRAM = "claude-memory"
CHANGED_HERE = "was copied before, and edited here since"
_FOLDER = "claude-code"  # below memory/
_MOST_BYTES = 10_000_000


@value
class OwnNote:
    """A note of Claude Code, and what its copy is called."""

    path: str
    name: str  # below memory/


def find_notes(path: str) -> list[OwnNote]:
    """List the notes of all projects. Raises NotFound when there are none."""
    projects = os.path.join(path, "projects")
    top = projects if os.path.isdir(projects) else path
    found = sorted(_notes_below(top), key=lambda note: note.path)
    if not found:
        raise NotFound(
            f"there are no notes of Claude Code in {path}",
            hint="looked for `<project>/memory/*.md`, as in ~/.claude/projects",
        )
    return found


def _notes_below(top: str) -> Iterator[OwnNote]:
    for project in os.listdir(top) if os.path.isdir(top) else ():
        folder = os.path.join(top, project, "memory")
        for inside, folders, names in os.walk(folder):
            folders.sort()
            for name in names:
                path = os.path.join(inside, name)
                if name.lower().endswith(".md") and os.path.isfile(path) and not os.path.islink(path):
                    below = os.path.relpath(path, folder).replace(os.sep, "/")
                    yield OwnNote(path, f"{_FOLDER}/{project.strip('-. ') or 'project'}/{below}")


def copy_notes(memory: Memory, path: str, *, again: bool = False, is_rehearsal: bool = False) -> ImportReport:
    """Copy what is new or changed, without secrets and what is private."""
    from plainmind.notes.memory_files import MemoryFiles

    notes = memory.notes
    if not is_rehearsal:
        memory.require_place_for_notes()
    files = MemoryFiles(
        notes.workspace, notes.history, erasures=notes.erasures, state_dir=memory.places.state
    )
    ledger = _Ledger(os.path.join(memory.places.state, "claude-memory.json"))
    copied: list[CopiedNote] = []
    failed: list[FileFailure] = []
    left_out: list[FileFailure] = []
    unchanged = 0
    for note in find_notes(path):
        try:
            data = read_file(note.path, most=_MOST_BYTES)
            text = memory.redactor().without_secrets(without_recalled(data.decode("utf-8", "replace")))
            there = files.read(note.name) if files.is_folder(note.name) is False else None
            refusal = None if again else ledger.refusal(note.name, there.hash if there else None)
            if there is not None and there.text == text:
                unchanged += 1
            elif refusal is not None:
                left_out.append(FileFailure(note.path, refusal))
                continue
            else:
                if not is_rehearsal:
                    _write(files, note.name, text, there.hash if there else None)
                copied.append(CopiedNote(f"memory/{note.name}", note.path, there is None))
            ledger.hashes[note.name] = sha256_text(text)
        except (PlainmindError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            failed.append(FileFailure(note.path, reason or str(error)))
    if not is_rehearsal:
        ledger.save()
    return ImportReport(
        PROGRAM,
        unchanged=unchanged,
        failed=tuple(failed),
        left_out=tuple(left_out),
        is_rehearsal=is_rehearsal,
        notes=tuple(copied),
    )


def _write(files: MemoryFiles, name: str, text: str, base_hash: str | None) -> None:
    if base_hash is None:
        files.create(name, text)
    else:
        files.rewrite(name, text, base_hash=base_hash, reason="import")


class _Ledger:
    """What was copied, by hash: so a copy that somebody edited or deleted here is known."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            found = json.loads(read_file(path))
        except (OSError, ValueError):
            found = {}
        self.hashes: dict[str, str] = found if isinstance(found, dict) else {}
        self._before = dict(self.hashes)

    def refusal(self, name: str, there: str | None) -> str | None:
        """Why a copy must be left as it is; None when it may be written."""
        known = self.hashes.get(name)
        if there is None:
            return None if known is None else REMOVED_HERE
        return None if known == there else CHANGED_HERE

    def save(self) -> None:
        if self.hashes != self._before:
            write_atomically(self._path, json.dumps(self.hashes, indent=1, sort_keys=True).encode() + b"\n")
