"""The memory within one conversation: who may see what, whether each call may, and a last look at what leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from plainmind.agent.recalls import Asker, BegunRecall, RecalledLines, RecallLog, Witness, best_line_of
from plainmind.agent.scope import NOTHING, Access, SearchContext, access_of
from plainmind.base.errors import NotFound, PathNotAllowed, PlainmindError, ScopeDenied, check_kind
from plainmind.base.lazy import find_by_name, pattern
from plainmind.base.model import (
    EVERY_SCOPE,
    EXCERPT_LINES,
    PRIVATE,
    SHARED,
    Excerpt,
    SearchResult,
    is_transcript,
)
from plainmind.base.value import replace
from plainmind.files.safe_open import check_relative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date
    from typing import Any, Protocol, TypeVar

    from plainmind.agent.scope import Limits
    from plainmind.agent.start_context import StartContext
    from plainmind.base.model import NewerLine, SearchHit, Source
    from plainmind.memory.memory import Memory
    from plainmind.memory.translation import PolicyValues
    from plainmind.notes.discovery import FoundFile
    from plainmind.notes.memory_files import MemoryFiles
    from plainmind.notes.notebook import Edited, Forgotten, Remembered

    class HasPath(Protocol):
        """Whatever says which file it is from."""

        @property
        def path(self) -> str:
            """As cited."""

    T = TypeVar("T", bound=HasPath)


_CITED_LINES = pattern(r"(?:#L|:)[0-9]{1,18}(?:-L?[0-9]{1,18})?\Z")


class Policy:
    """Who may use the memory where, and the last look at what leaves it."""

    def __init__(self, values: PolicyValues, checkpoint: Checkpoint) -> None:
        self.values = values
        self.checkpoint = checkpoint

    def access_of(self, context: SearchContext) -> Access:
        """What a context may see and write: nothing, where agents do not get the memory."""
        if not self.values.enabled:
            return Access(
                is_allowed=False, reason="the memory is switched off for agents: `enabled` is false"
            )
        return access_of(context, self.values.rules, self.values.default)

    def shows_citations(self, context: SearchContext) -> bool:
        """Whether answers name file and lines; `auto` means in direct chats."""
        wanted = self.values.citations
        return wanted == "on" or (wanted == "auto" and context.chat_type == "direct")


class Checkpoint:
    """Tells anew, from where a file lies and not from the index, who may see it."""

    def __init__(self, scope_of_file: Callable[[str], str], scope_of_session: Callable[[str], str]) -> None:
        self._scope_of_file = scope_of_file
        self._scope_of_session = scope_of_session
        self.withheld = 0  # what a filter before this let through; anything but 0 is a fault

    def scope_of(self, path: str) -> str:
        """Who may see a file with this cited path, whether it exists or not."""
        try:
            check_relative(path)
        except PathNotAllowed:
            return PRIVATE  # `memory/shared-with/everyone/../../../MEMORY.md`
        return self._scope_of_session(path) if is_transcript(path) else self._scope_of_file(path)

    def admits(self, access: Access, path: str) -> bool:
        """Whether a context may see a file."""
        return access.sees_everything or access.may_see(self.scope_of(path))

    def passed(self, access: Access, found: Iterable[T], what: str) -> tuple[T, ...]:
        """Let through what may be seen. The rest should never have come this far, which is said aloud."""
        found = tuple(found)
        passed = tuple(one for one in found if self.admits(access, one.path))
        if len(passed) < len(found):
            self._report(len(found) - len(passed), what)
        return passed

    def require(self, access: Access, path: str) -> None:
        """Raise ScopeDenied, in the same words whether the file exists or not."""
        if not access.is_allowed:
            raise denial(access)
        if not self.admits(access, path):
            raise ScopeDenied(
                "that file is not for this conversation",
                hint="only what was shared with it can be read here; search shows what there is",
            )

    def _report(self, count: int, what: str) -> None:
        import logging

        self.withheld += count
        logging.getLogger(__name__).error(
            "%d of what %s gave was not for this conversation, and was withheld; the index may be damaged",
            count,
            what,
        )


def file_of(citation: str) -> str:
    """The path in a citation: `MEMORY.md` of `./MEMORY.md#L3-L7`."""
    return _CITED_LINES.sub("", citation).removeprefix("./")


def denial(access: Access) -> ScopeDenied:
    """Say that a context may not use the memory at all, and why."""
    return ScopeDenied(
        access.reason or "nothing may be done here",
        hint="`scope.rules` in the settings decides where it may be used",
    )


_MEMORY_TOOL = "plainmind.guests.integrations.memory_tool:MemoryTool"


class ScopedMemory:
    """What a context may see and write of a memory, as `AgentMemory` promises it.

        memory.within(SearchContext("anna", "group", "agent:main:telegram:group:-100", group="-100"))

    Safe to share between threads; it is closed with the memory that it is of.
    """

    def __init__(self, memory: Memory, context: SearchContext, asker: Asker | None = None) -> None:
        check_kind(context, "who asks", SearchContext, "a SearchContext")
        self._memory = memory
        self.context = context
        self.asker = asker or Asker("python")
        self.access: Access = memory.policy.access_of(context)

    def for_asker(self, asker: Asker) -> ScopedMemory:
        """The same, asked by another program: the recall log tells them apart."""
        return ScopedMemory(self._memory, self.context, asker)

    @property
    def shows_citations(self) -> bool:
        """Whether answers name file and lines; `auto` means in direct chats."""
        return self._memory.policy.shows_citations(self.context)

    @property
    def limits(self) -> Limits:
        """How much recalled text may reach a model at once."""
        return self._memory.policy.values.limits

    @property
    def recalls(self) -> RecallLog:
        """What was recalled in conversations like this one; all of it for the owner."""
        log, access = self._memory.recalls, self.access
        if access.sees_everything:
            return log
        own = access.scopes - {SHARED, NOTHING} if access.is_allowed else frozenset[str]()
        checkpoint = self._memory.policy.checkpoint
        return log.seen_by(Witness(own.__contains__, lambda path: checkpoint.admits(access, path)))

    def begin_recall(self, kind: str, question: str = "", *, asker: Asker | None = None) -> BegunRecall:
        """Begin to answer an agent: what is given to it then goes into the recall log. Never raises."""
        return self._memory.recalls.begin(kind, question, asker or self.asker, self.access.writes)

    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        paths: Sequence[str] = (),
        tags: Sequence[str] = (),
        since: str | None = None,
        until: str | None = None,
        deep: bool | None = None,
        with_expired: bool = False,
        asked_in: Iterable[str] = (),
        shown_from: float = 0.0,
        sources: Sequence[Source] | None = None,
        snippet_chars: int | None = None,
        explain: bool = False,
        today: date | None = None,
        scopes: frozenset[str] = EVERY_SCOPE,
    ) -> SearchResult:
        """Find the lines that answer a question, among what may be seen here, and of that in `scopes` alone.

        With None it looks twice where that is installed: agents have the time, and act on what they read. What has
        expired is left out for them, and what a person never wants to see again; `with_expired` is for people. The
        transcripts of the conversation it is `asked_in` have no answer that is not known there. A hit below the score
        `shown_from` comes as its best line alone: who looks for secrets in a whole file takes as long as who searches.
        """
        with self._telling_only_its_own():
            limits = self.limits
            result = self._memory.index.search(
                query,
                scopes=_narrowed(self.access.scopes, scopes),
                sources=sources,
                max_results=max_results or limits.max_results,
                min_score=min_score,
                snippet_chars=snippet_chars or limits.max_snippet_chars,
                explain=explain,
                today=today,
                paths=paths,
                tags=tags,
                since=since,
                until=until,
                deep=deep,
                with_expired=with_expired,
                asked_in=asked_in,
            )
        hits = self._memory.policy.checkpoint.passed(self.access, result.hits, "a search")
        shown = tuple(
            self._as_shown(hit) if hit.score >= shown_from else self._as_best_line(hit) for hit in hits
        )
        return self._without_others_names(replace(result, hits=shown))

    def _as_shown(self, hit: SearchHit) -> SearchHit:
        """A hit without secrets, and without what may not be seen here."""
        passed = self._memory.policy.checkpoint.passed
        return replace(
            hit,
            snippet=self._shown(hit.path, hit.snippet, hit.source),
            headings=self._shown(hit.path, hit.headings, hit.source) if hit.headings else "",
            also=passed(self.access, hit.also, "a search"),
            newer=hit.newer and self._shown_newer(hit.newer),
            older=passed(self.access, hit.older, "a search"),
        )

    def _as_best_line(self, hit: SearchHit) -> SearchHit:
        """What the recall log wants of a hit that nobody will read."""
        line = self.hide_secrets(best_line_of(hit))
        return replace(hit, snippet=line, headings="", also=(), newer=None, older=())

    def get(
        self,
        path: str,
        *,
        first_line: int = 1,
        line_count: int | None = EXCERPT_LINES,
        max_chars: int | None = None,
    ) -> Excerpt:
        """Read lines of a file; `path` may be a citation. What may not be read here is denial, existing or not."""
        with self._telling_only_its_own():
            self._memory.policy.checkpoint.require(self.access, file_of(path))
            found = self._memory.get(path, first_line=first_line, line_count=line_count, max_chars=max_chars)
        # What was read is what was asked for, unless some spelling of a path leads elsewhere.
        self._memory.policy.checkpoint.require(self.access, found.path)
        return replace(found, text=self._shown(found.path, found.text))

    def list(self) -> tuple[FoundFile, ...]:
        """List the memory files that may be seen here."""
        with self._telling_only_its_own():
            self._memory.notes.require_workspace()
            files = self._memory.notes.workspace.discover().files
            seen = (found for found in files if self.access.may_see(found.scope))
            return self._memory.policy.checkpoint.passed(self.access, seen, "the list of files")

    def append(self, text: str, *, note_id: str | None = None, durable: bool = False) -> Remembered:
        """Add a note to today's log of the context's own scope, or with `durable` to the owner's `MEMORY.md`."""
        with self._telling_only_its_own():
            self._require_writing()
            self._memory.require_place_for_notes()
            if durable:
                self._require_curated()
                return self._memory.notes.notebook.remember(text, durable=True, note_id=note_id)
            return self._memory.notes.notebook.remember_for(self.access.writes, text, note_id=note_id)

    def edit(
        self, path: str, old: str, new: str, *, base_hash: str | None = None, allow_shrink: bool = False
    ) -> Edited:
        """Replace a text that stands exactly once in a file; other than the owner, only in the context's own notes."""
        with self._telling_only_its_own():
            self._require_writing()
            self._memory.require_place_for_notes()
            file = file_of(path)
            self._memory.policy.checkpoint.require(self.access, file)
            is_own = self._own_files()
            if is_own is not None and not is_own(file):
                raise ScopeDenied("that file cannot be changed in this conversation")
            from plainmind.redaction.findings import marks_in

            if len(marks_in(new)) > len(marks_in(old)):
                raise PlainmindError(
                    "`new` holds the mark of a secret that is hidden here: it would take the secret's place",
                    hint="replace only the words before or after it",
                )
            return self._memory.notes.notebook.edit(
                file, old, new, base_hash=base_hash, allow_shrink=allow_shrink
            )

    def forget(self, what: str | Forgotten, *, dry_run: bool = False) -> Forgotten:
        """Remove lines for good, as `Memory.forget` does; other than the owner, only from the context's own notes."""
        from plainmind.memory.forget import Forgetting

        with self._telling_only_its_own():
            self._require_writing()
            self._memory.notes.require_workspace()
            forgetting = Forgetting(self._memory, self._own_files())
            chosen = forgetting.select(what) if isinstance(what, str) else what
            lines = self._memory.policy.checkpoint.passed(self.access, chosen.lines, "a choice of lines")
            if len(lines) < len(chosen.lines):
                raise ScopeDenied("lines of that file cannot be forgotten in this conversation")
            if dry_run:
                return chosen
            return forgetting.apply(chosen, self._memory.index.sync_in_background)

    def status(self) -> Mapping[str, Any]:
        """Facts, ready for JSON; places on disk and counts of what others see are for the owner only."""
        with self._telling_only_its_own():
            return facts_for(self._memory, self.context, self.access)

    def start_context(self, *, max_chars: int | None = None) -> StartContext:
        """What a session begins with, fenced as data: for a user's turn, never for the system prompt.

        `max_chars` is for a host that takes less than the settings allow.
        """
        from plainmind.agent.recall import new_nonce
        from plainmind.agent.start_context import start_context

        with self._telling_only_its_own():
            self._memory.notes.require_workspace()
            begun = start_context(
                self.access,
                self._memory.now().date(),
                self._text_to_show,
                max_chars=min(self.limits.max_start_chars, max_chars or self.limits.max_start_chars),
                nonce=new_nonce(),
            )
        for path in (*begun.paths, *begun.truncated):
            self._memory.policy.checkpoint.require(self.access, path)
        return begun

    def memory_files(self) -> MemoryFiles | None:
        """The notes that may be written here, as files by name: all of them for the owner, else its own; None: none."""
        from plainmind.notes.memory_files import MemoryFiles, VeiledFiles
        from plainmind.notes.scopes import folder_of_scope

        access, memory = self.access, self._memory
        # All notes are only for who may see all of them: a scope without a folder is no reason to open it.
        folder = "memory" if access.sees_everything else folder_of_scope(access.writes)
        if access.writes == NOTHING or folder is None:
            return None
        named: dict[str, Any] = {
            "erasures": memory.notes.erasures,
            "state_dir": memory.places.state,
            "folder": folder,
        }
        place = memory.notes.workspace, memory.notes.history
        if self._hides_secrets:
            return VeiledFiles(*place, **named, redact=memory.redactor().redact)
        return MemoryFiles(*place, **named)

    def note_change(self, gone: Sequence[str]) -> None:
        """Let the index know that files were changed, and that these are gone."""
        index = self._memory.index
        # Gone on purpose: it need not be asked first whether a disk is not mounted.
        with index.store.joined():
            for path in gone:
                index.store.remove_file("memory", path)
        index.sync_in_background()

    def memory_tool(self) -> Any:
        """Claude's memory tool, on the notes that may be written here."""
        tool, files = find_by_name(_MEMORY_TOOL), self.memory_files()
        if files is None:
            reason = self.access.reason or "nothing can be written"
            return tool(None, refusal=f"The memory cannot be used here: {reason}.")

        def viewed(name: str, first: int, last: int, text: str) -> None:
            recall = self.begin_recall(
                "read", asker=Asker("memory tool", self.asker.host, self.asker.session)
            )
            recall.end([RecalledLines(files.citation_of(name), first, last)], text)

        changing = self._memory.require_place_for_notes
        return tool(files, changing=changing, changed=self.note_change, viewed=viewed)

    def hide_secrets(self, text: str) -> str:
        """A text as it may reach an agent: without secrets, unless the settings say otherwise."""
        return self._memory.redactor().without_secrets(text) if self._hides_secrets else text

    @property
    def _hides_secrets(self) -> bool:
        return self._memory.policy.values.hides_secrets

    def _shown(self, path: str, part: str, source: str = "memory") -> str:
        """A part of a file without its secrets: the whole file tells what is one, a part may have lost its name."""
        if not self._hides_secrets:
            return part
        from plainmind.memory.secrets import part_without_secrets

        is_note = source == "memory" and not is_transcript(path)
        whole = self._whole_text(path) if is_note else None
        return part_without_secrets(part, whole, self._memory.redactor())

    def _shown_newer(self, newer: NewerLine) -> NewerLine | None:
        """The line that holds now, where it may be seen here; nothing filtered it before."""
        if not self._memory.policy.checkpoint.admits(self.access, newer.path):
            return None
        return replace(newer, text=self._shown(newer.path, newer.text)) if newer.text else newer

    def _text_to_show(self, path: str) -> str | None:
        text = self._whole_text(path)
        return text and self.hide_secrets(text)

    def _whole_text(self, path: str) -> str | None:
        self._memory.policy.checkpoint.require(self.access, path)
        try:
            document, _ = self._memory.notes.workspace.read(path)
        except NotFound:
            return None
        except PathNotAllowed:
            if self.access.sees_everything:
                raise
            return None  # how the owner keeps it is not for others
        return document.text

    def _own_files(self) -> Callable[[str], bool] | None:
        """Which files may be changed; None: every one."""
        if self.access.sees_everything:
            return None
        scope_of, own = self._memory.policy.checkpoint.scope_of, self.access.writes
        return lambda path: scope_of(path) == own

    def _require_writing(self) -> None:
        if self.access.writes == NOTHING:
            raise ScopeDenied(
                "nothing can be written in this conversation",
                hint="only the owner, a group or a person that is known by name can",
            )

    def _require_curated(self) -> None:
        if not self.access.sees_everything or self.access.writes != PRIVATE:
            raise ScopeDenied(
                "only the owner's own memory has a part for what stays true", hint="leave `durable` out"
            )

    def _without_others_names(self, result: SearchResult) -> SearchResult:
        """Leave out what names files, folders and addresses: they are the owner's."""
        if self.access.sees_everything:
            return result
        degraded = tuple(dict.fromkeys(map(_without_places, result.degraded)))
        fallback = result.fallback and {**result.fallback, "reason": "the first provider does not answer"}
        return replace(result, degraded=degraded, notes=(), fallback=fallback)

    @contextmanager
    def _telling_only_its_own(self) -> Iterator[None]:
        """Deny what is denial; and keep out of errors what only the owner may read: paths, and what else exists."""
        if not self.access.is_allowed:
            raise denial(self.access)
        try:
            yield
        except ScopeDenied:
            raise
        except PlainmindError as error:
            if self.access.sees_everything:
                raise
            raise _without_names(error) from None


def _narrowed(seen: frozenset[str], wanted: frozenset[str]) -> frozenset[str]:
    """The scopes that may be seen and are wanted; there may be none."""
    if wanted == EVERY_SCOPE:
        return seen
    return wanted if seen == EVERY_SCOPE else seen & wanted


def _without_places(lacking: str) -> str:
    """Say what an answer lacks as others than the owner may know it."""
    from plainmind.search.second_look import CUT_SHORT

    return lacking if lacking.startswith(CUT_SHORT) else "a part of the memory could not be consulted"


def _without_names(error: PlainmindError) -> PlainmindError:
    """Say as much about a failure as others than the owner may know; the log has the rest."""
    if type(error) is PlainmindError:
        return error  # about what was asked or given, and about nothing that is kept
    if isinstance(error, NotFound | PathNotAllowed):
        return NotFound("there is no such thing in what this conversation may see")
    import logging

    logging.getLogger(__name__).warning("in a conversation of others than the owner: %s", error)
    ours = (kind for kind in type(error).__mro__ if kind.__module__ == PlainmindError.__module__)
    kind: type[PlainmindError] = next(ours)
    return kind("the memory could not do this just now", hint="its owner finds the reason in the log")


def facts_for(memory: Memory, context: SearchContext, access: Access) -> dict[str, Any]:
    """Facts, ready for JSON, with what the context may see and write."""
    from plainmind.memory.status import index_of, status_of

    scope = {
        "chatType": context.chat_type,
        "sees": sorted(access.scopes),
        "writes": access.writes,
        "withheld": memory.policy.checkpoint.withheld,
    }
    if access.sees_everything:
        return {**status_of(memory, deep=False).facts, "scope": scope}
    index = index_of(memory.index)
    made = index.made
    seen = [state for state in index.known.values() if access.may_see(state.scope)]
    files = len(memory.policy.checkpoint.passed(access, seen, "the index"))
    return {
        "backend": memory.backend_name,
        "provider": made.embedder.provider if made else "none",
        "model": made.embedder.model if made else "",
        "files": None if index.trouble else files,
        # Which server it is, and what it says, is for the owner.
        "store": {} if index.trouble is None else {"problem": "the index cannot be asked just now"},
        "sources": list(memory.sources),
        "scope": scope,
    }
