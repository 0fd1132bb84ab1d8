"""One question to the memory: the index is brought up to date, asked, and what it lacks is said with the answer."""

from __future__ import annotations

import time
from collections.abc import Sequence

from plainmind.base.errors import IndexCorrupt, PlainmindError
from plainmind.base.model import (
    ProgressCallback,
    SearchFilter,
    SearchResult,
    Source,
    SyncReport,
    known_sources,
)
from plainmind.base.value import replace
from plainmind.index.sync import OpenView
from plainmind.memory.freshness import Freshness, notes_of
from plainmind.memory.sessions import not_indexed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date

    from plainmind.memory.wiring import Parts
    from plainmind.search.engine import SearchEngine


class Asking:
    """Asks the index of one memory, on behalf of whoever may see certain scopes."""

    def __init__(self, parts: Parts, freshness: Freshness) -> None:
        self._parts = parts
        self._freshness = freshness

    def search(
        self,
        query: str,
        *,
        scopes: frozenset[str],
        sources: Sequence[Source] | None = None,
        max_results: int | None = None,
        min_score: float | None = None,
        snippet_chars: int | None = None,
        explain: bool = False,
        today: date | None = None,
        progress: ProgressCallback | None = None,
    ) -> SearchResult:
        """Find the lines that answer a question, among files of these scopes. Sees every write that came before it."""
        if max_results is not None and max_results < 1:
            raise PlainmindError(f"max_results is {max_results}", hint="ask for at least one hit")
        settings = self._parts.loaded.settings
        deadline = time.monotonic() + settings.limits.timeout_ms / 1000
        backend = self._parts.backend
        view = OpenView() if backend is None else None
        before = self._freshness.caught_up(progress, view) if settings.sync.on_search else SyncReport()

        def ask() -> SearchResult:
            return self._engine().search(
                query,
                view=view,
                where=SearchFilter(frozenset(known_sources(sources or settings.sources)), scopes),
                today=today or self._parts.now().date(),
                max_results=max_results,
                min_score=min_score,
                snippet_chars=snippet_chars,
                explain=explain,
            )

        def ask_index() -> SearchResult:
            nonlocal before
            try:
                result = ask()
            except IndexCorrupt:
                # It is set aside by now, and all that it knew stands in the files.
                before = self._freshness.caught_up(progress)
                result = ask()
            return self._told(self._hidden(result), before, self._not_indexed(sources or ()))

        if backend is None or not query.strip():
            try:
                return ask_index()
            finally:
                if view is not None:
                    view.close()
        from plainmind.memory.backend import Question

        question = Question(
            query,
            scopes,
            max(0.0, deadline - time.monotonic()),
            sources=None if sources is None else tuple(sources),
            max_results=max_results or settings.query.max_results,
            min_score=min_score,
            snippet_chars=snippet_chars or settings.limits.max_snippet_chars,
            explain=explain,
        )
        return backend.search(question, ask_index)

    def _hidden(self, result: SearchResult) -> SearchResult:
        """Hide secrets of the settings that were not known yet when a conversation was indexed."""
        if not any(hit.source == "sessions" for hit in result.hits):
            return result
        from plainmind.memory.secrets import without_known_secrets

        return without_known_secrets(result, self._parts.redactor)

    def _engine(self) -> SearchEngine:
        """What answers questions: with the embedder that the index was made with, or none."""
        if self._parts.providers is None:
            return self._parts.engine
        from plainmind.memory.answering import engine_for

        return engine_for(self._parts, self._parts.providers)

    def _told(self, result: SearchResult, before: SyncReport, missing: tuple[str, ...]) -> SearchResult:
        """Add to an answer what was not consulted, and what the sync before it had to say."""
        degraded = (*result.degraded, *notes_of(before), *missing)
        if degraded or before.notes:
            result = replace(result, degraded=degraded, notes=before.notes)
        if self._parts.providers is None:
            return result
        from plainmind.memory.answering import with_fallback

        return with_fallback(result, before, self._parts, self._parts.providers)

    def _not_indexed(self, asked_for: Sequence[Source]) -> tuple[str, ...]:
        """Say that a source that was asked for, and no other, has nothing in the index."""
        if not asked_for or self._parts.workspace.source in asked_for:
            return ()
        with self._parts.store.reading() as reader:
            counts = reader.counts().files
        missing = (source for source in asked_for if not counts.get(source))
        return tuple(not_indexed(source, self._parts.loaded.settings.sources) for source in missing)
