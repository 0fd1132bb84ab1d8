"""One file to take away: the notes and the page that searches them, for a browser without server and network."""

from __future__ import annotations

import os
from collections.abc import Mapping

from plainmind.base.errors import NotFound
from plainmind.base.model import SHARED, split_lines
from plainmind.base.value import value
from plainmind.guests.page.bundle import make_html, page_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from plainmind.memory.memory import Memory


@value
class Exported:
    """What an export took along."""

    files: int
    left_out: int  # those that not everyone may see
    html: str


def make_page(memory: Memory, *, with_private: bool) -> Exported:
    """The notes that may be taken along, secrets hidden, and the page, as one HTML file. NotFound when none may."""
    listed = memory.list()
    taken = [found for found in listed if with_private or found.scope == SHARED]
    if not taken:
        raise NotFound(
            "there is no note to take along"
            if not listed
            else f"none of the {len(listed)} notes is shared with everyone",
            hint="write one first"
            if not listed
            else "add --with-private to take all along: whoever has the file reads them",
        )
    hide = memory.redactor().without_secrets
    taken.sort(key=lambda found: found.path)
    notes = [_note(found.path, found.scope, hide(memory.text_of(found))) for found in taken]
    kept = {
        "notes": notes,
        "texts": page_texts(),
        "today": memory.now().date().isoformat(),
        "title": os.path.basename(memory.workspace),
    }
    return Exported(len(notes), len(listed) - len(taken), make_html(kept, "offline.js"))


def _note(path: str, scope: str, text: str) -> Mapping[str, Any]:
    from plainmind.notes.workspace import day_of
    from plainmind.text.front_matter import note_names

    names = note_names(path, split_lines(text))
    title = names.title or names.name
    return {
        "path": path,
        "scope": scope,
        "day": day_of(path),
        "title": title,
        "tags": list(names.tags),
        "text": text,
    }
