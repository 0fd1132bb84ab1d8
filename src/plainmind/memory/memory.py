"""One memory in one object: everything that a program, a tool or a command does goes through here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from plainmind.base.model import (
    EVERY_SCOPE,
    EXCERPT_LINES,
    Excerpt,
    ProgressCallback,
    SearchResult,
    Source,
    SyncReport,
)
from plainmind.memory.presence import require_a_place_for_notes, require_workspace
from plainmind.memory.sessions import Conversations
from plainmind.memory.wiring import Parts, wire

TYPE_CHECKING = False
if TYPE_CHECKING:  # a search needs none of these, and pays for none of them
    from datetime import date
    from types import TracebackType
    from typing import Any, Self

    from plainmind.agent.scope import SearchContext
    from plainmind.files.history import Version
    from plainmind.memory.background import KeptFresh
    from plainmind.memory.doctor import Check
    from plainmind.memory.scoped import ScopedMemory
    from plainmind.memory.spending import Confirm
    from plainmind.memory.status import Status
    from plainmind.memory.workspace_setup import ExportedFile
    from plainmind.notes.discovery import FoundFile
    from plainmind.notes.notebook import Edited, Forgotten, Remembered


class Memory(Conversations):
    """The memory that lives in a workspace.

        with Memory("~/notes") as memory:
            memory.remember("the gateway moved to Hetzner")
            print(memory.search("where does the gateway run?").hits[0].snippet)

    `config` holds settings that win over the configuration files, such as `{"query": {"maxResults": 3}}`.
    Safe to share between threads; not between a process and its forks.
    """

    def __init__(
        self,
        workspace: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self._take(
            wire(
                workspace=None if workspace is None else os.fspath(workspace),
                home=None if home is None else os.fspath(home),
                flags=config or {},
                environ=os.environ,
                cwd=os.getcwd(),
            )
        )

    @classmethod
    def of(cls, parts: Parts) -> Self:
        """A memory of parts that were wired by the caller, with sources that no setting names."""
        memory = cls.__new__(cls)
        memory._take(parts)  # noqa: SLF001 (its own)
        return memory

    def _take(self, parts: Parts) -> None:
        self.parts: Parts = parts

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def workspace(self) -> str:
        """The folder that holds the memory, absolute."""
        return self.parts.workspace.path

    def search(
        self,
        query: str,
        max_results: int | None = None,
        min_score: float | None = None,
        *,
        sources: Sequence[Source] | None = None,
        snippet_chars: int | None = None,
        explain: bool = False,
        today: date | None = None,
        progress: ProgressCallback | None = None,
    ) -> SearchResult:
        """Find the lines that answer a question. Sees every write that came before it.

        `max_results` and `min_score` are those of the settings (6 and 0.35) when they are left out.
        """
        return self.parts.asking.search(
            query,
            scopes=EVERY_SCOPE,
            sources=sources,
            max_results=max_results,
            min_score=min_score,
            snippet_chars=snippet_chars,
            explain=explain,
            today=today,
            progress=progress,
        )

    def within(self, context: SearchContext) -> ScopedMemory:
        """The memory as it may be seen and written in one conversation: `context` says whose, and who reads along."""
        from plainmind.memory.scoped import ScopedMemory

        return ScopedMemory(self.parts, context)

    def get(
        self,
        path: str,
        *,
        first_line: int = 1,
        line_count: int | None = EXCERPT_LINES,
        max_chars: int | None = None,
    ) -> Excerpt:
        """Read lines of a memory file; `path` may be a citation such as `MEMORY.md#L3-L7`."""
        from plainmind.memory.reading import read_lines

        return read_lines(self.parts, path, first_line=first_line, line_count=line_count, max_chars=max_chars)

    def list(self) -> tuple[FoundFile, ...]:
        """List the files of the memory."""
        require_workspace(self.parts)
        return self.parts.workspace.discover().files

    def remember(self, text: str, *, durable: bool = False) -> Remembered:
        """Add a note to today's log, or with `durable` to the curated memory. On disk when this returns."""
        require_a_place_for_notes(self.parts)
        return self.parts.notebook.remember(text, durable=durable)

    def edit(
        self, path: str, old: str, new: str, *, base_hash: str | None = None, allow_shrink: bool = False
    ) -> Edited:
        """Replace a text that stands exactly once in a file. `history` and `restore` undo it."""
        return self.parts.notebook.edit(path, old, new, base_hash=base_hash, allow_shrink=allow_shrink)

    def forget(self, what: str | Forgotten, *, dry_run: bool = False) -> Forgotten:
        """Remove something for good: from the files, the index, the cache, the history and the entry memory.

        `what` is a citation (`memory/2026-02-10.md#L3-L5`), the id of a note or of an entry, or a text: then every
        line that contains it goes, and every entry that has its words. With `dry_run` nothing is changed and the
        answer says what would go; given back as `what`, it is exactly that which goes, or nothing when it has
        changed since.
        """
        from plainmind.memory.forgetting_everywhere import forget_everywhere

        require_workspace(self.parts)
        return forget_everywhere(self.parts, what, dry_run=dry_run)

    def history(self, path: str | None = None) -> Sequence[Version]:
        """List what was changed, newest first."""
        return self.parts.history.versions(path)

    def read_version(self, version_id: str) -> bytes:
        """What a file was in a version that `history` lists as available."""
        return self.parts.history.read(version_id)

    def keep_version(self, path: str, *, reason: str) -> str:
        """Keep what a file is now, before somebody edits it by other means; where it is on disk."""
        return self.parts.notebook.keep(path, reason=reason)

    def restore(self, version_id: str) -> Edited:
        """Bring an old version of a file back."""
        require_workspace(self.parts)
        return self.parts.notebook.restore(version_id)

    def sync(
        self,
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
        wait: bool | None = None,
        confirm: Confirm | None = None,
    ) -> SyncReport:
        """Bring the index up to date; `force` makes it anew. Callers at the same time share one run.

        `wait` is for batch jobs of a provider, None as the settings say. `confirm` is shown what the sync is about to
        cost, and says whether to go on; without it, what costs more than `remote.confirmAboveUsd` is left undone.
        """
        require_workspace(self.parts)
        wishes = {"wait": wait, "confirm": confirm} if wait is not None or confirm is not None else None
        return self.parts.freshness.sync(force=force, progress=progress, wishes=wishes)

    def watch(self, stop: threading.Event) -> Iterator[SyncReport]:
        """Keep the index up to date until `stop` is set, yielding what each sync did."""
        require_workspace(self.parts)
        return self.parts.freshness.watched(stop)

    def kept_fresh(self, tell: Callable[[str], None]) -> KeptFresh:
        """Keep the index up to date in a thread of its own while a `with` block runs, as the settings `sync.*` say.

        `tell` is given each new problem. A search catches up by itself; this is for what lives long, so that a search
        finds little to do.
        """
        from plainmind.memory.background import KeptFresh

        return KeptFresh(self.parts, tell)

    def status(self, *, deep: bool = False) -> Status:
        """What is known, where it is kept, and what leaves this machine."""
        from plainmind.memory.status import status_of

        return status_of(self.parts, deep=deep)

    def doctor(self, *, verify: bool = False) -> Sequence[Check]:
        """Look for everything that could be wrong, and say what to do about it."""
        from plainmind.memory.doctor import examine

        return examine(self.parts, verify=verify)

    def export(self) -> Iterator[ExportedFile]:
        """Every file of the memory, with its text."""
        from plainmind.memory.workspace_setup import exported_files

        require_workspace(self.parts)
        return exported_files(self.parts.workspace)

    def close(self) -> None:
        """Let go of files and locks. Closing twice is fine."""
        self.parts.close()
