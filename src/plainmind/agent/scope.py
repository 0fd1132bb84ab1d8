"""Who asks, where the answer will be seen, what may thus be seen and written, and the memory that an agent then has."""

from __future__ import annotations

from collections.abc import Sequence

from plainmind.base.model import EVERY_SCOPE, PRIVATE, SHARED
from plainmind.base.value import replace, value
from plainmind.notes.scopes import (
    channel_in_key,
    folder_of_scope,
    group_in_key,
    group_scope,
    hints_at_a_group,
    person_in_key,
    person_scope,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    from plainmind.agent.answers import ToolAnswer
    from plainmind.agent.recalls import Asker, BegunRecall
    from plainmind.agent.start_context import StartContext
    from plainmind.agent.tool_calls import Call
    from plainmind.agent.tools import Tool
    from plainmind.base.model import Excerpt, SearchResult
    from plainmind.notes.notebook import Edited, Forgotten, Remembered
else:
    Protocol = object


class Owner:
    """The person whose memory it is: no text, so that no id, nick or key that a channel brings along can be it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "OWNER"

    def __reduce__(self) -> str:
        return "OWNER"  # a copy is the same one


OWNER = Owner()
NOTHING = ""  # the scope of notes where none may be written

_MANY = frozenset({"group", "channel"})


@value
class SearchContext:
    """Who asks, and where the answer will be seen. Whoever calls must say: an unknown fact is "", and opens nothing."""

    principal: (
        Owner | str
    )  # OWNER, which only the program itself can say; else the id that a channel gave somebody
    chat_type: str  # "direct", "group" or "channel"; "" for jobs and agents that talk to nobody
    session_key: str  # "" when there is no session
    channel: str = ""  # "telegram"
    group: str = ""  # id of the group or channel


THE_OWNER = SearchContext(OWNER, "direct", "")  # a person at their own machine


@value
class Rule:
    """One line of `scope.rules`; a condition that is None matches everything."""

    action: str  # "allow" or "deny"
    chat_type: str | None = None
    channel: str | None = None
    key_prefix: str | None = None

    def matches(self, context: SearchContext) -> bool:
        """Whether all its conditions hold."""
        return (
            self.chat_type in {None, context.chat_type}
            and (self.channel is None or self.channel.casefold() == context.channel.casefold())
            and (self.key_prefix is None or context.session_key.startswith(self.key_prefix))
        )


@value
class Access:
    """What may be done in a context."""

    is_allowed: bool
    reason: str = ""  # a sentence, said when it is denied
    scopes: frozenset[str] = frozenset()  # EVERY_SCOPE, or those that may be seen
    writes: str = NOTHING  # the scope that notes get: "private", "telegram/group:…", "person:…"

    def may_see(self, scope: str) -> bool:
        """Whether files of a scope may be shown."""
        return self.is_allowed and (self.scopes == EVERY_SCOPE or scope in self.scopes)

    @property
    def sees_everything(self) -> bool:
        """Whether it is the owner's own."""
        return self.is_allowed and self.scopes == EVERY_SCOPE


def access_of(context: SearchContext, rules: Sequence[Rule], default: str) -> Access:
    """Decide what a context may do: first whether a rule lets it in at all, then what is meant for it."""
    context = _complete(context)
    rule = next((rule for rule in rules if rule.matches(context)), None)
    if (rule.action if rule else default) != "allow":
        return _denial(_why_not_allowed(context))
    if context.chat_type == "direct":
        return _of_direct_chat(context)
    if context.chat_type in _MANY:
        return _of_group(context)
    if context.chat_type:
        return _denial(f"`{context.chat_type[:40]}` is no kind of chat that is known here")
    return _of_unknown_chat(context, rule)


def _complete(context: SearchContext) -> SearchContext:
    """Take from the key what nobody said: a key must never open more than the chat that it is of."""
    group = context.group or group_in_key(context.session_key) or ""
    channel = context.channel.strip() or channel_in_key(context.session_key) or ""
    return replace(
        context, chat_type=context.chat_type or ("group" if group else ""), channel=channel, group=group
    )


def _of_unknown_chat(context: SearchContext, rule: Rule | None) -> Access:
    """Jobs and agents that talk to nobody: only those whose kind of key somebody has thought of."""
    if rule is None or not rule.key_prefix:
        return _denial("it is not known where the answer will be seen")
    if isinstance(context.principal, Owner):
        return _everything(context)
    return Access(is_allowed=True, scopes=frozenset({SHARED}))


def _of_direct_chat(context: SearchContext) -> Access:
    if context.group:
        return _denial("the chat is said to be direct, but names a group")
    if not context.principal:
        return _denial("it is not known who asks")
    if isinstance(context.principal, Owner):
        return _everything(context)
    # Whether a chat is in one channel or goes on in all of them, its key knows: its transcript has the same scope.
    is_told = person_in_key(context.session_key) is not None
    channel = (channel_in_key(context.session_key) or "") if is_told else context.channel
    return _for_their_own(person_scope(context.principal, channel), person_scope(context.principal))


def _everything(context: SearchContext) -> Access:
    if hints_at_a_group(context.session_key):
        return _denial("the session key hints at a group that may read along")
    return Access(is_allowed=True, scopes=EVERY_SCOPE, writes=PRIVATE)


def _of_group(context: SearchContext) -> Access:
    if not context.group:
        return _denial(f"it is not known which {context.chat_type} asks")
    return _for_their_own(group_scope(context.group, context.channel), group_scope(context.group))


def _for_their_own(scope: str, in_all_channels: str) -> Access:
    """What is theirs in this channel, and what somebody put down for that id without saying in which."""
    if folder_of_scope(scope) is None:
        return _denial("its id or its channel has no name to keep notes by, or one that is too long")
    return Access(is_allowed=True, scopes=frozenset({SHARED, scope, in_all_channels}), writes=scope)


def _why_not_allowed(context: SearchContext) -> str:
    where = f"a {context.chat_type[:40]} chat" if context.chat_type else "a conversation of unknown kind"
    return f"the memory may not be used in {where} here (`scope.rules`)"


def _denial(reason: str) -> Access:
    return Access(is_allowed=False, reason=reason)


@value
class Limits:
    """How much recalled text may reach a model at once."""

    max_results: int = 6
    max_snippet_chars: int = 700
    max_injected_chars: int = 4000  # all snippets of one answer together
    max_start_chars: int = 20_000  # what a session begins with
    timeout_ms: int = 4000  # longest wait for an answer


class Tools(Protocol):
    """A box of tools, of the notes or of a guest: whoever has one need not know what is behind it."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What can be called."""

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolAnswer:
        """Carry out one call; a mistake of the model is an answer, never an exception."""

    def prepare(self, name: str, arguments: Mapping[str, Any] | str) -> Call:
        """A call for a caller that has threads of its own."""

    def close(self) -> None:
        """Wait for calls that are still running."""


class TurnHooks(Protocol):
    """What happens by itself around a turn. What fails there is told, and costs no turn."""

    def before(self, messages: Sequence[Mapping[str, Any]], tell: Callable[[str], None]) -> str:
        """What the model is reminded of in this turn: data, for a user's turn; "" mostly.

        It is not for the transcript: what is forgotten would stay there.
        """

    def after(self, messages: Sequence[Mapping[str, Any]], tell: Callable[[str], None]) -> None:
        """Look at a turn that was answered just now."""


class AgentMemory(Protocol):
    """What tools, flush and agents use. Whatever a context may not do raises ScopeDenied, and never tells what exists.

    Everything that comes out was filtered in the query and is checked once more where it leaves.
    """

    @property
    def context(self) -> SearchContext:
        """Who asks, and where the answer will be seen."""

    @property
    def access(self) -> Access:
        """What that allows."""

    @property
    def shows_citations(self) -> bool:
        """Whether answers name file and lines: `citations`, where `auto` means in direct chats."""

    @property
    def limits(self) -> Limits:
        """How much recalled text may reach a model at once."""

    def begin_recall(self, kind: str, question: str = "", *, asker: Asker | None = None) -> BegunRecall:
        """Begin to answer an agent: whoever gives it text ends this with what was given. Never raises.

        `kind` is "search", "read" or "start".
        """

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
        asked_in: Iterable[str] = (),
        shown_from: float = 0.0,
    ) -> SearchResult:
        """Find the lines that answer a question, among what may be seen here, as `Memory.search` does.

        With `deep` None it looks twice where that is installed. The transcripts of the conversation that it is
        `asked_in` are left out. A hit below the score `shown_from` will not be shown, and comes as its best line alone.
        """

    def get(
        self, path: str, *, first_line: int = 1, line_count: int | None = 120, max_chars: int | None = None
    ) -> Excerpt:
        """Read lines of a file; a citation is understood too."""

    def append(self, text: str, *, note_id: str | None = None, durable: bool = False) -> Remembered:
        """Add a note to today's log of the context's own scope, or with `durable` to the owner's curated memory.

        On disk when this returns.

        A `note_id` that already stands in a log of that scope is not written again: its place is answered. Raises
        ConflictError for one that was written and removed since.
        """

    def edit(self, path: str, old: str, new: str) -> Edited:
        """Replace a text that stands exactly once in a file that may be written here; the history keeps what it was."""

    def forget(self, what: str | Forgotten, *, dry_run: bool = False) -> Forgotten:
        """Remove lines for good, among what may be written here; with `dry_run` only say which."""

    def status(self) -> Mapping[str, Any]:
        """Facts, ready for JSON; places on disk and counts of what others see are for the owner only."""

    def hide_secrets(self, text: str) -> str:
        """A text as it may reach an agent: without secrets, unless the settings say otherwise."""

    def start_context(self) -> StartContext:
        """What a session begins with: the curated memory if it is private, and the logs of the last two days."""
