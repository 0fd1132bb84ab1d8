"""A session that begins with the branch of another, up to some entry."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from contextlib import suppress

from plainmind.base.errors import NotFound
from plainmind.files.ids import new_id
from plainmind.files.system import explain_errors, make_folders
from plainmind.sessions.branch import branch
from plainmind.sessions.entries import Entry, Placed, Transcript
from plainmind.sessions.leftovers import forget_leftovers
from plainmind.sessions.shelf import Shelf, refuse_taken
from plainmind.sessions.unfinished import begin, without_mark
from plainmind.sessions.usage import counted, marked


def fork(
    shelf: Shelf, origin: Transcript, key: str, at: str | None, fields: dict[str, object]
) -> tuple[str, Transcript]:
    """Copy the branch into a new transcript and give it a free key; its id, and the transcript."""
    session_id = new_id(shelf.clock)
    refuse_taken(shelf.registry.read(), key, session_id)
    starts = array("Q", (placed.start for placed in branch(origin.backwards, leaf=at)))
    if at is not None and not starts:
        raise NotFound(f"there is no entry {at} in {origin.path}", hint="`entries()` lists them")
    starts.reverse()
    entry = shelf.new_entry(session_id, fields)
    parent = os.path.relpath(origin.path, shelf.places.folder)
    header = shelf.new_header(key, session_id, fields) | {"parentSession": parent}
    transcript = shelf.transcript(entry)
    forget_leftovers(shelf)
    draft = shelf.transcript_at(shelf.places.draft(transcript.path))
    try:
        # Not under the lock: a long conversation takes its time. It is not seen before it has its entry.
        draft.rewrite(header, _chosen(origin.entries(), starts))
        _publish(shelf, key, entry, draft, transcript)
    except BaseException:
        with suppress(
            OSError
        ):  # it has its name already; or the error that brought us here is the one to report
            shelf.system.unlink(draft.path)
        raise
    return session_id, transcript


def _publish(shelf: Shelf, key: str, entry: Entry, draft: Transcript, transcript: Transcript) -> None:
    """Give the copy its entry and its place."""
    end = draft.end()
    total = counted({}, draft.countable(0, end)).get("totalTokens", 0)
    with shelf.registry.holding(f"fork session {entry['sessionId']}") as held:
        refuse_taken(held.sessions, key, entry["sessionId"])
        # What the branch has cost is its own session's business; how full it is goes along.
        held.sessions[key] = marked(entry | {"totalTokens": total}, end)
        begin(held, key, "fork")
        with explain_errors("write", transcript.path):
            folder = os.path.dirname(transcript.path)
            make_folders(shelf.system, folder)
            shelf.system.replace(draft.path, transcript.path)
            shelf.system.fsync_folder(folder)
        held.sessions[key] = without_mark(held.sessions[key])
        held.write()


def _chosen(entries: Iterator[Placed], starts: array[int]) -> Iterator[Entry]:
    """Give the entries at the places of a sorted list."""
    at = 0
    for placed in entries:
        while at < len(starts) and starts[at] < placed.start:
            at += 1
        if at == len(starts):
            return
        if placed.start == starts[at] and placed.entry is not None:
            yield placed.entry
