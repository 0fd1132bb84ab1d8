"""Whether a note with a certain id already stands in a daily log, so that trying again never writes it twice."""

from __future__ import annotations

import os
import re

from plainmind.base.errors import NotFound, PathNotAllowed
from plainmind.base.model import split_lines
from plainmind.base.pattern import pattern
from plainmind.notes.workspace import Workspace, decode
from plainmind.text.notes import find_note

# A try that came to nothing is repeated soon after, on whichever day that is, and whatever the clock did meanwhile.
MOST_LOGS = 400

_LOG = pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md", re.ASCII)


def standing_note(workspace: Workspace, folder: str, note_id: str) -> tuple[str, int, int] | None:
    """Find a note in the latest logs of a folder: the cited path, its first and its last line."""
    mark = f"<!-- m:{note_id} -->"
    for name in _latest_logs(workspace, folder):
        path = f"{folder}/{name}"
        try:
            data, _ = workspace.root.read(path, max_bytes=workspace.max_file_bytes)
        except (NotFound, PathNotAllowed):
            continue  # no file that a note could have been written to
        if mark.encode() in data:
            lines = split_lines(decode(data))
            line = next(number for number, line in enumerate(lines, 1) if mark in line)
            # Somebody may have joined it to another note: then the line is all that is sure.
            first, last = find_note(lines, note_id) or (line, line)
            return path, first, last
    return None


def _latest_logs(workspace: Workspace, folder: str) -> list[str]:
    try:
        descriptor = workspace.root.open_folder(folder)
    except OSError:
        return []  # not there yet; if it is something else, writing to it says what
    try:
        names = os.listdir(descriptor)
    finally:
        os.close(descriptor)
    return sorted(filter(_LOG.fullmatch, names), reverse=True)[:MOST_LOGS]
