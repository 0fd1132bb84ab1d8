"""Who may ask, and for what: tokens that are kept, codes and sessions that are not, and what a request must show."""

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
from plainmind.guests.page.wire import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from plainmind.guests.page.table import Operation

    RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]


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


# --- what a request must show ---

# Of a request that nobody who is known has sent: what is wrong, and what to do.
_UNKNOWN = {
    "session-over": ("the session is over, or is one of an earlier server", "run `plainmind page` again"),
    "missing": ("a bearer token is needed", "`plainmind tokens add NAME` makes one"),
    "unknown": (
        "this token is not known here: it was revoked, or is of another home",
        "`plainmind tokens` lists those that are; `plainmind tokens add NAME` makes one",
    ),
}

MOST_BODY_BYTES = 2_000_000
_UTF_8 = frozenset({"utf-8", "utf8"})
# Nothing is loaded from elsewhere, nothing runs that is not ours, and no other page can show this one.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


def header_map(raw: RawHeaders) -> dict[str, str]:
    """Headers by name in small letters. Raises Problem for one of ours that stands there twice."""
    found: dict[str, str] = {}
    for name, text in raw:
        known = name.decode("latin-1").lower()
        if known in found and known in {
            "host",
            "origin",
            "authorization",
            "content-length",
            "content-type",
            "if-match",
        }:
            raise Problem("bad-request", f"the header `{known}` stands there twice", "send it once")
        found[known] = text.decode("latin-1")
    return found


def token_in(headers: Mapping[str, str]) -> str:
    """The token of a request: a bearer's, or as clients of other vendors send their keys; "" when there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() in {"bearer", "token"}:
        return token.strip()
    return headers.get("x-api-key", "").strip()


@value
class Gate:
    """What a request must show."""

    hosts: frozenset[str]  # as a Host header spells them, in small letters
    origins: frozenset[str]  # of the page itself
    callers: Callers
    read_only: bool

    def check_place(self, headers: Mapping[str, str]) -> None:
        """Raise Problem for another host than ours, or for a page of another origin."""
        if headers.get("host", "").lower() not in self.hosts:
            raise Problem("host", "this is not the host that the server was started for")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins:
            raise Problem("origin", "pages of other sites may not ask here")

    def check_page(self, headers: Mapping[str, str]) -> None:
        """Raise Problem when another page asks for a file of ours; a person who types the address does not."""
        if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"} and (
            headers.get("sec-fetch-mode") != "navigate"
        ):
            raise Problem("origin", "pages of other sites may not load this")

    def check_site(self, headers: Mapping[str, str]) -> None:
        """Raise Problem when a browser says that another page is asking."""
        if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
            raise Problem("origin", "pages of other sites may not ask here")

    def knows_token(self, raw: RawHeaders) -> bool:
        """Whether a request shows a token that is good for something."""
        try:
            return self.callers.find(token_in(header_map(raw))) is not None
        except (Problem, PlainmindError):
            return False  # the request itself is told what is wrong

    def caller_of(self, headers: Mapping[str, str], operation: Operation) -> Caller:
        """Who asks. Raises Problem when nobody does who may."""
        token = token_in(headers)
        caller = self.callers.find(token)
        if caller is None:
            over = "session-over" if self.callers.sessions.is_over(token) else ""
            words = _UNKNOWN[over or ("unknown" if token else "missing")]
            raise Problem(over or "unauthorized", *words, headers=(("www-authenticate", "Bearer"),))
        right = operation.right
        if right not in {"any", *caller.rights}:
            raise self._refusal(caller, right)
        return caller

    def _refusal(self, caller: Caller, right: str) -> Problem:
        if self.read_only and right in {"write", "forget", "review"}:
            return Problem(
                "forbidden",
                "the server was started with --read-only",
                "start it without, to change anything",
                more={"right": right},
            )
        return Problem(
            "forbidden",
            f"the token `{caller.name}` has no right to {right}",
            "`plainmind tokens add NAME --rights …` makes one that has",
            more={"right": right},
        )


def check_body(headers: Mapping[str, str]) -> None:
    """Raise Problem for a body that is not read: no JSON, packed, or too large."""
    kind, *parameters = (part.strip().lower() for part in headers.get("content-type", "").split(";"))
    given = [parameter.partition("=")[::2] for parameter in parameters]
    is_utf_8 = all(name.strip() != "charset" or text.strip(' "') in _UTF_8 for name, text in given)
    if kind != "application/json" or not is_utf_8:
        raise Problem("media-type", "the body must be application/json, in UTF-8")
    if "content-encoding" in headers:
        raise Problem("media-type", "the body must not be compressed")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()) or len(length) > 18:
        raise Problem("bad-request", "the header `content-length` is no number")
    if int(length) > MOST_BODY_BYTES:
        raise too_large()


def too_large() -> Problem:
    """Say how much a body may have."""
    return Problem("too-large", f"the body may have {MOST_BODY_BYTES:,} bytes at most", "send less at once")


# --- which versions of a file a request names: `If-Match` and `If-None-Match` of RFC 9110 ---

# A tag that a proxy made weak (`W/"…"`, as nginx does when it compresses) counts as the one that it was. The RFC would
# refuse it in `If-Match`; but our etags are hashes of a file's bytes, and the weak one still says which were read.
# Whoever sits behind such a proxy could otherwise save nothing.
_TAG = pattern(r'(?:W/)?"([^"]*)"|([^\s",]+)')  # some programs leave the quotes out


@value
class Versions:
    """The etags of a header; any version that there is, where it says `*`."""

    etags: frozenset[str]
    is_any: bool

    def __bool__(self) -> bool:
        return self.is_any or bool(self.etags)

    def has(self, etag: str) -> bool:
        """Whether the version that is there is among them."""
        return self.is_any or etag in self.etags


def versions_in(header: str) -> Versions:
    """Read a header; one that has no tag names a version that no file ever has."""
    if header.strip() == "*":
        return Versions(frozenset(), is_any=True)
    found = frozenset(quoted or bare for quoted, bare in _TAG.findall(header))
    return Versions(found or frozenset({""} if header else ()), is_any=False)
