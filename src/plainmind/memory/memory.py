"""Memory = Notes + Index + Conversations + Policy: all that a program, a tool or a command does goes through here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from plainmind.base.errors import WorkspaceError, path_of
from plainmind.base.lazy import RLock, find_by_name, made_once
from plainmind.base.model import (
    EVERY_SCOPE,
    EXCERPT_LINES,
    Excerpt,
    ProgressCallback,
    SearchResult,
    Source,
    SyncReport,
)
from plainmind.config.load import load_here, make_home
from plainmind.files.safe_open import expand_user
from plainmind.memory import translation

TYPE_CHECKING = False
if TYPE_CHECKING:  # a search needs none of these, and pays for none of them
    from datetime import date, datetime
    from threading import Event
    from typing import Any, Self

    from plainmind.agent.recalls import Asker, RecallLog
    from plainmind.agent.scope import Limits, SearchContext
    from plainmind.base.errors import ConfigError
    from plainmind.config.edit import Row
    from plainmind.config.load import Loaded, Origin
    from plainmind.config.settings import Settings
    from plainmind.embed.cache import Pruned
    from plainmind.embed.protocol import Embedder
    from plainmind.embed.succession import Choice
    from plainmind.files.history import History, Tombstones, Version
    from plainmind.files.system import Erasures
    from plainmind.memory.backend import FallbackBackend
    from plainmind.memory.background import BackgroundSync
    from plainmind.memory.doctor import Check
    from plainmind.memory.forget import StillThere
    from plainmind.memory.index import Index
    from plainmind.memory.indexes import Copied
    from plainmind.memory.providers import Confirm, Providers
    from plainmind.memory.scoped import Policy, ScopedMemory
    from plainmind.memory.sessions import Conversations, ImportReport
    from plainmind.memory.status import CacheStats, Status
    from plainmind.memory.workspace_setup import ExportedFile, ToldAgents
    from plainmind.notes.discovery import Discovery, FoundFile
    from plainmind.notes.links import NoteLinks
    from plainmind.notes.notebook import Edited, Forgotten, Notebook, Remembered, Undone
    from plainmind.notes.source import TextSource
    from plainmind.notes.workspace import Workspace
    from plainmind.redaction.engine import Redactor
    from plainmind.sessions.store import SessionStore

_PROVIDERS = "plainmind.guests.remote.providers:Providers"
_CHOICE = "plainmind.guests.remote.providers:choice_of"
_PREPARE_SERVER = "plainmind.guests.postgres.config:prepare_server"


class Notes:
    """The files of a memory: read, written, and what they were before. A command opens only what it uses."""

    def __init__(self, values: translation.NotesValues, now: Callable[[], datetime]) -> None:
        self.making = RLock()  # again and again: parts are made of parts
        self.values = values
        self._now = now

    @made_once
    def workspace(self) -> Workspace:
        """The files that hold the memory."""
        from plainmind.notes.workspace import Workspace

        values = self.values
        return Workspace(
            values.workspace,
            extra_paths=values.extra_paths,
            max_file_bytes=values.max_file_bytes,
            user_home=values.user_home,
        )

    @made_once
    def history(self) -> History:
        """What the files were before."""
        from plainmind.files.history import History

        values = self.values
        return History(values.history, max_age_days=values.history_days, max_bytes=values.history_bytes)

    @made_once
    def tombstones(self) -> Tombstones:
        """What was forgotten lately."""
        from plainmind.files.history import Tombstones

        return Tombstones(self.values.tombstones)

    @made_once
    def erasures(self) -> Erasures:
        """What keeps forgetting and indexing apart."""
        from plainmind.files.system import Erasures

        return Erasures(self.values.state)

    @made_once
    def notebook(self) -> Notebook:
        """What writes into the files."""
        from plainmind.notes.notebook import Notebook

        return Notebook(
            self.workspace,
            self.history,
            erasures=self.erasures,
            state_dir=self.values.state,
            now=self._now,
        )

    def refusal(self) -> OSError | None:
        """Why the workspace cannot be looked at; it may be only the place where its disk is mounted."""
        try:
            os.close(self.workspace.root.open_folder())
        except OSError as error:
            return error
        return None

    def require_workspace(self) -> None:
        """Raise WorkspaceError when the workspace cannot be looked at."""
        refusal, path = self.refusal(), self.values.workspace
        if refusal is None:
            return
        if not isinstance(refusal, FileNotFoundError | NotADirectoryError):
            raise WorkspaceError(
                f"the workspace `{path}` cannot be read: {refusal.strerror}",
                hint="check its permissions and its disk, or name another with --workspace",
            ) from refusal
        from plainmind.base.errors import shell_word

        if os.path.lexists(path):
            raise WorkspaceError(f"`{path}` is not a folder", hint="name the folder that holds the notes")
        hint = f"`plainmind init {shell_word(path)}` creates one; or mount its disk, or name another with --workspace"
        raise WorkspaceError(f"there is no workspace at `{path}`", hint=hint)

    def require_place(self, count_of_indexed: Callable[[], int]) -> None:
        """Keep a note from landing beneath the disk that the memory is on, where it would not be found again."""
        self.require_workspace()
        if self.workspace.discover().files:
            return
        known = count_of_indexed()
        if known:
            raise WorkspaceError(
                f"`{self.values.workspace}` is empty, but the index knows {known} files of it: its disk may not be"
                " mounted",
                hint="mount it; or, if the files are gone on purpose, run `plainmind sync --force`",
            )

    def close(self) -> None:
        """Let go of the workspace."""
        if "workspace" in vars(self):
            self.workspace.close()


class Memory:
    """The memory that lives in a workspace.

        with Memory("~/notes") as memory:
            memory.remember("the gateway runs at Hetzner")
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
        self._open(workspace, home, config, environ=os.environ, cwd=os.getcwd())

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str],
        *,
        cwd: str,
        workspace: str | None = None,
        home: str | None = None,
        config: Mapping[str, Any] | None = None,
        more_sources: Sequence[TextSource] = (),
        looks_around: bool = True,
        assumed: Mapping[str, Any] | None = None,
        broken: list[ConfigError] | None = None,
    ) -> Self:
        """A memory in another environment, with sources that no setting names; what is `broken` in them is told there.

        Without `looks_around` none in or above `cwd` is taken; what is `assumed` holds where nobody has set it.
        """
        memory = cls.__new__(cls)
        memory._open(  # noqa: SLF001
            workspace,
            home,
            config,
            environ=environ,
            cwd=cwd,
            more_sources=more_sources,
            looks_around=looks_around,
            assumed=assumed,
            broken=broken,
        )
        return memory

    def _open(
        self,
        workspace: str | os.PathLike[str] | None,
        home: str | os.PathLike[str] | None,
        config: Mapping[str, Any] | None,
        *,
        environ: Mapping[str, str],
        cwd: str,
        more_sources: Sequence[TextSource] = (),
        looks_around: bool = True,
        assumed: Mapping[str, Any] | None = None,
        broken: list[ConfigError] | None = None,
    ) -> None:
        """Read the configuration. Nothing else is opened before it is needed."""
        if home is not None:
            chosen = expand_user(path_of(home, "`home`"), environ)
            environ = {**environ, "PLAINMIND_HOME": os.path.abspath(chosen)}
        loaded, resolved = load_here(
            workspace_flag=None if workspace is None else path_of(workspace, "a workspace"),
            cwd=cwd,
            flags=config or {},
            environ=environ,
            looks_around=looks_around,
            assumed=assumed,
            broken=broken,
        )
        self.making = RLock()
        self.environ = environ
        self._loaded: Loaded = loaded
        self._more_sources = more_sources
        self.places = translation.places_of(loaded.settings, resolved, environ)
        self._values = translation.memory_values(loaded, self.places)
        if broken is None:  # else whoever looks for what is wrong finds this, too
            make_home(self.places.home)
        if broken is None and translation.has_parts_that_may_be_missing(loaded.settings):
            _ = self.index.engine  # whatever keeps it from working is said now, not by the first search

    @made_once
    def notes(self) -> Notes:
        """The files."""

        def now() -> datetime:
            return self.now()

        return Notes(translation.notes_values(self.settings, self.places), now)

    @made_once
    def index(self) -> Index:
        """What finds them again."""
        from plainmind.memory.index import Index

        return Index(
            translation.index_values(self._loaded, self.places, self.environ),
            self.notes,
            lambda: self.conversations,
            make_providers=self._make_providers,
            make_backend=self._make_backend,
            explain_provider=self._explain_provider,
            more_sources=self._more_sources,
            now=self.now,
        )

    @made_once
    def conversations(self) -> Conversations:
        """What was said."""
        from plainmind.memory.sessions import Conversations

        return Conversations(translation.conversation_values(self._loaded, self.places, self.environ))

    @made_once
    def policy(self) -> Policy:
        """Who may see what."""
        from plainmind.memory.scoped import Checkpoint, Policy

        checkpoint = Checkpoint(self.notes.workspace.scope_of, self.conversations.scopes)
        return Policy(translation.policy_values(self.settings), checkpoint)

    @made_once
    def recalls(self) -> RecallLog:
        """What agents asked and were given, and what a person thought of it."""
        from plainmind.agent.recalls import RecallLog

        return RecallLog(
            translation.recall_values(self.settings, self.places),
            agent=self.agent_id,
            now=self.now,
            erasures=lambda: self.notes.erasures,
            redact=lambda text: self.redactor().without_secrets(text),
        )

    @property
    def settings(self) -> Settings:
        """The settings, for guests: each translates its own section."""
        return self._loaded.settings

    @property
    def remarks(self) -> tuple[str, ...]:
        """What there is to say about the configuration files."""
        return self._loaded.notes

    def list_settings(self) -> Sequence[Row]:
        """Every setting with its value and where that comes from; of a secret only whether it is set."""
        from plainmind.config.edit import rows

        return rows(self._loaded)

    def choice_of_provider(self) -> Choice:
        """Which provider embeds, and why."""
        choice: Choice = find_by_name(_CHOICE)(self._loaded, self.environ)
        return choice

    def _make_providers(self) -> Providers | None:
        if not translation.needs_providers(self.settings):
            return None
        providers: Providers = find_by_name(_PROVIDERS)(
            self._loaded,
            self.environ,
            home=self.places.home,
            cache=translation.cache_values(self.settings, self.places),
            buried=self.notes.tombstones.is_buried,
        )
        return providers

    def _make_backend(self) -> FallbackBackend | None:
        if self.backend_name == "builtin":
            return None
        from plainmind.memory.backend import make_backend

        return make_backend(self, translation.engine_values(self.settings, self.places))

    def _explain_provider(self, error: ConfigError) -> ConfigError:
        return translation.with_origin_of_provider(error, self._loaded)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Memory({self.places.workspace.path!r})"

    @property
    def workspace(self) -> str:
        """The folder that holds the memory, absolute."""
        return self.notes.workspace.path

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
        paths: Sequence[str] = (),
        tags: Sequence[str] = (),
        since: date | str | None = None,
        until: date | str | None = None,
        deep: bool = False,
        progress: ProgressCallback | None = None,
    ) -> SearchResult:
        """Find the lines that answer a question. Sees every write that came before it.

        `max_results` and `min_score` are those of the settings (6 and 0) when they are left out. A file must match
        one of the globs `paths`, a note must have all `tags`, and days may be given in words ("last monday"). The
        question itself may have `"exact phrases"`, `-words` to avoid, `title:`, `tag:`, `path:`, `since:`, `until:`.
        `deep` lets a model read the best results once more (the extra `rerank`), which takes a third of a second.
        """
        return self.index.search(
            query,
            scopes=EVERY_SCOPE,
            sources=sources,
            max_results=max_results,
            min_score=min_score,
            snippet_chars=snippet_chars,
            explain=explain,
            today=today,
            paths=paths,
            tags=tags,
            since=since,
            until=until,
            deep=deep,
            progress=progress,
        )

    def search_tool_output(self, query: str, *, max_results: int | None = None) -> SearchResult:
        """Find what tools gave in conversations, by its words. It is not indexed: all conversations are read."""
        from plainmind.memory.session_pages import search_tool_output

        most = max_results or self.index.values.max_results
        hits = search_tool_output(self.sessions, self.redactor(), query, most=most)
        return SearchResult(query, hits, "none", "none", "keyword")

    def within(self, context: SearchContext, *, asker: Asker | None = None) -> ScopedMemory:
        """The memory as it may be seen and written in one conversation: `context` says whose, and who reads along.

        `asker` is the program, for the recall log.
        """
        from plainmind.memory.scoped import ScopedMemory

        return ScopedMemory(self, context, asker)

    def get(
        self,
        path: str | os.PathLike[str],
        *,
        first_line: int = 1,
        line_count: int | None = EXCERPT_LINES,
        max_chars: int | None = None,
    ) -> Excerpt:
        """Read lines of a memory file; `path` may be a citation such as `MEMORY.md#L3-L7`, or a link: `[[Note]]`."""
        from plainmind.notes.excerpt import MAX_CHARS, read_excerpt

        if (path := path_of(path, "what to read")).startswith("[["):
            from plainmind.notes.links import locate_link

            path, line = locate_link(self.notes.workspace, path)
            first_line = max(first_line, line)
        of_session = path.removeprefix("./").startswith("sessions/")
        return read_excerpt(
            self.notes.workspace,
            path,
            first_line=first_line,
            line_count=line_count,
            max_chars=MAX_CHARS if max_chars is None else max_chars,
            transcripts=self.conversations.transcripts if of_session else None,
        )

    @property
    def is_folder_of_notes(self) -> bool:
        """Whether all Markdown of the folder is the memory; else it is an agent's workspace."""
        return self.notes.workspace.is_folder_of_notes

    def look(self) -> Discovery:
        """The files of the memory, and what was left out of it and why."""
        self.notes.require_workspace()
        return self.notes.workspace.discover()

    def list(self) -> tuple[FoundFile, ...]:
        """List the files of the memory."""
        return self.look().files

    def links(self, note: str) -> NoteLinks:
        """Which notes a note leads to and which lead to it; `note` is a path, a name, a title or an alias."""
        from plainmind.notes.links import read_links

        self.notes.require_workspace()
        return read_links(self.notes.workspace, note)

    def remember(self, text: str, *, durable: bool = False) -> Remembered:
        """Add a note to today's log, or with `durable` to the curated memory. On disk when this returns."""
        self.require_place_for_notes()
        return self.notes.notebook.remember(text, durable=durable)

    def edit(
        self, path: str, old: str, new: str, *, base_hash: str | None = None, allow_shrink: bool = False
    ) -> Edited:
        """Replace a text that stands exactly once in a file. `history` and `restore` undo it."""
        return self.notes.notebook.edit(path, old, new, base_hash=base_hash, allow_shrink=allow_shrink)

    def write(self, path: str, text: str, *, base_hash: str | None, allow_shrink: bool = False) -> Edited:
        """Give a file a whole new text if `base_hash` is still that of its bytes; None makes a file that is not there.

        Raises ConflictError, and writes nothing, when the file is another one by now.
        """
        self.require_place_for_notes()
        return self.notes.notebook.write(path, text, base_hash=base_hash, allow_shrink=allow_shrink)

    def forget(self, what: str | Forgotten, *, dry_run: bool = False) -> Forgotten:
        """Remove something for good: from the files, the index, the cache, the history and the entry memory.

        `what` is a citation (`memory/2026-02-10.md#L3-L5`), the id of a note or of an entry, or a text: then every
        line that contains it goes, and every entry that has its words. With `dry_run` nothing is changed and the
        answer says what would go; given back as `what`, it is exactly that which goes, or nothing when it has
        changed since.
        """
        from plainmind.memory.forget import forget_everywhere

        self.notes.require_workspace()
        return forget_everywhere(self, what, dry_run=dry_run)

    def history(self, path: str | None = None) -> Sequence[Version]:
        """List what was changed, newest first."""
        return self.notes.history.versions(path)

    def read_version(self, version_id: str) -> bytes:
        """What a file was in a version that `history` lists as available."""
        return self.notes.history.read(version_id)

    def missing_notes(self) -> Sequence[Version]:
        """Notes that were added lately and are in no file any more: an editor may have saved over them.

        `restore` puts one back, by its id; `forget` lets it go for good.
        """
        return self.notes.notebook.missing_notes()

    def keep_version(self, path: str, *, reason: str) -> str:
        """Keep what a file is now, before it is edited by other means; where it is on disk."""
        return self.notes.notebook.keep(path, reason=reason)

    def restore(self, version_id: str) -> Edited:
        """Bring an old version of a file back."""
        self.notes.require_workspace()
        return self.notes.notebook.restore(version_id)

    def undo(self) -> Undone:
        """Take back the latest note, edit or restored version; again, the one before. What was forgotten stays so."""
        self.notes.require_workspace()
        return self.notes.notebook.undo()

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
        self.notes.require_workspace()
        wishes = {"wait": wait, "confirm": confirm} if wait is not None or confirm is not None else None
        return self.index.sync(force=force, progress=progress, wishes=wishes)

    def wipe(self) -> None:
        """Take every word of deleted text out of the bytes of the index now: by itself it happens within an hour."""
        if self.index.has_remains:
            self.index.wipe()

    def watch(self, stop: Event) -> Iterator[SyncReport]:
        """Keep the index up to date until `stop` is set, yielding what each sync did."""
        self.notes.require_workspace()
        return self.index.watch(stop)

    def kept_fresh(self, tell: Callable[[str], None]) -> BackgroundSync:
        """Keep the index up to date in a thread of its own while a `with` block runs, as the settings `sync.*` say.

        `tell` is given each new problem. A search catches up by itself; this is for what lives long, so that a search
        finds little to do.
        """
        from plainmind.memory.background import BackgroundSync

        return BackgroundSync(translation.upkeep_values(self.settings), lambda: self.index, tell)

    def status(self, *, deep: bool = False) -> Status:
        """What is known, where it is kept, and what leaves this machine."""
        from plainmind.memory.status import status_of

        return status_of(self, deep=deep)

    def doctor(self, *, verify: bool = False) -> Sequence[Check]:
        """Look for everything that could be wrong, and say what to do about it."""
        from plainmind.memory.doctor import examine

        return examine(self, verify=verify)

    def export(self) -> Iterator[ExportedFile]:
        """Every file of the memory, with its text."""
        from plainmind.memory.workspace_setup import export_files

        self.notes.require_workspace()
        return export_files(self.notes.workspace)

    def require_place_for_notes(self) -> None:
        """Raise WorkspaceError when a note would land beneath the disk that the memory is on, or where nobody chose."""
        if self.workspace_origin.kind == "here":
            from plainmind.base.errors import shell_word

            raise WorkspaceError(
                f"`{self.workspace}` is searched because you are in it; nothing is written into it unasked",
                hint=f"`plainmind init {shell_word(self.workspace)}` makes a memory of this folder,"
                " `plainmind init ~/.plainmind/workspace` one of your own",
            )

        def count() -> int:
            return self.index.count_of_files()  # which opens the index, where that is needed

        self.notes.require_place(count)

    @property
    def backend_name(self) -> str:
        """What indexes and searches: `builtin`, or the name of an engine beside it."""
        return self._values.backend

    @property
    def home(self) -> str:
        """The folder of all state, of every agent."""
        return self.places.home

    @property
    def agent_id(self) -> str:
        """Whose memory it is."""
        return self._values.agent_id

    @property
    def workspace_origin(self) -> Origin:
        """Why the workspace is this one."""
        return self.places.workspace.origin

    @property
    def sources(self) -> tuple[str, ...]:
        """What is searched when a question does not say: `memory`, and `sessions` once some were imported."""
        values = self._values
        return translation.with_imports(values.sources, values.imports)

    @property
    def has_chosen_sources(self) -> bool:
        """Whether somebody has said what is searched."""
        return self._values.imports is None

    @property
    def shows_citations(self) -> bool:
        """Whether answers name file and lines outside of conversations."""
        return self._values.shows_citations

    @property
    def store_driver(self) -> str:
        """What keeps the index."""
        return self._values.driver

    @property
    def limits(self) -> Limits:
        """How much recalled text may reach a model at once."""
        return self.policy.values.limits

    @property
    def embedder(self) -> Embedder:
        """What turns text into vectors."""
        return self.index.embedder

    @property
    def sends_questions_only(self) -> bool:
        """Whether text leaves this machine to be embedded, and what was said in conversations must not."""
        return self.embedder.sends_text_to is not None and "sessions" in self.index.values.private

    def forget_vectors(self, hashes: Sequence[str]) -> None:
        """Erase vectors of texts from the cache, whether it is in use or not."""
        self.index.forget_vectors(hashes)

    def now(self) -> datetime:
        """The time where the user is."""
        from plainmind.base.model import datetime

        return datetime.now(self._values.zone)

    @property
    def sessions(self) -> SessionStore:
        """The conversations of this agent. They are searched if `sources` has `sessions`, or after an import."""
        return self.conversations.store

    def delete_session(self, name: str) -> tuple[str, ...]:
        """Remove a session or an archive for good, also from every index of this agent; what is no longer cited."""
        from plainmind.memory.forget import delete_session

        return delete_session(self, name)

    def import_sessions(
        self,
        program: str,
        path: str | os.PathLike[str],
        *,
        into_one_agent: bool = False,
        again: bool = False,
        is_rehearsal: bool = False,
        progress: ProgressCallback | None = None,
        clean: Callable[[str], str] | None = None,
    ) -> ImportReport:
        """Copy the conversations of another program; doing so twice adds nothing, and the originals stay as they are.

        `program` is `openclaw`, `claude-code`, `codex` or `messages`. Those of OpenClaw's agents go to the agents here
        that have the same names, unless `into_one_agent`. What was archived or deleted here stays away unless `again`.
        `clean` is given each text, and gives what is kept of it.
        """
        importer = self.conversations.importer(
            program, into_one_agent=into_one_agent, again=again, clean=clean
        )
        return importer.run(expand_user(os.fspath(path)), is_rehearsal=is_rehearsal, progress=progress)

    def follow_sessions(
        self,
        program: str,
        path: str | os.PathLike[str],
        *,
        wait: Callable[[float], bool],
        into_one_agent: bool = False,
    ) -> Iterator[ImportReport]:
        """Import whatever is added, as `import_sessions`, until `wait`, called with seconds, returns true."""
        importer = self.conversations.importer(program, into_one_agent=into_one_agent, again=False)
        return importer.follow(expand_user(os.fspath(path)), wait=wait)

    def redactor(self) -> Redactor:
        """What hides secrets in copies: those of the settings, and what looks like one."""
        return self.conversations.redactor

    def sessions_folder(self, agent: str | None = None) -> str:
        """Where the conversations of an agent are; of this one, if that name could be none of ours."""
        return self.conversations.folder_of(agent)

    def still_there(self, forgotten: Forgotten | Sequence[str]) -> StillThere:
        """Where the text of forgotten lines, or some texts, stand besides: in entries, conversations, typed lines."""
        from plainmind.memory.forget import still_there

        return still_there(self, forgotten)

    def create_workspace(self, *, of_agent: bool = False) -> tuple[str, ...]:
        """Make what is missing of the workspace; the names of what was made. Nothing is overwritten.

        A folder that holds Markdown becomes a folder of notes, all of it the memory; `of_agent` makes `MEMORY.md` and
        `memory/` in it, which are then all that is read.
        """
        from plainmind.memory.workspace_setup import create_workspace

        return create_workspace(self.notes, of_agent=of_agent)

    def tell_agents(self) -> ToldAgents:
        """Put the lines that tell a coding agent to use the memory into the workspace's AGENTS.md."""
        from plainmind.memory.workspace_setup import tell_agents

        return tell_agents(self.notes)

    def text_of(self, found: FoundFile) -> str:
        """The text of a file that `list` names, as it is indexed."""
        return self.notes.workspace.read(found)[0].text

    def cache_stats(self) -> CacheStats:
        """What the cache of embeddings holds; it is shared by all workspaces of this agent."""
        from plainmind.memory.status import cache_stats

        return cache_stats(self.index.values.cache, is_used=self.index.cache is not None)

    def prune_cache(
        self,
        *,
        unused_days: float | None = None,
        provider: str | None = None,
        max_entries: int | None = None,
        max_bytes: int | None = None,
    ) -> Pruned:
        """Drop vectors that were not used for so many days, those of a provider, and the oldest beyond the bounds."""
        from plainmind.memory.status import open_cache

        since = None if unused_days is None else int((self.now().timestamp() - unused_days * 86_400) * 1e9)
        with open_cache(self.index.values.cache) as cache:
            return cache.prune(
                unused_since_ns=since, provider=provider, max_entries=max_entries, max_bytes=max_bytes
            )

    def search_agents(self, query: str, agents: Sequence[str] | None, **wanted: Any) -> SearchResult:
        """Ask the indexes of several agents, of all with None, as they are; `wanted` is what `search` takes too."""
        from plainmind.memory.indexes import search_agents

        return search_agents(self.index, query, agents, now=self.now, **wanted)

    def move_index(
        self, driver: str, *, dsn: str | None = None, progress: ProgressCallback | None = None
    ) -> Copied:
        """Copy the index to another store and make sure that both are equal; the settings say which one answers."""
        from plainmind.memory.indexes import move_index

        def options() -> Mapping[str, str]:
            of_driver = translation.store_options(driver, self.settings, self.environ, dsn=dsn)
            # A replica may be behind, and both indexes are compared.
            return {name: option for name, option in of_driver.items() if name != "read_dsn"}

        return move_index(self.index, driver, options, progress=progress)

    def prepare_server(self, dsn: str | None, *, role: str | None, is_operator: bool = False) -> str:
        """Make the schema of this installation, or bring it up to date, and let a role use it; returns its name."""
        options = translation.store_options("postgres", self.settings, self.environ, dsn=dsn)
        schema: str = find_by_name(_PREPARE_SERVER)(options, role=role, is_operator=is_operator)
        return schema

    def close(self) -> None:
        """Let go of files and locks. Closing twice is fine."""
        for name in ("index", "notes", "conversations"):
            part = vars(self).get(name)
            if part is not None:
                part.close()
