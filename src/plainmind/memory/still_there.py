"""Where the text of forgotten lines stands besides: in entries, in conversations, in what was typed in chats."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterator, Sequence

from plainmind.base.model import split_lines
from plainmind.base.pattern import pattern
from plainmind.base.value import value
from plainmind.files.system import explain_errors
from plainmind.guests.entries.entry_file import EntryFile
from plainmind.guests.entries.place import entry_folder
from plainmind.memory.wiring import Parts
from plainmind.notes.notebook import Forgotten
from plainmind.sessions.store import SessionStore
from plainmind.text.note_format import without_note_ids

_BEFORE_THE_WORDS = pattern(r"\s*(?:[-*+] |#+ |> )?\s*(?:\d\d:\d\d )?")
_LEAST_LINE = 8  # a shorter line, such as a heading, stands in many texts that are no copies of it


@value
class StillThere:
    """What has a text and is left as it is; it belongs to the agent that forgets."""

    entries: tuple[str, ...]  # their ids
    sessions: tuple[str, ...]  # names that `sessions delete` takes
    typed: str | None = None  # the file with what was typed


def still_there(parts: Parts, chosen: Forgotten) -> StillThere:
    """Look for the text that lines were chosen by, or for what the lines say."""
    return text_still_there(parts, [chosen.text] if chosen.text else _words_of(chosen))


def text_still_there(parts: Parts, texts: Sequence[str]) -> StillThere:
    """Look for any of some texts, as they are written."""
    wanted = [text.strip() for text in texts if text.strip()]
    spellings = sorted({spelling for text in wanted for spelling in _spellings(text)})
    _, entries = EntryFile(entry_folder(parts)).read()
    typed = os.path.join(parts.places.home, "chat-history")
    return StillThere(
        tuple(entry.id for entry in entries.values() if any(text in entry.text for text in wanted)),
        tuple(name for name, path in _transcripts(parts) if _has_any(path, spellings)),
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


def _transcripts(parts: Parts) -> Iterator[tuple[str, str]]:
    if not os.path.isdir(parts.places.sessions):
        return
    store = SessionStore(parts.places.sessions)
    for row in store.list():
        yield row.key, row.path
    for name in store.archives():
        yield name, store.open(name).path


def _has_any(path: str, spellings: Sequence[bytes]) -> bool:
    with explain_errors("read", path):
        try:
            with open(path, "rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return False
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                    return any(content.find(spelling) >= 0 for spelling in spellings)
        except FileNotFoundError:
            return False
