"""The conversations of an agent as a source of memory: without secrets, each for whoever may see it."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.memory.secrecy import reading_by
from plainmind.memory.wiring import Parts
from plainmind.notes.discovery import Reading
from plainmind.sessions.transcripts import Transcripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.sessions.entries import Entry


def transcripts_of(parts: Parts) -> Transcripts:
    """Make the source of a memory's conversations."""
    return Transcripts(
        parts.places.sessions,
        redact=parts.redactor.without_secrets,
        reading=Reading(*reading_by(parts.redactor, parts.places.home)),
        scopes=parts.session_scopes.now,
        zone=parts.zone,
        documents=_entries_in,
    )


def _entries_in(data: bytes) -> Sequence[Entry]:
    from plainmind.sessions.json5_transcript import entries_in

    return entries_in(data)
