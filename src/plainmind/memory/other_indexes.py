"""The indexes beside ours that may hold the same text: whoever forgets it takes it out of them too."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from plainmind.index.left_behind import erase_left_behind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.index.protocol import IndexStore
    from plainmind.memory.wiring import Parts


def of_other_agents(parts: Parts) -> Iterator[IndexStore]:
    """What other agents have indexed of the same workspace; each is closed when the next is asked for.

    A server knows them all; in folders they are those of this machine.
    """
    if parts.store.neighbours is not None:
        yield from _closing(parts.store.neighbours.of_other_agents())
    else:
        yield from _opened(parts, _beside(parts.places.index))


def of_other_workspaces(parts: Parts) -> Iterator[IndexStore]:
    """What the same agent has indexed of other workspaces: they hold the same conversations."""
    if parts.store.neighbours is not None:
        yield from _closing(parts.store.neighbours.of_other_workspaces())
    else:
        own = parts.places.index
        yield from _opened(parts, _folders(os.path.dirname(own), own))


def erase_notes_left_behind(parts: Parts, paths: Sequence[str]) -> None:
    """Take files of the workspace out of what other stores, in use before this one, hold of them for any agent."""
    own = parts.places.index
    for folder in (own, *_beside(own)):
        erase_left_behind(folder, parts.loaded.settings.store.driver, "memory", paths)


def erase_sessions_left_behind(parts: Parts, paths: Sequence[str]) -> None:
    """The same for conversations of the agent, which stand beside the notes of any workspace."""
    own = parts.places.index
    for folder in (own, *_folders(os.path.dirname(own), own)):
        erase_left_behind(folder, parts.loaded.settings.store.driver, "sessions", paths)


def _opened(parts: Parts, folders: Sequence[str]) -> Iterator[IndexStore]:
    return _closing(parts.open_index(folder) for folder in folders)


def _closing(stores: Iterable[IndexStore]) -> Iterator[IndexStore]:
    for store in stores:
        with closing(store):
            yield store


def _beside(index: str) -> list[str]:
    agent, key = os.path.split(index)
    folders = (os.path.join(folder, key) for folder in _folders(os.path.dirname(agent), agent))
    return [folder for folder in folders if os.path.isdir(folder)]


def _folders(place: str, own: str) -> list[str]:
    """The folders in a place, but for our own."""
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return []  # the index is kept in a place of its own
    folders = (os.path.join(place, name) for name in names)
    return [folder for folder in folders if folder != own and os.path.isdir(folder)]
