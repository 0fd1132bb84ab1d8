"""The index of a memory: kept up to date with the files, and asked; what an answer lacks is said with it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from plainmind.base.errors import (
    ConfigError,
    IndexCorrupt,
    LockTimeout,
    PlainmindError,
    StorageFailure,
    WorkspaceError,
    check_kind,
    check_text,
)
from plainmind.base.lazy import RLock, find_by_name, made_once
from plainmind.base.model import (
    SOURCES,
    ProgressCallback,
    SearchFilter,
    SearchResult,
    Source,
    SyncReport,
    date_of,
    known_sources,
)
from plainmind.base.value import replace
from plainmind.files.system import explain_errors
from plainmind.index.plan import Conditions, Patience
from plainmind.index.sync import REMOVED, OpenView, SharedSync
from plainmind.memory.translation import with_imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date, datetime
    from threading import Event
    from typing import Any, TypeVar

    from plainmind.base.model import EmbedderIdentity, FileFailure, SearchHit
    from plainmind.embed.cache import SqliteEmbeddingCache
    from plainmind.embed.protocol import Embedder
    from plainmind.index.plan import Meanwhile
    from plainmind.index.protocol import IndexStore
    from plainmind.index.remains import Remains
    from plainmind.index.sync import Indexer
    from plainmind.memory.backend import FallbackBackend
    from plainmind.memory.memory import Notes
    from plainmind.memory.providers import Initiative, Providers
    from plainmind.memory.sessions import Conversations
    from plainmind.memory.translation import IndexValues
    from plainmind.notes.source import TextSource
    from plainmind.search.engine import SearchEngine
    from plainmind.search.second_look import Reranker
    from plainmind.search.selection import Unwanted

    T = TypeVar("T")

_MOST_LOOKS = 3  # that a search takes after a sync, while others keep changing the index
_RERANKER = "plainmind.guests.rerank.reranker:installed_reranker"


class Index:
    """Indexes the notes and conversations of one memory and finds them again. Callers at the same time share a sync.

    `conversations` is what gives transcripts, and hides secrets in what they say; `make_providers` and `make_backend`
    make what not every memory has. `more_sources` are indexed beside the notes, instead of the transcripts; one
    of `memory` instead of the notes.
    """

    def __init__(
        self,
        values: IndexValues,
        notes: Notes,
        conversations: Callable[[], Conversations],
        *,
        make_providers: Callable[[], Providers | None],
        make_backend: Callable[[], FallbackBackend | None],
        explain_provider: Callable[[ConfigError], ConfigError],
        more_sources: Sequence[TextSource],
        now: Callable[[], datetime],
    ) -> None:
        self.making = RLock()  # again and again: parts are made of parts
        self.values = values
        self.more_sources = more_sources
        self._notes = notes
        self._conversations = conversations
        self._make_providers = make_providers
        self._make_backend = make_backend
        self._explain_provider = explain_provider
        self._now = now
        self._shared = SharedSync()
        self._indexers: dict[Embedder, Indexer] = {}
        self._engines: dict[Embedder, SearchEngine] = {}
        self._is_wiped_at_the_end = False
        self._has_conversations = False  # among what is indexed
        self.left_out: tuple[FileFailure, ...] = ()  # on purpose, by the sync before the last search

    @property
    def sources(self) -> tuple[Source, ...]:
        """What is searched when a question does not say: conversations too, once some were imported."""
        return known_sources(with_imports(self.values.sources, self.values.imports))

    def take_in_conversations(self) -> None:
        """Index conversations from now on, because somebody asks for them."""
        if not self._has_conversations:
            with self.making:
                self._has_conversations = True
                self._indexers.clear()
                vars(self).pop("indexer", None)

    @made_once
    def store(self) -> IndexStore:
        """What keeps the index."""
        return self.open_at(self.values.folder)

    def open_at(self, folder: str) -> IndexStore:
        """Open the index that belongs to a folder of ours, wherever it is kept."""
        from plainmind.index.store import open_store

        return open_store(self.values.driver, folder=folder, **self.values.options)

    @made_once
    def providers(self) -> Providers | None:
        """Who embeds, where that is not settled: None when nothing but the built-in model is configured."""
        return self._make_providers()

    @made_once
    def backend(self) -> FallbackBackend | None:
        """The engine that indexes and searches beside this index; None when there is none but this."""
        return self._make_backend()

    @property
    def cache(self) -> SqliteEmbeddingCache | None:
        """What remembers vectors that took long or cost money; None where computing is faster, or not wanted."""
        return None if self.providers is None else self.providers.used_cache

    @made_once
    def embedder(self) -> Embedder:
        """What turns text into vectors: the one that was chosen, whether it works or not."""
        if self.providers is not None:
            return self.providers.chosen
        from plainmind.embed.protocol import EmbeddingSettings, create_embedder

        name = self.values.embedder
        try:
            return create_embedder(name, EmbeddingSettings(provider=name, model=self.values.model))
        except ConfigError as error:
            raise self._explain_provider(error) from error

    @made_once
    def indexer(self) -> Indexer:
        """What brings the index up to date, with the embedder that was chosen."""
        return self.indexer_with(self.embedder)

    def indexer_with(self, embedder: Embedder) -> Indexer:
        """What brings the index up to date with an embedder: an index is made with one, from end to end."""
        return self._once_for(embedder, self._indexers, self._new_indexer)

    @made_once
    def engine(self) -> SearchEngine:
        """What answers questions."""
        return self.engine_with(self.embedder)

    def engine_with(self, embedder: Embedder) -> SearchEngine:
        """What answers questions with an embedder."""
        return self._once_for(embedder, self._engines, self._new_engine)

    def has_files(self) -> bool:
        """Whether anything was ever indexed."""
        return bool(self.count_of_files())

    def count_of_files(self) -> int:
        """How many files it knows."""
        with self.store.reading() as reader:
            return len(reader.files())

    def made_with(self) -> EmbedderIdentity | None:
        """Who made the vectors of the index; None when there is none yet."""
        with self.store.reading() as reader:
            made = reader.fingerprint()
        return None if made is None else made.embedder

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
        paths: Sequence[str] = (),
        tags: Sequence[str] = (),
        since: date | str | None = None,
        until: date | str | None = None,
        deep: bool | None = False,
        with_expired: bool = True,
        asked_in: Iterable[str] = (),
        progress: ProgressCallback | None = None,
    ) -> SearchResult:
        """Find the lines that answer a question, among files of these scopes. Sees every write that came before it.

        `deep` looks twice at the best results; None does so where what it takes is installed. Without `with_expired`
        lines whose time is over are left out, and those that a person never wants to see again, and the transcripts of
        the conversation that it is `asked_in`.
        """
        check_text(query, "a question")
        if max_results is not None:
            check_kind(max_results, "`max_results`", int, "a whole number (int)")
            if max_results < 1:
                raise PlainmindError(f"max_results is {max_results}", hint="ask for at least one hit")
        if min_score is not None:
            check_kind(min_score, "`min_score`", (int, float), "a number (float)")
        values = self.values
        asked_for = self._asked_for(sources)
        deadline = time.monotonic() + values.timeout_s
        view = OpenView() if self.backend is None else None
        before = self._catch_up(progress, view) if values.syncs_before_search else SyncReport()
        today = date_of(today or self._now(), "`today`")
        only = None
        if paths or tags or since is not None or until is not None:
            from plainmind.index.filters import restriction_of

            only = restriction_of(today, paths=paths, tags=tags, since=since, until=until)
        where = SearchFilter(frozenset(asked_for), scopes, only)
        verdicts = self._verdicts()
        unwanted = None if with_expired else _unwanted(verdicts, frozenset(asked_in))
        heeding = partial(self._heed, verdicts, today, with_expired=with_expired)
        reranker = None if deep is False and values.rerank.mode != "always" else self._reranker(deep=deep)

        def ask(engine: SearchEngine | None = None) -> SearchResult:
            engine = engine or self._answering_engine()
            search = engine.search if reranker is None else partial(self._look_twice, engine, reranker)
            return search(
                query,
                view=view,
                where=where,
                today=today,
                max_results=max_results,
                min_score=min_score,
                snippet_chars=snippet_chars,
                explain=explain,
                unwanted=unwanted,
            )

        ask_index = partial(self._ask_index, ask, before, sources or (), progress)
        if self.backend is None or not query.strip():
            try:
                return heeding(ask_index())
            finally:
                if view is not None:
                    view.close()
        if self._is_restricted(query, where, today):
            note = f"{self.backend.name} has no filters; this is from the built-in index"
            result = heeding(ask_index())
            return replace(result, notes=(*result.notes, note))
        from plainmind.memory.backend import Question

        question = Question(
            query,
            scopes,
            max(0.0, deadline - time.monotonic()),
            sources=None if sources is None else tuple(sources),
            max_results=max_results or values.max_results,
            min_score=min_score,
            snippet_chars=snippet_chars or values.snippet_chars,
            explain=explain,
        )
        return heeding(self.backend.search(question, ask_index))

    def _ask_index(
        self,
        ask: Callable[..., SearchResult],
        before: SyncReport,
        sources: Sequence[Source],
        progress: ProgressCallback | None,
    ) -> SearchResult:
        """What the index answers; `before` says how it was brought up to date. A damaged one is made anew first."""
        try:
            result = ask()
        except IndexCorrupt:
            # It is set aside by now, and all that it knew stands in the files.
            before = self._catch_up(progress)
            try:
                result = ask()
            except IndexCorrupt as error:
                told = self._read_files(error, progress)
                result = self._without_secrets(ask(self.stand_in[1]))
                return replace(result, degraded=(*result.degraded, *told))
        return self._with_remarks(self._without_secrets(self._of_this_host(result)), before, sources)

    def _of_this_host(self, result: SearchResult) -> SearchResult:
        """Leave out conversations of other hosts: those that give their notes one name share the notes, no more."""
        is_shared = self.values.options.get("workspace") is not None and not self.more_sources
        if not is_shared or not any(hit.source == "sessions" for hit in result.hits):
            return result
        here = self._conversations().transcripts
        hits = [hit for hit in result.hits if hit.source != "sessions" or here.look_at(hit.path) is not None]
        return replace(result, hits=tuple(hits))

    def _heed(
        self,
        verdicts: Mapping[tuple[str, str], Sequence[str]],
        today: date,
        result: SearchResult,
        *,
        with_expired: bool,
    ) -> SearchResult:
        """Give what was superseded, has expired or was judged its place; in a few searches there is such a thing."""
        if not verdicts and not any(map(_says_since_or_until_when, result.hits)):
            return result
        from plainmind.base.errors import NotFound, PathNotAllowed
        from plainmind.base.model import split_lines
        from plainmind.search.selection import heed

        def lines_of(path: str) -> list[str] | None:
            try:
                return split_lines(self._notes.workspace.read(path)[0].text)
            except (NotFound, PathNotAllowed):  # gone since it was indexed
                return None

        hits = heed(
            result.hits,
            today=today.isoformat(),
            lines_of=lines_of,
            day_of_line=self._notes.notebook.line_days.day_of,
            verdicts=verdicts,
            with_expired=with_expired,
        )
        return replace(result, hits=hits)

    def _verdicts(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """What a person said of lines, by path and mark."""
        path = self.values.verdicts
        if not os.path.exists(path):
            return {}
        from plainmind.files.jsonl import objects_in

        latest: dict[tuple[str, int], tuple[str, str, str]] = {}
        with explain_errors("read", path, outcome="verdicts do not count"):
            for found in objects_in(path):
                place = str(found.get("recall")), int(found.get("line", 0))
                latest[place] = str(found.get("path")), str(found.get("mark")), str(found.get("verdict", ""))
        verdicts: dict[tuple[str, str], list[str]] = {}
        for where, mark, verdict in latest.values():
            if verdict:
                verdicts.setdefault((where, mark), []).append(verdict)
        return verdicts

    def _reranker(self, *, deep: bool | None) -> Reranker | None:
        """What looks a second time, if it is wanted here. Raises ConfigError where it is asked for and not there."""
        mode = self.values.rerank.mode
        if mode == "off" and not deep:
            return None
        if self.installed_reranker is None and (deep or mode == "always"):
            from plainmind.base.extras import weights_hint

            raise ConfigError(
                "the reranker is not installed",
                key=None if deep else "rerank.mode",
                hint=f"{weights_hint('plainmind-reranker')} installs it",
            )
        return self.installed_reranker

    @made_once
    def installed_reranker(self) -> Reranker | None:
        """What can look a second time; None where it is not installed."""
        found: Reranker | None = find_by_name(_RERANKER)()
        return found

    def _look_twice(
        self,
        engine: SearchEngine,
        reranker: Reranker,
        query: str,
        *,
        max_results: int | None,
        min_score: float | None,
        **wanted: Any,
    ) -> SearchResult:
        """Let the engine find more than is wanted, and give the best of it after a second look."""
        from plainmind.search.second_look import (
            SECOND_LOOK,
            cut_short,
            let_read,
            look_again,
            what_was_read,
            with_reasons,
        )

        most, rerank = max_results or self.values.max_results, self.values.rerank
        found = engine.search(query, max_results=max(most, rerank.results), min_score=min_score, **wanted)
        if (
            found.hits and found.hits[0].score == 1.0
        ):  # a list of what passes a filter: there is no question to read
            return replace(found, hits=found.hits[:most])
        began = time.perf_counter()
        read, rest = found.hits[: rerank.results], found.hits[rerank.results :]
        try:
            reading = let_read(reranker, query, read, seconds=rerank.seconds)
            name = reranker.name
        except PlainmindError as error:  # its files are damaged; the first look is an answer too
            lacking = (*found.degraded, f"{SECOND_LOOK}: {error}")
            return replace(found, hits=found.hits[:most], degraded=lacking)
        hits = [*look_again(with_reasons(read, reading), reading, query), *rest]
        if min_score is not None:
            hits = [hit for hit in hits if hit.score >= min_score]
        spent = round((time.perf_counter() - began) * 1000, 3)
        return replace(
            found,
            hits=tuple(hits[:most]),
            timings={**found.timings, "rerank": spent, "total": round(found.timings["total"] + spent, 3)},
            degraded=(*found.degraded, *cut_short(reading, rerank.seconds)),
            notes=(*found.notes, what_was_read(reading, name, spent)) if wanted["explain"] else found.notes,
        )

    def _asked_for(self, sources: Sequence[Source] | None) -> tuple[Source, ...]:
        """What a question is put to; conversations are taken in when it is one of them."""
        named: frozenset[str] = frozenset((sources,) if isinstance(sources, str) else sources or self.sources)
        asked_for = known_sources(named)
        if unknown := sorted(named.difference(asked_for)):
            raise PlainmindError(
                f"there is no source `{', '.join(unknown)}`", hint=f"there are {' and '.join(SOURCES)}"
            )
        if "sessions" in asked_for:
            self.take_in_conversations()
        return asked_for

    def _is_restricted(self, query: str, where: SearchFilter, today: date) -> bool:
        from plainmind.search.pages import restricted

        return restricted(query, where, today)[1].only is not None

    def sync(
        self,
        *,
        force: bool = False,
        progress: ProgressCallback | None = None,
        thorough: bool = True,
        wishes: Mapping[str, Any] | None = None,
        view: OpenView | None = None,
    ) -> SyncReport:
        """Bring it up to date, once for all who wait for it at the same time; with wishes, in a run of its own."""
        from plainmind.index.sync import NO_INDEX_YET

        if self._notes.refusal() is not None and not self.has_files():
            self._notes.require_workspace()
        initiative = (wishes or {}).get("initiative", "asked" if thorough else "search")
        report, is_again = None, False
        while report is None:
            try:
                with self._shared.turn(thorough=thorough, alone=force or wishes is not None) as turn:
                    if turn.report is None and self.providers is None:
                        conditions = Conditions(patience=self.patience(initiative))
                        turn.report = self.indexer.sync(
                            force=force,
                            progress=progress,
                            thorough=thorough,
                            conditions=conditions,
                            view=view,
                        )
                    elif turn.report is None:
                        asked = {"initiative": initiative, **(wishes or {})}
                        turn.report = self._sync_by_providers(asked, progress, force=force, thorough=thorough)
                report = turn.report
            except IndexCorrupt:
                if is_again:
                    raise
                # The damaged one is set aside by now, and everything has to be looked at.
                is_again, thorough, view = True, True, None
        damage = self._damage() if report.rebuilt == NO_INDEX_YET else None
        report = replace(report, degraded=(*report.degraded, damage)) if damage else report
        trouble = self._wipe_if_due(initiative)
        report = replace(report, degraded=(*report.degraded, trouble)) if trouble else report
        # An engine takes long: it catches up when a person asked for that, or in a thread of its own.
        is_asked = initiative == "asked"
        backend = self.backend if is_asked else None
        return report if backend is None else _both(report, backend.sync("asked", force=force))

    def sync_in_background(self, *, thorough: bool = True) -> SyncReport:
        """Bring it up to date while no one waits for it; see `sync` of the indexer for what `thorough` means."""
        self._notes.require_workspace()
        return self.sync(thorough=thorough, wishes={"initiative": "background"})

    def watch(self, stop: Event) -> Iterator[SyncReport]:
        """Sync after every change until `stop` is set, yielding what each sync did."""
        from plainmind.notes.watcher import watch

        paths = self._notes.workspace.watched_paths()
        told: str | None = None
        backend = self.backend
        if backend is not None:
            backend.upkeep.begin()
        talks = self._conversations().folder if "sessions" in self.sources else None
        for hint in watch(paths, debounce_ms=self.values.watch_debounce_ms, stop=stop, transcripts=talks):
            try:
                # What changed is known by its name; from time to time the watcher asks for a look at everything.
                report = self.sync_in_background(thorough=hint.cause != "changed")
            except PlainmindError as error:
                # A disk that was unmounted or a lock that is held now need not be so at the next look.
                report = SyncReport(degraded=(str(error),))
            reason = hint.reason if hint.cause == "polling" else None
            if reason is not None and reason != told:  # once, not with every look
                report = replace(report, degraded=(*report.degraded, reason))
            told = reason
            if backend is not None:
                backend.upkeep.notice()
            yield report

    def forget_vectors(self, hashes: Sequence[str]) -> None:
        """Erase vectors of every provider from the cache: it is there even where it is not used any more."""
        if os.path.exists(self.values.cache.path):
            from plainmind.memory.status import open_cache

            with open_cache(self.values.cache) as cache:
                cache.forget(hashes)

    @property
    def has_remains(self) -> bool:
        """Whether words of what was taken out may stand in the bytes of the index."""
        return os.path.exists(os.path.join(self.values.folder, REMOVED))

    @made_once
    def remains(self) -> Remains:
        """What was taken out and still stands in the bytes of the index."""
        from plainmind.index.remains import Remains

        return Remains(self.values.folder, lambda: self._now().timestamp())

    def _note_remains(self) -> None:
        self.remains.note()

    def wipe(self) -> None:
        """Write the index anew, so that no byte of it has a word of what was taken out."""
        began, stamp = time.monotonic(), self.remains.stamp()
        self.store.erase(self._notes.workspace.source)
        self.remains.clear(stamp, time.monotonic() - began)

    def _wipe_if_due(self, initiative: Initiative) -> str | None:
        """Wipe what was taken out if it is time to; after an answer where somebody waits for one. Says what fails."""
        if not self.has_remains:
            return None
        is_due = self.remains.is_due(soon=initiative == "asked")
        if initiative == "search":
            self._is_wiped_at_the_end |= is_due
        elif is_due:
            try:
                self.wipe()
            except PlainmindError as error:
                return f"words of deleted text are still in the files of the index: {error}"
        return None

    def close(self) -> None:
        """Let go of everything that was opened."""
        if self._is_wiped_at_the_end:
            self._is_wiped_at_the_end = False
            with suppress(PlainmindError):  # the next one tries again
                self.wipe()
        for name in ("backend", "store", "embedder", "providers"):
            part = vars(self).get(name)
            if part is not None:
                part.close()

    def _once_for(self, embedder: Embedder, made: dict[Embedder, T], make: Callable[[Embedder], T]) -> T:
        """Make something once for each embedder; one that only says why there is none comes and goes."""
        if self.providers is not None:
            from plainmind.embed.protocol import Withheld

            if isinstance(embedder, Withheld):
                return make(embedder)
        with self.making:
            if embedder not in made:
                made[embedder] = make(embedder)
            return made[embedder]

    def _new_indexer(self, embedder: Embedder, store: IndexStore | None = None) -> Indexer:
        from plainmind.index.sync import Disappearances, Indexer, anyone_builds, one_builder

        sources: list[TextSource] = [*self.more_sources]
        if not any(source.source == "memory" for source in sources):
            sources.insert(0, self._notes.workspace)
        self._has_conversations = self._has_conversations or "sessions" in self.sources
        if self._has_conversations and not self.more_sources:
            sources.append(self._conversations().transcripts)
        return Indexer(
            sources,
            store or self.store,
            embedder,
            self.values.chunking,
            Disappearances(self.values.folder),
            erasures=self._notes.erasures,
            private=self.values.private,
            on_taken_out=self._note_remains,
            building=partial(one_builder, self.values.folder) if store is None else anyone_builds,
        )

    def _new_engine(self, embedder: Embedder) -> SearchEngine:
        from plainmind.search.engine import SearchEngine

        return SearchEngine(self.store, embedder, self.values.ranking())

    def _answering_engine(self) -> SearchEngine:
        """What answers questions: with the embedder that the index was made with, or none."""
        if self.providers is None:
            return self.engine
        return self.engine_with(self.providers.answering(self.made_with()))

    def _catch_up(self, progress: ProgressCallback | None, view: OpenView | None = None) -> SyncReport:
        """Sync before a search, which may go on with the `view` that has shown that nothing is to be done."""
        try:
            report = self.sync(progress=progress, thorough=False, view=view)
            if view is not None and self.providers is None:
                self._look_again(report, view)
        except IndexCorrupt:
            return SyncReport()  # for good: who asks will meet it, and read the files
        except (LockTimeout, StorageFailure, WorkspaceError) as error:
            if not self.has_files():
                raise
            # Yesterday's index answers better than nothing, as long as it says so.
            return SyncReport(degraded=(f"the latest changes may be missing: {error}",))
        else:
            self.left_out = report.skipped
            return report

    def _look_again(self, report: SyncReport, view: OpenView) -> None:
        """After a sync that had something to do, find a view that has it all: others may take files out meanwhile.

        Whoever forgets a line takes its whole file out of the indexes of all agents, who read it again.
        """
        for _ in range(_MOST_LOOKS):
            if view or not (report.indexed or report.removed):
                return
            report = self.sync(thorough=False, view=view)

    @made_once
    def stand_in(self) -> tuple[Indexer, SearchEngine]:
        """What answers when the index is damaged and no other can take its place: one in the memory of the process."""
        from plainmind.index.store import open_store
        from plainmind.search.engine import SearchEngine

        embedder = self.embedder
        if self.providers is not None:
            from plainmind.embed.protocol import NoEmbedder

            embedder = NoEmbedder()  # vectors that cost money, or long, are for an index that stays
        store = open_store("memory")
        return self._new_indexer(embedder, store), SearchEngine(store, embedder, self.values.ranking())

    def _read_files(self, error: IndexCorrupt, progress: ProgressCallback | None) -> Sequence[str]:
        """Make ready what answers in place of the index, and say so."""
        report = self.stand_in[0].sync(progress=progress)
        return *remarks_of(report), f"answered from your files alone, without an index: {error}"

    def _sync_by_providers(
        self, wishes: Mapping[str, Any], progress: ProgressCallback | None, *, force: bool, thorough: bool
    ) -> SyncReport:
        from plainmind.memory.providers import Asked

        assert self.providers is not None
        patience = self.patience(wishes["initiative"])
        asked = Asked(force=force, progress=progress, thorough=thorough, patience=patience, **wishes)
        return self.providers.sync(self, asked)

    def patience(self, initiative: Initiative) -> Patience | None:
        """How much more must be said in a conversation before it is indexed; who asks for a sync waits for nothing.

        A search finds all that was said. Where vectors cost money it finds the newest by its words, until it is due.
        """
        growth = self.values.growth
        if initiative == "asked" or not (self._has_conversations or "sessions" in self.sources):
            return None
        meanwhile: Meanwhile = "words" if initiative == "search" else "left"
        return Patience(meanwhile, growth.more_bytes, growth.more_messages)

    def _damage(self) -> str | None:
        """Say that there was an index, which had to be set aside."""
        recovered = self.store.describe().get("recovered")
        return (
            f"the index was damaged and has been made anew from your files ({recovered})"
            if recovered
            else None
        )

    def _without_secrets(self, result: SearchResult) -> SearchResult:
        """Hide secrets of the settings that were not known yet when a conversation was indexed."""
        if not any(hit.source == "sessions" for hit in result.hits):
            return result
        from plainmind.memory.secrets import without_known_secrets

        return without_known_secrets(result, self._conversations().redactor)

    def _with_remarks(
        self, result: SearchResult, before: SyncReport, asked_for: Sequence[Source]
    ) -> SearchResult:
        """Add to an answer what was not consulted, and what the sync before it had to say."""
        degraded = (*result.degraded, *remarks_of(before), *self._sources_without_files(asked_for))
        if degraded or before.notes:
            result = replace(result, degraded=degraded, notes=(*result.notes, *before.notes))
        if self.providers is None:
            return result
        fallback = before.fallback or self.providers.standing_in(self.made_with())
        return result if fallback is None else replace(result, fallback=fallback)

    def _sources_without_files(self, asked_for: Sequence[Source]) -> tuple[str, ...]:
        """Say that a source that was asked for, and no other, has nothing in the index."""
        if not asked_for or self._notes.workspace.source in asked_for:
            return ()
        with self.store.reading() as reader:
            counts = reader.counts().files
        missing = (source for source in asked_for if not counts.get(source))
        return tuple(f"nothing from `{source}` is indexed" for source in missing)


def _says_since_or_until_when(hit: SearchHit) -> bool:
    """Whether a hit is taken for newer than another, or may say until when it holds: `text/validity.py` knows how."""
    text, above = hit.snippet, hit.headings
    return (
        bool(hit.older)
        or "until 2" in text
        or "expires:" in text
        or "until 2" in above
        or "expires:" in above
    )


def _unwanted(verdicts: Mapping[tuple[str, str], Sequence[str]], asked_in: frozenset[str]) -> Unwanted:
    """What is left out for agents: what has expired, and lines that a person never wants to see again."""
    from plainmind.search.selection import Unwanted

    marks: dict[str, frozenset[str]] = {}
    for (path, mark), said in verdicts.items():
        if "never-again" in said:
            marks[path] = marks.get(path, frozenset()) | {mark}
    return Unwanted(marks, asked_in)


def remarks_of(report: SyncReport) -> tuple[str, ...]:
    """What a person should know about the sync behind an answer."""
    notes = list(report.degraded)
    notes += [f"not indexed: {failure.path}: {failure.reason}" for failure in report.failed]
    if report.withheld:
        notes.append(
            f"{len(report.withheld)} {'file is' if len(report.withheld) == 1 else 'files are'} missing on disk and"
            " still answered from the index, until it is sure that nothing is only unmounted"
        )
    return tuple(notes)


def _both(index: SyncReport, engine: SyncReport) -> SyncReport:
    """What the index did, with what there is to say about the engine beside it."""
    return replace(
        index,
        degraded=(*index.degraded, *engine.degraded),
        notes=(*index.notes, *engine.notes),
        seconds=index.seconds + engine.seconds,
    )
