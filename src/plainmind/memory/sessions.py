"""The conversations of a memory: who may see them, imports, and deleting one from everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from plainmind.base.errors import PlainmindError
from plainmind.base.model import PRIVATE, sha256_text
from plainmind.base.pattern import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from plainmind.base.model import ProgressCallback
    from plainmind.guests.importers.importer import Importer
    from plainmind.guests.importers.report import ImportReport
    from plainmind.memory.wiring import Parts
    from plainmind.redaction.engine import Redactor
    from plainmind.sessions.entries import Entry
    from plainmind.sessions.registry import Places
    from plainmind.sessions.store import SessionStore
    from plainmind.sessions.transcripts import Transcripts


_AGENT = pattern(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class Conversations:
    """What a memory can do with conversations."""

    parts: Parts

    @cached_property
    def sessions(self) -> SessionStore:
        """The conversations of this agent. They are searched if `sources` has `sessions`."""
        from plainmind.sessions.store import SessionStore

        return SessionStore(self.parts.places.sessions)

    def delete_session(self, name: str) -> tuple[str, ...]:
        """Remove a session or an archive for good, also from every index of this agent; what is no longer cited."""
        return delete_everywhere(self.parts, self.sessions, name)

    def import_sessions(
        self,
        program: str,
        path: str | os.PathLike[str],
        *,
        into_one_agent: bool = False,
        again: bool = False,
        is_rehearsal: bool = False,
        progress: ProgressCallback | None = None,
    ) -> ImportReport:
        """Copy the conversations of another program; doing so twice adds nothing, and the originals stay as they are.

        `program` is `openclaw`, `claude-code`, `codex` or `messages`. Those of OpenClaw's agents go to the agents here
        that have the same names, unless `into_one_agent`. What was archived or deleted here stays away unless `again`.
        """
        importer = self._importer(program, into_one_agent=into_one_agent, again=again)
        return importer.run(os.path.expanduser(path), is_rehearsal=is_rehearsal, progress=progress)

    def follow_sessions(
        self,
        program: str,
        path: str | os.PathLike[str],
        *,
        wait: Callable[[float], bool],
        into_one_agent: bool = False,
    ) -> Iterator[ImportReport]:
        """Import whatever is added, as `import_sessions`, until `wait`, called with seconds, returns true."""
        from plainmind.guests.importers.importer import imports

        importer = self._importer(program, into_one_agent=into_one_agent, again=False)
        return imports(importer, os.path.expanduser(path), wait=wait)

    def redactor(self) -> Redactor:
        """What hides secrets in copies: those of the settings, and what looks like one."""
        return self.parts.redactor

    def sessions_folder(self, agent: str | None = None) -> str:
        """Where the conversations of an agent are; of this one, if that name could be none of ours."""
        if agent is None or not _AGENT.fullmatch(agent):
            return self.parts.places.sessions
        from plainmind.config.load import index_folder

        return index_folder(
            self.parts.loaded.settings.sessions.path,
            home=self.parts.places.home,
            agent_id=agent,
            environ=self.parts.environ,
        )

    def _importer(self, program: str, *, into_one_agent: bool, again: bool) -> Importer:
        from plainmind.guests.importers.importer import Importer

        def folder_of(agent: str | None) -> str:
            return self.sessions_folder(None if into_one_agent else agent)

        return Importer(program, folder_of, again=again)


def not_indexed(source: str, sources: Sequence[str]) -> str:
    """Say that nothing of a source is there to be found, and what to do if nobody wanted it so far."""
    if source in sources:
        return f"nothing from `{source}` is indexed"
    return f"nothing from `{source}` is indexed: `plainmind config set sources memory,{source}` changes that"


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
    from plainmind.notes.scopes import scope_of_session
    from plainmind.sessions.json5_transcript import read_object

    try:
        with open(registry, "rb") as file:
            sessions = read_object(file.read(_MOST_BYTES)) or {}
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
        # A transcript that two conversations claim is for nobody who sees only one of them.
        scopes[cited] = scope if scopes.get(cited, scope) == scope else PRIVATE
    return scopes


def transcripts_of(parts: Parts) -> Transcripts:
    """Make the source of a memory's conversations."""
    from plainmind.memory.secrets import reading_by
    from plainmind.notes.discovery import Reading
    from plainmind.sessions.transcripts import Transcripts

    return Transcripts(
        parts.places.sessions,
        redact=parts.redactor.without_secrets,
        reading=Reading(*reading_by(parts.redactor, parts.places.home)),
        scopes=parts.session_scopes.now,
        zone=parts.zone,
        documents=_entries_in,
    )


def _entries_in(data: bytes) -> Sequence[Entry]:
    from plainmind.sessions.json5_transcript import document_entries

    return document_entries(data)


_ALL_LINES = 1_000_000_000


def delete_everywhere(parts: Parts, store: SessionStore, name: str) -> tuple[str, ...]:
    """Remove a session, by key or id, or an archive, by its name; the paths that were cited and are no more."""
    from plainmind.memory.backend_erasing import erase_in_engines
    from plainmind.memory.cache import opened_cache
    from plainmind.memory.indexes import erase_sessions_left_behind, of_other_workspaces

    cited = f"sessions/{os.path.relpath(store.open(name).path, store.folder)}"
    with parts.erasures.run_alone():
        hashes = _hashes_of_chunks(parts, cited)
        parts.tombstones.bury(hashes)
        store.delete(name)
        if os.path.exists(parts.places.cache):  # also where it is not used any more
            with opened_cache(parts) as cache:
                cache.forget(hashes)
        parts.store.erase("sessions", cited)
        for other in of_other_workspaces(parts):
            other.erase("sessions", cited)
        erase_sessions_left_behind(parts, [cited])
        erase_in_engines(parts, of_every_agent=False)
    return (cited,)


def _hashes_of_chunks(parts: Parts, cited: str) -> list[str]:
    """Hashes of everything that the index holds of it: what the cache may know it by."""
    with parts.store.reading() as reader:
        chunks = reader.chunks_between("sessions", cited, 1, _ALL_LINES)
    return [sha256_text(chunk.embedded_text) for chunk in chunks]
