"""Part of a transcript as a person reads it: who spoke, when, and what was said, with its own line breaks."""

from __future__ import annotations

from plainmind.base.model import Excerpt
from plainmind.sessions.entries import Message
from plainmind.sessions.transcript_lines import local_minute
from plainmind.sessions.transcripts import Transcripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo

_BETWEEN = "\n\n"  # two messages


def read_messages(
    transcripts: Transcripts,
    path: str,
    first_line: int,
    line_count: int | None,
    max_chars: int | None,
    *,
    redacted: bool = True,
) -> Excerpt:
    """Read the messages on lines of a transcript, counted as they stand in the file.

    Lines without a message are passed over. Secrets are hidden as they are in the index, unless asked otherwise.
    `max_chars` drops whole lines at the end; only what a first line says alone is cut. Raises PathNotAllowed, NotFound
    or WorkspaceError.
    """
    file = transcripts.locate(path)
    shown: list[str] = []
    left = max_chars
    next_line = first_line
    goes_on = False
    with transcripts.opened(file) as transcript:
        for line in transcript.spoken(first_line, redacted=redacted):
            text = _BETWEEN.join(_shown(message, transcripts.zone) for message in line.messages)
            is_too_much = left is not None and len(text) > left and bool(shown and text)
            is_past = line_count is not None and line.number >= first_line + line_count
            goes_on = is_too_much or is_past or not line.is_last
            if is_too_much or is_past:
                break
            next_line = line.number + 1
            if text:
                shown.append(text[:left])
                left = None if left is None else left - len(text) - len(_BETWEEN)
    is_cut = left is not None and len(shown) == 1 and left < -len(_BETWEEN)
    return Excerpt(
        file.path,
        _BETWEEN.join(shown),
        first_line,
        next_line - first_line,
        truncated=goes_on or is_cut,
        next_line=next_line if goes_on else None,
    )


def _shown(message: Message, zone: tzinfo | None) -> str:
    moment = None if message.time_ms is None else local_minute(message.time_ms, zone)
    return f"{message.speaker}{f' ({moment})' if moment else ''}: {message.text.strip()}"
