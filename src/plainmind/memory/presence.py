"""Whether the workspace is there to be worked with, or only the place where its disk is mounted."""

from __future__ import annotations

import os

from plainmind.base.errors import WorkspaceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from plainmind.memory.wiring import Parts


def require_workspace(parts: Parts) -> None:
    """Raise WorkspaceError when the workspace cannot be looked at."""
    refusal, path = refusal_of_workspace(parts), parts.workspace.path
    if refusal is None:
        return
    if not isinstance(refusal, FileNotFoundError | NotADirectoryError):
        raise WorkspaceError(
            f"the workspace `{path}` cannot be read: {refusal.strerror}",
            hint="check its permissions and its disk, or name another with --workspace",
        ) from refusal
    from plainmind.base.errors import shell_word

    raise WorkspaceError(
        f"there is no workspace at `{path}`",
        hint=f"`plainmind init {shell_word(path)}` creates one; or mount its disk, or name another with --workspace",
    )


def refusal_of_workspace(parts: Parts) -> OSError | None:
    """Why the workspace cannot be looked at."""
    try:
        os.close(parts.workspace.root.open_folder())
    except OSError as error:
        return error
    return None


def has_index(parts: Parts) -> bool:
    """Whether anything was ever indexed."""
    with parts.store.reading() as reader:
        return bool(reader.files())


def require_a_place_for_notes(parts: Parts) -> None:
    """Keep a note from landing beneath the disk that the memory is on, where nobody would find it again."""
    require_workspace(parts)
    if parts.workspace.discover().files:
        return
    with parts.store.reading() as reader:
        known = len(reader.files())
    if known:
        path = parts.workspace.path
        raise WorkspaceError(
            f"`{path}` is empty, but the index knows {known} files of it: its disk may not be mounted",
            hint="mount it; or, if the files are gone on purpose, run `plainmind sync --force`",
        )
