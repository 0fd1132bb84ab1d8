"""Everything that the memory holds, in a form that another program can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from commonplace.sources.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """One file of the memory, whole."""

    path: str
    text: str
    day: str | None
    sha256: str
    bytes: int


def exported_files(workspace: Workspace) -> Iterator[ExportedFile]:
    """Read the files one after the other, in their order."""
    for found in workspace.discover().files:
        document, state = workspace.read(found)
        yield ExportedFile(document.path, document.text, document.day, state.hash, state.size)
