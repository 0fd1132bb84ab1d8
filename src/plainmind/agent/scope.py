"""Who asks, where the answer will be seen, and what of the memory may therefore be seen and written."""

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
