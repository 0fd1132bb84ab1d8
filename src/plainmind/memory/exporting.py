"""Everything that the memory holds, in a form that another program can read."""

from __future__ import annotations

from collections.abc import Iterator

from plainmind.base.model import sha256_bytes
from plainmind.base.value import value
from plainmind.notes.workspace import Workspace, day_of, decode


@value
class ExportedFile:
    """One file of the memory, whole."""

    path: str
    text: str  # as it is indexed: without a byte order mark, lines ended by a line feed
    raw: bytes  # as it is on disk
    day: str | None
    sha256: str
    bytes: int


def exported_files(workspace: Workspace) -> Iterator[ExportedFile]:
    """Read the files one after the other, in their order."""
    for found in workspace.discover().files:
        raw, _ = found.root.read(found.relative, max_bytes=workspace.max_file_bytes)
        digest = sha256_bytes(raw)
        yield ExportedFile(found.path, decode(raw), raw, day_of(found.path), digest, len(raw))
