"""The conversations of a memory: kept, read without secrets, imported, and who may see them."""

from __future__ import annotations

import os
from threading import RLock

from plainmind.base.errors import PlainmindError
from plainmind.base.lazy import find_by_name, made_once, pattern
from plainmind.base.model import PRIVATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Protocol, TypeAlias

    from plainmind.base.model import ProgressCallback
    from plainmind.memory.translation import ConversationValues
    from plainmind.redaction.engine import Redactor
    from plainmind.sessions.entries import Entry
    from plainmind.sessions.registry import Places
    from plainmind.sessions.store import SessionStore
    from plainmind.sessions.transcripts import Transcripts

    # What an import did: the guest that imports says what it is.
    ImportReport: TypeAlias = Any

    class Importer(Protocol):
        """What a guest offers that copies conversations of another program."""

        def run(
            self, path: str, *, is_rehearsal: bool = False, progress: ProgressCallback | None = None
        ) -> ImportReport:
            """Import a file, or everything below a folder; a rehearsal reads all and writes nothing."""

        def follow(self, path: str, *, wait: Callable[[float], bool]) -> Iterator[ImportReport]:
            """Import, and again whenever something has been added, until `wait`, called with seconds, returns true."""


_IMPORTER = "plainmind.guests.importers.importer:Importer"
_AGENT = pattern(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Conversations:
    """What was said to one agent: kept, read as a source of memory without secrets, and who may see it."""

    def __init__(self, values: ConversationValues) -> None:
        self.making = RLock()
        self._values = values
        self.folder = values.folder

    @made_once
    def store(self) -> SessionStore:
        """The conversations themselves."""
        from plainmind.sessions.store import SessionStore

        return SessionStore(self.folder)

    @made_once
    def scopes(self) -> SessionScopes:
        """Who may see a conversation."""
        return SessionScopes(self.folder)

    @made_once
    def redactor(self) -> Redactor:
        """What hides secrets in copies: those of the settings, and what looks like one."""
        from plainmind.memory.secrets import redactor_of

        return redactor_of(self._values.home, self._values.secrets())

    @made_once
    def transcripts(self) -> Transcripts:
        """What was said, as a source of memory: without secrets, each for who may see it."""
        from plainmind.memory.secrets import reading_by
        from plainmind.notes.discovery import Reading
        from plainmind.sessions.transcripts import Transcripts

        return Transcripts(
            self.folder,
            redact=self.redactor.without_secrets,
            reading=Reading(*reading_by(self.redactor, self._values.home)),
            scopes=self.scopes.now,
            zone=self._values.zone,
            documents=_entries_in,
        )

    def folder_of(self, agent: str | None) -> str:
        """Where the conversations of an agent are; of this one, if that name could be none of ours."""
        if agent is None or not _AGENT.fullmatch(agent):
            return self.folder
        return self._values.folder_of(agent)

    def importer(
        self,
        program: str,
        *,
        into_one_agent: bool,
        again: bool,
        clean: Callable[[str], str] | None = None,
    ) -> Importer:
        """What copies the conversations of another program; of each text what `clean` leaves of it."""

        def folder_of(agent: str | None) -> str:
            return self.folder_of(None if into_one_agent else agent)

        importer: Importer = find_by_name(_IMPORTER)(program, folder_of, again=again, clean=clean)
        return importer

    def close(self) -> None:
        """Let go of the transcripts."""
        if "transcripts" in vars(self):
            self.transcripts.close()


# Which registry it was, and how it looked.
_Seen: TypeAlias = "tuple[str, int, int, int]"

_PREFIX = "sessions/"
_MOST_BYTES = 256 << 20


class SessionScopes:
    """Gives the scope of a transcript by its cited path. Whatever the registry does not tell is private.

    Nothing is locked and nothing repaired here: while the registry cannot be read, every conversation is its owner's.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._places: Places | None = None
        self._known: tuple[_Seen | None, dict[str, str]] = (None, {})

    def __call__(self, path: str) -> str:
        """The scope of `sessions/<file>`."""
        return self.now().get(path, PRIVATE)

    def now(self) -> Mapping[str, str]:
        """The scopes by cited path, as the registry is now; not to be changed."""
        places = self._places
        if places is None:
            from plainmind.sessions.registry import Places

            places = self._places = Places(self._folder)
        registry = places.registry()
        try:
            status = os.stat(registry)
        except OSError:
            return {}
        seen = (registry, status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._known
        if known[0] != seen:
            # Kept in one step: other threads find the old pair or the new one.
            known = self._known = (seen, _read(places, registry))
        return known[1]


def _read(places: Places, registry: str) -> dict[str, str]:
    from plainmind.files.system import read_file
    from plainmind.notes.scopes import scope_of_session
    from plainmind.sessions.transcript_files import read_object

    try:
        sessions = read_object(read_file(registry, most=_MOST_BYTES)) or {}
    except OSError:
        return {}
    scopes: dict[str, str] = {}
    for key, entry in sessions.items():
        if not isinstance(entry, dict):
            continue
        try:
            file_path = places.transcript(entry)
        except PlainmindError:
            continue
        cited = _PREFIX + os.path.relpath(file_path, places.folder)
        scope = scope_of_session(key, entry)
        # A transcript that two conversations claim is not for those who see only one of them.
        scopes[cited] = scope if scopes.get(cited, scope) == scope else PRIVATE
    return scopes


def _entries_in(data: bytes) -> Sequence[Entry]:
    from plainmind.sessions.transcript_files import document_entries

    return document_entries(data)
