"""Texts that could not be saved because their file had changed, kept outside the workspace."""

from __future__ import annotations

import os
from collections.abc import Callable

from plainmind.files.atomic import write_atomically
from plainmind.files.blobs import scrub
from plainmind.files.ids import new_id
from plainmind.files.system import SYSTEM, System, explain_errors


def keep_conflict_copy(state_dir: str, path: str, wanted: bytes, *, system: System = SYSTEM) -> str:
    """Keep the text that somebody wanted to save at `path`; the name of the copy."""
    stem, extension = os.path.splitext(os.path.basename(path))
    copy = os.path.join(state_dir, "conflicts", f"{stem[:100]}.conflict-{new_id()}{extension}")
    write_atomically(copy, wanted, system=system)
    return copy


def conflict_copies(state_dir: str, *, system: System = SYSTEM) -> list[str]:
    """List the copies that are waiting for someone, oldest first."""
    folder = os.path.join(state_dir, "conflicts")
    with explain_errors("list", folder, outcome="nothing was changed"):
        try:
            names = system.listdir(folder)
        except FileNotFoundError:
            return []
    return [os.path.join(folder, name) for name in sorted(names, key=_age)]


def erase_conflict_copies(
    state_dir: str, matches: Callable[[bytes], bool], *, system: System = SYSTEM
) -> int:
    """Destroy the copies that contain forgotten text; how many there were."""
    erased = 0
    for copy in conflict_copies(state_dir, system=system):
        with explain_errors("erase", copy, outcome="it still exists"):
            with open(copy, "rb") as file:
                forgotten = matches(file.read())
            if forgotten:
                scrub(copy, system)
                erased += 1
    return erased


def _age(name: str) -> str:
    return name.rpartition(".conflict-")[2]
