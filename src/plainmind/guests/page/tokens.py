"""Who may ask, and for what: named tokens that are kept, and codes and sessions of the page that are not."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock

from plainmind.agent.scope import OWNER, THE_OWNER, Owner, SearchContext
from plainmind.base.errors import NotFound, PlainmindError
from plainmind.base.lazy import pattern
from plainmind.base.model import sha256_text
from plainmind.base.value import replace, value
from plainmind.files.atomic import write_atomically
from plainmind.files.system import explain_errors, hold_lock, lock_path_for, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RIGHTS = ("read", "write", "forget", "review")
_NAME = pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST_BYTES = 1 << 20
_CODE_SECONDS = 60.0
_SESSION_SECONDS = 12 * 3600.0  # after it was last used
_LONGEST_SECONDS = 7 * 24 * 3600.0
_MOST_CODES, _MOST_SESSIONS = 32, 256


@value
class Caller:
    """Who asks: a name for people, what may be done, and whose memory it is to them."""

    name: str
    rights: frozenset[str]
    context: SearchContext
    is_page: bool = False
    is_named: bool = False  # by a token that is kept
    expires_at: float | None = None  # seconds since 1970

    @property
    def is_owner(self) -> bool:
        """Whether everything may be seen."""
        return isinstance(self.context.principal, Owner)


@value
class NamedToken:
    """A token as it is kept: only its hash, so that nobody who reads the file can use it."""

    name: str
    hash: str
    rights: tuple[str, ...]
    context: SearchContext
    created_at: str


class TokenFile:
    """The named tokens of a home, in one file that only its owner can read. Another process may change it."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._path = os.path.join(home, "page", "tokens.json")
        self._known: tuple[tuple[int, int, int] | None, tuple[NamedToken, ...]] = (None, ())

    def all(self) -> tuple[NamedToken, ...]:
        """Every token, as the file is now."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return ()
        seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._known
        if known[0] != seen:
            known = self._known = (seen, self._read())
        return known[1]

    def add(self, name: str, rights: Sequence[str], context: SearchContext, created_at: str) -> str:
        """Make a token and keep its hash; this is the only time that it can be read. Raises PlainmindError."""
        if not _NAME.fullmatch(name):
            raise PlainmindError(
                f"`{name[:80]}` is no name for a token", hint="use letters, digits, `-`, `_` and `.`"
            )
        token = f"pm_{secrets.token_urlsafe(32)}"
        made = NamedToken(name, sha256_text(token), tuple(rights), context, created_at)
        with self._hold("add a token"):
            known = self.all()
            if any(one.name == name for one in known):
                raise PlainmindError(
                    f"there is a token `{name}` already", hint=f"`plainmind tokens revoke {name}` removes it"
                )
            self._write((*known, made))
        return token

    def revoke(self, name: str) -> None:
        """Remove a token; a running server refuses it from now on. Raises NotFound."""
        with self._hold("revoke a token"):
            known = self.all()
            left = tuple(one for one in known if one.name != name)
            if len(left) == len(known):
                names = ", ".join(one.name for one in known)
                raise NotFound(
                    f"there is no token `{name[:80]}`",
                    hint=f"there are: {names}" if names else "there are none",
                )
            self._write(left)

    def find(self, token: str) -> Caller | None:
        """Whose token it is."""
        hashed = sha256_text(token)
        found = next((one for one in self.all() if one.hash == hashed), None)
        return (
            None
            if found is None
            else Caller(found.name, frozenset(found.rights), found.context, is_named=True)
        )

    def _hold(self, operation: str) -> Any:
        return hold_lock(lock_path_for(self._home, self._path), operation=operation)

    def _read(self) -> tuple[NamedToken, ...]:
        with explain_errors("read", self._path):
            data = read_file(self._path, most=_MOST_BYTES)
        try:
            return tuple(_token_of(facts) for facts in json.loads(data)["tokens"])
        except (ValueError, KeyError, TypeError) as error:
            raise PlainmindError(
                f"{self._path} cannot be understood", hint="remove it, and add the tokens again"
            ) from error

    def _write(self, tokens: Sequence[NamedToken]) -> None:
        facts = {"tokens": [_facts_of(one) for one in tokens]}
        write_atomically(self._path, json.dumps(facts, indent=2).encode() + b"\n", mode=0o600)


def _facts_of(token: NamedToken) -> dict[str, Any]:
    context = token.context
    return {
        "name": token.name,
        "sha256": token.hash,
        "rights": list(token.rights),
        "createdAt": token.created_at,
        "context": context_facts(context),
    }


def context_facts(context: SearchContext) -> dict[str, Any]:
    """A context as JSON; the owner is no text, so that no id can be taken for them."""
    is_owner = isinstance(context.principal, Owner)
    return {
        "owner": is_owner,
        "principal": "" if is_owner else context.principal,
        "chatType": context.chat_type,
        "sessionKey": context.session_key,
        "channel": context.channel,
        "group": context.group,
    }


def _token_of(facts: Mapping[str, Any]) -> NamedToken:
    said = facts["context"]
    context = SearchContext(
        OWNER if said["owner"] is True else str(said["principal"]),
        str(said["chatType"]),
        str(said["sessionKey"]),
        str(said["channel"]),
        str(said["group"]),
    )
    rights = tuple(right for right in RIGHTS if right in facts["rights"])
    return NamedToken(str(facts["name"]), str(facts["sha256"]), rights, context, str(facts["createdAt"]))


class PageSessions:
    """Codes that open the page once, and the sessions they open. With the process they are gone."""

    def __init__(self, rights: frozenset[str], clock: Callable[[], float] = time.time) -> None:
        self._rights = rights
        self._clock = clock
        self._lock = Lock()
        self._codes: dict[str, float] = {}  # hash: until when
        self._open: dict[str, tuple[float, float]] = {}  # hash: since when, until when

    def make_code(self) -> tuple[str, float]:
        """A code that works once, and for how many seconds."""
        code = secrets.token_urlsafe(24)
        with self._lock:
            now = self._clock()
            waiting = [one for one in self._codes.items() if one[1] > now]
            self._codes = dict(waiting[1 - _MOST_CODES :])
            self._codes[sha256_text(code)] = now + _CODE_SECONDS
        return code, _CODE_SECONDS

    def begin(self, code: str) -> tuple[str, Caller] | None:
        """The token of a new session; None for a code that is unknown, old or used."""
        with self._lock:
            now = self._clock()
            until = self._codes.pop(sha256_text(code), 0.0)
            if until <= now:
                return None
            while len(self._open) >= _MOST_SESSIONS:
                self._end(next(iter(self._open)))
            token = f"pms_{secrets.token_urlsafe(32)}"
            self._open[sha256_text(token)] = (now, now + _SESSION_SECONDS)
        return token, self._caller(now + _SESSION_SECONDS)

    def find(self, token: str) -> Caller | None:
        """The session of a token, which this makes last longer."""
        hashed = sha256_text(token)
        with self._lock:
            now = self._clock()
            since, until = self._open.get(hashed, (0.0, 0.0))
            if until <= now:
                if until:
                    self._end(hashed)
                return None
            until = min(now + _SESSION_SECONDS, since + _LONGEST_SECONDS)
            self._open[hashed] = (since, until)
        return self._caller(until)

    def is_over(self, token: str) -> bool:
        """Whether it was the token of a session that has ended, or may be one of an earlier process."""
        return token.startswith("pms_")

    def end(self, token: str) -> None:
        """End a session."""
        with self._lock, suppress(KeyError):
            self._end(sha256_text(token))

    def _end(self, hashed: str) -> None:
        del self._open[hashed]

    def _caller(self, until: float) -> Caller:
        return Caller("page", self._rights, THE_OWNER, is_page=True, expires_at=until)


class Callers:
    """Everybody who may ask a server: the sessions of the page, named tokens, and whoever asks for codes."""

    def __init__(self, sessions: PageSessions, tokens: TokenFile, secret: str, *, read_only: bool) -> None:
        self.sessions = sessions
        self._tokens = tokens
        self._secret = sha256_text(secret)
        self._read_only = read_only

    def find(self, token: str) -> Caller | None:
        """Who shows this token. Only hashes are compared: how long it takes tells nothing of a token."""
        if not token or len(token) > 200:
            return None
        if sha256_text(token) == self._secret:
            return Caller("plainmind page", frozenset({"open"}), THE_OWNER)
        found = self.sessions.find(token) or self._tokens.find(token)
        if found is None or not self._read_only:
            return found
        return replace(found, rights=found.rights & {"read"})
